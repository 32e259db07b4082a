//! `DualPI2` (RFC 9332 appendix A, with the overload handling of A.2): low-latency traffic waits apart from
//! classic traffic, and one PI controller of the queueing delay p' answers for both. Classic packets are
//! dropped or marked with p'², low-latency packets marked with k · p', so that flows of both kinds get about
//! the same rate (RFC 9332 section 2.1), and low-latency packets also with a step at a short delay.
use super::Scheduler;
use super::codel::Fifo;
use super::drop_tail::DropTail;
use crate::rng::Rng;
use crate::transport::packet::{Ect, Kind, Packet};
use crate::units::{Span, Time};

/// Settings of [`Dualpi2`]; the names of RFC 9332 in brackets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Queueing delay to hold (`target`).
    pub target: Span,
    /// Time between updates of the base probability (`Tupdate`), above zero.
    pub t_update: Span,
    /// Weight of the delay's distance from the target per update, per second (`alpha`).
    pub alpha: f64,
    /// Weight of the delay's change since the last update, per second (`beta`).
    pub beta: f64,
    /// Coupling factor of both probabilities (`k`).
    pub coupling: f64,
    /// Low-latency packets that waited so long are marked (`minTh` with a `range` of zero).
    pub step: Span,
    /// Part of the link that classic packets get while both kinds wait.
    pub classic_share: f64,
    /// Hard bound of both queues together.
    pub limit: DropTail,
}

/// Two queues with coupled drops and marks.
#[derive(Clone, Debug)]
pub struct Dualpi2 {
    config: Config,
    low: Part,
    classic: Part,
    /// Base probability (p').
    base: f64,
    /// The longer queueing delay at the last update (`prevq`).
    delay: Span,
    next_update: Time,
    /// What classic packets may send before low-latency packets, in bytes times [`WEIGHTS`].
    credit: i64,
    /// Of which classic packets earn so much with each byte of the others, and those the rest.
    classic_weight: i64,
    /// When the packet came that was sent last.
    came: Time,
}

/// One of the queues.
#[derive(Clone, Debug, Default)]
struct Part {
    fifo: Fifo,
    /// Likelihoods since the last hit, which spaces hits evenly (`count` of `recur`).
    sum: f64,
}

impl Part {
    /// Whether it is this packet's turn, with this likelihood.
    fn strikes(&mut self, likelihood: f64) -> bool {
        self.sum += likelihood;
        let strikes = self.sum > 1.0;
        if strikes {
            self.sum -= 1.0;
        }
        strikes
    }

    /// How long its first packet has waited.
    fn wait(&self, now: Time) -> Span {
        self.fifo.head_came().map_or(Span::ZERO, |came| now.since(came))
    }

    fn is_empty(&self) -> bool {
        self.fifo.packets() == 0
    }
}

impl Dualpi2 {
    /// Starts with empty queues.
    pub fn new(config: Config) -> Self {
        debug_assert!(config.t_update > Span::ZERO, "{config:?}");
        Self {
            config,
            low: Part::default(),
            classic: Part::default(),
            base: 0.0,
            delay: Span::ZERO,
            next_update: Time(0) + config.t_update,
            credit: 0,
            classic_weight: (config.classic_share * WEIGHTS as f64) as i64,
            came: Time(0),
        }
    }

    /// Makes up for the updates due since the last event. Between events nothing comes or goes, so the
    /// delay at each of them is known.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let at = self.next_update;
            let delay = self.low.wait(at).max(self.classic.wait(at));
            if self.base == 0.0 && delay == Span::ZERO && self.delay == Span::ZERO {
                // Updates come before packets of the same instant: both queues are empty, and until `now`
                // no update changes anything.
                let updates = now.since(at).0 / self.config.t_update.0 + 1;
                self.next_update += self.config.t_update * updates;
                return;
            }
            self.update(delay);
            self.next_update += self.config.t_update;
        }
    }

    /// The PI controller, of the longer of the delays (RFC 9332 appendix A.2).
    fn update(&mut self, delay: Span) {
        let (now, before) = (delay.as_secs_f64(), self.delay.as_secs_f64());
        let error = now - self.config.target.as_secs_f64();
        let Config { alpha, beta, .. } = self.config;
        self.base = (self.base + alpha * error + beta * (now - before)).clamp(0.0, 1.0);
        self.delay = delay;
    }

    /// Probability of a mark that the controller asks of low-latency packets (`p_CL`).
    fn coupled(&self) -> f64 {
        (self.config.coupling * self.base).min(1.0)
    }

    /// Probability of a drop or mark of classic packets (`p_C`).
    fn squared(&self) -> f64 {
        self.base * self.base
    }

    /// Whether the low-latency queue sends next: it goes first, but earns the other its share of the link.
    /// Neither is owed anything while the other is empty.
    fn low_is_next(&mut self) -> bool {
        if self.low.is_empty() || self.classic.is_empty() {
            self.credit = 0;
            return !self.low.is_empty();
        }
        self.credit <= 0
    }

    /// The next low-latency packet, unless it is dropped because marks are no longer heeded.
    fn take_low(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let packets = self.low.fifo.packets();
        let (came, mut packet) = self.low.fifo.pop()?;
        self.came = came;
        let coupled = self.coupled();
        let marks = if coupled < MAX_MARK {
            // A packet alone waits for the transmission of another kind, not behind its own.
            let waited = packets > 1 && now.since(came) >= self.config.step;
            self.low.strikes(if waited { MAX_MARK } else { coupled })
        } else if self.low.strikes(self.squared()) {
            dropped.push(packet);
            return None;
        } else {
            self.low.strikes(coupled)
        };
        packet.ce |= marks;
        if !self.classic.is_empty() {
            self.credit += self.classic_weight * i64::from(packet.size);
        }
        Some(packet)
    }

    /// The next classic packet, unless it is dropped.
    fn take_classic(&mut self, dropped: &mut Vec<Packet>) -> Option<Packet> {
        let (came, mut packet) = self.classic.fifo.pop()?;
        self.came = came;
        let squared = self.squared();
        if self.classic.strikes(squared) {
            let k = self.config.coupling;
            if !packet.ect.is_capable() || squared >= (1.0 / (k * k)).min(1.0) {
                dropped.push(packet);
                return None;
            }
            packet.ce = true;
        }
        if !self.low.is_empty() {
            self.credit -= (WEIGHTS - self.classic_weight) * i64::from(packet.size);
        }
        Some(packet)
    }
}

impl Default for Config {
    /// The values of RFC 9332 appendix A.1 for updates each 16 ms; the step and the share of classic
    /// packets are Linux's (`dualpi2`).
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            t_update: Span::from_millis(16),
            alpha: 0.16,
            beta: 3.2,
            coupling: 2.0,
            step: Span::from_millis(1),
            classic_share: 0.1,
            limit: DropTail { packets: 10_000, bytes: u64::MAX },
        }
    }
}

impl Scheduler for Dualpi2 {
    fn enqueue(&mut self, now: Time, packet: Packet, _rng: &mut Rng, dropped: &mut Vec<Packet>) {
        self.catch_up(now);
        if !self.config.limit.fits(self.packets(), self.bytes(), packet.size) {
            dropped.push(packet);
            return;
        }
        // An ACK's mark is in its TCP header.
        let is_low = packet.ect == Ect::One || (packet.ce && packet.kind != Kind::Ack);
        let part = if is_low { &mut self.low } else { &mut self.classic };
        part.fifo.push(now, packet);
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.catch_up(now);
        while self.packets() > 0 {
            let next = if self.low_is_next() {
                self.take_low(now, dropped)
            } else {
                self.take_classic(dropped)
            };
            if next.is_some() {
                return next;
            }
        }
        None
    }

    fn came(&self) -> Time {
        self.came
    }

    fn packets(&self) -> u64 {
        self.low.fifo.packets() + self.classic.fifo.packets()
    }

    fn bytes(&self) -> u64 {
        self.low.fifo.bytes() + self.classic.fifo.bytes()
    }

    fn show(&self, each: &mut dyn FnMut(&Packet)) {
        self.low.fifo.show(each);
        self.classic.fifo.show(each);
    }
}

/// Largest probability of a mark (`p_Lmax`); at it, packets are dropped too.
const MAX_MARK: f64 = 1.0;

/// What the weights of both queues sum up to.
const WEIGHTS: i64 = 1 << 16;

#[cfg(test)]
#[path = "../tests/dualpi2.rs"]
mod tests;
