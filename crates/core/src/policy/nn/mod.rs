//! Networks for use, not for training: at each decision one evaluation of one observation, without
//! allocation, the same bits on every machine. `docs/reference/policies.md` describes the file.
use crate::policy::forest::Forest;
use layers::{Conv1d, Dense, LayerNorm, max_pool};
use recurrent::Recurrent;

mod activation;
mod layers;
mod matrix;
mod read;
mod recurrent;
mod spec;

pub use activation::Activation;
pub use layers::Shape;
pub use read::Fault;
pub use recurrent::Returns;
pub use spec::{LAYERS_MAX, LayerSpec, Padding, UNITS_MAX, VALUES_MAX, WEIGHTS_MAX};

/// Layers with their weights, shared by all flows of the policy.
#[derive(Clone, Debug)]
pub struct Network {
    stages: Vec<Stage>,
    input: Shape,
    outputs: usize,
    /// Maximum number of values between two layers.
    values: usize,
    /// Maximum number of values that a layer needs for itself.
    work: usize,
}

/// Working memory of an evaluation: one per flow; the weights are shared.
#[derive(Clone, Debug)]
pub struct Scratch {
    values: [Vec<f32>; 2],
    work: Vec<f32>,
}

#[derive(Clone, Debug)]
struct Stage {
    layer: Layer,
    from: Shape,
    to: Shape,
}

#[derive(Clone, Debug)]
enum Layer {
    Dense(Dense),
    Conv1d(Conv1d),
    MaxPool { size: usize },
    LayerNorm(LayerNorm),
    Recurrent(Recurrent),
    Trees { forests: Vec<Forest>, low: f32, high: f32 },
}

/// An affine map of a vector, as it was read.
#[derive(Clone, Copy, Debug)]
pub struct DenseLayer<'a>(&'a Dense);

impl<'a> DenseLayer<'a> {
    /// Numbers that it takes.
    pub fn inputs(&self) -> usize {
        self.0.kernel.inputs()
    }

    /// What is added to each of the numbers that it gives.
    pub fn bias(&self) -> &'a [f32] {
        &self.0.bias
    }

    /// What one number that it takes counts in one that it gives.
    ///
    /// # Panics
    ///
    /// If there is no such number.
    pub fn weight(&self, input: usize, output: usize) -> f32 {
        self.0.kernel.weight(input, output)
    }

    /// Applied to each sum.
    pub fn activation(&self) -> Activation {
        self.0.activation
    }
}

impl Network {
    /// Shape of an observation.
    pub fn input(&self) -> Shape {
        self.input
    }

    /// Number of outputs.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Its layers where all of them are dense ones over a single vector, in their order: for machines
    /// that compute with other numbers than these.
    ///
    /// # Errors
    ///
    /// The number of the first other layer, from 0; those that only change the shape do not count.
    pub fn dense_layers(&self) -> Result<Vec<DenseLayer<'_>>, usize> {
        let mut layers = Vec::with_capacity(self.stages.len());
        for (index, stage) in self.stages.iter().enumerate() {
            match &stage.layer {
                Layer::Dense(dense) if stage.from.steps == 1 => layers.push(DenseLayer(dense)),
                _ => return Err(index),
            }
        }
        Ok(layers)
    }

    /// Room for evaluations, one after the other.
    pub fn scratch(&self) -> Scratch {
        let values = || vec![0.0; self.values];
        Scratch { values: [values(), values()], work: vec![0.0; self.work] }
    }

    /// The outputs for an observation, oldest vector first. An output that depends on NaN, or on a
    /// value that overflows, is not finite.
    ///
    /// # Panics
    ///
    /// If the observation has another length than [`Self::input`], or the scratch is another
    /// network's.
    pub fn evaluate<'a>(&self, observation: &[f32], scratch: &'a mut Scratch) -> &'a [f32] {
        assert_eq!(observation.len(), self.input.size(), "an observation of the network's shape");
        self.run(observation, self.input, scratch)
    }

    /// As [`evaluate`](Self::evaluate), for a network whose first layer is a recurrent one that returns its
    /// last state: such a layer takes any number of vectors. A longer series than any before allocates.
    ///
    /// # Panics
    ///
    /// If the first layer is another, or the observation is not a series of whole vectors.
    pub fn evaluate_series<'a>(&self, observation: &[f32], scratch: &'a mut Scratch) -> &'a [f32] {
        let Some(Stage { layer: Layer::Recurrent(first), .. }) = self.stages.first() else {
            panic!("the first layer is not recurrent");
        };
        assert_eq!(first.returns, Returns::Last, "a layer that returns its last state");
        let width = self.input.width;
        let steps = observation.len() / width;
        assert!(steps > 0 && steps * width == observation.len(), "a series of whole vectors");
        if observation.len() > scratch.values[0].len() {
            scratch.values[0].resize(observation.len(), 0.0);
        }
        let work = first.work(steps).max(self.work);
        if work > scratch.work.len() {
            scratch.work.resize(work, 0.0);
        }
        self.run(observation, Shape { steps, width }, scratch)
    }

    fn run<'a>(&self, observation: &[f32], shape: Shape, scratch: &'a mut Scratch) -> &'a [f32] {
        let [front, back] = &mut scratch.values;
        let (mut from, mut to) = (front, back);
        from[..observation.len()].copy_from_slice(observation);
        for (index, Stage { layer, from: planned, to: result }) in self.stages.iter().enumerate() {
            let shape = if index == 0 { &shape } else { planned };
            let x = &from[..shape.size()];
            let out = &mut to[..result.size()];
            match layer {
                Layer::Dense(dense) => dense.run(x, *shape, out),
                Layer::Conv1d(conv) => conv.run(x, *shape, out),
                Layer::MaxPool { size } => max_pool(x, *shape, *size, out),
                Layer::LayerNorm(norm) => norm.run(x, *shape, out),
                Layer::Recurrent(layer) => layer.run(x, *shape, &mut scratch.work, out),
                Layer::Trees { forests, low, high } => trees(x, forests, *low, *high, out),
            }
            std::mem::swap(&mut from, &mut to);
        }
        &from[..self.outputs]
    }
}

/// A comparison would treat NaN as a small number.
fn trees(x: &[f32], forests: &[Forest], low: f32, high: f32, out: &mut [f32]) {
    let finite = x.iter().all(|value| value.is_finite());
    for (forest, out) in forests.iter().zip(out) {
        *out = if finite { low + (high - low) * forest.mean(x) as f32 } else { f32::NAN };
    }
}

#[cfg(test)]
#[path = "../tests/nn.rs"]
mod tests;
