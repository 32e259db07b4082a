//! Where episodes come from: one scenario again and again, or a new one each time.
use super::{Episode, Lesson, SchoolError};
use crate::pilot::PilotSpec;
use crate::rng::Seed;
use crate::scenario::{Distribution, Scenario};
use std::sync::Arc;

/// What episodes are made of.
#[derive(Clone, Debug)]
pub enum Source {
    /// The same scenario each time.
    Scenario(Box<Scenario>),
    /// A scenario drawn for each episode.
    Distribution(Box<Distribution>),
}

/// Makes episodes.
#[derive(Clone, Debug)]
pub struct Course {
    lessons: Lessons,
    spec: Arc<PilotSpec>,
    learners: Vec<String>,
    agents: usize,
}

#[derive(Clone, Debug)]
enum Lessons {
    Same(Lesson),
    Drawn(Box<Distribution>),
}

impl Course {
    /// See [`Lesson::new`].
    ///
    /// # Errors
    ///
    /// As there; the scenarios of a distribution are looked at when they are drawn, except the first.
    pub fn new(
        source: Source,
        spec: &Arc<PilotSpec>,
        learners: Vec<String>,
        agents: usize,
    ) -> Result<Self, SchoolError> {
        let lessons = match source {
            Source::Scenario(scenario) => {
                Lessons::Same(Lesson::new(&scenario, spec, &learners, agents)?)
            }
            Source::Distribution(distribution) => {
                Lesson::new(&distribution.draw(Seed(0), 0.0)?, spec, &learners, agents)?;
                Lessons::Drawn(distribution)
            }
        };
        Ok(Self { lessons, spec: Arc::clone(spec), learners, agents })
    }

    /// The episode of this seed, which a distribution draws its scenario from, too, at this training
    /// progress in [0, 1].
    ///
    /// # Errors
    ///
    /// See [`Lesson::new`] and [`Lesson::begin`].
    pub fn begin(&self, seed: Seed, progress: f64) -> Result<Episode, SchoolError> {
        match &self.lessons {
            Lessons::Same(lesson) => lesson.begin(seed),
            Lessons::Drawn(distribution) => {
                let scenario = distribution.draw(seed, progress)?;
                Lesson::new(&scenario, &self.spec, &self.learners, self.agents)?.begin(seed)
            }
        }
    }

    /// What the flows see and do.
    pub fn spec(&self) -> &PilotSpec {
        &self.spec
    }

    /// Seats of every episode.
    pub fn agents(&self) -> usize {
        self.agents
    }
}
