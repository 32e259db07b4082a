//! What a scenario means: links and connections with every default filled in and every value
//! checked.
use super::check::{Fault, integer, number};
use super::spec::{
    DelayRandomSpec, DumbbellSpec, EcnSpec, FlowSpec, LinkSpec, LossSpec, ParamSpec, QueueSpec,
    RateRandomSpec, RecoverySpec, ReorderSpec, ScenarioSpec, SenderSpec, TrafficSpec,
};
use super::{FLOWS_MAX, ParamValue};
use crate::control::Recovery;
use crate::params::Params;
use crate::sim::trace::Trace;
use crate::units::{Bytes, Rate, Span, Time};
use crate::{controllers, coupled};
use std::sync::Arc;

const LINKS_MAX: usize = 250_000;
const SECONDS_MAX: f64 = 1e8;
const MILLIS_MAX: f64 = 1e7;
const MBPS_MAX: f64 = 1e6;

/// Links, and the connections over them.
#[derive(Clone, Debug)]
pub struct Network {
    /// End of the run.
    pub duration: Time,
    /// Distance of samples; zero for none.
    pub sample_interval: Span,
    /// Every link, one direction each.
    pub links: Vec<LinkPlan>,
    /// Every connection that a scenario names; a Poisson source stands for many.
    pub connections: Vec<ConnectionPlan>,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkPlan {
    /// Unique.
    pub name: String,
    /// Whether time series are kept for it.
    pub sampled: bool,
    /// How fast it serves.
    pub rate: RatePlan,
    /// When it serves nothing.
    pub outages: Vec<(Time, Time)>,
    /// Propagation.
    pub delay: DelayPlan,
    /// Standard deviation of a constant delay.
    pub jitter: Span,
    /// Whether packets may not overtake each other.
    pub keep_order: bool,
    /// Discipline; `bdp` is resolved to `bytes`.
    pub queue: QueueSpec,
    /// Random loss.
    pub loss: Option<LossSpec>,
    /// Part of packets delivered twice.
    pub duplicate_ratio: f64,
    /// Part of packets held back.
    pub reorder: Option<ReorderSpec>,
}

/// How fast a link serves.
#[derive(Clone, Debug)]
pub enum RatePlan {
    /// Always the same.
    Constant(Rate),
    /// Piecewise constant.
    Schedule(Vec<(Time, Rate)>),
    /// Uniform redraw.
    Random {
        /// Smallest.
        low: Rate,
        /// Largest.
        high: Rate,
        /// Distance of draws.
        every: Span,
    },
    /// Recorded delivery opportunities.
    Trace(Arc<Trace>),
}

/// Propagation of a link.
#[derive(Clone, Debug)]
pub enum DelayPlan {
    /// Always the same.
    Constant(Span),
    /// Piecewise constant.
    Schedule(Vec<(Time, Span)>),
    /// Uniform redraw.
    Random {
        /// Smallest.
        low: Span,
        /// Largest.
        high: Span,
        /// Distance of draws.
        every: Span,
    },
}

impl DelayPlan {
    /// The smallest value it takes.
    pub fn least(&self) -> Span {
        match self {
            Self::Constant(span) => *span,
            Self::Schedule(steps) => steps.iter().map(|step| step.1).min().unwrap_or_default(),
            Self::Random { low, .. } => *low,
        }
    }
}

/// One connection.
#[derive(Clone, Debug)]
pub struct ConnectionPlan {
    /// Unique.
    pub name: String,
    /// Name in the controller table, or of a controller that the caller supplies.
    pub controller: String,
    /// Its settings, as given.
    pub params: Vec<(String, ParamValue)>,
    /// The route of each subflow.
    pub subflows: Vec<Route>,
    /// Earliest start.
    pub start: Time,
    /// Later by a uniform draw from [0, this].
    pub start_spread: Span,
    /// No new data from here on.
    pub stop: Time,
    /// What it sends.
    pub traffic: TrafficSpec,
    /// How it sends.
    pub sender: SenderConfig,
}

/// Indices of links, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Route {
    /// Data direction.
    pub forward: Vec<u32>,
    /// Acknowledgements.
    pub reverse: Vec<u32>,
}

/// Sender and receiver with every default filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // each is one documented switch of the scenario format
pub struct SenderConfig {
    /// How losses are found and repaired.
    pub recovery: Recovery,
    /// Full packet on the wire.
    pub packet: Bytes,
    /// Headers within it.
    pub header: Bytes,
    /// Acknowledgement on the wire.
    pub ack: Bytes,
    /// Full packets per acknowledgement.
    pub ack_every: u32,
    /// Longest delay of an acknowledgement.
    pub ack_delay: Span,
    /// Initial window.
    pub initial_cwnd: Bytes,
    /// Initial slow-start threshold.
    pub initial_ssthresh: Bytes,
    /// Receiver window, in packets.
    pub receiver_window_packets: u64,
    /// Bounds of the retransmission time-out.
    pub rto_min: Span,
    /// Largest.
    pub rto_max: Span,
    /// Before the first sample.
    pub rto_initial: Span,
    /// Clock granularity.
    pub rto_tick: Span,
    /// RFC 8985 loss detection.
    pub rack: bool,
    /// RFC 8985 tail loss probes.
    pub tlp: bool,
    /// RFC 6937.
    pub prr: bool,
    /// Reaction to marks.
    pub ecn: EcnSpec,
    /// Pace a window-based controller.
    pub pacing: bool,
    /// RFC 5681 section 4.1.
    pub idle_restart: bool,
    /// ns-2: a sample from every ACK.
    pub timestamps: bool,
    /// ns-2: `partial_window_deflation_`.
    pub deflation: bool,
    /// ns-2: `newreno_changes1_`.
    pub impatient: bool,
    /// ns-2: the first segment is a SYN.
    pub handshake: bool,
}

type TraceGetter<'a> = dyn FnMut(&str) -> Result<Arc<Trace>, String> + 'a;

/// Checks and resolves a scenario.
pub(super) fn resolve(spec: &ScenarioSpec, get: &mut TraceGetter) -> Result<Network, Fault> {
    number("duration_s", spec.duration_s, 1e-6..=SECONDS_MAX)?;
    number("sample_interval_ms", spec.sample_interval_ms, 0.0..=MILLIS_MAX)?;
    let sample_interval = millis(spec.sample_interval_ms);
    let duration = Time::from_secs_f64(spec.duration_s);
    if sample_interval > Span::ZERO && duration.0 / sample_interval.0 > 10_000_000 {
        let least = spec.duration_s / 1e4;
        return Err(Fault::new(
            "sample_interval_ms",
            spec.sample_interval_ms,
            format!("0 or at least {least}, which gives 10^7 samples"),
        ));
    }
    let mut builder = Builder { links: Vec::new(), topology: Topology::Free };
    builder.topology(spec, get)?;
    let mut connections = Vec::new();
    let total: u64 = spec.flow.iter().map(|flow| u64::from(flow.count)).sum();
    if total == 0 || total > FLOWS_MAX {
        let path = if spec.flow.is_empty() { "flow" } else { "flow[0].count" };
        let allowed = format!("1 to {FLOWS_MAX} flows in all");
        return Err(Fault::new(path, format!("{total} flows"), allowed));
    }
    for (index, flow) in spec.flow.iter().enumerate() {
        let path = format!("flow[{index}]");
        flow_plans(&path, flow, &spec.sender, &mut builder, &mut connections)?;
    }
    if let Some(name) = duplicate(connections.iter().map(|plan| plan.name.as_str())) {
        return Err(Fault::new("flow", name, "a name of its own for every flow"));
    }
    Ok(Network { duration, sample_interval, links: builder.links, connections })
}

enum Topology {
    Free,
    Dumbbell { access: Option<(Rate, Span)> },
    ParkingLot { hops: u32 },
    TwoPath,
}

struct Builder {
    links: Vec<LinkPlan>,
    topology: Topology,
}

impl Builder {
    fn topology(&mut self, spec: &ScenarioSpec, get: &mut TraceGetter) -> Result<(), Fault> {
        let presets = usize::from(spec.dumbbell.is_some())
            + usize::from(spec.parking_lot.is_some())
            + usize::from(spec.two_path.is_some());
        if presets + usize::from(!spec.link.is_empty()) != 1 {
            let allowed = "exactly one of [dumbbell], [parking_lot], [two_path], [[link]]";
            return Err(Fault::new("topology", format!("{presets} presets"), allowed));
        }
        if let Some(dumbbell) = &spec.dumbbell {
            return self.dumbbell(dumbbell, get);
        }
        if let Some(lot) = &spec.parking_lot {
            integer("parking_lot.hops", u64::from(lot.hops), 1..=100)?;
            for hop in 0..lot.hops {
                let path = "parking_lot.bottleneck";
                let link = link_plan(path, &lot.bottleneck, &format!("hop{hop}"), None, get)?;
                let back = lot.reverse_delay_ms.map_or(link.delay.least(), millis);
                let reverse = reverse_of(&link, &format!("hop{hop}_reverse"), back);
                self.links.extend([link, reverse]);
            }
            self.topology = Topology::ParkingLot { hops: lot.hops };
        } else if let Some(two) = &spec.two_path {
            for (index, (field, link)) in
                [("first", &two.first), ("second", &two.second)].into_iter().enumerate()
            {
                let path = format!("two_path.{field}");
                let link = link_plan(&path, link, &format!("path{index}"), None, get)?;
                let least = link.delay.least();
                let reverse = reverse_of(&link, &format!("path{index}_reverse"), least);
                self.links.extend([link, reverse]);
            }
            self.topology = Topology::TwoPath;
        } else {
            for (index, link) in spec.link.iter().enumerate() {
                let path = format!("link[{index}]");
                let plan = link_plan(&path, link, &format!("link{index}"), None, get)?;
                self.links.push(plan);
            }
        }
        if let Some(name) = duplicate(self.links.iter().map(|link| link.name.as_str())) {
            return Err(Fault::new("link", name, "a name of its own for every link"));
        }
        Ok(())
    }

    fn dumbbell(&mut self, spec: &DumbbellSpec, get: &mut TraceGetter) -> Result<(), Fault> {
        let path = "dumbbell.bottleneck";
        let mut link = link_plan(path, &spec.bottleneck, "bottleneck", spec.rtt_ms, get)?;
        number("dumbbell.reverse_delay_ms", spec.reverse_delay_ms, 0.0..=MILLIS_MAX)?;
        let mut back = millis(spec.reverse_delay_ms);
        if let Some(rtt_ms) = spec.rtt_ms {
            number("dumbbell.rtt_ms", rtt_ms, 0.0..=MILLIS_MAX)?;
            if spec.bottleneck.delay_ms != 0.0 || spec.reverse_delay_ms != 0.0 {
                let allowed = "no delay_ms and reverse_delay_ms beside it";
                return Err(Fault::new("dumbbell.rtt_ms", rtt_ms, allowed));
            }
            back = Span(millis(rtt_ms).0 / 2);
            if matches!(link.delay, DelayPlan::Constant(_)) {
                link.delay = DelayPlan::Constant(millis(rtt_ms) - back);
            }
        }
        let reverse = reverse_of(&link, "reverse", back);
        self.links.extend([link, reverse]);
        let access = match spec.access_mbps {
            None => None,
            Some(mbps) => {
                number("dumbbell.access_mbps", mbps, 1e-6..=MBPS_MAX)?;
                number("dumbbell.access_delay_ms", spec.access_delay_ms, 0.0..=MILLIS_MAX)?;
                Some((Rate::from_mbps(mbps), millis(spec.access_delay_ms)))
            }
        };
        self.topology = Topology::Dumbbell { access };
        Ok(())
    }

    /// The routes of a flow's subflows; makes its access links.
    fn routes(&mut self, path: &str, flow: &FlowSpec, name: &str) -> Result<Vec<Route>, Fault> {
        let free = matches!(self.topology, Topology::Free);
        if free != flow.path.is_some() || (!free && flow.reverse.is_some()) {
            let allowed = "links with [[link]], none with a preset";
            return Err(Fault::new(&format!("{path}.path"), format!("{:?}", flow.path), allowed));
        }
        let fault = |value: String, allowed: &str| {
            Err(Fault::new(&format!("{path}.route"), value, allowed))
        };
        let given = flow.route.as_deref();
        match self.topology {
            Topology::Free => {
                let forward = self.named(&format!("{path}.path"), flow.path.as_deref())?;
                let reverse = self.named(&format!("{path}.reverse"), flow.reverse.as_deref())?;
                Ok(vec![Route { forward, reverse }])
            }
            Topology::Dumbbell { access } => {
                if given.is_some() || flow.multipath {
                    return fault(format!("{given:?}"), "none with [dumbbell]");
                }
                Ok(vec![self.dumbbell_route(name, access)])
            }
            Topology::ParkingLot { hops } => {
                let (first, last) = match given {
                    None => (0, hops - 1),
                    Some(&[first, last]) if first <= last && last < hops => (first, last),
                    Some(other) => {
                        let allowed = format!("[first, last] with last < {hops}");
                        return fault(format!("{other:?}"), &allowed);
                    }
                };
                let forward = (first..=last).map(|hop| 2 * hop).collect();
                let reverse = (first..=last).rev().map(|hop| 2 * hop + 1).collect();
                Ok(vec![Route { forward, reverse }])
            }
            Topology::TwoPath => {
                let one =
                    |index: u32| Route { forward: vec![2 * index], reverse: vec![2 * index + 1] };
                match given {
                    _ if flow.multipath => Ok(vec![one(0), one(1)]),
                    None => Ok(vec![one(0)]),
                    Some(&[index]) if index < 2 => Ok(vec![one(index)]),
                    Some(other) => fault(format!("{other:?}"), "[0] or [1]"),
                }
            }
        }
    }

    fn dumbbell_route(&mut self, name: &str, access: Option<(Rate, Span)>) -> Route {
        let Some((rate, delay)) = access else {
            return Route { forward: vec![0], reverse: vec![1] };
        };
        let first = self.links.len() as u32;
        for end in ["out", "in", "ack_out", "ack_in"] {
            let mut link = plain(format!("{name}_{end}"), RatePlan::Constant(rate), delay);
            link.sampled = false;
            self.links.push(link);
        }
        Route { forward: vec![first, 0, first + 1], reverse: vec![first + 2, 1, first + 3] }
    }

    fn named(&self, path: &str, names: Option<&[String]>) -> Result<Vec<u32>, Fault> {
        let find = |(index, name): (usize, &String)| {
            let found = self.links.iter().position(|link| link.name == *name);
            found.map(|link| link as u32).ok_or_else(|| {
                let known: Vec<&str> =
                    self.links.iter().take(20).map(|link| link.name.as_str()).collect();
                Fault::new(&format!("{path}[{index}]"), format!("{name:?}"), known.join(", "))
            })
        };
        let links: Vec<u32> =
            names.unwrap_or_default().iter().enumerate().map(find).collect::<Result<_, _>>()?;
        if links.len() > 200 {
            return Err(Fault::new(path, format!("{} links", links.len()), "at most 200 links"));
        }
        Ok(links)
    }
}

fn flow_plans(
    path: &str,
    flow: &FlowSpec,
    common: &SenderSpec,
    builder: &mut Builder,
    plans: &mut Vec<ConnectionPlan>,
) -> Result<(), Fault> {
    number(&format!("{path}.start_s"), flow.start_s, 0.0..=SECONDS_MAX)?;
    number(&format!("{path}.start_spread_s"), flow.start_spread_s, 0.0..=SECONDS_MAX)?;
    number(&format!("{path}.start_step_s"), flow.start_step_s, 0.0..=SECONDS_MAX)?;
    if let Some(stop_s) = flow.stop_s {
        number(&format!("{path}.stop_s"), stop_s, flow.start_s..=SECONDS_MAX)?;
    }
    traffic(&format!("{path}.traffic"), &flow.traffic)?;
    let sender = sender_config(&format!("{path}.sender"), &flow.sender, common)?;
    let params = params(path, flow)?;
    for copy in 0..flow.count {
        let base = flow.name.clone().unwrap_or_else(|| format!("flow{}", path_index(path)));
        let name = if flow.count == 1 { base } else { format!("{base}_{copy}") };
        let subflows = builder.routes(path, flow, &name)?;
        if builder.links.len() > LINKS_MAX {
            let allowed = format!("at most {LINKS_MAX} links with the access links");
            return Err(Fault::new(path, format!("{} links", builder.links.len()), allowed));
        }
        plans.push(ConnectionPlan {
            name,
            controller: flow.controller.clone(),
            params: params.clone(),
            subflows,
            start: Time::from_secs_f64(flow.start_s + f64::from(copy) * flow.start_step_s),
            start_spread: Span::from_secs_f64(flow.start_spread_s),
            stop: flow.stop_s.map_or(Time::NEVER, Time::from_secs_f64),
            traffic: flow.traffic.clone(),
            sender,
        });
    }
    Ok(())
}

fn path_index(path: &str) -> &str {
    path.trim_start_matches("flow[").trim_end_matches(']')
}

/// The settings of a flow's controller, checked against the controller's own list if it is ours;
/// one that the caller supplies (`file.py:Class`) checks its own.
fn params(path: &str, flow: &FlowSpec) -> Result<Vec<(String, ParamValue)>, Fault> {
    let given: Vec<(String, ParamValue)> = flow
        .params
        .iter()
        .map(|(name, value)| {
            let value = match value {
                ParamSpec::Integer(integer) => ParamValue::Number(*integer as f64),
                ParamSpec::Number(number) => ParamValue::Number(*number),
                ParamSpec::Switch(on) => ParamValue::Number(f64::from(u8::from(*on))),
                ParamSpec::Word(word) => ParamValue::Word(word.clone()),
            };
            (name.clone(), value)
        })
        .collect();
    let list = match (controllers::find(&flow.controller), coupled::find(&flow.controller)) {
        (Some(spec), _) => spec.params,
        (None, Some(spec)) => spec.params,
        (None, None) if flow.controller.contains(':') => return Ok(given),
        (None, None) => {
            let field = format!("{path}.controller");
            let allowed = format!("{}, or file.py:Class", controllers::names());
            return Err(Fault::new(&field, format!("{:?}", flow.controller), allowed));
        }
    };
    Params::resolve(list, &given).map_err(|error| {
        Fault::new(&format!("{path}.params.{}", error.name), error.value, error.allowed)
    })?;
    Ok(given)
}

fn traffic(path: &str, traffic: &TrafficSpec) -> Result<(), Fault> {
    let field = |name: &str| format!("{path}.{name}");
    match *traffic {
        TrafficSpec::Bulk {} => {}
        TrafficSpec::OnOff { mean_bytes, mean_off_s } => {
            number(&field("mean_bytes"), mean_bytes, 1.0..=1e15)?;
            number(&field("mean_off_s"), mean_off_s, 0.0..=SECONDS_MAX)?;
        }
        TrafficSpec::Fixed { bytes } => {
            integer(&field("bytes"), bytes, 1..=1_000_000_000_000_000)?;
        }
        TrafficSpec::AppLimited { rate_mbps, write_bytes } => {
            number(&field("rate_mbps"), rate_mbps, 1e-6..=MBPS_MAX)?;
            integer(&field("write_bytes"), u64::from(write_bytes), 1..=1_000_000_000)?;
        }
        TrafficSpec::Poisson { per_s, mean_bytes } => {
            number(&field("per_s"), per_s, 1e-6..=1e6)?;
            number(&field("mean_bytes"), mean_bytes, 1.0..=1e15)?;
        }
        TrafficSpec::RequestResponse { response_bytes, mean_think_s } => {
            integer(&field("response_bytes"), response_bytes, 1..=1_000_000_000_000_000)?;
            number(&field("mean_think_s"), mean_think_s, 0.0..=SECONDS_MAX)?;
        }
        TrafficSpec::Cbr { rate_mbps, packet_bytes } => {
            number(&field("rate_mbps"), rate_mbps, 1e-6..=MBPS_MAX)?;
            integer(&field("packet_bytes"), u64::from(packet_bytes), 1..=65_535)?;
        }
    }
    Ok(())
}

fn sender_config(path: &str, own: &SenderSpec, common: &SenderSpec) -> Result<SenderConfig, Fault> {
    let recovery = own.recovery.or(common.recovery).unwrap_or(RecoverySpec::Sack);
    let ns2 = recovery == RecoverySpec::Ns2;
    macro_rules! pick {
        ($field:ident, $sack:expr, $ns2:expr) => {
            own.$field.or(common.$field).unwrap_or(if ns2 { $ns2 } else { $sack })
        };
    }
    let field = |name: &str| format!("{path}.{name}");
    let packet = u64::from(pick!(packet_bytes, 1500, 1260));
    integer(&field("packet_bytes"), packet, 1..=65_535)?;
    let header = u64::from(pick!(header_bytes, 52, 50));
    integer(&field("header_bytes"), header, 0..=packet - 1)?;
    let ack = u64::from(pick!(ack_bytes, 52, 40));
    integer(&field("ack_bytes"), ack, 1..=65_535)?;
    let ack_every = pick!(ack_every, 2, 1);
    integer(&field("ack_every"), u64::from(ack_every), 1..=1000)?;
    let packets = |name: &str, value: f64| {
        number(&field(name), value, 1.0..=1e9).map(|value| Bytes((value * packet as f64) as u64))
    };
    let span = |name: &str, value: f64| number(&field(name), value, 0.0..=MILLIS_MAX).map(millis);
    let receiver_window_packets = pick!(receiver_window_packets, u64::MAX >> 1, 100_000);
    integer(&field("receiver_window_packets"), receiver_window_packets, 1..=u64::MAX >> 1)?;
    let ssthresh = own.initial_ssthresh_packets.or(common.initial_ssthresh_packets);
    Ok(SenderConfig {
        recovery: if ns2 { Recovery::Ns2 } else { Recovery::Sack },
        packet: Bytes(packet),
        header: Bytes(header),
        ack: Bytes(ack),
        ack_every,
        ack_delay: span("ack_delay_ms", pick!(ack_delay_ms, 40.0, 100.0))?,
        initial_cwnd: packets("initial_cwnd_packets", pick!(initial_cwnd_packets, 10.0, 2.0))?,
        initial_ssthresh: match ssthresh.or(ns2.then_some(100_000.0)) {
            Some(value) => packets("initial_ssthresh_packets", value)?,
            None => Bytes(u64::MAX),
        },
        receiver_window_packets,
        rto_min: span("rto_min_ms", pick!(rto_min_ms, 200.0, 200.0))?,
        rto_max: span("rto_max_ms", pick!(rto_max_ms, 60_000.0, 60_000.0))?,
        rto_initial: span("rto_initial_ms", pick!(rto_initial_ms, 1000.0, 3000.0))?,
        rto_tick: span("rto_tick_ms", pick!(rto_tick_ms, 1.0, 0.1))?.max(Span(1)),
        rack: pick!(rack, true, false),
        tlp: pick!(tlp, true, false),
        prr: pick!(prr, true, false),
        ecn: pick!(ecn, EcnSpec::Off, EcnSpec::Off),
        pacing: pick!(pacing, false, false),
        idle_restart: pick!(idle_restart, false, false),
        timestamps: pick!(timestamps, true, true),
        deflation: pick!(deflation, true, true),
        impatient: pick!(impatient, true, true),
        handshake: pick!(handshake, false, true),
    })
}

fn link_plan(
    path: &str,
    spec: &LinkSpec,
    default_name: &str,
    rtt_ms: Option<f64>,
    get: &mut TraceGetter,
) -> Result<LinkPlan, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    for (name, value) in [("delay_ms", spec.delay_ms), ("jitter_ms", spec.jitter_ms)] {
        number(&field(name), value, 0.0..=MILLIS_MAX)?;
    }
    let varies = spec.delay_schedule.is_some() || spec.delay_random.is_some();
    if spec.jitter_ms > 0.0 && varies {
        let allowed = "0 with delay_schedule or delay_random";
        return Err(Fault::new(&field("jitter_ms"), spec.jitter_ms, allowed));
    }
    number(&field("duplicate_ratio"), spec.duplicate_ratio, 0.0..=1.0)?;
    if let Some(reorder) = &spec.reorder {
        number(&field("reorder.ratio"), reorder.ratio, 0.0..=1.0)?;
        number(&field("reorder.low_ms"), reorder.low_ms, 0.0..=MILLIS_MAX)?;
        number(&field("reorder.high_ms"), reorder.high_ms, reorder.low_ms..=MILLIS_MAX)?;
    }
    let mut outages: Vec<(Time, Time)> = Vec::new();
    for (index, &(from, to)) in spec.outages.iter().enumerate() {
        let here = field(&format!("outages[{index}]"));
        let earliest = outages.last().map_or(0.0, |last| last.1.as_secs_f64());
        number(&here, from, earliest..=SECONDS_MAX)?;
        number(&here, to, from..=SECONDS_MAX)?;
        outages.push((Time::from_secs_f64(from), Time::from_secs_f64(to)));
    }
    if let Some(loss) = &spec.loss {
        check_loss(&field("loss"), loss)?;
    }
    let rtt = rtt_ms.unwrap_or(2.0 * spec.delay_ms);
    Ok(LinkPlan {
        name: spec.name.clone().unwrap_or_else(|| default_name.to_owned()),
        sampled: true,
        rate: rate_plan(path, spec, get)?,
        outages,
        delay: delay_plan(path, spec)?,
        jitter: millis(spec.jitter_ms),
        keep_order: spec.keep_order,
        queue: queue_plan(&field("queue"), &spec.queue, spec.rate_mbps, rtt)?,
        loss: spec.loss.clone(),
        duplicate_ratio: spec.duplicate_ratio,
        reorder: spec.reorder.clone(),
    })
}

fn rate_plan(path: &str, spec: &LinkSpec, get: &mut TraceGetter) -> Result<RatePlan, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    let count = usize::from(spec.rate_mbps.is_some())
        + usize::from(spec.rate_schedule.is_some())
        + usize::from(spec.rate_random.is_some())
        + usize::from(spec.trace.is_some());
    if count != 1 {
        let allowed = "exactly one of rate_mbps, rate_schedule, rate_random, trace";
        return Err(Fault::new(path, format!("{count} rates"), allowed));
    }
    if let Some(mbps) = spec.rate_mbps {
        number(&field("rate_mbps"), mbps, 1e-6..=MBPS_MAX)?;
        return Ok(RatePlan::Constant(Rate::from_mbps(mbps)));
    }
    if let Some(steps) = &spec.rate_schedule {
        let here = field("rate_schedule");
        let steps = schedule(&here, steps, MBPS_MAX)?;
        if steps.iter().all(|step| step.1 <= 0.0) {
            return Err(Fault::new(&here, "only zeros", "at least one rate above 0"));
        }
        return Ok(RatePlan::Schedule(
            steps.into_iter().map(|(at, mbps)| (at, Rate::from_mbps(mbps))).collect(),
        ));
    }
    if let Some(RateRandomSpec { low_mbps, high_mbps, hz }) = spec.rate_random {
        number(&field("rate_random.low_mbps"), low_mbps, 1e-2..=MBPS_MAX)?;
        number(&field("rate_random.high_mbps"), high_mbps, low_mbps..=MBPS_MAX)?;
        number(&field("rate_random.hz"), hz, 1e-6..=1e3)?;
        let every = Span::from_secs_f64(1.0 / hz);
        let (low, high) = (Rate::from_mbps(low_mbps), Rate::from_mbps(high_mbps));
        return Ok(RatePlan::Random { low, high, every });
    }
    let name = spec.trace.as_deref().expect("one of four rates is given");
    let trace = get(name).map_err(|message| {
        Fault::new(&field("trace"), format!("{name:?}"), format!("a mahimahi trace ({message})"))
    })?;
    Ok(RatePlan::Trace(trace))
}

fn delay_plan(path: &str, spec: &LinkSpec) -> Result<DelayPlan, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    match (&spec.delay_schedule, &spec.delay_random) {
        (None, None) => Ok(DelayPlan::Constant(millis(spec.delay_ms))),
        (Some(steps), None) => {
            let steps = schedule(&field("delay_schedule"), steps, MILLIS_MAX)?;
            Ok(DelayPlan::Schedule(steps.into_iter().map(|(at, ms)| (at, millis(ms))).collect()))
        }
        (None, Some(DelayRandomSpec { low_ms, high_ms, hz })) => {
            number(&field("delay_random.low_ms"), *low_ms, 0.0..=MILLIS_MAX)?;
            number(&field("delay_random.high_ms"), *high_ms, *low_ms..=MILLIS_MAX)?;
            number(&field("delay_random.hz"), *hz, 1e-6..=1e3)?;
            let every = Span::from_secs_f64(1.0 / hz);
            Ok(DelayPlan::Random { low: millis(*low_ms), high: millis(*high_ms), every })
        }
        (Some(_), Some(_)) => {
            let allowed = "delay_schedule or delay_random, not both";
            Err(Fault::new(&field("delay_random"), "given", allowed))
        }
    }
}

fn schedule(path: &str, steps: &[(f64, f64)], high: f64) -> Result<Vec<(Time, f64)>, Fault> {
    let mut checked: Vec<(Time, f64)> = Vec::with_capacity(steps.len());
    for (index, &(at_s, value)) in steps.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let at = Time::from_secs_f64(number(&here, at_s, 0.0..=SECONDS_MAX)?);
        number(&here, value, 0.0..=high)?;
        let follows = checked.last().is_none_or(|last| last.0 < at);
        if !follows || (index == 0 && at > Time(0)) {
            return Err(Fault::new(&here, at_s, "seconds from 0, each larger than the one before"));
        }
        checked.push((at, value));
    }
    if checked.is_empty() {
        return Err(Fault::new(path, "[]", "at least one pair"));
    }
    Ok(checked)
}

fn check_loss(path: &str, loss: &LossSpec) -> Result<(), Fault> {
    let check = |name: &str, value: f64| number(&format!("{path}.{name}"), value, 0.0..=1.0);
    let from_s = match *loss {
        LossSpec::Bernoulli { ratio, from_s } => {
            check("ratio", ratio)?;
            from_s
        }
        LossSpec::GilbertElliott { good_to_bad, bad_to_good, good_loss, bad_loss, from_s } => {
            check("good_to_bad", good_to_bad)?;
            check("bad_to_good", bad_to_good)?;
            check("good_loss", good_loss)?;
            check("bad_loss", bad_loss)?;
            from_s
        }
    };
    number(&format!("{path}.from_s"), from_s, 0.0..=SECONDS_MAX)?;
    Ok(())
}

fn queue_plan(
    path: &str,
    queue: &QueueSpec,
    rate_mbps: Option<f64>,
    rtt_ms: f64,
) -> Result<QueueSpec, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    let at_least_one = |name: &str, value: u64| integer(&field(name), value, 1..=u64::MAX >> 1);
    match queue {
        QueueSpec::DropTail { packets, bytes, bdp } => {
            if let Some(packets) = packets {
                at_least_one("packets", *packets)?;
            }
            if let Some(bytes) = bytes {
                at_least_one("bytes", *bytes)?;
            }
            let mut limit = *bytes;
            if let Some(bdp) = bdp {
                number(&field("bdp"), *bdp, 1e-6..=1e6)?;
                let Some(mbps) = rate_mbps else {
                    return Err(Fault::new(&field("bdp"), bdp, "absent without rate_mbps"));
                };
                let bytes = Rate::from_mbps(mbps).bytes_in(millis(rtt_ms)).0 as f64 * bdp;
                limit = Some(limit.unwrap_or(u64::MAX).min(at_least_one("bdp", bytes as u64)?));
            }
            return Ok(QueueSpec::DropTail { packets: *packets, bytes: limit, bdp: None });
        }
        QueueSpec::Red { min_packets, max_packets, max_ratio, weight, packets, .. } => {
            integer(&field("min_packets"), *min_packets, 0..=1_000_000_000)?;
            integer(&field("max_packets"), *max_packets, *min_packets + 1..=1_000_000_001)?;
            number(&field("max_ratio"), *max_ratio, 1e-9..=1.0)?;
            number(&field("weight"), *weight, 1e-9..=1.0)?;
            at_least_one("packets", *packets)?;
        }
        QueueSpec::Codel { target_ms, interval_ms, packets, .. }
        | QueueSpec::FqCodel { target_ms, interval_ms, packets, .. } => {
            number(&field("target_ms"), *target_ms, 1e-3..=MILLIS_MAX)?;
            number(&field("interval_ms"), *interval_ms, 1e-3..=MILLIS_MAX)?;
            at_least_one("packets", *packets)?;
        }
        QueueSpec::Pie { target_ms, update_ms, packets, .. } => {
            number(&field("target_ms"), *target_ms, 1e-3..=MILLIS_MAX)?;
            number(&field("update_ms"), *update_ms, 1e-3..=MILLIS_MAX)?;
            at_least_one("packets", *packets)?;
        }
    }
    if let QueueSpec::FqCodel { queues, quantum_bytes, .. } = queue {
        integer(&field("queues"), u64::from(*queues), 1..=65_536)?;
        integer(&field("quantum_bytes"), u64::from(*quantum_bytes), 1..=1_000_000)?;
    }
    Ok(queue.clone())
}

/// A link without queue limit, loss or any other property.
fn plain(name: String, rate: RatePlan, delay: Span) -> LinkPlan {
    LinkPlan {
        name,
        sampled: true,
        rate,
        outages: Vec::new(),
        delay: DelayPlan::Constant(delay),
        jitter: Span::ZERO,
        keep_order: true,
        queue: QueueSpec::default(),
        loss: None,
        duplicate_ratio: 0.0,
        reorder: None,
    }
}

/// The reverse direction of a preset's link: as fast, unlimited queue; where the rate varies, as
/// fast as the format allows, so that ACKs never queue.
fn reverse_of(link: &LinkPlan, name: &str, delay: Span) -> LinkPlan {
    let rate = match link.rate {
        RatePlan::Constant(rate) => rate,
        _ => Rate::from_mbps(MBPS_MAX),
    };
    let mut reverse = plain(name.to_owned(), RatePlan::Constant(rate), delay);
    reverse.sampled = false;
    reverse
}

fn duplicate<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut sorted: Vec<&str> = names.collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
}

fn millis(ms: f64) -> Span {
    Span::from_secs_f64(ms / 1e3)
}
