//! The functions between layers. Exponential and hyperbolic tangent are ours: the same bits on every
//! machine, without branches, so that the compiler evaluates several at once.
use crate::policy::SpecError;
use serde::{Deserialize, Serialize};

/// What a layer does to each of its outputs.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// Nothing.
    #[default]
    Linear,
    /// max(x, 0).
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// 1 / (1 + exp(-x)).
    Sigmoid,
    /// x from 0 on, x times the slope below it.
    LeakyRelu {
        /// In [0, 1].
        slope: f32,
    },
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Activation {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Activation".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schema::Field::json_schema(generator)
    }
}

/// An activation as a file has it, for the schema alone: a name, or a table of a kind.
#[cfg(feature = "schema")]
mod schema {
    #![expect(dead_code, reason = "only described")]

    #[derive(schemars::JsonSchema)]
    #[schemars(untagged)]
    pub(super) enum Field {
        Named(ActivationName),
        Table(ActivationTable),
    }

    /// An activation without a number.
    #[derive(schemars::JsonSchema)]
    #[schemars(rename_all = "snake_case")]
    pub(super) enum ActivationName {
        /// Nothing.
        Linear,
        /// max(x, 0).
        Relu,
        /// Hyperbolic tangent.
        Tanh,
        /// 1 / (1 + exp(-x)).
        Sigmoid,
    }

    /// An activation with a number.
    #[derive(schemars::JsonSchema)]
    #[schemars(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
    pub(super) enum ActivationTable {
        /// x from 0 on, x times the slope below it.
        LeakyRelu {
            /// In [0, 1].
            slope: f32,
        },
    }
}

impl Activation {
    /// Applies it to all of `values`; NaN stays NaN.
    pub fn apply(self, values: &mut [f32]) {
        match self {
            Self::Linear => {}
            Self::Relu => values.iter_mut().for_each(|x| *x = relu(*x)),
            Self::Tanh => values.iter_mut().for_each(|x| *x = tanh(*x)),
            Self::Sigmoid => values.iter_mut().for_each(|x| *x = sigmoid(*x)),
            Self::LeakyRelu { slope } => {
                for x in values {
                    *x = leaky_relu(*x, slope);
                }
            }
        }
    }

    /// Its name in `policy.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Linear => "linear",
            Self::Relu => "relu",
            Self::Tanh => "tanh",
            Self::Sigmoid => "sigmoid",
            Self::LeakyRelu { .. } => "leaky_relu",
        }
    }

    /// Whether its number is allowed.
    ///
    /// # Errors
    ///
    /// The value and what is allowed.
    pub(super) fn check(self) -> Result<(), SpecError> {
        match self {
            Self::LeakyRelu { slope } if !(0.0..=1.0).contains(&slope) => {
                let problem = format!("= {slope}: allowed is a number in [0, 1]");
                Err(SpecError::at("activation.slope", problem))
            }
            _ => Ok(()),
        }
    }
}

/// Not `max`, which would hide NaN.
#[inline]
fn relu(x: f32) -> f32 {
    if x < 0.0 { 0.0 } else { x }
}

#[inline]
fn leaky_relu(x: f32, slope: f32) -> f32 {
    if x < 0.0 { slope * x } else { x }
}

/// 1 / (1 + exp(-x)), to 2e-7 relative for x above -80.
#[inline]
pub fn sigmoid(x: f32) -> f32 {
    let (scale, part) = exp_parts(-x);
    1.0 / (1.0 + (scale * part + scale))
}

/// Hyperbolic tangent, to 3e-7 relative.
#[inline]
pub fn tanh(x: f32) -> f32 {
    // (exp(2x) - 1) / (exp(2x) + 1), with exp - 1 put together so that nothing cancels near 0. At 9.1
    // the nearest number is 1.
    let (scale, part) = exp_parts(2.0 * x.clamp(-9.1, 9.1));
    let less_one = scale * part + (scale - 1.0);
    less_one / (less_one + 2.0)
}

/// `(2^n, r)` with exp(x) = 2^n (1 + r), r in [-0.3, 0.42]; x is taken as at most 87 and at least
/// -87.
#[inline]
fn exp_parts(x: f32) -> (f32, f32) {
    // Adding and taking away 1.5 * 2^23 rounds to a whole number, whose low bits the sum shows.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts: the first has few enough bits for n times it to be exact.
    const LN_2_HIGH: f32 = 0.693_359_4;
    const LN_2_LOW: f32 = -2.121_944_4e-4;
    let x = x.clamp(-87.0, 87.0);
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let y = (x - n * LN_2_HIGH) - n * LN_2_LOW;
    // Taylor's series; |y| is at most ln 2 / 2, so that the eighth term is below 6e-9.
    let tail = y * (1.0 / 720.0 + y * (1.0 / 5040.0));
    let series = 0.5 + y * (1.0 / 6.0 + y * (1.0 / 24.0 + y * (1.0 / 120.0 + tail)));
    let scale = f32::from_bits((shifted.to_bits() << 23).wrapping_add(127 << 23));
    (scale, y + y * y * series)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from -100 to 100, densest around 0.
    fn numbers() -> impl Iterator<Item = f32> {
        let far = (-100_000..=100_000).map(|step| step as f32 * 1e-3);
        let near = (-38..5).flat_map(|power| {
            (0..200).flat_map(move |step| {
                let size = libm::exp10f(power as f32) * (1.0 + step as f32 * 0.045);
                [size, -size]
            })
        });
        far.chain(near)
    }

    fn worst(ours: fn(f32) -> f32, exact: fn(f64) -> f64, within: f32) -> f64 {
        let error = |x: f32| {
            let exact = exact(f64::from(x));
            if exact == 0.0 { f64::from(ours(x)) } else { f64::from(ours(x)) / exact - 1.0 }
        };
        numbers().filter(|x| x.abs() <= within).map(|x| error(x).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn tanh_is_that_of_the_library_to_a_few_last_bits() {
        let error = worst(tanh, libm::tanh, 100.0);
        assert!(error < 3e-7, "{error}");
    }

    #[test]
    fn sigmoid_is_that_of_the_library_to_a_few_last_bits() {
        let error = worst(sigmoid, |x| 1.0 / (1.0 + libm::exp(-x)), 80.0);
        assert!(error < 3e-7, "{error}");
    }

    #[test]
    fn exp_is_that_of_the_library_to_a_few_last_bits() {
        let exp = |x: f32| {
            let (scale, part) = exp_parts(x);
            scale * part + scale
        };
        let error = worst(exp, libm::exp, 87.0);
        assert!(error < 2e-7, "{error}");
    }

    #[test]
    fn what_is_too_large_saturates() {
        for x in [1e3, f32::MAX, f32::INFINITY] {
            assert!((tanh(x) - 1.0).abs() < 1e-7 && (tanh(-x) + 1.0).abs() < 1e-7);
            assert!((sigmoid(x) - 1.0).abs() < 1e-7 && (0.0..1e-37).contains(&sigmoid(-x)));
        }
    }

    #[test]
    fn what_is_no_number_stays_none() {
        for kind in [
            Activation::Linear,
            Activation::Relu,
            Activation::Tanh,
            Activation::Sigmoid,
            Activation::LeakyRelu { slope: 0.2 },
        ] {
            let mut values = [1.0, f32::NAN];
            kind.apply(&mut values);
            assert!(values[0].is_finite() && values[1].is_nan(), "{kind:?}");
        }
    }
}
