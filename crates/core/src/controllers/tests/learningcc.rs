use super::*;
use crate::control::Recovery;
use crate::params::ParamValue;

const PACKET: u64 = 1000;
/// 20 packets in 100 ms.
const BANDWIDTH: Rate = Rate(1_600_000);

fn flow() -> FlowInfo {
    FlowInfo {
        mss: Bytes(PACKET),
        initial_cwnd: Bytes(10 * PACKET),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    }
}

fn learningcc(settings: &[(&str, &str)]) -> LearningCc {
    let words = settings
        .iter()
        .map(|(name, word)| ((*name).to_owned(), ParamValue::Word((*word).to_owned())))
        .collect::<Vec<_>>();
    let greedy = ("epsilon".to_owned(), ParamValue::Number(0.0));
    let given = [words, vec![greedy]].concat();
    LearningCc::new(&flow(), &Params::resolve(SPEC.params, &given).unwrap())
}

fn ms(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

/// A full window's packet, delivered at `now_ms` after `rtt_ms`.
fn ack(now_ms: u64, rtt_ms: u64) -> Ack {
    Ack {
        now: ms(now_ms),
        sent_at: ms(now_ms - rtt_ms),
        rtt: Span::from_millis(rtt_ms),
        srtt: Span::from_millis(rtt_ms),
        acked: Bytes(PACKET),
        inflight: Bytes(50 * PACKET),
        prior_inflight: Bytes(51 * PACKET),
        delivery_rate: BANDWIDTH,
        ..Ack::default()
    }
}

/// Past start-up at 1 s, with a bandwidth-delay product of 20 packets, round trips between 100 and
/// 200 ms, and the first action's arm at `index`.
fn in_aimd(settings: &[(&str, &str)], index: u64) -> LearningCc {
    let mut cc = learningcc(settings);
    cc.on_ack(&ack(500, 100));
    cc.on_ack(&Ack { srtt: Span::from_millis(200), ..ack(600, 100) });
    cc.phase = Phase::Aimd;
    cc.window.set(20 * PACKET);
    cc.window.leave_slow_start();
    while cc.bandit.current() as u64 != index {
        cc.bandit.explore();
    }
    cc.begin_step(ms(1000));
    cc
}

fn packets(cc: &LearningCc) -> u64 {
    cc.window.packets()
}

#[test]
fn start_up_doubles_the_bandwidth_and_never_slows_down() {
    let mut cc = learningcc(&[]);
    assert_eq!(cc.control().pacing_rate, Rate(10 * PACKET * 8 * 10 * 2));
    cc.on_ack(&ack(100, 50));
    assert_eq!(cc.control().pacing_rate, Rate(10 * PACKET * 8 * 20));
    cc.on_ack(&Ack { delivery_rate: BANDWIDTH * 2, ..ack(101, 50) });
    assert_eq!(cc.control().pacing_rate, BANDWIDTH * 4);
    assert_eq!(packets(&cc), 40); // 2 * 3.2 Mb/s * 50 ms
    for now_ms in 102..140 {
        cc.on_ack(&Ack { delivery_rate: Rate(1), ..ack(now_ms, 50) });
    }
    assert_eq!(cc.control().pacing_rate, BANDWIDTH * 4);
}

#[test]
fn three_rounds_without_growth_by_half_end_start_up_and_an_empty_queue_ends_draining() {
    let mut cc = learningcc(&[]);
    for round in 1..=4 {
        assert_eq!(cc.phase, Phase::Startup, "round {round}");
        cc.on_ack(&ack(100 * round, 100));
    }
    assert_eq!(cc.phase, Phase::Drain);
    assert_eq!(cc.control().pacing_rate, BANDWIDTH / 2);
    cc.on_ack(&Ack { inflight: Bytes(21 * PACKET), ..ack(401, 100) });
    assert_eq!((cc.phase, packets(&cc)), (Phase::Drain, 40));
    cc.on_ack(&Ack { inflight: Bytes(20 * PACKET), ..ack(402, 100) });
    assert_eq!((cc.phase, packets(&cc)), (Phase::Aimd, 20));
}

#[test]
fn growth_of_the_bandwidth_by_half_keeps_start_up() {
    let mut cc = learningcc(&[]);
    for round in 1..=8_u32 {
        let rate = Rate(BANDWIDTH.0 * 3_u64.pow(round) / 2_u64.pow(round));
        cc.on_ack(&Ack { delivery_rate: rate, ..ack(100 * u64::from(round), 100) });
    }
    assert_eq!(cc.phase, Phase::Startup);
}

#[test]
fn losses_in_start_up_change_nothing() {
    let mut cc = learningcc(&[]);
    cc.on_ack(&ack(100, 100));
    let before = cc.control();
    cc.on_loss(&Loss { now: ms(101), sent_at: ms(50), lost: Bytes(PACKET), ..Loss::default() });
    assert_eq!(cc.control(), before);
}

#[test]
fn an_action_adds_a_packet_per_window_over_slope_acknowledged() {
    for (index, gained) in [(0, 1), (2, 2), (4, 4)] {
        let mut cc = in_aimd(&[], index);
        (0..20).for_each(|step| cc.on_ack(&ack(1001 + step, 100)));
        assert_eq!(packets(&cc), 20 + gained, "action {index}");
    }
}

#[test]
fn a_window_with_more_than_three_free_packets_does_not_grow_in_the_code_but_in_the_text() {
    for (mode, expected) in [("code", 20), ("paper", 21)] {
        let mut cc = in_aimd(&[("mode", mode)], 1);
        for step in 0..20 {
            cc.on_ack(&Ack { prior_inflight: Bytes(16 * PACKET), ..ack(1001 + step, 100) });
        }
        assert_eq!(packets(&cc), expected, "{mode}");
    }
}

#[test]
fn a_loss_resets_the_window_to_nine_tenths_of_the_product_and_may_raise_it() {
    for window in [40, 5] {
        let mut cc = in_aimd(&[], 0);
        cc.window.set(window * PACKET);
        cc.on_loss(&Loss {
            now: ms(1100),
            sent_at: ms(1050),
            lost: Bytes(PACKET),
            ..Loss::default()
        });
        assert_eq!(packets(&cc), 18);
    }
}

#[test]
fn without_a_bandwidth_a_loss_halves_the_window() {
    let mut cc = learningcc(&[]);
    cc.phase = Phase::Aimd;
    cc.on_loss(&Loss { now: ms(1100), sent_at: ms(1050), lost: Bytes(PACKET), ..Loss::default() });
    assert_eq!(packets(&cc), 5);
}

#[test]
fn delay_backs_off_at_four_fifths_of_the_way_from_base_to_largest_smoothed_round_trip() {
    let mut cc = in_aimd(&[], 0);
    cc.on_ack(&ack(1001, 100));
    cc.on_ack(&ack(1080, 179));
    assert_eq!(cc.stats.backoffs, [0, 0, 0]);
    cc.on_ack(&ack(1081, 180));
    assert_eq!((cc.stats.backoffs, packets(&cc)), ([1, 0, 0], 18));
}

#[test]
fn the_text_backs_off_only_above_the_threshold() {
    let mut cc = in_aimd(&[("mode", "paper")], 0);
    cc.on_ack(&ack(1001, 100));
    cc.on_ack(&ack(1081, 180));
    assert_eq!(cc.stats.backoffs, [0, 0, 0]);
    cc.on_ack(&ack(1082, 181));
    assert_eq!(cc.stats.backoffs, [1, 0, 0]);
}

#[test]
fn round_trips_that_never_vary_back_off_every_time_in_the_code() {
    let mut cc = in_aimd(&[], 0);
    cc.srtt_max = RoundMax::default();
    cc.on_ack(&ack(1001, 100));
    assert_eq!(cc.stats.backoffs, [1, 0, 0]);
}

#[test]
fn one_backoff_answers_for_all_packets_sent_before_it() {
    let mut cc = in_aimd(&[], 0);
    let loss = Loss { now: ms(1100), sent_at: ms(1050), lost: Bytes(PACKET), ..Loss::default() };
    cc.on_loss(&loss);
    cc.on_loss(&Loss { now: ms(1110), sent_at: ms(1099), kind: LossKind::More, ..loss });
    cc.on_ack(&ack(1190, 190));
    assert_eq!(cc.stats.backoffs, [0, 0, 1]);
    cc.on_loss(&Loss { now: ms(1200), sent_at: ms(1100), kind: LossKind::More, ..loss });
    assert_eq!(cc.stats.backoffs, [0, 0, 2]);
}

#[test]
fn in_recovery_nothing_grows_and_nothing_is_chosen() {
    let mut cc = in_aimd(&[], 0);
    cc.on_loss(&Loss { now: ms(1100), sent_at: ms(1050), lost: Bytes(PACKET), ..Loss::default() });
    let choices = cc.stats.choices;
    (0..99).for_each(|step| cc.on_ack(&ack(1100 + step, 100)));
    assert_eq!((packets(&cc), cc.stats.choices), (18, choices));
    cc.on_ack(&ack(1200, 100));
    assert_eq!(cc.stats.choices.iter().sum::<u64>(), choices.iter().sum::<u64>() + 1);
}

#[test]
fn a_reward_counts_two_round_trips_after_the_choice_in_the_code_and_one_in_the_text() {
    for (mode, first_ms) in [("code", 1200), ("paper", 1100)] {
        let mut cc = in_aimd(&[("mode", mode)], 3);
        let untouched = format!("{:?}", cc.bandit);
        for now_ms in (1001..1400).step_by(1) {
            cc.on_ack(&ack(now_ms, 100));
            if format!("{:?}", cc.bandit) != untouched {
                assert_eq!(now_ms, first_ms, "{mode}");
                break;
            }
        }
    }
}

#[test]
fn a_reward_is_rate_over_the_smoothed_round_trips_of_its_own_action() {
    let mut cc = in_aimd(&[], 3);
    cc.step.counts_from = Some(ms(1000));
    cc.on_ack(&Ack { srtt: Span::from_millis(199), ..ack(1100, 100) });
    let mut expected = Bandit::<5>::new(0.0, 0.85, Rng::new(1));
    while expected.current() != 3 {
        expected.explore();
    }
    expected.reward(1600.0 / 100.0);
    let values =
        |bandit: &Bandit<5>| format!("{bandit:?}").split_once("current").unwrap().0.to_owned();
    assert_eq!(values(&cc.bandit), values(&expected));
}

#[test]
fn a_minimum_expires_after_ten_seconds_and_is_overwritten_twice() {
    let mut min_rtt = MinRtt::default();
    let sample =
        |min_rtt: &mut MinRtt, at_ms, rtt_ms| min_rtt.update(ms(at_ms), Span::from_millis(rtt_ms));
    assert!(!sample(&mut min_rtt, 0, 50));
    assert!(!sample(&mut min_rtt, 10_000, 60));
    assert!(sample(&mut min_rtt, 10_001, 70));
    assert_eq!(min_rtt.value, Span::from_millis(70));
    assert!(!sample(&mut min_rtt, 10_002, 80));
    assert_eq!(min_rtt.value, Span::from_millis(80));
    assert!(!sample(&mut min_rtt, 10_003, 90));
    assert_eq!(min_rtt.value, Span::from_millis(80));
}

#[test]
fn an_expired_minimum_backs_off() {
    let mut cc = in_aimd(&[], 0);
    cc.srtt_max.update(cc.rounds.count(), u64::MAX);
    cc.on_ack(&ack(10_601, 100));
    assert_eq!(cc.stats.backoffs, [0, 1, 0]);
}

#[test]
fn bandwidth_is_the_maximum_of_ten_rounds() {
    let mut cc = in_aimd(&[], 0);
    for round in 0..10 {
        assert_eq!(cc.bandwidth.max(), BANDWIDTH.0, "round {round}");
        cc.on_ack(&Ack { delivery_rate: Rate(1000), ..ack(1000 + 100 * round, 100) });
    }
    assert_eq!(cc.bandwidth.max(), 1000);
}

#[test]
fn it_paces_a_quarter_above_the_window() {
    let mut cc = in_aimd(&[], 0);
    cc.on_ack(&ack(1001, 100));
    assert_eq!(cc.control().pacing_rate, Rate(BANDWIDTH.0 * 125 / 100));
}

#[test]
fn the_text_has_slow_start_until_the_first_congestion() {
    let mut cc = learningcc(&[("mode", "paper")]);
    (0..10).for_each(|step| cc.on_ack(&ack(100 + step, 100)));
    assert_eq!(packets(&cc), 20);
    cc.on_loss(&Loss { now: ms(120), sent_at: ms(60), lost: Bytes(PACKET), ..Loss::default() });
    assert_eq!((cc.phase, packets(&cc)), (Phase::Aimd, 18));
}

#[test]
fn a_timeout_closes_the_window_unless_it_is_ignored() {
    let timeout = Loss { now: ms(2000), kind: LossKind::Timeout, ..Loss::default() };
    for (on_timeout, expected) in [("restart", 4), ("ignore", 20)] {
        let mut cc = in_aimd(&[("on_timeout", on_timeout)], 0);
        cc.on_loss(&timeout);
        assert_eq!(packets(&cc), expected, "{on_timeout}");
    }
}
