//! The decisions of an agent that are not complete: kept until the account of their interval and the agent's
//! next decision are known.
use super::columns::{Account, Columns};
use super::sampler::Drawn;
use crate::decision::{AgentState, Metrics, TRUTH};
use crate::env::Baseline;
use crate::rng::Rng;
use std::collections::VecDeque;

/// Most decisions that are kept, as many as intervals have accounts.
const OPEN_MAX: usize = 4096;

/// A decision that was made.
#[derive(Clone, Debug)]
pub(super) struct Decision {
    number: u64,
    /// The observation, and a row of truth if that is asked for.
    seen: Vec<f32>,
    drawn: Drawn,
}

/// An interval whose account is closed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Closed {
    /// The decision that began it.
    pub number: u64,
    pub metrics: Metrics,
    pub truth: [f64; TRUTH],
    pub reward: Reward,
}

/// What an interval is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Reward {
    /// To be computed from the rows.
    Later,
    /// As computed here.
    Is(f64),
    /// Unrewarded: 0, which no other flow shares.
    Unrewarded,
}

impl Decision {
    /// The decision that is due by `state`; `spare` is room for what is seen, with the truth or without.
    pub fn new(state: &AgentState, drawn: Drawn, truth: bool, mut spare: Vec<f32>) -> Self {
        spare.clear();
        spare.extend_from_slice(&state.observation);
        if truth {
            spare.extend(state.truth.iter().map(|&value| value as f32));
            spare.extend(state.arrived.row().iter().map(|&value| value as f32));
        }
        Self { number: state.decision, seen: spare, drawn }
    }
}

/// The open decisions of an agent.
#[derive(Clone, Debug)]
pub(super) struct Decisions {
    /// Of the agent's actions in the present episode.
    pub rng: Rng,
    stream: i64,
    /// Place of decision 0 of the present episode.
    first_place: i64,
    /// In order. Accounts come in order too, so that only the first can have one.
    open: VecDeque<Decision>,
    /// Of the first that is open.
    account: Option<Account>,
    /// Number of the latest decision of the episode.
    last: Option<u64>,
    /// None before the first decision.
    before: Option<Baseline>,
    /// Room of decisions that are complete.
    spare: Vec<Vec<f32>>,
}

impl Decisions {
    pub fn new(stream: i64) -> Self {
        Self {
            rng: Rng::new(0),
            stream,
            first_place: 0,
            open: VecDeque::new(),
            account: None,
            last: None,
            before: None,
            spare: Vec::new(),
        }
    }

    /// Begins an episode.
    pub fn begin(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Number of the latest decision.
    pub fn last(&self) -> Option<u64> {
        self.last
    }

    /// Room for an observation.
    pub fn spare(&mut self) -> Vec<f32> {
        self.spare.pop().unwrap_or_default()
    }

    /// A decision is due: the interval before the first one is the one before the first rewarded.
    pub fn enter(&mut self, arrived: &Metrics) {
        self.before.get_or_insert_with(|| Baseline::new(arrived.row()));
    }

    /// Adds a decision, which may complete the one before it.
    pub fn open(&mut self, made: Decision, class: i64, columns: &mut Columns) {
        if self.open.back().is_some_and(|last| last.number == made.number) {
            self.drop_last();
        }
        if self.open.len() == OPEN_MAX {
            self.drop_first();
        }
        self.last = Some(made.number);
        self.open.push_back(made);
        self.complete(class, columns);
    }

    /// Throughput of the rewarded interval before, Mb/s.
    pub fn before_mbps(&self) -> f64 {
        self.before.as_ref().map_or(0.0, Baseline::throughput_mbps)
    }

    /// The account of a decision's interval is closed.
    pub fn close(&mut self, closed: &Closed, class: i64, columns: &mut Columns) {
        let Some(baseline) = &mut self.before else { return };
        let before = baseline.replace(closed.metrics.row());
        let account = Account {
            metrics: baseline.row,
            before: before.row,
            best: baseline.best,
            best_before: before.best,
            reward: match closed.reward {
                Reward::Later => None,
                Reward::Is(reward) => Some(reward),
                Reward::Unrewarded => Some(0.0),
            },
            truth: closed.truth,
        };
        // Accounts come in order: those before it get none.
        while self.open.front().is_some_and(|first| first.number < closed.number) {
            self.drop_first();
        }
        if self.open.front().is_some_and(|first| first.number == closed.number) {
            self.account = Some(account);
            self.complete(class, columns);
        }
    }

    /// The episode is over: drops what is open.
    pub fn forget(&mut self) {
        while !self.open.is_empty() {
            self.drop_first();
        }
        self.first_place += self.last.take().map_or(1, |last| last as i64 + 2);
        self.before = None;
    }

    /// Hands over the first decision if it has its account and the next decision is known.
    fn complete(&mut self, class: i64, columns: &mut Columns) {
        let (Some(first), Some(next)) = (self.open.front(), self.open.get(1)) else { return };
        let Some(account) = self.account else { return };
        if next.number == first.number + 1 {
            columns.push_seen(&first.seen, &next.seen);
            columns.push(first.drawn.action, first.drawn.log_probability, &account);
            if columns.has_truth(&first.seen) {
                columns.push_truth(&account);
            }
            columns.push_place(self.stream, self.first_place + first.number as i64, class);
        }
        self.drop_first();
    }

    fn drop_first(&mut self) {
        self.account = None;
        self.spare.extend(self.open.pop_front().map(|first| first.seen));
    }

    fn drop_last(&mut self) {
        if self.open.len() == 1 {
            self.account = None;
        }
        self.spare.extend(self.open.pop_back().map(|last| last.seen));
    }
}
