//! CUBIC as ns-3.37 codes it (`TcpCubic`), for papers whose numbers came from ns-3. It counts whole
//! segments, has no Reno-friendly region, and its classic `HyStart` watches the *smoothed* round trip:
//! ns-3.37 hands the estimate, not the sample, to its controllers.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "cubic_ns3",
    about: "CUBIC in whole segments with classic HyStart, as ns-3.37 codes it",
    source: "ns-3.37 tcp-cubic.cc; Ha, Rhee and Xu 2008",
    params: &[
        Param {
            name: "beta",
            about: "what a reduction leaves of the window (source: ns-3.37, Beta)",
            kind: ParamKind::Number { default: 0.7, min: 0.05, max: 0.95 },
        },
        Param {
            name: "c",
            about: "steepness of the cubic, segments/s^3 (source: ns-3.37, C)",
            kind: ParamKind::Number { default: 0.4, min: 0.001, max: 100.0 },
        },
        Param {
            name: "fast_convergence",
            about: "whether a reduction below the last maximum lowers the next one (source: ns-3.37, \
                    FastConvergence)",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Param {
            name: "hystart",
            about: "whether slow start ends when ACKs come in a train longer than the smallest round \
                    trip, or the round trip doubles (source: ns-3.37, HyStart)",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Param {
            name: "friendliness",
            about: "whether the window grows at least as Reno's would (source: ns-3.41 and later, \
                    TcpFriendliness; 3.37 has none)",
            kind: ParamKind::Choice(&["off", "on"]),
        },
    ],
    build: |flow, params| Box::new(CubicNs3::new(flow, params)),
};

/// Maximum number of segments that one record is credited with: growth goes in steps of two segments, and a
/// record must cost a bounded time.
const RECORD_SEGMENTS_MAX: f64 = 4096.0;

/// Returns to the window of the last loss along a cubic, one whole segment at a time.
#[derive(Clone, Debug)]
pub struct CubicNs3 {
    window: Window,
    beta: f64,
    c: f64,
    fast_convergence: bool,
    friendliness: bool,
    /// Acknowledged segments; the fraction waits for the next record.
    uncounted: f64,
    /// Segments acknowledged since the window last grew (`m_cWndCnt`).
    counted: u64,
    /// Window before the last reduction, segments; 0 before the first and after a time-out.
    last_max: u64,
    epoch: Option<Epoch>,
    /// Smallest smoothed round trip; `Span::MAX` before the first.
    delay_min: Span,
    hystart: Option<HyStart>,
}

/// One congestion-avoidance stage.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Time,
    /// When the cubic reaches its plateau, seconds.
    k: f64,
    /// The plateau, segments.
    origin: u64,
    /// What Reno would have, segments, and acknowledged segments on the way to its next.
    reno: (u64, u64),
}

/// Leaves slow start on a long train of ACKs or a grown round trip.
#[derive(Clone, Copy, Debug)]
struct HyStart {
    round_start: Time,
    last_ack: Time,
    /// Smallest smoothed round trip among the round's first.
    round_min: Span,
    samples: u32,
    found: bool,
}

impl CubicNs3 {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            window: Window::new(flow),
            beta: params.number("beta"),
            c: params.number("c"),
            fast_convergence: params.choice("fast_convergence") == "on",
            friendliness: params.choice("friendliness") == "on",
            uncounted: 0.0,
            counted: 0,
            last_max: 0,
            epoch: None,
            delay_min: Span::MAX,
            hystart: (params.choice("hystart") == "on").then(HyStart::new),
        }
    }

    fn segments(&self) -> u64 {
        self.window.cwnd as u64
    }

    /// `PktsAcked`: the smallest delay, and whether slow start is to end.
    fn watch_delay(&mut self, ack: &Ack) {
        let just_recovered =
            self.epoch.is_some_and(|epoch| ack.now.since(epoch.start) < CUBIC_DELTA);
        if just_recovered || ack.srtt == Span::ZERO {
            return;
        }
        self.delay_min = self.delay_min.min(ack.srtt);
        let watched = self.window.cwnd <= self.window.ssthresh && self.window.cwnd >= LOW_WINDOW;
        if let Some(hystart) = &mut self.hystart
            && watched
            && hystart.ends_slow_start(ack, self.delay_min)
        {
            self.window.ssthresh = self.window.cwnd;
        }
    }

    /// `IncreaseWindow` for up to two segments, as many as a delayed ACK brings.
    fn increase(&mut self, ack: &Ack, acked: u64) {
        if self.window.in_slow_start() {
            if let Some(hystart) = &mut self.hystart
                && ack.sent_at >= hystart.round_start
            {
                hystart.start_round(ack.now);
            }
            self.window.grow(acked as f64);
            return;
        }
        self.counted += acked;
        let needed = self.acks_per_segment(ack.now, acked);
        if self.counted >= needed {
            self.counted -= needed;
            self.window.grow(1.0);
        }
    }

    /// `Update`: acknowledged segments for which the window grows by one.
    fn acks_per_segment(&mut self, now: Time, acked: u64) -> u64 {
        let cwnd = self.segments();
        let (last_max, c) = (self.last_max, self.c);
        let epoch = self.epoch.get_or_insert_with(|| Epoch::start(now, cwnd, last_max, c));
        let t = (now.since(epoch.start) + self.delay_min).as_secs_f64();
        let offset = (t - epoch.k).abs();
        let delta = (self.c * offset * offset * offset) as u64;
        let target = if t < epoch.k {
            epoch.origin.saturating_sub(delta)
        } else {
            epoch.origin.saturating_add(delta)
        };
        let mut needed = if target > cwnd { cwnd / (target - cwnd) } else { 100 * cwnd };
        if self.last_max == 0 {
            needed = needed.min(COUNT_CLAMP);
        }
        if self.friendliness {
            let reno = epoch.reno_window(cwnd, acked, self.beta);
            if reno > cwnd {
                needed = needed.min(cwnd / (reno - cwnd));
            }
        }
        needed.max(2)
    }

    /// `GetSsThresh`.
    fn reduce(&mut self) {
        self.window.remember();
        let cwnd = self.segments();
        self.last_max = if cwnd < self.last_max && self.fast_convergence {
            (cwnd as f64 * (1.0 + self.beta) / 2.0) as u64
        } else {
            cwnd
        };
        self.epoch = None;
        self.window.ssthresh = (cwnd as f64 * self.beta).floor().max(2.0);
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
    }
}

impl Epoch {
    fn start(now: Time, cwnd: u64, last_max: u64, c: f64) -> Self {
        let (k, origin) = if last_max > cwnd {
            (libm::cbrt((last_max - cwnd) as f64 / c), last_max)
        } else {
            (0.0, cwnd)
        };
        Self { start: now, k, origin, reno: (cwnd, 0) }
    }

    /// Reno's window after another `acked` segments, for a reduction to `beta` (Linux's
    /// `beta_scale`).
    fn reno_window(&mut self, cwnd: u64, acked: u64, beta: f64) -> u64 {
        let scale = 8.0 * (1.0 + beta) / 3.0 / (1.0 - beta);
        let per_segment = ((cwnd as f64 * scale / 8.0) as u64).max(1);
        let (window, credit) = &mut self.reno;
        *credit += acked;
        if *credit > per_segment {
            let grown = (*credit - 1) / per_segment;
            *credit -= grown * per_segment;
            *window += grown;
        }
        *window
    }
}

impl HyStart {
    fn new() -> Self {
        Self {
            round_start: Time(0),
            last_ack: Time(0),
            round_min: Span::MAX,
            samples: 0,
            found: false,
        }
    }

    fn start_round(&mut self, now: Time) {
        *self = Self { round_start: now, last_ack: now, found: self.found, ..Self::new() };
    }

    /// `HystartUpdate`. Once found, it is not looked for again before the next time-out.
    fn ends_slow_start(&mut self, ack: &Ack, delay_min: Span) -> bool {
        if self.found {
            return false;
        }
        if ack.now.since(self.last_ack) <= TRAIN_SPACING {
            self.last_ack = ack.now;
            self.found = ack.now.since(self.round_start) > delay_min;
        }
        if self.samples < MIN_SAMPLES {
            self.round_min = self.round_min.min(ack.srtt);
            self.samples += 1;
        } else {
            let increase = delay_min.max(DELAY_MIN).min(DELAY_MAX);
            self.found |= self.round_min > delay_min + increase;
        }
        self.found
    }
}

impl Controller for CubicNs3 {
    fn on_ack(&mut self, ack: &Ack) {
        self.watch_delay(ack);
        if ack.recovering == 1 {
            return;
        }
        self.uncounted += self.window.packets(ack.acked).min(RECORD_SEGMENTS_MAX);
        while self.uncounted >= 1.0 {
            let acked = self.uncounted.min(2.0).floor();
            self.uncounted -= acked;
            self.increase(ack, acked as u64);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::More => {}
            LossKind::Deflate | LossKind::Idle | LossKind::Spurious => self.window.reduce(loss),
            LossKind::Gap => self.reduce(),
            LossKind::Timeout | LossKind::TimeoutAgain => {
                if loss.kind == LossKind::Timeout {
                    self.reduce();
                }
                self.window.cwnd = 1.0;
                self.last_max = 0;
                self.delay_min = Span::MAX;
                if let Some(hystart) = &mut self.hystart {
                    *hystart = HyStart::new();
                    hystart.start_round(loss.now);
                }
            }
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

// ns-3.37's attributes of the same names.
const CUBIC_DELTA: Span = Span::from_millis(10);
const COUNT_CLAMP: u64 = 20;
const LOW_WINDOW: f64 = 16.0;
const TRAIN_SPACING: Span = Span::from_millis(2);
const MIN_SAMPLES: u32 = 8;
const DELAY_MIN: Span = Span::from_millis(4);
const DELAY_MAX: Span = Span::from_millis(1000);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::test_support::{MSS, flow};
    use crate::params::ParamValue;
    use crate::units::Bytes;

    fn cubic(settings: &[(&str, &str)]) -> CubicNs3 {
        let given: Vec<_> = settings
            .iter()
            .map(|(name, word)| ((*name).to_owned(), ParamValue::Word((*word).to_owned())))
            .collect();
        CubicNs3::new(&flow(), &Params::resolve(SPEC.params, &given).unwrap())
    }

    fn ack(millis: f64, srtt_ms: u64, segments: u64) -> Ack {
        let now = Time::from_secs_f64(millis / 1e3);
        Ack {
            now,
            sent_at: Time(now.0.saturating_sub(srtt_ms * 1_000_000)),
            rtt: Span::from_millis(srtt_ms),
            srtt: Span::from_millis(srtt_ms),
            acked: Bytes(segments * MSS),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    fn loss(kind: LossKind) -> Loss {
        Loss { kind, inflight: Bytes(5 * MSS), ..Loss::default() }
    }

    fn after_loss_at(cwnd: f64) -> CubicNs3 {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = cwnd;
        cubic.on_loss(&loss(LossKind::Gap));
        cubic
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn a_loss_leaves_whole_segments_of_the_window_whatever_is_in_flight() {
        let cubic = after_loss_at(101.0);
        close(cubic.window.ssthresh, 70.0); // 70.7 cut
        close(cubic.window.cwnd, 70.0);
        assert_eq!(cubic.last_max, 101);
    }

    #[test]
    fn a_window_that_did_not_come_back_gives_up_some_of_its_maximum() {
        let mut cubic = after_loss_at(100.0);
        cubic.on_loss(&loss(LossKind::Gap));
        assert_eq!(cubic.last_max, 59); // 70 * 0.85 = 59.5 cut
    }

    #[test]
    fn the_window_is_never_reduced_below_two_segments() {
        let mut cubic = after_loss_at(3.0);
        cubic.on_loss(&loss(LossKind::Gap));
        close(cubic.window.ssthresh, 2.0);
    }

    #[test]
    fn the_plateau_is_reached_after_k_seconds() {
        let mut cubic = after_loss_at(100.0);
        let k_ms = 1e3 * libm::cbrt(30.0 / 0.4);
        let mut now = 0.0;
        while now < k_ms {
            cubic.on_ack(&ack(now, 100, 1));
            now += 100.0 / cubic.window.cwnd;
        }
        assert!((97.0..=101.0).contains(&cubic.window.cwnd), "{}", cubic.window.cwnd);
    }

    #[test]
    fn before_the_first_loss_the_window_grows_once_in_twenty_acked_segments() {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 50.0;
        cubic.window.ssthresh = 50.0;
        for step in 0..20 {
            close(cubic.window.cwnd, 50.0);
            cubic.on_ack(&ack(f64::from(step), 40, 1));
        }
        close(cubic.window.cwnd, 51.0);
    }

    #[test]
    fn the_window_grows_by_one_in_two_acked_segments_at_most() {
        let mut cubic = after_loss_at(10.0);
        cubic.last_max = 1_000_000;
        cubic.on_ack(&ack(0.0, 40, 1));
        cubic.epoch.as_mut().unwrap().k = 0.0;
        let before = cubic.window.cwnd;
        cubic.on_ack(&ack(10.0, 40, 8));
        close(cubic.window.cwnd - before, 4.0);
    }

    #[test]
    fn a_train_of_acks_longer_than_the_round_trip_ends_slow_start() {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 20.0;
        cubic.on_ack(&ack(40.0, 40, 1));
        let mut now = 42.0;
        while cubic.window.in_slow_start() && now < 200.0 {
            cubic.on_ack(&Ack { sent_at: Time(0), ..ack(now, 40, 2) });
            now += 2.0;
        }
        assert!((80.0..=86.0).contains(&now), "{now}");
    }

    #[test]
    fn spaced_acks_leave_slow_start_only_once_the_smoothed_round_trip_has_doubled() {
        let exit = |srtt_ms: u64| {
            let mut cubic = cubic(&[]);
            cubic.window.cwnd = 20.0;
            cubic.on_ack(&ack(40.0, 40, 1));
            for step in 0..12 {
                let now = 200.0 + f64::from(step) * 3.0;
                cubic.on_ack(&Ack { sent_at: Time(0), ..ack(now, srtt_ms, 1) });
            }
            !cubic.window.in_slow_start()
        };
        assert!(!exit(80));
        assert!(exit(81));
    }

    #[test]
    fn without_hystart_slow_start_goes_on() {
        let mut cubic = cubic(&[("hystart", "off")]);
        for step in 0..100 {
            cubic.on_ack(&ack(40.0 + f64::from(step), 500, 1));
        }
        close(cubic.window.cwnd, 110.0);
    }

    #[test]
    fn friendliness_lifts_a_window_that_grows_slower_than_renos() {
        let run = |friendliness| {
            let mut cubic = cubic(&[("friendliness", friendliness)]);
            cubic.window.cwnd = 20.0;
            cubic.on_loss(&loss(LossKind::Gap));
            for step in 0..2000 {
                cubic.on_ack(&ack(f64::from(step) * 0.5, 10, 1));
            }
            cubic.window.cwnd
        };
        assert!(run("on") > run("off") + 5.0, "{} against {}", run("on"), run("off"));
    }

    #[test]
    fn after_a_timeout_it_has_no_maximum_and_looks_for_the_end_of_slow_start_again() {
        let mut cubic = after_loss_at(100.0);
        cubic.on_loss(&loss(LossKind::Timeout));
        close(cubic.window.cwnd, 1.0);
        close(cubic.window.ssthresh, 49.0);
        assert_eq!((cubic.last_max, cubic.hystart.unwrap().found), (0, false));
    }

    #[test]
    fn nothing_grows_in_recovery() {
        let mut cubic = after_loss_at(100.0);
        cubic.on_ack(&Ack { recovering: 1, ..ack(1.0, 40, 10) });
        close(cubic.window.cwnd, 70.0);
    }
}
