//! The ends with a caller's clock and network, here both made up: no socket, no waiting.
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::units::{Span, Time};
use ackademy_quic::virtual_time::{Datagram, Quic, run};
use std::collections::VecDeque;

/// Where random points come from.
const SEED: u64 = 43;

/// A transfer of `bytes` under a controller over a path on which nothing waits.
fn transfer(controller: &str, delay_ms: f64, bytes: u64) -> Scenario {
    let text = format!(
        "duration_s = 20\n[dumbbell]\nrtt_ms = {}\nbottleneck = {{ rate_mbps = 10_000 }}\n[[flow]]\ncontroller = {controller:?}\n\
         traffic = {{ kind = \"fixed\", bytes = {bytes} }}\n",
        2.0 * delay_ms
    );
    Scenario::parse(&text, "test").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Carries datagrams with this delay each way; the clock is read `late` after what was due.
fn carried(scenario: &Scenario, delay: Span, late: Span) -> Quic {
    let mut quic = Quic::new(&scenario.network, Seed(1)).expect("a run").in_real_time();
    let mut on_the_way: VecDeque<(Time, Datagram)> = VecDeque::new();
    let mut now = Time(0);
    while now < scenario.network.duration {
        quic.reach(now).expect("connections stay");
        while on_the_way.front().is_some_and(|(due, _)| *due <= now) {
            let (_, datagram) = on_the_way.pop_front().expect("seen");
            quic.arrive(now, datagram).expect("connections stay");
        }
        on_the_way.extend(quic.outgoing().into_iter().map(|datagram| (now + delay, datagram)));
        let arrival = on_the_way.front().map_or(Time::NEVER, |(due, _)| *due);
        let next = quic.next_due().min(arrival).min(scenario.network.duration);
        now = next.max(now) + late;
    }
    quic.reach(scenario.network.duration).expect("connections stay");
    quic
}

#[test]
fn a_transfer_takes_as_long_as_in_virtual_time() {
    let mut rng = Rng::new(SEED);
    for controller in ["cubic", "bbr3", "vivace", "noq:new_reno"] {
        let (delay_ms, bytes) = (rng.uniform_in(2.0, 40.0), 20_000 + rng.below(2_000_000));
        let scenario = transfer(controller, delay_ms, bytes);
        let place = format!("{controller}: {bytes} bytes over {delay_ms} ms, seed {SEED}");
        let expected = &run(&scenario.network, Seed(1)).expect("a run").flows[0];
        let delay = Span::from_secs_f64(delay_ms / 1e3);
        let exact = carried(&scenario, delay, Span(1)).finish();
        let found = &exact.flows[0];
        assert_eq!((found.goodput_bytes, found.transfers), (bytes, 1), "{place}");
        let apart = found.fct_mean_ms / expected.fct_mean_ms - 1.0;
        assert!(
            apart.abs() < 0.01,
            "{place}: {} and {} ms",
            found.fct_mean_ms,
            expected.fct_mean_ms
        );
        let late = carried(&scenario, delay, Span::from_micros(100)).finish();
        let found = &late.flows[0];
        assert_eq!((found.goodput_bytes, found.transfers), (bytes, 1), "{place}, late");
        assert!(found.rtt_min_ms >= 2.0 * delay_ms, "{place}, late: {} ms", found.rtt_min_ms);
    }
}

#[test]
fn datagrams_at_a_constant_rate_are_handed_over_whole() {
    let text = "duration_s = 2\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 100 }\n[[flow]]\n\
                traffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 1000 }\n";
    let scenario = Scenario::parse(text, "test").expect("a scenario");
    let expected = &run(&scenario.network, Seed(1)).expect("a run").flows[0];
    let found = &carried(&scenario, Span::from_millis(10), Span(1)).finish().flows[0];
    assert_eq!(
        (found.sent_packets, found.sent_bytes),
        (expected.sent_packets, expected.sent_bytes)
    );
    assert_eq!(found.delivered_bytes, 1000 * found.received_packets);
    assert!(found.received_packets.abs_diff(expected.received_packets) <= 1, "{found:?}");
}

#[test]
fn datagrams_that_nobody_carries_are_sent_again_and_nothing_is_delivered() {
    let scenario = transfer("cubic", 10.0, 10_000);
    let mut quic = Quic::new(&scenario.network, Seed(1)).expect("a run").in_real_time();
    let mut sent = 0;
    for millis in 0..5_000 {
        quic.reach(Time(0) + Span::from_millis(millis)).expect("connections stay");
        sent += quic.outgoing().len();
    }
    assert!(sent > 2, "{sent} datagrams: the first is repeated");
    assert_eq!(quic.finish().flows[0].goodput_bytes, 0);
}

#[test]
fn datagrams_at_a_constant_rate_are_carried_with_their_size() {
    let text = "duration_s = 5\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 100 }\n[[flow]]\ncontroller = \"cubic\"\n\
         stop_s = 4\ntraffic = { kind = \"cbr\", rate_mbps = 2, packet_bytes = 500 }\n";
    let scenario = Scenario::parse(text, "test").expect("a scenario");
    let outcome = carried(&scenario, Span::from_millis(10), Span(1)).finish();
    let row = &outcome.flows[0];
    assert!(row.sent_packets.abs_diff(2000) <= 1, "{row:?}");
    assert_eq!((row.received_packets, row.goodput_bytes), (row.sent_packets, row.sent_bytes));
}
