//! Policies that the kernel evaluates by itself, on the acknowledgement: their networks in fixed point.
//!
//! `bpf/network.h` has the evaluation, `bpf/compiled.h` the layouts. What cannot be compiled is refused in
//! one line; how far fixed point is from floating point is measured by [`ask::Asked`], which runs the very
//! instructions of the congestion control.
use super::record::Plain;
use ackademy::law::own_queue::{EXPONENT, Settings};
use ackademy::policy::nn::{Activation, DenseLayer, Network};
use ackademy::policy::{ClockSpec, Feature, Policy, WhenSpec};

pub mod ask;
pub mod layout;
mod tables;

use layout::{
    Activations, FEATURES_MAX, Head, LAYERS_MAX, Layer, Rules, Tables, VALUES_MAX, WORDS_MAX,
};

/// Bits behind the point of all numbers between layers.
const POINT: u32 = 14;
/// Units of a group, whose weights lie together, two to a word.
const GROUP: usize = 8;
/// Words for one input of a group.
const GROUP_WORDS: usize = GROUP / 2;
/// Inputs of one turn of the loop.
const TURN: usize = 4;
/// A sum keeps within plus or minus this.
const SUM_MAX: f64 = 2_147_483_647.0;
/// Bits behind the point of a weight: with fewer the result is too far off, more than these gain nothing.
const SHIFTS: std::ops::RangeInclusive<u32> = 8..=16;

/// The features that the kernel computes, in the order of `enum feature` in `bpf/compiled.h`.
pub const FEATURES: [&str; 14] = [
    "queue",
    "rtt_rise",
    "rtt_spread",
    "loss_log",
    "ce_ratio",
    "drain",
    "rtt_change",
    "base_rtt",
    "base_age",
    "own_best",
    "app_limited",
    "since_loss",
    "action_0",
    "action_1",
];
/// The action map that the kernel applies.
pub const MAP: &str = "own_queue";
/// Largest output, as far as Q14 holds it.
const LIMIT_MAX: f64 = 1e5;

/// A policy as the kernel evaluates it.
#[derive(Clone, Debug)]
pub struct Compiled {
    /// Its network's layers.
    pub head: Head,
    /// Biases and weights, two to a word: as many words as the kernel has room for.
    pub words: Vec<u64>,
    /// How many numbers the network takes.
    pub inputs: usize,
    /// How many it gives.
    pub outputs: usize,
    /// The law's numbers, and the features.
    pub rules: Rules,
}

impl Compiled {
    /// The law alone.
    pub fn law(settings: &Settings) -> Self {
        Self {
            head: Head::default(),
            words: vec![0; WORDS_MAX],
            inputs: 0,
            outputs: 0,
            rules: Rules { contended: 1, ..rules(settings) },
        }
    }

    /// Compiles a policy over the law.
    ///
    /// # Errors
    ///
    /// One line: what of it the kernel cannot evaluate, and what it could.
    pub fn policy(policy: &Policy) -> Result<Self, String> {
        let spec = policy.spec();
        let map = serde_json::to_value(spec.action.map).map_err(|error| error.to_string())?;
        if map != MAP {
            return Err(format!("action.map = {map}: in the kernel there is \"{MAP}\" alone"));
        }
        let decision = &spec.decision;
        #[expect(clippy::float_cmp, reason = "the numbers are as they are written")]
        let usual = decision.times == 1.0 && decision.min_ms == 10.0;
        if decision.every != ClockSpec::Srtt || !usual {
            return Err(
                "decision: in the kernel it is made each srtt, times 1, at least 10 ms".to_owned()
            );
        }
        check_exponent(spec.action.exponent.unwrap_or(EXPONENT))?;
        let features = &spec.observation.features;
        if features.len() > FEATURES_MAX {
            let count = features.len();
            return Err(format!("{count} features: the kernel computes up to {FEATURES_MAX}"));
        }
        Ok(Self { rules: Self::rules_of(policy)?, ..Self::network_of(policy)? })
    }

    /// Numbers of the law under a policy, and its features.
    fn rules_of(policy: &Policy) -> Result<Rules, String> {
        let spec = policy.spec();
        let mut places = [0; FEATURES_MAX];
        for (place, name) in places.iter_mut().zip(&spec.observation.features) {
            let known = FEATURES.iter().position(|feature| feature == name);
            *place = known.ok_or_else(|| {
                format!("feature {name:?}: the kernel computes {}", FEATURES.join(", "))
            })? as u32;
        }
        let (mut low, mut high) = ([0; FEATURES_MAX], [0; FEATURES_MAX]);
        let ranges = policy.guarded_ranges();
        // A feature rounds to the nearest: a bound rounds so that no value within it is beyond.
        let one = f64::from(1 << POINT);
        for (place, (least, most)) in ranges.into_iter().flatten().take(FEATURES_MAX).enumerate() {
            low[place] = (f64::from(*least) * one).round() as i32;
            high[place] = (f64::from(*most) * one).round() as i32;
        }
        Ok(Rules {
            guarded: ranges.is_some().into(),
            contended: (spec.action.when == WhenSpec::Contention).into(),
            low,
            high,
            width: spec.observation.features.len() as u32,
            rows: spec.observation.history,
            limit: (spec.action.limit.min(LIMIT_MAX) * f64::from(1 << POINT)) as i32,
            features: places,
            ..rules(&Settings::default())
        })
    }

    /// A network of tangents with these numbers between its layers, for measuring what it costs: the weights are
    /// small and all alike.
    ///
    /// # Panics
    ///
    /// If the kernel cannot hold it.
    pub fn of_shape(shape: &[usize]) -> Self {
        let mut own = Self::law(&Settings::default());
        let mut first = 0;
        for (layer, sides) in own.head.layers.iter_mut().zip(shape.windows(2)) {
            let (inputs, units) =
                (sides[0].next_multiple_of(TURN), sides[1].next_multiple_of(GROUP));
            let (start, shift, activation) = (first as u32, 14, Activations::TANH);
            *layer = Layer {
                inputs: inputs as u32,
                units: units as u32,
                first: start,
                shift,
                activation,
                reserved: 0,
            };
            first += words(inputs, units);
        }
        assert!(first <= WORDS_MAX && shape.len() <= LAYERS_MAX + 1, "{shape:?}");
        own.words[..first].fill(0x0000_0040_0000_0040);
        own.head.count = shape.len().saturating_sub(1) as u32;
        own.outputs = shape.last().copied().unwrap_or(0);
        own
    }

    /// Compiles the network of a policy.
    ///
    /// # Errors
    ///
    /// One line: what of it the kernel cannot evaluate, and what it could.
    pub fn network_of(policy: &Policy) -> Result<Self, String> {
        let features = policy.spec().features().map_err(|error| error.message())?;
        let rows = policy.spec().observation.history as usize;
        let ranges: Vec<f64> = features.iter().map(|feature| size(feature)).collect();
        Self::of_network(policy.network(), &ranges.repeat(rows))
    }

    /// Compiles a network; `sizes` are the largest absolute values of its inputs.
    ///
    /// # Errors
    ///
    /// As [`network_of`](Self::network_of).
    pub fn of_network(network: &Network, sizes: &[f64]) -> Result<Self, String> {
        let layers = network.dense_layers().map_err(|index| {
            format!(
                "layer {index} is not dense over one vector: the kernel evaluates up to \
                 {LAYERS_MAX} dense layers, after `flatten` at most"
            )
        })?;
        if layers.len() > LAYERS_MAX {
            let count = layers.len();
            return Err(format!("{count} dense layers: the kernel evaluates up to {LAYERS_MAX}"));
        }
        let mut head = Head { count: layers.len() as u32, ..Head::default() };
        let mut net_words = vec![0; WORDS_MAX];
        let mut sizes = sizes.to_vec();
        let mut first = 0;
        for (index, layer) in layers.into_iter().enumerate() {
            let in_layer = |problem: String| format!("layer {index} {problem}");
            let written = write(layer, &sizes, &mut net_words, first).map_err(in_layer)?;
            first += words(written.inputs as usize, written.units as usize);
            sizes = results(layer, &sizes);
            head.layers[index] = written;
        }
        let (inputs, outputs) = (network.input().size(), network.outputs());
        Ok(Self { head, words: net_words, inputs, outputs, rules: Rules::default() })
    }

    /// As the map of networks holds it.
    pub(super) fn network_bytes(&self) -> Vec<u8> {
        let words = self.words.iter().flat_map(|word| word.to_ne_bytes());
        self.head.bytes().iter().copied().chain(words).collect()
    }
}

/// Whether the kernel computes this power of the rate.
///
/// # Errors
///
/// One line, if it does not.
pub fn check_exponent(exponent: f64) -> Result<(), String> {
    if exponent.total_cmp(&EXPONENT).is_eq() {
        return Ok(());
    }
    Err(format!("exponent = {exponent}: in the kernel it is {EXPONENT}"))
}

/// The law's numbers.
fn rules(settings: &Settings) -> Rules {
    let scaled = |value: f64, bits: u32| (value * f64::from(1_u32 << bits)).round();
    Rules {
        target: scaled(settings.target_packets, 16) as u64,
        loss_limit: scaled(settings.loss_limit, 20) as u32,
        ..Rules::default()
    }
}

/// Largest absolute value of a feature.
fn size(feature: &Feature) -> f64 {
    let (low, high) = feature.range();
    f64::from(low.abs().max(high.abs()))
}

/// Words of a layer.
fn words(inputs: usize, units: usize) -> usize {
    units / GROUP * (inputs + 1) * GROUP_WORDS
}

/// Largest absolute sums of a layer's units.
fn sums(layer: DenseLayer<'_>, sizes: &[f64]) -> Vec<f64> {
    let sum = |(unit, bias): (usize, &f32)| {
        let terms = sizes.iter().enumerate();
        let terms = terms.map(|(input, size)| size * f64::from(layer.weight(input, unit).abs()));
        f64::from(bias.abs()) + terms.sum::<f64>()
    };
    layer.bias().iter().enumerate().map(sum).collect()
}

/// Largest absolute values that a layer gives.
fn results(layer: DenseLayer<'_>, sizes: &[f64]) -> Vec<f64> {
    let bounded = layer.activation() == Activation::Tanh;
    let result = |sum: f64| if bounded { sum.min(1.0) } else { sum };
    sums(layer, sizes).into_iter().map(result).collect()
}

/// Writes a layer's words from word `first` on.
fn write(
    layer: DenseLayer<'_>,
    sizes: &[f64],
    to: &mut [u64],
    first: usize,
) -> Result<Layer, String> {
    let units = layer.bias().len();
    let activation = match layer.activation() {
        Activation::Linear => Activations::LINEAR,
        Activation::Relu => Activations::RELU,
        Activation::Tanh => Activations::TANH,
        Activation::Sigmoid | Activation::LeakyRelu { .. } => {
            let (known, given) = ("`linear`, `relu` and `tanh`", layer.activation().name());
            return Err(format!("has the activation `{given}`: the kernel evaluates {known}"));
        }
    };
    let (padded, groups) = (layer.inputs().next_multiple_of(TURN), units.div_ceil(GROUP));
    if padded > VALUES_MAX || groups * GROUP > VALUES_MAX {
        let (from, to) = (layer.inputs(), units);
        return Err(format!("is {from} x {to}: the kernel evaluates up to {VALUES_MAX} a side"));
    }
    let end = first + words(padded, groups * GROUP);
    if end > WORDS_MAX {
        let (needed, most) = (2 * end, 2 * WORDS_MAX);
        return Err(format!(
            "brings the weights to {needed} in multiples of {GROUP} units: the kernel evaluates \
             up to {most} on an acknowledgement"
        ));
    }
    let shift = shift(layer, sizes)?;
    let scaled = |value: f32| (f64::from(value) * f64::from(1 << shift)).round_ties_even() as i64;
    let mut words = to[first..end].chunks_exact_mut(GROUP_WORDS);
    for group in 0..groups {
        for row in 0..=padded {
            let row_words = words.next().expect("as many as counted");
            for (pair, word) in row_words.iter_mut().enumerate() {
                let value = |unit: usize| match row {
                    _ if unit >= units => 0,
                    // In the scale of the sums.
                    0 => {
                        let scale = f64::from(1 << shift) * f64::from(1 << POINT);
                        (f64::from(layer.bias()[unit]) * scale).round_ties_even() as i64
                    }
                    row if row > layer.inputs() => 0,
                    row => scaled(layer.weight(row - 1, unit)),
                };
                let unit = group * GROUP + 2 * pair;
                *word = (value(unit) + (value(unit + 1) << 32)) as u64;
            }
        }
    }
    Ok(Layer {
        inputs: padded as u32,
        units: (groups * GROUP) as u32,
        first: first as u32,
        shift,
        activation,
        reserved: 0,
    })
}

/// Bits behind the point of a layer's weights, as many as leave every sum in 32 bits.
fn shift(layer: DenseLayer<'_>, sizes: &[f64]) -> Result<u32, String> {
    let largest = sums(layer, sizes).into_iter().fold(0.0, f64::max);
    // Rounding adds up to half a step for each input, and one for the bias.
    let rounding = sizes.iter().sum::<f64>() / 2.0;
    let point = f64::from(1 << POINT);
    let fits = |shift: &u32| {
        (largest * f64::from(1 << shift) + rounding) * point * (1.0 + 1e-3) + 1.0 <= SUM_MAX
    };
    let (low, high) = SHIFTS.into_inner();
    (low..=high).rev().find(fits).ok_or_else(|| {
        let most = SUM_MAX / point / f64::from(1 << low);
        format!("has sums up to {largest:.0}: the kernel's fixed point holds up to {most:.0}")
    })
}

/// The tables of functions; the same for every policy.
pub fn tables() -> Tables {
    tables::tables()
}

#[cfg(test)]
mod tests;
