//! Named, independent random streams from one seed, and the generator behind them: xoshiro256++
//! (Blackman and Vigna 2021) seeded by `SplitMix64`. Ours, because the bytes of a result must not
//! change with a dependency's version.
use std::cell::Cell;

thread_local! {
    /// Whether this thread has drawn a number since [`watched`] began.
    static DRAWN: Cell<bool> = const { Cell::new(false) };
}

/// What `work` returns, and whether it drew a random number in this thread. What drew none is the same for
/// every seed.
pub fn watched<T>(work: impl FnOnce() -> T) -> (T, bool) {
    let before = DRAWN.replace(false);
    let done = work();
    let drawn = DRAWN.get();
    DRAWN.set(before || drawn);
    (done, drawn)
}

/// The seed of a run. Every consumer draws from its own stream, so adding one never shifts another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(pub u64);

impl Seed {
    /// The stream of consumer `label` number `index`.
    pub fn stream(self, label: &str, index: u64) -> Rng {
        Rng::new(self.derive(label, index))
    }

    /// A random number of consumer `label` number `index`.
    pub fn number(self, label: &str, index: u64) -> u64 {
        DRAWN.set(true);
        self.derive(label, index)
    }

    /// A seed for consumer `label` number `index`.
    pub fn derive(self, label: &str, index: u64) -> u64 {
        let mut state = self.0 ^ 0x9e37_79b9_7f4a_7c15;
        for byte in label.bytes() {
            state = split_mix(&mut (state ^ u64::from(byte)));
        }
        split_mix(&mut (state ^ index.wrapping_mul(0xd134_2543_de82_ef95)))
    }
}

/// xoshiro256++.
#[derive(Clone, Debug)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// A generator whose whole output follows from `seed`.
    pub fn new(seed: u64) -> Self {
        let mut state = seed;
        Self { state: std::array::from_fn(|_| split_mix(&mut state)) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        DRAWN.set(true);
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), in steps of 2^-53.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Uniform in [low, high).
    pub fn uniform_in(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform in 0..bound, without bias worth naming (Lemire 2019, multiply-shift).
    ///
    /// # Panics
    ///
    /// If `bound` is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "an empty range has no member");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// True with probability `ratio`.
    pub fn chance(&mut self, ratio: f64) -> bool {
        self.uniform() < ratio
    }

    /// Exponential with the given mean.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Normal with mean 0 and variance 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(1.0 - self.uniform()));
        radius * libm::cos(std::f64::consts::TAU * self.uniform())
    }
}

fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_output_is_fixed_for_ever() {
        let mut rng = Rng::new(0);
        assert_eq!(rng.next_u64(), 0x5317_5d61_490b_23df);
    }

    #[test]
    fn streams_of_one_seed_differ_by_label_and_by_index() {
        let seed = Seed(7);
        let first = seed.derive("loss", 0);
        assert_ne!(first, seed.derive("loss", 1));
        assert_ne!(first, seed.derive("delay", 0));
        assert_eq!(first, seed.derive("loss", 0));
    }

    #[test]
    fn a_draw_is_seen_and_a_generator_that_draws_nothing_is_not() {
        let seed = Seed(7);
        assert!(!watched(|| seed.stream("loss", 0)).1);
        assert!(watched(|| seed.stream("loss", 0).uniform()).1);
        assert!(watched(|| seed.number("hash", 0)).1);
        let ((_, inner), outer) = watched(|| watched(|| Rng::new(1).next_u64()));
        assert!(inner && outer);
        assert!(!watched(|| ()).1);
    }

    #[test]
    fn exponential_has_the_asked_mean() {
        let mut rng = Rng::new(3);
        let mean = (0..100_000).map(|_| rng.exponential(2.0)).sum::<f64>() / 1e5;
        assert!((mean - 2.0).abs() < 0.02, "mean {mean}");
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Rng::new(5);
        let mut counts = [0_u32; 4];
        for _ in 0..40_000 {
            counts[rng.below(4) as usize] += 1;
        }
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }
}
