//! When a slot ends.
use super::spec::{ClockSpec, DecisionSpec};
use crate::control::Ack;
use crate::units::{Span, Time};

/// Ends a slot with the first acknowledgement at or after its time.
#[derive(Clone, Debug)]
pub struct Clock {
    every: ClockSpec,
    times: f64,
    least: Span,
    end: Time,
}

impl Clock {
    /// The first slot ends with the first acknowledgement that knows a round trip.
    pub fn new(spec: &DecisionSpec) -> Self {
        Self {
            every: spec.every,
            times: spec.times,
            least: Span::from_secs_f64(spec.min_ms / 1e3),
            end: Time(0),
        }
    }

    /// Whether this acknowledgement ends the slot.
    pub fn ends(&self, ack: &Ack) -> bool {
        ack.now >= self.end && ack.srtt > Span::ZERO
    }

    /// The slot ends with the next acknowledgement, whatever its time.
    pub fn expire(&mut self) {
        self.end = Time(0);
    }

    /// A slot begins; `rtt_min` is the smallest round trip.
    pub fn restart(&mut self, ack: &Ack, rtt_min: Span) {
        let length = match self.every {
            ClockSpec::Srtt => ack.srtt.mul_f64(self.times),
            ClockSpec::MinRtt => rtt_min.mul_f64(self.times),
            ClockSpec::Time | ClockSpec::Ack => Span::ZERO,
        };
        self.end = ack.now + length.max(self.least);
    }
}

/// The smallest round trip: of the flow, or of the last 10 s.
#[derive(Clone, Debug)]
pub enum LeastRtt {
    /// Of the flow.
    Life(Span),
    /// Of the last 10 s.
    Window(Box<Buckets>),
}

const BUCKETS: u64 = 100;
const BUCKET: Span = Span::from_millis(100);

/// Least round trip of each of the last 100 tenths of a second.
#[derive(Clone, Debug)]
pub struct Buckets {
    least: [Span; BUCKETS as usize],
    /// Number of the newest tenth, and the least of all.
    newest: u64,
    of_all: Span,
}

impl LeastRtt {
    /// Of the flow, or of a window.
    pub fn new(window: bool) -> Self {
        if !window {
            return Self::Life(Span::MAX);
        }
        let least = [Span::MAX; BUCKETS as usize];
        Self::Window(Box::new(Buckets { least, newest: 0, of_all: Span::MAX }))
    }

    /// Takes in the samples of a record.
    pub fn on_ack(&mut self, ack: &Ack) {
        match self {
            // A batch may hold a smaller one than its newest, which the sender has seen.
            Self::Life(least) => {
                for sample in [ack.min_rtt, ack.rtt] {
                    if sample > Span::ZERO {
                        *least = sample.min(*least);
                    }
                }
            }
            Self::Window(buckets) if ack.rtt > Span::ZERO => buckets.add(ack.now, ack.rtt),
            Self::Window(_) => {}
        }
    }

    /// The smallest; zero before the first.
    pub fn get(&self) -> Span {
        let least = match self {
            Self::Life(least) => *least,
            Self::Window(buckets) => buckets.of_all,
        };
        if least == Span::MAX { Span::ZERO } else { least }
    }
}

impl Buckets {
    fn add(&mut self, now: Time, rtt: Span) {
        let number = now.0 / BUCKET.0;
        if number > self.newest {
            for old in (self.newest + 1).max(number.saturating_sub(BUCKETS - 1))..=number {
                self.least[(old % BUCKETS) as usize] = Span::MAX;
            }
            self.newest = number;
            self.of_all = self.least.into_iter().min().unwrap_or(Span::MAX);
        }
        let least = &mut self.least[(number % BUCKETS) as usize];
        *least = rtt.min(*least);
        self.of_all = self.of_all.min(rtt);
    }
}

#[cfg(test)]
#[path = "tests/clock.rs"]
mod tests;
