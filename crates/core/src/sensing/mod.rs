//! From ACKs to numbers: moving averages, gaps between packets, and what one step achieved.
pub mod delivered;
pub mod jitter;
pub mod monitor_interval;
pub mod overload;
pub mod sends;
pub mod signals;
pub mod windowed_max;
pub mod windowed_min;

use crate::control::{Ack, Loss};
use crate::units::{Bytes, Time};

/// Exponentially weighted moving average. The first sample starts it; before that it is 0.
#[derive(Clone, Debug)]
pub struct Ewma {
    gain: f64,
    value: Option<f64>,
}

impl Ewma {
    /// `gain` is the weight of a new sample, in (0, 1].
    pub fn new(gain: f64) -> Self {
        Self { gain, value: None }
    }

    /// Takes in `count` samples of this value at once.
    pub fn update(&mut self, sample: f64, count: f64) {
        let Some(value) = &mut self.value else {
            self.value = Some(sample);
            return;
        };
        let gain = if count <= 1.0 { self.gain } else { 1.0 - libm::pow(1.0 - self.gain, count) };
        *value += gain * (sample - *value);
    }

    /// The average so far.
    pub fn value(&self) -> f64 {
        self.value.unwrap_or(0.0)
    }
}

/// Averages of the time between ACKs and of the time between the sendings that they echo, in
/// seconds (Kong et al. 2018, section 3.2: both from the received ACKs alone).
#[derive(Clone, Debug)]
pub struct Gaps {
    /// Between ACKs.
    pub ack: Ewma,
    /// Between the sendings of consecutively acknowledged packets.
    pub send: Ewma,
    last: Option<(Time, Time)>,
}

impl Gaps {
    /// Both averages with the same gain.
    pub fn new(gain: f64) -> Self {
        Self { ack: Ewma::new(gain), send: Ewma::new(gain), last: None }
    }

    /// A record for several packets counts as that many equal gaps. A packet sent before the last
    /// one (a late retransmission) has no gap to it.
    pub fn on_ack(&mut self, ack: &Ack, packets: f64) {
        let Some((now, sent_at)) = self.last else {
            self.last = Some((ack.now, ack.sent_at));
            return;
        };
        let count = packets.max(1.0);
        self.ack.update(ack.now.since(now).as_secs_f64() / count, count);
        self.send.update(ack.sent_at.since(sent_at).as_secs_f64() / count, count);
        self.last = Some((ack.now, ack.sent_at.max(sent_at)));
    }
}

/// What the throughput of a step counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// The bytes newly delivered.
    Bytes,
    /// ACKs that acknowledge something new, one packet each. The ACK that ends a recovery delivers
    /// up to a window and counts as one packet.
    Acks,
}

/// Adds up what happens during one step.
#[derive(Clone, Debug)]
pub struct StepMeter {
    /// When the step began.
    pub started: Time,
    counted: Counted,
    mss: f64,
    delivered_before: Bytes,
    /// ACKs that acknowledged something new.
    acks: f64,
    lost: f64,
    /// Nanoseconds times packets, and packets, over the round-trip samples. Whole numbers, like all
    /// sums here, so that equal steps have equal outcomes to the last bit: a reward can depend on
    /// the sign of their difference.
    rtt_sum: f64,
    rtt_count: f64,
}

/// What a step achieved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// What was counted, as bits per second; at least one packet in the step.
    pub throughput_bps: f64,
    /// Mean of the round-trip samples, seconds; 0 if there were none.
    pub rtt_mean_s: f64,
    /// Lost of lost and delivered, in [0, 0.999].
    pub loss_ratio: f64,
}

impl StepMeter {
    /// Begins a step at `now`, with `delivered` bytes delivered so far. Throughput counts bytes.
    pub fn new(mss: Bytes, now: Time, delivered: Bytes) -> Self {
        Self {
            started: now,
            counted: Counted::Bytes,
            mss: mss.0.max(1) as f64,
            delivered_before: delivered,
            acks: 0.0,
            lost: 0.0,
            rtt_sum: 0.0,
            rtt_count: 0.0,
        }
    }

    /// The same meter with a throughput that counts this.
    #[must_use]
    pub fn counting(self, counted: Counted) -> Self {
        Self { counted, ..self }
    }

    /// Begins the next step.
    pub fn restart(&mut self, now: Time, delivered: Bytes) {
        *self = Self::new(Bytes(self.mss as u64), now, delivered).counting(self.counted);
    }

    /// Takes in an ACK and its round-trip sample, weighted by the packets it stands for.
    pub fn on_ack(&mut self, ack: &Ack) {
        if ack.acked.0 > 0 {
            self.acks += 1.0;
        }
        if ack.rtt.0 > 0 {
            let packets = (ack.acked.0 as f64 / self.mss).max(1.0);
            self.rtt_sum += ack.rtt.0 as f64 * packets;
            self.rtt_count += packets;
        }
    }

    /// Takes in a loss.
    pub fn on_loss(&mut self, loss: &Loss) {
        self.lost += loss.lost.0 as f64;
    }

    /// The step so far as a clock of `f64` seconds sees it, such as ns-2's: rates of equal steps then
    /// differ in their last bits, one way or the other.
    pub fn outcome_in_seconds(&self, now: Time, delivered: Bytes) -> Outcome {
        let exact = self.outcome(now, delivered);
        let bytes = self.bytes_counted(self.bytes_delivered(delivered));
        let seconds = (now.as_secs_f64() - self.started.as_secs_f64()).max(1e-9);
        Outcome { throughput_bps: bytes * 8.0 / seconds, ..exact }
    }

    fn bytes_delivered(&self, delivered: Bytes) -> f64 {
        delivered.saturating_sub(self.delivered_before).0 as f64
    }

    /// What the throughput is of, at least one packet.
    fn bytes_counted(&self, delivered: f64) -> f64 {
        match self.counted {
            Counted::Bytes => delivered,
            Counted::Acks => self.acks * self.mss,
        }
        .max(self.mss)
    }

    /// The step so far.
    pub fn outcome(&self, now: Time, delivered: Bytes) -> Outcome {
        let nanos = now.since(self.started).0.max(1) as f64;
        let delivered = self.bytes_delivered(delivered);
        let loss_ratio = self.lost / (self.lost + delivered).max(1.0);
        Outcome {
            throughput_bps: self.bytes_counted(delivered) * 8e9 / nanos,
            rtt_mean_s: if self.rtt_count > 0.0 {
                self.rtt_sum / self.rtt_count / 1e9
            } else {
                0.0
            },
            loss_ratio: loss_ratio.min(0.999),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn a_batch_of_equal_samples_moves_an_average_as_far_as_they_do_singly() {
        let (mut singly, mut batch) = (Ewma::new(0.125), Ewma::new(0.125));
        singly.update(1.0, 1.0);
        batch.update(1.0, 1.0);
        for _ in 0..8 {
            singly.update(3.0, 1.0);
        }
        batch.update(3.0, 8.0);
        close(batch.value(), singly.value());
    }

    #[test]
    fn gaps_are_measured_at_arrival_and_at_sending() {
        let mut gaps = Gaps::new(0.125);
        for n in 0..5 {
            let now = Time(0) + Span::from_millis(100 + 2 * n);
            gaps.on_ack(
                &Ack { now, sent_at: Time(0) + Span::from_millis(n), ..Ack::default() },
                1.0,
            );
        }
        close(gaps.ack.value(), 0.002);
        close(gaps.send.value(), 0.001);
    }

    #[test]
    fn a_late_retransmission_has_no_sending_gap() {
        let mut gaps = Gaps::new(1.0);
        for millis in [10, 5, 11] {
            let sent_at = Time(0) + Span::from_millis(millis);
            gaps.on_ack(&Ack { sent_at, ..Ack::default() }, 1.0);
        }
        close(gaps.send.value(), 0.001);
    }

    #[test]
    fn an_outcome_is_delivered_bits_mean_delay_and_lost_share() {
        let mut meter = StepMeter::new(Bytes(1250), Time(0), Bytes(1000));
        for millis in [150, 170] {
            let rtt = Span::from_millis(millis);
            meter.on_ack(&Ack { rtt, acked: Bytes(1250), ..Ack::default() });
        }
        meter.on_loss(&Loss { lost: Bytes(1250), ..Loss::default() });
        let outcome = meter.outcome(Time(0) + Span::from_millis(10), Bytes(1000 + 3 * 1250));
        close(outcome.throughput_bps, 3e6);
        close(outcome.rtt_mean_s, 0.16);
        close(outcome.loss_ratio, 0.25);
    }

    #[test]
    fn counting_acks_the_one_that_ends_a_recovery_is_one_packet_and_duplicates_are_none() {
        let mut meter = StepMeter::new(Bytes(1250), Time(0), Bytes(0)).counting(Counted::Acks);
        for acked in [1250, 0, 0, 40 * 1250] {
            meter.on_ack(&Ack { acked: Bytes(acked), ..Ack::default() });
        }
        meter.on_loss(&Loss { lost: Bytes(1250), ..Loss::default() });
        let (now, delivered) = (Time(0) + Span::from_millis(10), Bytes(41 * 1250));
        close(meter.outcome(now, delivered).throughput_bps, 2e6);
        close(meter.outcome_in_seconds(now, delivered).throughput_bps, 2e6);
        close(meter.outcome(now, delivered).loss_ratio, 1.0 / 42.0); // of packets, all the same
        meter.restart(now, delivered);
        meter.on_ack(&Ack { acked: Bytes(40 * 1250), ..Ack::default() });
        let next = meter.outcome(now + Span::from_millis(10), Bytes(81 * 1250));
        close(next.throughput_bps, 1e6); // the next step counts the same way, from nothing
    }

    #[test]
    fn equal_rates_over_unequal_steps_are_equal_to_the_last_bit() {
        let outcome = |packets: u64| {
            let mut meter = StepMeter::new(Bytes(1250), Time(0), Bytes(0));
            for _ in 0..packets {
                let rtt = Span::from_micros(153_001);
                meter.on_ack(&Ack { rtt, acked: Bytes(1250), ..Ack::default() });
            }
            meter.outcome(Time(0) + Span::from_millis(packets), Bytes(1250 * packets))
        };
        assert!((1..500).all(|packets| outcome(packets) == outcome(153)));
    }

    #[test]
    fn an_empty_step_still_counts_one_packet_and_loses_at_most_999_in_1000() {
        let mut meter = StepMeter::new(Bytes(1250), Time(0), Bytes(0));
        meter.on_loss(&Loss { lost: Bytes(1250), ..Loss::default() });
        let outcome = meter.outcome(Time(0) + Span::from_millis(10), Bytes(0));
        close(outcome.throughput_bps, 1e6);
        close(outcome.loss_ratio, 0.999);
    }
}
