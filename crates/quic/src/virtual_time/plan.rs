//! What a scenario asks for, as far as QUIC can do it.
use super::end::Connect;
use super::watched::Seen;
use super::{noq, quinn};
use crate::factory::MTU_MIN;
use crate::tls::Keys;
use crate::{Factory, Refused, Start};
use ackademy::control::Recovery;
use ackademy::scheme::{Entry, Scheme};
use ackademy::sim::plan::{ConnectionPlan, NetworkPlan, TrafficSpec};
use ackademy::transport::config::{Ecn, SendHook};
use ackademy::transport::misbehaviour::Misbehaviour;
use ackademy::units::Time;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Headers of IPv4 and UDP.
pub(crate) const HEADER_BYTES: u64 = 28;

/// A flow's configuration.
pub(crate) struct FlowConfig {
    pub(crate) connect: Connect,
    /// Of a controller of the core.
    pub(crate) factory: Option<Arc<Factory>>,
    /// Of each path.
    pub(crate) seen: Vec<Arc<Mutex<Seen>>>,
}

/// Refuses what a network asks for and QUIC, or noq, cannot do.
///
/// # Errors
///
/// The first such thing, on one line.
pub fn check(network: &NetworkPlan) -> Result<(), Refused> {
    for plan in &network.connections {
        check_connection(plan)?;
        if !is_datagrams(plan) {
            check_governor(plan, &builtin(plan)?)?;
        }
    }
    Ok(())
}

/// Whether a flow is of no connection, but of datagrams at a constant rate.
pub(crate) fn is_datagrams(plan: &ConnectionPlan) -> bool {
    matches!(plan.traffic, TrafficSpec::Cbr { .. })
}

pub(crate) fn check_connection(plan: &ConnectionPlan) -> Result<(), Refused> {
    if is_datagrams(plan) {
        return Ok(());
    }
    let sender = &plan.sender;
    let packet = sender.packet.0;
    let refused = |what: &str, allowed: &str| {
        Err(Refused(format!("flow {:?}: {what}: allowed with QUIC is {allowed}", plan.name)))
    };
    let allowed = HEADER_BYTES + MTU_MIN..=HEADER_BYTES + MTU_MAX;
    if let Some((what, allowed)) = lacking_paths(plan) {
        return refused(&what, &allowed);
    }
    if !allowed.contains(&packet) {
        let range = format!("{} to {}", allowed.start(), allowed.end());
        return refused(&format!("packet_bytes = {packet}"), &range);
    }
    if sender.recovery == Recovery::Ns2 {
        return refused("sender.recovery = \"ns2\"", "\"sack\"");
    }
    if sender.ecn.is_accurate() {
        return refused("sender.ecn", "\"off\" or \"classic\": noq does not count marks");
    }
    if sender.misbehaviour != Misbehaviour::default() {
        return refused("a receiver that misbehaves", "an honest one: it is noq's");
    }
    if sender.fuzz_records > 0.0 {
        return refused("sender.fuzz_records", "0");
    }
    if sender.send_hook == SendHook::Ack {
        return refused("sender.send_hook = \"ack\"", "\"packet\"");
    }
    Ok(())
}

/// quinn is not multipath QUIC.
pub(crate) fn check_governor(plan: &ConnectionPlan, governor: &Governor) -> Result<(), Refused> {
    let paths = plan.subflows.len();
    if paths == 1 || !matches!(governor, Governor::Quinn(_)) {
        return Ok(());
    }
    let ConnectionPlan { name, controller, .. } = plan;
    Err(Refused(format!(
        "flow {name:?}: {paths} subflows under {controller}: allowed with quinn is one"
    )))
}

/// What noq lacks for the paths of a connection, and what is allowed.
fn lacking_paths(plan: &ConnectionPlan) -> Option<(String, String)> {
    let paths = plan.subflows.len();
    if paths > PATHS_MAX {
        return Some((format!("{paths} subflows"), format!("at most {PATHS_MAX}")));
    }
    let mut times = plan.mptcp.iter().flat_map(|mptcp| &mptcp.times);
    let changes = times.any(|&(opens, closes)| opens > plan.start || closes < Time::NEVER);
    changes.then(|| {
        let allowed = "one that is there from start to end";
        ("a subflow that opens later or closes".to_owned(), allowed.to_owned())
    })
}

/// What makes the controllers of a connection.
pub enum Governor {
    /// Of the core, over noq.
    Core(Factory),
    /// noq's own, or anyone's, over noq.
    Noq(noq::Factory),
    /// quinn's own, or anyone's, over quinn.
    Quinn(quinn::Factory),
}

/// The controllers of the core, noq's own and quinn's own, by name.
///
/// # Errors
///
/// If there is none of that name, a setting is out of range, or the controller cannot govern a connection of QUIC.
pub fn builtin(plan: &ConnectionPlan) -> Result<Governor, Refused> {
    let name = plan.controller.as_str();
    let refused = |why: String| Refused(format!("flow {:?}: {why}", plan.name));
    let packets = plan.sender.initial_cwnd.0 / plan.sender.packet.0.max(1);
    let cwnd = packets * plan.sender.packet.0.saturating_sub(HEADER_BYTES);
    if let Some(own) = noq::builtin(name, cwnd) {
        return Ok(Governor::Noq(own));
    }
    if let Some(own) = quinn::builtin(name, cwnd) {
        return Ok(Governor::Quinn(own));
    }
    if Entry::find(name).is_none() {
        return Err(refused(format!(
            "controller {name:?}: allowed with QUIC is a controller of `ackademy list`, or one of {}",
            [noq::NAMES, quinn::NAMES].concat().join(", ")
        )));
    }
    let scheme = Scheme::resolve(name, &plan.params).map_err(|error| refused(error.to_string()))?;
    Ok(Governor::Core(Factory::new(&scheme).map_err(|error| refused(error.0))?))
}

/// A flow's configuration, whose time 0 is `origin`; its endpoints' random numbers come from a key.
pub(crate) fn flow_config(
    plan: &ConnectionPlan,
    governor: Governor,
    keys: (&Keys, [u8; 32]),
    (seed, origin): (u64, Instant),
) -> FlowConfig {
    let packets = |bytes: u64| match bytes {
        u64::MAX => f64::INFINITY,
        bytes => bytes as f64 / plan.sender.packet.0 as f64,
    };
    let start = Start {
        cwnd_packets: packets(plan.sender.initial_cwnd.0),
        ssthresh_packets: packets(plan.sender.initial_ssthresh.0),
        seed,
        origin: Some(origin),
    };
    let seen: Vec<_> = plan.subflows.iter().map(|_| Arc::default()).collect();
    let (connect, factory) = match governor {
        Governor::Core(factory) => {
            let factory = Arc::new(factory.starting(start).observed());
            (noq::host::connect(plan, keys, Arc::clone(&factory) as _, seen.clone()), Some(factory))
        }
        Governor::Noq(inner) => (noq::host::connect(plan, keys, inner, seen.clone()), None),
        Governor::Quinn(inner) => (quinn::host::connect(plan, keys, inner, seen.clone()), None),
    };
    FlowConfig { connect, factory, seen }
}

/// Whether packets may say that they are ECN-capable.
pub(crate) fn is_ecn_capable(ecn: Ecn) -> bool {
    ecn != Ecn::Off
}

/// Most paths of a connection.
const PATHS_MAX: usize = 8;
/// Largest payload of a datagram (RFC 9000 section 18.2).
const MTU_MAX: u64 = 65_527;
