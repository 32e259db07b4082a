//! A run whose links change while it runs, such as by the sliders of a page.
//!
//! A change becomes a step of a schedule of the scenario, and the run is repeated from its start up to where it was:
//! a link may have decided by the earlier rate when a packet leaves that is still in its queue. So a run with
//! changes is the run of the scenario that [`Live::text`] gives.
use crate::rng::Seed;
use crate::scenario::{Scenario, ScenarioError, ScenarioSpec};
use crate::sim::plan::{DelayPlan, LinkPlan, LossSpec, QueueSpec, RatePlan};
use crate::sim::{self, Sim};
use crate::units::{Span, Time};
use std::collections::BTreeMap;
use toml::{Table, Value};

/// A simulation, the scenario that it follows, and the files that this names.
pub struct Live {
    text: String,
    files: BTreeMap<String, Vec<u8>>,
    seed: Seed,
    sample: Span,
    scenario: Scenario,
    sim: Sim,
}

/// A new value from the time reached on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// Rate in Mb/s; 0 is an outage.
    Rate(f64),
    /// Part of packets lost.
    Loss(f64),
    /// Propagation in milliseconds, one way; of a dumbbell, in both directions.
    Delay(f64),
}

impl Live {
    /// A run at time 0 with this crate's controllers. A scenario without time series gets a row every `sample`.
    ///
    /// # Errors
    ///
    /// If the scenario is wrong, or names a file that is not among `files`.
    pub fn new(
        text: &str,
        files: BTreeMap<String, Vec<u8>>,
        seed: Seed,
        sample: Span,
    ) -> Result<Self, ScenarioError> {
        let (scenario, sim) = begin(text, &files, seed, sample)?;
        Ok(Self { text: text.to_owned(), files, seed, sample, scenario, sim })
    }

    /// The scenario with every change so far.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same, checked.
    pub fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    /// Distance of rows of time series.
    pub fn sample_interval(&self) -> Span {
        self.scenario.network.sample_interval
    }

    /// The simulation.
    pub fn sim(&mut self) -> &mut Sim {
        &mut self.sim
    }

    /// Ends the run where it is.
    pub fn finish(self) -> sim::record::Outcome {
        self.sim.finish()
    }

    /// Changes a link, by its place among the links of the plan, from the time reached on.
    ///
    /// # Errors
    ///
    /// If the value is out of range, or the link's value is drawn, recorded or that of no link of the file. The run
    /// is then as before.
    pub fn change(&mut self, link: usize, change: Change) -> Result<(), ScenarioError> {
        let now = self.sim.now();
        let text = self.changed(link, change).map_err(|message| ScenarioError {
            origin: ORIGIN.to_owned(),
            line: 0,
            message,
        })?;
        let (scenario, mut sim) = begin(&text, &self.files, self.seed, self.sample)?;
        sim.run_until(now);
        (self.text, self.scenario, self.sim) = (text, scenario, sim);
        Ok(())
    }

    /// The scenario with this change.
    fn changed(&self, link: usize, change: Change) -> Result<String, String> {
        let mut table: Table = toml::from_str(&self.text).map_err(|error| error.to_string())?;
        let links = &self.scenario.network.links;
        let places = places(&self.scenario.spec, link).ok_or_else(|| {
            format!("link {link}: allowed is one whose rate and delay the scenario says")
        })?;
        let at = self.sim.now();
        let refused =
            |allowed: &str| format!("{}: allowed is a change of {allowed}", links[link].name);
        match change {
            Change::Rate(mbps) => {
                let steps =
                    rates(&links[link]).ok_or_else(|| refused("rate_mbps or rate_schedule"))?;
                keep_reverse(&mut table, &places, &links[link]);
                let own = at_place(&mut table, &places[0])?;
                keep_limit(own, &links[link]);
                put(own, "rate_mbps", "rate_schedule", with_step(steps, at, mbps));
            }
            Change::Loss(ratio) => {
                let steps = losses(&links[link])
                    .ok_or_else(|| refused("independent losses without from_s and until_s"))?;
                let own = at_place(&mut table, &places[0])?;
                put(own, "loss", "loss_schedule", with_step(steps, at, ratio));
            }
            Change::Delay(ms) => {
                for (place, plan) in places.iter().zip(&links[link..]) {
                    let steps =
                        delays(plan).ok_or_else(|| refused("delay_ms or delay_schedule"))?;
                    let own = at_place(&mut table, place)?;
                    keep_limit(own, plan);
                    put(own, "delay_ms", "delay_schedule", with_step(steps, at, ms));
                }
                if let Some(Value::Table(dumbbell)) = table.get_mut("dumbbell") {
                    dumbbell.remove("reverse_delay_ms");
                }
            }
        }
        toml::to_string(&table).map_err(|error| error.to_string())
    }
}

/// A checked scenario and its simulation at time 0.
fn begin(
    text: &str,
    files: &BTreeMap<String, Vec<u8>>,
    seed: Seed,
    sample: Span,
) -> Result<(Scenario, Sim), ScenarioError> {
    let mut load = |name: &str, most: u64| match files.get(name) {
        Some(content) if content.len() as u64 <= most => Ok(content.clone()),
        Some(_) => Err(format!("a file of at most {most} bytes")),
        None => Err(format!("a file that was given, and {name} was not")),
    };
    let mut scenario = Scenario::parse_with(text, ORIGIN, &[], &mut load)?;
    let interval = &mut scenario.network.sample_interval;
    *interval = if *interval == Span::ZERO { sample } else { *interval };
    let sim = Sim::new(&scenario.network, seed, &mut sim::builtin).map_err(|error| {
        ScenarioError { origin: ORIGIN.to_owned(), line: 0, message: error.to_string() }
    })?;
    Ok((scenario, sim))
}

/// Where the file describes the link of this index, and the link behind it if its delay is the same.
fn places(spec: &ScenarioSpec, link: usize) -> Option<Vec<Vec<String>>> {
    let place = |steps: &[&str]| steps.iter().map(|&step| step.to_owned()).collect::<Vec<_>>();
    let is_forward = link.is_multiple_of(2);
    if spec.dumbbell.is_some() {
        return (link == 0)
            .then(|| vec![place(&["dumbbell", "bottleneck"]), place(&["dumbbell", "reverse"])]);
    }
    if let Some(lot) = &spec.parking_lot {
        let is_own = is_forward && link / 2 < lot.hops as usize;
        return is_own.then(|| vec![place(&["parking_lot", "bottleneck"])]);
    }
    if spec.two_path.is_some() {
        let name = ["first", "second"].get(link / 2).filter(|_| is_forward)?;
        return Some(vec![place(&["two_path", name])]);
    }
    (link < spec.link.len()).then(|| vec![place(&["link", &link.to_string()])])
}

/// The table at a place, made if it is absent.
fn at_place<'a>(table: &'a mut Table, place: &[String]) -> Result<&'a mut Table, String> {
    let wrong = || format!("{}: allowed is a table", place.join("."));
    let mut here = table;
    let mut steps = place.iter();
    while let Some(step) = steps.next() {
        let next = here.entry(step.as_str()).or_insert_with(|| Table::new().into());
        let next = match next {
            Value::Array(items) => {
                let index: usize =
                    steps.next().and_then(|index| index.parse().ok()).ok_or_else(wrong)?;
                items.get_mut(index).ok_or_else(wrong)?
            }
            other => other,
        };
        here = next.as_table_mut().ok_or_else(wrong)?;
    }
    Ok(here)
}

/// Puts a schedule in place of a value.
fn put(table: &mut Table, value: &str, schedule: &str, steps: Vec<(Time, f64)>) {
    table.remove(value);
    let pair = |(at, value): (Time, f64)| Value::Array(vec![at.as_secs_f64().into(), value.into()]);
    table.insert(schedule.to_owned(), Value::Array(steps.into_iter().map(pair).collect()));
}

/// The steps with another value from `at` on, until their next one.
fn with_step(mut steps: Vec<(Time, f64)>, at: Time, value: f64) -> Vec<(Time, f64)> {
    let index = steps.partition_point(|step| step.0 < at);
    if steps.get(index).is_some_and(|step| step.0 == at) {
        steps[index].1 = value;
    } else {
        steps.insert(index, (at, value));
    }
    steps
}

fn rates(plan: &LinkPlan) -> Option<Vec<(Time, f64)>> {
    match &plan.rate {
        RatePlan::Constant(rate) => Some(vec![(Time(0), rate.as_mbps())]),
        RatePlan::Schedule(steps) if steps.period().is_none() => {
            Some(steps.steps().iter().map(|&(at, rate)| (at, rate.as_mbps())).collect())
        }
        RatePlan::Schedule(_) | RatePlan::Random { .. } | RatePlan::Trace(_) => None,
    }
}

fn losses(plan: &LinkPlan) -> Option<Vec<(Time, f64)>> {
    match plan.loss {
        None if plan.loss_schedule.is_empty() => Some(vec![(Time(0), 0.0)]),
        None => Some(plan.loss_schedule.clone()),
        Some(LossSpec::Bernoulli { ratio, from_s, until_s: None }) if from_s <= 0.0 => {
            Some(vec![(Time(0), ratio)])
        }
        Some(_) => None,
    }
}

fn delays(plan: &LinkPlan) -> Option<Vec<(Time, f64)>> {
    match &plan.delay {
        DelayPlan::Constant(span) => Some(vec![(Time(0), span.as_millis_f64())]),
        DelayPlan::Schedule(steps) if steps.period().is_none() => {
            Some(steps.steps().iter().map(|&(at, span)| (at, span.as_millis_f64())).collect())
        }
        DelayPlan::Schedule(_) | DelayPlan::Random { .. } => None,
    }
}

/// A limit in bandwidth-delay products stays what it was in bytes.
fn keep_limit(own: &mut Table, plan: &LinkPlan) {
    if let Some(Value::Table(queue)) = own.get_mut("queue")
        && queue.remove("bdp").is_some()
        && let QueueSpec::DropTail { bytes: Some(bytes), .. } = plan.queue
    {
        queue.remove("min_bytes");
        queue.insert("bytes".to_owned(), Value::Integer(bytes as i64));
    }
}

/// The reverse direction of a dumbbell keeps its rate, which by default is that of the bottleneck.
fn keep_reverse(table: &mut Table, places: &[Vec<String>], plan: &LinkPlan) {
    let (RatePlan::Constant(rate), Some(place)) = (&plan.rate, places.get(1)) else { return };
    let Ok(reverse) = at_place(table, place) else { return };
    if !["rate_mbps", "rate_schedule", "rate_random", "trace"]
        .iter()
        .any(|name| reverse.contains_key(*name))
    {
        reverse.insert("rate_mbps".to_owned(), rate.as_mbps().into());
    }
}

/// What errors call the scenario.
const ORIGIN: &str = "scenario.toml";
