//! How long RACK lets a packet be overtaken (RFC 8985 section 6.2 steps 3 and 4).
use crate::transport::rtt::RttEstimator;
use crate::units::Span;

/// Recoveries after which the window shrinks back.
pub const PERSISTENCE: u8 = 16;

/// RACK's reordering window.
#[derive(Clone, Copy, Debug)]
pub struct Reordering {
    /// A report of a duplicate before this segment is acknowledged belongs to the same round trip;
    /// `u64::MAX` if there was none.
    round_end: u64,
    /// Quarters of the smallest round trip.
    multiplier: u32,
    /// Recoveries until `multiplier` is 1 again.
    persist: u8,
    seen: bool,
}

impl Reordering {
    /// No reordering seen.
    pub const NONE: Self =
        Self { round_end: u64::MAX, multiplier: 1, persist: PERSISTENCE, seen: false };

    /// Whether a packet was ever overtaken.
    #[cfg(test)]
    pub fn is_seen(&self) -> bool {
        self.seen
    }

    /// A packet was overtaken.
    pub fn on_reordering(&mut self) {
        self.seen = true;
    }

    /// Whether the end of a round trip with a duplicate is awaited.
    pub fn is_in_round(&self) -> bool {
        self.round_end < u64::MAX
    }

    /// An acknowledgement up to `una` came, `nxt` being the next segment; `duplicate` if it reports one.
    pub fn on_ack(&mut self, una: u64, nxt: u64, duplicate: bool) {
        if una >= self.round_end {
            self.round_end = u64::MAX;
        }
        if duplicate && self.round_end == u64::MAX {
            self.round_end = nxt;
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSISTENCE;
        }
    }

    /// A recovery is over.
    pub fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.multiplier = 1;
        }
    }

    /// The window; none where no packet was ever overtaken and loss is `certain`.
    pub fn window(&self, rtt: &RttEstimator, certain: bool) -> Span {
        if !self.seen && certain {
            return Span::ZERO;
        }
        (rtt.min_rtt() * u64::from(self.multiplier) / 4).min(rtt.srtt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::rtt::RtoLimits;

    /// Round trips of 100 ms.
    fn rtt() -> RttEstimator {
        let span = Span::from_millis(200);
        let limits = RtoLimits { min: span, max: span, initial: span, tick: span };
        let mut rtt = RttEstimator::default();
        rtt.sample(Span::from_millis(100), true, &limits);
        rtt
    }

    #[test]
    fn duplicates_widen_the_window_once_per_round_trip_up_to_srtt() {
        let mut reordering = Reordering::NONE;
        reordering.on_reordering();
        let mut widths = Vec::new();
        for (una, nxt) in [(5, 15), (6, 16), (14, 24), (15, 25), (25, 35), (35, 45), (45, 55)] {
            reordering.on_ack(una, nxt, true);
            widths.push(reordering.window(&rtt(), true).as_millis_f64());
        }
        assert_eq!(widths, [50.0, 50.0, 50.0, 75.0, 100.0, 100.0, 100.0]);
    }

    #[test]
    fn sixteen_recoveries_without_a_duplicate_narrow_it_again() {
        let mut reordering = Reordering::NONE;
        reordering.on_reordering();
        reordering.on_ack(5, 15, true);
        for _ in 1..PERSISTENCE {
            reordering.on_recovery_end();
        }
        assert_eq!(reordering.window(&rtt(), true), Span::from_millis(50));
        reordering.on_recovery_end();
        assert_eq!(reordering.window(&rtt(), true), Span::from_millis(25));
    }

    #[test]
    fn without_reordering_a_certain_loss_has_no_window() {
        assert_eq!(Reordering::NONE.window(&rtt(), true), Span::ZERO);
        assert_eq!(Reordering::NONE.window(&rtt(), false), Span::from_millis(25));
    }
}
