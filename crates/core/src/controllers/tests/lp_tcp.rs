use super::*;
use crate::control::{LossKind, Recovery};
use crate::params::{self, ParamValue};
use crate::policy::grown::Arrays;
use crate::units::{Bytes, Time};

const MSS: u64 = 1000;

/// A policy whose estimate is 0.25 up to a window of 20 packets and 0.75 beyond.
fn policy(metadata: &[(&str, &str)]) -> Vec<u8> {
    let stump = Arrays {
        root: vec![0],
        feature: vec![0, 255, 255],
        threshold: vec![20.0, 0.0, 0.0],
        child: vec![1, 0, 0],
        value: vec![0.0, 0.25, 0.75],
    };
    stump.to_bytes(metadata)
}

/// In congestion avoidance with a window of `cwnd` packets.
fn lp_tcp(cwnd: u64, threshold: f64) -> LpTcp {
    lp_tcp_with(cwnd, threshold, &[])
}

fn lp_tcp_with(cwnd: u64, threshold: f64, settings: &[(&str, ParamValue)]) -> LpTcp {
    let flow = FlowInfo {
        mss: Bytes(MSS),
        initial_cwnd: Bytes(cwnd * MSS),
        initial_ssthresh: Bytes(2 * MSS),
        recovery: Recovery::Ns2,
        paces: false,
        start: Time(0),
        seed: 1,
    };
    let mut given = vec![
        ("policy".to_owned(), ParamValue::Word("forest".to_owned())),
        ("threshold".to_owned(), ParamValue::Number(threshold)),
    ];
    given.extend(settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
    let mut load = |_: &str, _| Ok(policy(&[("features", "kong2018-55"), ("threshold", "0.9")]));
    let opened = params::open(SPEC.params, &given, &mut load).unwrap();
    LpTcp::new(&flow, &Params::resolve(SPEC.params, &opened).unwrap())
}

/// A new packet behind others in flight.
fn send() -> Send {
    Send { size: Bytes(MSS), inflight: Bytes(5 * MSS), order: 6, ..Send::default() }
}

fn packets(lp_tcp: &LpTcp) -> u64 {
    lp_tcp.control().cwnd.0 / MSS
}

#[test]
fn a_packet_is_sent_only_if_its_loss_is_less_probable_than_the_threshold() {
    assert_eq!(lp_tcp(30, 0.76).on_send(&send()), SendAction::Send);
    assert_eq!(lp_tcp(30, 0.75).on_send(&send()), SendAction::Hold);
    assert_eq!(lp_tcp(20, 0.75).on_send(&send()), SendAction::Send);
}

#[test]
fn a_held_packet_takes_one_packet_off_the_window_down_to_2() {
    let mut lp_tcp = lp_tcp(4, 0.25);
    let windows = [(); 4].map(|()| {
        assert_eq!(lp_tcp.on_send(&send()), SendAction::Hold);
        packets(&lp_tcp)
    });
    assert_eq!(windows, [3, 2, 2, 2]);
    assert_eq!(lp_tcp.counters(), [("asked", 4.0), ("held", 4.0)]);
}

#[test]
fn a_held_packet_at_ssthresh_does_not_lead_to_slow_start_because_ssthresh_follows() {
    let phase_after = |settings: &[(&str, ParamValue)]| {
        let mut lp_tcp = lp_tcp_with(30, 0.1, settings);
        lp_tcp.on_loss(&Loss { kind: LossKind::Gap, ..Loss::default() });
        lp_tcp.on_ack(&Ack { acked: Bytes(MSS), cwnd_limited: 1, ..Ack::default() });
        assert_eq!(lp_tcp.on_send(&send()), SendAction::Hold);
        (lp_tcp.window.in_slow_start(), packets(&lp_tcp))
    };
    assert_eq!(phase_after(&[]), (false, 14));
    let back = [("below_ssthresh", ParamValue::Word("slow_start".to_owned()))];
    assert_eq!(phase_after(&back), (true, 14));
}

#[test]
fn the_floor_of_held_packets_can_be_set() {
    let mut lp_tcp = lp_tcp_with(4, 0.25, &[("cwnd_floor", ParamValue::Number(3.0))]);
    (0..3).for_each(|_| assert_eq!(lp_tcp.on_send(&send()), SendAction::Hold));
    assert_eq!(packets(&lp_tcp), 3);
}

#[test]
fn retransmissions_are_never_kept_back() {
    let retransmission = Send { retransmission: 1, ..send() };
    assert_eq!(lp_tcp(30, 0.1).on_send(&retransmission), SendAction::Send);
}

#[test]
fn with_nothing_in_flight_a_packet_goes() {
    let alone = Send { inflight: Bytes(0), order: 1, ..send() };
    assert_eq!(lp_tcp(30, 0.1).on_send(&alone), SendAction::Send);
}

#[test]
fn slow_start_and_recovery_are_new_reno_s() {
    let mut lp_tcp = lp_tcp(30, 0.1);
    lp_tcp.on_loss(&Loss { kind: LossKind::Gap, ..Loss::default() });
    assert_eq!(lp_tcp.on_send(&send()), SendAction::Send, "in recovery");
    lp_tcp.on_ack(&Ack { acked: Bytes(MSS), cwnd_limited: 1, ..Ack::default() });
    assert_eq!(lp_tcp.on_send(&send()), SendAction::Hold, "after it");
    lp_tcp.on_loss(&Loss { kind: LossKind::Timeout, ..Loss::default() });
    lp_tcp.on_ack(&Ack { acked: Bytes(MSS), cwnd_limited: 1, ..Ack::default() });
    assert_eq!(lp_tcp.on_send(&send()), SendAction::Send, "in slow start");
    assert_eq!(packets(&lp_tcp), 2);
}

#[test]
fn congestion_avoidance_adds_a_packet_in_a_window_of_acks() {
    let mut lp_tcp = lp_tcp(20, 0.9);
    let ack = Ack { acked: Bytes(MSS), cwnd_limited: 1, ..Ack::default() };
    (0..21).for_each(|_| lp_tcp.on_ack(&ack));
    assert_eq!(packets(&lp_tcp), 21);
}

#[test]
fn without_a_threshold_the_policy_s_own_holds() {
    assert_eq!(lp_tcp(30, 0.0).on_send(&send()), SendAction::Send);
}

#[test]
fn a_policy_over_other_features_is_refused() {
    let refused = |metadata: &[(&str, &str)]| Policy::read(&policy(metadata)).unwrap_err();
    assert_eq!(refused(&[]), "features = \"\": allowed is \"kong2018-55\"");
    assert_eq!(refused(&[("features", "x")]), "features = \"x\": allowed is \"kong2018-55\"");
    assert_eq!(
        refused(&[("features", "kong2018-55"), ("threshold", "2")]),
        "threshold = \"2\": allowed is a number in (0, 1]"
    );
}
