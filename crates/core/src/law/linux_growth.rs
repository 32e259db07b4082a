//! Congestion avoidance of Linux's CUBIC (`net/ipv4/tcp_cubic.c`, Linux 6): whole packets throughout. Beside the cubic
//! and the Reno estimate of RFC 9438 it decides how fast a window of a few packets grows.
use crate::units::{Span, Time};

/// How long a look at the cubic holds while the window stays (HZ/32).
const LOOK: Span = Span(31_250_000);
/// Packets to be acknowledged for one more, at most, before the first loss.
const CLIMB: f64 = 20.0;

/// What is counted since the stage began, in packets.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The whole part of 8/3·(1 + β)/(1 − β).
    reno_scale: f64,
    /// Acknowledged, and not yet in `reno`.
    acked: f64,
    /// What Reno would have by now.
    reno: f64,
    /// The window at the latest look at the cubic, and when that was.
    looked: (u64, Time),
    /// To be acknowledged for one packet more.
    each: f64,
    /// Acknowledged towards the next packet.
    towards: f64,
}

impl Growth {
    /// Of a CUBIC that keeps β of its window at a reduction.
    pub fn new(beta: f64) -> Self {
        Self {
            reno_scale: (8.0 * (1.0 + beta) / (3.0 * (1.0 - beta))).floor(),
            acked: 0.0,
            reno: 0.0,
            looked: (0, Time(0)),
            each: 0.0,
            towards: 0.0,
        }
    }

    /// A stage of congestion avoidance begins with this window.
    pub fn begin(&mut self, cwnd: f64) {
        (self.acked, self.reno) = (0.0, cwnd.floor());
        (self.looked, self.each) = ((0, Time(0)), 0.0);
    }

    /// A reduction has begun.
    pub fn reduce(&mut self) {
        self.towards = 0.0;
    }

    /// By how many packets the window grows, of which so many more were acknowledged.
    ///
    /// `target` is asked for the cubic's window now; `climbs` holds before the first loss.
    pub fn on_ack(
        &mut self,
        now: Time,
        (cwnd, acked): (f64, f64),
        target: impl FnOnce() -> f64,
        climbs: bool,
    ) -> f64 {
        let cwnd = cwnd.floor();
        self.acked += acked;
        let (seen, at) = self.looked;
        if seen != cwnd as u64 || now.since(at) > LOOK {
            self.looked = (cwnd as u64, now);
            let away = target().floor() - cwnd;
            let each = if away > 0.0 { (cwnd / away).floor() } else { 100.0 * cwnd };
            let each = if climbs { each.min(CLIMB) } else { each };
            self.each = each.min(self.reno_each(cwnd)).max(2.0);
        }
        self.count(acked)
    }

    /// What the Reno estimate asks for, which grows by one for (w·s) >> 3 acknowledged packets.
    fn reno_each(&mut self, cwnd: f64) -> f64 {
        let per_packet = (cwnd * self.reno_scale / 8.0).floor().max(1.0);
        // `acked > per_packet` as in Linux: the first packet takes one acknowledgement more.
        let more = ((self.acked / per_packet).ceil() - 1.0).max(0.0);
        self.acked -= more * per_packet;
        self.reno += more;
        if self.reno > cwnd { (cwnd / (self.reno - cwnd)).floor() } else { f64::INFINITY }
    }

    /// Packets that come of so many acknowledged ones (`tcp_cong_avoid_ai`).
    fn count(&mut self, acked: f64) -> f64 {
        let mut packets = 0.0;
        if self.towards >= self.each {
            self.towards = 0.0;
            packets += 1.0;
        }
        self.towards += acked;
        if self.towards >= self.each {
            let more = (self.towards / self.each).floor();
            self.towards -= more * self.each;
            packets += more;
        }
        packets
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp)] // whole numbers
mod tests {
    use super::*;

    fn growth() -> Growth {
        Growth::new(717.0 / 1024.0)
    }

    fn at(ms: u64) -> Time {
        Time(0) + Span::from_millis(ms)
    }

    /// The window after this many round trips of a millisecond, one packet acknowledged at a time.
    fn grown(cwnd: f64, target: f64, round_trips: u64, ms: u64) -> f64 {
        let mut growth = growth();
        growth.begin(cwnd);
        let mut window = cwnd;
        for round in 0..round_trips {
            for place in 0..window as u64 {
                let now = at((round + 1) * ms) + Span(place);
                window += growth.on_ack(now, (window, 1.0), || target, false);
            }
        }
        window
    }

    #[test]
    fn one_more_takes_the_window_over_its_distance_from_the_cubic_and_at_least_two() {
        // 10 / (12 - 10) = 5 acknowledged packets each, then 11 / 1 = 11, then the plateau.
        assert_eq!(grown(10.0, 12.9, 1, 40), 11.0);
        assert_eq!(grown(10.0, 1000.0, 1, 40), 15.0);
        assert_eq!(grown(10.0, 10.9, 1, 40), 10.0, "not for a part of a packet");
    }

    #[test]
    fn the_reno_estimate_counts_whole_packets() {
        assert_eq!(growth().reno_scale, 15.0); // 8 · 1741 / 3 / 307
        for (cwnd, per_packet) in [(1.0, 1.0), (4.0, 7.0), (9.0, 16.0), (100.0, 187.0)] {
            let mut growth = growth();
            growth.begin(cwnd);
            growth.acked = per_packet;
            assert_eq!(growth.reno_each(cwnd), f64::INFINITY, "{cwnd}");
            growth.acked += 1.0;
            assert_eq!(growth.reno_each(cwnd), cwnd, "{cwnd}: one packet above");
        }
    }

    #[test]
    fn a_look_holds_for_31_ms_while_the_window_stays() {
        let mut growth = growth();
        growth.begin(10.0);
        let far = |growth: &mut Growth, ms| {
            growth.on_ack(at(ms), (10.0, 0.0), || 20.0, false);
            growth.each
        };
        growth.on_ack(at(1), (10.0, 0.0), || 10.0, false);
        assert_eq!(growth.each, 1000.0);
        assert_eq!(far(&mut growth, 32), 1000.0);
        assert_eq!(far(&mut growth, 33), 2.0);
        growth.on_ack(at(34), (11.0, 0.0), || 11.0, false);
        assert_eq!(growth.each, 1100.0, "another window is looked at");
    }

    #[test]
    fn before_the_first_loss_twenty_acknowledged_packets_are_one_more() {
        let mut growth = growth();
        growth.begin(100.0);
        let more = (1..=40).map(|ms| growth.on_ack(at(ms), (100.0, 1.0), || 100.0, true));
        assert_eq!(more.sum::<f64>(), 2.0);
    }
}
