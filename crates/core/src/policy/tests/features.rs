#![allow(clippy::float_cmp)] // exact: whole numbers, bounds and untouched values
use super::*;

/// An interval of 50 packets in 100 ms over a path of 40 ms, now at 60.
fn moment() -> Moment {
    Moment {
        metrics: Metrics {
            duration_s: 0.1,
            acked_packets: 50.0,
            lost_packets: 2.0,
            loss_ratio: 0.25,
            throughput_mbps: 5.0,
            rtt_mean_ms: 60.0,
            rtt_slope: 0.5,
            flow_min_rtt_ms: 40.0,
            srtt_ms: 55.0,
            ack_gap_ms: 2.0,
            cwnd_packets: 30.0,
            inflight_packets: 15.0,
            ..Metrics::default()
        },
        throughput_max_mbps: 10.0,
        throughput_before_mbps: 4.0,
        packet_mb: 0.012,
        cwnd_change: 5.0,
        sent_packets: 60.0,
        delivery_rate_mbps: 7.0,
        signals: Interval {
            rtt_min: Span::from_millis(60),
            rtt_mean: Span::from_millis(75),
            rtt_sd: Span::from_millis(10),
            srtt: Span::from_millis(50),
            base: Span::from_millis(40),
            base_age: Span::from_millis(350),
            loss_ratio: 0.02,
            ce_ratio: 0.125,
            app_limited_share: 0.25,
            delivery_pps: 300.0,
            delivery_max_pps: 400.0,
            drain: 0.5,
            rtt_change_per_s: -0.25,
            intervals_since_loss: 7,
            ..Interval::default()
        },
        action: [0.5, -0.75],
    }
}

fn value(name: &str, moment: &Moment) -> f64 {
    f64::from(find(name).expect(name).value(moment))
}

#[test]
fn every_feature_has_the_scaling_that_is_written() {
    for (name, expected) in [
        ("cwnd_change", 0.5),
        ("throughput_ratio", 0.5),
        ("throughput_max", 0.125),
        ("throughput_change", 1.25),
        ("pacing_ratio", 30.0 * 0.012 / 0.055 / 10.0),
        ("pacing_ratio_2", 30.0 * 0.012 / 0.055 / 10.0),
        ("lost_rate", 0.024),
        ("lost_rate_5", 0.12),
        ("acked_ratio", 50.0 / 30.0),
        ("interval_s", 0.1),
        ("interval_ratio", 0.25),
        ("srtt_ratio", 40.0 / 55.0),
        ("delay_metric", 50.0 / 55.0),
        ("rtt_over_min", 1.5),
        ("srtt_over_min", 1.375),
        ("rtt_smallest", 0.08),
        ("cwnd_ratio", 0.8 * 30.0 * 0.012 / 0.4),
        ("bdp_ratio", 0.4 / (30.0 * 0.012)),
        ("zero", 0.0),
        ("rtt_mean", 0.6),
        ("rtt_ratio", 40.0 / 60.0),
        ("rtt_excess", 0.2),
        ("ack_gap", 0.2),
        ("latency_gradient", 0.5),
        ("latency_ratio", 1.5),
        ("send_ratio", 1.2),
        ("loss_ratio", 0.25),
        ("throughput", f64::ln(6.0) / 10.0),
        ("delivery_rate", f64::ln(8.0) / 10.0),
        ("inflight_ratio", 0.5),
        ("srtt", 0.55),
        ("cwnd", f64::ln(30.0) / 10.0),
        ("queue", f64::ln(1.5)),
        ("rtt_rise", f64::ln(1.25)),
        ("rtt_spread", 0.25),
        ("loss_log", f64::ln(3.0) / 5.0),
        ("ce_ratio", 0.125),
        ("drain", 0.5),
        ("rtt_change", -0.25),
        ("base_rtt", f64::ln(0.8) / 3.0),
        ("base_age", f64::ln(8.0) / 8.0),
        ("own_best", 0.75),
        ("app_limited", 0.25),
        ("since_loss", f64::ln(8.0) / 6.0),
        ("action_0", 0.5),
        ("action_1", -0.75),
    ] {
        let value = value(name, &moment());
        assert!((value - expected).abs() < 1e-6, "{name}: {value} instead of {expected}");
    }
}

#[test]
fn every_feature_is_cut_to_its_range() {
    let far = |sign: f64| {
        let mut moment = moment();
        moment.cwnd_change = sign * 1e9;
        moment.metrics.rtt_slope = sign * 1e9;
        moment.metrics.rtt_mean_ms = if sign > 0.0 { 1e9 } else { 1e-9 };
        moment.metrics.srtt_ms = 1e9;
        moment.metrics.ack_gap_ms = 1e9;
        moment
    };
    assert_eq!(value("cwnd_change", &far(1.0)), 3.0);
    assert_eq!(value("cwnd_change", &far(-1.0)), -3.0);
    assert_eq!(value("latency_gradient", &far(-1.0)), -10.0);
    assert_eq!(value("rtt_excess", &far(-1.0)), 0.0);
    for name in ["rtt_mean", "rtt_excess", "ack_gap", "srtt", "latency_ratio"] {
        assert_eq!(value(name, &far(1.0)), 10.0, "{name}");
    }
    assert_eq!(value("rtt_ratio", &far(-1.0)), 1.0);
}

#[test]
fn every_signal_is_cut_to_its_range() {
    let mut far = moment();
    far.signals = Interval {
        rtt_min: Span::from_millis(10_000),
        rtt_mean: Span::MAX,
        rtt_sd: Span::MAX,
        base: Span::from_millis(40),
        base_age: Span::MAX,
        loss_ratio: 1.0,
        rtt_change_per_s: 1e9,
        delivery_max_pps: 1e-9,
        intervals_since_loss: u32::MAX,
        ..far.signals
    };
    for (name, expected) in [
        ("queue", 3.0),
        ("rtt_rise", 2.0),
        ("rtt_spread", 2.0),
        ("rtt_change", 1.0),
        ("base_age", 2.0),
        ("own_best", 1.5),
        ("since_loss", 1.0),
    ] {
        assert_eq!(value(name, &far), expected, "{name}");
    }
    assert!((value("loss_log", &far) - f64::ln(101.0) / 5.0).abs() < 1e-6);
    far.signals.base = Span(1);
    assert_eq!(value("base_rtt", &far), -3.0);
}

#[test]
fn only_features_of_signals_ask_for_them() {
    let asking: Vec<_> = FEATURES.iter().filter(|feature| feature.uses_signals()).collect();
    let names: Vec<_> = asking.iter().map(|feature| feature.name).collect();
    assert_eq!((names[0], names[names.len() - 1], names.len()), ("queue", "since_loss", 13));
    // None of them looks at the flow's window, rate or the metrics.
    let alone = Moment { signals: moment().signals, ..Moment::default() };
    assert!(asking.iter().all(|feature| feature.value(&alone) == feature.value(&moment())));
}

#[test]
fn a_interval_without_samples_shows_the_smoothed_round_trip() {
    let mut moment = moment();
    moment.metrics.rtt_mean_ms = 0.0;
    assert!((value("rtt_mean", &moment) - 0.55).abs() < 1e-6);
    assert!((value("rtt_excess", &moment) - 0.15).abs() < 1e-6);
}

#[test]
fn nothing_acknowledged_is_told_from_nothing_sent() {
    let mut moment = moment();
    moment.metrics.acked_packets = 0.0;
    assert_eq!(value("send_ratio", &moment), 10.0);
    moment.sent_packets = 0.0;
    assert_eq!(value("send_ratio", &moment), 1.0);
}

#[test]
fn nothing_at_all_is_finite() {
    for feature in FEATURES {
        let (low, high) = feature.range();
        let value = feature.value(&Moment::default());
        assert!((low..=high).contains(&value), "{}: {value}", feature.name);
    }
}

#[test]
fn names_are_unique_and_every_scale_states_its_range() {
    for (index, feature) in FEATURES.iter().enumerate() {
        assert!(FEATURES[..index].iter().all(|other| other.name != feature.name));
        let (low, high) = feature.range();
        let range = format!("in [{low}, {high}]");
        assert!(feature.scale.ends_with(&range), "{}: {}", feature.name, feature.scale);
    }
}

#[test]
fn a_history_holds_the_latest_vectors_oldest_first() {
    let mut history = History::new(3, 2);
    let mut pushed: Vec<[f32; 2]> = vec![[0.0; 2]; 3];
    for number in 1..20 {
        let vector = [number as f32, -(number as f32)];
        history.push(vector.into_iter());
        pushed.push(vector);
        assert_eq!(history.rows(), pushed[pushed.len() - 3..].concat());
    }
}
