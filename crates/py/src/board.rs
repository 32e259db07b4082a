//! What learners and simulations hand each other: the arrays of `Episodes`, in memory that threads share.
//!
//! A simulation's thread writes what its agents see while the interpreter sleeps, then the calling thread copies all of it
//! at once into numpy's arrays. Rows lie side by side as there, since what the other processor wrote is fetched
//! quickly only in order. Nothing here is locked: between two calls of the workers one side reads, within one each
//! simulation's thread has its own rows.
use ackademy::env::Episode;
use ackademy::policy::{Action, METRICS};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// Rows of all agents of all simulations, in order.
pub struct Board {
    agents: usize,
    /// Numbers of an agent's observation.
    numbers: usize,
    /// Columns of its truth; 0 if none is collected.
    columns: usize,
    /// Bits of the answers, one number or two.
    actions: Vec<AtomicU64>,
    /// Whether the answers are choices.
    chooses: bool,
    observation: Vec<AtomicU32>,
    metrics: Vec<AtomicU64>,
    credit: Vec<AtomicU64>,
    truth: Vec<AtomicU64>,
    credit_truth: Vec<AtomicU64>,
    credit_step: Vec<AtomicU64>,
    decision: Vec<AtomicU64>,
    due: Vec<AtomicBool>,
    left: Vec<AtomicBool>,
    /// Of each simulation.
    over: Vec<AtomicBool>,
}

/// Sizes of a [`Board`].
#[derive(Clone, Copy)]
pub struct Sizes {
    /// Simulations.
    pub n: usize,
    /// Agents of each.
    pub agents: usize,
    /// Numbers of an agent's observation.
    pub numbers: usize,
    /// Columns of its truth; 0 if none is collected.
    pub columns: usize,
}

impl Board {
    /// Zeros; `chooses` says whether the answers are choices or numbers.
    pub fn new(Sizes { n, agents, numbers, columns }: Sizes, chooses: bool) -> Self {
        let words = |count: usize| (0..count).map(|_| AtomicU64::new(0)).collect();
        let flags = |count: usize| (0..count).map(|_| AtomicBool::new(false)).collect();
        let all = n * agents;
        Self {
            agents,
            numbers,
            columns,
            actions: words(all),
            chooses,
            observation: (0..all * numbers).map(|_| AtomicU32::new(0)).collect(),
            metrics: words(all * METRICS),
            credit: words(all * METRICS),
            truth: words(all * columns),
            credit_truth: words(all * columns),
            credit_step: words(all),
            decision: words(all),
            due: flags(all),
            left: flags(all),
            over: flags(n),
        }
    }

    /// Writes the answer for an agent; of choices those in range, and of numbers at most two count.
    pub fn answer(&self, place: usize, action: Action) {
        let bits = match action {
            Action::Choice(choice) => choice as u64,
            Action::Values([first, second]) => {
                u64::from(first.to_bits()) | u64::from(second.to_bits()) << 32
            }
        };
        self.actions[place].store(bits, Relaxed);
    }

    /// The answers for a simulation's agents.
    pub fn answers(&self, index: usize) -> impl Iterator<Item = Action> {
        self.actions[index * self.agents..][..self.agents].iter().map(|action| {
            let bits = action.load(Relaxed);
            if self.chooses {
                Action::Choice(bits as usize)
            } else {
                Action::Values([f32::from_bits(bits as u32), f32::from_bits((bits >> 32) as u32)])
            }
        })
    }

    /// As at the beginning of a simulation's episode.
    pub fn clear(&self, index: usize) {
        let first = index * self.agents;
        for cell in &self.observation[first * self.numbers..][..self.agents * self.numbers] {
            cell.store(0, Relaxed);
        }
        for (cells, width) in [
            (&self.metrics, METRICS),
            (&self.credit, METRICS),
            (&self.truth, self.columns),
            (&self.credit_truth, self.columns),
            (&self.decision, 1),
        ] {
            let rows = &cells[first * width..][..self.agents * width];
            for cell in rows {
                cell.store(0, Relaxed);
            }
        }
        self.set_over(index, false);
    }

    /// Whether a simulation's episode is over.
    pub fn is_over(&self, index: usize) -> bool {
        self.over[index].load(Relaxed)
    }

    /// A simulation's episode is over, or not.
    pub fn set_over(&self, index: usize, over: bool) {
        self.over[index].store(over, Relaxed);
    }

    /// No decision of a simulation is due: it stands between two.
    pub fn none_due(&self, index: usize) {
        for due in &self.due[index * self.agents..][..self.agents] {
            due.store(false, Relaxed);
        }
    }

    /// Writes what is new of every agent of a simulation.
    pub fn update(&self, index: usize, episode: &mut Episode) {
        for agent in 0..self.agents {
            let place = index * self.agents + agent;
            self.credit_step[place].store(u64::MAX, Relaxed);
            let Some(state) = episode.agent(agent) else {
                self.due[place].store(false, Relaxed);
                self.left[place].store(false, Relaxed);
                continue;
            };
            self.due[place].store(state.due, Relaxed);
            self.left[place].store(state.ended, Relaxed);
            if !std::mem::take(&mut state.fresh) {
                continue;
            }
            for (cell, value) in
                self.observation[place * self.numbers..].iter().zip(&state.observation)
            {
                cell.store(value.to_bits(), Relaxed);
            }
            write(&self.metrics, place, &state.arrived.row());
            write(&self.truth, place, &state.truth[..self.columns]);
            self.decision[place].store(state.decision, Relaxed);
            if let Some(credit) = state.credit {
                write(&self.credit_truth, place, &state.credit_truth[..self.columns]);
                write(&self.credit, place, &credit.metrics.row());
                self.credit_step[place].store(credit.decision, Relaxed);
            }
        }
        self.set_over(index, episode.is_over());
    }

    /// Copies everything into the arrays that Python sees.
    pub fn show(&self, arrays: Arrays<'_>) {
        read(&self.observation, arrays.observation, |cell| f32::from_bits(cell.load(Relaxed)));
        for (cells, numbers) in [
            (&self.metrics, arrays.metrics),
            (&self.credit, arrays.credit),
            (&self.truth, arrays.truth),
            (&self.credit_truth, arrays.credit_truth),
        ] {
            read(cells, numbers, |cell| f64::from_bits(cell.load(Relaxed)));
        }
        for (cells, numbers) in
            [(&self.credit_step, arrays.credit_step), (&self.decision, arrays.decision)]
        {
            read(cells, numbers, |cell| cell.load(Relaxed) as i64);
        }
        for (cells, flags) in
            [(&self.due, arrays.due), (&self.left, arrays.left), (&self.over, arrays.over)]
        {
            read(cells, flags, |cell| cell.load(Relaxed));
        }
    }
}

/// The numbers of the arrays that Python sees.
pub struct Arrays<'a> {
    pub observation: &'a mut [f32],
    pub metrics: &'a mut [f64],
    pub credit: &'a mut [f64],
    pub truth: &'a mut [f64],
    pub credit_truth: &'a mut [f64],
    pub credit_step: &'a mut [i64],
    pub decision: &'a mut [i64],
    pub due: &'a mut [bool],
    pub left: &'a mut [bool],
    pub over: &'a mut [bool],
}

/// Writes the row of an agent.
fn write(cells: &[AtomicU64], place: usize, row: &[f64]) {
    for (cell, value) in cells[place * row.len()..].iter().zip(row) {
        cell.store(value.to_bits(), Relaxed);
    }
}

fn read<C, T>(cells: &[C], numbers: &mut [T], load: impl Fn(&C) -> T) {
    for (number, cell) in numbers.iter_mut().zip(cells) {
        *number = load(cell);
    }
}
