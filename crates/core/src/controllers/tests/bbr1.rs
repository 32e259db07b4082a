use super::*;
use crate::controllers::test_support::{MSS, close, flow, simulated};
use crate::params::ParamValue;

fn bbr() -> Bbr1 {
    Bbr1::new(&flow(), &Params::resolve(SPEC.params, &[]).unwrap())
}

/// A path of 1000 packets per second (8 Mb/s) and 100 ms that delivers `packets` at a time, with as much
/// in flight as is asked for. The next acknowledgement.
struct Feed {
    now_ms: u64,
    rate: f64,
    rtt_ms: u64,
    inflight: u64,
}

impl Feed {
    fn new() -> Self {
        Self { now_ms: 0, rate: 1000.0, rtt_ms: 100, inflight: 100 }
    }

    fn ack(&mut self, packets: u64) -> Ack {
        self.now_ms += packets;
        let rtt = Span::from_millis(self.rtt_ms);
        Ack {
            now: Time(0) + Span::from_millis(self.now_ms),
            sent_at: Time(0) + Span::from_millis(self.now_ms.saturating_sub(self.rtt_ms)),
            rtt,
            srtt: rtt,
            min_rtt: rtt,
            rtt_max: rtt,
            acked: Bytes(packets * MSS),
            inflight: Bytes(self.inflight * MSS),
            prior_inflight: Bytes((self.inflight + packets) * MSS),
            delivery_rate: Rate((self.rate * 8.0 * MSS as f64) as u64),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    /// Acknowledgements of two packets each until `until_ms`.
    fn run(&mut self, bbr: &mut Bbr1, until_ms: u64) {
        while self.now_ms < until_ms {
            let ack = self.ack(2);
            bbr.on_ack(&ack);
        }
    }
}

/// In its steady state after 2 s.
fn steady() -> (Bbr1, Feed) {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    feed.run(&mut bbr, 2000);
    assert!(matches!(bbr.mode, Mode::ProbeBandwidth { .. }), "{:?}", bbr.mode);
    (bbr, feed)
}

#[test]
fn the_first_window_is_paced_as_over_a_millisecond_and_then_over_the_round_trip() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    close(bbr.pacing, HIGH_GAIN * 0.99 * 10.0 / 0.001);
    feed.rate = 1.0;
    bbr.on_ack(&feed.ack(1));
    close(bbr.pacing, HIGH_GAIN * 0.99 * 10.0 / 0.1);
}

#[test]
fn start_up_doubles_the_window_per_round_and_paces_at_2_885_times_the_rate() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    feed.inflight = 10;
    (0..5).for_each(|_| bbr.on_ack(&feed.ack(2)));
    close(bbr.cwnd, 20.0);
    assert_eq!(bbr.mode, Mode::Startup);
    close(bbr.pacing, HIGH_GAIN * 0.99 * 1000.0);
}

#[test]
fn the_pipe_is_full_after_three_rounds_that_grow_by_less_than_a_quarter() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    for round in 1..=4 {
        assert!(!bbr.pipe.full, "round {round}");
        bbr.round_started = true;
        let sample = bbr.sample(&feed.ack(2));
        bbr.bandwidth.sample(round, 100.0 + round as f64);
        bbr.check_full(&sample);
    }
    assert!(bbr.pipe.full);
    let (mut bbr, mut rate) = (super::tests::bbr(), 100.0);
    for round in 1..=20 {
        rate *= 1.26;
        bbr.round_started = true;
        let sample = bbr.sample(&feed.ack(2));
        bbr.bandwidth.sample(round, rate);
        bbr.check_full(&sample);
    }
    assert!(!bbr.pipe.full, "a quarter more each round");
}

#[test]
fn a_round_that_the_application_limits_does_not_show_a_full_pipe() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    for _ in 0..20 {
        bbr.round_started = true;
        let sample = bbr.sample(&Ack { app_limited: 1, ..feed.ack(2) });
        bbr.check_full(&sample);
    }
    assert!(!bbr.pipe.full);
}

#[test]
fn drain_ends_when_the_flight_fits_the_pipe() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    feed.inflight = 400;
    feed.run(&mut bbr, 1500);
    assert_eq!(bbr.mode, Mode::Drain);
    close(bbr.pacing, DRAIN_GAIN * 0.99 * 1000.0);
    // 100 packets in the pipe, three bursts of two in the hosts.
    feed.inflight = 107;
    bbr.on_ack(&feed.ack(2));
    assert_eq!(bbr.mode, Mode::Drain);
    feed.inflight = 106;
    bbr.on_ack(&feed.ack(2));
    assert!(matches!(bbr.mode, Mode::ProbeBandwidth { .. }));
}

#[test]
fn steady_state_keeps_two_pipes_in_flight_and_what_hosts_hold() {
    let (bbr, _) = steady();
    let extra = bbr.extra_cwnd();
    let target = bbr.with_budget(2.0 * 100.0 + extra);
    close(bbr.cwnd, target);
    assert!(extra <= 4.0, "{extra} packets of aggregation where there is none");
}

#[test]
fn cruising_lasts_a_round_trip() {
    let (mut bbr, mut feed) = steady();
    bbr.mode = Mode::ProbeBandwidth { phase: 3, since: bbr.round_from };
    let begin = bbr.round_from;
    while bbr.mode == (Mode::ProbeBandwidth { phase: 3, since: begin }) {
        bbr.on_ack(&feed.ack(2));
    }
    let Mode::ProbeBandwidth { phase, since } = bbr.mode else { panic!("{:?}", bbr.mode) };
    assert_eq!(phase, 4);
    let took = since.since(begin);
    assert!(took > Span::from_millis(100) && took <= Span::from_millis(102), "{took:?}");
}

#[test]
fn probing_lasts_until_a_quarter_more_is_in_flight_or_something_is_lost() {
    for (inflight, lost, ends) in [(100, false, false), (140, false, true), (100, true, true)] {
        let (mut bbr, mut feed) = steady();
        let since = Time(0) + Span::from_millis(feed.now_ms - 200);
        bbr.mode = Mode::ProbeBandwidth { phase: 0, since };
        feed.inflight = inflight;
        if lost {
            let kind = LossKind::More;
            bbr.on_loss(&Loss { lost: Bytes(MSS), kind, ..Loss::default() });
        }
        bbr.on_ack(&feed.ack(2));
        let over = matches!(bbr.mode, Mode::ProbeBandwidth { phase: 1, .. });
        assert_eq!(over, ends, "{inflight} in flight, lost {lost}");
    }
}

#[test]
fn draining_ends_early_when_the_queue_is_gone() {
    for (inflight, ends) in [(150, false), (100, true)] {
        let (mut bbr, mut feed) = steady();
        let since = Time(0) + Span::from_millis(feed.now_ms);
        bbr.mode = Mode::ProbeBandwidth { phase: 1, since };
        feed.inflight = inflight;
        bbr.on_ack(&feed.ack(2));
        assert_eq!(matches!(bbr.mode, Mode::ProbeBandwidth { phase: 2, .. }), ends, "{inflight}");
    }
}

#[test]
fn a_cycle_begins_in_any_phase_but_the_one_that_drains() {
    let mut bbr = bbr();
    let mut seen = [0; 8];
    for _ in 0..1000 {
        bbr.enter_probe_bandwidth(Time(0));
        let Mode::ProbeBandwidth { phase, .. } = bbr.mode else { panic!("{:?}", bbr.mode) };
        seen[phase] += 1;
    }
    assert_eq!(seen[1], 0);
    assert!(seen.iter().enumerate().all(|(phase, &count)| phase == 1 || count > 90), "{seen:?}");
}

#[test]
fn after_ten_seconds_without_a_smaller_round_trip_four_packets_stay_for_200_ms_and_a_round() {
    let (mut bbr, mut feed) = steady();
    let expires = bbr.min_rtt_at + MIN_RTT_WINDOW;
    feed.rtt_ms = 120;
    feed.run(&mut bbr, expires.0 / 1_000_000);
    let before = bbr.cwnd;
    feed.run(&mut bbr, expires.0 / 1_000_000 + 4);
    assert!(matches!(bbr.mode, Mode::ProbeRtt { done: None, .. }), "{:?}", bbr.mode);
    close(bbr.cwnd, 4.0);
    assert_eq!(bbr.min_rtt, Span::from_millis(120), "the old one has expired");
    (feed.inflight, feed.rtt_ms) = (4, 90);
    let begin = feed.now_ms;
    while matches!(bbr.mode, Mode::ProbeRtt { .. }) {
        bbr.on_ack(&feed.ack(2));
    }
    assert!((200..=206).contains(&(feed.now_ms - begin)), "{} ms", feed.now_ms - begin);
    assert_eq!(bbr.min_rtt, Span::from_millis(90));
    assert!(before > 200.0 && bbr.cwnd > 180.0, "twice the new pipe, not {}", bbr.cwnd);
}

#[test]
fn round_trips_as_small_as_the_smallest_do_not_postpone_the_probe() {
    let (mut bbr, mut feed) = steady();
    let expires = bbr.min_rtt_at + MIN_RTT_WINDOW;
    assert!(expires < Time(0) + Span::from_millis(10_200), "{expires:?}");
    feed.run(&mut bbr, expires.0 / 1_000_000 + 4);
    assert!(matches!(bbr.mode, Mode::ProbeRtt { .. }), "{:?}", bbr.mode);
}

/// An acknowledgement of a packet of `size` bytes that was alone in flight and took `rtt_ms`, after eleven seconds.
fn alone_after_idling(bbr: &mut Bbr1, feed: &mut Feed, size: u64, rtt_ms: u64) {
    feed.now_ms += 11_000;
    (feed.rtt_ms, feed.inflight) = (rtt_ms, 0);
    let ack = feed.ack(1);
    let size = Bytes(size);
    bbr.on_ack(&Ack { acked: size, prior_inflight: size, tx_inflight: size, ..ack });
}

#[test]
fn a_round_trip_that_the_receiver_may_have_delayed_replaces_no_smaller_one() {
    let (mut bbr, mut feed) = steady();
    alone_after_idling(&mut bbr, &mut feed, MSS - 1, 140);
    assert_eq!(bbr.min_rtt, Span::from_millis(100));
    alone_after_idling(&mut bbr, &mut feed, MSS, 140);
    assert_eq!(bbr.min_rtt, Span::from_millis(140));
    alone_after_idling(&mut bbr, &mut feed, MSS - 1, 120);
    assert_eq!(bbr.min_rtt, Span::from_millis(120), "a smaller one counts at all times");
}

#[test]
fn rates_measured_in_a_round_trip_probe_do_not_lower_the_estimate() {
    let (mut bbr, mut feed) = steady();
    feed.rtt_ms = 120;
    let begin = bbr.min_rtt_at.0 / 1_000_000 + 10_004;
    feed.run(&mut bbr, begin);
    assert!(matches!(bbr.mode, Mode::ProbeRtt { .. }));
    (feed.inflight, feed.rate) = (4, 40.0);
    feed.run(&mut bbr, begin + 190);
    assert!(matches!(bbr.mode, Mode::ProbeRtt { .. }));
    close(bbr.bandwidth.value(), 1000.0);
}

#[test]
fn the_bandwidth_is_the_largest_of_ten_rounds() {
    let (mut bbr, mut feed) = steady();
    feed.rate = 500.0;
    let rounds = bbr.rounds;
    while bbr.rounds <= rounds + 10 {
        close(bbr.bandwidth.value(), 1000.0);
        bbr.on_ack(&feed.ack(2));
    }
    close(bbr.bandwidth.value(), 500.0);
}

#[test]
fn a_rate_that_the_application_limits_counts_only_if_it_is_larger() {
    let (mut bbr, mut feed) = steady();
    for (rate, expected) in [(1500.0, 1500.0), (700.0, 1500.0)] {
        feed.rate = rate;
        (0..800).for_each(|_| bbr.on_ack(&Ack { app_limited: 1, ..feed.ack(2) }));
        close(bbr.bandwidth.value(), expected);
    }
}

/// An acknowledgement of two packets, and the first loss of an episode, which it shows.
fn enter_recovery(bbr: &mut Bbr1, feed: &mut Feed, lost: u64) {
    feed.inflight -= lost;
    let ack = Ack { recovering: 1, ..feed.ack(2) };
    bbr.on_ack(&ack);
    let lost = Bytes(lost * MSS);
    bbr.on_loss(&Loss { now: ack.now, lost, kind: LossKind::Gap, ..Loss::default() });
}

#[test]
fn loss_leaves_the_rate_and_for_one_round_what_is_delivered_may_leave() {
    let (mut bbr, mut feed) = steady();
    let (pacing, before) = (bbr.rate(), bbr.cwnd);
    enter_recovery(&mut bbr, &mut feed, 3);
    close(bbr.cwnd, 99.0);
    bbr.on_ack(&Ack { recovering: 1, ..feed.ack(2) });
    close(bbr.cwnd, 99.0);
    close(bbr.rate(), pacing);
    // The next round adds what is delivered; the end of the repair gives the window back.
    let round = bbr.rounds;
    while bbr.rounds == round {
        bbr.on_ack(&Ack { recovering: 1, ..feed.ack(2) });
    }
    let cut = bbr.cwnd;
    bbr.on_ack(&Ack { recovering: 1, ..feed.ack(2) });
    close(bbr.cwnd, cut + 2.0);
    bbr.on_ack(&feed.ack(2));
    assert!((bbr.cwnd - before).abs() <= 2.0, "{before} before, {} after", bbr.cwnd);
}

/// Linux takes the losses of an acknowledgement off before it sends again, `bbr_set_cwnd_to_recover_or_restore`.
/// In start-up three of five packets are lost, so a window that lags floods the queue a second time.
#[test]
fn each_loss_of_a_recovery_takes_its_packets_off_the_window_before_the_next_one_leaves() {
    let (mut bbr, mut feed) = steady();
    enter_recovery(&mut bbr, &mut feed, 3);
    for lost in 1..20 {
        // The flow is as large as the window before, and each of the two acknowledgements shows a loss or none.
        feed.inflight = 97 - lost;
        bbr.on_ack(&Ack { recovering: 1, ..feed.ack(2) });
        bbr.on_loss(&Loss { lost: Bytes(MSS), kind: LossKind::More, ..Loss::default() });
        close(bbr.cwnd, 99.0 - lost as f64);
        feed.inflight = 97 - lost;
        bbr.on_ack(&Ack { recovering: 1, ..feed.ack(2) });
        close(bbr.cwnd, 99.0 - lost as f64);
    }
}

#[test]
fn in_the_first_round_of_recovery_a_batch_leaves_the_window_but_for_its_losses() {
    let (mut bbr, mut feed) = steady();
    enter_recovery(&mut bbr, &mut feed, 3);
    // All but the newest of 25 packets have been replaced.
    for lost in [0, 1, 2] {
        let ack = feed.ack(25);
        bbr.on_ack(&Ack { recovering: 1, prior_inflight: Bytes(99 * MSS), ..ack });
        bbr.on_loss(&Loss { lost: Bytes(MSS), kind: LossKind::More, ..Loss::default() });
        close(bbr.cwnd, 98.0 - f64::from(lost));
    }
}

#[test]
fn the_smallest_round_trip_of_a_batch_counts() {
    let (mut bbr, mut feed) = steady();
    let smallest = Span::from_millis(90);
    bbr.on_ack(&Ack { batch_rtt_min: smallest, ..feed.ack(25) });
    assert_eq!(bbr.min_rtt, smallest);
}

#[test]
fn a_time_out_leaves_one_packet_and_starts_the_search_for_the_full_pipe_anew() {
    let (mut bbr, mut feed) = steady();
    let before = bbr.cwnd;
    bbr.on_loss(&Loss { kind: LossKind::Timeout, lost: Bytes(90 * MSS), ..Loss::default() });
    close(bbr.cwnd, 1.0);
    close(bbr.pipe.bandwidth, 0.0);
    feed.inflight = 0;
    bbr.on_ack(&Ack { recovering: 1, ..feed.ack(1) });
    close(bbr.cwnd, 4.0);
    // What was lost is being repaired; meanwhile the window grows by what is delivered (Linux: CA_Loss).
    (0..44).for_each(|_| bbr.on_ack(&feed.ack(2)));
    close(bbr.cwnd, 4.0 + 88.0);
    bbr.on_ack(&feed.ack(2));
    assert!((bbr.cwnd - before).abs() <= 2.0, "{before} before, {} after", bbr.cwnd);
}

#[test]
fn a_spurious_time_out_gives_the_window_back_at_once() {
    let (mut bbr, mut feed) = steady();
    let before = bbr.cwnd;
    let loss = Loss { lost: Bytes(90 * MSS), kind: LossKind::Timeout, ..Loss::default() };
    bbr.on_loss(&loss);
    close(bbr.cwnd, 1.0);
    let now = Time(0) + Span::from_millis(feed.now_ms);
    bbr.on_loss(&Loss { kind: LossKind::Spurious, now, ..Loss::default() });
    let ack = feed.ack(2);
    bbr.on_ack(&ack);
    assert_eq!(bbr.repair, Repair::None);
    assert!(bbr.cwnd >= before, "{} of {before}", bbr.cwnd);
}

/// A link of 10 Mb/s and 40 ms that serves nothing for three seconds; what waits in its queue arrives then. The second
/// outage ends when a search for the smallest round trip is due.
#[test]
fn an_outage_without_loss_costs_little_more_than_its_length() {
    for from in [5, 8] {
        let schedule = format!("[[0, 10], [{from}, 0], [{}, 10]]", from + 3);
        let queue = "{ kind = \"drop_tail\", packets = 30 }";
        let (goodput, _) = simulated(&format!(
            "duration_s = 20\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_schedule = {schedule}\n\
             queue = {queue}\n[[flow]]\ncontroller = \"bbr1\"\n"
        ))[0];
        assert!(goodput > 0.9 * 10.0 * 17.0 / 20.0, "{goodput} Mb/s with an outage from {from} s");
    }
}

#[test]
fn after_idling_no_round_trip_probe_begins_before_something_is_delivered() {
    let (mut bbr, mut feed) = steady();
    feed.now_ms += 20_000;
    let now = Time(0) + Span::from_millis(feed.now_ms);
    bbr.on_loss(&Loss { now, kind: LossKind::Idle, ..Loss::default() });
    bbr.on_ack(&feed.ack(2));
    assert!(matches!(bbr.mode, Mode::ProbeBandwidth { .. }), "{:?}", bbr.mode);
}

#[test]
fn acknowledgements_in_lumps_raise_the_window_by_the_lump() {
    let (mut bbr, mut feed) = steady();
    let before = bbr.extra_cwnd();
    for _ in 0..100 {
        feed.now_ms += 40; // and then 40 at once
        for _ in 0..20 {
            let ack = feed.ack(2);
            feed.now_ms -= 2;
            bbr.on_ack(&ack);
        }
    }
    let extra = bbr.extra_cwnd();
    assert!(before < 5.0 && (30.0..=45.0).contains(&extra), "{before} before, {extra} after");
}

/// Feeds an eighth of loss beyond the rate that a policer lets through.
fn policed(bbr: &mut Bbr1, feed: &mut Feed, until_ms: u64) {
    while feed.now_ms < until_ms {
        let kind = LossKind::More;
        bbr.on_loss(&Loss { lost: Bytes(MSS), kind, ..Loss::default() });
        bbr.on_ack(&feed.ack(3));
    }
}

#[test]
fn two_intervals_of_the_same_rate_with_a_fifth_of_loss_set_the_rate_for_48_rounds() {
    let (mut bbr, mut feed) = steady();
    feed.rate = 1400.0;
    policed(&mut bbr, &mut feed, 6000);
    assert_eq!(bbr.counters(), [("policed", 1.0)]);
    assert!((bbr.rate() - 1000.0).abs() < 20.0, "{}", bbr.rate());
    let rounds = bbr.rounds;
    while bbr.policer.unwrap().rate.is_some() {
        bbr.on_ack(&feed.ack(2));
    }
    let kept = bbr.rounds - rounds;
    assert!(kept <= 48, "{kept} more rounds");
    close(bbr.rate(), 1400.0);
}

#[test]
fn a_tenth_of_loss_is_no_policer() {
    let (mut bbr, mut feed) = steady();
    for step in 0..4000 {
        if step % 10 == 0 {
            bbr.on_loss(&Loss { lost: Bytes(MSS), kind: LossKind::More, ..Loss::default() });
        }
        bbr.on_ack(&feed.ack(1));
    }
    assert_eq!(bbr.counters(), [("policed", 0.0)]);
}

#[test]
fn without_the_policer_mode_loss_never_sets_the_rate() {
    let given = [("policer".to_owned(), ParamValue::Word("off".to_owned()))];
    let params = Params::resolve(SPEC.params, &given).unwrap();
    let (mut bbr, mut feed) = steady();
    bbr.policer = None;
    policed(&mut bbr, &mut feed, 6000);
    close(bbr.rate(), 1000.0);
    assert_eq!(params.choice("policer"), "off");
}

/// On a link of 10 Mb/s and 40 ms with a deep buffer, one flow of `controller` for 30 s: goodput in Mb/s
/// and mean round trip in ms.
fn alone(loss: f64) -> (f64, f64) {
    let text = format!(
        "duration_s = 30\n[dumbbell.bottleneck]\nrate_mbps = 10\ndelay_ms = 20\n\
         queue = {{ kind = \"drop_tail\", packets = 500 }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n\
         [[flow]]\ncontroller = \"bbr1\"\n"
    );
    simulated(&text)[0]
}

#[test]
fn a_deep_buffer_stays_nearly_empty_and_a_percent_of_loss_costs_little() {
    let (clean, rtt_ms) = alone(0.0);
    assert!(clean > 9.0 && rtt_ms < 60.0, "{clean} Mb/s, {rtt_ms} ms");
    let (lossy, _) = alone(0.01);
    assert!(lossy > 8.5, "{lossy} Mb/s");
}
