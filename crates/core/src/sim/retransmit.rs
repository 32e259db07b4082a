//! A link that repairs its own losses, as Wi-Fi and cellular links do: each attempt at a packet fails with some
//! probability, and costs time; after too many the packet is lost.
use super::plan::RetransmitSpec;
use crate::rng::Rng;
use crate::units::Span;

/// Draws how often a packet is sent again.
#[derive(Clone, Debug)]
pub struct Retransmit {
    ratio: f64,
    delay: Span,
    most: u32,
    rng: Rng,
}

impl Retransmit {
    /// Draws from its own stream.
    pub fn new(spec: &RetransmitSpec, rng: Rng) -> Self {
        let delay = Span::from_secs_f64(spec.delay_ms / 1e3);
        Self { ratio: spec.ratio, delay, most: spec.most, rng }
    }

    /// How much later the next packet arrives; `None` if it is lost.
    pub fn extra(&mut self) -> Option<Span> {
        for again in 0..=self.most {
            if !self.rng.chance(self.ratio) {
                return Some(self.delay * u64::from(again));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(ratio: f64, most: u32) -> Vec<Option<Span>> {
        let spec = RetransmitSpec { ratio, delay_ms: 2.0, most };
        let mut retransmit = Retransmit::new(&spec, Rng::new(5));
        (0..100_000).map(|_| retransmit.extra()).collect()
    }

    #[test]
    fn the_number_of_retransmissions_is_geometric_and_each_takes_its_delay() {
        let drawn = draws(0.3, 7);
        for again in 0..5 {
            let span = Some(Span::from_millis(2 * again));
            let found = drawn.iter().filter(|&&extra| extra == span).count() as f64 / 1e5;
            let expected = 0.7 * libm::pow(0.3, again as f64);
            assert!((found - expected).abs() < 0.005, "{again}: {found} of {expected}");
        }
    }

    #[test]
    fn after_the_most_retransmissions_the_packet_is_lost() {
        let lost = draws(0.5, 2).iter().filter(|extra| extra.is_none()).count();
        assert!((12_000..13_000).contains(&lost), "{lost}"); // an eighth
        assert!(draws(1.0, 7).iter().all(Option::is_none));
        assert!(draws(0.0, 0).iter().all(|extra| *extra == Some(Span::ZERO)));
    }
}
