//! The emulator's network against the simulator's: equal packets at equal times, equal fate.
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim::plan::Route;
use ackademy::sim::plan::{NetworkPlan, TrafficSpec};
use ackademy::sim::record::{LinkRow, Outcome};
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_net::link::fabric::{Fabric, Flow, FlowCounts, Totals};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

const SEED: Seed = Seed(7);

/// A scenario whose traces, if any, have an opportunity each 1, 2 and 5 ms.
fn network(text: &str) -> NetworkPlan {
    let mut trace = |_: &str, _| Ok(b"1\n3\n8\n".to_vec());
    let scenario = Scenario::parse_with(text, "test", &[], &mut trace);
    scenario.unwrap_or_else(|error| panic!("{error}\n{text}")).network
}

fn address(side: u8, flow: usize) -> IpAddr {
    IpAddr::V4(Ipv4Addr::new(10, side, (flow >> 8) as u8, flow as u8))
}

/// A UDP datagram of `size` bytes without a checksum, from one address to another.
fn datagram(from: IpAddr, to: IpAddr, size: usize, tos: u8) -> Vec<u8> {
    let (IpAddr::V4(from), IpAddr::V4(to)) = (from, to) else { panic!("IPv4 only") };
    let mut bytes = vec![0; size];
    (bytes[0], bytes[1], bytes[8], bytes[9]) = (0x45, tos, 64, 17);
    bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    bytes[12..16].copy_from_slice(&from.octets());
    bytes[16..20].copy_from_slice(&to.octets());
    bytes
}

/// What the constant-rate sources of a network send: time, flow, bytes; in order of time.
fn schedule(network: &NetworkPlan) -> Vec<(Time, usize, usize)> {
    let mut sent = Vec::new();
    for (flow, plan) in network.connections.iter().enumerate() {
        let TrafficSpec::Cbr { rate_mbps, packet_bytes } = plan.traffic else {
            panic!("constant-rate sources only")
        };
        let every = Rate::from_mbps(rate_mbps).time_for(Bytes(u64::from(packet_bytes)));
        let mut at = plan.start;
        while at <= network.duration && at < plan.stop {
            sent.push((at, flow, packet_bytes as usize));
            at += every;
        }
    }
    sent.sort_by_key(|&(at, ..)| at);
    sent
}

/// The same packets at the same times through a fabric, which is asked for them as late as
/// `late` says.
fn emulate(network: &NetworkPlan, late: &mut dyn FnMut() -> Span) -> Totals {
    let mut fabric = Fabric::new(&network.links, SEED, network.sample_interval);
    for (index, plan) in network.connections.iter().enumerate() {
        let hosts = [(0, address(1, index)), (1, address(2, index))];
        fabric.add_flow(&Flow { hosts, route: plan.subflows[0].clone() }).expect("its own pair");
    }
    for (at, flow, size) in schedule(network) {
        while let Some(due) = fabric.next_due().filter(|&due| due < at) {
            let now = (due + late()).min(at);
            while let Some(delivery) = fabric.pop_due(now) {
                assert!(delivery.due <= now && delivery.port == 1);
            }
        }
        fabric.inject(at, 0, &datagram(address(1, flow), address(2, flow), size, 0));
    }
    let losses = fabric.losses();
    let totals = fabric.finish(network.duration);
    for (losses, flow) in losses.iter().zip(&totals.flows) {
        assert_eq!(losses.packets(), flow.queue_drops + flow.random_losses, "as who watches sees");
    }
    totals
}

/// Compares everything that both count.
fn same(text: &str) -> Totals {
    let network = network(text);
    let Outcome { flows, links, link_series, .. } =
        ackademy::sim::run(&network, SEED).expect("built-in controllers");
    let totals = emulate(&network, &mut || Span::ZERO);
    assert_eq!(rows(&totals.links), rows(&links), "{text}");
    assert_eq!(totals.link_series, link_series, "{text}");
    assert_eq!(totals.flows.len(), flows.len());
    for (own, row) in totals.flows.iter().zip(&flows) {
        assert_eq!(own.sent_packets, row.sent_packets, "{text}");
        assert_eq!(own.sent_bytes, row.sent_bytes, "{text}");
        assert_eq!(own.queue_drops, row.queue_drops, "{text}");
        assert_eq!(own.random_losses, row.random_losses, "{text}");
        assert_eq!(own.received_packets, row.received_packets, "{text}");
        let mean = own.owd_sum as f64 / own.received_packets as f64 / 1e6;
        assert_eq!(mean.to_bits(), row.owd_mean_ms.to_bits(), "{text}");
    }
    assert_eq!(emulate(&network, &mut || Span::ZERO).flows, totals.flows, "equal seeds");
    totals
}

/// Rows without NaN, which is not equal to itself, and without what the ends alone know.
fn rows(rows: &[LinkRow]) -> Vec<LinkRow> {
    let row = |row: &LinkRow| LinkRow {
        wait_mean_ms: if row.wait_mean_ms.is_nan() { -1.0 } else { row.wait_mean_ms },
        goodput_bytes: 0,
        ..row.clone()
    };
    rows.iter().map(row).collect()
}

/// Two sources that overload a bottleneck of about 10 Mb/s together, for 20 s.
fn overloaded(link: &str) -> String {
    format!(
        "duration_s = 20\nsample_interval_ms = 7\n[dumbbell]\nrtt_ms = 30\n\
         [dumbbell.bottleneck]\n{link}\n\
         [[flow]]\nname = \"one\"\n\
         traffic = {{ kind = \"cbr\", rate_mbps = 7.1, packet_bytes = 1500 }}\n\
         [[flow]]\nname = \"two\"\nstart_s = 3\nstop_s = 18\n\
         traffic = {{ kind = \"cbr\", rate_mbps = 5.3, packet_bytes = 311 }}\n"
    )
}

#[test]
fn every_queue_discipline_decides_as_in_the_simulator() {
    for queue in [
        "{ kind = \"drop_tail\" }",
        "{ kind = \"drop_tail\", packets = 40 }",
        "{ kind = \"drop_tail\", bytes = 40000 }",
        "{ kind = \"drop_tail\", bdp = 1.5 }",
        "{ kind = \"red\", min_packets = 5, max_packets = 15, packets = 60 }",
        "{ kind = \"codel\", packets = 1000 }",
        "{ kind = \"codel\", packets = 30, ecn = true }",
        "{ kind = \"fq_codel\", packets = 1000 }",
        "{ kind = \"fq_codel\", packets = 40, queues = 4 }",
        "{ kind = \"pie\", packets = 1000 }",
        "{ kind = \"dualpi2\", packets = 1000 }",
    ] {
        let totals = same(&overloaded(&format!("rate_mbps = 10\nqueue = {queue}")));
        let dropped = totals.links[0].queue_drops > 100;
        assert_eq!(dropped, queue != "{ kind = \"drop_tail\" }", "{queue}: {totals:?}");
    }
}

#[test]
fn every_loss_delay_and_rate_decides_as_in_the_simulator() {
    let queue = "queue = { kind = \"drop_tail\", packets = 40 }";
    for link in [
        "rate_mbps = 10\nloss = { kind = \"bernoulli\", ratio = 0.02 }",
        "rate_mbps = 10\nloss = { kind = \"gilbert_elliott\", good_to_bad = 0.01, bad_to_good = 0.3 }",
        "rate_mbps = 10\nduplicate_ratio = 0.1",
        "rate_mbps = 10\npolicer = { rate_mbps = 4, burst_bytes = 20000 }",
        "rate_mbps = 10\naggregation = { low_ms = 2, high_ms = 9 }",
        "rate_mbps = 10\nretransmit = { ratio = 0.2, delay_ms = 3 }",
        "rate_mbps = 10\nforge_ce = 0.1",
        "handover = { every_s = 1, low_mbps = 5, high_mbps = 20, low_ms = 5, high_ms = 30, outage_ms = 50 }",
        "rate_mbps = 10\nreorder = { ratio = 0.1, low_ms = 1, high_ms = 20 }",
        "rate_mbps = 10\noutages = [[4, 5], [9, 9.5]]",
        "rate_schedule = [[0, 10], [5, 2], [10, 0], [11, 20]]",
        "rate_random = { low_mbps = 2, high_mbps = 20, hz = 10 }",
        "trace = \"some\"",
    ] {
        same(&overloaded(&format!("{link}\n{queue}")));
    }
    for link in [
        "delay_ms = 20\njitter_ms = 3",
        "delay_ms = 20\njitter_ms = 3\nkeep_order = false",
        "delay_schedule = [[0, 40], [5, 5], [10, 80]]",
        "delay_random = { low_ms = 1, high_ms = 90, hz = 5 }",
    ] {
        let dumbbell = overloaded(&format!("rate_mbps = 10\n{link}\n{queue}"));
        same(&dumbbell.replace("rtt_ms = 30\n", ""));
    }
}

#[test]
fn paths_over_several_links_are_those_of_the_simulator() {
    let flow = |(rate, bytes, route): (f64, u32, &str)| {
        format!(
            "[[flow]]\nname = \"over {route}\"\nroute = {route}\n\
             traffic = {{ kind = \"cbr\", rate_mbps = {rate}, packet_bytes = {bytes} }}\n"
        )
    };
    let flows =
        [(4.1, 700, "[0, 2]"), (6.3, 1500, "[0, 0]"), (7.7, 999, "[1, 1]"), (5.9, 401, "[1, 2]")];
    let text = format!(
        "duration_s = 20\nsample_interval_ms = 10\n[parking_lot]\nhops = 3\n\
         [parking_lot.bottleneck]\nrate_mbps = 10\ndelay_ms = 7\n\
         queue = {{ kind = \"codel\", packets = 50 }}\n\
         loss = {{ kind = \"bernoulli\", ratio = 0.01 }}\n{}",
        flows.map(flow).concat()
    );
    let totals = same(&text);
    assert!(totals.flows.iter().all(|flow| flow.random_losses > 10 && flow.queue_drops > 10));

    let access = overloaded("rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 30 }");
    same(&access.replace("rtt_ms = 30", "rtt_ms = 30\naccess_mbps = 50\naccess_delay_ms = 2"));
}

#[test]
fn nothing_changes_when_the_emulator_is_late() {
    for queue in ["drop_tail", "codel", "fq_codel"] {
        let link = format!("rate_mbps = 10\nqueue = {{ kind = \"{queue}\", packets = 40 }}");
        let network = network(&overloaded(&link));
        let mut rng = Rng::new(3);
        let on_time = emulate(&network, &mut || Span::ZERO);
        let late = emulate(&network, &mut || Span((rng.uniform() * 5e6) as u64));
        assert_eq!(on_time.flows, late.flows);
        assert_eq!(rows(&on_time.links), rows(&late.links));
    }
}

/// One link there and one back, both `link`, and one flow.
fn pair(link: &str) -> Fabric {
    let text = format!(
        "duration_s = 100\n[[link]]\nname = \"a\"\n{link}\n[[link]]\nname = \"b\"\n{link}\n\
         [[flow]]\npath = [\"a\"]\nreverse = [\"b\"]\n"
    );
    let network = network(&text);
    let mut fabric = Fabric::new(&network.links, SEED, Span::ZERO);
    let route = network.connections[0].subflows[0].clone();
    let hosts = [(0, address(1, 0)), (1, address(2, 0))];
    fabric.add_flow(&Flow { hosts, route }).expect("the first");
    fabric
}

/// Takes everything out, in order.
fn drain(fabric: &mut Fabric) -> Vec<(Time, usize, Vec<u8>)> {
    let mut out = Vec::new();
    while let Some(due) = fabric.next_due() {
        while let Some(delivery) = fabric.pop_due(due) {
            out.push((delivery.due, delivery.port, delivery.bytes.to_vec()));
        }
    }
    out
}

#[test]
fn a_packet_arrives_unchanged_after_its_transmission_and_the_delay() {
    let mut fabric = pair("rate_mbps = 12\ndelay_ms = 40");
    let there = datagram(address(1, 0), address(2, 0), 1500, 0b10);
    let back = datagram(address(2, 0), address(1, 0), 750, 0);
    fabric.inject(Time(0), 0, &there);
    fabric.inject(Time(0), 1, &back);
    let millis = |ms: f64| Time::from_secs_f64(ms / 1e3);
    assert_eq!(fabric.pop_due(millis(40.4)), None);
    assert_eq!(drain(&mut fabric), [(millis(40.5), 0, back), (millis(41.0), 1, there)]);
    assert_eq!(fabric.inside(), Bytes(0));
}

#[test]
fn marks_are_set_where_the_queue_stands_and_the_sender_is_able() {
    let link = "rate_mbps = 1\nqueue = { kind = \"codel\", packets = 1000, ecn = true }";
    for (tos, marked) in [(0b10, true), (0b01, true), (0b00, false)] {
        let mut fabric = pair(link);
        let packet = datagram(address(1, 0), address(2, 0), 1500, tos);
        for _ in 0..100 {
            fabric.inject(Time(0), 0, &packet);
        }
        let out = drain(&mut fabric);
        let ce = out.iter().filter(|(.., bytes)| bytes[1] == 0b11).count();
        let (stats, _) = fabric.link(0);
        assert_eq!(ce as u64, stats.marked_packets);
        assert_eq!((ce > 0, out.len() < 100), (marked, !marked), "{tos:02b}: {ce} marks");
    }
}

#[test]
fn acknowledgements_are_no_data() {
    let mut fabric = pair("rate_mbps = 12");
    let mut ack = datagram(address(1, 0), address(2, 0), 40, 0);
    (ack[9], ack[32]) = (6, 5 << 4);
    fabric.inject(Time(0), 0, &ack);
    fabric.inject(Time(0), 1, &datagram(address(2, 0), address(1, 0), 1500, 0));
    assert_eq!(drain(&mut fabric).len(), 2);
    assert_eq!(fabric.finish(Time(1)).flows, [FlowCounts::default()]);
}

#[test]
fn packets_of_no_flow_are_counted_and_go_nowhere() {
    let mut fabric = pair("rate_mbps = 12");
    fabric.inject(Time(0), 0, &datagram(address(1, 0), address(2, 1), 100, 0));
    fabric.inject(Time(0), 0, &[]);
    fabric.inject(Time(0), 0, &[0x45; 10]);
    assert_eq!(fabric.next_due(), None);
    assert_eq!(fabric.finish(Time(1)).strays, 3);
}

#[test]
fn a_pair_of_addresses_belongs_to_one_flow() {
    let mut fabric = pair("rate_mbps = 12");
    let hosts = [(0, address(2, 0)), (1, address(1, 0))];
    let error = fabric.add_flow(&Flow { hosts, route: Route::default() }).expect_err("taken");
    assert_eq!(
        error.to_string(),
        "a flow from 10.2.0.0 to 10.1.0.0: allowed are two addresses that no other flow has"
    );
}

#[test]
fn by_default_everything_but_multicast_goes_to_the_other_port() {
    let network = network(
        "duration_s = 1\n[[link]]\nname = \"a\"\nrate_mbps = 10\n\
         [[flow]]\npath = [\"a\"]\nreverse = []\n",
    );
    let mut fabric = Fabric::new(&network.links, SEED, Span::ZERO);
    fabric.add_default(&network.connections[0].subflows[0]);
    let any = datagram(address(9, 1), address(9, 2), 100, 0);
    let multicast = datagram(address(9, 1), IpAddr::from([224, 0, 0, 22]), 100, 0);
    fabric.inject(Time(0), 0, &any);
    fabric.inject(Time(0), 1, &any);
    fabric.inject(Time(0), 0, &multicast);
    let ports: Vec<usize> = drain(&mut fabric).iter().map(|(_, port, _)| *port).collect();
    assert_eq!(ports, [0, 1]);
    assert_eq!(fabric.finish(Time(1)).strays, 1);
}

#[test]
fn fq_codel_tells_transport_flows_apart_where_all_go_by_default() {
    let network = network(
        "duration_s = 1\n[[link]]\nname = \"a\"\nrate_mbps = 1\n\
         queue = { kind = \"fq_codel\", packets = 1000 }\n\
         [[flow]]\npath = [\"a\"]\nreverse = []\n",
    );
    let mut fabric = Fabric::new(&network.links, SEED, Span::ZERO);
    fabric.add_default(&network.connections[0].subflows[0]);
    let bulk = datagram(address(1, 0), address(2, 0), 1500, 0);
    let mut sparse = datagram(address(1, 0), address(2, 0), 100, 0);
    sparse[21] = 53; // another source port
    for _ in 0..50 {
        fabric.inject(Time(0), 0, &bulk);
    }
    fabric.inject(Time(0), 0, &sparse);
    let place = drain(&mut fabric).iter().position(|(.., bytes)| bytes.len() == 100);
    assert!(place.is_some_and(|place| place <= 2), "{place:?}");
}

#[test]
fn the_network_refuses_what_memory_cannot_hold() {
    let mut fabric = pair("rate_mbps = 0.001");
    let packet = datagram(address(1, 0), address(2, 0), 65_000, 0);
    for _ in 0..9000 {
        fabric.inject(Time(0), 0, &packet);
    }
    assert!(fabric.inside() <= ackademy_net::link::fabric::BYTES_MAX);
    let totals = fabric.finish(Time(1));
    assert_eq!(totals.refused + totals.flows[0].sent_packets, 9000);
    assert!(totals.refused > 500, "{}", totals.refused);
}

/// Any link that the format allows, within what 300 packets can show.
fn any_link() -> impl Strategy<Value = String> {
    let queue = prop_oneof![
        Just("{ kind = \"drop_tail\" }".to_owned()),
        (1_u64..30).prop_map(|n| format!("{{ kind = \"drop_tail\", packets = {n} }}")),
        (1_u64..30).prop_map(|n| format!("{{ kind = \"codel\", packets = {n}, ecn = true }}")),
        (1_u64..30).prop_map(|n| format!("{{ kind = \"fq_codel\", packets = {n}, queues = 3 }}")),
        (1_u64..30).prop_map(|n| format!("{{ kind = \"pie\", packets = {n} }}")),
        (1_u64..30).prop_map(|n| format!("{{ kind = \"dualpi2\", packets = {n} }}")),
    ];
    (queue, 1_u32..50, 0_u32..30, 0.0..0.3_f64, 0.0..0.5_f64, any::<bool>()).prop_map(
        |(queue, rate, delay, loss, twice, keep_order)| {
            format!(
                "rate_mbps = {rate}\ndelay_ms = {delay}\njitter_ms = 2\nkeep_order = {keep_order}\n\
                 duplicate_ratio = {twice}\nqueue = {queue}\n\
                 loss = {{ kind = \"bernoulli\", ratio = {loss} }}"
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_packet_arrives_is_dropped_or_is_lost(
        link in any_link(),
        packets in prop::collection::vec((0_u64..2_000_000, 28_usize..1500, 0_u8..4), 1..300),
    ) {
        let mut fabric = pair(&link);
        let mut at = Time(0);
        let mut received = Vec::new();
        for &(gap, size, tos) in &packets {
            at += Span(gap);
            while let Some(delivery) = fabric.pop_due(at) {
                received.push(delivery.bytes.len() as u64);
            }
            fabric.inject(at, 0, &datagram(address(1, 0), address(2, 0), size, tos));
        }
        received.extend(drain(&mut fabric).iter().map(|(.., bytes)| bytes.len() as u64));
        prop_assert_eq!(fabric.inside(), Bytes(0));
        let flow = fabric.finish(at + Span::from_millis(100_000)).flows[0];
        prop_assert_eq!(flow.sent_packets, packets.len() as u64);
        prop_assert_eq!(flow.received_packets, received.len() as u64);
        prop_assert_eq!(flow.received_bytes, received.iter().sum::<u64>());
        let ended = flow.received_packets + flow.queue_drops + flow.random_losses + flow.copies_lost;
        prop_assert_eq!(flow.sent_packets + flow.copies, ended);
    }
}
