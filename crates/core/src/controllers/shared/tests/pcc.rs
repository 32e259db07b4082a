//! The common sender under a rule that does what a test says, and the parts that rules share.
use super::*;
use crate::controllers::test_support::{flow_of, run};

const MSS: u64 = 1250;

fn flow() -> FlowInfo {
    flow_of(MSS)
}

/// Plans intervals of 50 ms at 1, 2, 3, ... Mb/s, and changes the schedule after each report.
#[derive(Default)]
struct Counting {
    planned: u32,
    restarts: u32,
    timeouts: u32,
    halves: u32,
    judged: Vec<u32>,
}

impl Rule for Counting {
    type Purpose = u32;

    fn begin(&mut self, _: &Path) {}

    fn plan(&mut self, _: &Path, _: &mut Rng) -> Plan<u32> {
        self.planned += 1;
        let rate_bps = f64::from(self.planned) * 1e6;
        Plan { rate_bps, duration_s: 0.05, purpose: Some(self.planned) }
    }

    fn judge(&mut self, _: &Path, purpose: u32, _: &Report) -> Schedule {
        self.judged.push(purpose);
        Schedule::Change
    }

    fn restart(&mut self) {
        self.restarts += 1;
    }

    fn on_timeout(&mut self, _: &Path) -> Schedule {
        self.timeouts += 1;
        Schedule::Change
    }

    fn halve(&mut self, _: &Path) {
        self.halves += 1;
    }

    fn rate_bps(&self) -> f64 {
        8e6
    }
}

fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

fn ack(sent_ms: u64) -> Ack {
    let rtt = Span::from_millis(20);
    Ack {
        now: at(sent_ms) + rtt,
        sent_at: at(sent_ms),
        rtt,
        srtt: rtt,
        min_rtt: rtt,
        acked: Bytes(MSS),
        ..Ack::default()
    }
}

fn pcc() -> Pcc<Counting> {
    let mut pcc = Pcc::new(&flow(), Counting::default());
    (pcc.count, pcc.path.delivered_bps) = (Count::new(at(0)).fast(1e9), 1e9);
    pcc
}

#[test]
fn each_interval_is_paced_at_its_own_rate_and_the_window_is_twice_the_rules() {
    let mut pcc = pcc();
    assert_eq!(pcc.control().pacing_rate, Rate(1_000_000));
    assert_eq!(pcc.next_timer(), Some(at(50)));
    pcc.on_timer(at(50));
    assert_eq!(pcc.control().pacing_rate, Rate(2_000_000));
    pcc.on_ack(&ack(40));
    // 8 Mb/s over 20 ms are 20 000 bytes.
    assert_eq!(pcc.control().cwnd, Bytes(40_000 + 10 * MSS));
}

#[test]
fn a_decision_cuts_the_present_interval_short() {
    let mut pcc = pcc();
    pcc.on_ack(&ack(0)); // First sample: interval 2 begins at 20 ms.
    assert_eq!(pcc.next_timer(), Some(at(70)));
    (1..200).step_by(2).map(ack).for_each(|ack| {
        pcc.on_timer(ack.now);
        pcc.on_ack(&ack);
    });
    assert_eq!(pcc.rule.judged.first(), Some(&2));
    // What was open when interval 2 was judged is not reported any more.
    assert_eq!(pcc.rule.judged.get(1), Some(&4), "{:?}", pcc.rule.judged);
}

#[test]
fn a_silent_flow_sets_no_timer_and_starts_over_with_the_next_acknowledgement() {
    let mut pcc = pcc();
    pcc.on_ack(&ack(0));
    let mut timers = 0;
    while let Some(timer) = pcc.next_timer() {
        timers += 1;
        assert!(timers < 20, "the timer never stops");
        pcc.on_timer(timer);
    }
    assert_eq!(pcc.rule.restarts, 0);
    pcc.on_ack(&ack(60_000));
    assert_eq!(pcc.rule.restarts, 1);
    assert!(pcc.next_timer().is_some_and(|timer| timer > at(60_000)));
}

#[test]
fn a_time_out_and_an_idle_restart_void_what_is_open() {
    for (kind, timeouts) in [(LossKind::Timeout, 1), (LossKind::Idle, 0)] {
        let mut pcc = pcc();
        pcc.on_ack(&ack(0));
        pcc.on_loss(&Loss { now: at(30), sent_at: at(5), kind, ..Loss::default() });
        assert_eq!((pcc.rule.restarts, pcc.rule.timeouts), (1, timeouts), "{kind:?}");
        assert_eq!(pcc.next_timer(), Some(at(80)), "{kind:?}");
    }
}

fn report(rate_bps: f64, usable: bool) -> Report {
    Report {
        rate_bps,
        duration_s: 0.05,
        acked: 1e4,
        lost: 0.0,
        rtt_slope: 0.0,
        srtt_s: (0.04, 0.04),
        usable,
    }
}

#[test]
fn the_start_doubles_until_an_interval_is_worse_and_returns_to_the_best() {
    let mut doubling = Doubling::default();
    assert_eq!((doubling.factor(), doubling.factor()), (Some(1.0), Some(2.0)));
    assert_eq!(doubling.factor(), None, "two outcomes are open");
    assert_eq!(doubling.judge(&report(1e6, true), 1.0), Doubled::Better);
    assert_eq!(doubling.factor(), Some(2.0));
    assert_eq!(doubling.judge(&report(2e6, true), 2.0), Doubled::Better);
    assert_eq!(doubling.judge(&report(4e6, true), 1.5), Doubled::Over(2e6));
}

#[test]
fn the_start_waits_while_the_application_limits_the_flow() {
    let mut doubling = Doubling::default();
    doubling.factor();
    assert_eq!(doubling.judge(&report(1e6, false), 1.0), Doubled::Repeat(1e6));
    assert_eq!((doubling.factor(), doubling.factor()), (Some(1.0), Some(1.0)));
    doubling.judge(&report(1e6, true), 1.0);
    assert_eq!(doubling.factor(), Some(2.0));
}

#[test]
fn a_start_that_is_interrupted_doubles_only_after_an_interval_that_was_better() {
    let mut doubling = Doubling::default();
    doubling.factor();
    doubling.judge(&report(1e6, true), 1.0);
    for _ in 0..10 {
        doubling.restart();
        assert_eq!((doubling.factor(), doubling.factor()), (Some(1.0), Some(1.0)));
    }
    assert_eq!(doubling.judge(&report(2e6, true), 2.0), Doubled::Better);
    assert_eq!(doubling.factor(), Some(2.0));
    doubling.restart();
    doubling.factor();
    assert_eq!(
        doubling.judge(&report(4e6, true), 1.5),
        Doubled::Over(2e6),
        "the best one counts on"
    );
    assert_eq!(Doubling::held().factor(), Some(1.0));
}

#[test]
fn no_rate_exceeds_twice_what_was_delivered_and_a_burst() {
    let path = Path {
        srtt_s: 0.04,
        min_rtt_s: 0.04,
        packet_bits: 12_000.0,
        initial_packets: 10.0,
        delivered_bps: 8e6,
    };
    // Ten packets in a round trip are 3 Mb/s.
    assert!((path.bounded_bps(1e12, 2.0) - 19e6).abs() < 1.0);
    assert!((path.bounded_bps(1e6, 2.0) - 1e6).abs() < 1.0);
    // A false round trip of a nanosecond is no reason for 24 Tb/s.
    let false_rtt = Path { srtt_s: 1e-9, ..path };
    assert!(false_rtt.bounded_bps(1e6, 2.0) <= 16e6 + 10.0 * 12_000.0 / 0.01);
}

#[test]
fn a_round_trip_that_loses_more_than_it_delivers_halves_the_rate_but_not_the_next_one() {
    let mut pcc = pcc();
    let mut round = |sent_ms: u64, lost_packets: u64| {
        let lost = Bytes(lost_packets * MSS);
        pcc.on_loss(&Loss { now: at(sent_ms), lost, kind: LossKind::More, ..Loss::default() });
        pcc.on_ack(&ack(sent_ms));
        pcc.rule.halves
    };
    assert_eq!([round(100, 1), round(200, 2), round(300, 2), round(400, 2)], [0, 1, 1, 2]);
    pcc.on_loss(&Loss { lost: Bytes(9 * MSS), kind: LossKind::More, ..Loss::default() });
    pcc.on_loss(&Loss { kind: LossKind::Spurious, ..Loss::default() });
    pcc.on_ack(&ack(500));
    pcc.on_ack(&ack(600));
    assert_eq!(pcc.rule.halves, 2, "nothing was lost");
}

#[test]
fn the_rate_of_delivery_is_that_of_a_round_trip_whatever_a_record_holds() {
    // A packet of 1250 bytes per millisecond: 10 Mb/s.
    for packets in [1, 5, 10] {
        let mut count = Count::new(at(0));
        let mut most = 0.0_f64;
        for record in 1..=200 / packets {
            let single = ack(record * packets);
            let batch = Ack { acked: Bytes(single.acked.0 * packets), ..single };
            most = most.max(count.add(&batch, 0.05));
        }
        assert!((9e6..=10e6).contains(&most), "{most} with {packets} a record");
    }
}

/// A source that pauses, over 20 Mb/s and 40 ms: what the path brings about, whatever the rule.
#[test]
fn a_source_that_pauses_makes_no_member_of_the_family_send_twice_the_links_rate_for_long() {
    for controller in ["pcc_allegro", "vivace", "pcc_quic"] {
        let text = format!(
            "duration_s = 120\nsample_interval_ms = 20\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\n\
             rate_mbps = 20\nqueue = {{ kind = \"drop_tail\", packets = 100 }}\n[[flow]]\n\
             controller = \"{controller}\"\n\
             traffic = {{ kind = \"on_off\", mean_bytes = 300000, mean_off_s = 3 }}\n"
        );
        for seed in 1..=10 {
            let (outcome, _) = run(&text, seed);
            let pacing = outcome.flow_series.pacing_mbps.iter().copied().fold(0.0, f64::max);
            assert!(pacing < 2.2 * 20.0, "{controller}, seed {seed}: {pacing} Mb/s");
            let flow = &outcome.flows[0];
            let loss = flow.dropped_packets as f64 / flow.sent_packets as f64;
            assert!(loss < 0.06, "{controller}, seed {seed}: {loss} lost");
        }
    }
}

/// Pairs whose utility is `utility` of the way and of the place among the four.
fn pairs(seed: u64, utility: impl Fn(Way, usize) -> f64) -> Pairs {
    let mut pairs = Pairs::new(&mut Rng::new(seed));
    let ways: Vec<Way> = std::iter::from_fn(|| pairs.way()).collect();
    for (index, way) in ways.into_iter().enumerate() {
        assert_eq!(pairs.record(utility(way, index)), index == 3);
    }
    pairs
}

#[test]
fn each_pair_tries_both_ways_in_an_order_that_is_drawn() {
    let orders: Vec<Vec<Way>> = (0..20)
        .map(|seed| {
            let mut pairs = Pairs::new(&mut Rng::new(seed));
            std::iter::from_fn(|| pairs.way()).collect()
        })
        .collect();
    assert!(orders.iter().all(|order| order[0] != order[1] && order[2] != order[3]));
    let distinct: std::collections::BTreeSet<String> =
        orders.iter().map(|order| format!("{order:?}")).collect();
    assert_eq!(distinct.len(), 4, "{distinct:?}");
}

#[test]
fn both_pairs_must_agree() {
    for seed in 0..8 {
        let up = pairs(seed, |way, index| way.sign() * (1.0 + index as f64));
        assert_eq!(up.agreed(), Some(Way::Up));
        assert!(up.advantage(0) > 0.0 && up.advantage(1) > up.advantage(0));
        assert_eq!(pairs(seed, |way, _| -way.sign()).agreed(), Some(Way::Down));
        let torn = |way: Way, index: usize| if index < 2 { way.sign() } else { -way.sign() };
        assert_eq!(pairs(seed, torn).agreed(), None);
        assert_eq!(pairs(seed, |_, _| 1.0).agreed(), None, "no difference is no decision");
    }
}

#[test]
fn means_are_of_one_side() {
    let pairs = pairs(3, |way, index| way.sign() * 10.0 + (index / 2) as f64);
    assert!((pairs.mean_of(Way::Up) - 10.5).abs() < 1e-12);
    assert!((pairs.mean_of(Way::Down) + 9.5).abs() < 1e-12);
    assert!((pairs.last_best() - 11.0).abs() < 1e-12);
}
