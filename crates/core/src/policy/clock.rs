//! The decision clock: when a monitor interval ends.
use super::spec::{ClockSpec, DecisionSpec};
use crate::control::Ack;
use crate::units::{Span, Time};

/// An interval ends with the first acknowledgement at or after its time.
#[derive(Clone, Debug)]
pub struct Clock {
    every: ClockSpec,
    times: f64,
    min: Span,
    end: Time,
}

impl Clock {
    /// The first interval ends with the first acknowledgement after a round-trip sample.
    pub fn new(spec: &DecisionSpec) -> Self {
        Self {
            every: spec.every,
            times: spec.times,
            min: Span::from_secs_f64(spec.min_ms / 1e3),
            end: Time(0),
        }
    }

    /// Whether this acknowledgement ends the interval.
    pub fn ends(&self, ack: &Ack) -> bool {
        ack.now >= self.end && ack.srtt > Span::ZERO
    }

    /// Makes the interval end with the next acknowledgement.
    pub fn expire(&mut self) {
        self.end = Time(0);
    }

    /// Begins an interval; `rtt_min` is the smallest round trip.
    pub fn restart(&mut self, ack: &Ack, rtt_min: Span) {
        let length = match self.every {
            ClockSpec::Srtt => ack.srtt.mul_f64(self.times),
            ClockSpec::MinRtt => rtt_min.mul_f64(self.times),
            ClockSpec::Time | ClockSpec::Ack => Span::ZERO,
        };
        self.end = ack.now + length.max(self.min);
    }
}

/// The smallest round trip: of the flow, or of the last 10 s.
#[derive(Clone, Debug)]
pub enum MinRtt {
    /// Of the flow.
    Life(Span),
    /// Of the last 10 s.
    Window(Box<Buckets>),
}

const BUCKETS: u64 = 100;
const BUCKET: Span = Span::from_millis(100);

/// Smallest round trip of each of the last 100 tenths of a second.
#[derive(Clone, Debug)]
pub struct Buckets {
    min: [Span; BUCKETS as usize],
    /// Number of the newest tenth, and the smallest of all.
    newest: u64,
    of_all: Span,
}

impl MinRtt {
    /// Of the flow, or of a window.
    pub fn new(window: bool) -> Self {
        if !window {
            return Self::Life(Span::MAX);
        }
        let min = [Span::MAX; BUCKETS as usize];
        Self::Window(Box::new(Buckets { min, newest: 0, of_all: Span::MAX }))
    }

    /// Takes the samples of a record.
    pub fn on_ack(&mut self, ack: &Ack) {
        match self {
            // A batch may hold a smaller one than its newest, which the sender has seen.
            Self::Life(min) => {
                for sample in [ack.min_rtt, ack.rtt] {
                    if sample > Span::ZERO {
                        *min = sample.min(*min);
                    }
                }
            }
            Self::Window(buckets) if ack.rtt > Span::ZERO => buckets.add(ack.now, ack.rtt),
            Self::Window(_) => {}
        }
    }

    /// The smallest; zero before the first.
    pub fn get(&self) -> Span {
        let min = match self {
            Self::Life(min) => *min,
            Self::Window(buckets) => buckets.of_all,
        };
        if min == Span::MAX { Span::ZERO } else { min }
    }
}

impl Buckets {
    fn add(&mut self, now: Time, rtt: Span) {
        let number = now.0 / BUCKET.0;
        if number > self.newest {
            for old in (self.newest + 1).max(number.saturating_sub(BUCKETS - 1))..=number {
                self.min[(old % BUCKETS) as usize] = Span::MAX;
            }
            self.newest = number;
            self.of_all = self.min.into_iter().min().unwrap_or(Span::MAX);
        }
        let min = &mut self.min[(number % BUCKETS) as usize];
        *min = rtt.min(*min);
        self.of_all = self.of_all.min(rtt);
    }
}

#[cfg(test)]
#[path = "tests/clock.rs"]
mod tests;
