//! Subflows of the kernel's MPTCP: each has an address of its own at the sender, and the kernel's path manager
//! opens and closes it.
use super::plan::{Flow, Over, Plan};
use crate::clock;
use crate::command::run;
use crate::error::Error;
use crate::namespace::Namespace;
use ackademy::units::{Span, Time};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What the path manager of a host is to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// When.
    pub at: Time,
    /// Index of the pair of hosts.
    pub pair: usize,
    /// Words of `ip mptcp`.
    words: Vec<String>,
}

impl Change {
    fn new(at: Time, flow: &Flow, words: &str) -> Self {
        let words = words.split_whitespace().map(ToOwned::to_owned).collect();
        Self { at, pair: flow.pair, words }
    }

    /// Makes it.
    ///
    /// # Errors
    ///
    /// If the kernel refuses it.
    pub fn make(&self, host: &Namespace) -> Result<(), Error> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        run("ip", &[&["-n", host.name(), "mptcp"], &words[..]].concat())
    }
}

/// Lets both hosts of a pair have as many subflows as a scenario may ask for.
///
/// # Errors
///
/// If this kernel has no MPTCP.
pub fn allow(host: &Namespace) -> Result<(), Error> {
    host.inside(|| {
        std::fs::write(ENABLED, "1").map_err(|_| Error::Input(NO_MPTCP.to_owned()))?;
        // Of the connection, not of its subflows, which have no such limit.
        std::fs::write(NOTSENT, NOTSENT_BYTES)
            .map_err(|error| Error::System(format!("{NOTSENT}: {error}")))?;
        run("ip", &["mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"])
    })
}

/// What the path managers of a plan's hosts are to do.
pub fn of_plan(plan: &Plan) -> Vec<Change> {
    if plan.over == Over::Tcp { plan.flows.iter().flat_map(changes).collect() } else { Vec::new() }
}

/// What is to be done for a flow, in order of time: nothing for the subflow that opens the connection, except
/// to close it.
pub fn changes(flow: &Flow) -> Vec<Change> {
    if flow.subflows.len() < 2 {
        return Vec::new();
    }
    let mut changes = Vec::new();
    for (index, subflow) in flow.subflows.iter().enumerate() {
        let (address, id) = (subflow.sender, index + 1);
        let opens = subflow.sender == flow.sender;
        if !opens {
            let words = format!("endpoint add {address} id {id} subflow");
            // Of those that open with the connection it is told before there is one.
            let at = if subflow.start <= flow.start { Time(0) } else { subflow.start };
            changes.push(Change::new(at, flow, &words));
        }
        if subflow.stop < Time::NEVER {
            let words = if opens {
                format!("endpoint delete id 0 {address}")
            } else {
                format!("endpoint delete id {id}")
            };
            changes.push(Change::new(subflow.stop, flow, &words));
        }
    }
    changes.sort_by_key(|change| change.at);
    changes
}

/// Makes the changes of all flows when their time comes, until `stop`.
///
/// # Errors
///
/// If the kernel refuses one.
pub fn follow(
    mut changes: Vec<Change>,
    hosts: &[&Namespace],
    epoch: Time,
    stop: &AtomicBool,
) -> Result<(), Error> {
    changes.sort_by_key(|change| change.at);
    for change in changes {
        let due = epoch + Span(change.at.0);
        while clock::now() < due {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            thread::sleep(Duration::from_nanos(due.since(clock::now()).0).min(LOOK));
        }
        change.make(hosts[change.pair])?;
    }
    Ok(())
}

const ENABLED: &str = "/proc/sys/net/mptcp/enabled";
const NO_MPTCP: &str = "this kernel has no MPTCP (no net.mptcp.enabled), which flows with several subflows \
     need: a kernel with CONFIG_MPTCP=y, or the simulator (--backend sim)";
const NOTSENT: &str = "/proc/sys/net/ipv4/tcp_notsent_lowat";
/// A few packets at most that no subflow has.
const NOTSENT_BYTES: &str = "8192";
/// How often `stop` is looked at.
const LOOK: Duration = Duration::from_millis(50);
