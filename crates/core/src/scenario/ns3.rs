//! A network as ns-3's TCP can run it: the lines that the program of `ns3/runner` reads. What ns-3 cannot do exactly
//! is refused. What its TCP lacks (RACK, tail probes, quick acknowledgements) has no effect.
use crate::control::Recovery;
use crate::params::ParamValue;
use crate::rng::Seed;
use crate::sim::plan::{
    ConnectionPlan, DelayPlan, ExtrasPlan, LinkPlan, LossSpec, NetworkPlan, QueueSpec, RatePlan,
    TrafficSpec,
};
use crate::sim::{arrivals, builtin};
use crate::transport::config::{SendHook, SenderConfig};
use crate::transport::misbehaviour::Misbehaviour;
use crate::transport::send_hook;
use crate::units::{Bytes, Span, Time};
use std::fmt::{self, Display, Write as _};

/// ns-3's own controllers, `ns3:NAME`: name, `TypeId`, attributes.
pub const NAMES: [(&str, &str, &str); 16] = [
    ("bbr", "TcpBbr", ""),
    ("bic", "TcpBic", ""),
    ("cubic", "TcpCubic", ""),
    ("highspeed", "TcpHighSpeed", ""),
    ("htcp", "TcpHtcp", ""),
    ("hybla", "TcpHybla", ""),
    ("illinois", "TcpIllinois", ""),
    ("ledbat", "TcpLedbat", ""),
    ("linux_reno", "TcpLinuxReno", ""),
    ("lp", "TcpLp", ""),
    ("new_reno", "TcpNewReno", ""),
    ("scalable", "TcpScalable", ""),
    ("vegas", "TcpVegas", ""),
    ("veno", "TcpVeno", ""),
    ("westwood_plus", "TcpWestwood", "ProtocolType=WestwoodPlus"),
    ("yeah", "TcpYeah", ""),
];

/// What ns-3 cannot do, and what it can, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(String);

impl Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Where something stands: `flow "a"`, `link "b"`.
struct Place<'a>(&'static str, &'a str);

impl Place<'_> {
    fn require(
        &self,
        holds: bool,
        what: impl Display,
        allowed: impl Display,
    ) -> Result<(), Refused> {
        if holds { Ok(()) } else { Err(self.refused(what, allowed)) }
    }

    fn refused(&self, what: impl Display, allowed: impl Display) -> Refused {
        let Self(kind, name) = self;
        Refused(format!("{kind} {name:?}: {what}: allowed with ns-3 is {allowed}"))
    }
}

/// The lines of a network: keys and values, links and flows by their numbers.
///
/// # Errors
///
/// The first thing that ns-3 cannot do.
pub fn lines(network: &NetworkPlan, seed: Seed) -> Result<String, Refused> {
    let NetworkPlan { duration, sample_interval, links, connections } = network;
    let mut out = format!(
        "protocol {PROTOCOL}\nduration_ns {}\nsample_ns {}\nseed {}\n",
        duration.0, sample_interval.0, seed.0
    );
    for (index, plan) in links.iter().enumerate() {
        let sizes = Sizes::on(index as u32, connections);
        out += &link(plan, sizes)?;
    }
    for (index, plan) in connections.iter().enumerate() {
        out += &flow(plan, (index as u64, seed, *duration))?;
    }
    Ok(out)
}

/// The sizes of packets that cross a link.
#[derive(Clone, Copy)]
enum Sizes {
    One(u64),
    Several,
}

impl Sizes {
    fn on(link: u32, connections: &[ConnectionPlan]) -> Self {
        let routes = |plan: &ConnectionPlan| plan.subflows.clone();
        let data = connections
            .iter()
            .filter(|plan| routes(plan).iter().any(|route| route.forward.contains(&link)));
        let mut sizes: Vec<u64> = data.map(|plan| plan.sender.packet.0).collect();
        sizes.dedup();
        let acks = connections
            .iter()
            .any(|plan| routes(plan).iter().any(|route| route.reverse.contains(&link)));
        match *sizes {
            [size] if !acks => Self::One(size),
            _ => Self::Several,
        }
    }
}

fn link(plan: &LinkPlan, sizes: Sizes) -> Result<String, Refused> {
    let LinkPlan {
        name,
        sampled,
        rate,
        outages,
        delay,
        delay_of,
        jitter,
        keep_order: _, // with a constant delay
        queue,
        loss,
        loss_schedule,
        duplicate_ratio,
        reorder,
        extras,
    } = plan;
    let place = Place("link", name);
    let RatePlan::Constant(rate) = rate else {
        return Err(place.refused("a rate that varies", "rate_mbps"));
    };
    let DelayPlan::Constant(delay) = delay else {
        return Err(place.refused("a delay that varies", "a constant delay"));
    };
    place.require(delay_of.is_none() && jitter.0 == 0, "jitter_ms", "0")?;
    place.require(outages.is_empty(), "outages", "none")?;
    place.require(*duplicate_ratio == 0.0, "duplicate_ratio", "0")?;
    place.require(reorder.is_none(), "reorder", "none")?;
    place.require(loss_schedule.is_empty(), "loss_schedule", "loss of kind \"bernoulli\"")?;
    let other = "policer, aggregation, retransmit or ecn";
    place.require(*extras == ExtrasPlan::default(), other, "a link without them")?;
    Ok(format!(
        "link\nsampled {}\nrate_bps {}\ndelay_ns {}\npackets {}\nloss {}\n",
        u8::from(*sampled),
        rate.0,
        delay.0,
        limit(&place, queue, sizes)?,
        ratio(&place, loss.as_ref())?
    ))
}

/// Most packets in the system; 0 for no limit.
fn limit(place: &Place, queue: &QueueSpec, sizes: Sizes) -> Result<u64, Refused> {
    let QueueSpec::DropTail { packets, bytes, bdp: _, min_bytes: _ } = queue else {
        return Err(place.refused("queue.kind", "\"drop_tail\""));
    };
    let of_bytes = match (bytes, sizes) {
        (None, _) => None,
        (Some(bytes), Sizes::One(size)) => Some(bytes / size),
        (Some(_), Sizes::Several) => {
            let allowed = "packets, or bytes where all packets have one size";
            return Err(place.refused("a queue in bytes", allowed));
        }
    };
    let Some(limit) = packets.iter().copied().chain(of_bytes).min() else { return Ok(0) };
    place.require(limit >= 2, format!("a queue of {limit} packets"), "2 packets or more")?;
    Ok(limit)
}

fn ratio(place: &Place, loss: Option<&LossSpec>) -> Result<f64, Refused> {
    match loss {
        None => Ok(0.0),
        Some(&LossSpec::Bernoulli { ratio, from_s: 0.0, until_s: None }) => Ok(ratio),
        Some(_) => {
            let allowed = "kind \"bernoulli\" without from_s and until_s";
            Err(place.refused("loss", allowed))
        }
    }
}

fn flow(plan: &ConnectionPlan, (index, seed, end): (u64, Seed, Time)) -> Result<String, Refused> {
    let ConnectionPlan {
        name,
        entry: _,
        controller: _,
        params: _,
        subflows,
        mptcp: _, // of several subflows
        start: _,
        start_spread: _,
        stop,
        traffic,
        sender,
    } = plan;
    let place = Place("flow", name);
    let [route] = &subflows[..] else {
        return Err(place.refused(format!("{} subflows", subflows.len()), "one"));
    };
    let (controller, settings) = governor(&place, plan)?;
    let traffic = application(&place, traffic)?;
    let own = transport(&place, sender)?;
    let arrival = arrivals(plan, index, seed, end).next();
    let (start, stream) = arrival.map_or((Time::NEVER, index), |found| (found.at, found.stream));
    let numbers = |links: &[u32]| links.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    Ok(format!(
        "flow\ncontroller {controller}\nsettings {settings}\nseed {}\nforward {}\nreverse {}\n\
         start_ns {}\nstop_ns {}\n{traffic}{own}",
        seed.derive("controller", stream << 8),
        numbers(&route.forward),
        numbers(&route.reverse),
        start.0,
        stop.0
    ))
}

/// The controller and its settings as the program takes them.
fn governor(place: &Place, plan: &ConnectionPlan) -> Result<(String, String), Refused> {
    let name = plan.controller.as_str();
    let mut settings = Vec::new();
    let controller = if let Some(own) = name.strip_prefix("ns3:") {
        let Some((_, id, attributes)) = NAMES.iter().find(|(known, ..)| *known == own) else {
            let known = NAMES.map(|(name, ..)| format!("ns3:{name}")).join(", ");
            return Err(place.refused(format!("controller {name:?}"), known));
        };
        settings.extend((!attributes.is_empty()).then(|| (*attributes).to_owned()));
        format!("ns3::{id}")
    } else {
        let Ok(governor) = builtin(plan) else {
            let allowed = "a controller of `ackademy list`, or ns3:NAME";
            return Err(place.refused(format!("controller {name:?}"), allowed));
        };
        let allowed = "one without a send hook: ns-3 does not ask before a packet leaves";
        place.require(
            !send_hook::has_send_hook(governor),
            format!("controller {name:?}"),
            allowed,
        )?;
        name.to_owned()
    };
    for (setting, value) in &plan.params {
        let text = match value {
            ParamValue::Number(number) => number.to_string(),
            ParamValue::Word(word) => word.clone(),
            ParamValue::File(content) => content.path.clone(),
        };
        let is_plain = !text.contains([',', '\n', '\r']);
        place.require(is_plain, format!("{setting} = {text:?}"), "a value without a comma")?;
        settings.push(format!("{setting}={text}"));
    }
    Ok((controller, settings.join(",")))
}

fn application(place: &Place, traffic: &TrafficSpec) -> Result<String, Refused> {
    let lines = |bytes: f64, varies: bool, pause_s: f64| {
        format!("transfer_bytes {bytes}\ntransfer_varies {}\npause_s {pause_s}\n", u8::from(varies))
    };
    match *traffic {
        TrafficSpec::Bulk {} => Ok(lines(0.0, false, -1.0)),
        TrafficSpec::Fixed { bytes } => Ok(lines(bytes as f64, false, -1.0)),
        TrafficSpec::OnOff { mean_bytes, mean_off_s } => Ok(lines(mean_bytes, true, mean_off_s)),
        TrafficSpec::RequestResponse { response_bytes, mean_think_s } => {
            Ok(lines(response_bytes as f64, false, mean_think_s))
        }
        TrafficSpec::AppLimited { .. }
        | TrafficSpec::Writes { .. }
        | TrafficSpec::Poisson { .. }
        | TrafficSpec::Cbr { .. } => Err(place
            .refused("traffic.kind", "\"bulk\", \"fixed\", \"on_off\" or \"request_response\"")),
    }
}

fn transport(place: &Place, sender: &SenderConfig) -> Result<String, Refused> {
    let SenderConfig {
        recovery,
        packet: Bytes(packet),
        header: Bytes(header),
        ack: Bytes(ack),
        ack_every,
        ack_delay,
        initial_cwnd: Bytes(initial_cwnd),
        initial_ssthresh: Bytes(initial_ssthresh),
        receiver_window_packets,
        rto_min,
        rto_max: _,
        rto_initial: _,
        rto_tick: _,
        rack: _,
        tlp: _,
        prr,
        rescue: _,
        ecn: _, // a queue that drops marks nothing
        pacing,
        idle_restart,
        send_hook,
        timestamps,
        deflation: _,
        impatient: _,
        handshake,
        quick_acks: _,
        opening_acks: _,
        fuzz_records,
        misbehaviour,
    } = sender;
    let headers = if *timestamps { HEADERS + TIMESTAMPS } else { HEADERS };
    let sizes = headers + PAYLOAD_MIN..=u64::from(u16::MAX);
    let is_honest = *misbehaviour == Misbehaviour::default();
    place.require(*recovery == Recovery::Sack, "sender.recovery", "\"sack\"")?;
    let what = format!("sender.packet_bytes = {packet}");
    place.require(sizes.contains(packet), what, format!("{} to {}", sizes.start(), sizes.end()))?;
    place.require(*header == headers, format!("sender.header_bytes = {header}"), headers)?;
    place.require(*ack == headers, format!("sender.ack_bytes = {ack}"), headers)?;
    let whole = "whole packets";
    place.require(initial_cwnd % packet == 0, "sender.initial_cwnd_packets", whole)?;
    place.require(!pacing, "sender.pacing", "false")?;
    place.require(!idle_restart, "sender.idle_restart", "false")?;
    place.require(*send_hook == SendHook::Packet, "sender.send_hook", "\"packet\"")?;
    place.require(*fuzz_records == 0.0, "sender.fuzz_records", "0")?;
    place.require(is_honest, "a receiver that misbehaves", "an honest one")?;
    // ns-3.37 reads beyond a list when the receiver's window is full during a recovery.
    let window = receiver_window_packets.saturating_mul(packet - header);
    place.require(window > WINDOW_MAX, "sender.receiver_window_packets", "none")?;
    let ssthresh = if *initial_ssthresh > WINDOW_MAX { 0 } else { *initial_ssthresh };
    let Span(ack_delay) = ack_delay;
    let mut out = String::new();
    let mut line = |key: &str, value: u64| writeln!(out, "{key} {value}").expect("a String grows");
    line("packet", *packet);
    line("header", *header);
    line("ack_every", u64::from(*ack_every));
    line("ack_delay_ns", *ack_delay);
    line("initial_cwnd", initial_cwnd / packet);
    line("initial_ssthresh", ssthresh);
    // Linux's rule, as here: the time-out is at least so much longer than the smoothed round trip.
    line("rto_margin_ns", rto_min.0);
    for (key, flag) in [("prr", prr), ("timestamps", timestamps), ("handshake", handshake)] {
        line(key, u64::from(*flag));
    }
    Ok(out)
}

/// As in `ns3/runner/plan.h`.
const PROTOCOL: u32 = 1;
/// Of IPv4 and TCP.
const HEADERS: u64 = 40;
/// The option of RFC 7323 and its padding.
const TIMESTAMPS: u64 = 12;
/// The smallest packet of a controller ([`FlowInfo`](crate::control::FlowInfo)).
const PAYLOAD_MIN: u64 = 64;
/// Largest window that ns-3's sockets announce, about.
const WINDOW_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    const PLAIN: &str =
        "duration_s = 9\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 10 }\n[[flow]]\n";

    fn of(text: &str) -> Result<String, String> {
        let scenario = Scenario::parse(text, "here").unwrap_or_else(|error| panic!("{error}"));
        lines(&scenario.network, Seed(1)).map_err(|error| error.to_string())
    }

    /// The plain scenario with other lines in place of some.
    fn with(changes: &[(&str, &str)]) -> Result<String, String> {
        let text = changes.iter().fold(PLAIN.to_owned(), |text, (old, new)| text.replace(old, new));
        of(&text)
    }

    #[test]
    fn a_queue_in_bytes_is_one_of_so_many_whole_packets() {
        let queue = "rate_mbps = 10, queue = { kind = \"drop_tail\", bytes = 31000 }";
        let found = with(&[("rate_mbps = 10", queue)]).unwrap();
        assert!(found.contains("rate_bps 10000000\ndelay_ns 10000000\npackets 20\n"), "{found}");
        let two = format!("{PLAIN}[[flow]]\nname = \"b\"\nsender = {{ packet_bytes = 1000 }}\n");
        let error = of(&two.replace("rate_mbps = 10", queue)).unwrap_err();
        assert!(error.starts_with("link \"bottleneck\": a queue in bytes: allowed"), "{error}");
    }

    #[test]
    fn a_flow_says_its_route_its_settings_and_its_packets() {
        let more =
            "[[flow]]\ncontroller = \"cubic\"\nparams = { beta = 0.8 }\nstart_s = 2\nstop_s = 3";
        let found = with(&[("[[flow]]", more)]).unwrap();
        for line in [
            "controller cubic\nsettings beta=0.8\n",
            "forward 0\nreverse 1\nstart_ns 2000000000\nstop_ns 3000000000\n",
            "packet 1500\nheader 52\nack_every 2\nack_delay_ns 40000000\ninitial_cwnd 10\n",
        ] {
            assert!(found.contains(line), "{line} in {found}");
        }
    }

    #[test]
    fn ns3s_own_controllers_are_named_by_their_type_and_attributes() {
        let own = |name: &str| with(&[("[[flow]]", &format!("[[flow]]\ncontroller = \"{name}\""))]);
        let found = own("ns3:westwood_plus").unwrap();
        assert!(
            found.contains("controller ns3::TcpWestwood\nsettings ProtocolType=WestwoodPlus\n")
        );
        let error = own("ns3:reno").unwrap_err();
        assert!(error.contains("controller \"ns3:reno\": allowed with ns-3 is ns3:bbr"), "{error}");
    }

    #[test]
    fn what_ns3_cannot_do_is_refused_by_name() {
        let bottleneck = |more: &str| ("rate_mbps = 10", format!("rate_mbps = 10, {more}"));
        let flow = |more: &str| ("[[flow]]", format!("[[flow]]\n{more}"));
        for ((old, new), start) in [
            (
                bottleneck("queue = { kind = \"codel\", packets = 9 }"),
                "link \"bottleneck\": queue.kind",
            ),
            (
                bottleneck("queue = { kind = \"drop_tail\", packets = 1 }"),
                "link \"bottleneck\": a queue of 1",
            ),
            (bottleneck("jitter_ms = 1"), "link \"bottleneck\": jitter_ms"),
            (bottleneck("outages = [[1, 2]]"), "link \"bottleneck\": outages"),
            (
                bottleneck("loss = { kind = \"bernoulli\", ratio = 0.1, from_s = 1 }"),
                "link \"bottleneck\": loss",
            ),
            (bottleneck("duplicate_ratio = 0.1"), "link \"bottleneck\": duplicate_ratio"),
            (
                flow("traffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 100 }"),
                "flow \"flow0\": traffic.kind",
            ),
            (flow("sender = { recovery = \"ns2\" }"), "flow \"flow0\": sender.recovery"),
            (flow("sender = { packet_bytes = 100 }"), "flow \"flow0\": sender.packet_bytes = 100"),
            (flow("sender = { header_bytes = 40 }"), "flow \"flow0\": sender.header_bytes = 40"),
            (
                flow("sender = { initial_cwnd_packets = 2.5 }"),
                "flow \"flow0\": sender.initial_cwnd_packets",
            ),
            (flow("sender = { pacing = true }"), "flow \"flow0\": sender.pacing"),
        ] {
            let error = with(&[(old, &new)]).expect_err(start);
            assert!(
                error.starts_with(start) && error.contains(": allowed with ns-3 is "),
                "{error}"
            );
        }
    }
}
