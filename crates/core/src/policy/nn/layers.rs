//! Layers over a series of vectors, oldest first.
use super::activation::Activation;
use super::matrix::Matrix;

/// The shape of a series of vectors, stored one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Vectors.
    pub steps: usize,
    /// Numbers of each.
    pub width: usize,
}

impl Shape {
    /// Numbers in all.
    pub fn size(self) -> usize {
        self.steps * self.width
    }
}

/// An affine map of each vector.
#[derive(Clone, Debug)]
pub(super) struct Dense {
    pub kernel: Matrix,
    pub bias: Vec<f32>,
    pub activation: Activation,
}

impl Dense {
    pub fn run(&self, x: &[f32], shape: Shape, out: &mut [f32]) {
        repeat(&self.bias, out);
        self.kernel.add_rows(x, shape.width, out);
        self.activation.apply(out);
    }
}

/// Each vector less its mean, over its standard deviation; then each number times one and plus another.
#[derive(Clone, Debug)]
pub(super) struct LayerNorm {
    pub scale: Vec<f32>,
    pub bias: Vec<f32>,
    /// Added to the variance.
    pub epsilon: f32,
    pub activation: Activation,
}

impl LayerNorm {
    pub fn run(&self, x: &[f32], shape: Shape, out: &mut [f32]) {
        let count = shape.width as f32;
        let rows = x.chunks_exact(shape.width).zip(out.chunks_exact_mut(shape.width));
        for (x, out) in rows {
            let mean = x.iter().sum::<f32>() / count;
            let variance = x.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / count;
            let share = 1.0 / (variance + self.epsilon).sqrt();
            for (((out, x), scale), bias) in out.iter_mut().zip(x).zip(&self.scale).zip(&self.bias)
            {
                *out = (x - mean) * share * scale + bias;
            }
        }
        self.activation.apply(out);
    }
}

/// A convolution along time.
#[derive(Clone, Debug)]
pub(super) struct Conv1d {
    /// From a window of `size` vectors.
    pub kernel: Matrix,
    pub size: usize,
    /// Vectors of zeros that stand before the first.
    pub before: usize,
    pub bias: Vec<f32>,
    pub activation: Activation,
}

impl Conv1d {
    pub fn run(&self, x: &[f32], shape: Shape, out: &mut [f32]) {
        repeat(&self.bias, out);
        let filters = self.kernel.outputs();
        let steps = out.len() / filters;
        // Windows that lie within the series; the others leave out the zeros beside it.
        let first = self.before.min(steps);
        let whole = (shape.steps + 1).saturating_sub(self.size).min(steps - first);
        let (head, rest) = out.split_at_mut(first * filters);
        let (body, tail) = rest.split_at_mut(whole * filters);
        for (step, out) in head.chunks_exact_mut(filters).enumerate() {
            self.partial(x, shape, step, out);
        }
        if whole > 0 {
            self.kernel.add_rows(x, shape.width, body);
        }
        for (step, out) in tail.chunks_exact_mut(filters).enumerate() {
            self.partial(x, shape, first + whole + step, out);
        }
        self.activation.apply(out);
    }

    /// The window of this step, as far as it lies within the series.
    fn partial(&self, x: &[f32], shape: Shape, step: usize, out: &mut [f32]) {
        let skipped = self.before.saturating_sub(step);
        let begin = (step + skipped) - self.before;
        let end = (step + self.size).saturating_sub(self.before).min(shape.steps);
        let inside = &x[begin * shape.width..end * shape.width];
        self.kernel.add_part(skipped * shape.width, inside, out);
    }
}

/// The largest of `size` neighbours in time, for each number. An incomplete group at the end is
/// dropped.
pub(super) fn max_pool(x: &[f32], shape: Shape, size: usize, out: &mut [f32]) {
    let groups = x.chunks_exact(size * shape.width);
    for (group, out) in groups.zip(out.chunks_exact_mut(shape.width)) {
        let (first, others) = group.split_at(shape.width);
        out.copy_from_slice(first);
        for other in others.chunks_exact(shape.width) {
            for (max, &value) in out.iter_mut().zip(other) {
                *max = larger(*max, value);
            }
        }
    }
}

/// Not `max`, which would hide NaN.
#[inline]
fn larger(left: f32, right: f32) -> f32 {
    if left >= right || left.is_nan() { left } else { right }
}

/// Fills `out` with copies of `row`.
pub(super) fn repeat(row: &[f32], out: &mut [f32]) {
    out.chunks_exact_mut(row.len()).for_each(|out| out.copy_from_slice(row));
}
