//! Layers with a state, zero before the first vector. Equations and layout are flax's.
use super::activation::{sigmoid, tanh};
use super::layers::{Shape, repeat};
use super::matrix::Matrix;
use serde::{Deserialize, Serialize};

/// The output of a recurrent layer.
#[derive(Clone, Copy, Debug, Default, Deserialize, Serialize, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Returns {
    /// The state after the last vector.
    #[default]
    Last,
    /// The state after each vector.
    All,
}

/// Which recurrence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cell {
    /// Gates i, f, g, o: c = f c + i g, h = o tanh(c) (Hochreiter and Schmidhuber 1997, with a forget
    /// gate).
    Lstm,
    /// Gates r, z, n: the state's share of n is multiplied by r before tanh, then
    /// h = (1 - z) n + z h (Cho et al. 2014, with the reset after the product).
    Gru,
}

impl Cell {
    /// Vectors of the state's length that the input and the state are mapped to.
    pub fn gates(self) -> usize {
        match self {
            Self::Lstm => 4,
            Self::Gru => 3,
        }
    }
}

/// A recurrent layer.
#[derive(Clone, Debug)]
pub(super) struct Recurrent {
    pub cell: Cell,
    pub units: usize,
    pub kernel: Matrix,
    /// From the state to the gates.
    pub own_kernel: Matrix,
    pub bias: Vec<f32>,
    /// GRU: zeros for r and z, then the bias of the state's share of n. Empty for LSTM.
    pub own_bias: Vec<f32>,
    pub returns: Returns,
}

impl Recurrent {
    /// Numbers that [`Self::run`] needs beside input and output, for a series of so many steps.
    pub fn work(&self, steps: usize) -> usize {
        // Gates of all steps, then LSTM's h and c, or GRU's h and its share of the gates.
        (steps + 1) * self.cell.gates() * self.units + 2 * self.units
    }

    pub fn run(&self, x: &[f32], shape: Shape, work: &mut [f32], out: &mut [f32]) {
        let width = self.cell.gates() * self.units;
        let (gates, rest) = work[..self.work(shape.steps)].split_at_mut(shape.steps * width);
        let (state, own) = rest.split_at_mut(self.units);
        let (cell, own) = own.split_at_mut(self.units);
        // The input's part of the gates does not depend on the state: all steps at once.
        repeat(&self.bias, gates);
        self.kernel.add_rows(x, shape.width, gates);
        state.fill(0.0);
        cell.fill(0.0);
        for (step, gates) in gates.chunks_exact_mut(width).enumerate() {
            match self.cell {
                Cell::Lstm => {
                    self.own_kernel.add(state, gates);
                    lstm(gates, cell, state);
                }
                Cell::Gru => {
                    own.copy_from_slice(&self.own_bias);
                    self.own_kernel.add(state, own);
                    gru(gates, own, state);
                }
            }
            if self.returns == Returns::All {
                out[step * self.units..][..self.units].copy_from_slice(state);
            }
        }
        if self.returns == Returns::Last {
            out.copy_from_slice(state);
        }
    }
}

fn lstm(gates: &mut [f32], cell: &mut [f32], state: &mut [f32]) {
    let units = state.len();
    let (input, rest) = gates.split_at_mut(units);
    let (forget, rest) = rest.split_at_mut(units);
    let (new, output) = rest.split_at_mut(units);
    for (((cell, input), forget), new) in cell.iter_mut().zip(input).zip(forget).zip(new) {
        *cell = sigmoid(*forget) * *cell + sigmoid(*input) * tanh(*new);
    }
    for ((state, cell), output) in state.iter_mut().zip(cell).zip(output) {
        *state = sigmoid(*output) * tanh(*cell);
    }
}

fn gru(gates: &mut [f32], own: &mut [f32], state: &mut [f32]) {
    let units = state.len();
    for (gate, own) in gates[..2 * units].iter_mut().zip(own.iter()) {
        *gate = sigmoid(*gate + own);
    }
    let (reset, rest) = gates.split_at(units);
    let (keep, new) = rest.split_at(units);
    let own = &own[2 * units..];
    for ((((state, reset), keep), new), own) in
        state.iter_mut().zip(reset).zip(keep).zip(new).zip(own)
    {
        *state = (1.0 - keep) * tanh(new + reset * own) + keep * *state;
    }
}
