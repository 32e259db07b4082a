//! One of the simulations of `Episodes`: what it is to do next, and what it then has to show.
use ackademy::env::{EnvError, Episode, EpisodeSource, episode_seed};
use ackademy::policy::{Action, METRICS};
use ackademy::sim::record::Outcome;

/// What a new episode follows from, besides its place and number.
#[derive(Clone, Copy)]
pub struct Plan {
    /// Of all simulations.
    pub seed: u64,
    /// Number of the first simulation, where others before it are simulated elsewhere.
    pub first: u64,
    /// How far training is, in [0, 1].
    pub progress: f64,
}

/// A simulation, and what is left of its earlier episodes.
#[derive(Default)]
pub struct Simulation {
    index: usize,
    /// Begin an episode by this plan; otherwise the actions are for the present one.
    pub begin: Option<Plan>,
    /// Of each agent; those of agents that are not due are ignored.
    pub actions: Vec<Action>,
    /// The present episode; none once it is over.
    pub episode: Option<Episode>,
    /// Episodes begun under the present seed.
    pub begun: u64,
    /// Results of the last episode that ended.
    pub outcome: Option<Outcome>,
    /// Data packets of the episodes that ended.
    pub packets: u64,
    /// Simulated time of the last episode that ended, seconds.
    pub ended_s: f64,
    /// Actions taken.
    pub decisions: u64,
    /// Why no episode could begin.
    pub error: Option<EnvError>,
    /// Rows of the arrays.
    pub shown: Shown,
}

/// Rows of the arrays of `Episodes`, agent by agent.
#[derive(Default)]
pub struct Shown {
    /// Numbers of an agent's observation.
    numbers: usize,
    /// Columns of its truth; 0 if none is collected.
    columns: usize,
    /// Rows of features, oldest first.
    pub observation: Vec<f32>,
    /// Metrics of what arrived.
    pub metrics: Vec<f64>,
    /// Metrics of what was sent.
    pub credit: Vec<f64>,
    /// The decision that a row of `credit` is of, −1 for none.
    pub credit_step: Vec<i64>,
    /// Truth of what arrived.
    pub truth: Vec<f64>,
    /// Truth of what was sent.
    pub credit_truth: Vec<f64>,
    /// Whether an agent's decision is due.
    pub due: Vec<bool>,
    /// Whether an agent's flow has ended.
    pub left: Vec<bool>,
    /// Number of the decision.
    pub decision: Vec<i64>,
    /// Whether the episode is over.
    pub over: bool,
}

impl Shown {
    fn new(agents: usize, (numbers, columns): (usize, usize)) -> Self {
        Self {
            numbers,
            columns,
            observation: vec![0.0; agents * numbers],
            metrics: vec![0.0; agents * METRICS],
            credit: vec![0.0; agents * METRICS],
            credit_step: vec![0; agents],
            truth: vec![0.0; agents * columns],
            credit_truth: vec![0.0; agents * columns],
            due: vec![false; agents],
            left: vec![false; agents],
            decision: vec![0; agents],
            over: false,
        }
    }

    /// As at the beginning of an episode.
    fn clear(&mut self) {
        self.observation.fill(0.0);
        self.metrics.fill(0.0);
        self.credit.fill(0.0);
        self.truth.fill(0.0);
        self.credit_truth.fill(0.0);
        self.decision.fill(0);
        self.over = false;
    }

    /// Writes down what is new of every agent.
    fn update(&mut self, episode: &mut Episode) {
        self.credit_step.fill(-1);
        for agent in 0..self.due.len() {
            let Some(state) = episode.agent(agent) else {
                self.due[agent] = false;
                self.left[agent] = false;
                continue;
            };
            self.due[agent] = state.due;
            self.left[agent] = state.ended;
            if !std::mem::take(&mut state.fresh) {
                continue;
            }
            let (first, place) = (agent * self.numbers, agent * METRICS);
            self.observation[first..][..self.numbers].copy_from_slice(&state.observation);
            self.metrics[place..][..METRICS].copy_from_slice(&state.arrived.row());
            self.decision[agent] = state.decision as i64;
            let columns = agent * self.columns..(agent + 1) * self.columns;
            self.truth[columns.clone()].copy_from_slice(&state.truth[..self.columns]);
            if let Some(credit) = state.credit {
                self.credit_truth[columns].copy_from_slice(&state.credit_truth[..self.columns]);
                self.credit_step[agent] = credit.decision as i64;
                self.credit[place..][..METRICS].copy_from_slice(&credit.metrics.row());
            }
        }
        self.over = episode.is_over();
    }
}

impl Simulation {
    /// Number `index` of those here; `sizes` are the numbers of an agent's observation and the
    /// columns of its truth.
    pub fn new(index: usize, agents: usize, sizes: (usize, usize)) -> Self {
        Self { index, shown: Shown::new(agents, sizes), ..Self::default() }
    }

    /// Data packets sent so far, by every flow of every episode.
    pub fn packets(&self) -> u64 {
        self.packets + self.episode.as_ref().map_or(0, Episode::packets)
    }

    /// Simulated time of the present episode, or of the last that ended, seconds.
    pub fn time_s(&self) -> f64 {
        self.episode.as_ref().map_or(self.ended_s, |own| own.now().as_secs_f64())
    }

    /// Begins an episode or sets the actions, and goes on to the next decision or the end.
    pub fn go_on(&mut self, source: &EpisodeSource) {
        if let Some(plan) = self.begin.take() {
            self.begin(source, plan);
        } else if let Some(episode) = &mut self.episode {
            for (agent, &action) in self.actions.iter().enumerate().take(episode.flows()) {
                self.decisions += u64::from(episode.act(agent, action));
            }
        }
        let Some(episode) = &mut self.episode else { return };
        episode.advance();
        self.shown.update(episode);
        if self.shown.over
            && let Some(ended) = self.episode.take()
        {
            self.packets += ended.packets();
            self.ended_s = ended.now().as_secs_f64();
            self.outcome = Some(ended.finish());
        }
    }

    fn begin(&mut self, source: &EpisodeSource, Plan { seed, first, progress }: Plan) {
        if let Some(left) = self.episode.take() {
            self.packets += left.packets();
        }
        let own = episode_seed(seed, first.wrapping_add(self.index as u64), self.begun);
        self.begun += 1;
        self.shown.clear();
        // Of several that failed at once only the first was told.
        self.error = None;
        match source.begin(own, progress) {
            Ok(episode) => self.episode = Some(episode),
            Err(error) => {
                self.error = Some(error);
                self.shown.over = true;
            }
        }
    }
}
