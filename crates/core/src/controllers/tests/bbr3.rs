use super::*;
use crate::control::PerFlow;
use crate::controllers::test_support::{MSS, close, flow};
use crate::params::ParamValue;
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::Sim;
use crate::sim::plan::ConnectionPlan;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

#[path = "bbr3_draft.rs"]
mod draft;
#[path = "bbr3_paths.rs"]
mod paths;

/// What the controller was told last, and how it is after it.
#[derive(Clone, Debug)]
struct Step {
    ack: Ack,
    loss: Option<Loss>,
    bbr: Bbr3,
}

impl Step {
    fn now(&self) -> Time {
        self.loss.map_or(self.ack.now, |loss| loss.now)
    }

    fn secs(&self) -> f64 {
        self.now().since(Time(0)).as_secs_f64()
    }
}

/// Keeps all steps of a flow.
struct Watched {
    bbr: Bbr3,
    ack: Ack,
    steps: Arc<Mutex<Vec<Step>>>,
}

impl Watched {
    fn push(&self, loss: Option<Loss>) {
        let step = Step { ack: self.ack, loss, bbr: self.bbr.clone() };
        self.steps.lock().unwrap().push(step);
    }
}

impl Controller for Watched {
    fn on_ack(&mut self, ack: &Ack) {
        self.bbr.on_ack(ack);
        self.ack = *ack;
        self.push(None);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.bbr.on_loss(loss);
        self.push(Some(*loss));
    }
    fn control(&self) -> Control {
        self.bbr.control()
    }
}

/// All steps of the one flow of a scenario, in the simulator.
fn watch(text: &str) -> Vec<Step> {
    let scenario = Scenario::parse(text, "test.toml").expect("a valid scenario");
    let steps = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&steps);
    let mut build = |plan: &ConnectionPlan| {
        let steps = Arc::clone(&shared);
        let params = Params::resolve(SPEC.params, &plan.params).expect("valid settings");
        let per_flow = PerFlow::new(move |flow| {
            let bbr = Bbr3::new(flow, &params);
            Box::new(Watched { bbr, ack: Ack::default(), steps: Arc::clone(&steps) })
        });
        Ok::<_, Infallible>(Box::new(per_flow) as _)
    };
    let mut sim = Sim::new(&scenario.network, Seed(1), &mut build).expect("it builds");
    sim.run_until(scenario.network.duration);
    drop(sim);
    std::mem::take(&mut *steps.lock().unwrap())
}

/// A dumbbell of one flow: for how long, round trip, fields of the bottleneck, fields of the flow.
fn path(secs: f64, rtt_ms: f64, bottleneck: &str, flow: &str) -> String {
    format!(
        "duration_s = {secs}\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\n{bottleneck}\n\
         [[flow]]\ncontroller = \"bbr3\"\n{flow}\n"
    )
}

fn set(name: &str, value: f64) -> Bbr3 {
    let given = [(name.to_owned(), ParamValue::Number(value))];
    Bbr3::new(&flow(), &Params::resolve(SPEC.params, &given).unwrap())
}

fn bbr() -> Bbr3 {
    Bbr3::new(&flow(), &Params::defaults(SPEC.params))
}

/// A path of 1000 packets per second (8 Mb/s) and 100 ms, with as much in flight as is asked for.
struct Feed {
    now_ms: u64,
    rate: f64,
    rtt_ms: u64,
    inflight: u64,
    /// Of each acknowledgement: lost since the packet was sent.
    lost: u64,
    app_limited: u64,
    cwnd_limited: u64,
    /// In flight when the packet was sent, if that is not what is in flight now.
    tx_inflight: Option<u64>,
    /// A nanosecond less each second: no search for the smallest round trip is due.
    rtt_falls: bool,
}

impl Feed {
    fn new() -> Self {
        Self {
            now_ms: 0,
            rate: 1000.0,
            rtt_ms: 100,
            inflight: 100,
            lost: 0,
            app_limited: 0,
            cwnd_limited: 0,
            tx_inflight: None,
            rtt_falls: true,
        }
    }

    fn now(&self) -> Time {
        Time(0) + Span::from_millis(self.now_ms)
    }

    /// The next acknowledgement, of `packets`.
    fn ack(&mut self, packets: u64) -> Ack {
        self.now_ms += packets;
        let less = if self.rtt_falls { self.now_ms / 1000 } else { 0 };
        let rtt = Span(Span::from_millis(self.rtt_ms).0 - less);
        let tx_inflight = self.tx_inflight.unwrap_or(self.inflight + packets);
        Ack {
            now: self.now(),
            sent_at: Time(0) + Span::from_millis(self.now_ms.saturating_sub(self.rtt_ms)),
            rtt,
            srtt: rtt,
            min_rtt: rtt,
            rtt_max: rtt,
            acked: Bytes(packets * MSS),
            inflight: Bytes(self.inflight * MSS),
            prior_inflight: Bytes((self.inflight + packets) * MSS),
            delivery_rate: Rate((self.rate * 8.0 * MSS as f64) as u64),
            tx_inflight: Bytes(tx_inflight * MSS),
            delivered_since: Bytes((self.inflight + packets - self.lost) * MSS),
            lost_since: Bytes(self.lost * MSS),
            app_limited: self.app_limited,
            cwnd_limited: self.cwnd_limited,
            ..Ack::default()
        }
    }

    fn step(&mut self, bbr: &mut Bbr3) {
        let ack = self.ack(2);
        bbr.on_ack(&ack);
    }

    /// Acknowledgements of two packets each until `until_ms`.
    fn run(&mut self, bbr: &mut Bbr3, until_ms: u64) {
        while self.now_ms < until_ms {
            self.step(bbr);
        }
    }

    /// Until the state is as wanted, for at most five seconds.
    fn run_to(&mut self, bbr: &mut Bbr3, state: State) {
        let until = self.now_ms + 5000;
        while bbr.state != state && self.now_ms < until {
            self.step(bbr);
        }
        assert_eq!(bbr.state, state);
    }

    /// So many packets are declared lost, `since` in all since the newest of them was sent, when
    /// `tx_inflight` were in flight.
    fn loss(&self, packets: u64, since: u64, tx_inflight: u64) -> Loss {
        Loss {
            now: self.now(),
            sent_at: Time(0) + Span::from_millis(self.now_ms.saturating_sub(self.rtt_ms)),
            lost: Bytes(packets * MSS),
            lost_since: Bytes(since * MSS),
            tx_inflight: Bytes(tx_inflight * MSS),
            inflight: Bytes(self.inflight * MSS),
            app_limited: self.app_limited,
            kind: LossKind::Gap,
        }
    }
}

/// In its steady state, cruising.
fn cruising() -> (Bbr3, Feed) {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    feed.inflight = 98;
    feed.run_to(&mut bbr, State::Cruise);
    (bbr, feed)
}

/// In a bandwidth probe of which samples arrive.
fn probing() -> (Bbr3, Feed) {
    let (mut bbr, mut feed) = cruising();
    feed.run_to(&mut bbr, State::Up);
    (bbr, feed)
}

#[test]
fn the_first_window_is_paced_as_over_a_millisecond_and_then_over_the_round_trip() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    close(bbr.pacing, 2.77 * 10.0 / 0.001);
    feed.rate = 1.0;
    bbr.on_ack(&feed.ack(1));
    close(bbr.pacing, 2.77 * 10.0 / 0.1);
}

#[test]
fn each_state_has_its_gains() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    (0..5).for_each(|_| feed.step(&mut bbr));
    close(bbr.pacing, 2.77 * 0.99 * 1000.0);
    let gains = [
        (State::Startup, 2.77, 2.0),
        (State::Drain, 0.5, 2.0),
        (State::Down, 0.9, 2.0),
        (State::Cruise, 1.0, 2.0),
        (State::Refill, 1.0, 2.0),
        (State::Up, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
    ];
    for (state, pacing, cwnd) in gains {
        bbr.state = state;
        assert_eq!(bbr.gains(), (pacing, cwnd), "{state:?}");
    }
}

#[test]
fn the_window_is_twice_the_pipe_and_what_is_acknowledged_beyond_the_rate() {
    let (bbr, _) = cruising();
    close(bbr.cwnd, 200.0 + bbr.extra.value());
    assert!(bbr.extra.value() <= 4.0, "{} packets of aggregation", bbr.extra.value());
}

/// A source whose mean is a little above its delivery rate: what comes beyond the rate adds up.
#[test]
fn what_is_acknowledged_beyond_the_rate_counts_up_to_a_tenth_of_a_second() {
    let (mut bbr, mut feed) = cruising();
    bbr.extra.remember(bbr.rounds, 1e6, true);
    (0..500).for_each(|_| feed.step(&mut bbr));
    assert!(bbr.extra.value() >= 1e6, "{}", bbr.extra.value());
    // Twice the pipe of 100 packets, and 100 of a tenth of a second.
    close(bbr.cwnd, 300.0);
}

#[test]
fn the_pacing_rate_does_not_fall_in_start_up() {
    let (mut bbr, mut feed) = (bbr(), Feed::new());
    (0..5).for_each(|_| feed.step(&mut bbr));
    feed.rate = 10.0;
    feed.app_limited = 1;
    bbr.max_bw = [0.0; 2];
    feed.step(&mut bbr);
    close(bbr.pacing, 2.77 * 0.99 * 1000.0);
}

#[test]
fn a_probe_comes_after_two_to_three_seconds_or_after_62_or_63_rounds() {
    let mut waits = Vec::new();
    for seed in 0..200 {
        let mut bbr = Bbr3::new(&FlowInfo { seed, ..flow() }, &Params::defaults(SPEC.params));
        bbr.start_down(Time(0));
        waits.push(bbr.probe.wait.as_secs_f64());
        (bbr.bw, bbr.rtt.value, bbr.cwnd) = (1000.0, Span::from_millis(100), 200.0);
        assert!(bbr.probe.rounds_since <= 1);
        assert!(!bbr.is_time_to_probe(Time(0) + Span::from_millis(2000)));
        assert!(bbr.is_time_to_probe(Time(0) + Span::from_millis(3001)));
        bbr.probe.rounds_since = 62;
        assert!(!bbr.is_time_to_probe(Time(1)));
        bbr.probe.rounds_since = 63;
        assert!(bbr.is_time_to_probe(Time(1)));
        // A small pipe is probed as often as Reno grows by its size.
        bbr.bw = 200.0;
        bbr.probe.rounds_since = 20;
        assert!(bbr.is_time_to_probe(Time(1)));
    }
    let (least, most) = waits.iter().fold((9.0_f64, 0.0_f64), |(l, m), &w| (l.min(w), m.max(w)));
    assert!((2.0..2.05).contains(&least) && (2.95..3.0).contains(&most), "{least} to {most}");
}

#[test]
fn a_round_with_loss_while_cruising_lowers_rate_and_flight_by_at_most_three_tenths() {
    let (mut bbr, mut feed) = cruising();
    feed.rate = 400.0;
    feed.inflight = 40;
    feed.run(&mut bbr, feed.now_ms + 110);
    let cwnd = bbr.cwnd;
    bbr.on_loss(&feed.loss(1, 1, 90));
    feed.run(&mut bbr, feed.now_ms + 110);
    close(bbr.short.rate, 700.0);
    close(bbr.short.inflight, 0.7 * cwnd);
    close(bbr.bw, 700.0);
    assert!(bbr.cwnd <= 0.7 * cwnd + 1e-9, "{}", bbr.cwnd);
    // The second round with loss goes to what was delivered.
    bbr.on_loss(&feed.loss(1, 1, 90));
    feed.rate = 650.0;
    feed.run(&mut bbr, feed.now_ms + 110);
    close(bbr.short.rate, 650.0);
    feed.run(&mut bbr, feed.now_ms + 300);
    close(bbr.short.rate, 650.0);
}

#[test]
fn a_refill_forgets_the_bounds_of_the_short_term() {
    let (mut bbr, mut feed) = cruising();
    bbr.on_loss(&feed.loss(1, 1, 90));
    feed.run(&mut bbr, feed.now_ms + 110);
    assert!(bbr.short.inflight < f64::INFINITY);
    feed.run_to(&mut bbr, State::Refill);
    assert_eq!(bbr.short, Bounds::NONE);
    bbr.on_loss(&feed.loss(1, 1, 90));
    feed.run(&mut bbr, feed.now_ms + 50);
    assert_eq!(bbr.short, Bounds::NONE, "not while it probes");
}

#[test]
fn cruising_leaves_fifteen_percent_of_the_long_term_flight() {
    let (mut bbr, mut feed) = cruising();
    bbr.longterm = 120.0;
    feed.inflight = 80;
    feed.step(&mut bbr);
    close(bbr.cwnd, 0.85 * 120.0);
    bbr.longterm = 3.0;
    close(bbr.with_headroom(), 4.0);
}

#[test]
fn two_percent_of_loss_in_a_probe_bound_the_long_term_flight() {
    for (lost, too_high) in [(2, false), (3, true)] {
        let (mut bbr, feed) = probing();
        bbr.on_loss(&feed.loss(1, lost, 140));
        assert_eq!(bbr.state == State::Down, too_high, "{lost} of 140");
        assert_eq!(bbr.longterm < f64::INFINITY, too_high);
    }
    // Of ten lost at once, two of the hundred would have been fine: those before did not count.
    let (mut bbr, feed) = probing();
    bbr.on_loss(&feed.loss(10, 10, 140));
    close(bbr.longterm, 130.0 + 0.02 * 130.0 / 0.98);
}

#[test]
fn the_bound_of_the_long_term_follows_what_was_in_flight_without_loss() {
    let (mut bbr, mut feed) = cruising();
    bbr.longterm = 120.0;
    feed.inflight = 128;
    feed.step(&mut bbr);
    close(bbr.longterm, 130.0);
    (feed.inflight, feed.lost) = (198, 10);
    feed.step(&mut bbr);
    close(bbr.longterm, 130.0);
}

#[test]
fn after_a_probe_that_lost_too_much_the_next_ends_at_the_bound_and_one_more_follows() {
    let (mut bbr, mut feed) = probing();
    bbr.on_loss(&feed.loss(4, 4, 120));
    assert!(bbr.probe.too_high);
    let bound = bbr.longterm;
    feed.run_to(&mut bbr, State::Up);
    (feed.inflight, feed.tx_inflight) = (bound as u64 + 1, Some(98));
    feed.step(&mut bbr);
    assert_eq!(bbr.state, State::Down);
    assert!(bbr.probe.cautious && !bbr.probe.too_high);
    let from = feed.now_ms;
    feed.inflight = 90;
    feed.run_to(&mut bbr, State::Up);
    assert!(feed.now_ms - from <= 210, "a round each before REFILL and in it");
    feed.inflight = bbr.longterm as u64 + 1;
    feed.step(&mut bbr);
    assert_eq!(bbr.state, State::Up, "this one persists");
}

#[test]
fn the_bandwidth_is_the_largest_of_this_cycle_and_the_one_before() {
    let (mut bbr, mut feed) = cruising();
    feed.run(&mut bbr, feed.now_ms + 300);
    feed.rate = 500.0;
    feed.run_to(&mut bbr, State::Up);
    close(bbr.max_bw(), 1000.0);
    feed.run_to(&mut bbr, State::Cruise);
    feed.run(&mut bbr, feed.now_ms + 200);
    close(bbr.max_bw(), 1000.0);
    feed.run_to(&mut bbr, State::Up);
    feed.run_to(&mut bbr, State::Cruise);
    feed.run(&mut bbr, feed.now_ms + 200);
    close(bbr.max_bw(), 500.0);
}

#[test]
fn loss_in_the_long_run_leaves_the_rate_if_as_much_is_delivered() {
    let (mut bbr, mut feed) = cruising();
    for _ in 0..10 {
        bbr.on_loss(&feed.loss(1, 1, 100));
        feed.run(&mut bbr, feed.now_ms + 50);
    }
    close(bbr.bw, 1000.0);
}

#[test]
fn a_time_out_leaves_one_packet_and_the_window_returns_when_all_is_repaired() {
    let (mut bbr, mut feed) = cruising();
    let before = bbr.cwnd;
    bbr.on_loss(&Loss { kind: LossKind::Timeout, ..feed.loss(90, 90, 100) });
    close(bbr.cwnd, 1.0);
    feed.inflight = 1;
    feed.step(&mut bbr);
    close(bbr.cwnd, 4.0);
    (0..43).for_each(|_| feed.step(&mut bbr));
    assert_eq!(bbr.repair, Repair::Timeout(bbr.delivered + 2.0));
    feed.step(&mut bbr);
    assert_eq!(bbr.repair, Repair::None);
    assert!(bbr.cwnd > 0.6 * before && bbr.cwnd <= before, "{} of {before}", bbr.cwnd);
}

#[test]
fn the_end_of_a_fast_recovery_gives_the_window_back() {
    let (mut bbr, mut feed) = cruising();
    bbr.on_loss(&feed.loss(1, 1, 100));
    assert_eq!(bbr.repair, Repair::Fast);
    bbr.cwnd = 50.0;
    bbr.on_ack(&Ack { recovering: 1, ..feed.ack(2) });
    close(bbr.cwnd, 52.0);
    feed.step(&mut bbr);
    assert_eq!(bbr.repair, Repair::None);
    assert!(bbr.cwnd > 195.0, "{}", bbr.cwnd);
}

#[test]
fn rates_measured_in_a_round_trip_probe_do_not_lower_the_estimate() {
    let (mut bbr, mut feed) = cruising();
    feed.rtt_falls = false;
    feed.run(&mut bbr, 5200);
    feed.run_to(&mut bbr, State::ProbeRtt);
    (feed.inflight, feed.rate) = (50, 500.0);
    feed.run_to(&mut bbr, State::Cruise);
    bbr.max_bw = [0.0, 1000.0];
    feed.run(&mut bbr, feed.now_ms + 110);
    close(bbr.max_bw(), 1000.0);
    feed.rate = 1000.0;
    feed.run(&mut bbr, feed.now_ms + 300);
    assert!(!bbr.newest.app_limited, "the limit has an end");
}

#[test]
fn a_mark_ends_a_probe_and_start_up() {
    let (mut bbr, mut feed) = probing();
    bbr.on_ack(&Ack { ce_marked: Bytes(MSS), ..feed.ack(2) });
    assert_eq!(bbr.state, State::Down);
    close(bbr.longterm, 100.0);
    let (mut bbr, mut feed) = (super::tests::bbr(), Feed::new());
    (0..3).for_each(|_| feed.step(&mut bbr));
    // The classic answer of the sender: a gap in which nothing was lost.
    bbr.on_loss(&feed.loss(0, 0, 100));
    feed.run(&mut bbr, feed.now_ms + 102);
    assert_ne!(bbr.state, State::Startup);
    assert!(bbr.full.reached && bbr.longterm < f64::INFINITY);
}

#[test]
fn a_mark_while_cruising_counts_as_a_loss() {
    let (mut bbr, mut feed) = cruising();
    feed.rate = 900.0;
    feed.run(&mut bbr, feed.now_ms + 110);
    bbr.on_ack(&Ack { ce_marked: Bytes(MSS), ..feed.ack(2) });
    feed.run(&mut bbr, feed.now_ms + 110);
    close(bbr.short.rate, 900.0);
}

#[test]
fn a_sender_that_tells_less_is_taken_to_keep_the_order() {
    let (_, mut feed) = cruising();
    let bare = Ack {
        tx_inflight: Bytes::ZERO,
        delivered_since: Bytes::ZERO,
        lost_since: Bytes::ZERO,
        ..feed.ack(2)
    };
    let sample = Sample::of(&bare, MSS as f64, 3.0);
    assert_eq!((sample.delivered, sample.lost, sample.tx_inflight), (100.0, 3.0, 103.0));
    let told = Sample::of(&feed.ack(2), MSS as f64, 3.0);
    assert_eq!((told.delivered, told.lost, told.tx_inflight), (100.0, 0.0, 100.0));
    // Such a sender's losses end a probe, too.
    let (mut bbr, feed) = probing();
    bbr.on_loss(&feed.loss(5, 0, 0));
    assert_eq!(bbr.state, State::Down);
    close(bbr.longterm, 95.0 + 0.02 * 95.0 / 0.98);
}

#[test]
fn settings_take_the_place_of_the_constants() {
    close(set("up_gain", 1.5).set.up_gain, 1.5);
    let mut bbr = set("beta", 0.5);
    let mut feed = Feed::new();
    feed.inflight = 98;
    feed.run_to(&mut bbr, State::Cruise);
    feed.rate = 100.0;
    feed.run(&mut bbr, feed.now_ms + 110);
    bbr.on_loss(&feed.loss(1, 1, 90));
    feed.run(&mut bbr, feed.now_ms + 110);
    close(bbr.short.rate, 500.0);
    let mut often = set("probe_rtt_interval_s", 1.0);
    let mut feed = Feed { rtt_falls: false, ..Feed::new() };
    feed.run(&mut often, 3000);
    assert!(often.seen.rtt_probes > 0);
}

#[test]
fn a_percent_of_random_loss_leaves_most_of_the_link() {
    let steps = watch(&path(
        30.0,
        40.0,
        "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 500 }\n\
         loss = { kind = \"bernoulli\", ratio = 0.01 }",
        "",
    ));
    let last = steps.last().unwrap();
    let mbps = last.bbr.delivered * 1500.0 * 8e-6 / 30.0;
    assert!(mbps > 8.5, "{mbps} Mb/s");
}

#[test]
fn a_round_trip_that_the_receiver_may_have_delayed_replaces_no_smaller_one() {
    let packet = MSS as f64;
    let after = |size: u64, secs: u64, rtt_ms: u64| {
        let (now, flight) = (Time(0) + Span::from_millis(1000 * secs), Bytes(size));
        Ack { now, rtt: Span::from_millis(rtt_ms), tx_inflight: flight, ..Ack::default() }
    };
    let mut rtt = MinRtt::new(Time(0));
    let mut update = |size, secs, rtt_ms| {
        rtt.update(&after(size, secs, rtt_ms), Span::from_millis(5000), packet);
        (rtt.recent.as_millis_f64(), rtt.value.as_millis_f64())
    };
    assert_eq!(update(10 * MSS, 1, 100), (100.0, 100.0));
    assert_eq!(update(MSS - 1, 20, 140), (100.0, 100.0));
    assert_eq!(update(MSS, 21, 140), (140.0, 140.0));
}
