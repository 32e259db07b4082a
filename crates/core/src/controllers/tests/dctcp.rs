use super::*;
use crate::controllers::test_support::{MSS, close, flow, simulated};
use crate::units::{Bytes, Span};

/// A window of 100 packets in congestion avoidance.
fn dctcp(alpha: f64) -> Dctcp {
    let mut dctcp = Dctcp::new(&flow(), &Params::defaults(SPEC.params));
    (dctcp.window.cwnd, dctcp.window.ssthresh, dctcp.alpha) = (100.0, 50.0, alpha);
    dctcp.round_from = at(100);
    dctcp
}

fn at(ms: u64) -> Time {
    Time(0) + Span::from_millis(ms)
}

/// An acknowledgement at `now_ms` of packets that left 100 ms ago.
fn ack(now_ms: u64, packets: u64, marked: u64) -> Ack {
    Ack {
        now: at(now_ms),
        sent_at: at(now_ms - 100),
        rtt: Span::from_millis(100),
        srtt: Span::from_millis(100),
        acked: Bytes(packets * MSS),
        ce_marked: Bytes(marked * MSS),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

#[test]
fn alpha_follows_the_share_of_marked_bytes_of_each_round_trip_with_a_sixteenth() {
    let mut dctcp = dctcp(0.0);
    dctcp.on_ack(&ack(150, 60, 0));
    dctcp.on_ack(&ack(190, 10, 10));
    close(dctcp.alpha, 0.0);
    dctcp.on_ack(&ack(200, 10, 10)); // ends the round trip: 20 of 80
    close(dctcp.alpha, 0.25 / 16.0);
    dctcp.on_ack(&ack(300, 50, 0));
    close(dctcp.alpha, 0.25 / 16.0 * 15.0 / 16.0);
}

#[test]
fn it_assumes_at_first_that_all_is_marked() {
    let mut dctcp = dctcp(Params::defaults(SPEC.params).number("alpha"));
    dctcp.on_ack(&ack(150, 1, 1));
    close(dctcp.window.cwnd, 50.0);
}

#[test]
fn a_mark_takes_half_of_alpha_off_once_per_round_trip() {
    let mut dctcp = dctcp(0.5);
    dctcp.on_ack(&ack(150, 1, 1));
    close(dctcp.window.cwnd, 75.0);
    dctcp.on_ack(&ack(190, 1, 1));
    dctcp.on_ack(&ack(249, 1, 1));
    close(dctcp.window.cwnd, 75.0);
    let alpha = dctcp.alpha;
    dctcp.on_ack(&ack(250, 1, 1));
    close(dctcp.window.cwnd, 75.0 * (1.0 - alpha / 2.0));
    assert_eq!(dctcp.counters(), [("reductions_by_marks", 2.0)]);
}

#[test]
fn the_window_does_not_grow_in_the_round_trip_after_a_mark_and_then_as_renos() {
    let mut dctcp = dctcp(0.5);
    dctcp.on_ack(&ack(150, 1, 1));
    dctcp.on_ack(&ack(200, 1, 0));
    close(dctcp.window.cwnd, 75.0);
    dctcp.on_ack(&ack(250, 1, 0));
    close(dctcp.window.cwnd, 75.0 + 1.0 / 75.0);
}

#[test]
fn a_mark_ends_slow_start() {
    let mut dctcp = dctcp(1.0);
    dctcp.window.ssthresh = f64::INFINITY;
    dctcp.on_ack(&ack(150, 1, 1));
    close(dctcp.window.cwnd, 50.0);
    assert!(!dctcp.window.in_slow_start());
}

#[test]
fn two_packets_remain() {
    let mut dctcp = dctcp(1.0);
    dctcp.window.cwnd = 2.5;
    dctcp.on_ack(&ack(150, 1, 1));
    close(dctcp.window.cwnd, 2.0);
}

#[test]
fn a_loss_halves_whatever_alpha_is() {
    let mut dctcp = dctcp(0.0);
    let loss =
        Loss { now: at(150), inflight: Bytes(100 * MSS), kind: LossKind::Gap, ..Loss::default() };
    dctcp.on_loss(&loss);
    close(dctcp.window.cwnd, 50.0);
}

/// Goodput in Mb/s and mean round trip in ms of each flow, on 100 Mb/s and 10 ms with a threshold of `mark` packets.
fn marked(controller: &str, mark: u64) -> (Vec<f64>, Vec<f64>) {
    let text = format!(
        "duration_s = 20\n[sender]\necn = \"accurate\"\n[dumbbell]\nrtt_ms = 10\n\
         [dumbbell.bottleneck]\nrate_mbps = 100\n\
         queue = {{ kind = \"step\", mark_packets = {mark}, packets = 1000 }}\n\
         [[flow]]\ncontroller = \"{controller}\"\ncount = 2\nstart_spread_s = 0.1\n"
    );
    simulated(&text).into_iter().unzip()
}

#[test]
fn behind_a_step_two_flows_fill_the_link_fairly_with_the_threshold_queued() {
    // 20 packets are 2.4 ms; the rule of thumb for full use is a seventh of 83 packets (RFC 8257 section 4).
    let (mbps, rtt_ms) = marked("dctcp", 20);
    assert!(mbps.iter().sum::<f64>() > 92.0, "{mbps:?} Mb/s");
    assert!(mbps.iter().all(|rate| *rate > 40.0), "{mbps:?} Mb/s");
    assert!(rtt_ms.iter().all(|rtt| *rtt < 14.0), "{rtt_ms:?} ms");
}
