use super::*;

/// A flow alone that has its share, and nothing that costs.
fn calm() -> Truth {
    Truth { interval: 5.0, fair_mbps: 10.0, base_rtt_ms: 40.0, ..Truth::default() }
}

fn moved(throughput_mbps: f64) -> Metrics {
    Metrics { throughput_mbps, ..Metrics::default() }
}

fn own(truth: &Truth, now_mbps: f64, before_mbps: f64) -> f64 {
    Flagship::default().own(&moved(now_mbps), truth, before_mbps).expect("a rewarded interval")
}

/// Equal but for rounding.
fn same(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
}

#[test]
fn aurora_rewards_packets_per_second_and_charges_seconds_and_losses() {
    // 100 packets of 1500 bytes per second, 50 ms, a fifth lost: 1000 − 50 − 400.
    let lossy = Metrics { rtt_mean_ms: 50.0, loss_ratio: 0.2, srtt_ms: 70.0, ..moved(1.2) };
    same(aurora(&lossy, 1e-3), 0.55);
    // Without a sample the smoothed round trip counts.
    same(aurora(&Metrics { rtt_mean_ms: 0.0, ..lossy }, 1.0), 530.0);
}

#[test]
fn the_first_interval_of_a_flow_is_unrewarded() {
    for interval in [-1.0, 0.0] {
        let truth = Truth { interval, ..calm() };
        assert_eq!(Flagship::default().own(&moved(10.0), &truth, 10.0), None);
    }
    assert!(
        Flagship::default().own(&moved(10.0), &Truth { interval: 1.0, ..calm() }, 10.0).is_some()
    );
}

#[test]
fn the_fair_share_is_worth_most_and_starvation_costs_most() {
    same(own(&calm(), 10.0, 10.0), 1.0);
    // Half: 0.25 + 0.5·(1 − ln 2 / ln 50) = 0.25 + 0.5·(1 − 0.693147 / 3.912023).
    same(own(&calm(), 5.0, 5.0), 0.661_408_089_9);
    // A fiftieth: 0.5·0.02 + 0.5·0; less is not better.
    same(own(&calm(), 0.2, 0.2), 0.01);
    same(own(&calm(), 0.0, 0.0), 0.0);
    // Above: 2 − s.
    same(own(&calm(), 13.0, 13.0), 0.7);
    // Nothing to share, as in an outage.
    same(own(&Truth { fair_mbps: 0.0, ..calm() }, 0.0, 0.0), 1.0);
}

#[test]
fn delay_costs_by_its_ratio_to_the_base_round_trip_but_not_to_less_than_ten_milliseconds() {
    // 40 ms of queue over 40 ms: 0.25·ln 2.
    same(own(&Truth { queue_ms: 40.0, ..calm() }, 10.0, 10.0), 1.0 - 0.173_286_795_1);
    // 10 ms of queue over 1 ms, taken for 10 ms.
    let short = Truth { queue_ms: 10.0, base_rtt_ms: 1.0, ..calm() };
    same(own(&short, 10.0, 10.0), 1.0 - 0.173_286_795_1);
}

#[test]
fn beside_a_loss_based_flow_only_the_own_queue_costs_and_two_fifths_of_it() {
    let beside = Truth { loss_based_flows: 1.0, queue_ms: 400.0, own_queue_ms: 40.0, ..calm() };
    same(own(&beside, 10.0, 10.0), 1.0 - 0.069_314_718_1);
    // A flow of BBR is none of these.
    let bbr = Truth { loss_based_flows: 0.0, bbr_flows: 1.0, queue_ms: 40.0, ..calm() };
    same(own(&bbr, 10.0, 10.0), 1.0 - 0.173_286_795_1);
}

#[test]
fn congestive_loss_costs_five_times_its_ratio_up_to_a_fifth() {
    same(own(&Truth { congestion_loss: 0.01, ..calm() }, 10.0, 10.0), 0.95);
    same(own(&Truth { congestion_loss: 0.2, ..calm() }, 10.0, 10.0), 0.0);
    same(own(&Truth { congestion_loss: 0.9, ..calm() }, 10.0, 10.0), 0.0);
    // Random loss costs nothing.
    same(own(&Truth { random_loss: 0.05, ..calm() }, 10.0, 10.0), 1.0);
}

#[test]
fn a_rate_that_wavers_costs_once_nothing_has_changed_for_ten_intervals() {
    let calm = Truth { intervals_since_event: 10.0, ..calm() };
    // 0.05·ln 1.25.
    same(own(&calm, 10.0, 8.0), 1.0 - 0.011_157_177_6);
    same(own(&calm, 10.0, 12.5), 1.0 - 0.011_157_177_6);
    // At most 0.05, also from nothing.
    same(own(&calm, 10.0, 1.0), 0.95);
    same(own(&calm, 10.0, 0.0), 0.95);
    same(own(&calm, 10.0, 10.0), 1.0);
    same(own(&Truth { intervals_since_event: 9.0, ..calm }, 10.0, 8.0), 1.0);
}

#[test]
fn a_reward_lies_between_minus_one_and_one() {
    let worst = Truth { congestion_loss: 1.0, queue_ms: 1e9, ..calm() };
    same(own(&worst, 0.0, 0.0), -1.0);
    same(own(&calm(), 1e9, 1e9), -1.0);
}

#[test]
fn a_fifth_of_a_reward_is_the_least_among_the_flows_of_a_kind() {
    let reward = Flagship::default();
    let mut team = Team::new(3);
    assert_eq!(team.least(), None);
    team.set(0, 0.9);
    team.set(2, 0.4);
    assert_eq!(team.least(), Some(0.4));
    same(reward.shared(0.9, 0.4), 0.8);
    team.leave(2);
    assert_eq!(team.least(), Some(0.9));
}
