//! From the file's flows to planned connections: routes, traffic, controller, sender.
use super::check::{MBPS_MAX, MILLIS_MAX, SECONDS_MAX, integer, millis, number};
use super::files::Files;
use super::links::{Builder, Topology, plain};
use super::mptcp::{mptcp_plan, subflows};
use super::spec::{FlowSpec, ParamSpec, Place, RecoverySpec, SenderSpec, SubflowSpec};
use crate::control::Recovery;
use crate::coupled;
use crate::params::{self, ParamError, ParamValue, Params};
use crate::sim::plan::{ConnectionPlan, RatePlan, Route, TrafficSpec};
use crate::toml_error::Fault;
use crate::transport::config::{Ecn, SendHook, SenderConfig};
use crate::transport::misbehaviour::Misbehaviour;
use crate::units::{Bytes, Rate, Span, Time};

const LINKS_MAX: usize = 250_000;
/// Largest initial window, packets: all of them leave at once.
const AT_ONCE_MAX: f64 = 1e6;

impl Builder {
    /// What is said of a place fits the topology.
    pub(super) fn check_place(&self, path: &str, place: Place) -> Result<(), Fault> {
        let (links, route, topology) = match self.topology {
            Topology::Free => (true, false, "[[link]]"),
            Topology::Dumbbell { .. } => (false, false, "[dumbbell]"),
            Topology::ParkingLot { .. } => (false, true, "[parking_lot]"),
            Topology::TwoPath => (false, true, "[two_path]"),
        };
        let given = [
            ("path", links, place.path.is_some()),
            ("reverse", links, place.reverse.is_some()),
            ("route", route, place.route.is_some()),
        ];
        if let Some((field, ..)) = given.iter().find(|(_, may, given)| *given && !may) {
            let allowed = format!("nothing here with {topology}");
            return Err(Fault::new(&format!("{path}.{field}"), "given", allowed));
        }
        if links && place.path.is_none_or(<[String]>::is_empty) {
            let value = if place.path.is_some() { "[]" } else { "absent" };
            return Err(Fault::new(&format!("{path}.path"), value, "names of one link or more"));
        }
        Ok(())
    }

    /// The routes of a flow's subflows; makes its access links.
    fn routes(&mut self, path: &str, flow: &FlowSpec, name: &str) -> Result<Vec<Route>, Fault> {
        let listed = subflows(flow);
        if !listed.is_empty() {
            let one = |(index, subflow): (usize, &SubflowSpec)| {
                let here = format!("{path}.mptcp.subflow[{index}]");
                let place = Place { backward: flow.backward, ..subflow.place() };
                self.route(&here, place, &format!("{name}.{index}"))
            };
            return listed.iter().enumerate().map(one).collect();
        }
        if flow.multipath {
            let one = |index| {
                let (route, backward) = ([index], flow.backward);
                let place = Place { route: Some(&route), backward, ..Place::default() };
                self.route(path, place, name)
            };
            return [0, 1].into_iter().map(one).collect();
        }
        Ok(vec![self.route(path, Place::of(flow), name)?])
    }

    /// The route to a place; makes its access links, called after `name`.
    fn route(&mut self, path: &str, place: Place, name: &str) -> Result<Route, Fault> {
        let route = self.there_and_back(path, place, name)?;
        if !place.backward {
            return Ok(route);
        }
        Ok(Route { forward: route.reverse, reverse: route.forward })
    }

    /// The route of data from left to right.
    fn there_and_back(&mut self, path: &str, place: Place, name: &str) -> Result<Route, Fault> {
        let fault = |value: &[u32], allowed: &str| {
            Err(Fault::new(&format!("{path}.route"), format!("{value:?}"), allowed))
        };
        match self.topology {
            Topology::Free => {
                let forward = self.named(&format!("{path}.path"), place.path)?;
                let reverse = self.named(&format!("{path}.reverse"), place.reverse)?;
                Ok(Route { forward, reverse })
            }
            Topology::Dumbbell { access } => Ok(self.dumbbell_route(name, access)),
            Topology::ParkingLot { hops } => {
                let (first, last) = match place.route {
                    None => (0, hops - 1),
                    Some(&[first, last]) if first <= last && last < hops => (first, last),
                    Some(other) => {
                        return fault(other, &format!("[first, last] with last < {hops}"));
                    }
                };
                let forward = (first..=last).map(|hop| 2 * hop).collect();
                let reverse = (first..=last).rev().map(|hop| 2 * hop + 1).collect();
                Ok(Route { forward, reverse })
            }
            Topology::TwoPath => match place.route {
                Some(&[index]) if index < 2 => {
                    Ok(Route { forward: vec![2 * index], reverse: vec![2 * index + 1] })
                }
                None => Ok(Route { forward: vec![0], reverse: vec![1] }),
                Some(other) => fault(other, "[0] or [1]"),
            },
        }
    }

    fn has_access_links(&self) -> bool {
        matches!(self.topology, Topology::Dumbbell { access: Some(_) })
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
                let more = if self.links.len() > 20 { ", ..." } else { "" };
                let allowed = format!("{}{more}", known.join(", "));
                Fault::new(&format!("{path}[{index}]"), format!("{name:?}"), allowed)
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

impl Builder {
    /// The connections that the `[[flow]]` of this index stands for.
    pub(super) fn flow_plans(
        &mut self,
        index: usize,
        flow: &FlowSpec,
        common: &SenderSpec,
        files: &mut Files,
    ) -> Result<Vec<ConnectionPlan>, Fault> {
        let path = format!("flow[{index}]");
        check_times(&path, flow)?;
        traffic(&format!("{path}.traffic"), &flow.traffic)?;
        let sender = sender_config(&format!("{path}.sender"), &flow.sender, common)?;
        let params = params(&path, flow, files)?;
        check_coupled(&path, flow)?;
        self.check_subflows(&path, flow)?;
        let mptcp = mptcp_plan(&path, flow, &sender)?;
        if let Some(name) = sender.misbehaviour.names().next().filter(|_| mptcp.is_some()) {
            let allowed = "nothing with several subflows";
            return Err(misbehaves(&format!("{path}.sender"), name, allowed));
        }
        let subflows = mptcp.as_ref().map_or(1, |plan| plan.times.len());
        check_paths(&path, &flow.controller, &params, subflows)?;
        let base = flow.name.clone().unwrap_or_else(|| format!("flow{index}"));
        let mut shared = None;
        let mut plans = Vec::new();
        for copy in 0..flow.count {
            let name = if flow.count == 1 { base.clone() } else { format!("{base}_{copy}") };
            let subflows = match &shared {
                Some(routes) => Vec::clone(routes),
                None => self.routes(&path, flow, &name)?,
            };
            if !self.has_access_links() {
                shared = Some(subflows.clone());
            }
            if self.links.len() > LINKS_MAX {
                let allowed = format!("so few that all have at most {LINKS_MAX} links together");
                return Err(Fault::new(&format!("{path}.count"), flow.count, allowed));
            }
            plans.push(ConnectionPlan {
                name,
                entry: index,
                controller: flow.controller.clone(),
                params: params.clone(),
                subflows,
                mptcp: mptcp.clone(),
                start: Time::from_secs_f64(flow.start_s + copy as f64 * flow.start_step_s),
                start_spread: Span::from_secs_f64(flow.start_spread_s),
                stop: flow.stop_s.map_or(Time::NEVER, Time::from_secs_f64),
                traffic: flow.traffic.clone(),
                sender,
            });
        }
        Ok(plans)
    }
}

fn check_times(path: &str, flow: &FlowSpec) -> Result<(), Fault> {
    number(&format!("{path}.start_s"), flow.start_s, 0.0..=SECONDS_MAX)?;
    number(&format!("{path}.start_spread_s"), flow.start_spread_s, 0.0..=SECONDS_MAX)?;
    number(&format!("{path}.start_step_s"), flow.start_step_s, 0.0..=SECONDS_MAX)?;
    if let Some(stop_s) = flow.stop_s {
        number(&format!("{path}.stop_s"), stop_s, flow.start_s..=SECONDS_MAX)?;
    }
    Ok(())
}

/// The settings of a flow's controller as the file gives them, files read.
fn params(
    path: &str,
    flow: &FlowSpec,
    files: &mut Files,
) -> Result<Vec<(String, ParamValue)>, Fault> {
    let value = |(name, value): (&String, &ParamSpec)| (name.clone(), value.into());
    let given: Vec<_> = flow.params.iter().map(value).collect();
    let list = coupled::settings(&flow.controller).unwrap_or_default();
    let opened = params::open_with(list, &given, |name, reader| files.content(name, reader));
    let opened = opened.map_err(|error| at(path, error))?;
    check_controller(path, &flow.controller, &opened)?;
    Ok(opened)
}

/// That the controller of a flow is known and its settings are in range. One that the caller
/// supplies (`file.py:Class`) checks its own.
pub(super) fn check_controller(
    path: &str,
    controller: &str,
    given: &[(String, ParamValue)],
) -> Result<(), Fault> {
    match coupled::settings(controller) {
        Some(list) => Params::resolve(list, given).map(drop).map_err(|error| at(path, error)),
        None if controller.contains(':') => Ok(()),
        None => {
            let field = format!("{path}.controller");
            let allowed = format!("{}, or file.py:Class", coupled::all_names());
            Err(Fault::new(&field, format!("{controller:?}"), allowed))
        }
    }
}

/// That a controller that takes only some number of subflows, such as a policy, gets a connection with as
/// many, or one of plain TCP. The settings are checked.
pub(super) fn check_paths(
    path: &str,
    controller: &str,
    params: &[(String, ParamValue)],
    subflows: usize,
) -> Result<(), Fault> {
    let Some(spec) = coupled::find(controller).filter(|_| subflows > 1) else { return Ok(()) };
    let params = Params::resolve(spec.params, params).map_err(|error| at(path, error))?;
    match (spec.build)(&params).paths() {
        Some(paths) if paths != subflows => {
            let value = format!("{controller:?} for connections of {paths} subflows");
            let allowed = format!("a policy for {subflows}, as many as this flow has");
            Err(Fault::new(&format!("{path}.controller"), value, allowed))
        }
        _ => Ok(()),
    }
}

/// That a coupled controller has subflows to govern: datagrams have none.
fn check_coupled(path: &str, flow: &FlowSpec) -> Result<(), Fault> {
    let is_datagrams = matches!(flow.traffic, TrafficSpec::Cbr { .. });
    if is_datagrams && coupled::find(&flow.controller).is_some() {
        let value = format!("{:?}", flow.controller);
        let allowed = "a plain controller beside traffic cbr, which has no subflows";
        return Err(Fault::new(&format!("{path}.controller"), value, allowed));
    }
    Ok(())
}

fn at(path: &str, error: ParamError) -> Fault {
    Fault::new(&format!("{path}.params.{}", error.name), error.value, error.allowed)
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
        TrafficSpec::Writes { count, write_bytes, interval_ms, send_buffer_bytes } => {
            integer(&field("count"), count, 1..=1_000_000_000)?;
            integer(&field("write_bytes"), u64::from(write_bytes), 1..=1_000_000_000)?;
            number(&field("interval_ms"), interval_ms, 1e-6..=MILLIS_MAX)?;
            let min = u64::from(write_bytes);
            integer(&field("send_buffer_bytes"), send_buffer_bytes, min..=1 << 40)?;
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

/// What a flow's `sender` table says, and the scenario's `[sender]` where it says nothing.
struct Given<'a> {
    path: &'a str,
    own: &'a SenderSpec,
    common: &'a SenderSpec,
    ns2: bool,
}

/// The value that is given, or the default of the modern sender or of ns-2's.
macro_rules! pick {
    ($given:ident, $field:ident, $sack:expr, $ns2:expr) => {
        $given.own.$field.or($given.common.$field).unwrap_or(if $given.ns2 { $ns2 } else { $sack })
    };
}

/// Where a field is: a value from the scenario's `[sender]` is that table's fault.
macro_rules! field {
    ($given:ident, $field:ident) => {
        if $given.own.$field.is_none() && $given.common.$field.is_some() {
            concat!("sender.", stringify!($field)).to_owned()
        } else {
            format!("{}.{}", $given.path, stringify!($field))
        }
    };
}

/// The whole numbers of a sender, within their ranges.
struct Counts {
    packet: u64,
    header: u64,
    ack: u64,
    ack_every: u32,
    receiver_window_packets: u64,
    quick_acks: u32,
    opening_acks: u32,
}

impl Counts {
    fn of(given: &Given) -> Result<Self, Fault> {
        let packet = u64::from(pick!(given, packet_bytes, 1500, 1260));
        integer(&field!(given, packet_bytes), packet, 1..=65_535)?;
        let header = u64::from(pick!(given, header_bytes, 52, 50));
        integer(&field!(given, header_bytes), header, 0..=packet - 1)?;
        let ack = u64::from(pick!(given, ack_bytes, 52, 40));
        integer(&field!(given, ack_bytes), ack, 1..=65_535)?;
        let ack_every = pick!(given, ack_every, 2, 1);
        integer(&field!(given, ack_every), u64::from(ack_every), 1..=1000)?;
        let receiver_window_packets = pick!(given, receiver_window_packets, u64::MAX >> 1, 100_000);
        let max = u64::MAX >> 1;
        integer(&field!(given, receiver_window_packets), receiver_window_packets, 1..=max)?;
        let quick_acks = pick!(given, quick_acks, 0, 0);
        integer(&field!(given, quick_acks), u64::from(quick_acks), 0..=1000)?;
        let opening_acks = pick!(given, opening_acks, 0, 0);
        integer(&field!(given, opening_acks), u64::from(opening_acks), 0..=100_000)?;
        Ok(Self {
            packet,
            header,
            ack,
            ack_every,
            receiver_window_packets,
            quick_acks,
            opening_acks,
        })
    }
}

fn sender_config(path: &str, own: &SenderSpec, common: &SenderSpec) -> Result<SenderConfig, Fault> {
    let recovery = own.recovery.or(common.recovery).unwrap_or(RecoverySpec::Sack);
    let ns2 = recovery == RecoverySpec::Ns2;
    let given = &Given { path, own, common, ns2 };
    let counts = Counts::of(given)?;
    let packets = |path: &str, value: f64, max: f64| {
        number(path, value, 1.0..=max).map(|value| Bytes((value * counts.packet as f64) as u64))
    };
    let span = |path: &str, min: f64, value: f64| number(path, value, min..=MILLIS_MAX).map(millis);
    let rto_min_ms = pick!(given, rto_min_ms, 200.0, 200.0);
    let ssthresh = own.initial_ssthresh_packets.or(common.initial_ssthresh_packets);
    Ok(SenderConfig {
        recovery: if ns2 { Recovery::Ns2 } else { Recovery::Sack },
        packet: Bytes(counts.packet),
        header: Bytes(counts.header),
        ack: Bytes(counts.ack),
        ack_every: counts.ack_every,
        ack_delay: span(
            &field!(given, ack_delay_ms),
            0.0,
            pick!(given, ack_delay_ms, 40.0, 100.0),
        )?,
        initial_cwnd: packets(
            &field!(given, initial_cwnd_packets),
            pick!(given, initial_cwnd_packets, 10.0, 2.0),
            AT_ONCE_MAX,
        )?,
        initial_ssthresh: match ssthresh.or(ns2.then_some(100_000.0)) {
            Some(value) => packets(&field!(given, initial_ssthresh_packets), value, 1e9)?,
            None => Bytes(u64::MAX),
        },
        receiver_window_packets: counts.receiver_window_packets,
        rto_min: span(&field!(given, rto_min_ms), 0.0, rto_min_ms)?,
        rto_max: span(
            &field!(given, rto_max_ms),
            rto_min_ms.max(1.0),
            pick!(given, rto_max_ms, 60_000.0, 60_000.0),
        )?,
        rto_initial: span(
            &field!(given, rto_initial_ms),
            1e-3,
            pick!(given, rto_initial_ms, 1000.0, 3000.0),
        )?,
        rto_tick: span(&field!(given, rto_tick_ms), 1e-6, pick!(given, rto_tick_ms, 1.0, 0.1))?,
        rack: pick!(given, rack, true, false),
        tlp: pick!(given, tlp, true, false),
        prr: pick!(given, prr, true, false),
        rescue: pick!(given, rescue, false, false),
        ecn: pick!(given, ecn, Ecn::Off, Ecn::Off),
        pacing: pick!(given, pacing, false, false),
        idle_restart: pick!(given, idle_restart, false, false),
        send_hook: pick!(given, send_hook, SendHook::Packet, SendHook::Packet),
        timestamps: pick!(given, timestamps, true, true),
        deflation: pick!(given, deflation, true, true),
        impatient: pick!(given, impatient, true, true),
        handshake: pick!(given, handshake, false, true),
        quick_acks: counts.quick_acks,
        opening_acks: counts.opening_acks,
        fuzz_records: number(
            &field!(given, fuzz_records),
            pick!(given, fuzz_records, 0.0, 0.0),
            0.0..=1.0,
        )?,
        misbehaviour: misbehaviour(given)?,
    })
}

/// What the receiver does that it should not. ns-2's sender knows neither marks nor parts of a packet.
fn misbehaviour(given: &Given) -> Result<Misbehaviour, Fault> {
    let divide_acks = pick!(given, divide_acks, 1, 1);
    integer(&field!(given, divide_acks), u64::from(divide_acks), 1..=1000)?;
    let optimistic_acks = pick!(given, optimistic_acks, 0, 0);
    integer(&field!(given, optimistic_acks), u64::from(optimistic_acks), 0..=1_000_000)?;
    let found = Misbehaviour {
        hide_marks: pick!(given, hide_marks, false, false),
        hide_losses: pick!(given, hide_losses, false, false),
        divide_acks,
        optimistic_acks,
    };
    match found.names().next() {
        Some(name) if given.ns2 => {
            Err(misbehaves(given.path, name, "nothing with recovery = \"ns2\""))
        }
        _ => Ok(found),
    }
}

fn misbehaves(path: &str, name: &str, allowed: &str) -> Fault {
    Fault::new(&format!("{path}.{name}"), "given", allowed)
}
