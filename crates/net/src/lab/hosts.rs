//! The hosts of a plan: a namespace each, its kernel settings, its device and its routes.
use super::plan::{Family, Pair, Plan};
use super::subflows;
use crate::command::run;
use crate::error::Error;
use crate::interrupt;
use crate::link::tun::{self, Port};
use crate::namespace::{Namespace, Owner};
use ackademy::transport::config::Ecn;
use ackademy::units::Time;

/// Name of every host's device.
pub const DEVICE: &str = "link0";

/// Hosts that exist, in pairs; gone when dropped.
#[derive(Debug)]
pub struct Hosts {
    /// Devices of each pair: the sender's at twice its index, the receiver's next to it.
    pub ports: Vec<Port>,
    /// Sender and receiver of each pair.
    pub pairs: Vec<(Namespace, Namespace)>,
    /// What the running kernel cannot do of what the plan asks, one line each.
    pub notes: Vec<String>,
    /// Of their names; goes last.
    pub owner: Owner,
}

impl Hosts {
    /// Makes them.
    ///
    /// # Errors
    ///
    /// If the machine refuses something; what was made by then is gone again.
    pub fn new(plan: &Plan) -> Result<Self, Error> {
        let made = Self::make(plan);
        // Ctrl-C in a terminal ends the programs that set up hosts, too: no fault of theirs.
        interrupt::check()?;
        made
    }

    fn make(plan: &Plan) -> Result<Self, Error> {
        let owner = Owner::claim()?;
        let (mut ports, mut pairs, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for (index, pair) in plan.pairs.iter().enumerate() {
            interrupt::check()?;
            let sender = owner.create(&format!("s{index}"))?;
            let receiver = owner.create(&format!("r{index}"))?;
            let [near, far] = prefixes(plan.family);
            ports.push(set_up(&sender, pair, plan.family, [near, far])?);
            ports.push(set_up(&receiver, pair, plan.family, [far, near])?);
            if pair.only.is_some() {
                subflows::allow(&sender)?;
                subflows::allow(&receiver)?;
            }
            if pair.ecn.is_accurate() && !sender.inside(|| Ok(has_accurate_ecn()))? {
                notes.push(NO_ACCURATE_ECN.to_owned());
            }
            if pair.ecn == Ecn::L4s {
                notes.push(NO_ECT_1.to_owned());
            }
            pairs.push((sender, receiver));
        }
        for change in subflows::of_plan(plan) {
            if change.at == Time(0) {
                change.make(&pairs[change.pair].0)?;
            }
        }
        notes.sort_unstable();
        notes.dedup();
        Ok(Self { ports, pairs, notes, owner })
    }
}

/// The addresses of all senders and of all receivers (see `Plan`).
fn prefixes(family: Family) -> [&'static str; 2] {
    match family {
        Family::V4 => ["198.18.0.0/16", "198.19.0.0/16"],
        Family::V6 => ["fdac:ade::1:0/112", "fdac:ade::2:0/112"],
    }
}

fn set_up(
    host: &Namespace,
    pair: &Pair,
    family: Family,
    [own, others]: [&str; 2],
) -> Result<Port, Error> {
    let port = tun::open(&tun::Plan {
        namespace: host.path(),
        device: DEVICE.to_owned(),
        addresses: Vec::new(),
        mtu: pair.mtu,
    })?;
    host.inside(|| {
        settings(pair).iter().try_for_each(|(name, value)| set(name, value))?;
        if pair.ecn.is_accurate() {
            // Refused, it stays what it was; `has_accurate_ecn` then says so.
            let _ = std::fs::write(TCP_ECN, ACCURATE_ECN);
        }
        run("ip", &["link", "set", "lo", "up"])?;
        let version = if family == Family::V4 { "-4" } else { "-6" };
        // Every address of the prefix is this host's: no list of hundreds to be set up.
        run("ip", &[version, "route", "add", "local", own, "dev", "lo"])?;
        let initial_cwnd = pair.initial_cwnd.to_string();
        let quick_acks = if pair.quick_acks { "1" } else { "0" };
        let metrics = ["initcwnd", &initial_cwnd, "quickack", quick_acks];
        run("ip", &[&[version, "route", "add", others, "dev", DEVICE][..], &metrics].concat())
    })?;
    Ok(port)
}

/// Settings of the kernel in a host, by their names under `/proc/sys/net`.
fn settings(pair: &Pair) -> Vec<(&'static str, String)> {
    let ecn = if pair.ecn == Ecn::Off { "0" } else { "1" };
    let buffer = pair.buffer.0;
    let rto_max_ms = (pair.rto_max.as_millis_f64() as u64).clamp(1000, 120_000);
    let rto_min_us = (pair.rto_min.0 / 1000).clamp(1000, 1000 * rto_max_ms);
    vec![
        // A flow knows nothing of those before it.
        ("ipv4/tcp_no_metrics_save", "1".to_owned()),
        ("ipv4/tcp_slow_start_after_idle", u8::from(pair.idle_restart).to_string()),
        ("ipv4/tcp_ecn", ecn.to_owned()),
        ("ipv4/tcp_timestamps", "1".to_owned()),
        // min_rtt is of the whole flow, not of the last five minutes.
        ("ipv4/tcp_min_rtt_wlen", "86400".to_owned()),
        ("ipv4/tcp_rto_min_us", rto_min_us.to_string()),
        ("ipv4/tcp_rto_max_ms", rto_max_ms.to_string()),
        // What a killed program leaves unsent goes nowhere; trying for minutes keeps its congestion
        // control in the kernel.
        ("ipv4/tcp_orphan_retries", "1".to_owned()),
        // The receiver offers what it has from the start; the sender's buffer grows with its window. MPTCP
        // hands all that its buffer takes to subflows at once, and what a subflow has does not move to
        // another: it begins with Linux's default.
        ("ipv4/tcp_rmem", format!("4096 {buffer} {buffer}")),
        ("ipv4/tcp_wmem", format!("4096 {} {buffer}", pair.only.map_or(262_144, |_| 16_384))),
        // IPv6 counts as its own for a sender only what is on a device.
        ("ipv6/ip_nonlocal_bind", "1".to_owned()),
        ("ipv4/conf/all/rp_filter", "0".to_owned()),
        ("ipv4/conf/default/rp_filter", "0".to_owned()),
    ]
}

/// Settings that the running kernel does not have yet keep what it does anyway.
fn set(name: &str, value: &str) -> Result<(), Error> {
    let path = format!("/proc/sys/net/{name}");
    match std::fs::write(&path, value) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::System(format!("{path} = {value}: {error}")))
        }
        _ => Ok(()),
    }
}

/// Whether the namespace of the calling thread has taken it.
fn has_accurate_ecn() -> bool {
    std::fs::read_to_string(TCP_ECN).is_ok_and(|value| value.trim() == ACCURATE_ECN)
}

const TCP_ECN: &str = "/proc/sys/net/ipv4/tcp_ecn";
/// Ask for accurate ECN (RFC 9768), which not every kernel that knows the setting allows.
const ACCURATE_ECN: &str = "3";
const NO_ACCURATE_ECN: &str =
    "this kernel has no accurate ECN: marks are echoed as in RFC 3168 (ecn = \"accurate\")";
const NO_ECT_1: &str =
    "the kernel's senders announce ECT(0): dualpi2 serves them as classic traffic (ecn = \"l4s\")";
