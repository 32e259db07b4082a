//! The kernel's TCP under this project's controllers.
//!
//! ```text
//! ACK ─► ackademy.bpf.c ── sample (ring buffer) ─► Agent ─► Ack, Loss ─► Coupled
//!              ▲                                                            │
//!              └───────── decision (mmapped array) ◄──── Control ◄──────────┘
//! ```
use ackademy::control::{Coupled, FlowInfo, SubflowId};
use ackademy::params::{Param, ParamKind};
use ackademy::units::{Rate, Span};
use compiled::Compiled;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

pub mod adapter;
mod agent;
pub mod check;
pub mod cli;
pub mod compiled;
pub mod governor;
mod pins;
mod program;
pub mod record;
pub mod release;
pub mod scheme;
pub mod status;
mod table;
mod timers;

pub use agent::Agent;
pub use program::Registered;

/// Longest name of a congestion control (`TCP_CA_NAME_MAX` less the final zero).
const NAME_MAX: usize = 15;

#[allow(missing_docs, unused_imports, clippy::all, clippy::pedantic, clippy::unwrap_used)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/ackademy.skel.rs"));
}

/// One TCP connection, or one subflow of an MPTCP connection, as its sender names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FlowKey {
    /// Sender's address and port.
    pub local: SocketAddr,
    /// Receiver's address and port.
    pub remote: SocketAddr,
    /// Inode of the sender's network namespace.
    pub namespace: u64,
    /// Local token of the MPTCP connection that it is a subflow of, unique on the machine; 0 for plain TCP.
    pub token: u32,
    /// The kernel's number of the subflow within its connection.
    pub subflow: u32,
}

/// Which flows have one governor together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Each has its own.
    Flow,
    /// The subflows of one MPTCP connection; a flow of plain TCP has its own.
    Connection,
    /// All that have this number.
    Number(u64),
}

/// Chooses what governs a flow that has just been opened.
pub trait Assign: Send {
    /// With which others it has a governor together.
    fn group(&mut self, _key: &FlowKey) -> Group {
        Group::Flow
    }
    /// What its governor is told of it, if that is not what the kernel says.
    fn info(&mut self, _key: &FlowKey, info: FlowInfo) -> FlowInfo {
        info
    }
    /// The governor of the first flow of a group; `None` leaves the flow to CUBIC (counted).
    fn governor(&mut self, key: &FlowKey, info: &FlowInfo) -> Option<Box<dyn Coupled>>;
    /// The flow was closed; `counters` are its controller's.
    fn closed(&mut self, _key: &FlowKey, _counters: Counters, _totals: &FlowTotals) {}
}

/// Events that a controller counted, by name.
pub type Counters = Vec<(&'static str, f64)>;

/// How to serve.
#[derive(Clone, Debug)]
pub struct Options {
    /// Name that programs give to `TCP_CONGESTION`; at most 15 bytes. Names are global over all
    /// namespaces of the machine.
    pub name: String,
    /// Where link and maps are pinned, so that flows can be taken over by the next daemon; `None`:
    /// nowhere, the name goes with the process and open flows go on under CUBIC.
    pub pins: Option<PathBuf>,
    /// Longest time between samples of a flow; an eighth of its smallest round trip (a sixteenth in slow
    /// start), but at least 1 ms, if that is shorter. Zero: a sample of every acknowledgement. See
    /// [`usual_interval`].
    pub interval: Span,
    /// A sample unanswered for longer than this and than four intervals sends its flow to CUBIC.
    pub watchdog: Span,
    /// Most flows at a time; others stay under CUBIC (counted).
    pub slots: u32,
    /// Packets of a flow under a rate leave singly, also where the rate is low. It costs a call into BPF
    /// for everything that any flow sends; see [`may_pace`].
    pub paced: bool,
    /// Decisions are made in the kernel, by this; no daemon serves the flows.
    pub in_kernel: Option<Arc<Compiled>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            name: "ackademy".to_owned(),
            pins: Some(PathBuf::from("/sys/fs/bpf/ackademy")),
            interval: INTERVAL,
            watchdog: WATCHDOG,
            slots: 4096,
            paced: true,
            in_kernel: None,
        }
    }
}

/// Time between samples where no other is configured.
pub const INTERVAL: Span = Span::from_millis(10);
/// Longest that a sample waits for its answer where nothing else is configured. A fallback follows the death of a daemon
/// by the time to the next sample, this, and the time to the next acknowledgement: within 200 ms where the
/// first and the last take less than 50 together.
pub const WATCHDOG: Span = Span::from_millis(150);
/// As [`INTERVAL`], of policies, and of controllers that decide once per round trip.
const ROUND_INTERVAL: Span = Span::from_millis(1);

/// Time between samples of flows of a controller with these settings where no other is configured: 10 ms, or
///
/// - a sample of every acknowledgement if it has a send hook: it is asked for the packets that the
///   acknowledgement lets out;
/// - 1 ms for a policy: its slots end with a sample. A small window is acknowledged in one bunch a
///   round trip; of a bunch with one sample every other slot would last two round trips;
/// - 1 ms for a controller that decides once per round trip, for the same reason.
pub fn usual_interval(params: &[Param], mut governor: Box<dyn Coupled>) -> Span {
    join_one(governor.as_mut());
    if governor.has_send_hook() {
        Span::ZERO
    } else if is_policy(params) || governor.judges_rounds() {
        ROUND_INTERVAL
    } else {
        INTERVAL
    }
}

/// Whether a controller may set a pacing rate: it begins with one, or it is a policy, whose actions are not known.
pub fn may_pace(params: &[Param], mut governor: Box<dyn Coupled>) -> bool {
    join_one(governor.as_mut());
    is_policy(params) || governor.control(SUBFLOW).pacing_rate != Rate::UNLIMITED
}

/// Gives a governor that is asked about itself a subflow: one of plain controllers has none before.
fn join_one(governor: &mut dyn Coupled) {
    let flow = record::Flow { mss: 1448, ..record::Flow::default() };
    governor.subflow_added(SUBFLOW, &adapter::flow_info(&flow));
}

const SUBFLOW: SubflowId = SubflowId(0);

fn is_policy(params: &[Param]) -> bool {
    params.iter().any(|param| matches!(param.kind, ParamKind::Files { .. }))
}

/// What was counted of one flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowTotals {
    /// Samples that reached the controller.
    pub samples: u64,
    /// Decisions that the kernel applied.
    pub decisions: u64,
    /// Times that the flow fell back to CUBIC.
    pub fallbacks: u64,
    /// Samples that the full ring refused.
    pub refused: u64,
    /// Decisions that no sender can obey: a window of nothing or beyond any path.
    pub invalid: u64,
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::scheme::Scheme;

    #[test]
    fn a_controller_that_decides_once_per_round_trip_is_told_of_every_millisecond() {
        let interval = |name: &str| {
            let scheme = Scheme::resolve(name, &[]).expect("a controller");
            usual_interval(scheme.entry.params(), scheme.build())
        };
        for (name, wanted) in [
            ("wvegas", ROUND_INTERVAL),
            ("vegas", ROUND_INTERVAL),
            ("lia", INTERVAL),
            ("cubic", INTERVAL),
        ] {
            assert_eq!(interval(name), wanted, "{name}");
        }
    }
}
