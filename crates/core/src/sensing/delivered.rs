//! What a flow delivers, as a bound on its rate: a source that pauses sends less than the rate allows, and no
//! measurement of the path then contradicts a rate that grows. What was delivered ten seconds ago bounds nothing: behind
//! a receiver's window no loss and no delay tells that the path has become slow.
use super::windowed_max::WindowedMax;
use crate::control::Ack;
use crate::units::{Span, Time};

/// No rate exceeds so many times the largest rate of delivery ...
const GAIN: f64 = 2.0;
/// ... and so many packets in a round trip, or the first window if that is larger.
const BURST_PACKETS: f64 = 10.0;
/// Deliveries are counted over a smoothed round trip, within these bounds, seconds.
const COUNT_S: (f64, f64) = (0.01, 1.0);
/// Time for which the largest rate counts, as long as BBR's smallest round trip.
const WINDOW: Span = Span::from_millis(10_000);

/// Deliveries since a time, which begin together.
#[derive(Clone, Copy, Debug)]
pub struct Count {
    since: Time,
    bits: f64,
    largest_bps: WindowedMax,
}

impl Count {
    /// Begins at `since`.
    pub fn new(since: Time) -> Self {
        Self { since, bits: 0.0, largest_bps: WindowedMax::new(WINDOW.0) }
    }

    /// Takes in a record; the largest rate of ten seconds, bits per second. A rate is that over a smoothed round trip at
    /// least: before that has passed, as if nothing more came in it, so that the size of a record does not count.
    pub fn add(&mut self, ack: &Ack, srtt_s: f64) -> f64 {
        self.bits += ack.acked.0 as f64 * 8.0;
        let elapsed_s = ack.now.since(self.since).as_secs_f64();
        let least_s = srtt_s.clamp(COUNT_S.0, COUNT_S.1);
        self.largest_bps.sample(ack.now.0, self.bits / elapsed_s.max(least_s));
        if elapsed_s >= least_s {
            (self.since, self.bits) = (ack.now, 0.0);
        }
        self.largest_bps.value()
    }

    /// As if this rate had been reached, bits per second.
    #[cfg(test)]
    pub fn fast(mut self, rate_bps: f64) -> Self {
        self.largest_bps.sample(self.since.0, rate_bps);
        self
    }
}

/// Largest rate of a flow that was delivered at `delivered_bps` at most lately and began with `initial_packets`, bits per
/// second (proposed).
pub fn most_bps(delivered_bps: f64, initial_packets: f64, packet_bits: f64, srtt_s: f64) -> f64 {
    let burst_bits = BURST_PACKETS.max(initial_packets) * packet_bits;
    GAIN * delivered_bps + burst_bits / srtt_s.max(COUNT_S.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    #[test]
    fn what_was_delivered_ten_seconds_ago_does_not_count() {
        let mut count = Count::new(Time(0));
        // 100 packets of 1250 bytes in each tenth of a second, then one: 10 Mb/s, then 0.1.
        let mut add = |tenth: u64, packets: u64| {
            let now = Time(tenth * 100_000_000);
            count.add(&Ack { now, acked: Bytes(1250 * packets), ..Ack::default() }, 0.1) / 1e6
        };
        for tenth in 1..=50 {
            assert!((add(tenth, 100) - 10.0).abs() < 1e-9);
        }
        for tenth in 51..=150 {
            assert!((add(tenth, 1) - 10.0).abs() < 1e-9, "{tenth}");
        }
        assert!((add(151, 1) - 0.1).abs() < 1e-9);
    }
}
