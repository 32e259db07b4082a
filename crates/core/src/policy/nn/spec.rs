//! The layers of a network in `policy.toml`, and the bounds that are checked before memory is
//! allocated for them.
use super::activation::Activation;
use super::layers::Shape;
use super::recurrent::Returns;
use crate::policy::SpecError;
use crate::ranges::note;
use crate::toml_error::kinds;
use serde::{Deserialize, Serialize};

/// Maximum number of layers.
pub const LAYERS_MAX: usize = 64;
/// Maximum number of units, filters or outputs of a layer.
pub const UNITS_MAX: u64 = 4096;
/// Maximum number of values between two layers, and within a layer: a mebibyte.
pub const VALUES_MAX: usize = 1 << 18;
/// Maximum number of weights, each layer's outputs rounded up to a multiple of 16: 64 MiB.
pub const WEIGHTS_MAX: usize = 1 << 24;

kinds! {
    /// A layer. Input and output are series of vectors, oldest first; a single vector is a series of one.
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub enum LayerSpec as LayerFields, "LayerSpec" {
        /// An affine map of each vector.
        Dense {
            /// Numbers it gives.
            units: u64,
            /// Applied to each of them.
            #[serde(default)]
            activation: Activation,
        },
        /// A convolution along time, stride 1.
        Conv1d {
            /// Numbers it gives at each step.
            filters: u64,
            /// Vectors in a window.
            kernel: u64,
            /// Padding at both ends of the series.
            #[serde(default)]
            padding: Padding,
            /// Applied to each number.
            #[serde(default)]
            activation: Activation,
        },
        /// The largest of neighbours in time, for each number of the vectors.
        MaxPool {
            /// Neighbours, and how far apart groups of them begin.
            size: u64,
        },
        /// Each vector less its mean, over its standard deviation; then scaled and moved, number by number.
        LayerNorm {
            /// Added to the variance, in [1e-12, 1].
            #[serde(default = "epsilon")]
            epsilon: f32,
            /// Applied to each number.
            #[serde(default)]
            activation: Activation,
        },
        /// All vectors as one, the oldest first.
        Flatten {},
        /// Long short-term memory.
        Lstm {
            /// Length of the state.
            units: u64,
            /// Which states are the output.
            #[serde(default)]
            returns: Returns,
        },
        /// Gated recurrent unit.
        Gru {
            /// Length of the state.
            units: u64,
            /// Which states are the output.
            #[serde(default)]
            returns: Returns,
        },
        /// A forest for each output, over all numbers of the series.
        Trees {
            /// Forests.
            outputs: u64,
            /// The output for a mean of 0.
            low: f32,
            /// The output for a mean of 1.
            high: f32,
        },
    }
}

fn epsilon() -> f32 {
    1e-5
}

/// Padding of a convolution.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Padding {
    /// Zeros, so that there are as many windows as vectors: the smaller half of `kernel - 1` before.
    #[default]
    Same,
    /// Nothing: windows lie within the series.
    Valid,
}

impl LayerSpec {
    /// The output shape for an input of this shape.
    ///
    /// # Errors
    ///
    /// Field, value and what is allowed, if a number is out of its bounds.
    pub fn output(&self, input: Shape) -> Result<Shape, SpecError> {
        if let Self::Dense { activation, .. }
        | Self::Conv1d { activation, .. }
        | Self::LayerNorm { activation, .. } = self
        {
            activation.check()?;
        }
        let steps = input.steps as u64;
        let (steps, width) = match *self {
            Self::Dense { units, .. } => (steps, within("units", units, UNITS_MAX)?),
            Self::Conv1d { filters, kernel, padding, .. } => {
                let filters = within("filters", filters, UNITS_MAX)?;
                match padding {
                    Padding::Same => {
                        within("kernel", kernel, VALUES_MAX as u64)?;
                        (steps, filters)
                    }
                    Padding::Valid => (steps + 1 - within("kernel", kernel, steps)?, filters),
                }
            }
            Self::MaxPool { size } => (steps / within("size", size, steps)?, input.width as u64),
            Self::LayerNorm { epsilon, .. } => {
                if !(1e-12..=1.0).contains(&epsilon) {
                    let problem = format!("= {epsilon}: allowed is a number in [1e-12, 1]");
                    return Err(SpecError::at("epsilon", problem));
                }
                (steps, input.width as u64)
            }
            Self::Flatten {} => (1, input.size() as u64),
            Self::Lstm { units, returns } | Self::Gru { units, returns } => {
                let units = within("units", units, UNITS_MAX)?;
                (if returns == Returns::All { steps } else { 1 }, units)
            }
            Self::Trees { outputs, low, high } => {
                range(low, high)?;
                if input.size() > TREE_INPUTS_MAX {
                    let problem = format!(
                        "= trees over {} numbers: allowed is at most {TREE_INPUTS_MAX}",
                        input.size()
                    );
                    return Err(SpecError::at("kind", problem));
                }
                (1, within("outputs", outputs, UNITS_MAX)?)
            }
        };
        let output = Shape { steps: steps as usize, width: width as usize };
        if output.size() > VALUES_MAX {
            let numbers = output.size();
            let problem = format!("= {numbers} numbers: allowed is at most {VALUES_MAX}");
            return Err(SpecError::at("outputs", problem));
        }
        Ok(output)
    }
}

/// Maximum number of inputs of a tree.
const TREE_INPUTS_MAX: usize = 255;

fn within(field: &str, value: u64, max: u64) -> Result<u64, SpecError> {
    // A maximum below is that of an input, which is no property of the field.
    if max >= UNITS_MAX {
        note(&format!("layers[].{field}"), 1.0, max as f64);
    }
    if (1..=max).contains(&value) {
        return Ok(value);
    }
    Err(SpecError::at(field, format!("= {value}: allowed is a whole number in [1, {max}]")))
}

fn range(low: f32, high: f32) -> Result<(), SpecError> {
    if !low.is_finite() {
        return Err(SpecError::at("low", format!("= {low}: allowed is a finite number")));
    }
    if !(high.is_finite() && high > low && (high - low).is_finite()) {
        let problem = format!("= {high}: allowed is a finite number above `low`");
        return Err(SpecError::at("high", problem));
    }
    Ok(())
}
