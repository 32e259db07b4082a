//! RED (Floyd and Jacobson 1993) with the gentle slope above the upper threshold (Floyd 2000) and
//! ECN marking (RFC 3168). The queue that it averages is what waits; the packet in transmission is
//! not in it, and with one packet waiting or none nothing is dropped early (ns-2.35 `red.cc`, `enque`;
//! ns-3.37 `RedQueueDisc::DoEnqueue`).
use super::drop_tail::DropTail;
use super::{Admission, Backlog, Fate};
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::{Span, Time};

/// Settings of [`Red`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Average queue, in packets, below which nothing happens.
    pub min_packets: u64,
    /// Average queue, in packets, at which the probability reaches `max_probability`; from there it
    /// climbs to one at twice this queue. Above `min_packets`.
    pub max_packets: u64,
    /// Probability of a drop or mark at `max_packets`.
    pub max_probability: f64,
    /// Weight of the queue that a packet finds in the average.
    pub weight: f64,
    /// Typical transmission time of a packet: an idle link averages one empty queue per such time.
    pub packet_time: Span,
    /// Whether ECN-capable packets are marked instead of dropped while the average is below
    /// `max_packets`. Above it they are dropped too: there marks are no longer heeded.
    pub ecn: bool,
    /// Hard bound of the queue.
    pub limit: DropTail,
}

/// Drops or marks arrivals with a probability that follows the average queue.
#[derive(Clone, Debug)]
pub struct Red {
    config: Config,
    /// Average of the queue that arrivals find, in packets.
    average: f64,
    /// Arrivals since the last drop or mark, or since the average came to `min_packets`, with which
    /// counting begins; `None` below.
    count: Option<u64>,
    /// About when the packets accepted so far have left.
    ready: Time,
}

impl Red {
    /// Starts with an empty queue.
    pub fn new(config: Config) -> Self {
        debug_assert!(config.min_packets < config.max_packets, "{config:?}");
        Self { config, average: 0.0, count: None, ready: Time(0) }
    }

    /// Floyd and Jacobson 1993, section 6: the average moves with every arrival, and after an idle
    /// time as if packets had met an empty queue all along.
    fn observe(&mut self, now: Time, backlog: &Backlog) {
        let weight = self.config.weight;
        if backlog.packets > 0 {
            self.average += weight * (backlog.waiting() as f64 - self.average);
        } else if self.average > NEGLIGIBLE {
            let missed = now.since(self.ready).0 / self.config.packet_time.0.max(1);
            self.average *= libm::pow(1.0 - weight, missed as f64 + 1.0);
        } else {
            self.average = 0.0;
        }
    }

    /// The probability at the present average, the spacing of drops aside.
    fn base_probability(&self) -> f64 {
        let Config { min_packets, max_packets, max_probability, .. } = self.config;
        let (min, max) = (min_packets as f64, max_packets as f64);
        if self.average < max {
            max_probability * (self.average - min) / (max - min)
        } else {
            max_probability + (1.0 - max_probability) * (self.average - max) / max
        }
    }

    /// Whether this arrival is the one to drop or mark: drops are spread evenly, not in the bursts
    /// that independent draws would make (Floyd and Jacobson 1993, section 7). The arrival that is
    /// judged counts, so that from a probability of a half on each one strikes.
    fn strikes(&mut self, backlog: &Backlog, rng: &mut Rng) -> bool {
        if self.average < self.config.min_packets as f64 || backlog.waiting() <= 1 {
            self.count = None;
            return false;
        }
        let base = self.base_probability();
        let count = match self.count {
            _ if base >= 1.0 => {
                self.count = Some(0);
                return true;
            }
            None => {
                self.count = Some(1);
                return false;
            }
            Some(before) => before + 1,
        };
        let spread = 1.0 - count as f64 * base;
        let strikes = spread <= base || rng.chance(base / spread);
        self.count = Some(if strikes { 0 } else { count });
        strikes
    }
}

impl Default for Config {
    /// Thresholds, weight and probability of ns-2's RED; a packet of 1500 bytes at 10 Mb/s.
    fn default() -> Self {
        Self {
            min_packets: 5,
            max_packets: 15,
            max_probability: 0.1,
            weight: 0.002,
            packet_time: Span::from_micros(1200),
            ecn: false,
            limit: DropTail::default(),
        }
    }
}

impl Admission for Red {
    fn admit(&mut self, now: Time, packet: &Packet, backlog: &Backlog, rng: &mut Rng) -> Fate {
        self.observe(now, backlog);
        if !self.config.limit.fits(backlog.packets, backlog.bytes, packet.size) {
            self.count = Some(0);
            return Fate::Drop;
        }
        let below_max = self.average < self.config.max_packets as f64;
        let fate = match self.strikes(backlog, rng) {
            true if self.config.ecn && packet.ect.is_capable() && below_max => Fate::Mark,
            true => return Fate::Drop,
            false => Fate::Keep,
        };
        self.ready = now + backlog.wait + self.config.packet_time;
        fate
    }
}

/// Averages below this many packets are taken for zero, to spare a power per packet on idle links.
const NEGLIGIBLE: f64 = 1e-3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::packet::Ect;

    fn backlog(packets: u64) -> Backlog {
        Backlog { packets, bytes: packets * 1500, wait: Span::from_micros(1200 * packets) }
    }

    /// Fates of `count` ECN-capable arrivals that all find `packets` packets waiting.
    fn fates(red: &mut Red, packets: u64, count: usize) -> Vec<Fate> {
        let packet = Packet { size: 1500, ect: Ect::Zero, ..Packet::default() };
        let mut rng = Rng::new(5);
        let found = backlog(packets + 1);
        (0..count).map(|_| red.admit(Time(0), &packet, &found, &mut rng)).collect()
    }

    fn struck(fates: &[Fate]) -> usize {
        fates.iter().filter(|&&fate| fate != Fate::Keep).count()
    }

    fn instant(ecn: bool) -> Red {
        Red::new(Config { weight: 1.0, ecn, ..Config::default() })
    }

    #[test]
    fn nothing_is_dropped_below_the_lower_threshold() {
        assert_eq!(struck(&fates(&mut instant(false), 4, 10_000)), 0);
    }

    #[test]
    fn between_the_thresholds_drops_grow_linearly_and_are_spaced_evenly() {
        for (packets, base) in [(10, 0.05), (14, 0.09)] {
            let fates = fates(&mut instant(false), packets, 20_000);
            let expected = 20_000.0 / f64::midpoint(1.0, 1.0 / base - 1.0); // gaps uniform in 1..1/p
            let ratio = struck(&fates) as f64 / expected;
            assert!((0.95..1.05).contains(&ratio), "{ratio} of the drops expected at {packets}");
            let longest = fates.split(|&fate| fate == Fate::Drop).map(<[Fate]>::len).max();
            assert!(longest <= Some((1.0 / base) as usize), "{longest:?} arrivals without a drop");
        }
    }

    #[test]
    fn the_slope_is_gentle_above_the_upper_threshold_and_ends_at_its_double() {
        let some = struck(&fates(&mut instant(false), 16, 10_000));
        let more = struck(&fates(&mut instant(false), 20, 10_000));
        assert!(some < more && more < 10_000, "{some} then {more}");
        assert_eq!(struck(&fates(&mut instant(false), 30, 1000)), 1000);
    }

    #[test]
    fn marks_replace_drops_up_to_the_upper_threshold_only() {
        let below = fates(&mut instant(true), 12, 1000);
        assert!(below.contains(&Fate::Mark) && !below.contains(&Fate::Drop));
        let above = fates(&mut instant(true), 20, 1000);
        assert!(above.contains(&Fate::Drop) && !above.contains(&Fate::Mark));
    }

    #[test]
    fn packets_without_ecn_are_dropped_not_marked() {
        let packet = Packet { size: 1500, ..Packet::default() };
        let (mut red, mut rng) = (instant(true), Rng::new(2));
        let marked =
            (0..1000).any(|_| red.admit(Time(0), &packet, &backlog(13), &mut rng) == Fate::Mark);
        assert!(!marked);
    }

    #[test]
    fn a_short_burst_hardly_moves_the_average() {
        let mut red = Red::new(Config::default());
        assert_eq!(struck(&fates(&mut red, 40, 60)), 0);
        assert!(red.average < 5.0);
    }

    #[test]
    fn an_idle_time_lets_the_average_decay_by_one_weight_per_packet_time() {
        let mut red = Red::new(Config::default());
        red.average = 10.0;
        red.ready = Time(0);
        red.observe(Time(0) + Span::from_micros(1200 * 999), &Backlog::default());
        assert!((red.average - 10.0 * libm::pow(0.998, 1000.0)).abs() < 1e-9);
    }

    #[test]
    fn the_packet_in_transmission_is_not_in_the_average() {
        let mut red = instant(false);
        red.observe(Time(0), &backlog(10));
        assert!((red.average - 9.0).abs() < 1e-12, "{}", red.average);
        red.observe(Time(0), &backlog(1));
        assert!(red.average.abs() < 1e-12, "{}", red.average);
    }

    #[test]
    fn with_fewer_than_two_packets_waiting_nothing_is_dropped_early() {
        let mut red = Red::new(Config { weight: 1e-9, ..Config::default() });
        red.average = 40.0; // above twice the upper threshold, where every arrival is dropped
        assert_eq!(struck(&fates(&mut red, 0, 1000)), 0);
        assert_eq!(struck(&fates(&mut red, 1, 1000)), 0);
        assert_eq!(struck(&fates(&mut red, 2, 1000)), 1000);
    }

    #[test]
    fn a_full_queue_drops_whatever_the_average() {
        let limit = DropTail { packets: 10, bytes: u64::MAX };
        let mut red = Red::new(Config { limit, ..Config::default() });
        assert_eq!(fates(&mut red, 10, 1), [Fate::Drop]);
    }
}
