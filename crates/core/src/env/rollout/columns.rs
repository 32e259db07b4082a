//! Completed decisions, column by column.
use crate::decision::{Action, METRICS, Metrics, TRUTH};

/// Numbers of a row of truth: the truth of an interval, and its metrics.
pub const TRUTH_ROW: usize = TRUTH + METRICS;

/// One entry, or one row of a fixed number of entries, per completed decision.
#[derive(Clone, Debug, Default)]
pub struct Columns {
    /// Numbers of an observation, and values of an action, 0 if it is a choice.
    numbers: usize,
    values: usize,
    /// What the agent saw when it decided.
    pub observation: Vec<f32>,
    /// What it saw at its next decision.
    pub following: Vec<f32>,
    /// The choice, if actions are choices.
    pub choice: Vec<i64>,
    /// The values, if they are values.
    pub value: Vec<f32>,
    /// Of the action when it was drawn.
    pub log_probability: Vec<f32>,
    /// Metrics of the interval that the decision is rewarded for.
    pub metrics: Vec<f64>,
    /// Metrics of the same agent's rewarded interval before it.
    pub before: Vec<f64>,
    /// Largest throughput of the agent's intervals in the episode so far, this one included, Mb/s.
    pub best: Vec<f64>,
    /// The same without this one.
    pub best_before: Vec<f64>,
    /// The agent, among those of all simulations.
    pub stream: Vec<i64>,
    /// One more per decision of a stream; a new episode leaves a gap.
    pub place: Vec<i64>,
    /// Computed in the core: empty if rewards are to be computed from the rows.
    pub reward: Vec<f64>,
    /// The truth of the interval that the decision is rewarded for. Empty, as are the next two, unless asked for.
    pub rewarded_truth: Vec<f64>,
    /// The truth of the interval that ended with the decision, then the metrics of that interval.
    pub truth: Vec<f32>,
    /// The same at the agent's next decision.
    pub following_truth: Vec<f32>,
    /// Class of the episode's scenario among those of its distribution.
    pub class: Vec<i64>,
}

/// What is known of an interval that a decision is rewarded for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub metrics: [f64; METRICS],
    pub before: [f64; METRICS],
    pub best: f64,
    pub best_before: f64,
    /// If it is computed here.
    pub reward: Option<f64>,
    pub truth: [f64; TRUTH],
}

/// Sums over decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Means {
    /// Decisions.
    pub count: u64,
    /// Of their intervals' throughput, Mb/s.
    pub throughput_mbps: f64,
    /// Of their intervals' mean round trips, ms.
    pub rtt_ms: f64,
    /// Of their intervals' loss ratios.
    pub loss_ratio: f64,
}

impl Means {
    pub(super) fn add(&mut self, arrived: &Metrics) {
        self.count += 1;
        self.throughput_mbps += arrived.throughput_mbps;
        self.rtt_ms += arrived.rtt_mean_ms;
        self.loss_ratio += arrived.loss_ratio;
    }
}

impl Columns {
    pub(super) fn new(numbers: usize, values: usize) -> Self {
        Self { numbers, values, ..Self::default() }
    }

    /// Completed decisions.
    pub fn len(&self) -> usize {
        self.stream.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stream.is_empty()
    }

    /// Without decisions, with room for `rows` of the kind that this has.
    #[must_use]
    pub fn empty(&self, rows: usize) -> Self {
        let with = |used: bool, width: usize| if used { rows * width } else { 0 };
        let (truth, reward) = (!self.truth.is_empty(), !self.reward.is_empty());
        Self {
            numbers: self.numbers,
            values: self.values,
            observation: Vec::with_capacity(rows * self.numbers),
            following: Vec::with_capacity(rows * self.numbers),
            choice: Vec::with_capacity(with(self.values == 0, 1)),
            value: Vec::with_capacity(rows * self.values),
            log_probability: Vec::with_capacity(rows),
            metrics: Vec::with_capacity(rows * METRICS),
            before: Vec::with_capacity(rows * METRICS),
            best: Vec::with_capacity(rows),
            best_before: Vec::with_capacity(rows),
            stream: Vec::with_capacity(rows),
            place: Vec::with_capacity(rows),
            reward: Vec::with_capacity(with(reward, 1)),
            rewarded_truth: Vec::with_capacity(with(truth, TRUTH)),
            truth: Vec::with_capacity(with(truth, TRUTH_ROW)),
            following_truth: Vec::with_capacity(with(truth, TRUTH_ROW)),
            class: Vec::with_capacity(rows),
        }
    }

    /// Moves what was seen at the first `count` decisions to the end of `other`: about half of the bytes. The other half
    /// is [`move_rest`](Self::move_rest)'s, which another thread may do at the same time, of other simulations.
    pub fn move_seen(&mut self, count: usize, other: &mut Self) {
        shift(&mut self.observation, &mut other.observation, count * self.numbers);
        shift(&mut self.following, &mut other.following, count * self.numbers);
        shift(&mut self.truth, &mut other.truth, count * TRUTH_ROW);
        shift(&mut self.following_truth, &mut other.following_truth, count * TRUTH_ROW);
    }

    /// Moves everything else about the first `count` decisions to the end of `other`.
    pub fn move_rest(&mut self, count: usize, other: &mut Self) {
        shift(&mut self.value, &mut other.value, count * self.values);
        shift(&mut self.choice, &mut other.choice, count);
        shift(&mut self.log_probability, &mut other.log_probability, count);
        shift(&mut self.metrics, &mut other.metrics, count * METRICS);
        shift(&mut self.before, &mut other.before, count * METRICS);
        shift(&mut self.best, &mut other.best, count);
        shift(&mut self.best_before, &mut other.best_before, count);
        shift(&mut self.stream, &mut other.stream, count);
        shift(&mut self.place, &mut other.place, count);
        shift(&mut self.reward, &mut other.reward, count);
        shift(&mut self.rewarded_truth, &mut other.rewarded_truth, count * TRUTH);
        shift(&mut self.class, &mut other.class, count);
    }

    /// These decisions with what was seen at them, which was moved apart.
    #[must_use]
    pub fn with_seen(self, seen: Self) -> Self {
        let Self { observation, following, truth, following_truth, .. } = seen;
        Self { observation, following, truth, following_truth, ..self }
    }

    pub(super) fn push(&mut self, action: Action, log_probability: f32, entry: &Entry) {
        match action {
            Action::Choice(choice) => self.choice.push(choice as i64),
            Action::Values(values) => self.value.extend_from_slice(&values[..self.values]),
        }
        self.log_probability.push(log_probability);
        self.metrics.extend_from_slice(&entry.metrics);
        self.before.extend_from_slice(&entry.before);
        self.best.push(entry.best);
        self.best_before.push(entry.best_before);
        self.reward.extend(entry.reward);
    }

    pub(super) fn push_place(&mut self, stream: i64, place: i64, class: i64) {
        self.stream.push(stream);
        self.place.push(place);
        self.class.push(class);
    }

    /// Whether what was seen has a row of truth.
    pub(super) fn has_truth(&self, seen: &[f32]) -> bool {
        seen.len() > self.numbers
    }

    pub(super) fn push_truth(&mut self, entry: &Entry) {
        self.rewarded_truth.extend_from_slice(&entry.truth);
    }

    /// What was seen: observations, each with a row of truth behind it if that is asked for.
    pub(super) fn push_seen(&mut self, seen: &[f32], following: &[f32]) {
        let (observation, truth) = seen.split_at(self.numbers);
        self.observation.extend_from_slice(observation);
        self.truth.extend_from_slice(truth);
        let (observation, truth) = following.split_at(self.numbers);
        self.following.extend_from_slice(observation);
        self.following_truth.extend_from_slice(truth);
    }
}

/// Moves the first so many entries, none of a column that is not filled.
fn shift<T: Copy>(from: &mut Vec<T>, to: &mut Vec<T>, count: usize) {
    let count = count.min(from.len());
    to.extend_from_slice(&from[..count]);
    from.drain(..count);
}
