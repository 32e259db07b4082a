//! What every controller must hold, whatever its rules. The tests loop over the table and know no
//! names: a new file is tested without an edit here.
//!
//! Where a rule applies to some controllers only, a property that can be observed decides: a
//! controller whose pacing rate stays unlimited governs by its window, and a window must answer
//! losses.
use ackademy::control::{
    Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Recovery, Send, SendAction, Spec,
};
use ackademy::controllers::ALL;
use ackademy::params::Params;
use ackademy::rng::Rng;
use ackademy::units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use std::collections::VecDeque;

use crate::support::table;
use table::{MSS, ack, loss, number};

/// Most packets that the test's sender keeps in flight, so that a large window costs no memory.
const INFLIGHT_MAX: usize = 2000;

/// Every setting at its default, beside the files.
fn defaults(spec: &'static Spec) -> Params {
    table::defaults(spec.name, spec.params)
}

/// A controller whose answers are checked after every call.
struct Checked {
    spec: &'static Spec,
    inner: Box<dyn Controller>,
    /// Windows after each call, in bytes.
    windows: Vec<u64>,
}

impl Checked {
    fn new(spec: &'static Spec, params: &Params, seed: u64) -> Self {
        let flow = FlowInfo {
            mss: Bytes(MSS),
            initial_cwnd: Bytes(10 * MSS),
            initial_ssthresh: Bytes(u64::MAX),
            recovery: if seed.is_multiple_of(2) { Recovery::Ns2 } else { Recovery::Sack },
            paces: false,
            start: Time(0),
            seed,
        };
        Self::with_flow(spec, params, &flow)
    }

    fn with_flow(spec: &'static Spec, params: &Params, flow: &FlowInfo) -> Self {
        let checked = Self { spec, inner: (spec.build)(flow, params), windows: Vec::new() };
        checked.check();
        checked
    }

    fn defaults(spec: &'static Spec, seed: u64) -> Self {
        Self::new(spec, &defaults(spec), seed)
    }

    fn check(&self) -> Control {
        let control = self.inner.control();
        let (name, cwnd) = (self.spec.name, control.cwnd.0);
        assert!(cwnd >= MSS, "{name}: a window of {cwnd} bytes stops the flow for ever");
        assert!(cwnd <= CWND_MAX.0, "{name}: a window of {cwnd} bytes");
        assert!(control.pacing_rate > Rate(0), "{name}: a pacing rate of zero stops the flow");
        control
    }

    fn on_ack(&mut self, ack: &Ack) -> Control {
        self.inner.on_ack(ack);
        self.after_call()
    }

    fn on_loss(&mut self, loss: &Loss) -> Control {
        self.inner.on_loss(loss);
        self.after_call()
    }

    fn on_timer(&mut self, now: Time) {
        if self.inner.next_timer().is_some_and(|timer| timer <= now) {
            self.inner.on_timer(now);
            self.after_call();
        }
    }

    fn after_call(&mut self) -> Control {
        let control = self.check();
        self.windows.push(control.cwnd.0);
        control
    }

    fn governs_by_window(&self) -> bool {
        self.inner.control().pacing_rate == Rate::UNLIMITED
    }
}

/// One link with a queue and a sender that fills the window.
#[derive(Clone)]
struct Path {
    rate: Rate,
    base_rtt: Span,
    /// Packets.
    buffer: u64,
    loss_ratio: f64,
    /// Deliveries in one record.
    batch: usize,
    /// Whether round trips are measured at all.
    samples: bool,
    duration: Span,
}

const PATH: Path = Path {
    rate: Rate(10_000_000),
    base_rtt: Span::from_millis(50),
    buffer: 50,
    loss_ratio: 0.0,
    batch: 1,
    samples: true,
    duration: Span::from_millis(10_000),
};

struct Packet {
    sent_at: Time,
    /// `None` if it is lost.
    acked_at: Option<Time>,
}

/// A run of a [`Path`].
struct Run<'a> {
    path: &'a Path,
    controller: &'a mut Checked,
    rng: Rng,
    now: Time,
    link_free: Time,
    may_send: Time,
    flight: VecDeque<Packet>,
    /// Rtt of the latest delivery, smoothed, and smallest so far.
    rtt: [Span; 3],
    delivered: Bytes,
    /// Losses of packets sent before this belong to an episode already told.
    recovery_start: Option<Time>,
}

impl<'a> Run<'a> {
    fn new(path: &'a Path, controller: &'a mut Checked, start: Time) -> Self {
        Self {
            path,
            controller,
            rng: Rng::new(1),
            now: start,
            link_free: start,
            may_send: start,
            flight: VecDeque::new(),
            rtt: [Span::ZERO, Span::ZERO, Span::MAX],
            delivered: Bytes(0),
            recovery_start: None,
        }
    }

    /// Bytes delivered by the end.
    fn finish(mut self) -> Bytes {
        let end = self.now + self.path.duration;
        while self.now < end {
            self.controller.on_timer(self.now);
            let paced = self.send_all();
            let delivery = self.flight.iter().find_map(|packet| packet.acked_at);
            match delivery {
                Some(at) if !paced || at <= self.may_send => self.deliver(),
                _ if paced => self.now = self.may_send,
                _ => self.time_out(),
            }
        }
        self.delivered
    }

    fn window(&self) -> usize {
        ((self.controller.check().cwnd.0 / MSS) as usize).min(INFLIGHT_MAX)
    }

    /// Sends what may be sent; whether only the pace keeps the next packet back.
    fn send_all(&mut self) -> bool {
        while self.flight.len() < self.window() {
            if self.now < self.may_send {
                return true;
            }
            let send = Send { now: self.now, size: Bytes(MSS), ..Send::default() };
            let inner = &mut self.controller.inner;
            if inner.has_send_hook() && inner.on_send(&send) == SendAction::Hold {
                return false;
            }
            let packet = self.packet();
            self.flight.push_back(packet);
            let control = self.controller.check();
            if control.pacing_rate != Rate::UNLIMITED {
                self.may_send = self.now + control.pacing_rate.time_for(Bytes(MSS)).max(Span(1));
            }
        }
        false
    }

    fn packet(&mut self) -> Packet {
        let time_on_link = self.path.rate.time_for(Bytes(MSS));
        let queue_full = self.link_free.since(self.now) > time_on_link * self.path.buffer;
        if queue_full || self.rng.chance(self.path.loss_ratio) {
            return Packet { sent_at: self.now, acked_at: None };
        }
        self.link_free = self.link_free.max(self.now) + time_on_link;
        Packet { sent_at: self.now, acked_at: Some(self.link_free + self.path.base_rtt) }
    }

    /// Declares what is missing before the first deliveries lost, then tells of these.
    fn deliver(&mut self) {
        let flight_size = Bytes(self.flight.len() as u64 * MSS);
        let mut lost = Vec::new();
        let mut got: Vec<Packet> = Vec::new();
        while got.len() < self.path.batch {
            match self.flight.pop_front() {
                Some(packet) if packet.acked_at.is_some() => got.push(packet),
                Some(packet) if got.is_empty() => lost.push(packet.sent_at),
                Some(packet) => {
                    self.flight.push_front(packet);
                    break;
                }
                None => break,
            }
        }
        let last = got.last().expect("something was delivered");
        self.now = last.acked_at.expect("it was").max(self.now);
        self.sample(self.now.since(last.sent_at));
        if let Some(&sent_at) = lost.last() {
            self.lose(sent_at, lost.len() as u64, flight_size);
        }
        self.acknowledge(last.sent_at, got.len() as u64);
    }

    fn sample(&mut self, rtt: Span) {
        if self.path.samples {
            let [_, smoothed, smallest] = self.rtt;
            let smoothed = if smoothed == Span::ZERO { rtt } else { (smoothed * 7 + rtt) / 8 };
            self.rtt = [rtt, smoothed, smallest.min(rtt)];
        }
    }

    fn lose(&mut self, sent_at: Time, packets: u64, flight_size: Bytes) {
        let told = self.recovery_start.is_some_and(|start| sent_at <= start);
        self.controller.on_loss(&Loss {
            now: self.now,
            sent_at,
            lost: Bytes(packets * MSS),
            inflight: flight_size,
            kind: if told { LossKind::More } else { LossKind::Gap },
            ..Loss::default()
        });
        if !told {
            self.recovery_start = Some(self.now);
        }
    }

    fn acknowledge(&mut self, sent_at: Time, packets: u64) {
        let [rtt, srtt, min_rtt] = self.rtt;
        self.delivered += Bytes(packets * MSS);
        let inflight = Bytes(self.flight.len() as u64 * MSS);
        self.controller.on_ack(&Ack {
            now: self.now,
            sent_at,
            rtt,
            srtt,
            min_rtt: if self.path.samples { min_rtt } else { Span::ZERO },
            rtt_max: rtt,
            batch_rtt_min: rtt,
            acked: Bytes(packets * MSS),
            ce_marked: Bytes(0),
            inflight,
            prior_inflight: inflight + Bytes(packets * MSS),
            delivered: self.delivered,
            delivery_rate: Rate::of(inflight + Bytes(packets * MSS), rtt.max(Span(1))),
            recovering: u64::from(self.recovery_start.is_some_and(|start| sent_at <= start)),
            cwnd_limited: 1,
            ..Ack::default()
        });
    }

    fn time_out(&mut self) {
        let wait = Span::from_millis(1000).max(self.rtt[1] * 2);
        let inflight = Bytes(self.flight.len() as u64 * MSS);
        let sent_at = self.now;
        self.now += wait;
        self.flight.clear();
        self.recovery_start = None;
        let (now, kind) = (self.now, LossKind::Timeout);
        let lost = inflight;
        self.controller.on_loss(&Loss { now, sent_at, lost, inflight, kind, ..Loss::default() });
    }
}

fn run(path: &Path, controller: &mut Checked) -> Bytes {
    Run::new(path, controller, Time(0)).finish()
}

#[test]
fn names_are_file_names() {
    table::check_names("controllers", ALL.iter().map(|spec| spec.name));
}

#[test]
fn every_controller_and_every_setting_says_what_it_is() {
    for spec in ALL {
        table::check_texts(spec.name, [spec.about, spec.source], spec.params);
    }
}

#[test]
fn the_same_seed_repeats_every_window() {
    for spec in ALL {
        let path = Path { loss_ratio: 0.001, ..PATH };
        let (mut first, mut second) = (Checked::defaults(spec, 6), Checked::defaults(spec, 6));
        assert_eq!(run(&path, &mut first), run(&path, &mut second), "{}", spec.name);
        assert_eq!(first.windows, second.windows, "{}", spec.name);
        assert_eq!(first.inner.counters(), second.inner.counters(), "{}", spec.name);
    }
}

#[test]
fn a_clean_path_is_used() {
    for spec in ALL {
        let delivered = run(&PATH, &mut Checked::defaults(spec, 1));
        let share = delivered.0 as f64 / PATH.rate.bytes_in(PATH.duration).0 as f64;
        assert!(share > 0.3, "{} uses {share} of the link", spec.name);
    }
}

#[test]
fn every_setting_at_every_end_survives() {
    let path = Path { loss_ratio: 0.02, duration: Span::from_millis(2000), buffer: 20, ..PATH };
    for spec in ALL {
        for params in table::at_every_end(spec.name, spec.params) {
            run(&path, &mut Checked::new(spec, &params, 2));
        }
    }
}

#[test]
fn extreme_paths_are_survived() {
    let paths = [
        (
            "1 us",
            Path {
                rate: Rate(10_000_000_000),
                base_rtt: Span::from_micros(1),
                duration: Span::from_millis(20),
                ..PATH
            },
        ),
        (
            "10 s",
            Path {
                base_rtt: Span::from_millis(10_000),
                duration: Span::from_millis(200_000),
                ..PATH
            },
        ),
        ("30 % loss", Path { loss_ratio: 0.3, duration: Span::from_millis(60_000), ..PATH }),
        ("no samples", Path { samples: false, loss_ratio: 0.01, ..PATH }),
        ("no buffer", Path { buffer: 0, ..PATH }),
        ("64 in a record", Path { batch: 64, ..PATH }),
    ];
    for spec in ALL {
        for (what, path) in &paths {
            for seed in [1, 2] {
                let delivered = run(path, &mut Checked::defaults(spec, seed));
                assert!(delivered > Bytes(0), "{} delivers nothing on {what}", spec.name);
            }
        }
    }
}

#[test]
fn an_idle_hour_does_not_more_than_double_the_window() {
    for spec in ALL {
        let mut controller = Checked::defaults(spec, 1);
        run(&Path { loss_ratio: 0.0005, ..PATH }, &mut controller);
        let before = controller.check().cwnd;
        let rtt = PATH.base_rtt;
        let now = Time::from_secs_f64(3610.0);
        let sent_at = Time(now.0 - rtt.0);
        let (srtt, min_rtt, rtt_max, batch_rtt_min) = (rtt, rtt, rtt, rtt);
        let ack = Ack { now, sent_at, rtt, srtt, min_rtt, rtt_max, batch_rtt_min, ..STREAM };
        let after = controller.on_ack(&ack).cwnd;
        assert!(after <= before * 2, "{}: {before:?} to {after:?}", spec.name);
        Run::new(&PATH, &mut controller, now).finish();
    }
}

/// What all ACKs of an open-loop stream share.
const STREAM: Ack = Ack {
    now: Time(0),
    sent_at: Time(0),
    rtt: Span::from_millis(100),
    srtt: Span::from_millis(100),
    min_rtt: Span::from_millis(95),
    rtt_max: Span::from_millis(100),
    batch_rtt_min: Span::from_millis(100),
    acked: Bytes(MSS),
    ce_marked: Bytes(0),
    inflight: Bytes(100 * MSS),
    prior_inflight: Bytes(101 * MSS),
    delivered: Bytes(0),
    delivery_rate: Rate(10_000_000),
    tx_inflight: Bytes(0),
    delivered_since: Bytes(0),
    lost_since: Bytes(0),
    app_limited: 0,
    recovering: 0,
    cwnd_limited: 1,
};

/// The window after 20 s of a thousand packets a second with one loss, told `batch` packets at a
/// time.
fn window_after_stream(spec: &'static Spec, seed: u64, batch: u64) -> f64 {
    let flow = FlowInfo {
        mss: Bytes(MSS),
        initial_cwnd: Bytes(10 * MSS),
        initial_ssthresh: Bytes(60 * MSS),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed,
    };
    let mut controller = Checked::with_flow(spec, &defaults(spec), &flow);
    let loss_ms = 4000;
    for now_ms in (1..=20_000_u64).filter(|now_ms| now_ms % batch == 0) {
        let now = Time(0) + Span::from_millis(100 + now_ms);
        let sent_at = Time(0) + Span::from_millis(now_ms);
        controller.on_timer(now);
        if now_ms == loss_ms {
            let (lost, inflight) = (Bytes(MSS), Bytes(100 * MSS));
            controller.on_loss(&Loss { now, sent_at, lost, inflight, ..Loss::default() });
        }
        controller.on_ack(&Ack {
            now,
            sent_at,
            acked: Bytes(batch * MSS),
            delivered: Bytes(now_ms * MSS),
            recovering: u64::from((loss_ms..=loss_ms + 100).contains(&now_ms)),
            ..STREAM
        });
    }
    controller.check().cwnd.0 as f64
}

#[test]
fn batched_acks_give_the_same_window() {
    // Within 5 % of the windows that single ACKs give. A controller that draws random numbers takes
    // other draws when its calls shift by a packet; for it the mean over the seeds must lie among
    // those that single ACKs give.
    for spec in ALL {
        let single: Vec<f64> = (1..=8).map(|seed| window_after_stream(spec, seed, 1)).collect();
        let low = single.iter().copied().fold(f64::INFINITY, f64::min);
        let high = single.iter().copied().fold(0.0, f64::max);
        for batch in [2, 8] {
            let sum: f64 = (1..=8).map(|seed| window_after_stream(spec, seed, batch)).sum();
            let mean = sum / 8.0;
            assert!(
                mean >= 0.95 * low && mean <= 1.05 * high,
                "{}: {mean} bytes with {batch} ACKs a call, {low} to {high} with one",
                spec.name
            );
        }
    }
}

/// One packet lost a second after a run over `PATH`, with a full window in flight.
fn lost_after_run(kind: LossKind, window: Bytes) -> Loss {
    Loss {
        now: Time::from_secs_f64(11.0),
        sent_at: Time::from_secs_f64(10.9),
        lost: Bytes(MSS),
        inflight: window,
        kind,
        ..Loss::default()
    }
}

#[test]
fn a_window_does_not_grow_on_a_loss_and_nearly_closes_on_a_timeout() {
    for spec in ALL {
        let mut controller = Checked::defaults(spec, 1);
        run(&PATH, &mut controller);
        if !controller.governs_by_window() {
            continue;
        }
        let before = controller.check().cwnd;
        let mut loss = lost_after_run(LossKind::Gap, before);
        let after = controller.on_loss(&loss).cwnd;
        assert!(after <= before, "{}: {before:?} to {after:?}", spec.name);
        loss.kind = LossKind::Timeout;
        loss.now = Time::from_secs_f64(12.0);
        let after = controller.on_loss(&loss).cwnd;
        assert!(after <= Bytes(2 * MSS), "{}: {after:?} after a timeout", spec.name);
    }
}

#[test]
fn a_time_out_of_what_was_answered_keeps_the_threshold_and_closes_the_window() {
    // RFC 5681 section 3.1; Linux: tcp_enter_loss. A controller that answers no gap lowers its threshold at the first.
    let path = Path { duration: Span::from_millis(3000), ..PATH };
    for spec in ALL {
        for params in
            std::iter::once(defaults(spec)).chain(table::at_every_end(spec.name, spec.params))
        {
            for kind in [LossKind::Timeout, LossKind::Gap] {
                let mut controller = Checked::new(spec, &params, 1);
                run(&path, &mut controller);
                let loss = lost_after_run(kind, controller.check().cwnd);
                let mut before = controller.on_loss(&loss);
                for times in 1..4_u64 {
                    let now = Time::from_secs_f64(11.0 + times as f64);
                    let again = Loss { now, kind: LossKind::TimeoutAgain, ..loss };
                    let after = controller.on_loss(&again);
                    let what = format!("{}: {params:?}: {before:?} {after:?}", spec.name);
                    assert!(after.cwnd <= before.cwnd.max(Bytes(2 * MSS)), "{what}");
                    if kind == LossKind::Timeout || times > 1 {
                        assert_eq!(after.ssthresh, before.ssthresh, "{what}");
                    }
                    before = after;
                }
            }
        }
    }
}

/// RFC 5681 section 4.3: what was sent again after a time-out is lost, which is congestion once more.
#[test]
fn a_gap_after_a_time_out_raises_no_window_and_the_link_is_used_again() {
    for spec in ALL {
        let mut controller = Checked::defaults(spec, 1);
        run(&PATH, &mut controller);
        let loss = lost_after_run(LossKind::Timeout, controller.check().cwnd);
        let before = controller.on_loss(&loss);
        let now = loss.now + Span::from_millis(200);
        let (kind, inflight) = (LossKind::Gap, Bytes(2 * MSS));
        let after = controller.on_loss(&Loss { now, sent_at: loss.now, inflight, kind, ..loss });
        let what = format!("{}: {before:?} {after:?}", spec.name);
        if controller.governs_by_window() {
            assert!(after.cwnd <= before.cwnd.max(Bytes(2 * MSS)), "{what}");
            assert!(after.ssthresh <= before.ssthresh, "{what}");
        }
        let delivered = Run::new(&PATH, &mut controller, now + Span::from_millis(100)).finish();
        let share = delivered.0 as f64 / PATH.rate.bytes_in(PATH.duration).0 as f64;
        assert!(share > 0.3, "{} uses {share} of the link", spec.name);
    }
}

#[test]
fn a_spurious_loss_lowers_no_window_and_gives_back_no_more_than_was_taken() {
    for spec in ALL {
        for kind in [LossKind::Gap, LossKind::Timeout] {
            let mut controller = Checked::defaults(spec, 1);
            run(&PATH, &mut controller);
            if !controller.governs_by_window() {
                continue;
            }
            let before = controller.check().cwnd;
            let loss = lost_after_run(kind, before);
            let reduced = controller.on_loss(&loss).cwnd;
            let undone = Loss { lost: Bytes::ZERO, kind: LossKind::Spurious, ..loss };
            let after = controller.on_loss(&undone).cwnd;
            assert!(
                after >= reduced && after <= before,
                "{}: {before:?} {reduced:?} {after:?}",
                spec.name
            );
        }
    }
}

/// Anything a transport could say, and more.
#[derive(Clone, Debug)]
enum Event {
    Ack(Ack),
    Loss(Loss),
    Timer(Time),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => ack().prop_map(Event::Ack),
        2 => loss().prop_map(Event::Loss),
        1 => number().prop_map(|now| Event::Timer(Time(now))),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_sequence_of_events_breaks_a_controller(
        events in prop::collection::vec(event(), 1..200),
        seed in any::<u64>(),
    ) {
        for spec in ALL {
            let mut controller = Checked::defaults(spec, seed);
            for event in &events {
                match event {
                    Event::Ack(ack) => { controller.on_ack(ack); }
                    Event::Loss(loss) => { controller.on_loss(loss); }
                    Event::Timer(now) => controller.on_timer(*now),
                }
            }
        }
    }

    #[test]
    fn no_flow_breaks_a_controller(
        [cwnd, ssthresh, start, seed] in [number(), number(), number(), number()],
        acks in prop::collection::vec(ack(), 1..50),
    ) {
        for spec in ALL {
            let flow = FlowInfo {
                mss: Bytes(MSS),
                initial_cwnd: Bytes(cwnd),
                initial_ssthresh: Bytes(ssthresh),
                recovery: Recovery::Ns2,
                paces: false,
                start: Time(start),
                seed,
            };
            let mut controller =
                Checked::with_flow(spec, &defaults(spec), &flow);
            for ack in &acks {
                controller.on_ack(ack);
            }
        }
    }
}
