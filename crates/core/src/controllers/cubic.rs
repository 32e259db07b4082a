//! CUBIC (RFC 9438), in packets of the flow's own size. Slow start ends as in Linux unless asked for
//! otherwise, since most hosts run that CUBIC.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Recovery, Spec};
use crate::controllers::shared::hystart::{self, CSS_GROWTH_DIVISOR, Pace};
use crate::controllers::shared::linux_growth::Growth;
use crate::params::{Param, ParamKind, Params};
use crate::controllers::shared::reno_window::Window;
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "cubic",
    about: "window grows as a cubic of the time since the last reduction; HyStart as in Linux",
    source: "RFC 9438; HyStart from Linux 6 and Ha and Rhee 2011; HyStart++ from RFC 9406",
    params: &[
        BETA,
        C,
        FAST_CONVERGENCE,
        Param {
            name: "hystart",
            about: "how slow start ends before a loss: `linux` by ACK trains and delays, with growth \
                    of at least 5 % per round trip until the first loss (source: Linux 6, as \
                    deployed), `off` only by loss (source: RFC 5681), or `plus` (source: RFC 9406, \
                    without its limit L, as for a paced sender: a record may stand for many ACKs)",
            kind: ParamKind::Choice(&["linux", "off", "plus"]),
        },
        REDUCE_FROM,
        Param {
            name: "rules",
            about: "`linux` counts whole packets and keeps the Reno estimate's first slope (source: Linux 6, \
                    as deployed); `rfc9438` keeps fractions, and takes Reno's own slope past the window of \
                    the loss (source: RFC 9438 section 4.3)",
            kind: ParamKind::Choice(&["linux", "rfc9438"]),
        },
    ],
    build: |flow, params| Box::new(Cubic::new(flow, params)),
};

/// Setting of every CUBIC here.
pub const BETA: Param = Param {
    name: "beta",
    about: "what a reduction leaves of the window (source: RFC 9438 section 4.6)",
    kind: ParamKind::Number { default: 0.7, min: 0.05, max: 0.95 },
};

/// Setting of every CUBIC here.
pub const C: Param = Param {
    name: "c",
    about: "steepness of the cubic, packets/s^3 (source: RFC 9438 section 5.1)",
    kind: ParamKind::Number { default: 0.4, min: 0.001, max: 100.0 },
};

/// Setting of every CUBIC here.
pub const FAST_CONVERGENCE: Param = Param {
    name: "fast_convergence",
    about: "whether a reduction below the last maximum lowers the next one (source: RFC 9438 \
            section 4.7)",
    kind: ParamKind::Choice(&["on", "off"]),
};

/// Setting of every CUBIC here.
pub const REDUCE_FROM: Param = Param {
    name: "reduce_from",
    about: "what a reduction multiplies: `auto` takes FlightSize (source: RFC 9438 section 4.6), and \
            the window under ns-2's recovery, as Linux does",
    kind: ParamKind::Choice(&["auto", "flight", "window"]),
};

/// Returns fast to the window of the last loss, lingers there, then probes beyond it.
#[allow(clippy::struct_excessive_bools)] // each is a setting or a state of its own
#[derive(Clone, Debug)]
pub struct Cubic {
    window: Window,
    beta: f64,
    c: f64,
    fast_convergence: bool,
    of_flight: bool,
    rules: Rules,
    /// Plateau of the cubic, packets; zero before the first reduction and after a timeout.
    w_max: f64,
    /// `cwnd` when `ssthresh` was last set, packets.
    cwnd_prior: f64,
    /// The present congestion-avoidance stage; `None` outside one.
    epoch: Option<Epoch>,
    /// Marks on packets sent before this caused the last reduction.
    answers_from: Time,
    exit: Exit,
    /// No loss has occurred since the start or the last time-out.
    climbing: bool,
    /// What idle flows do without.
    aside: Option<Box<Aside>>,
}

/// What the rules need besides; a spurious loss gives back what was before it.
#[derive(Clone, Debug)]
enum Aside {
    Linux(Growth),
    Rfc9438(Before),
}

/// The state of the cubic before a reduction (RFC 9438 section 4.9).
#[derive(Clone, Debug)]
struct Before {
    w_max: f64,
    cwnd_prior: f64,
    epoch: Option<Epoch>,
    climbing: bool,
}

/// The rules of the arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rules {
    /// Whole packets, one slope of the Reno estimate.
    Linux,
    /// Fractions of packets, Reno's own slope past the window of the loss.
    Rfc9438,
}

/// How slow start ends before a loss.
#[derive(Clone, Debug)]
enum Exit {
    Never,
    Plus(Box<hystart::Plus>),
    Linux(hystart::Linux),
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
        let rules = if params.choice("rules") == "linux" { Rules::Linux } else { Rules::Rfc9438 };
        let beta = params.number("beta");
        Self {
            window: Window::new(flow),
            beta: if rules == Rules::Linux { (beta * BETA_UNIT).round() / BETA_UNIT } else { beta },
            rules,
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
            answers_from: Time(0),
            exit: match params.choice("hystart") {
                "linux" => Exit::Linux(hystart::Linux::default()),
                "plus" => Exit::Plus(Box::default()),
                _ => Exit::Never,
            },
            climbing: true,
            aside: None,
        }
    }

    /// Slow start; what is left of `acked` (packets) is for congestion avoidance.
    fn slow_start(&mut self, ack: &Ack, acked: f64) -> f64 {
        let Exit::Plus(plus) = &mut self.exit else {
            return self.window.slow_start(acked);
        };
        match plus.on_ack(ack, acked) {
            Pace::Full => self.window.slow_start(acked),
            Pace::Conservative => self.window.slow_start(acked / CSS_GROWTH_DIVISOR),
            Pace::Exit => {
                self.leave_slow_start();
                self.exit = Exit::Never;
                acked
            }
        }
    }

    fn leave_slow_start(&mut self) {
        self.window.ssthresh = self.window.cwnd;
        self.cwnd_prior = self.window.cwnd;
    }

    /// Linux's `HyStart` looks at every sample, whether the window is used or not.
    fn look_for_exit(&mut self, ack: &Ack) {
        let Exit::Linux(linux) = &mut self.exit else { return };
        if !self.window.in_slow_start() {
            return linux.sample(ack.rtt);
        }
        let (cwnd, packet) = (self.window.bytes(self.window.cwnd), self.window.bytes(1.0));
        if linux.on_ack(ack, cwnd, packet) {
            self.leave_slow_start();
        }
    }

    /// Congestion avoidance (RFC 9438 sections 4.2 to 4.5).
    fn avoid(&mut self, ack: &Ack, acked: f64) {
        let cwnd = self.window.cwnd;
        if self.epoch.is_none() {
            self.start_epoch(ack.now);
            if self.rules == Rules::Rfc9438 {
                return;
            }
            self.growth().begin(cwnd);
        }
        let Some(epoch) = &mut self.epoch else { return };
        epoch.pass(ack);
        if ack.cwnd_limited == 0 {
            return;
        }
        let since_plateau = epoch.elapsed.as_secs_f64() - epoch.k;
        let w_cubic = |t: f64| self.c * t * t * t + self.w_max;
        // As in Linux, whose early exit from slow start may lie far below what the path holds.
        let climbs = self.climbing && matches!(self.exit, Exit::Linux(_));
        if self.rules == Rules::Linux {
            let t = since_plateau + ack.min_rtt.as_secs_f64();
            let target = self.w_max + (self.c * t.abs() * t * t).floor().copysign(t);
            let packets = self.growth().on_ack(ack.now, (cwnd, acked), target, climbs);
            return self.window.grow(packets);
        }
        // A batch of more than a window counts as one round trip.
        let share = (acked / cwnd).min(1.0);
        // Section 4.3: Reno's own slope once its window has come back to where it was.
        let slope = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        epoch.w_est += share * if epoch.w_est < self.cwnd_prior { slope } else { 1.0 };
        let growth = if w_cubic(since_plateau) < epoch.w_est {
            epoch.w_est - cwnd
        } else {
            let target = w_cubic(since_plateau + ack.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
            share * (target - cwnd)
        };
        self.window.grow(if climbs { growth.max(share * cwnd / CLIMB_DIVISOR) } else { growth });
    }

    /// By Linux's rules.
    fn growth(&mut self) -> &mut Growth {
        let new = || Box::new(Aside::Linux(Growth::new(self.beta)));
        match self.aside.get_or_insert_with(new).as_mut() {
            Aside::Linux(growth) => growth,
            Aside::Rfc9438(_) => unreachable!("the rules stay"),
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

    /// Multiplicative decrease (RFC 9438 section 4.6) from `flight` packets, down to `least` packets, and fast
    /// convergence (section 4.7).
    fn reduce(&mut self, now: Time, flight: f64, least: f64) {
        self.remember();
        let counted = |packets: f64| if self.rules == Rules::Linux { packets.floor() } else { packets };
        let cwnd = counted(self.window.cwnd);
        self.w_max = if cwnd < self.w_max && self.fast_convergence {
            counted(cwnd * (1.0 + self.beta) / 2.0)
        } else {
            cwnd
        };
        self.cwnd_prior = cwnd;
        let reduced = counted(self.beta * if self.of_flight { counted(flight) } else { cwnd });
        self.window.ssthresh = reduced.max(2.0);
        self.window.cwnd = cwnd.min(reduced.max(least));
        self.epoch = None;
        if self.rules == Rules::Linux {
            self.growth().reduce();
        }
        self.answers_from = now + Span(1);
        self.climbing = false;
        if matches!(self.exit, Exit::Plus(_)) {
            self.exit = Exit::Never; // RFC 9406 section 4.3: only the first slow start
        }
    }

    /// As [`Window::remember`].
    fn remember(&mut self) {
        self.window.remember();
        if self.rules == Rules::Rfc9438 && (self.window.cwnd > 1.0 || self.aside.is_none()) {
            let state = Aside::Rfc9438(Before {
                w_max: self.w_max,
                cwnd_prior: self.cwnd_prior,
                epoch: self.epoch.clone(),
                climbing: self.climbing,
            });
            // The box of the reduction before is used again: losses are frequent among many flows.
            match &mut self.aside {
                Some(aside) => **aside = state,
                None => self.aside = Some(Box::new(state)),
            }
        }
    }

    /// The reduction was spurious: window and cubic are restored (RFC 9438 section 4.9), or,
    /// as in Linux, the window alone, from which a new cubic starts.
    fn restore(&mut self, loss: &Loss) {
        self.window.reduce(loss);
        if self.rules == Rules::Rfc9438
            && let Some(Aside::Rfc9438(before)) = self.aside.take().map(|aside| *aside)
        {
            (self.w_max, self.cwnd_prior) = (before.w_max, before.cwnd_prior);
            (self.epoch, self.climbing) = (before.epoch, before.climbing);
        }
    }

    /// RFC 3168 section 6.1.2: marks count as one loss for each window of data.
    fn answers_mark(&self, ack: &Ack) -> bool {
        ack.ce_marked.0 > 0
            && ack.recovering == 0
            && ack.sent_at >= self.answers_from
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
        self.look_for_exit(ack);
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
            LossKind::Spurious => return self.restore(loss),
            LossKind::Gap | LossKind::Timeout => {}
        }
        self.reduce(loss.now, self.window.packets(loss.inflight), 2.0);
        if loss.kind == LossKind::Timeout {
            self.window.cwnd = 1.0;
            self.w_max = 0.0; // section 4.8: the next stage takes its own start for the maximum
            self.climbing = true;
            if let Exit::Linux(linux) = &mut self.exit {
                linux.restart();
            }
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

/// A silence up to this long is never taken for an idle application: records may come in batches.
const IDLE_MIN: Span = Span::from_millis(100);
/// Denominator of beta in Linux.
const BETA_UNIT: f64 = 1024.0;
/// Minimum growth per round trip before the first loss, as a part of the window (Linux).
const CLIMB_DIVISOR: f64 = 20.0;

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

    /// A flow of 100 packets that has just lost one; by the rules of RFC 9438.
    fn after_loss_at_100() -> Cubic {
        let mut cubic = cubic(&[("rules", "rfc9438")]);
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
        close(cubic.window.cwnd, before + 10.0, 1.0);
    }

    #[test]
    fn as_in_linux_a_reduction_counts_whole_packets() {
        let left = |rules| {
            let mut cubic = cubic(&[("rules", rules), ("reduce_from", "window")]);
            (cubic.window.cwnd, cubic.w_max) = (9.9, 12.0);
            cubic.on_loss(&loss(9, LossKind::Gap));
            (cubic.window.cwnd, cubic.w_max)
        };
        assert_eq!(left("linux"), (6.0, 7.0)); // 9 · 717/1024, 9 · 1741/2048
        close(left("rfc9438").0, 6.93, 1e-9);
        close(left("rfc9438").1, 8.415, 1e-9);
        let mut cubic = cubic(&[("reduce_from", "window")]);
        cubic.window.cwnd = 90.0;
        cubic.on_loss(&loss(90, LossKind::Gap));
        close(cubic.window.cwnd, 63.0, 1e-9); // 0.7 · 90 is a little less in binary
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
        let mut cubic = cubic(&[("hystart", "off")]);
        close(slow_start_rounds(&mut cubic, &[40, 80, 160])[2], 80.0, 1e-9);
    }

    /// A window of `cwnd` packets in slow start; the round's ACKs come 1 ms apart.
    fn acks_a_millisecond_apart(cubic: &mut Cubic, start: f64, acks: u32) {
        for index in 0..acks {
            let now = Time::from_secs_f64(start + f64::from(index) / 1e3);
            let sent_at = Time::from_secs_f64(start - 0.1);
            cubic.on_ack(&Ack { now, sent_at, ..ack_at(start, 100) });
        }
    }

    #[test]
    fn by_default_slow_start_ends_with_an_ack_train_of_half_a_round_trip() {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 30.0;
        acks_a_millisecond_apart(&mut cubic, 1.0, 50);
        assert!(cubic.window.in_slow_start());
        acks_a_millisecond_apart(&mut cubic, 1.05, 2);
        assert!(!cubic.window.in_slow_start(), "{:?}", cubic.exit);
        close(cubic.window.ssthresh, 81.0, 1e-9);
        assert!(cubic.window.cwnd < 82.5);
    }

    #[test]
    fn by_default_slow_start_ends_with_a_delay() {
        let mut cubic = cubic(&[]);
        // The threshold is 40 + 5 ms; the fourth round is the first above it.
        let windows = slow_start_rounds(&mut cubic, &[40, 40, 45, 46]);
        assert!(windows[2] >= 80.0 && !cubic.window.in_slow_start(), "{windows:?}");
        close(cubic.window.ssthresh, 88.0, 1.0);
    }

    #[test]
    fn before_the_first_loss_the_default_grows_by_a_twentieth_per_round_trip_at_least() {
        let after_one_round_trip = |hystart| {
            let mut cubic = cubic(&[("hystart", hystart)]);
            cubic.window.cwnd = 100.0;
            cubic.window.ssthresh = 100.0;
            run(&mut cubic, 100, (1.0, 1.1));
            cubic.window.cwnd
        };
        close(after_one_round_trip("linux"), 105.0, 0.2);
        assert!(after_one_round_trip("off") < 101.0);
        let mut lost = after_loss_at_100();
        let plateau = 1.0 + libm::cbrt(75.0);
        run(&mut lost, 100, (1.0, plateau));
        let before = lost.window.cwnd;
        run(&mut lost, 100, (plateau, plateau + 0.1));
        close(lost.window.cwnd, before, 0.5);
    }

    #[test]
    fn a_time_out_lets_hystart_look_again() {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 30.0;
        acks_a_millisecond_apart(&mut cubic, 1.0, 60);
        cubic.on_loss(&loss(80, LossKind::Timeout));
        cubic.window.cwnd = 20.0;
        assert!(cubic.window.in_slow_start());
        cubic.window.ssthresh = 1000.0;
        acks_a_millisecond_apart(&mut cubic, 3.0, 60);
        close(cubic.window.ssthresh, 71.0, 1.0);
    }

    #[test]
    fn a_spurious_loss_gives_the_window_and_the_cubic_back() {
        for kind in [LossKind::Gap, LossKind::Timeout] {
            let mut cubic = after_loss_at_100();
            run(&mut cubic, 100, (1.0, 3.0));
            let mut reduced = cubic.clone();
            reduced.on_loss(&loss(80, kind));
            assert!(reduced.window.cwnd < cubic.window.cwnd);
            reduced.on_loss(&loss(0, LossKind::Spurious));
            close(reduced.w_max, cubic.w_max, 1e-9);
            run(&mut cubic, 100, (3.0, 5.0));
            run(&mut reduced, 100, (3.0, 5.0));
            close(reduced.window.cwnd, cubic.window.cwnd, 1e-9);
        }
    }

    #[test]
    fn by_default_a_spurious_loss_gives_the_window_back_and_the_cubic_starts_anew() {
        let mut cubic = cubic(&[]);
        cubic.window.cwnd = 100.0;
        cubic.on_loss(&loss(100, LossKind::Gap));
        run(&mut cubic, 100, (1.0, 3.0));
        let before = cubic.window.cwnd;
        cubic.on_loss(&loss(80, LossKind::Timeout));
        cubic.on_loss(&loss(0, LossKind::Spurious));
        close(cubic.window.cwnd, before, 1e-9);
        assert!(cubic.epoch.is_none());
        run(&mut cubic, 100, (3.0, 3.2));
        close(cubic.w_max, before, 1e-9);
    }
}
