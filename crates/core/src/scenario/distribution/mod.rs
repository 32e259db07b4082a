//! Scenarios at random: weighted files or inline tables whose fields are drawn. Everything is read and
//! checked when the file is parsed, at every combination of the draws' ends, so that drawing does no I/O and
//! cannot fail for a value that the file allows.
mod derived;
mod draws;
mod entry;
mod file;
mod interval;
mod traces;

#[cfg(feature = "schema")]
pub use file::FileSpec;
pub use file::fits;

use super::files::Files;
use super::portable::links;
use super::recorded::RecordedSpec;
use super::spec::LinkSpec;
use super::{Scenario, ScenarioError};
use crate::rng::Seed;
use crate::toml_error::Fault;
use entry::{Entry, weight_at};

/// A checked distribution of scenarios.
#[derive(Clone, Debug)]
pub struct Distribution {
    about: String,
    learners: Vec<String>,
    entries: Vec<Entry>,
    /// In the order in which the entries name them first.
    classes: Vec<String>,
    digest: u64,
    origin: String,
}

impl Distribution {
    /// The scenario of this seed at this training progress, of which only the part in [0, 1] counts. Equal
    /// arguments give equal scenarios, and it does no I/O.
    ///
    /// # Errors
    ///
    /// If the drawn values are no scenario. Parsing has tried every combination of the draws' ends, between
    /// which no rule of a scenario fails.
    pub fn draw(&self, seed: Seed, progress: f64) -> Result<Scenario, ScenarioError> {
        Ok(self.draw_of_class(seed, progress)?.0)
    }

    /// As [`draw`](Self::draw), with the place of the scenario's class among [`classes`](Self::classes).
    ///
    /// # Errors
    ///
    /// As there.
    pub fn draw_of_class(
        &self,
        seed: Seed,
        progress: f64,
    ) -> Result<(Scenario, usize), ScenarioError> {
        let entry = self.chosen(seed, progress);
        let drawn = entry.values(seed);
        let mut none = |name: &str, _| Err(format!("a file that was read before, not {name}"));
        let mut files = Files::new(&mut none);
        entry.lend(&mut files);
        let fail = |fault: Fault| {
            let message = format!("{fault} (scenario {} drawn with seed {})", entry.name, seed.0);
            ScenarioError { origin: self.origin.clone(), line: 0, message }
        };
        let (mut spec, network) = entry.resolve(&drawn, &mut files).map_err(fail)?;
        spec.name = Some(format!("{}-{}", entry.name, seed.0));
        let mut recordings = files.recordings;
        let named = |link: &LinkSpec| {
            let rate = link.trace.as_ref().map(|trace| trace.table().whole());
            [rate, link.delay_trace.as_ref().map(RecordedSpec::whole)]
        };
        let used: Vec<_> = links(&mut spec).flat_map(|link| named(link)).flatten().collect();
        recordings.retain(|(own, _)| used.contains(own));
        let (origin, text) = (self.origin.clone(), String::new());
        Ok((Scenario { spec, network, origin, text, recordings }, entry.class))
    }

    /// Place among [`classes`](Self::classes) of the scenario that [`draw`](Self::draw) draws.
    pub fn class(&self, seed: Seed, progress: f64) -> usize {
        self.chosen(seed, progress).class
    }

    fn chosen(&self, seed: Seed, progress: f64) -> &Entry {
        let weights = self.weights(progress);
        let mut left = seed.stream("scenario", 0).uniform() * weights.iter().sum::<f64>();
        let chosen = weights.iter().position(|weight| {
            left -= weight;
            left < 0.0
        });
        // Rounding may leave a little of the last weight.
        let last = weights.iter().rposition(|&weight| weight > 0.0).unwrap_or_default();
        &self.entries[chosen.unwrap_or(last)]
    }

    /// What the file says it is for.
    pub fn about(&self) -> &str {
        &self.about
    }

    /// Patterns of the names of the flows that learn.
    pub fn learners(&self) -> &[String] {
        &self.learners
    }

    /// The most learning flows that a drawn scenario has.
    pub fn agents(&self) -> usize {
        self.entries.iter().map(|entry| entry.agents).max().unwrap_or_default()
    }

    /// The most learning flows of a scenario that can be drawn at this training progress.
    pub fn agents_at(&self, progress: f64) -> usize {
        let drawn = self.entries.iter().filter(|entry| weight_at(&entry.weight, progress) > 0.0);
        drawn.map(|entry| entry.agents).max().unwrap_or_default()
    }

    /// Names of the scenarios that it draws from.
    pub fn names(&self) -> Vec<&str> {
        self.entries.iter().map(|entry| entry.name.as_str()).collect()
    }

    /// Names of the classes of scenarios: those that share a `class`, and by itself each without one.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// The class of each scenario, by its place among [`classes`](Self::classes).
    pub fn class_of_each(&self) -> Vec<usize> {
        self.entries.iter().map(|entry| entry.class).collect()
    }

    /// The weight of each scenario at this training progress; their sum is above 0.
    pub fn weights(&self, progress: f64) -> Vec<f64> {
        self.entries.iter().map(|entry| weight_at(&entry.weight, progress)).collect()
    }

    /// Names the content, files included: equal digests draw equal scenarios.
    pub fn digest(&self) -> u64 {
        self.digest
    }

    /// Where the text came from.
    pub fn origin(&self) -> &str {
        &self.origin
    }
}
