//! One of the simulations of `Episodes`.
use crate::board::Board;
use ackademy::env::{EnvError, Episode, EpisodeSource, episode_seed};
use ackademy::sim::record::Outcome;
use ackademy::units::Time;

/// An episode is simulated in at least so many parts of its duration, and in parts of at most so many
/// nanoseconds: between two it may be stopped. Most steps are shorter than a part.
const PARTS: (u64, u64) = (256, 1_000_000_000);

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
    /// The present episode; none once it is over.
    episode: Option<Episode>,
    /// Episodes begun under the present seed.
    begun: u64,
    /// Results of the last episode that ended.
    pub outcome: Option<Outcome>,
    /// Data packets of the episodes that ended.
    packets: u64,
    /// Simulated time of the last episode that ended, seconds.
    ended_s: f64,
    /// Actions taken.
    pub decisions: u64,
    /// Why no episode could begin.
    pub error: Option<EnvError>,
}

impl Simulation {
    /// Number `index` of those here.
    pub fn new(index: usize) -> Self {
        Self { index, ..Self::default() }
    }

    /// Data packets sent so far, by every flow of every episode.
    pub fn packets(&self) -> u64 {
        self.packets + self.episode.as_ref().map_or(0, Episode::packets)
    }

    /// Events of the present episode; 0 without one.
    pub fn events(&self) -> u64 {
        self.episode.as_ref().map_or(0, Episode::events)
    }

    /// Simulated time of the present episode, or of the last that ended, seconds.
    pub fn time_s(&self) -> f64 {
        self.episode.as_ref().map_or(self.ended_s, |own| own.now().as_secs_f64())
    }

    /// The next episode is the first of a seed.
    pub fn rewind(&mut self) {
        self.begun = 0;
    }

    /// Takes the answers and goes on to the next decision or the end, unless `stops` says so before: then the next
    /// call goes on from there.
    pub fn go_on(&mut self, board: &Board, stops: &dyn Fn() -> bool) {
        if let Some(episode) = &mut self.episode {
            for (agent, action) in board.answers(self.index).enumerate().take(episode.flows()) {
                self.decisions += u64::from(episode.act(agent, action));
            }
        }
        self.advance(board, stops);
    }

    /// Begins an episode and goes on to its first decision, unless `stops` says so before.
    pub fn begin(
        &mut self,
        source: &EpisodeSource,
        plan: Plan,
        board: &Board,
        stops: &dyn Fn() -> bool,
    ) {
        let Plan { seed, first, progress } = plan;
        if let Some(left) = self.episode.take() {
            self.packets += left.packets();
        }
        let own = episode_seed(seed, first.wrapping_add(self.index as u64), self.begun);
        self.begun += 1;
        board.clear(self.index);
        // Of several that failed at once only the first was told.
        self.error = None;
        match source.begin(own, progress) {
            Ok(episode) => self.episode = Some(episode),
            Err(error) => {
                self.error = Some(error);
                board.set_over(self.index, true);
            }
        }
        self.advance(board, stops);
    }

    fn advance(&mut self, board: &Board, stops: &dyn Fn() -> bool) {
        let Some(episode) = &mut self.episode else { return };
        let part = (episode.end().0 / PARTS.0).clamp(1, PARTS.1);
        while !episode.advance_to(Time(episode.now().0.saturating_add(part))) {
            if stops() {
                return board.none_due(self.index);
            }
        }
        board.update(self.index, episode);
        if episode.is_over()
            && let Some(ended) = self.episode.take()
        {
            self.packets += ended.packets();
            self.ended_s = ended.now().as_secs_f64();
            self.outcome = Some(ended.finish());
        }
    }
}
