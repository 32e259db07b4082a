//! Products of vectors and matrices. Weights lie in tiles of [`TILE`] neighbouring outputs, so that the
//! sums of a tile stay in registers; two rows, or two tiles, are computed together, because the processor
//! can start several additions during the latency of one.
//!
//! Every sum begins with the value of the output and adds the inputs in order, however the work is
//! divided. So the bits of a result depend only on the numbers.

/// Outputs of a tile: four registers of four numbers.
const TILE: usize = 16;

type Tile = [f32; TILE];

/// Weights from `inputs` to `outputs` numbers.
#[derive(Clone, Debug)]
pub struct Matrix {
    inputs: usize,
    outputs: usize,
    /// For each tile of outputs one entry per input; outputs beyond the last have weight 0.
    tiles: Vec<Tile>,
}

impl Matrix {
    /// From numbers in the order of the inputs, `outputs` for each.
    pub fn new(inputs: usize, outputs: usize, weights: &[f32]) -> Self {
        assert_eq!(weights.len(), inputs * outputs, "a weight for each pair");
        let mut tiles = Vec::with_capacity(outputs.div_ceil(TILE) * inputs);
        for first in (0..outputs).step_by(TILE) {
            for row in weights.chunks_exact(outputs) {
                let own = &row[first..outputs.min(first + TILE)];
                let mut tile = [0.0; TILE];
                tile[..own.len()].copy_from_slice(own);
                tiles.push(tile);
            }
        }
        Self { inputs, outputs, tiles }
    }

    /// Weights as they lie in memory.
    pub fn size(inputs: usize, outputs: usize) -> usize {
        outputs.div_ceil(TILE) * inputs * TILE
    }

    /// Numbers that it takes.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// From one input to one output.
    pub fn weight(&self, input: usize, output: usize) -> f32 {
        assert!(input < self.inputs && output < self.outputs, "{input} to {output}");
        self.tiles[output / TILE * self.inputs + input][output % TILE]
    }

    /// Numbers that it gives.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Adds the products of one vector to `out`.
    pub fn add(&self, x: &[f32], out: &mut [f32]) {
        self.add_part(0, x, out);
    }

    /// Adds the products of the inputs from `first` on, which are `x`, to `out`.
    pub fn add_part(&self, first: usize, x: &[f32], out: &mut [f32]) {
        let mut columns = self.columns(first..first + x.len());
        let mut pairs = out[..self.outputs].chunks_exact_mut(2 * TILE);
        for pair in &mut pairs {
            let (left, right) = pair.split_at_mut(TILE);
            let weights = [columns.next(), columns.next()].map(Option::unwrap_or_default);
            let sums = two_tiles(weights, x, [load(left), load(right)]);
            left.copy_from_slice(&sums[0]);
            right.copy_from_slice(&sums[1]);
        }
        for (weights, out) in columns.zip(pairs.into_remainder().chunks_mut(TILE)) {
            let sums = one_tile(weights, x, load(out));
            out.copy_from_slice(&sums[..out.len()]);
        }
    }

    /// Adds the products of several vectors, which begin every `stride` numbers in `x`, to the rows
    /// of `out`.
    pub fn add_rows(&self, x: &[f32], stride: usize, out: &mut [f32]) {
        if out.len() <= self.outputs {
            return self.add(&x[..self.inputs], out);
        }
        for (index, weights) in self.columns(0..self.inputs).enumerate() {
            let column = index * TILE..self.outputs.min((index + 1) * TILE);
            let mut inputs = x;
            for pair in out.chunks_mut(2 * self.outputs) {
                let (upper, lower) = pair.split_at_mut(self.outputs);
                let upper = &mut upper[column.clone()];
                let first = &inputs[..self.inputs];
                if lower.is_empty() {
                    let sums = one_tile(weights, first, load(upper));
                    upper.copy_from_slice(&sums[..upper.len()]);
                    break;
                }
                let lower = &mut lower[column.clone()];
                let second = &inputs[stride..stride + self.inputs];
                let sums = two_rows(weights, [first, second], [load(upper), load(lower)]);
                upper.copy_from_slice(&sums[0][..upper.len()]);
                lower.copy_from_slice(&sums[1][..lower.len()]);
                inputs = inputs.get(2 * stride..).unwrap_or_default();
            }
        }
    }

    /// The weights of these inputs, tile by tile.
    fn columns(&self, inputs: std::ops::Range<usize>) -> impl Iterator<Item = &[Tile]> {
        self.tiles.chunks_exact(self.inputs).map(move |tile| &tile[inputs.clone()])
    }
}

#[inline]
fn load(values: &[f32]) -> Tile {
    let mut tile = [0.0; TILE];
    tile[..values.len()].copy_from_slice(values);
    tile
}

#[inline]
fn one_tile(weights: &[Tile], x: &[f32], mut sums: Tile) -> Tile {
    for (weights, &x) in weights.iter().zip(x) {
        for (sum, weight) in sums.iter_mut().zip(weights) {
            *sum += x * weight;
        }
    }
    sums
}

#[inline]
fn two_tiles(weights: [&[Tile]; 2], x: &[f32], mut sums: [Tile; 2]) -> [Tile; 2] {
    for ((left, right), &x) in weights[0].iter().zip(weights[1]).zip(x) {
        for index in 0..TILE {
            sums[0][index] += x * left[index];
            sums[1][index] += x * right[index];
        }
    }
    sums
}

#[inline]
fn two_rows(weights: &[Tile], x: [&[f32]; 2], mut sums: [Tile; 2]) -> [Tile; 2] {
    for ((weights, &upper), &lower) in weights.iter().zip(x[0]).zip(x[1]) {
        for index in 0..TILE {
            sums[0][index] += upper * weights[index];
            sums[1][index] += lower * weights[index];
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;
    use proptest::prelude::*;

    fn random(rng: &mut Rng, count: usize) -> Vec<f32> {
        (0..count).map(|_| rng.uniform_in(-1.0, 1.0) as f32).collect()
    }

    proptest! {
        /// Not nearly the same: the same bits as the plain sum.
        #[test]
        fn products_are_sums_in_the_order_of_the_inputs(
            seed: u64,
            inputs in 1_usize..40,
            outputs in 1_usize..70,
            rows in 1_usize..6,
            stride in 0_usize..45,
        ) {
            let mut rng = Rng::new(seed);
            let weights = random(&mut rng, inputs * outputs);
            let x = random(&mut rng, (rows - 1) * stride + inputs);
            let begin = random(&mut rng, rows * outputs);
            let mut plain = begin.clone();
            for (row, out) in plain.chunks_mut(outputs).enumerate() {
                for (input, weights) in weights.chunks(outputs).enumerate() {
                    for (sum, weight) in out.iter_mut().zip(weights) {
                        *sum += x[row * stride + input] * weight;
                    }
                }
            }
            let matrix = Matrix::new(inputs, outputs, &weights);
            let mut out = begin.clone();
            matrix.add_rows(&x, stride, &mut out);
            prop_assert_eq!(&out, &plain);
            let mut out = begin[..outputs].to_vec();
            let middle = inputs / 2;
            matrix.add_part(0, &x[..middle], &mut out);
            matrix.add_part(middle, &x[middle..inputs], &mut out);
            prop_assert_eq!(&out, &plain[..outputs]);
        }
    }
}
