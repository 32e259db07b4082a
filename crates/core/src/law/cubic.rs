//! CUBIC (RFC 9438), in packets of the flow's own size. Slow start ends as in Linux unless asked for
//! otherwise, since most hosts run that CUBIC.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Recovery};
use crate::law::hystart::{self, CSS_GROWTH_DIVISOR, Pace};
use crate::law::linux_growth::Growth;
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Settings of the controller `cubic`.
pub const PARAMS: &[Param] = &[
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
];

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
    /// What one set of rules needs besides; idle flows do without.
    aside: Option<Box<Aside>>,
}

/// By the rules: what counts the growth of the window, or what a spurious loss gives back.
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
                "linux" => Exit::Linux(hystart::Linux::new(flow.paces)),
                "plus" => Exit::Plus(Box::default()),
                _ => Exit::Never,
            },
            climbing: true,
            aside: None,
        }
    }

    /// Its window, packets.
    pub fn cwnd_packets(&self) -> f64 {
        self.window.cwnd
    }

    /// Whether the window grows exponentially.
    pub fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// Sets the window from outside, in packets. The stage of the cubic and its plateau stay, as where Linux's
    /// window is set: what follows approaches the curve from the new window.
    pub fn set_cwnd_packets(&mut self, packets: f64) {
        self.window.cwnd = packets.clamp(1.0, self.window.cwnd_max());
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
            let (c, w_max, t) = (self.c, self.w_max, since_plateau + ack.min_rtt.as_secs_f64());
            let target = || w_max + (c * t.abs() * t * t).floor().copysign(t);
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

    /// What counts the growth of the window by Linux's rules.
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
        let counted =
            |packets: f64| if self.rules == Rules::Linux { packets.floor() } else { packets };
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
        ack.ce_marked.0 > 0 && ack.recovering == 0 && ack.sent_at >= self.answers_from
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
            LossKind::Gap | LossKind::Timeout => {
                self.reduce(loss.now, self.window.packets(loss.inflight), 2.0);
            }
            LossKind::TimeoutAgain => self.epoch = None,
        }
        if loss.kind != LossKind::Gap {
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
#[path = "tests/cubic.rs"]
mod tests;
