//! Paths on which users of other implementations reported faults, each with the value that a standard or Linux gives.
use crate::support::draw::run;
use ackademy::sim::record::{FlowSeries, Outcome};

/// One flow over a dumbbell of 40 ms, unless the link says otherwise.
fn alone(seconds: u32, link: &str, flow: &str) -> Outcome {
    let text = format!(
        "duration_s = {seconds}\nsample_interval_ms = 20\n[dumbbell]\nrtt_ms = 40\n\
         [dumbbell.bottleneck]\n{link}\n[[flow]]\n{flow}\n"
    );
    run(&text, 1)
}

/// What a column holds in a period.
fn within<'a>(
    series: &'a FlowSeries,
    column: &'a [f64],
    from_s: f64,
    until_s: f64,
) -> impl Iterator<Item = f64> + 'a {
    let rows = series.time_s.iter().zip(column);
    rows.filter(move |(at, _)| (from_s..until_s).contains(at)).map(|row| *row.1)
}

fn largest(series: &FlowSeries, column: &[f64], from_s: f64, until_s: f64) -> f64 {
    within(series, column, from_s, until_s).fold(f64::NAN, f64::max)
}

fn least(series: &FlowSeries, column: &[f64], from_s: f64, until_s: f64) -> f64 {
    within(series, column, from_s, until_s).fold(f64::NAN, f64::min)
}

/// The receiver's window is no limit of the application (draft-cheng-iccrg-delivery-rate-estimation section 3.4), so a start-up ends: no
/// gain of BBR or PCC is above 3. Where the link then becomes slower, BBR follows. PCC does not: behind a window every rate above the
/// link's delivers the same, and its utility shows no difference.
#[test]
fn a_start_behind_a_full_receiver_window_ends() {
    for controller in ["bbr1", "bbr3", "vivace", "pcc_allegro"] {
        let link = "rate_schedule = [[0, 100], [10, 10]]\nqueue = { kind = \"drop_tail\", packets = 1000 }";
        let sender = "sender = { receiver_window_packets = 400 }";
        let outcome = alone(60, link, &format!("controller = \"{controller}\"\n{sender}"));
        let series = &outcome.flow_series;
        let fast = largest(series, &series.pacing_mbps, 2.0, 10.0);
        let slow = largest(series, &series.pacing_mbps, 30.0, 60.0);
        let srtt = largest(series, &series.srtt_ms, 30.0, 60.0);
        assert!(fast < 300.0, "{controller}: {fast} Mb/s on 100");
        assert!(slow < 30.0, "{controller}: {slow} Mb/s on 10");
        // 400 packets of 1500 bytes at 10 Mb/s.
        assert!(srtt < 490.0, "{controller}: {srtt} ms");
    }
}

/// RFC 5681 section 3.1: the threshold is constant while the timer repeats the same segment.
#[test]
fn time_outs_that_repeat_reduce_the_threshold_once() {
    let link = "rate_mbps = 20\nqueue = { kind = \"drop_tail\", packets = 70 }\n\
                loss = { kind = \"bernoulli\", ratio = 1.0, from_s = 5, until_s = 10 }";
    let window = "cubic\"\nparams = { reduce_from = \"window\" }\n#";
    for controller in ["prague", "illinois", "learningcc", "new_reno", window] {
        let outcome = alone(30, link, &format!("controller = \"{controller}\""));
        let series = &outcome.flow_series;
        let before = largest(series, &series.cwnd_packets, 4.9, 5.3);
        let after = least(series, &series.ssthresh_packets, 5.0, 12.0);
        assert!(outcome.flows[0].timeouts >= 4, "{controller}: {:?}", outcome.flows[0]);
        assert!(after > 0.49 * before, "{controller}: {before} -> {after} packets");
    }
}

/// RFC 3168 section 6.1.5: a retransmission is not ECN-capable, so where all that may be marked is marked, what was lost once is not.
#[test]
fn only_first_transmissions_are_marked_with_classic_ecn() {
    let link = "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 200 }\nforge_ce = 1.0\n\
                loss = { kind = \"bernoulli\", ratio = 0.1 }";
    for (ecn, whole) in [("classic", 0.9), ("accurate", 1.0)] {
        let flow = format!("controller = \"cubic\"\nsender = {{ ecn = \"{ecn}\" }}");
        let flow = &alone(20, link, &flow).flows[0];
        let marked = flow.ce_marked_bytes as f64 / flow.delivered_bytes as f64;
        assert!((marked - whole).abs() < 0.02, "{ecn}: {marked} {flow:?}");
    }
}

/// A probe for what was only late is one of the retransmissions that must all be reported before a reduction is undone: its report
/// alone does not undo the answer to a packet that was lost beside it (Linux, `tcp_init_undo`).
#[test]
fn the_report_of_a_needless_probe_keeps_the_answer_to_a_loss() {
    let run = |tlp: bool| {
        run(
            &format!(
                "duration_s = 4.9\nsample_interval_ms = 1\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 100\n\
             queue = {{ kind = \"drop_tail\", packets = 1000 }}\ndelay_schedule = [[0, 20], [3.9, 120], [4.05, 20]]\n\
             loss = {{ kind = \"bernoulli\", ratio = 1.0, from_s = 4.00115, until_s = 4.00125 }}\n\
             [[flow]]\ncontroller = \"new_reno\"\nsender = {{ tlp = {tlp}, ack_every = 1 }}\n\
             traffic = {{ kind = \"writes\", count = 20, write_bytes = 29200, interval_ms = 1000, \
             send_buffer_bytes = 1000000 }}\n"
            ),
            1,
        )
    };
    let window = |outcome: &Outcome| {
        let series = &outcome.flow_series;
        (
            largest(series, &series.cwnd_packets, 3.9, 4.0),
            largest(series, &series.cwnd_packets, 4.5, 4.9),
        )
    };
    let (with, without) = (run(true), run(false));
    assert_eq!((with.flows[0].dropped_packets, without.flows[0].dropped_packets), (1, 1));
    assert!(with.flows[0].retransmitted_packets > without.flows[0].retransmitted_packets);
    for outcome in [&with, &without] {
        let (before, after) = window(outcome);
        assert!(after <= 0.51 * before, "{before} -> {after} packets");
    }
}

/// draft-ietf-ccwg-bbr: the estimate of the bandwidth follows a decrease within two cycles of probing, whatever the queue holds.
#[test]
fn bbr3_finds_a_tenth_of_the_rate_behind_a_deep_queue() {
    let link =
        "rate_schedule = [[0, 100], [10, 10]]\nqueue = { kind = \"drop_tail\", packets = 2000 }";
    let outcome = alone(60, link, "controller = \"bbr3\"");
    let series = &outcome.flow_series;
    let pacing = largest(series, &series.pacing_mbps, 35.0, 60.0);
    let srtt = largest(series, &series.srtt_ms, 35.0, 60.0);
    assert!(pacing < 15.0, "{pacing} Mb/s on 10");
    assert!(srtt < 200.0, "{srtt} ms");
}

/// Extra acknowledgements are counted from the start of a burst (Linux `bbr_update_ack_aggregation`, Google's v3), so pauses
/// leave no allowance behind.
#[test]
fn the_window_of_a_source_that_pauses_is_bounded_in_both_bbrs() {
    let link =
        "rate_schedule = [[0, 10], [20, 2]]\nqueue = { kind = \"drop_tail\", packets = 5000 }";
    let traffic = "traffic = { kind = \"app_limited\", rate_mbps = 3, write_bytes = 36500 }";
    let window = |controller: &str| {
        let outcome = alone(40, link, &format!("controller = \"{controller}\"\n{traffic}"));
        let series = &outcome.flow_series;
        largest(series, &series.cwnd_packets, 0.0, 40.0)
    };
    let (old, new) = (window("bbr1"), window("bbr3"));
    assert!(new < 2.0 * old, "{new} packets, bbr1 {old}");
}

/// Linux undoes a spurious time-out and restores the window with the next acknowledgement: nothing keeps the sender silent for
/// longer than the timer's own back-off.
#[test]
fn both_bbrs_send_again_soon_after_an_outage() {
    for controller in ["bbr1", "bbr3"] {
        let link = "rate_schedule = [[0, 10], [5, 0], [8, 10]]\nqueue = { kind = \"drop_tail\", packets = 30 }";
        let outcome = alone(20, link, &format!("controller = \"{controller}\""));
        let series = &outcome.flow_series;
        let (mut last, mut bytes, mut silence) = (8.0, 0, 0.0_f64);
        for (&at, &arrived) in series.time_s.iter().zip(&series.arrived_bytes) {
            if at >= 8.0 && arrived > bytes {
                silence = silence.max(at - last);
                last = at;
            }
            bytes = bytes.max(arrived);
        }
        assert!(silence < 1.5, "{controller}: {silence} s");
    }
}

/// Dong et al., NSDI 2015, section 3.2: a start doubles only after an interval that was judged better; a pause judges nothing. At twice
/// the link's rate half is lost.
#[test]
fn a_source_that_pauses_does_not_double_the_rate_of_pcc() {
    let link = "rate_mbps = 20\nqueue = { kind = \"drop_tail\", packets = 100 }";
    let traffic = "traffic = { kind = \"on_off\", mean_bytes = 300_000, mean_off_s = 3 }";
    for controller in ["pcc_allegro", "vivace", "pcc_quic"] {
        let outcome = alone(120, link, &format!("controller = \"{controller}\"\n{traffic}"));
        let (flow, series) = (&outcome.flows[0], &outcome.flow_series);
        let loss = flow.dropped_packets as f64 / flow.sent_packets as f64;
        let pacing = largest(series, &series.pacing_mbps, 0.0, 120.0);
        assert!(loss < 0.5, "{controller}: {loss}");
        assert!(pacing < 44.0, "{controller}: {pacing} Mb/s on 20");
    }
}
