//! CUBIC (RFC 9438), in packets of the flow's own size, with `HyStart++` (RFC 9406) on request.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Recovery, Spec};
use crate::params::{Param, ParamKind, Params};
use crate::reno_window::Window;
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "cubic",
    about: "window grows as a cubic of the time since the last reduction",
    source: "RFC 9438; HyStart++ from RFC 9406",
    params: &[
        Param {
            name: "beta",
            about: "what a reduction leaves of the window (source: RFC 9438 section 4.6)",
            kind: ParamKind::Number { default: 0.7, min: 0.05, max: 0.95 },
        },
        Param {
            name: "c",
            about: "steepness of the cubic, packets/s^3 (source: RFC 9438 section 5.1)",
            kind: ParamKind::Number { default: 0.4, min: 0.001, max: 100.0 },
        },
        Param {
            name: "fast_convergence",
            about: "whether a reduction below the last maximum lowers the next one (source: RFC 9438 \
                    section 4.7)",
            kind: ParamKind::Choice(&["on", "off"]),
        },
        Param {
            name: "hystart",
            about: "how slow start ends before a loss: `off` as in RFC 5681, so that runs compare \
                    with simulators that have none, or `plus` (source: RFC 9406, without its limit \
                    L, as for a paced sender: a record may stand for many ACKs)",
            kind: ParamKind::Choice(&["off", "plus"]),
        },
        Param {
            name: "reduce_from",
            about: "what a reduction multiplies: `auto` takes FlightSize (source: RFC 9438 \
                    section 4.6), and the window under ns-2's recovery, as Linux does",
            kind: ParamKind::Choice(&["auto", "flight", "window"]),
        },
    ],
    build: |flow, params| Box::new(Cubic::new(flow, params)),
};

/// Returns fast to the window of the last loss, lingers there, then probes beyond it.
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    beta: f64,
    c: f64,
    fast_convergence: bool,
    of_flight: bool,
    /// Plateau of the cubic, packets; zero before the first reduction and after a timeout.
    w_max: f64,
    /// `cwnd` when `ssthresh` was last set, packets.
    cwnd_prior: f64,
    /// The present congestion-avoidance stage; `None` outside one.
    epoch: Option<Epoch>,
    /// A mark on a packet sent before this is already answered for.
    reduced_at: Option<Time>,
    hystart: Option<HyStart>,
}

/// One congestion-avoidance stage.
#[derive(Clone, Debug)]
struct Epoch {
    /// Time in the stage, without what the application left unused (RFC 9438 section 5.8).
    elapsed: Span,
    last_ack: Time,
    /// When the cubic reaches its plateau, seconds (equation 2).
    k: f64,
    /// What Reno would have by now, packets (section 4.3).
    w_est: f64,
}

impl Cubic {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            window: Window::new(flow),
            beta: params.number("beta"),
            c: params.number("c"),
            fast_convergence: params.choice("fast_convergence") == "on",
            of_flight: match params.choice("reduce_from") {
                "flight" => true,
                "window" => false,
                _ => flow.recovery == Recovery::Sack,
            },
            w_max: 0.0,
            cwnd_prior: 0.0,
            epoch: None,
            reduced_at: None,
            hystart: (params.choice("hystart") == "plus").then(HyStart::default),
        }
    }

    /// Slow start; what is left of `acked` (packets) is for congestion avoidance.
    fn slow_start(&mut self, ack: &Ack, acked: f64) -> f64 {
        let Some(hystart) = &mut self.hystart else {
            return self.window.slow_start(acked);
        };
        match hystart.on_ack(ack, acked) {
            Pace::Full => self.window.slow_start(acked),
            Pace::Conservative => self.window.slow_start(acked / CSS_GROWTH_DIVISOR),
            Pace::Exit => {
                self.window.ssthresh = self.window.cwnd;
                self.cwnd_prior = self.window.cwnd;
                self.hystart = None;
                acked
            }
        }
    }

    /// Congestion avoidance (RFC 9438 sections 4.2 to 4.5).
    fn avoid(&mut self, ack: &Ack, acked: f64) {
        let cwnd = self.window.cwnd;
        let Some(epoch) = &mut self.epoch else {
            return self.start_epoch(ack.now);
        };
        epoch.pass(ack);
        if ack.cwnd_limited == 0 {
            return;
        }
        // A batch of more than a window counts as one round trip.
        let share = (acked / cwnd).min(1.0);
        // Section 4.3: Reno's own slope once its window has come back to where it was.
        let alpha = if epoch.w_est >= self.cwnd_prior {
            1.0
        } else {
            3.0 * (1.0 - self.beta) / (1.0 + self.beta)
        };
        epoch.w_est += alpha * share;
        let since_plateau = epoch.elapsed.as_secs_f64() - epoch.k;
        let w_cubic = |t: f64| self.c * t * t * t + self.w_max;
        if w_cubic(since_plateau) < epoch.w_est {
            self.window.grow((epoch.w_est - cwnd).max(0.0));
        } else {
            let target = w_cubic(since_plateau + ack.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            self.window.grow(share * (target - cwnd));
        }
    }

    /// First ACK of a congestion-avoidance stage. Without a maximum to return to (slow start ended
    /// without loss, section 4.10, or a timeout came before it, section 4.8) the plateau is here.
    fn start_epoch(&mut self, now: Time) {
        let cwnd = self.window.cwnd;
        let k = if cwnd < self.w_max { libm::cbrt((self.w_max - cwnd) / self.c) } else { 0.0 };
        self.w_max = self.w_max.max(cwnd);
        self.epoch = Some(Epoch { elapsed: Span::ZERO, last_ack: now, k, w_est: cwnd });
    }

    /// Multiplicative decrease (RFC 9438 sections 4.6 and 4.7) from `flight` packets, down to
    /// `least` packets.
    fn reduce(&mut self, now: Time, flight: f64, least: f64) {
        let cwnd = self.window.cwnd;
        self.w_max = if cwnd < self.w_max && self.fast_convergence {
            cwnd * (1.0 + self.beta) / 2.0
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        let reduced = self.beta * if self.of_flight { flight } else { cwnd };
        self.window.ssthresh = reduced.max(2.0);
        self.window.cwnd = cwnd.min(reduced.max(least));
        self.epoch = None;
        self.reduced_at = Some(now);
        self.hystart = None; // RFC 9406 section 4.3: only the first slow start
    }

    /// RFC 3168 section 6.1.2: marks count as one loss for each window of data.
    fn answers_mark(&self, ack: &Ack) -> bool {
        ack.ce_marked.0 > 0
            && ack.recovering == 0
            && self.reduced_at.is_none_or(|reduced_at| ack.sent_at > reduced_at)
    }
}

impl Epoch {
    /// Counts the time since the last ACK, unless the window was not used in it. A silence longer
    /// than a busy flow has is an idle application, too.
    fn pass(&mut self, ack: &Ack) {
        let gap = ack.now.since(self.last_ack);
        self.last_ack = ack.now;
        if ack.cwnd_limited == 1 && gap <= (ack.srtt * 2).max(IDLE_MIN) {
            self.elapsed += gap;
        }
    }
}

impl Controller for Cubic {
    fn on_ack(&mut self, ack: &Ack) {
        if self.answers_mark(ack) {
            let flight = self.window.packets(ack.prior_inflight);
            return self.reduce(ack.now, flight, 1.0);
        }
        if ack.recovering == 1 {
            return;
        }
        let mut acked = self.window.packets(ack.acked);
        if self.window.in_slow_start() {
            if ack.cwnd_limited == 0 {
                return;
            }
            acked = self.slow_start(ack, acked);
        }
        if !self.window.in_slow_start() && acked > 0.0 {
            self.avoid(ack, acked);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::More => return,
            LossKind::Deflate | LossKind::Idle => {
                self.epoch = None;
                return self.window.reduce(loss);
            }
            LossKind::Gap | LossKind::Timeout => {}
        }
        self.reduce(loss.now, self.window.packets(loss.inflight), 2.0);
        if loss.kind == LossKind::Timeout {
            self.window.cwnd = 1.0;
            self.w_max = 0.0; // section 4.8: the next stage takes its own start for the maximum
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

/// A silence up to this long is never taken for an idle application: records may come in batches.
const IDLE_MIN: Span = Span::from_millis(100);

// RFC 9406 section 4.3.
const MIN_RTT_THRESH: Span = Span::from_millis(4);
const MAX_RTT_THRESH: Span = Span::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const N_RTT_SAMPLE: f64 = 8.0;
const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// Leaves slow start when round trips grow (RFC 9406 section 4.2).
#[derive(Clone, Debug)]
struct HyStart {
    /// An ACK of a packet sent after this ends the round.
    round_start: Time,
    last_round_min: Span,
    round_min: Span,
    /// Packets acknowledged with a sample in this round.
    samples: f64,
    conservative: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Debug)]
struct Css {
    baseline_min: Span,
    rounds: u32,
}

/// How fast slow start goes on.
enum Pace {
    Full,
    Conservative,
    Exit,
}

impl Default for HyStart {
    fn default() -> Self {
        Self {
            round_start: Time(0),
            last_round_min: Span::MAX,
            round_min: Span::MAX,
            samples: 0.0,
            conservative: None,
        }
    }
}

impl HyStart {
    fn on_ack(&mut self, ack: &Ack, acked: f64) -> Pace {
        if ack.sent_at >= self.round_start {
            self.start_round(ack.now);
        }
        if self.conservative.as_ref().is_some_and(|css| css.rounds >= CSS_ROUNDS) {
            return Pace::Exit;
        }
        if ack.rtt > Span::ZERO {
            self.round_min = self.round_min.min(ack.rtt);
            self.samples += acked;
        }
        if self.samples >= N_RTT_SAMPLE {
            self.judge();
        }
        if self.conservative.is_some() { Pace::Conservative } else { Pace::Full }
    }

    fn start_round(&mut self, now: Time) {
        self.round_start = now;
        self.last_round_min = self.round_min;
        self.round_min = Span::MAX;
        self.samples = 0.0;
        if let Some(css) = &mut self.conservative {
            css.rounds += 1;
        }
    }

    fn judge(&mut self) {
        if let Some(css) = &self.conservative {
            if self.round_min < css.baseline_min {
                self.conservative = None; // the growth was a spike, not a queue
            }
            return;
        }
        let threshold = (self.last_round_min / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
        // An unknown last round is `Span::MAX`, which the sum keeps: no sample reaches it.
        if self.round_min < Span::MAX && self.round_min >= self.last_round_min + threshold {
            self.conservative = Some(Css { baseline_min: self.round_min, rounds: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::params::ParamValue;
    use crate::units::Bytes;

    const MSS: u64 = 1000;

    fn flow(recovery: Recovery) -> FlowInfo {
        FlowInfo {
            mss: Bytes(MSS),
            initial_cwnd: Bytes(10 * MSS),
            initial_ssthresh: Bytes(u64::MAX),
            recovery,
            start: Time(0),
            seed: 1,
        }
    }

    fn cubic(settings: &[(&str, &str)]) -> Cubic {
        let given: Vec<_> = settings
            .iter()
            .map(|(name, word)| ((*name).to_owned(), ParamValue::Word((*word).to_owned())))
            .collect();
        Cubic::new(&flow(Recovery::Sack), &Params::resolve(SPEC.params, &given).unwrap())
    }

    /// A flow of 100 packets that has just lost one.
    fn after_loss_at_100() -> Cubic {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 100.0;
        cubic.on_loss(&loss(100, LossKind::Gap));
        cubic
    }

    fn loss(packets: u64, kind: LossKind) -> Loss {
        Loss { inflight: Bytes(packets * MSS), kind, ..Loss::default() }
    }

    fn ack_at(secs: f64, rtt_ms: u64) -> Ack {
        Ack {
            now: Time::from_secs_f64(secs),
            sent_at: Time::from_secs_f64(secs - rtt_ms as f64 / 1e3),
            rtt: Span::from_millis(rtt_ms),
            srtt: Span::from_millis(rtt_ms),
            acked: Bytes(MSS),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    /// Windows of ACKs, one window a round trip, from `start` to `end` seconds.
    fn run(cubic: &mut Cubic, rtt_ms: u64, (start, end): (f64, f64)) {
        let mut now = start;
        while now < end {
            cubic.on_ack(&ack_at(now, rtt_ms));
            now += rtt_ms as f64 / 1e3 / cubic.window.cwnd;
        }
    }

    fn close(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance, "{value} instead of {expected}");
    }

    #[test]
    fn a_loss_leaves_seven_tenths_of_the_flight() {
        let cubic = after_loss_at_100();
        close(cubic.window.cwnd, 70.0, 1e-9);
        close(cubic.window.ssthresh, 70.0, 1e-9);
        close(cubic.w_max, 100.0, 1e-9);
    }

    #[test]
    fn under_ns2_recovery_the_window_is_reduced_and_flight_size_is_ignored() {
        let mut cubic = Cubic::new(&flow(Recovery::Ns2), &Params::defaults(SPEC.params));
        cubic.window.cwnd = 100.0;
        cubic.on_loss(&loss(10, LossKind::Gap));
        close(cubic.window.cwnd, 70.0, 1e-9);
    }

    #[test]
    fn the_plateau_comes_after_k_seconds() {
        let mut cubic = after_loss_at_100();
        let k = libm::cbrt(30.0 / 0.4); // equation 2: 4.217 s
        run(&mut cubic, 100, (1.0, 1.0 + k));
        close(cubic.window.cwnd, 100.0, 0.5);
        run(&mut cubic, 100, (1.0 + k, 1.0 + 2.0 * k));
        close(cubic.window.cwnd, 130.0, 2.0);
    }

    #[test]
    fn fast_convergence_gives_up_some_of_a_window_that_did_not_come_back() {
        let mut cubic = after_loss_at_100();
        cubic.window.cwnd = 80.0;
        cubic.on_loss(&loss(80, LossKind::Gap));
        close(cubic.w_max, 68.0, 1e-9); // 80 * (1 + 0.7) / 2
        let mut without = self::cubic(&[("fast_convergence", "off")]);
        without.w_max = 100.0;
        without.window.cwnd = 80.0;
        without.on_loss(&loss(80, LossKind::Gap));
        close(without.w_max, 80.0, 1e-9);
    }

    #[test]
    fn on_short_round_trips_it_is_no_slower_than_reno() {
        // 10 ms: the cubic needs 4.2 s for 30 packets, Reno at alpha 0.53 only 0.57 s.
        let mut cubic = after_loss_at_100();
        run(&mut cubic, 10, (1.0, 1.3));
        close(cubic.window.cwnd, 70.0 + 30.0 * 0.5294, 1.0);
    }

    #[test]
    fn past_the_prior_window_the_reno_estimate_grows_by_one_per_round_trip() {
        let mut cubic = after_loss_at_100();
        run(&mut cubic, 1, (1.0, 1.08));
        let before = cubic.window.cwnd;
        assert!(before > 100.0, "{before}");
        run(&mut cubic, 1, (1.08, 1.09));
        close(cubic.window.cwnd - before, 10.0, 1.0);
    }

    #[test]
    fn the_target_is_at_most_half_a_window_away() {
        let mut cubic = after_loss_at_100();
        cubic.window.cwnd = 10.0;
        cubic.window.ssthresh = 10.0;
        cubic.w_max = 1e6;
        cubic.on_ack(&ack_at(1.0, 100));
        cubic.epoch.as_mut().unwrap().k = 0.0; // the cubic is far above
        cubic.on_ack(&ack_at(1.1, 100));
        close(cubic.window.cwnd, 10.5, 1e-9);
    }

    #[test]
    fn time_in_which_the_window_was_not_used_does_not_count() {
        let mut busy = after_loss_at_100();
        run(&mut busy, 100, (1.0, 3.0));
        let mut paused = after_loss_at_100();
        run(&mut paused, 100, (1.0, 2.0));
        for now in [2.0, 2.04, 2.08] {
            paused.on_ack(&Ack { cwnd_limited: 0, ..ack_at(now, 100) });
        }
        run(&mut paused, 100, (3600.0, 3601.0));
        close(paused.window.cwnd, busy.window.cwnd, 1.0);
    }

    #[test]
    fn after_a_timeout_the_first_stage_starts_on_its_plateau() {
        let mut cubic = after_loss_at_100();
        cubic.on_loss(&loss(70, LossKind::Timeout));
        close(cubic.window.cwnd, 1.0, 1e-9);
        close(cubic.window.ssthresh, 49.0, 1e-9);
        run(&mut cubic, 100, (2.0, 3.0));
        let epoch = cubic.epoch.as_ref().unwrap();
        close(epoch.k, 0.0, 1e-9);
        close(cubic.w_max, 49.0, 1.0);
    }

    #[test]
    fn marks_of_one_window_reduce_once() {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 100.0;
        let mark = Ack { ce_marked: Bytes(MSS), prior_inflight: Bytes(100 * MSS), ..ack_at(1.0, 100) };
        cubic.on_ack(&mark);
        close(cubic.window.cwnd, 70.0, 1e-9);
        cubic.on_ack(&Ack { now: Time::from_secs_f64(1.05), ..mark });
        assert!(cubic.window.cwnd >= 70.0);
        assert!(cubic.window.cwnd < 71.0);
    }

    #[test]
    fn nothing_grows_in_recovery() {
        let mut cubic = after_loss_at_100();
        cubic.on_ack(&Ack { recovering: 1, ..ack_at(1.0, 100) });
        close(cubic.window.cwnd, 70.0, 1e-9);
    }

    /// The windows after slow-start rounds with these round trips.
    fn slow_start_rounds(cubic: &mut Cubic, rtts_ms: &[u64]) -> Vec<f64> {
        let mut now = Time(0);
        let mut round = |&rtt_ms: &u64| {
            let sent_at = now;
            now += Span::from_millis(rtt_ms);
            for _ in 0..cubic.window.cwnd as u64 {
                cubic.on_ack(&Ack { now, sent_at, ..ack_at(0.0, rtt_ms) });
            }
            cubic.window.cwnd
        };
        rtts_ms.iter().map(&mut round).collect()
    }

    #[test]
    fn hystart_slows_down_when_the_round_trip_grows_and_leaves_five_rounds_later() {
        let mut cubic = cubic(&[("hystart", "plus")]);
        // Threshold 40/8 = 5 ms: the fifth round is the first to exceed it. A round then adds a
        // quarter of the window, and the fifth round after that ends slow start.
        let windows =
            slow_start_rounds(&mut cubic, &[40, 40, 40, 40, 46, 50, 60, 70, 80]);
        close(windows[3], 160.0, 1e-9);
        close(windows[4], 200.0, 7.0);
        close(windows[5] / windows[4], 1.25, 0.01);
        assert!(cubic.window.in_slow_start());
        let mut cubic = self::cubic(&[("hystart", "plus")]);
        slow_start_rounds(&mut cubic, &[40, 40, 40, 40, 46, 50, 60, 70, 80, 90]);
        assert!(!cubic.window.in_slow_start());
    }

    #[test]
    fn hystart_resumes_when_the_round_trip_falls_again() {
        let mut cubic = cubic(&[("hystart", "plus")]);
        let windows = slow_start_rounds(&mut cubic, &[40, 40, 46, 40, 40]);
        close(windows[4] / windows[3], 2.0, 0.01);
    }

    #[test]
    fn without_hystart_slow_start_ignores_the_round_trip() {
        let mut cubic = cubic(&[]);
        close(slow_start_rounds(&mut cubic, &[40, 80, 160])[2], 80.0, 1e-9);
    }
}
