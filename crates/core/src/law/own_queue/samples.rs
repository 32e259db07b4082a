//! Smallest round trips over parts of an interval, and over a few samples in the start.
use crate::control::Ack;
use crate::law::hystart::SAMPLES_MIN;
use crate::units::{Bytes, Rate, Span, Time};

/// The round trip is the mean of the smallest of parts of an interval so long, and at least so long a part of
/// it: the smallest of a whole long interval misses what flows with short ones see of the same queue.
const PART_MIN: Span = Span::from_millis(25);
const PART: f64 = 0.3;
/// An acknowledgement of all that is in flight may have waited for a further packet, for up to 500 ms (RFC 5681
/// section 4.2): the round trip of so few packets, an initial window, tells no queue.
const FEW: f64 = 10.0;

/// The parts of an interval.
#[derive(Clone, Copy, Debug, Default)]
pub struct Parts {
    begin: Time,
    packets: f64,
    least: Span,
    sum_s: f64,
    count: f64,
}

impl Parts {
    /// Takes a record; `packet` is the size of a full one, bytes.
    pub fn add(&mut self, ack: &Ack, packet: f64) {
        if ack.rtt == Span::ZERO {
            return;
        }
        if self.least == Span::ZERO {
            self.begin = ack.now;
        }
        if may_have_waited(ack, packet) {
            return;
        }
        let smallest = smallest(ack);
        if self.least == Span::ZERO {
            self.least = smallest;
        }
        self.least = self.least.min(smallest);
        self.packets += ack.acked.0 as f64 / packet;
        let long = ack.now.since(self.begin) >= PART_MIN.max(ack.srtt.mul_f64(PART));
        if long && self.packets >= SAMPLES_MIN as f64 {
            self.end();
        }
    }

    fn end(&mut self) {
        self.sum_s += self.least.as_secs_f64();
        self.count += 1.0;
        (self.least, self.packets) = (Span::ZERO, 0.0);
    }

    /// Mean of the smallest round trips of the parts; ends the interval. A rest counts if it is all there is. Samples
    /// that all may have waited at the receiver stand for `base`, the round trip without a queue.
    pub fn take(&mut self, base: Span) -> Option<Span> {
        if self.count == 0.0 && self.least > Span::ZERO {
            self.end();
        }
        let mean = if self.count > 0.0 {
            Some(Span::from_secs_f64(self.sum_s / self.count))
        } else {
            (self.begin > Time(0)).then_some(base)
        };
        *self = Self::default();
        mean
    }
}

/// Delivery rate of a record, packets/s; 0 where it is unknown. `packet` is the size of a full one, bytes.
pub fn rate_pps(ack: &Ack, packet: f64) -> f64 {
    let known = if ack.delivery_rate == Rate::UNLIMITED { 0.0 } else { ack.delivery_rate.0 as f64 };
    known / 8.0 / packet
}

/// Whether the acknowledgement may have waited for a further packet.
fn may_have_waited(ack: &Ack, packet: f64) -> bool {
    ack.inflight == Bytes::ZERO && ack.prior_inflight.0 as f64 <= FEW * packet
}

/// Smallest sample of a record that has one.
fn smallest(ack: &Ack) -> Span {
    if ack.batch_rtt_min > Span::ZERO { ack.batch_rtt_min.min(ack.rtt) } else { ack.rtt }
}

/// Consecutive samples, enough to judge by the smallest.
#[derive(Clone, Copy, Debug, Default)]
pub struct Group {
    packets: f64,
    rtt: Span,
    rate_pps: f64,
}

impl Group {
    /// Takes a record: the smallest round trip and the largest delivery rate, packets/s, of the group that it
    /// completes.
    pub fn add(&mut self, ack: &Ack, packet: f64) -> Option<(Span, f64)> {
        if ack.rtt == Span::ZERO || may_have_waited(ack, packet) {
            return None;
        }
        let smallest = smallest(ack);
        self.rtt = if self.packets > 0.0 { self.rtt.min(smallest) } else { smallest };
        self.rate_pps = self.rate_pps.max(rate_pps(ack, packet));
        self.packets += ack.acked.0 as f64 / packet;
        if self.packets < SAMPLES_MIN as f64 {
            return None;
        }
        let Self { rtt, rate_pps, .. } = std::mem::take(self);
        Some((rtt, rate_pps))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now_ms: u64, rtt_ms: u64) -> Ack {
        let rtt = Span::from_millis(rtt_ms);
        let srtt = Span::from_millis(200);
        Ack {
            now: Time(now_ms * 1_000_000),
            rtt,
            srtt,
            acked: Bytes(1000),
            inflight: Bytes(1000),
            ..Ack::default()
        }
    }

    #[test]
    fn the_round_trip_of_a_long_interval_is_the_mean_over_its_parts() {
        let mut parts = Parts::default();
        // A queue for half of the time: the smallest of all does not show it.
        for now_ms in 0..200 {
            parts.add(&ack(now_ms, if now_ms < 100 { 200 } else { 240 }), 1000.0);
        }
        let mean = parts.take(Span::from_millis(30)).expect("samples").as_millis_f64();
        assert!((205.0..230.0).contains(&mean), "{mean}");
        assert_eq!(parts.take(Span::from_millis(30)), None);
    }

    #[test]
    fn few_samples_make_one_part() {
        let mut parts = Parts::default();
        for rtt_ms in [50, 40, 45] {
            parts.add(&ack(rtt_ms, rtt_ms), 1000.0);
        }
        assert_eq!(parts.take(Span::from_millis(30)), Some(Span::from_millis(40)));
    }

    #[test]
    fn acknowledgements_that_may_have_waited_stand_for_the_base() {
        let late = |acked| Ack { acked: Bytes(acked), inflight: Bytes(0), ..ack(50, 40) };
        let base = Span::from_millis(30);
        for (packets, told) in [(2, 30), (10, 30), (11, 40)] {
            let bytes = 1000 * packets;
            let mut parts = Parts::default();
            parts.add(&Ack { prior_inflight: Bytes(bytes), ..late(bytes) }, 1000.0);
            assert_eq!(parts.take(base), Some(Span::from_millis(told)), "{packets}");
        }
        let mut group = Group::default();
        let eight = Ack { prior_inflight: Bytes(8000), ..late(8000) };
        assert_eq!(group.add(&eight, 1000.0), None);
        assert!(group.add(&Ack { inflight: Bytes(1000), ..eight }, 1000.0).is_some());
    }

    #[test]
    fn a_group_of_eight_packets_tells_its_smallest() {
        let mut group = Group::default();
        for now_ms in 1..8 {
            assert_eq!(group.add(&ack(now_ms, 40 + now_ms), 1000.0), None);
        }
        assert_eq!(group.add(&ack(8, 48), 1000.0), Some((Span::from_millis(41), 0.0)));
    }
}
