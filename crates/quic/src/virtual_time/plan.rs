//! What a scenario asks for, as far as QUIC can do it, and the settings of noq for that.
use super::watched::{Seen, WatchedFactory};
use crate::factory::MTU_MIN;
use crate::tls::Keys;
use crate::{Factory, Refused, Start};
use ackademy::control::Recovery;
use ackademy::scheme::{Entry, Scheme};
use ackademy::sim::plan::{ConnectionPlan, NetworkPlan, TrafficSpec};
use ackademy::transport::config::{Ecn, SendHook};
use ackademy::transport::misbehaviour::Misbehaviour;
use ackademy::units::Time;
use noq_proto::congestion::{Bbr3Config, ControllerFactory, CubicConfig, NewRenoConfig};
use noq_proto::{
    ClientConfig, EndpointConfig, ServerConfig, TransportConfig, ValidationTokenConfig, VarInt,
};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// noq's own controllers.
pub const NOQ_NAMES: [&str; 3] = ["noq:bbr3", "noq:cubic", "noq:new_reno"];

/// Headers of IPv4 and UDP.
pub(crate) const HEADER_BYTES: u64 = 28;

/// A flow's configuration.
pub(crate) struct FlowConfig {
    pub(crate) client: ClientConfig,
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
            builtin(plan)?;
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
    /// Of the core.
    Core(Factory),
    /// noq's own, or anyone's.
    Other(Arc<dyn ControllerFactory + Send + Sync>),
}

/// The controllers of the core, and noq's own, by name.
///
/// # Errors
///
/// If there is none of that name, a setting is out of range, or the controller cannot govern a connection of QUIC.
pub fn builtin(plan: &ConnectionPlan) -> Result<Governor, Refused> {
    let name = plan.controller.as_str();
    let refused = |why: String| Refused(format!("flow {:?}: {why}", plan.name));
    let packets = plan.sender.initial_cwnd.0 / plan.sender.packet.0.max(1);
    let cwnd = packets * plan.sender.packet.0.saturating_sub(HEADER_BYTES);
    Ok(Governor::Other(match name {
        "noq:bbr3" => Arc::new(Bbr3Config::default().initial_window(cwnd).clone()),
        "noq:cubic" => Arc::new(CubicConfig::default().initial_window(cwnd).clone()),
        "noq:new_reno" => Arc::new(NewRenoConfig::default().initial_window(cwnd).clone()),
        _ => {
            if Entry::find(name).is_none() {
                return Err(refused(format!(
                    "controller {name:?}: allowed with QUIC is a controller of `ackademy list`, or one of {}",
                    NOQ_NAMES.join(", ")
                )));
            }
            let scheme =
                Scheme::resolve(name, &plan.params).map_err(|error| refused(error.to_string()))?;
            let factory = Factory::new(&scheme).map_err(|error| refused(error.0))?;
            return Ok(Governor::Core(factory));
        }
    }))
}

/// How noq sends what this connection asks for.
fn transport(plan: &ConnectionPlan) -> TransportConfig {
    let mtu = (plan.sender.packet.0 - HEADER_BYTES) as u16;
    let window = match &plan.mptcp {
        Some(mptcp) => mptcp.receive_buffer.0,
        None => plan.sender.receiver_window_packets.saturating_mul(plan.sender.packet.0),
    };
    let window = VarInt::from_u64(window).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(mtu)
        .min_mtu(mtu)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(window)
        .receive_window(window)
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS_MAX))
        .enable_segmentation_offload(false);
    if plan.subflows.len() > 1 {
        transport.max_concurrent_multipath_paths(plan.subflows.len() as u32 + 1);
    }
    transport
}

/// The configuration of a connection, whose time 0 is `origin`.
pub(crate) fn flow_config(
    plan: &ConnectionPlan,
    governor: Governor,
    keys: &Keys,
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
    let (inner, factory): (Arc<dyn ControllerFactory + Send + Sync>, _) = match governor {
        Governor::Core(factory) => {
            let factory = Arc::new(factory.starting(start).observed());
            (Arc::clone(&factory) as _, Some(factory))
        }
        Governor::Other(inner) => (inner, None),
    };
    let seen: Vec<_> = plan.subflows.iter().map(|_| Arc::default()).collect();
    let mut transport = transport(plan);
    let watched = WatchedFactory::new(inner, seen.clone());
    transport.congestion_controller_factory(Arc::new(watched));
    let mut client = ClientConfig::new(Arc::clone(&keys.client) as _);
    client.transport_config(Arc::new(transport));
    FlowConfig { client, factory, seen }
}

/// The configuration of the end that receives.
pub(crate) fn server_config(plan: &ConnectionPlan, keys: &Keys) -> Arc<ServerConfig> {
    let mut server = ServerConfig::with_crypto(Arc::clone(&keys.server) as _);
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0); // for later connections, of which there is none
    server.validation_token_config(tokens).transport_config(Arc::new(transport(plan)));
    Arc::new(server)
}

/// The configuration of both endpoints, whose random numbers come from `seed`.
pub(crate) fn endpoint_config(plan: &ConnectionPlan, seed: [u8; 32]) -> Arc<EndpointConfig> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &seed);
    let mut config = EndpointConfig::new(Arc::new(key));
    config.rng_seed(Some(seed)).grease_quic_bit(false);
    let mtu = (plan.sender.packet.0 - HEADER_BYTES) as u16;
    config.max_udp_payload_size(mtu).expect("`check` has seen the size");
    Arc::new(config)
}

/// Whether packets may say that they are ECN-capable.
pub(crate) fn is_ecn_capable(ecn: Ecn) -> bool {
    ecn != Ecn::Off
}

/// Most streams that a receiver allows, each a piece of the data: more than a window has.
const STREAMS_MAX: u32 = 1 << 16;
/// Most paths of a connection.
const PATHS_MAX: usize = 8;
/// Largest payload of a datagram (RFC 9000 section 18.2).
const MTU_MAX: u64 = 65_527;
