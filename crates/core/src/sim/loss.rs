//! What happens to packets on the wire, queues aside: lost, duplicated, held back.
use super::steps::Steps;
use crate::rng::Rng;
use crate::units::{Span, Time};

/// Random loss in a period.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Which packets.
    pub process: Process,
    /// Nothing is lost before this.
    pub from: Time,
    /// Nothing is lost from here on.
    pub until: Time,
    /// Its own stream.
    pub rng: Rng,
}

/// Decides packet by packet.
#[derive(Clone, Debug, PartialEq)]
pub enum Process {
    /// Each packet alone, with this probability.
    Bernoulli {
        /// In [0, 1].
        ratio: f64,
    },
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// Each packet alone, with a probability that changes at known times.
    Schedule(Steps<f64>),
}

/// Two states with a loss probability each (Gilbert 1960, Elliott 1963). A packet meets the loss of
/// the state it finds, then the state may change.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GilbertElliott {
    /// Probability per packet of going from good to bad.
    pub p_good_to_bad: f64,
    /// Probability per packet of going from bad to good.
    pub p_bad_to_good: f64,
    /// Probability of losing a packet in the good state.
    pub loss_good: f64,
    /// Probability of losing a packet in the bad state.
    pub loss_bad: f64,
    /// The state, good at first.
    pub bad: bool,
}

/// Delivers some packets twice.
#[derive(Clone, Debug)]
pub struct Duplicate {
    /// Part of the packets, in [0, 1].
    pub ratio: f64,
    /// Its own stream.
    pub rng: Rng,
}

/// Holds some packets back, so that later ones overtake them.
#[derive(Clone, Debug)]
pub struct Reorder {
    /// Part of the packets, in [0, 1].
    pub ratio: f64,
    /// Least extra delay.
    pub low: Span,
    /// Largest extra delay, at least `low`.
    pub high: Span,
    /// Its own stream.
    pub rng: Rng,
}

impl Loss {
    /// Whether the next packet, which crosses the link at `now`, is lost.
    pub fn lost(&mut self, now: Time) -> bool {
        if now < self.from || now >= self.until {
            return false;
        }
        match &mut self.process {
            Process::Bernoulli { ratio } => self.rng.chance(*ratio),
            Process::GilbertElliott(model) => model.lost(&mut self.rng),
            Process::Schedule(ratios) => self.rng.chance(ratios.at(now).0),
        }
    }
}

impl GilbertElliott {
    /// The part of packets lost in the long run.
    pub fn loss_ratio(&self) -> f64 {
        let moves = self.p_good_to_bad + self.p_bad_to_good;
        if moves == 0.0 {
            return if self.bad { self.loss_bad } else { self.loss_good };
        }
        (self.p_good_to_bad * self.loss_bad + self.p_bad_to_good * self.loss_good) / moves
    }

    fn lost(&mut self, rng: &mut Rng) -> bool {
        let (loss, leave) = if self.bad {
            (self.loss_bad, self.p_bad_to_good)
        } else {
            (self.loss_good, self.p_good_to_bad)
        };
        let lost = rng.chance(loss);
        self.bad ^= rng.chance(leave);
        lost
    }
}

impl Duplicate {
    /// Whether the next packet is delivered twice.
    pub fn duplicated(&mut self) -> bool {
        self.rng.chance(self.ratio)
    }
}

impl Reorder {
    /// The extra delay of the next packet; zero for one that is not held back.
    pub fn extra(&mut self) -> Span {
        if !self.rng.chance(self.ratio) {
            return Span::ZERO;
        }
        let width = self.high.0.saturating_sub(self.low.0);
        Span(self.low.0 + self.rng.below(width.saturating_add(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loss(process: Process) -> Loss {
        Loss { process, from: Time(0), until: Time::NEVER, rng: Rng::new(11) }
    }

    #[test]
    fn bernoulli_loses_its_ratio_all_and_nothing() {
        for (ratio, min, max) in [(0.0, 0, 0), (0.01, 850, 1150), (1.0, 100_000, 100_000)] {
            let mut loss = loss(Process::Bernoulli { ratio });
            let count = (0..100_000).filter(|_| loss.lost(Time(0))).count();
            assert!((min..=max).contains(&count), "{count} at {ratio}");
        }
    }

    #[test]
    fn nothing_is_lost_before_the_start() {
        let mut loss = Loss { from: Time(10), ..loss(Process::Bernoulli { ratio: 1.0 }) };
        assert!(!loss.lost(Time(9)));
        assert!(loss.lost(Time(10)));
    }

    #[test]
    fn nothing_is_lost_from_the_end_on() {
        let mut loss = Loss { until: Time(10), ..loss(Process::Bernoulli { ratio: 1.0 }) };
        assert!(loss.lost(Time(9)));
        assert!(!loss.lost(Time(10)));
    }

    #[test]
    fn a_schedule_loses_the_share_of_its_time() {
        let ratios = Steps::new(vec![(Time(0), 0.0), (Time(10), 1.0), (Time(20), 0.1)]).unwrap();
        let mut loss = loss(Process::Schedule(ratios));
        let count = |loss: &mut Loss, at: u64| (0..10_000).filter(|_| loss.lost(Time(at))).count();
        assert_eq!((count(&mut loss, 9), count(&mut loss, 10)), (0, 10_000));
        assert!((850..1150).contains(&count(&mut loss, 20)));
    }

    #[test]
    fn gilbert_elliott_loses_in_bursts_of_the_asked_length() {
        let model = GilbertElliott {
            p_good_to_bad: 0.01,
            p_bad_to_good: 0.25,
            loss_bad: 1.0,
            ..GilbertElliott::default()
        };
        let mut loss = loss(Process::GilbertElliott(model));
        let lost: Vec<bool> = (0..200_000).map(|_| loss.lost(Time(0))).collect();
        let total = lost.iter().filter(|&&lost| lost).count();
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let length = total as f64 / bursts as f64;
        assert!((3.8..4.2).contains(&length), "bursts of {length}");
    }

    #[test]
    fn a_gilbert_elliott_that_never_moves_keeps_its_state() {
        let model = GilbertElliott { loss_good: 0.5, ..GilbertElliott::default() };
        assert!((model.loss_ratio() - 0.5).abs() < 1e-12);
    }

    #[test]
    fn duplicates_and_held_packets_are_as_many_as_asked() {
        let mut duplicate = Duplicate { ratio: 0.1, rng: Rng::new(1) };
        let count = (0..10_000).filter(|_| duplicate.duplicated()).count();
        assert!((900..1100).contains(&count), "{count}");
        let (low, high) = (Span(5), Span(9));
        let mut reorder = Reorder { ratio: 0.5, low, high, rng: Rng::new(2) };
        let extra: Vec<Span> = (0..10_000).map(|_| reorder.extra()).collect();
        let held = extra.iter().filter(|&&span| span > Span::ZERO).count();
        assert!((4800..5200).contains(&held), "{held}");
        assert!((5..=9).all(|nanos| extra.contains(&Span(nanos))));
        assert!(extra.iter().all(|span| span.0 == 0 || (low..=high).contains(span)));
    }
}
