//! What records made by hand decide in the draft's example cases, over a simulated path.
//!
//! A run without the event says when the state begins in which the case wants it. Both runs are the same
//! until then, so the event falls into that state.
use super::draft::{DEEP, RATE, SHALLOW, bounds, changing, leaves, must_enter, share};
use super::*;

/// An application of 5 Mb/s over 10 Mb/s and 100 ms. Losses end its start-up, then it probes.
const LIMITED: &str = "traffic = { kind = \"app_limited\", rate_mbps = 5, write_bytes = 1460 }\n\
                       params = { probe_rtt_interval_s = 600 }";
const LOSS: &str = "loss = { kind = \"bernoulli\", ratio = 0.2, from_s = 2, until_s = 2.4 }";

#[test]
fn case_06_over_a_link_whose_rate_falls_below_that_of_the_application() {
    let falling = changing(10.0, 8.0, 4.0, 30);
    let steps = watch(&path(12.0, 100.0, &format!("{falling}\n{LOSS}"), LIMITED));
    let down = leaves(&steps, must_enter(&steps, 0, State::Up));
    let [before, after] = [&steps[down - 1].bbr, &steps[down].bbr];
    let loss = steps[down].loss.expect("a loss ends the probe");
    assert!(steps[down].secs() > 8.0 && loss.app_limited == 1 && !before.full.now);
    assert!(loss.lost_since.0 as f64 > 0.02 * loss.tx_inflight.0 as f64);
    assert_eq!((after.state, after.probe.too_high), (State::Down, true));
    assert!(before.longterm < f64::INFINITY);
    close(after.longterm, before.longterm); // as in the pseudocode
}

#[test]
fn case_07_over_a_link_that_carries_more_than_the_application_sends() {
    let clean = "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 500 }";
    let steps = watch(&path(40.0, 100.0, clean, LIMITED));
    assert!(steps.iter().all(|step| step.bbr.state == State::Startup));
    let steps = watch(&path(40.0, 100.0, &format!("{clean}\n{LOSS}"), LIMITED));
    let up = must_enter(&steps, 0, State::Up);
    assert!(steps[up].secs() < 6.0, "{} s", steps[up].secs());
    assert!(steps[up..].iter().all(|step| step.bbr.state == State::Up && step.loss.is_none()));
    assert!(steps.last().unwrap().bbr.newest.app_limited);
}

#[test]
fn case_15_over_a_link_whose_rate_rises_tenfold() {
    let steps = watch(&path(20.0, 40.0, &changing(10.0, 4.0, 100.0, 20), ""));
    let changed = steps.iter().position(|step| step.secs() > 4.0).unwrap();
    let up = must_enter(&steps, changed, State::Up);
    let probe = &steps[up..leaves(&steps, up)];
    let starts = probe.chunk_by(|step, next| step.bbr.rounds == next.bbr.rounds);
    let bounds: Vec<f64> = starts.map(|round| round[0].bbr.longterm).collect();
    let growth = bounds.windows(2).map(|pair| pair[1] - pair[0]);
    // What was acknowledged towards the next packet counts in the next round, too.
    let growth: Vec<f64> = growth.skip_while(|&grown| grown <= 0.0).take(4).collect();
    for (grown, expected) in growth.iter().zip([2.0_f64, 4.0, 8.0, 16.0]) {
        assert!((grown - expected).abs() <= 1.0, "{growth:?}");
    }
    assert!(bounds.last().unwrap() > &(100e6 / 12_000.0 * 0.04), "more than the path holds");
}

/// Two cycles are at most two searches for the smallest round trip, each with the drain of what waits.
#[test]
fn case_16_behind_queues_of_any_depth_and_rates_drawn_at_random() {
    let mut rng = Rng::new(16);
    for index in 0..20 {
        let [rate, factor, rtt_ms] = [(10.0, 60.0), (4.0, 15.0), (10.0, 120.0)]
            .map(|(low, high): (f64, f64)| low * (high / low).powf(rng.uniform()));
        let (low, packets) = (rate / factor, [200, 1000, 2000, 5000, 20_000][index % 5]);
        let case = format!("{rate} to {low} Mb/s, {rtt_ms} ms, {packets} packets");
        let steps = watch(&path(40.0, rtt_ms, &changing(rate, 6.0, low, packets), ""));
        let adapted =
            steps.iter().rposition(|step| step.bbr.max_bw() * 12e-3 > 1.05 * low).unwrap();
        assert!(steps[adapted].secs() < 31.0, "{case}: after {} s", steps[adapted].secs() - 6.0);
        let late = steps.partition_point(|step| step.secs() < 36.0);
        let found = share(&steps[late], steps.last().unwrap(), low * 1e6 / 12e3);
        assert!(found > 0.9, "{case}: {found} of the link");
    }
}

/// 100 to 10 Mb/s over 40 ms, where a tenth of the product is 33 packets.
#[test]
fn case_16_leaves_no_queue_behind_two_thousand_packets() {
    let steps = watch(&path(30.0, 40.0, &changing(100.0, 4.0, 10.0, 2000), ""));
    assert!(steps.iter().all(|step| step.loss.is_none()));
    let late = steps.partition_point(|step| step.secs() < 20.0);
    for step in &steps[late..] {
        assert!(step.ack.srtt < Span::from_millis(100), "{:?} at {} s", step.ack.srtt, step.secs());
        assert!(step.bbr.rtt.value < Span::from_millis(45), "{:?}", step.bbr.rtt.value);
    }
}

/// A source of 25 packets each 97 ms over 10 Mb/s and 40 ms, whose product is 33 packets.
#[test]
fn a_source_that_pauses_keeps_a_window_of_two_products_and_a_burst() {
    let bottleneck = "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 5000 }";
    let media = "traffic = { kind = \"app_limited\", rate_mbps = 3, write_bytes = 36500 }";
    let steps = watch(&path(20.0, 40.0, bottleneck, media));
    // The estimate of the rate may be three times the link's where a burst's acknowledgements come together.
    let most = steps.iter().map(|step| step.bbr.extra.value()).fold(0.0, f64::max);
    assert!(most <= 25.0, "{most} packets beyond the rate of one burst");
    assert!(steps.iter().all(|step| step.bbr.cwnd < 110.0), "{}", steps.last().unwrap().bbr.cwnd);
}

/// 10 Mb/s and 40 ms behind 30 packets, where nothing is served for three seconds. A search for the smallest round trip
/// is due when the first packet comes back, and what is in flight is lost: with the window of a search nothing would leave.
#[test]
fn no_search_begins_with_the_first_packet_after_an_outage() {
    let outage = "rate_schedule = [[0, 10], [5, 0], [8, 10]]\nqueue = { kind = \"drop_tail\", packets = 30 }";
    let steps = watch(&path(14.0, 40.0, outage, ""));
    let silence = steps.windows(2).map(|pair| pair[1].secs() - pair[0].secs()).fold(0.0, f64::max);
    assert!(silence < 3.0, "{silence} s without an acknowledgement or a time-out");
    let again = steps.partition_point(|step| step.secs() < 8.5);
    assert!(share(&steps[again], steps.last().unwrap(), 10e6 / 12_000.0) > 0.9);
}

/// Policed at 10 Mb/s after 8 MB, in front of a link of 20 Mb/s.
const POLICED: &str = "rate_mbps = 20\nqueue = { kind = \"drop_tail\", packets = 400 }\n\
                       policer = { rate_mbps = 10, burst_bytes = 8000000 }";

#[test]
fn case_17_over_a_policed_link() {
    let steps = watch(&path(40.0, 40.0, POLICED, ""));
    let first = steps.iter().position(|step| step.loss.is_some()).expect("the bucket empties");
    assert!(steps[first - 1].bbr.cycles() && steps[first].secs() > 5.0);
    let bounded = |step: &&Step| step.bbr.short.rate.max(step.bbr.short.inflight) < f64::INFINITY;
    assert!(steps.iter().find(bounded).is_some());
    let late = &steps[steps.partition_point(|step| step.secs() < 15.0)..];
    let tokens = 10e6 / 12_000.0;
    assert!(share(&late[0], late.last().unwrap(), tokens) > 0.95);
    // It loses what it sends faster than tokens come, in probes and until their loss shows. In most
    // rounds it does not.
    let (mut lost, mut lost_below) = (0.0, 0.0);
    for loss in late.iter().filter_map(|step| step.loss) {
        let sent = steps.partition_point(|step| step.now() <= loss.sent_at);
        let packets = loss.lost.0 as f64 / 1500.0;
        lost += packets;
        lost_below += if steps[sent - 1].bbr.pacing < 1.03 * tokens { packets } else { 0.0 };
    }
    assert!(lost_below < 0.02 * lost, "{lost_below} of {lost}");
    let rounds: Vec<bool> = late
        .chunk_by(|step, next| step.bbr.rounds == next.bbr.rounds)
        .map(|round| round.iter().any(|step| step.loss.is_some()))
        .collect();
    let lossy = rounds.iter().filter(|&&lossy| lossy).count();
    assert!(lossy * 5 < rounds.len(), "{lossy} of {} rounds", rounds.len());
}

#[test]
fn case_18_over_a_path_that_reorders_in_a_probe() {
    let before = watch(&path(5.0, 40.0, DEEP, ""));
    let at = before[must_enter(&before, 0, State::Up)].secs() + 0.045;
    // What leaves in 3 ms overtakes 12 ms.
    let dip =
        format!("keep_order = false\ndelay_schedule = [[0, 20], [{at}, 8], [{}, 20]]", at + 0.003);
    let steps = watch(&path(5.0, 40.0, &format!("{DEEP}\n{dip}"), ""));
    let is = |kind| move |step: &Step| step.loss.is_some_and(|loss| loss.kind == kind);
    let gap = steps.iter().position(is(LossKind::Gap)).expect("a loss is declared");
    let back = steps.iter().position(is(LossKind::Spurious)).expect("it was none");
    let before = &steps[gap - 1].bbr;
    assert_eq!(before.state, State::Up);
    let lossy = &steps[back - 1].bbr;
    assert_eq!((lossy.state, lossy.undo.state), (State::Down, Some(State::Up)));
    assert_eq!((lossy.undo.short, lossy.undo.longterm), bounds(before));
    assert!(lossy.longterm < f64::INFINITY);
    let bbr = &steps[back].bbr;
    assert_eq!(bounds(bbr), bounds(before));
    assert!(bbr.cwnd >= before.cwnd && bbr.state == State::Refill);
    // More packets are late; after the last of them a refill leads back to the probe.
    let last = steps.iter().rposition(is(LossKind::Spurious)).unwrap();
    let again = must_enter(&steps, last, State::Up);
    assert!(steps[again].secs() - steps[last].secs() < 0.1);
    assert_eq!(bounds(&steps[again].bbr), bounds(before));
}

#[test]
fn case_21_over_a_path_that_loses_a_burst_in_a_probe() {
    let seldom = "params = { probe_rtt_interval_s = 600 }";
    let before = watch(&path(15.0, 40.0, SHALLOW, seldom));
    let first = must_enter(&before, 0, State::Up);
    let up = must_enter(&before, leaves(&before, first), State::Up);
    let at = before[up].secs() + 0.002;
    assert!(before[up].bbr.longterm < f64::INFINITY);
    let burst = format!(
        "loss = {{ kind = \"bernoulli\", ratio = 1, from_s = {at}, until_s = {} }}",
        at + 0.03
    );
    let steps = watch(&path(15.0, 40.0, &format!("{SHALLOW}\n{burst}"), seldom));
    let down = leaves(&steps, up);
    let [before, after] = [&steps[down - 1].bbr, &steps[down].bbr];
    assert!(steps[down].loss.is_some() && !before.full.now);
    assert_eq!((before.state, after.state), (State::Up, State::Down));
    close(after.longterm, 0.7 * before.target());
    assert!(after.longterm < before.longterm);
}

#[test]
fn case_22_over_a_link_whose_application_pauses() {
    // 500 packets each 600 ms, half of what the link carries.
    let traffic = "traffic = { kind = \"writes\", count = 100, write_bytes = 730000, interval_ms = 600, \
                   send_buffer_bytes = 10000000 }\nparams = { probe_rtt_interval_s = 600 }";
    let steps = watch(&path(60.0, 40.0, DEEP, traffic));
    let (mut low, mut refills) = (0, 0);
    for pair in steps.windows(2) {
        let (before, after) = (&pair[0].bbr, &pair[1].bbr);
        if before.state != State::Refill {
            continue;
        }
        if after.state != State::Refill {
            assert_eq!(after.state, State::Up);
            refills += 1;
        } else if after.newest.app_limited && after.newest.rate < before.max_bw() {
            assert!(after.max_bw().total_cmp(&before.max_bw()).is_eq(), "{}", after.max_bw());
            low += 1;
        }
    }
    assert!(low > 100 && refills > 10, "{low} low samples, {refills} times");
    let last = steps.last().unwrap();
    close(last.bbr.max_bw(), RATE);
    assert!((0.49..0.51).contains(&share(&steps[1000], last, RATE)));
}
