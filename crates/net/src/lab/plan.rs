//! From a scenario to hosts, addresses and connections, and what real TCP does otherwise.
use crate::error::Error;
use ackademy::control::Recovery;
use ackademy::rng::Seed;
use ackademy::sim::plan::{
    ConnectionPlan, LinkPlan, MptcpPlan, NetworkPlan, QueueSpec, RatePlan, Route, TrafficSpec,
};
use ackademy::sim::{self, Arrival};
use ackademy::transport::config::Ecn;
use ackademy::units::{Bytes, Rate, Span, Time};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Version of the internet protocol between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// 20 bytes of header.
    V4,
    /// 40 bytes of header.
    V6,
}

/// What carries the data between the hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Over {
    /// The kernel's TCP, and MPTCP.
    Tcp,
    /// noq's QUIC, in this program.
    Quic,
}

/// One connection, and the addresses that are its alone.
#[derive(Clone, Debug)]
pub struct Flow {
    /// What the scenario says of it.
    pub plan: ConnectionPlan,
    /// When it is opened.
    pub start: Time,
    /// Number of its random streams, as the simulator counts them.
    pub stream: u64,
    /// Index of its pair of hosts.
    pub pair: usize,
    /// Where its connection comes from: the address of the subflow that opens it.
    pub sender: IpAddr,
    /// Where its data goes.
    pub receiver: IpAddr,
    /// Its subflows, at least one; several are MPTCP's.
    pub subflows: Vec<Subflow>,
    /// Row of its first subflow in the records; the others follow.
    pub first_row: usize,
}

/// One path of a connection.
#[derive(Clone, Debug)]
pub struct Subflow {
    /// As records call it.
    pub name: String,
    /// The path.
    pub route: Route,
    /// Where its data comes from.
    pub sender: IpAddr,
    /// When it may open.
    pub start: Time,
    /// When it closes.
    pub stop: Time,
}

impl Flow {
    /// Row of the next flow's first subflow.
    fn next_row(&self) -> usize {
        self.first_row + self.subflows.len()
    }

    /// Whether it is of MPTCP.
    pub fn is_multipath(&self) -> bool {
        self.subflows.len() > 1
    }
}

/// A sending and a receiving host, shared by flows of one path and one set of kernel settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The paths.
    pub routes: Vec<Route>,
    /// Number of the connection that is alone there, since it is of MPTCP: a host's path manager serves all
    /// of its connections alike.
    pub only: Option<usize>,
    /// Largest packet.
    pub mtu: u32,
    /// Initial window, in packets.
    pub initial_cwnd: u64,
    /// Whether the receiver acknowledges each packet, not every second one.
    pub quick_acks: bool,
    /// Reaction to congestion marks.
    pub ecn: Ecn,
    /// RFC 5681 section 4.1.
    pub idle_restart: bool,
    /// Smallest retransmission time-out.
    pub rto_min: Span,
    /// Largest.
    pub rto_max: Span,
    /// Largest window that the receiver offers, if it is smaller than what a path needs.
    pub window: Option<Bytes>,
    /// Most memory of a socket's buffer.
    pub buffer: Bytes,
    /// Written ahead of what the kernel has sent: 50 ms of the fastest link.
    pub backlog: Bytes,
}

/// Everything that a run needs to know of its scenario.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Connections, in the simulator's order; at least one.
    pub flows: Vec<Flow>,
    /// Pairs of hosts.
    pub pairs: Vec<Pair>,
    /// What differs from the scenario, one line each.
    pub assumptions: Vec<String>,
    /// Headers of a data packet.
    pub header: Bytes,
    /// Version of the protocol.
    pub family: Family,
    /// What carries the data.
    pub over: Over,
}

impl Plan {
    /// The flows of `network` over TCP, as the simulator would draw them with `seed`.
    ///
    /// # Errors
    ///
    /// If the kernel, or this lab, cannot do what the scenario asks.
    pub fn new(network: &NetworkPlan, seed: Seed, family: Family) -> Result<Self, Error> {
        network.connections.iter().try_for_each(check)?;
        let mut plan = Self::over(Over::Tcp, network, seed, family)?;
        for connection in &network.connections {
            plan.note_differences(connection);
        }
        Ok(plan)
    }

    /// The same flows over what carries them.
    ///
    /// # Errors
    ///
    /// If there are none, or more than this lab can do.
    pub fn over(
        over: Over,
        network: &NetworkPlan,
        seed: Seed,
        family: Family,
    ) -> Result<Self, Error> {
        let mut plan = Self {
            flows: Vec::new(),
            pairs: Vec::new(),
            assumptions: Vec::new(),
            header: header(family),
            family,
            over,
        };
        for (index, connection) in network.connections.iter().enumerate() {
            let hosts = pair(network, connection, family);
            let arrivals = sim::arrivals(connection, index as u64, seed, network.duration);
            for Arrival { at: start, stream, name } in arrivals {
                let number = plan.flows.len();
                if number >= FLOWS_MAX {
                    return Err(Error::Input(format!(
                        "the scenario opens more than {FLOWS_MAX} connections with this seed: \
                         allowed on the kernel is {FLOWS_MAX}"
                    )));
                }
                let own = ConnectionPlan { name, ..connection.clone() };
                let only = (over == Over::Tcp && own.subflows.len() > 1).then_some(number);
                let pair = plan.pair(Pair { only, ..hosts.clone() });
                let first_row = plan.flows.last().map_or(0, Flow::next_row);
                let (_, receiver) = addresses(number as u16, family);
                let subflows = subflows(&own, start, number, family);
                let opening = subflows.iter().min_by_key(|subflow| subflow.start);
                let opening = opening.expect("a connection has a path");
                let (sender, start) = (opening.sender, opening.start);
                plan.flows.push(Flow {
                    plan: own,
                    start,
                    stream,
                    pair,
                    sender,
                    receiver,
                    subflows,
                    first_row,
                });
            }
        }
        if plan.flows.is_empty() {
            return Err(Error::Input(format!(
                "the scenario opens no connection in {} with seed {}: allowed on the kernel is one \
                 that opens any; more arrivals (per_s), more time (duration_s) or another seed help",
                network.duration, seed.0
            )));
        }
        if plan.pairs.len() > PAIRS_MAX {
            return Err(Error::Input(format!(
                "{} distinct paths (each flow of a dumbbell with access links, and each with several \
                 subflows, has its own): allowed on the kernel are {PAIRS_MAX}",
                plan.pairs.len()
            )));
        }
        Ok(plan)
    }

    /// The place of a pair of hosts, made if there is none like it.
    fn pair(&mut self, pair: Pair) -> usize {
        self.pairs.iter().position(|known| *known == pair).unwrap_or_else(|| {
            self.pairs.push(pair);
            self.pairs.len() - 1
        })
    }

    fn note(&mut self, line: String) {
        if !self.assumptions.contains(&line) {
            self.assumptions.push(line);
        }
    }

    /// What the kernel's MPTCP does otherwise than the scenario says.
    fn note_data_level(&mut self, plan: &MptcpPlan) {
        let scheduler = plan.scheduler.name;
        if scheduler != "min_rtt" {
            self.note(format!("the kernel's own scheduler runs (mptcp.scheduler = {scheduler:?})"));
        }
        if plan.opportunistic {
            self.note("the kernel never sends so (mptcp.opportunistic = true)".to_owned());
        }
        let default = BUFFER_DEFAULT;
        for (name, bytes) in
            [("receive_buffer_bytes", plan.receive_buffer), ("send_buffer_bytes", plan.send_buffer)]
        {
            if bytes != default {
                self.note(format!(
                    "the lab sizes the kernel's buffers (mptcp.{name} = {})",
                    bytes.0
                ));
            }
        }
    }

    /// What the kernel's TCP does otherwise than the scenario says.
    fn note_differences(&mut self, plan: &ConnectionPlan) {
        if matches!(plan.traffic, TrafficSpec::Cbr { .. }) {
            return;
        }
        let option = if plan.subflows.len() > 1 { MPTCP_OPTION } else { 0 };
        let (sender, header) = (&plan.sender, self.header.0 + option);
        if sender.recovery == Recovery::Ns2 {
            self.note(
                "recovery = \"ns2\" runs with the kernel's SACK, RACK-TLP and PRR".to_owned(),
            );
        } else if !(sender.rack && sender.tlp && sender.prr) {
            self.note("rack, tlp and prr are always on in the kernel".to_owned());
        }
        if sender.header.0 != header {
            let given = sender.header.0;
            self.note(format!("headers have {header} bytes (header_bytes = {given})"));
        }
        let min = smallest_mtu(self.family);
        if sender.packet.0 < min {
            let given = sender.packet.0;
            self.note(format!(
                "packets have {min} bytes, the smallest here (packet_bytes = {given})"
            ));
        }
        if let Some(mptcp) = &plan.mptcp {
            self.note_data_level(mptcp);
        }
        if sender.ack_every > 2 {
            let given = sender.ack_every;
            self.note(format!("the kernel acknowledges every second packet (ack_every = {given})"));
        }
        let own = plan.controller.starts_with(KERNEL);
        if own && sender.initial_ssthresh.0 / sender.packet.0 < NO_SSTHRESH_PACKETS {
            self.note(format!("{} has no initial ssthresh", plan.controller));
        }
    }
}

/// One line for what cannot be run at all.
fn check(plan: &ConnectionPlan) -> Result<(), Error> {
    let name = &plan.name;
    if plan.subflows.len() > SUBFLOWS_MAX {
        let count = plan.subflows.len();
        return Err(Error::Input(format!(
            "flow {name:?}: {count} subflows: allowed on the kernel are {SUBFLOWS_MAX}"
        )));
    }
    if plan.sender.fuzz_records > 0.0 {
        return Err(Error::Input(format!(
            "flow {name:?}: sender.fuzz_records = {}: allowed on the kernel is 0",
            plan.sender.fuzz_records
        )));
    }
    if let Some(cheat) = plan.sender.misbehaviour.names().next() {
        return Err(Error::Input(format!(
            "flow {name:?}: sender.{cheat}: the kernel's receiver is honest; allowed is nothing"
        )));
    }
    let controller = &plan.controller;
    if controller.contains(':') && !controller.starts_with(KERNEL) {
        return Err(Error::Input(format!(
            "flow {name:?}: controller = {controller:?}: allowed on the kernel is a controller of \
             `ackademy list` or kernel:NAME"
        )));
    }
    if controller.starts_with(KERNEL) && !plan.params.is_empty() {
        return Err(Error::Input(format!(
            "flow {name:?}: params: {controller} takes none; the kernel's modules have no settings \
             per connection"
        )));
    }
    Ok(())
}

fn pair(network: &NetworkPlan, plan: &ConnectionPlan, family: Family) -> Pair {
    let links = |route: &Route| -> Vec<&LinkPlan> {
        route.forward.iter().map(|&link| &network.links[link as usize]).collect()
    };
    let mut fastest_of_all = Rate(0);
    let mut path = 0_u64;
    for route in &plan.subflows {
        let back = route.reverse.iter().map(|&link| &network.links[link as usize]);
        let there = links(route);
        let delay: Span = there.iter().copied().chain(back).map(|link| link.delay.minimum()).sum();
        let fastest = there.iter().map(|link| fastest(link)).max().unwrap_or(Rate(0));
        let queues: u64 = there.iter().map(|link| queue_bytes(link, plan.sender.packet)).sum();
        fastest_of_all = Rate(fastest_of_all.0.saturating_add(fastest.0));
        path = path.saturating_add(fastest.bytes_in(delay).0.saturating_add(queues));
    }
    let fastest = fastest_of_all;
    let packet = match plan.traffic {
        TrafficSpec::Cbr { packet_bytes, .. } => u64::from(packet_bytes),
        _ => plan.sender.packet.0,
    };
    let payload = plan.sender.packet.0.saturating_sub(header(family).0).max(1);
    let window = plan.sender.receiver_window_packets.saturating_mul(payload);
    Pair {
        window: (window < BUFFER_MAX / 2).then_some(Bytes(window)),
        mtu: packet.max(smallest_mtu(family)) as u32,
        initial_cwnd: (plan.sender.initial_cwnd.0 / plan.sender.packet.0).max(1),
        quick_acks: plan.sender.ack_every == 1,
        ecn: plan.sender.ecn,
        idle_restart: plan.sender.idle_restart,
        rto_min: plan.sender.rto_min,
        rto_max: plan.sender.rto_max,
        // A byte in a buffer costs up to three of memory, and half of it may be used as window.
        buffer: Bytes(path.saturating_mul(8).clamp(BUFFER_MIN, BUFFER_MAX)),
        backlog: Bytes(fastest.bytes_in(Span::from_millis(50)).0.clamp(1 << 14, 1 << 22)),
        routes: plan.subflows.clone(),
        only: None,
    }
}

/// The fastest that a link ever is.
fn fastest(link: &LinkPlan) -> Rate {
    match &link.rate {
        RatePlan::Constant(rate) => *rate,
        RatePlan::Schedule(steps) => steps.values().max().unwrap_or(Rate(0)),
        RatePlan::Random { high, .. } => *high,
        // Traces are of access links; more than this is read ahead in vain, not wrongly.
        RatePlan::Trace(_) => Rate(200_000_000),
    }
}

/// What a link's queue can hold.
fn queue_bytes(link: &LinkPlan, packet: Bytes) -> u64 {
    let limited = match &link.queue {
        QueueSpec::DropTail { packets, bytes, .. } => {
            bytes.or(packets.map(|packets| packets.saturating_mul(packet.0)))
        }
        // The others are limited in packets, and keep far fewer than that.
        _ => Some(1000 * packet.0),
    };
    limited.unwrap_or(BUFFER_MAX)
}

/// The subflows of a connection that opens at `start`, each with an address of its own.
fn subflows(plan: &ConnectionPlan, start: Time, number: usize, family: Family) -> Vec<Subflow> {
    let several = plan.subflows.len() > 1;
    let times = plan.mptcp.as_ref().map_or(&[][..], |mptcp| &mptcp.times);
    let subflow = |(index, route): (usize, &Route)| {
        let (opens, stop) = times.get(index).copied().unwrap_or((Time(0), Time::NEVER));
        Subflow {
            name: if several { format!("{}.{index}", plan.name) } else { plan.name.clone() },
            route: route.clone(),
            sender: addresses((number + index * ADDRESSES_STEP) as u16, family).0,
            start: start.max(opens),
            stop,
        }
    };
    plan.subflows.iter().enumerate().map(subflow).collect()
}

/// The pair of addresses of flow `number`: RFC 2544's range for benchmarks, and a unique local one
/// (RFC 4193).
fn addresses(number: u16, family: Family) -> (IpAddr, IpAddr) {
    let [high, low] = (number + 1).to_be_bytes();
    match family {
        Family::V4 => {
            (Ipv4Addr::new(198, 18, high, low).into(), Ipv4Addr::new(198, 19, high, low).into())
        }
        Family::V6 => {
            let address = |end| Ipv6Addr::new(0xfdac, 0xade, 0, 0, 0, 0, end, number + 1);
            (address(1).into(), address(2).into())
        }
    }
}

/// Headers of a data packet: IP, TCP, and the timestamps option (RFC 7323).
fn header(family: Family) -> Bytes {
    Bytes(if family == Family::V4 { 20 + 20 + 12 } else { 40 + 20 + 12 })
}

/// RFC 791 asks every host for 576 bytes, RFC 8200 every link for 1280.
fn smallest_mtu(family: Family) -> u64 {
    if family == Family::V4 { 576 } else { 1280 }
}

/// Controllers `kernel:NAME` are the kernel's own modules.
pub const KERNEL: &str = "kernel:";

/// Bytes of the data sequence signal in every data packet of MPTCP (RFC 8684 section 3.3), with padding.
pub const MPTCP_OPTION: u64 = 28;

const FLOWS_MAX: usize = 1000;
const PAIRS_MAX: usize = 200;
/// As many as the kernel's path manager serves.
const SUBFLOWS_MAX: usize = 8;
/// From a flow's address to that of its next subflow.
const ADDRESSES_STEP: usize = 1024;
/// Of a scenario that says nothing of the data level's buffers.
const BUFFER_DEFAULT: Bytes = Bytes(64 << 20);
const BUFFER_MIN: u64 = 4 << 20;
const BUFFER_MAX: u64 = 64 << 20;
/// A threshold beyond it ends no slow start.
const NO_SSTHRESH_PACKETS: u64 = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::scenario::Scenario;
    use std::collections::BTreeSet;

    fn network(flows: &str) -> NetworkPlan {
        let text = format!(
            "duration_s = 9\n[dumbbell]\nrtt_ms = 20\nbottleneck = {{ rate_mbps = 8, queue = \
             {{ kind = \"drop_tail\", bytes = 20_000 }} }}\n{flows}"
        );
        Scenario::parse(&text, "test").expect("a scenario").network
    }

    fn plan(flows: &str) -> Result<Plan, Error> {
        Plan::new(&network(flows), Seed(3), Family::V4)
    }

    #[test]
    fn starts_names_and_number_of_flows_are_the_simulator_s() {
        let network = network(
            "[[flow]]\ncount = 5\nstart_spread_s = 2\n\
             [[flow]]\nname = \"web\"\nstart_s = 1\nstart_spread_s = 1\n\
             traffic = { kind = \"poisson\", per_s = 20, mean_bytes = 1000 }\n",
        );
        let planned = Plan::new(&network, Seed(3), Family::V6).expect("a plan").flows;
        let simulated = ackademy::sim::run(&network, Seed(3)).expect("it runs").flows;
        let planned = planned.iter().map(|flow| (&flow.plan.name, flow.start.as_secs_f64()));
        assert!(planned.eq(simulated.iter().map(|row| (&row.flow, row.start_s))));
        assert!(simulated.len() > 100);
    }

    #[test]
    fn every_flow_has_addresses_of_its_own() {
        for family in [Family::V4, Family::V6] {
            let pairs = (0..FLOWS_MAX as u16).map(|number| addresses(number, family));
            let all: BTreeSet<IpAddr> = pairs.flat_map(|(from, to)| [from, to]).collect();
            assert_eq!(all.len(), 2 * FLOWS_MAX);
        }
    }

    #[test]
    fn flows_share_hosts_if_path_and_settings_are_the_same() {
        let flows =
            "[[flow]]\ncount = 3\n[[flow]]\nname = \"ecn\"\nsender = { ecn = \"classic\" }\n";
        let plan = plan(flows).expect("a plan");
        let pairs: Vec<usize> = plan.flows.iter().map(|flow| flow.pair).collect();
        assert_eq!(pairs, [0, 0, 0, 1]);
    }

    #[test]
    fn buffers_hold_the_path_eight_times_within_bounds() {
        let sized = |rate_mbps: u64, queue: &str| {
            let text = format!(
                "duration_s = 9\n[dumbbell]\nrtt_ms = 100\n\
                 [dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\n{queue}\n[[flow]]\n"
            );
            let network = Scenario::parse(&text, "test").expect("a scenario").network;
            Plan::new(&network, Seed(1), Family::V4).expect("a plan").pairs[0].buffer.0
        };
        let queue = "queue = { kind = \"drop_tail\", bytes = 1_000_000 }";
        assert_eq!(sized(1, queue), 8 * (12_500 + 1_000_000));
        assert_eq!(sized(1, "queue = { kind = \"drop_tail\", packets = 2 }"), BUFFER_MIN);
        assert_eq!(sized(1, ""), BUFFER_MAX, "a queue without a limit");
    }

    #[test]
    fn what_the_kernel_does_otherwise_is_said_once() {
        let flows = "[sender]\nrecovery = \"ns2\"\n[[flow]]\ncount = 2\n";
        let said = plan(flows).expect("a plan").assumptions;
        assert_eq!(said.len(), 2, "{said:?}");
        assert!(!said.iter().any(|note| note.contains("ack_every")), "an ACK per packet holds");
        assert_eq!(plan("[[flow]]\n").expect("a plan").assumptions, Vec::<String>::new());
    }

    #[test]
    fn a_scenario_without_an_arrival_is_one_line() {
        let rare = "[[flow]]\ntraffic = { kind = \"poisson\", per_s = 1e-6, mean_bytes = 1 }\n";
        let error = plan(rare).expect_err("nothing arrives").to_string();
        assert!(error.contains("no connection") && !error.contains('\n'), "{error}");
    }

    #[test]
    fn more_flows_than_fit_are_one_line() {
        let error = plan("[[flow]]\ncount = 1001\n").expect_err("too many").to_string();
        assert!(error.contains("1000") && !error.contains('\n'), "{error}");
        let forever = "[[flow]]\ntraffic = { kind = \"poisson\", per_s = 9e3, mean_bytes = 1 }\n";
        assert!(plan(forever).is_err());
    }
}
