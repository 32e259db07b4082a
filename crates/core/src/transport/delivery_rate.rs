//! Delivery-rate samples (draft-cheng-iccrg-delivery-rate-estimation-02, section 3).
use crate::hint::unlikely;
use crate::units::{Bytes, Rate, Span, Time};

/// Most bytes in flight that [`SentState`] tells apart.
const FLIGHT_MAX: u64 = (1 << 31) - 1;

/// What a packet remembers of the moment it was sent. There is one per packet in flight, so it is small.
#[derive(Clone, Copy, Debug, Default)]
pub struct SentState {
    /// `P.delivered`.
    pub delivered: u64,
    /// `P.delivered_time`.
    pub delivered_time: Time,
    /// `P.first_sent_time`.
    pub first_sent_time: Time,
    /// `P.lost`, of which the lower half is enough to tell what was lost since.
    lost: u32,
    /// `P.tx_in_flight`, up to [`FLIGHT_MAX`], times two, and `P.is_app_limited`.
    flight: u32,
}

impl SentState {
    /// `P.is_app_limited`: the application limited what was in flight.
    pub fn app_limited(&self) -> bool {
        self.flight & 1 == 1
    }

    /// `P.tx_in_flight`: in flight just after the packet was sent, with it.
    pub fn inflight(&self) -> Bytes {
        Bytes(u64::from(self.flight >> 1))
    }

    /// Declared lost since the packet was sent, if so much is declared lost in all.
    pub fn lost_since(&self, lost: u64) -> Bytes {
        Bytes(u64::from((lost as u32).wrapping_sub(self.lost)))
    }
}

/// The connection's side of the estimator.
///
/// Its fields lie in another order than those of [`SentState`], so that they are copied one by one: a load of two
/// waits for the stores of each that come right before it.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct DeliveryRate {
    first_sent_time: Time,
    delivered_time: Time,
    delivered: u64,
    /// `C.app_limited`: samples are app-limited until this much is delivered; 0 for not limited.
    app_limited_until: u64,
}

impl DeliveryRate {
    /// Delivered since the connection began.
    pub fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }

    /// Delivered since a packet was sent.
    pub fn delivered_since(&self, sent: &SentState) -> Bytes {
        Bytes(self.delivered - sent.delivered)
    }

    /// A packet of `size` leaves at `now`, finds `inflight` on the way, and so much was declared `lost` before.
    pub fn on_sent(&mut self, now: Time, inflight: u64, size: u64, lost: u64) -> SentState {
        if unlikely(inflight == 0) {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        SentState {
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            lost: lost as u32,
            flight: ((inflight + size).min(FLIGHT_MAX) as u32) << 1
                | u32::from(self.app_limited_until != 0),
        }
    }

    /// The application ran out of data with `inflight` bytes on the way.
    pub fn on_app_limited(&mut self, inflight: u64) {
        self.app_limited_until = (self.delivered + inflight).max(1);
    }

    /// Bytes were delivered at `now`.
    pub fn on_delivered(&mut self, now: Time, bytes: u64) {
        self.delivered += bytes;
        self.delivered_time = now;
        if unlikely(self.app_limited_until != 0) && self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }
    }

    /// The sample of an acknowledgement whose newest packet was sent at `sent_at` with `state`;
    /// zero if it spans less than `min_rtt`, which only compressed ACKs or retransmissions do.
    pub fn sample(&mut self, sent_at: Time, state: &SentState, min_rtt: Span) -> Rate {
        self.first_sent_time = sent_at;
        let send_elapsed = sent_at.since(state.first_sent_time);
        let ack_elapsed = self.delivered_time.since(state.delivered_time);
        let interval = send_elapsed.max(ack_elapsed);
        if unlikely(interval < min_rtt || interval == Span::ZERO) {
            return Rate(0);
        }
        Rate::of(Bytes(self.delivered - state.delivered), interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time(0) + Span::from_millis(millis)
    }

    #[test]
    fn a_window_delivered_in_one_round_trip_samples_window_over_round_trip() {
        let mut rate = DeliveryRate::default();
        let first = rate.on_sent(at(0), 0, 1000, 0);
        rate.on_delivered(at(100), 1000);
        rate.sample(at(0), &first, Span::ZERO);
        let second = rate.on_sent(at(100), 4000, 1000, 0);
        rate.on_delivered(at(150), 4000);
        rate.on_delivered(at(200), 1000);
        let sample = rate.sample(at(100), &second, Span::from_millis(100));
        assert_eq!(sample, Rate(5000 * 8 * 10));
    }

    #[test]
    fn an_interval_below_min_rtt_gives_no_sample() {
        let mut rate = DeliveryRate::default();
        let sent = rate.on_sent(at(0), 0, 1000, 0);
        rate.on_delivered(at(10), 1000);
        assert_eq!(rate.sample(at(0), &sent, Span::from_millis(50)), Rate(0));
    }

    #[test]
    fn app_limited_ends_when_the_limited_flight_is_delivered() {
        let mut rate = DeliveryRate::default();
        rate.on_app_limited(1000);
        assert!(rate.on_sent(at(0), 0, 1000, 0).app_limited());
        rate.on_delivered(at(1), 1000);
        assert!(rate.on_sent(at(1), 1000, 1000, 0).app_limited());
        rate.on_delivered(at(2), 1);
        assert!(!rate.on_sent(at(2), 1000, 1000, 0).app_limited());
    }

    #[test]
    fn a_packet_knows_what_was_in_flight_with_it_and_what_was_delivered_and_lost_since() {
        let mut rate = DeliveryRate::default();
        let lost = u64::from(u32::MAX) - 100;
        let sent = rate.on_sent(at(0), 3000, 1000, lost);
        rate.on_delivered(at(10), 2000);
        assert_eq!(sent.inflight(), Bytes(4000));
        assert_eq!(rate.delivered_since(&sent), Bytes(2000));
        assert_eq!(sent.lost_since(lost + 1000), Bytes(1000));
        let full = rate.on_sent(at(20), u64::from(u32::MAX), 1000, 0);
        assert!(full.inflight() == Bytes(FLIGHT_MAX) && !full.app_limited());
    }
}
