#![allow(clippy::float_cmp)] // exact: whole numbers, bounds and untouched values
use super::*;

/// An interval of 50 packets in 100 ms over a path of 40 ms, now at 60.
fn moment() -> Moment {
    Moment {
        metrics: Metrics {
            acked_packets: 50.0,
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
        cwnd_change: 5.0,
        sent_packets: 60.0,
        delivery_rate_mbps: 7.0,
    }
}

fn value(name: &str, moment: &Moment) -> f64 {
    f64::from(find(name).expect(name).value(moment))
}

#[test]
fn every_feature_has_the_scaling_that_is_written() {
    for (name, expected) in [
        ("cwnd_change", 0.5),
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
