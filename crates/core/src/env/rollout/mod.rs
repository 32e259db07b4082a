//! Trajectories that are simulated and decided here: a learner gets batches of completed decisions and no
//! steps. What completes a decision is the account of its interval ([`account`](super::account)) and the next decision of
//! the same agent.
//!
//! Everything that a simulation does follows from the seed, its number and the policies that decided. So
//! several of them can be run by any number of threads. `tests/test_rollouts.py` compares them with what
//! `learn/credit.py` collects step by step.
use super::account::{CreditKind, Rewarded};
use super::reward::{self, Team};
use super::source::episode_seed;
use super::{EnvError, Episode, EpisodeSource};
use crate::decision::{Metrics, Truth};
use crate::policy::nn::Scratch;
use crate::rng::Seed;
use decisions::{Closed, Decision, Decisions, Reward};

mod columns;
mod decisions;
mod sampler;

pub use columns::{Columns, Means, TRUTH_ROW};
pub use sampler::{Drawn, Sampler};

/// What episodes follow from, besides place and number of their simulation.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Of all simulations.
    pub seed: u64,
    /// How far training is, in [0, 1].
    pub progress: f64,
    /// What a decision is rewarded for.
    pub credit: CreditKind,
    /// Whether the columns of truth are filled; the source must collect it.
    pub truth: bool,
    /// The reward that is computed here, from the truth; `None`: rewards are computed from the rows.
    pub reward: Option<&'static dyn reward::Reward>,
}

/// How far a simulation is to go in one call.
#[derive(Clone, Copy, Debug)]
pub struct Goal {
    /// Completed decisions that wait to be taken.
    pub rows: usize,
    /// Episodes that have ended since [`Rollout::start`], after which it stops with fewer decisions.
    pub episodes: u64,
    /// Decisions of this call, after which it is to be called again.
    pub steps: u32,
}

/// A simulation whose decisions are drawn from a policy.
pub struct Rollout {
    /// Number among all simulations.
    number: u64,
    episode: Option<Episode>,
    /// Class of the present episode's scenario.
    class: i64,
    /// Episodes begun.
    begun: u64,
    /// Episodes that have ended, ever and since the last [`start`](Self::start).
    ended: u64,
    ended_now: u64,
    /// Data packets of the episodes that ended.
    packets: u64,
    made: u64,
    agents: Vec<Decisions>,
    /// Intervals that have closed since the last decisions, with their agents.
    closed: Vec<(usize, Closed)>,
    team: Team,
    columns: Columns,
    means: Means,
    scratch: Option<Scratch>,
}

impl Rollout {
    /// Simulation `number` of all, with up to `agents` learning flows.
    pub fn new(number: u64, first_stream: i64, source: &EpisodeSource) -> Self {
        let spec = source.spec();
        let (history, features) = spec.shape();
        let stream = |agent: usize| Decisions::new(first_stream + agent as i64);
        Self {
            number,
            episode: None,
            class: 0,
            begun: 0,
            ended: 0,
            ended_now: 0,
            packets: 0,
            made: 0,
            agents: (0..source.agents()).map(stream).collect(),
            closed: Vec::new(),
            team: Team::new(source.agents()),
            columns: Columns::new(history * features, spec.action_size()),
            means: Means::default(),
            scratch: None,
        }
    }

    /// Begins the collecting of further decisions, by another policy than before.
    pub fn start(&mut self, sampler: &Sampler) {
        self.ended_now = 0;
        self.scratch = Some(sampler.scratch());
    }

    /// Goes on towards the goal; true if it is reached.
    ///
    /// # Errors
    ///
    /// If an episode cannot begin.
    ///
    /// # Panics
    ///
    /// Before the first [`start`](Self::start).
    pub fn run(
        &mut self,
        source: &EpisodeSource,
        plan: &Plan,
        sampler: &Sampler,
        goal: Goal,
    ) -> Result<bool, EnvError> {
        for _ in 0..goal.steps {
            if self.columns.len() >= goal.rows || self.ended_now >= goal.episodes {
                return Ok(true);
            }
            if self.episode.is_none() {
                self.begin(source, plan)?;
            }
            self.step(plan, sampler);
        }
        Ok(false)
    }

    /// Completed decisions, oldest first. Who takes them removes them.
    pub fn columns(&mut self) -> &mut Columns {
        &mut self.columns
    }

    /// Sums over the decisions since they were last taken.
    pub fn take_means(&mut self) -> Means {
        std::mem::take(&mut self.means)
    }

    /// Data packets sent so far, by every flow of every episode.
    pub fn packets(&self) -> u64 {
        self.packets + self.episode.as_ref().map_or(0, Episode::packets)
    }

    /// Decisions made so far, completed or not.
    pub fn decisions(&self) -> u64 {
        self.made
    }

    /// Episodes that have ended so far.
    pub fn episodes(&self) -> u64 {
        self.ended
    }

    fn begin(&mut self, source: &EpisodeSource, plan: &Plan) -> Result<(), EnvError> {
        let own = episode_seed(plan.seed, self.number, self.begun);
        self.class = source.class(own, plan.progress) as i64;
        self.episode = Some(source.begin(own, plan.progress)?);
        self.begun += 1;
        self.team = Team::new(self.agents.len());
        for (agent, decisions) in self.agents.iter_mut().enumerate() {
            decisions.begin(action_stream(own, agent));
        }
        Ok(())
    }

    /// Simulates until decisions are due and makes them, or to the end of the episode.
    fn step(&mut self, plan: &Plan, sampler: &Sampler) {
        let Some(mut episode) = self.episode.take() else { return };
        let goes_on = episode.advance();
        self.close(plan, &mut episode);
        if !goes_on {
            return self.end(&episode);
        }
        for agent in 0..episode.flows() {
            self.decide(agent, &mut episode, plan, sampler);
        }
        self.episode = Some(episode);
    }

    /// Makes the decision of an agent, if one is due.
    fn decide(&mut self, agent: usize, episode: &mut Episode, plan: &Plan, sampler: &Sampler) {
        let Some(state) = episode.agent(agent).filter(|state| state.due) else { return };
        let decisions = &mut self.agents[agent];
        decisions.enter(state);
        self.means.add(&state.arrived);
        let scratch = self.scratch.as_mut().expect("`start` comes before `run`");
        let drawn = sampler.draw(&state.observation, &mut decisions.rng, scratch);
        let made = Decision::new(state, drawn, plan.truth, decisions.spare());
        decisions.open(made, self.class, &mut self.columns);
        episode.act(agent, drawn.taken());
        self.made += 1;
    }

    /// Takes in what is new about earlier decisions. Of intervals that close at the same time each has its own
    /// reward before any is shared.
    fn close(&mut self, plan: &Plan, episode: &mut Episode) {
        for agent in 0..episode.flows() {
            let Some(state) = episode.agent(agent) else { continue };
            let ended = state.ended;
            if std::mem::take(&mut state.fresh)
                && let Some(rewarded) = self.agents[agent].account(plan.credit, state)
            {
                let truth = match plan.credit {
                    CreditKind::Sent => state.credit_truth,
                    CreditKind::Arrived => state.truth,
                };
                let reward = self.own_reward(plan, agent, &rewarded, &Truth::from_row(&truth));
                self.closed.push((agent, Closed { rewarded, truth, reward }));
            }
            if ended {
                self.team.leave(agent);
            }
        }
        let least = self.team.least();
        for (agent, mut closed) in self.closed.drain(..) {
            if let (Some(reward), Reward::Is(own)) = (&plan.reward, &mut closed.reward) {
                *own = reward.shared(*own, least.map_or(*own, |least| least.min(*own)));
            }
            self.agents[agent].close(&closed, self.class, &mut self.columns);
        }
    }

    /// What an interval is worth by itself, noted for the others of its kind.
    fn own_reward(&mut self, plan: &Plan, agent: usize, of: &Rewarded, truth: &Truth) -> Reward {
        let Some(reward) = plan.reward else { return Reward::Later };
        let metrics = Metrics::from_row(&of.own.row);
        let own = reward.own(&metrics, truth, of.before.throughput_mbps());
        own.map_or(Reward::Unrewarded, |own| {
            self.team.set(agent, own);
            Reward::Is(own)
        })
    }

    /// The episode is over.
    fn end(&mut self, episode: &Episode) {
        self.agents.iter_mut().for_each(Decisions::forget);
        self.packets += episode.packets();
        self.ended += 1;
        self.ended_now += 1;
    }
}

/// The stream of an agent's actions in an episode.
fn action_stream(episode: Seed, agent: usize) -> crate::rng::Rng {
    episode.stream("action", agent as u64)
}
