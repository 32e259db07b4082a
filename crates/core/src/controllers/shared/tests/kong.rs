//! A learner that always does the same, so that each rule of the loop shows by itself.
use super::*;
use crate::control::Recovery;
use crate::controllers::rl_tcp;
use crate::params::ParamValue;

const RTT_MS: u64 = 100;

/// Rewards a gain of utility by 2, a loss of it by -2; utility is the throughput.
struct Throughput;

impl Objective for Throughput {
    fn utility(&self, step: &Outcome, _min_rtt: Span) -> f64 {
        step.throughput_bps
    }
    fn reward(&self, change: f64) -> f64 {
        2.0 * change.signum()
    }
}

/// One action only, in congestion avoidance at 20 packets.
fn always(actions: &'static [f64], settings: &[(&str, &str)]) -> Kong<Throughput> {
    let flow = FlowInfo {
        mss: Bytes(1000),
        initial_cwnd: Bytes(20_000),
        initial_ssthresh: Bytes(20_000),
        recovery: Recovery::Ns2,
        paces: false,
        start: Time(0),
        seed: 1,
    };
    let given: Vec<_> = settings
        .iter()
        .map(|(name, word)| ((*name).to_owned(), ParamValue::Word((*word).to_owned())))
        .collect();
    let params = Params::resolve(rl_tcp::PARAMS, &given).unwrap();
    let axis = Axis { low: 0.0, high: 1.0, levels: 1 };
    let member = Member {
        actions,
        grid: Grid::new(vec![axis]),
        objective: Throughput,
        update: Update::ShiftedSarsa,
    };
    Kong::new(&flow, &params, member)
}

fn ack_at(now_ms: u64) -> Ack {
    let rtt = Span::from_millis(RTT_MS);
    Ack {
        now: Time(0) + Span::from_millis(now_ms),
        sent_at: Time(0) + Span::from_millis(now_ms - RTT_MS),
        rtt,
        srtt: rtt,
        min_rtt: rtt,
        acked: Bytes(1000),
        delivered: Bytes(1000 * now_ms),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

/// An ACK each 5 ms: 20 a round trip.
fn run(kong: &mut Kong<Throughput>, start_ms: u64, end_ms: u64) {
    for now_ms in (start_ms..end_ms).step_by(5) {
        kong.on_ack(&ack_at(now_ms));
    }
}

fn close(value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
}

fn count(kong: &Kong<Throughput>, name: &str) -> f64 {
    kong.counters().iter().find(|(counter, _)| *counter == name).unwrap().1
}

#[test]
fn the_first_step_has_no_action_and_each_later_one_lasts_a_round_trip() {
    let mut kong = always(&[3.0], &[]);
    run(&mut kong, 100, 200);
    close(kong.window.cwnd, 20.0, 0.0);
    run(&mut kong, 200, 500);
    close(count(&kong, "learning_steps"), 3.0, 0.0);
}

#[test]
fn an_action_is_spread_over_a_window_of_acks() {
    let mut kong = always(&[3.0], &[]);
    run(&mut kong, 100, 300);
    close(kong.window.cwnd, 23.0, 0.25);
}

#[test]
fn an_action_applied_as_a_step_comes_at_once() {
    let mut kong = always(&[3.0], &[("apply", "step")]);
    run(&mut kong, 100, 205);
    close(kong.window.cwnd, 23.0, 1e-9);
    run(&mut kong, 205, 300);
    close(kong.window.cwnd, 23.0, 1e-9);
}

#[test]
fn slow_start_is_new_reno_s_and_the_learner_idles() {
    let mut kong = always(&[3.0], &[]);
    kong.window.ssthresh = 1e6;
    run(&mut kong, 100, 300);
    close(kong.window.cwnd, 60.0, 1e-9);
    close(count(&kong, "learning_steps"), 0.0, 0.0);
}

#[test]
fn two_utilities_are_needed_before_anything_is_learned() {
    let mut kong = always(&[0.0], &[]);
    run(&mut kong, 100, 205);
    assert!(kong.utility.is_some());
    close(count(&kong, "total_reward"), 0.0, 0.0);
    run(&mut kong, 205, 305);
    close(count(&kong, "total_reward").abs(), 2.0, 0.0);
}

#[test]
fn read_to_the_letter_table_1_learns_on_the_first_ack_of_congestion_avoidance() {
    let mut kong = always(&[0.0], &[("skip_first", "no")]);
    kong.on_ack(&ack_at(100));
    close(count(&kong, "learning_steps"), 1.0, 0.0);
    close(count(&kong, "total_reward"), 2.0, 0.0); // from u_1 = 0
}

#[test]
fn a_step_goes_on_through_a_recovery_in_which_the_window_rests() {
    let mut kong = always(&[3.0], &[]);
    run(&mut kong, 100, 205);
    let before = kong.window.cwnd;
    for now_ms in (205..600).step_by(5) {
        kong.on_ack(&Ack { recovering: 1, ..ack_at(now_ms) });
    }
    close(kong.window.cwnd, before, 0.0);
    close(count(&kong, "learning_steps"), 1.0, 0.0);
    kong.on_ack(&ack_at(600));
    close(count(&kong, "learning_steps"), 2.0, 0.0);
    assert_eq!(kong.meter.started, Time(0) + Span::from_millis(600));
}

#[test]
fn a_loss_is_answered_as_new_reno_does() {
    let mut kong = always(&[3.0], &[]);
    kong.window.cwnd = 27.0;
    kong.on_loss(&Loss::default());
    close(kong.window.cwnd, 13.5, 1e-9);
    close(kong.window.ssthresh, 13.0, 1e-9);
}

#[test]
fn after_a_timeout_the_next_step_has_nothing_to_compare_with() {
    for (word, kept) in [("restart", false), ("keep", true)] {
        let mut kong = always(&[0.0], &[("after_timeout", word)]);
        run(&mut kong, 100, 305);
        kong.on_loss(&Loss { kind: LossKind::Timeout, ..Loss::default() });
        close(kong.window.cwnd, 1.0, 0.0);
        assert_eq!((kong.utility.is_some(), kong.in_step), (kept, kept), "{word}");
        assert!(kong.learner.action().is_some(), "what was learned stays");
    }
}

#[test]
fn a_decrease_below_ssthresh_is_undone_by_slow_start_or_kept() {
    let mut as_ns2 = always(&[-1.0], &[]);
    run(&mut as_ns2, 100, 1100);
    assert!(as_ns2.window.cwnd >= 19.9, "{}", as_ns2.window.cwnd);
    let mut learned = always(&[-1.0], &[("below_ssthresh", "learn")]);
    run(&mut learned, 100, 1100);
    assert!(learned.window.cwnd < 12.0, "{}", learned.window.cwnd);
}

#[test]
fn decreases_stop_at_one_packet() {
    let mut kong = always(&[-1.0], &[("below_ssthresh", "learn")]);
    run(&mut kong, 100, 10_000);
    close(kong.window.cwnd, 1.0, 0.1);
}

fn path(settings: &[(&str, ParamValue)]) -> Path {
    let flow = FlowInfo {
        mss: Bytes(1250),
        initial_cwnd: Bytes(2500),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Ns2,
        paces: false,
        start: Time(0),
        seed: 1,
    };
    let given: Vec<_> =
        settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Path::new(&flow, &Params::resolve(rl_tcp::PARAMS, &given).unwrap())
}

#[test]
fn the_grid_spans_what_the_path_can_show() {
    let mut path = path(&[]);
    close(path.gap_max_s(), 0.004, 1e-12);
    close(path.rtt_ratio_max(), 1.0 + 51.0 / 150.0, 1e-12);
    close(path.window_max(None), 200.0, 1e-9);
    close(path.ssthresh_max(), 200.0, 1e-9);
    path.flows = 4.0;
    close(path.gap_max_s(), 0.016, 1e-12);
    close(path.window_max(None), 100.0, 1e-9);
    close(path.ssthresh_max(), 100.0, 1e-9);
}

#[test]
fn ranges_that_are_given_replace_those_of_the_path() {
    let given = [
        ("gap_max_ms", ParamValue::Number(6.0)),
        ("ssthresh_max_packets", ParamValue::Number(4000.0)),
    ];
    let mut path = path(&given);
    close(path.gap_max_s(), 0.006, 1e-12);
    close(path.ssthresh_max(), 4000.0, 1e-9);
    close(path.window_max(Some(1000.0)), 1000.0, 1e-9);
    path.flows = 4.0;
    close(path.gap_max_s(), 0.024, 1e-12);
    close(path.ssthresh_max(), 2000.0, 1e-9);
}

#[test]
fn one_grid_serves_every_number_of_flows_if_it_is_not_scaled() {
    let four = ("flows", ParamValue::Number(4.0));
    let path = path(&[four, ("grid_scale", ParamValue::Word("one".to_owned()))]);
    close(path.gap_max_s(), 0.004, 1e-12);
    close(path.window_max(None), 200.0, 1e-9);
}

#[test]
fn counting_acks_the_end_of_a_recovery_is_no_gain() {
    for (word, expected) in [("bytes", 2.0), ("acks", -2.0)] {
        let mut kong = always(&[0.0], &[("tp_from", word)]);
        run(&mut kong, 100, 305); // steps of 20 packets
        let before = count(&kong, "total_reward");
        run(&mut kong, 305, 345); // 8 ACKs, then one for 30 packets
        let last = Ack { acked: Bytes(30_000), delivered: Bytes(420_000), ..ack_at(400) };
        kong.on_ack(&last);
        close(count(&kong, "total_reward") - before, expected, 0.0);
    }
}
