//! The decisions of an agent that are not complete: kept until the account of their interval and the agent's
//! next decision are known.
use super::columns::{Columns, Entry};
use super::sampler::Drawn;
use crate::decision::{AgentState, TRUTH};
use crate::env::account::{Account, CreditKind, Rewarded, Shown};
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
    pub rewarded: Rewarded,
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
    entry: Option<Entry>,
    /// Number of the latest decision of the episode.
    last: Option<u64>,
    /// Of the present episode.
    account: Account,
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
            entry: None,
            last: None,
            account: Account::default(),
            spare: Vec::new(),
        }
    }

    /// Begins an episode.
    pub fn begin(&mut self, rng: Rng) {
        self.rng = rng;
    }

    /// Room for an observation.
    pub fn spare(&mut self) -> Vec<f32> {
        self.spare.pop().unwrap_or_default()
    }

    /// A decision is due by this state.
    pub fn enter(&mut self, state: &AgentState) {
        self.account.enter(state.decision, &state.arrived.row());
    }

    /// The interval that is rewarded by this state. One that ends the episode is not: no decision follows.
    pub fn account(&mut self, kind: CreditKind, state: &AgentState) -> Option<Rewarded> {
        let (arrived, sent) =
            (state.arrived.row(), state.credit.map(|own| (own.metrics.row(), own.decision)));
        let credit = sent.as_ref().map(|(row, decision)| (row, *decision));
        self.account.close(kind, &Shown { arrived: &arrived, credit, due: state.due, left: false })
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

    /// The account of a decision's interval is closed.
    pub fn close(&mut self, closed: &Closed, class: i64, columns: &mut Columns) {
        let Rewarded { decision, own, before } = closed.rewarded;
        let entry = Entry {
            metrics: own.row,
            before: before.row,
            best: own.best,
            best_before: before.best,
            reward: match closed.reward {
                Reward::Later => None,
                Reward::Is(reward) => Some(reward),
                Reward::Unrewarded => Some(0.0),
            },
            truth: closed.truth,
        };
        // Accounts come in order: those before it get none.
        while self.open.front().is_some_and(|first| first.number < decision) {
            self.drop_first();
        }
        if self.open.front().is_some_and(|first| first.number == decision) {
            self.entry = Some(entry);
            self.complete(class, columns);
        }
    }

    /// The episode is over: drops what is open.
    pub fn forget(&mut self) {
        while !self.open.is_empty() {
            self.drop_first();
        }
        self.first_place += self.last.take().map_or(1, |last| last as i64 + 2);
        self.account = Account::default();
    }

    /// Hands over the first decision if it has its account and the next decision is known.
    fn complete(&mut self, class: i64, columns: &mut Columns) {
        let (Some(first), Some(next)) = (self.open.front(), self.open.get(1)) else { return };
        let Some(entry) = self.entry else { return };
        if next.number == first.number + 1 {
            columns.push_seen(&first.seen, &next.seen);
            columns.push(first.drawn.action, first.drawn.log_probability, &entry);
            if columns.has_truth(&first.seen) {
                columns.push_truth(&entry);
            }
            columns.push_place(self.stream, self.first_place + first.number as i64, class);
        }
        self.drop_first();
    }

    fn drop_first(&mut self) {
        self.entry = None;
        self.spare.extend(self.open.pop_front().map(|first| first.seen));
    }

    fn drop_last(&mut self) {
        if self.open.len() == 1 {
            self.entry = None;
        }
        self.spare.extend(self.open.pop_back().map(|last| last.seen));
    }
}
