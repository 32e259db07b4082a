//! What each kind of service carries, and when.
use super::*;

impl Service {
    /// Ends of packets that start at whole nanoseconds or behind the one before.
    fn ends(&mut self, start: Time, size: u32) -> Time {
        let behind = start == self.finished.at;
        let start = if behind { self.finished } else { Exact::whole(start) };
        self.finish(start, size).at
    }
}

const SECOND: Span = Span::from_millis(1000);

fn at(millis: u64) -> Time {
    Time(millis * NANOS_PER_MILLI)
}

fn mbps(rate: u64) -> Rate {
    Rate(rate * 1_000_000)
}

fn trace(text: &str) -> Service {
    Service::trace(Arc::new(Trace::parse(text.as_bytes(), "test").unwrap()))
}

/// Ends of `count` packets that queue at `start`.
fn backlogged(service: &mut Service, start: Time, size: u32, count: usize) -> Vec<Time> {
    let mut time = start;
    (0..count)
        .map(|_| {
            time = service.ends(time, size);
            time
        })
        .collect()
}

#[test]
fn a_busy_link_never_drifts_and_never_finishes_early() {
    let mut service = Service::constant(Rate(7_000_003));
    let ends = backlogged(&mut service, Time(0), 1500, 10_000);
    for (index, end) in ends.iter().enumerate() {
        let bytes = Bytes(1500 * (index as u64 + 1));
        assert_eq!(end.0, Rate(7_000_003).time_for(bytes).0, "packet {index}");
    }
}

#[test]
fn what_rounding_left_over_is_forgotten_when_the_link_idles() {
    let rate = Rate(3_000_000_000);
    let mut service = Service::constant(rate);
    assert_eq!(service.ends(Time(0), 1), Time(3)); // 2.67 ns
    assert_eq!(service.ends(Time(3), 1), Time(6)); // 5.33 ns
    assert_eq!(service.ends(Time(6), 1), Time(8)); // 8 ns
    assert_eq!(service.ends(Time(10), 1), Time(13));
    assert_eq!(service.ends(Time(14), 1), Time(17));
}

#[test]
fn a_packet_that_comes_a_fraction_before_its_nanosecond_starts_that_fraction_earlier() {
    let rate = Rate(3_000_000_000);
    let mut first = Service::constant(rate);
    let mut second = Service::constant(rate);
    let (mut at, mut end) = (Exact::default(), Exact::default());
    for bytes in 1..=3000 {
        at = first.finish(at, 1);
        // Each packet comes the instant the one before it leaves.
        end = second.finish(at.max(end), 1);
        let units = UNITS * (bytes + 1) * 8;
        let exact = end.at.0 * UNITS - u64::from(end.early);
        assert!(exact.abs_diff(units / 3) <= 2, "byte {bytes} ends at {end:?}");
    }
}

#[test]
fn what_is_not_yet_sent_is_rounded_up_to_bytes() {
    let mut service = Service::constant(mbps(8));
    service.finish(Exact::default(), 1500);
    assert_eq!(service.unsent(Time(0)), Bytes(1500));
    assert_eq!(service.unsent(Time(1)), Bytes(1500));
    assert_eq!(service.unsent(Time(1_000)), Bytes(1499));
    assert_eq!(service.unsent(at(2)), Bytes(0));
}

#[test]
fn sizes_and_rates_of_every_magnitude_are_served_exactly() {
    for rate in [1, 999, 10_000_000_000, u64::MAX - 1, u64::MAX] {
        let mut service = Service::constant(Rate(rate));
        let (mut time, mut sent) = (Time(0), 0);
        for size in [1, 1500, 64, 1500, 1500, 9000, 1] {
            sent += u64::from(size);
            time = service.ends(time, size);
            assert_eq!(time.0, Rate(rate).time_for(Bytes(sent)).0, "{rate} bit/s");
        }
    }
}

#[test]
fn a_rate_of_zero_never_finishes() {
    let mut service = Service::constant(Rate(0));
    assert_eq!(service.ends(at(5), 1), Time::NEVER);
    let zeros = Steps::repeating(vec![(Time(0), Rate(0))], SECOND).unwrap();
    assert_eq!(Service::schedule(zeros).ends(Time(0), 1500), Time::NEVER);
    let none = Service::random(Rate(0), Rate(0), SECOND, Seed(1)).unwrap();
    assert_eq!(none.capacity(Time(0), Time::NEVER), Bytes(0));
}

#[test]
fn a_packet_that_meets_a_new_rate_is_sent_at_both() {
    let steps = Steps::new(vec![(at(0), mbps(8)), (at(1), mbps(4))]).unwrap();
    let mut service = Service::schedule(steps);
    // 1000 bytes in the first millisecond, the other 500 in one more.
    assert_eq!(service.ends(Time(0), 1500), at(2));
    assert_eq!(service.ends(at(2), 500), at(3));
}

#[test]
fn a_schedule_with_a_rate_of_zero_pauses_and_one_that_ends_in_it_never_finishes() {
    let steps = vec![(at(0), mbps(8)), (at(1), Rate(0)), (at(9), mbps(8)), (at(11), Rate(0))];
    let mut service = Service::schedule(Steps::new(steps).unwrap());
    assert_eq!(service.ends(Time(0), 1000), at(1));
    assert_eq!(service.ends(at(1), 1500), Time(10_500_000));
    assert_eq!(service.ends(Time(10_500_000), 501), Time::NEVER);
    assert_eq!(service.ends(Time::NEVER, 1), Time::NEVER);
}

#[test]
fn a_repeating_schedule_finishes_a_slow_packet_after_many_periods() {
    let steps = vec![(Time(0), Rate(8)), (Time(2), Rate(0))];
    let steps = Steps::repeating(steps, Span(4)).unwrap();
    let mut service = Service::schedule(steps.clone());
    // A byte per second of service, half the time.
    assert_eq!(service.ends(Time(0), 1500), Time(3000 * SECOND.0 - 2));
    let outage = Outages::new(vec![(Time(SECOND.0), Time(2 * SECOND.0))]).unwrap();
    let mut service = Service::schedule(steps).with_outages(outage);
    assert_eq!(service.ends(Time(0), 1500), Time(3001 * SECOND.0 - 2));
}

#[test]
fn an_outage_delays_what_is_being_sent_and_what_waits() {
    let outages = Outages::new(vec![(at(7), at(9)), (at(1), at(3)), (at(2), at(4))]).unwrap();
    let mut service = Service::constant(mbps(8)).with_outages(outages);
    assert_eq!(service.ends(Time(500_000), 1000), Time(4_500_000));
    assert_eq!(service.ends(Time(4_500_000), 2500), at(7));
    assert_eq!(service.ends(at(8), 1000), at(10));
    assert_eq!(service.capacity(at(0), at(10)), Bytes(5000));
}

#[test]
fn an_outage_without_end_stops_every_kind_of_service() {
    let down = Outages::new(vec![(at(1), Time::NEVER)]).unwrap();
    let steps = Steps::repeating(vec![(at(0), mbps(8))], SECOND).unwrap();
    for service in [
        Service::constant(mbps(8)),
        Service::schedule(steps),
        Service::random(mbps(8), mbps(8), SECOND, Seed(0)).unwrap(),
        trace("0\n1\n"),
    ] {
        let mut service = service.with_outages(down.clone());
        assert!(service.ends(Time(0), 1000) <= at(1));
        assert_eq!(service.ends(at(1), 1500), Time::NEVER);
    }
}

#[test]
fn an_outage_that_ends_before_it_begins_is_refused() {
    let error = Outages::new(vec![(at(2), at(2))]).unwrap_err();
    assert_eq!(error, OutageError { from: at(2), to: at(2) });
}

#[test]
fn an_outage_at_zero_holds_from_the_first_packet() {
    let down = Outages::new(vec![(at(0), at(5))]).unwrap();
    let mut service = Service::constant(mbps(8)).with_outages(down);
    assert_eq!(service.ends(Time(0), 1000), at(6));
}

#[test]
fn random_rates_serve_what_their_draws_allow() {
    let random = || Service::random(mbps(5), mbps(15), Span::from_millis(100), Seed(9)).unwrap();
    let mut service = random();
    let ends = backlogged(&mut service, Time(0), 1500, 10_000);
    let end = *ends.last().unwrap();
    assert_eq!(random().capacity(Time(0), end), Bytes(15_000_000));
    let mean = Rate::of(Bytes(15_000_000), Span(end.0)).as_mbps();
    assert!((9.0..11.0).contains(&mean), "{mean} Mb/s");
}

#[test]
fn a_packet_of_1500_bytes_takes_one_opportunity_and_leaves_nothing_for_the_next() {
    let mut service = trace("1\n2\n3\n4\n");
    for milli in 1..5 {
        assert_eq!(service.ends(Time(0).max(at(milli - 1)), 1500), at(milli));
    }
    assert_eq!(trace("1\n2\n").capacity(Time(0), at(3)), PACKET * 2);
}

#[test]
fn small_packets_share_an_opportunity_with_4_bytes_of_header_each() {
    let mut service = trace("1\n2\n3\n");
    assert_eq!(service.ends(Time(0), 700), at(1));
    assert_eq!(service.ends(at(1), 796), at(1));
    assert_eq!(service.ends(at(1), 1), at(2));
    assert_eq!(service.ends(at(2), 1496), at(3)); // 5 bytes were taken, 1500 are needed
}

#[test]
fn a_large_packet_spans_opportunities_and_repetitions() {
    let mut service = trace("1\n1\n4\n");
    assert_eq!(service.ends(Time(0), 2992), at(1)); // 3000 of 3008
    assert_eq!(service.ends(at(1), 5 + 1500), at(5)); // 8 and 1505 of 1504 each
    assert_eq!(service.ends(at(5), 3000), at(8));
}

#[test]
fn unused_opportunities_and_leftovers_are_lost() {
    let mut service = trace("1\n2\n3\n10\n");
    assert_eq!(service.ends(Time(1), 100), at(1));
    assert_eq!(service.ends(Time(1_000_001), 1500), at(2));
    assert_eq!(service.ends(at(4), 1500), at(10));
    assert_eq!(service.ends(at(100) + Span(1), 1500), at(101));
}

#[test]
fn an_opportunity_serves_a_packet_that_arrives_at_its_very_instant() {
    let mut service = trace("0\n5\n");
    assert_eq!(service.ends(Time(0), 1500), at(0));
    assert_eq!(service.ends(at(5), 1500), at(5)); // the last of the first round
    assert_eq!(service.ends(at(5), 1500), at(5)); // the first of the second
    assert_eq!(service.ends(at(5), 1500), at(10));
}

#[test]
fn a_trace_has_the_capacity_of_its_lines() {
    let service = trace("0\n5\n5\n9\n");
    assert_eq!(service.capacity(Time(0), at(9)), PACKET * 3);
    assert_eq!(service.capacity(Time(0), at(9) + Span(1)), PACKET * 5);
    assert_eq!(service.capacity(at(5), at(5) + Span(1)), PACKET * 2);
    assert_eq!(service.capacity(at(9), at(9 * 1001)), PACKET * 4000);
    assert_eq!(service.capacity(at(9), at(3)), Bytes(0));
}

#[test]
fn opportunities_within_an_outage_are_lost() {
    let outages = Outages::new(vec![(at(2), at(13))]).unwrap();
    let mut service = trace("1\n2\n10\n").with_outages(outages);
    assert_eq!(service.ends(Time(0), 1500), at(1));
    assert_eq!(service.ends(at(1), 1), at(20));
    assert_eq!(service.capacity(Time(0), at(22)), PACKET * 3);
}
