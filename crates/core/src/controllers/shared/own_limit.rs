//! Which rate samples a controller limits itself, by a small window, as the application does by sending
//! little: those of packets sent from then until all is delivered that was in flight at the end.
use crate::units::Time;

/// A time with a small window.
#[derive(Clone, Copy, Debug)]
pub struct OwnLimit {
    from: Time,
    until: Time,
    /// The limit ends when more than so much is delivered.
    delivered: f64,
}

impl Default for OwnLimit {
    fn default() -> Self {
        Self { from: Time::NEVER, until: Time::NEVER, delivered: f64::INFINITY }
    }
}

impl OwnLimit {
    /// The window is small from now on.
    pub fn begin(&mut self, now: Time) {
        self.from = now;
    }

    /// It still is: samples are limited until more than `delivered` is delivered in all.
    pub fn extend(&mut self, delivered: f64) {
        self.until = Time::NEVER;
        self.delivered = delivered;
    }

    /// So much is delivered in all.
    pub fn on_delivered(&mut self, now: Time, delivered: f64) {
        if delivered > self.delivered {
            self.delivered = f64::INFINITY;
            self.until = now;
        }
    }

    /// Whether the sample of a packet sent then is limited.
    pub fn covers(&self, sent_at: Time) -> bool {
        (self.from..=self.until).contains(&sent_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_limited_from_the_begin_until_the_flight_at_the_end_is_delivered() {
        let mut limit = OwnLimit::default();
        assert!(!limit.covers(Time(5)));
        limit.begin(Time(10));
        limit.extend(100.0);
        limit.on_delivered(Time(20), 100.0);
        assert!(!limit.covers(Time(9)) && limit.covers(Time(10)) && limit.covers(Time(30)));
        limit.on_delivered(Time(25), 101.0);
        limit.on_delivered(Time(40), 200.0);
        assert!(limit.covers(Time(25)) && !limit.covers(Time(26)));
    }
}
