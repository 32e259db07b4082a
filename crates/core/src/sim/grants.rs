//! A generator of cellular traces in scheduler grants, fitted to recorded ones: the rate wanders over tenths of a second to
//! minutes, packets wait for a grant and leave in lumps, and fades of any length interrupt both.
use super::trace::{MAX_LINES, MAX_MILLIS, OPPORTUNITY, Trace};
use crate::rng::{Rng, Seed};
use crate::units::{Rate, Span};

/// What [`Grants::generate`] imitates.
///
/// The rate is the peak times Φ(`level` + `spread`·z), Φ the normal distribution and z the sum of three
/// Ornstein–Uhlenbeck processes of [`TAUS_S`], of variance 1 in all. A `spread` below 1 gives rates around a mean, a larger one rates
/// that are near 0 or near the peak most of the time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Grants {
    /// Length of the trace, after which it repeats.
    pub duration: Span,
    /// Mean rate over the whole trace, fades included, in opportunities of [`OPPORTUNITY`] bytes.
    pub mean: Rate,
    /// Where in the distribution of rates the middle lies.
    pub level: f64,
    /// How far the rates spread.
    pub spread: f64,
    /// Part of the variance that changes within tenths of a second.
    pub fast: f64,
    /// Part of the variance that changes within tens of seconds.
    pub slow: f64,
    /// Mean time from a grant to the next.
    pub grant_ms: f64,
    /// Packets that a grant carries in a millisecond.
    pub grant_packets: f64,
    /// Fades that begin per second outside of fades.
    pub fades_per_s: f64,
    /// Shortest fade.
    pub fade_ms: f64,
    /// Exponent of the lengths of fades (Pareto): the smaller, the more long ones.
    pub fade_tail: f64,
}

/// A parameter of [`Grants`]: name, smallest and largest value.
pub type Field = (&'static str, f64, f64);

impl Grants {
    /// The parameters that shape a trace of a given mean.
    pub const FIELDS: [Field; 9] = [
        ("level", -3.0, 3.0),
        ("spread", 0.0, 5.0),
        ("fast", 0.0, 1.0),
        ("slow", 0.0, 1.0),
        ("grant_ms", 1.0, 100.0),
        ("grant_packets", 1.0, 50.0),
        ("fades_per_s", 0.0, 20.0),
        ("fade_ms", 1.0, 1000.0),
        ("fade_tail", 0.5, 10.0),
    ];

    /// Values of [`Self::FIELDS`] amid those of [`FITTED`].
    pub const USUAL: [f64; 9] = [0.2, 1.0, 0.08, 0.4, 6.0, 3.5, 3.0, 14.0, 1.5];

    /// One of the [`FITTED`], for this long.
    pub fn like(name: &str, duration: Span) -> Option<Self> {
        let (_, mean_mbps, values) = FITTED.iter().find(|fitted| fitted.0 == name)?;
        Some(Self::of(duration, Rate::from_mbps(*mean_mbps), values))
    }

    /// With the values of [`Self::FIELDS`], in their order.
    pub fn of(duration: Span, mean: Rate, values: &[f64; 9]) -> Self {
        let &[level, spread, fast, slow, grant_ms, grant_packets, fades_per_s, fade_ms, fade_tail] =
            values;
        Self {
            duration,
            mean,
            level,
            spread,
            fast,
            slow,
            grant_ms,
            grant_packets,
            fades_per_s,
            fade_ms,
            fade_tail,
        }
    }

    /// A trace; the same for the same arguments on every machine. Its last opportunity stands at `duration`, so that
    /// it repeats after exactly that.
    pub fn generate(&self, seed: Seed) -> Trace {
        let end = (self.duration.0 / 1_000_000).clamp(1, u64::from(MAX_MILLIS)) as u32;
        let rates = self.relative_rates(end, seed);
        let total: f64 = rates.iter().sum();
        let packets =
            self.mean.bytes_in(Span::from_millis(end.into())).0 as f64 / OPPORTUNITY.0 as f64;
        let scale = if total > 0.0 { packets.min(MAX_LINES as f64 - 2.0) / total } else { 0.0 };
        let mut rng = seed.stream("grants", 0);
        let mut millis = Vec::new();
        let (mut grant, mut credit) = (self.gap(&mut rng), 0.0);
        for (milli, rate) in rates.iter().enumerate() {
            if milli as f64 >= grant {
                grant += self.gap(&mut rng);
                let count = (credit + rng.uniform()) as u32;
                credit -= f64::from(count);
                let lump = (0..count).map(|one| (f64::from(one) / self.grant_packets) as u32);
                millis.extend(lump.map(|later| (milli as u32 + later).min(end)));
            }
            credit += rate * scale;
        }
        millis.sort_unstable();
        millis.push(end);
        Trace::of_millis(millis)
    }

    /// From a grant to the next, in milliseconds.
    fn gap(&self, rng: &mut Rng) -> f64 {
        self.grant_ms * (REGULAR + (1.0 - REGULAR) * rng.exponential(1.0))
    }

    /// The rate in each of `end` milliseconds, as a part of the peak.
    fn relative_rates(&self, end: u32, seed: Seed) -> Vec<f64> {
        let slow = self.slow.min(1.0 - self.fast).max(0.0);
        let parts = [self.fast, (1.0 - self.fast - slow).max(0.0), slow];
        let mut processes = [0, 1, 2].map(|index| {
            let keep = libm::exp(-f64::from(TICK_MILLIS) / 1000.0 / TAUS_S[index]);
            let mut rng = seed.stream("grants rate", index as u64);
            let value = rng.normal();
            (keep, libm::sqrt(1.0 - keep * keep), libm::sqrt(parts[index]), value, rng)
        });
        let mut rates = Vec::with_capacity(end as usize);
        while rates.len() < end as usize {
            let z: f64 = processes.iter().map(|(_, _, weight, value, _)| weight * value).sum();
            let rate = normal_part(self.level + self.spread * z);
            let left = end as usize - rates.len();
            rates.extend(std::iter::repeat_n(rate, left.min(TICK_MILLIS as usize)));
            for (keep, noise, _, value, rng) in &mut processes {
                *value = *keep * *value + *noise * rng.normal();
            }
        }
        self.fade(&mut rates, seed);
        rates
    }

    /// Sets the rates in fades to 0.
    fn fade(&self, rates: &mut [f64], seed: Seed) {
        let mut rng = seed.stream("grants fades", 0);
        let mut at = 0.0;
        loop {
            at += rng.exponential(1000.0) / self.fades_per_s.max(1e-9);
            if at >= rates.len() as f64 {
                return;
            }
            let length = self.fade_ms * libm::pow(1.0 - rng.uniform(), -1.0 / self.fade_tail);
            let until = at + length.min(FADE_MAX_MS);
            let last = (until as usize).min(rates.len());
            rates[at as usize..last].fill(0.0);
            at = until;
        }
    }
}

/// The part of a normal distribution below `z`.
fn normal_part(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// Recorded traces, by their mean in Mb/s and the values of [`Grants::FIELDS`] that fit them best (`research/log/cellular.md`).
pub const FITTED: [(&str, f64, [f64; 9]); 8] = [
    ("att_lte_down", 5.187, [1.147, 1.5, 0.095, 0.313, 6.834, 4.214, 2.751, 10.581, 1.515]),
    ("att_lte_up", 0.836, [1.17, 0.559, 0.162, 0.585, 8.713, 5.478, 7.628, 28.191, 1.571]),
    ("tmobile_umts_down", 2.025, [-0.38, 0.66, 0.05, 0.46, 6.2, 4.577, 5.9, 29.0, 1.95]),
    ("verizon_lte_down", 5.041, [0.011, 1.165, 0.082, 0.027, 4.243, 2.623, 4.636, 12.158, 2.106]),
    ("verizon_lte_up", 5.962, [-0.052, 0.791, 0.137, 0.051, 3.154, 4.725, 7.017, 8.414, 1.545]),
    ("nyc_3g_subway", 4.989, [-0.525, 0.712, 0.05, 0.05, 4.504, 2.631, 2.956, 17.245, 0.955]),
    ("nyc_3g_street", 3.939, [0.739, 0.674, 0.033, 0.13, 5.228, 2.899, 1.297, 25.272, 1.198]),
    ("nyc_4g_subway", 10.199, [-0.2, 1.4, 0.18, 0.45, 9.5, 1.7, 2.6, 12.5, 1.75]),
];

/// Time constants of the rate's parts: fast, the rest, slow.
pub const TAUS_S: [f64; 3] = [0.3, 3.0, 20.0];

/// How often the rate changes.
const TICK_MILLIS: u32 = 20;

/// Part of the time between grants that is the same for all; the rest is exponential.
const REGULAR: f64 = 0.3;

/// Longest fade.
const FADE_MAX_MS: f64 = 5000.0;

#[cfg(test)]
mod tests {
    use super::*;

    const SECONDS_20: Span = Span(20_000_000_000);

    #[test]
    fn a_generated_trace_has_its_mean_and_repeats_after_its_duration() {
        for (name, mbps, _) in FITTED {
            for seed in 0..3 {
                let trace = Grants::like(name, SECONDS_20).unwrap().generate(Seed(seed));
                assert_eq!(trace.period(), SECONDS_20);
                let carried = trace.mean_rate().as_mbps() * 1504.0 / 1500.0;
                assert!((carried / mbps - 1.0).abs() < 0.03, "{name} {seed}: {carried} for {mbps}");
                assert_eq!(Trace::parse(trace.to_text().as_bytes(), "t"), Ok(trace));
            }
        }
        assert_eq!(Grants::like("none", SECONDS_20), None);
    }

    #[test]
    fn grants_fades_and_lumps_are_as_long_and_large_as_asked() {
        let steady = Grants::of(
            SECONDS_20,
            Rate::from_mbps(12.032),
            &[0.0, 0.0, 0.0, 0.0, 10.0, 2.0, 0.0, 10.0, 1.0],
        );
        let gaps = |trace: &Trace| {
            let mut millis = trace.millis().to_vec();
            millis.dedup();
            millis.windows(2).map(|pair| pair[1] - pair[0]).collect::<Vec<_>>()
        };
        let count = |model: &Grants, least: u32| {
            let gaps = gaps(&model.generate(Seed(4)));
            gaps.iter().filter(|&&gap| gap >= least).count()
        };
        let lumps = steady.generate(Seed(4));
        let most = lumps.millis().chunk_by(|a, b| a == b).map(<[u32]>::len).max();
        assert!(most < Some(8), "two packets in a millisecond, a few where grants meet: {most:?}");
        assert_eq!(count(&steady, 100), 0);
        let faded = Grants { fades_per_s: 2.0, fade_ms: 100.0, fade_tail: 10.0, ..steady };
        let fades = count(&faded, 80);
        assert!((22..=45).contains(&fades), "2 a second outside of fades for 20 s: {fades}");
    }

    #[test]
    fn a_model_of_extremes_still_makes_a_trace() {
        for edge in [0, 1] {
            let values = Grants::FIELDS.map(|(_, low, high)| if edge == 0 { low } else { high });
            for (duration, mean) in
                [(Span::ZERO, Rate(0)), (Span::from_millis(1500), Rate(1 << 30))]
            {
                let trace = Grants::of(duration, mean, &values).generate(Seed(1));
                assert!(trace.period() >= duration.max(Span::from_millis(1)));
            }
        }
    }
}
