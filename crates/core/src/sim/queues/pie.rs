//! PIE (RFC 8033), with ECN (section 5.1), de-randomized drops (section 5.4) and capped steps of the
//! probability (section 5.5). The link knows every packet's wait, so nothing needs estimating
//! (section 4.3), and the optional switch of section 5.3 is left out.
use super::drop_tail::DropTail;
use super::{Admission, Backlog, Fate};
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::{Span, Time};

/// Settings of [`Pie`]; the names of RFC 8033 in brackets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Queueing delay to hold (`QDELAY_REF`).
    pub target: Span,
    /// Time between updates of the probability (`T_UPDATE`), above zero.
    pub t_update: Span,
    /// Longest burst let through after a quiet time (`MAX_BURST`).
    pub max_burst: Span,
    /// Weight of the delay's distance from the target, per second (`alpha`).
    pub alpha: f64,
    /// Weight of the delay's change since the last update, per second (`beta`).
    pub beta: f64,
    /// Packets are safe while no more than two of this many bytes wait (`MEAN_PKTSIZE`).
    pub mean_packet_bytes: u64,
    /// Whether ECN-capable packets are marked instead of dropped while the probability is below
    /// a tenth.
    pub ecn: bool,
    /// Hard bound of the queue.
    pub limit: DropTail,
}

/// Drops or marks arrivals with a probability that steers the queueing delay to a target.
#[derive(Clone, Debug)]
pub struct Pie {
    config: Config,
    /// Probability of a drop or mark (`drop_prob_`).
    probability: f64,
    /// Sum of the probabilities since the last drop or mark (`accu_prob_`).
    accumulated: f64,
    /// Queueing delay at the last update (`qdelay_old_`).
    delay: Span,
    /// How long a burst still passes freely (`burst_allowance_`).
    burst: Span,
    next_update: Time,
    /// When the queue that the last arrival found has drained.
    ready: Time,
}

impl Pie {
    /// Starts with an empty queue and the whole burst allowance.
    pub fn new(config: Config) -> Self {
        debug_assert!(config.t_update > Span::ZERO, "{config:?}");
        Self {
            config,
            probability: 0.0,
            accumulated: 0.0,
            delay: Span::ZERO,
            burst: config.max_burst,
            next_update: Time(0) + config.t_update,
            ready: Time(0),
        }
    }

    /// Makes up for the updates due since the last arrival. A queue that nobody joined drained
    /// steadily, so the delay at each of them is known.
    fn catch_up(&mut self, now: Time, wait: Span) {
        if wait > Span::ZERO {
            self.ready = now + wait;
        }
        while self.next_update <= now {
            let delay = self.ready.since(self.next_update);
            if self.probability == 0.0 && delay == Span::ZERO && self.delay == Span::ZERO {
                // From here until `now` no update changes anything but the burst allowance.
                let updates = now.since(self.next_update).0 / self.config.t_update.0 + 1;
                self.burst = Span(self.burst.0.saturating_sub(updates * self.config.t_update.0));
                self.next_update += self.config.t_update * updates;
                return;
            }
            self.update(delay);
            self.next_update += self.config.t_update;
        }
    }

    /// RFC 8033 section 4.2.
    fn update(&mut self, delay: Span) {
        let error = delay.as_secs_f64() - self.config.target.as_secs_f64();
        let change = delay.as_secs_f64() - self.delay.as_secs_f64();
        let mut step = self.config.alpha * error + self.config.beta * change;
        step *= tuning(self.probability);
        if self.probability >= 0.1 {
            step = step.min(MAX_STEP);
        }
        self.probability += step;
        if delay == Span::ZERO && self.delay == Span::ZERO {
            self.probability *= IDLE_DECAY;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.delay = delay;
        self.burst = Span(self.burst.0.saturating_sub(self.config.t_update.0));
    }

    /// RFC 8033 sections 4.1 and 5.4.
    fn strikes(&mut self, backlog: &Backlog, rng: &mut Rng) -> bool {
        if self.delay < self.config.target / 2 && self.probability < 0.2 {
            return false;
        }
        if backlog.bytes <= 2 * self.config.mean_packet_bytes {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < 0.85 {
            return false;
        }
        if self.accumulated < 8.5 && !rng.chance(self.probability) {
            return false;
        }
        self.accumulated = 0.0;
        true
    }

    /// RFC 8033 section 4.4: a queue that has been quiet earns its burst allowance back.
    fn quiet(&self, wait: Span) -> bool {
        let half = self.config.target / 2;
        self.probability == 0.0 && wait < half && self.delay < half
    }
}

/// Slows the controller down where the probability is small, so that it stays stable over all of
/// its range (RFC 8033 section 4.2).
fn tuning(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 1.0 / 2048.0,
        p if p < 0.000_01 => 1.0 / 512.0,
        p if p < 0.000_1 => 1.0 / 128.0,
        p if p < 0.001 => 1.0 / 32.0,
        p if p < 0.01 => 1.0 / 8.0,
        p if p < 0.1 => 1.0 / 2.0,
        _ => 1.0,
    }
}

impl Default for Config {
    /// The values of RFC 8033.
    fn default() -> Self {
        Self {
            target: Span::from_millis(15),
            t_update: Span::from_millis(15),
            max_burst: Span::from_millis(150),
            alpha: 0.125,
            beta: 1.25,
            mean_packet_bytes: 1500,
            ecn: false,
            limit: DropTail::default(),
        }
    }
}

impl Admission for Pie {
    fn admit(&mut self, now: Time, packet: &Packet, backlog: &Backlog, rng: &mut Rng) -> Fate {
        self.catch_up(now, backlog.wait);
        if !self.config.limit.fits(backlog.packets, backlog.bytes, packet.size) {
            self.accumulated = 0.0;
            return Fate::Drop;
        }
        if self.quiet(backlog.wait) {
            self.burst = self.config.max_burst;
        }
        if self.burst > Span::ZERO || !self.strikes(backlog, rng) {
            return Fate::Keep;
        }
        let mark = self.config.ecn && packet.ect.is_capable() && self.probability < MARK_BELOW;
        if mark { Fate::Mark } else { Fate::Drop }
    }
}

/// Largest step up from a probability of a tenth or more (RFC 8033 section 5.5).
const MAX_STEP: f64 = 0.02;

/// Factor per update with an empty queue (RFC 8033 section 4.2).
const IDLE_DECAY: f64 = 0.98;

/// Probability from which ECN-capable packets are dropped too (RFC 8033 section 5.1).
const MARK_BELOW: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::packet::Ect;

    const MS: fn(u64) -> Span = Span::from_millis;

    fn at(millis: u64) -> Time {
        Time(0) + MS(millis)
    }

    fn backlog(wait: Span) -> Backlog {
        Backlog { packets: 100, bytes: 150_000, wait }
    }

    fn admit(pie: &mut Pie, now: Time, wait: Span) -> Fate {
        let packet = Packet { size: 1500, ect: Ect::Zero, ..Packet::default() };
        pie.admit(now, &packet, &backlog(wait), &mut Rng::new(now.0))
    }

    /// A controller past its burst allowance, at a probability.
    fn steady(probability: f64, ecn: bool) -> Pie {
        let mut pie = Pie::new(Config { ecn, ..Config::default() });
        pie.burst = Span::ZERO;
        pie.delay = MS(20);
        pie.probability = probability;
        pie
    }

    #[test]
    fn a_burst_shorter_than_its_allowance_passes_whole() {
        let mut pie = Pie::new(Config::default());
        assert!((0..140).all(|millis| admit(&mut pie, at(millis), MS(100)) == Fate::Keep));
    }

    #[test]
    fn a_standing_queue_above_the_target_raises_the_probability_and_one_below_lowers_it() {
        let mut pie = steady(0.01, false);
        admit(&mut pie, at(30), MS(40));
        let high = pie.probability;
        assert!(high > 0.01);
        admit(&mut pie, at(60), MS(1));
        assert!(pie.probability < high);
    }

    #[test]
    fn steps_are_small_where_the_probability_is() {
        let (mut low, mut high) = (steady(0.000_000_1, false), steady(0.05, false));
        low.update(MS(30));
        high.update(MS(30));
        let (low, high) = (low.probability - 0.000_000_1, high.probability - 0.05);
        assert!((high / low - 1024.0).abs() < 1.0, "{}", high / low);
    }

    #[test]
    fn a_leap_of_the_delay_raises_a_large_probability_by_two_hundredths_at_most() {
        let mut pie = steady(0.3, false);
        pie.update(MS(5000));
        assert!((pie.probability - 0.32).abs() < 1e-12);
    }

    #[test]
    fn an_idle_hour_costs_little_and_restores_the_burst_allowance() {
        let mut pie = steady(1.0, false);
        admit(&mut pie, at(100), MS(10));
        let empty = Backlog::default();
        let packet = Packet { size: 1500, ..Packet::default() };
        assert_eq!(pie.admit(at(3_600_000), &packet, &empty, &mut Rng::new(1)), Fate::Keep);
        assert_eq!((pie.probability, pie.burst), (0.0, MS(150)));
        assert!(pie.next_update > at(3_600_000) && pie.next_update <= at(3_600_015));
    }

    #[test]
    fn marks_replace_drops_below_a_tenth_only() {
        let struck = |probability| {
            let mut pie = steady(probability, true);
            let fates: Vec<Fate> = (0..10_000)
                .map(|nanos| admit(&mut pie, Time(nanos), MS(20)))
                .filter(|&fate| fate != Fate::Keep)
                .collect();
            (fates.len(), fates[0])
        };
        let (low, fate) = struck(0.05);
        assert_eq!(fate, Fate::Mark);
        assert!((250..350).contains(&low), "{low}"); // 17 sure passes, then 20 on average
        assert_eq!(struck(0.5).1, Fate::Drop);
    }

    #[test]
    fn a_nearly_empty_queue_is_left_alone() {
        let mut pie = steady(0.9, false);
        let packet = Packet { size: 1500, ..Packet::default() };
        let small = Backlog { packets: 2, bytes: 3000, wait: MS(20) };
        let mut rng = Rng::new(1);
        assert!((0..100).all(|n| pie.admit(Time(n), &packet, &small, &mut rng) == Fate::Keep));
    }

    #[test]
    fn a_full_queue_drops_whatever_the_delay() {
        let limit = DropTail { packets: 100, bytes: u64::MAX };
        let mut pie = Pie::new(Config { limit, ..Config::default() });
        assert_eq!(admit(&mut pie, at(0), MS(1)), Fate::Drop);
    }
}
