//! From the text of a distribution to a checked one.
use super::Distribution;
use super::draws::{Draw, DrawSpec, Drawn};
use super::entry::{Entry, LimitSpec, Source, checked_limits, order, weight_at};
use super::interval::plain;
use crate::coupled;
use crate::digest::{EMPTY, fnv1a};
use crate::params::Loader;
use crate::scenario::check::duplicate;
use crate::scenario::check::number;
use crate::scenario::files::Files;
use crate::scenario::network::count_flows;
use crate::scenario::recorded::RecordedSpec;
use crate::scenario::{ScenarioError, ScenarioSpec};
use crate::sim::plan::{ConnectionPlan, NetworkPlan};
use crate::sim::series::Recorded;
use crate::toml_error;
use crate::toml_error::Fault;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use toml::{Table, Value};

/// A distribution's text, and where it came from.
struct Reader<'a> {
    text: &'a str,
    origin: &'a str,
}

/// A distribution file.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct FileSpec {
    /// What it is for, in a line.
    #[serde(default)]
    about: String,
    /// Patterns of the names of the flows that learn; all flows if absent.
    learners: Option<Vec<String>>,
    /// What is drawn, by the dotted path of the field.
    #[serde(default)]
    draw: BTreeMap<String, DrawSpec>,
    /// Draws that break a limit are repeated.
    #[serde(default)]
    limit: Vec<LimitSpec>,
    /// The scenarios; at least one.
    #[serde(default)]
    scenario: Vec<EntrySpec>,
}

/// A scenario that is drawn from: a file, or an inline table.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
struct EntrySpec {
    /// Name in tables; the file's name if absent.
    name: Option<String>,
    /// Scenarios of one class are counted together; the name if absent.
    class: Option<String>,
    /// How often it is drawn beside the others: a number, or pairs [training progress, weight]. Default 1.
    #[cfg_attr(feature = "schema", schemars(with = "Option<serde_json::Value>"))]
    weight: Option<Value>,
    /// A scenario file, relative to this file.
    file: Option<String>,
    /// The scenario itself; fields that are drawn may be absent.
    #[cfg_attr(feature = "schema", schemars(with = "Option<ScenarioSpec>"))]
    inline: Option<Table>,
    /// What is drawn, by the dotted path of the field.
    #[serde(default)]
    draw: BTreeMap<String, DrawSpec>,
    /// Draws that break a limit are repeated.
    #[serde(default)]
    limit: Vec<LimitSpec>,
}

impl Distribution {
    /// Parses a distribution; `load` reads the files that it and its scenarios name, relative to it.
    ///
    /// # Errors
    ///
    /// See [`ScenarioError`]; also if some value that may be drawn would be refused in a scenario.
    pub fn parse(text: &str, origin: &str, load: &mut Loader) -> Result<Self, ScenarioError> {
        Reader { text, origin }.read(load)
    }
}

impl Reader<'_> {
    fn read(&self, load: &mut Loader) -> Result<Distribution, ScenarioError> {
        let spec: FileSpec = toml_error::read(self.text).map_err(|(line, message)| {
            ScenarioError { origin: self.origin.to_owned(), line, message }
        })?;
        let learners = spec.learners.unwrap_or_else(|| vec!["*".to_owned()]);
        if learners.is_empty() || learners.iter().any(String::is_empty) {
            let allowed = "patterns of flows' names, such as \"learner*\"";
            return Err(self.fail(&Fault::new("learners", format!("{learners:?}"), allowed)));
        }
        if spec.scenario.is_empty() {
            return Err(self.fail(&Fault::new("scenario", "absent", "one [[scenario]] or more")));
        }
        let mut entries = Vec::with_capacity(spec.scenario.len());
        let mut classes = Vec::new();
        for (index, own) in spec.scenario.into_iter().enumerate() {
            let class = own.class.clone();
            let limits = (spec.limit.as_slice(), own.limit.clone());
            let mut entry = self.entry(index, own, &spec.draw, load)?;
            self.limit(index, &mut entry, (limits.0, &limits.1))?;
            entry.class = place_of(&mut classes, class.unwrap_or_else(|| entry.name.clone()));
            entry.agents = self.try_ends(index, &mut entry, &learners, load)?;
            entries.push(entry);
        }
        if let Some((index, name)) = duplicate(entries.iter().map(|entry| entry.name.as_str())) {
            let field = format!("scenario[{index}].name");
            let allowed = "a name of its own for every scenario";
            return Err(self.fail(&Fault::new(&field, format!("{name:?}"), allowed)));
        }
        self.check_weights(&entries)?;
        Ok(Distribution {
            about: spec.about,
            learners,
            digest: digest(self.text, &entries),
            origin: self.origin.to_owned(),
            entries,
            classes,
        })
    }

    /// A scenario of the list, read but not tried.
    fn entry(
        &self,
        index: usize,
        own: EntrySpec,
        common: &BTreeMap<String, DrawSpec>,
        load: &mut Loader,
    ) -> Result<Entry, ScenarioError> {
        let here = format!("scenario[{index}]");
        let weight = self.weight(&format!("{here}.weight"), own.weight.as_ref())?;
        let (source, table) = match (own.file, own.inline) {
            (Some(name), None) => self.scenario_file(&format!("{here}.file"), name, load)?,
            (None, Some(table)) => {
                let place = ["scenario".to_owned(), index.to_string(), "inline".to_owned()];
                (Source::Inline(place.to_vec()), table)
            }
            (file, _) => {
                let value = if file.is_some() { "file and inline" } else { "absent" };
                let allowed = "exactly one of file, inline";
                return Err(self.fail(&Fault::new(&format!("{here}.file"), value, allowed)));
            }
        };
        let name = own.name.unwrap_or_else(|| match (&source, table.get("name")) {
            (_, Some(Value::String(name))) => name.clone(),
            (Source::File(file, _), _) => stem(file).to_owned(),
            (Source::Inline(_), _) => format!("scenario{index}"),
        });
        let mut draws = Vec::new();
        let place = |path: &String, own: bool| {
            let tail = ["draw".to_owned(), path.clone()];
            if own {
                [vec!["scenario".to_owned(), index.to_string()], tail.to_vec()].concat()
            } else {
                tail.to_vec()
            }
        };
        let shared = common.iter().filter(|(path, _)| !own.draw.contains_key(*path));
        let all = shared.map(|draw| (draw, false)).chain(own.draw.iter().map(|draw| (draw, true)));
        for ((path, spec), is_own) in all {
            let place = place(path, is_own);
            let draw = Draw::new(path, place.clone(), spec);
            draws.push(draw.map_err(|fault| self.fail_at(&place, &fault))?);
        }
        // Which list a draw stands in does not change what is drawn.
        draws.sort_by(|one, other| one.path.cmp(&other.path));
        self.check_targets(&draws)?;
        let derived =
            order(&draws).map_err(|(index, fault)| self.fail_at(&draws[index].place, &fault))?;
        let (recordings, contents, limits) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Entry {
            name,
            class: 0,
            agents: 0,
            weight,
            table,
            draws,
            derived,
            limits,
            recordings,
            contents,
            source,
        })
    }

    /// Adds the limits of all scenarios and of this one.
    fn limit(
        &self,
        index: usize,
        entry: &mut Entry,
        (common, own): (&[LimitSpec], &[LimitSpec]),
    ) -> Result<(), ScenarioError> {
        let mut limits = checked_limits(entry, "limit", common);
        if let Ok(found) = &mut limits {
            let field = format!("scenario[{index}].limit");
            found.extend(checked_limits(entry, &field, own).map_err(|fault| self.fail(&fault))?);
        }
        entry.limits = limits.map_err(|fault| self.fail(&fault))?;
        Ok(())
    }

    /// Of two draws of one field the second would silently hold.
    fn check_targets(&self, draws: &[Draw]) -> Result<(), ScenarioError> {
        let mut seen = BTreeSet::new();
        for draw in draws {
            if let Some(twice) = draw.targets.iter().find(|target| !seen.insert(*target)) {
                let allowed = "a field that nothing else draws";
                let fault = Fault::new(&draw.label(), twice.join("."), allowed);
                return Err(self.fail_at(&draw.place, &fault));
            }
        }
        Ok(())
    }

    /// The scenario in a file, with the files that it names relative to the distribution.
    fn scenario_file(
        &self,
        field: &str,
        name: String,
        load: &mut Loader,
    ) -> Result<(Source, Table), ScenarioError> {
        let bytes = load(&name, SCENARIO_BYTES_MAX).and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| "a scenario file, which is UTF-8".to_owned())
        });
        let text =
            bytes.map_err(|allowed| self.fail(&Fault::new(field, format!("{name:?}"), allowed)))?;
        let mut table: Table = toml_error::read(&text).map_err(|(line, message)| {
            ScenarioError { origin: self.beside(&name), line, message }
        })?;
        if let Some((folder, _)) = name.rsplit_once('/') {
            move_files(&mut table, folder);
        }
        Ok((Source::File(name, text), table))
    }

    /// A number, or points of a line over training progress.
    fn weight(&self, field: &str, value: Option<&Value>) -> Result<Vec<(f64, f64)>, ScenarioError> {
        let Some(value) = value else { return Ok(vec![(0.0, 1.0)]) };
        let points = match (plain(value), value.as_array()) {
            (Some(weight), _) => Some(vec![(0.0, weight)]),
            (None, Some(points)) => points.iter().map(point).collect(),
            _ => None,
        };
        let points = points.filter(|points: &Vec<_>| {
            !points.is_empty()
                && points.windows(2).all(|pair| pair[0].0 < pair[1].0)
                && points.iter().all(|point| (0.0..=1.0).contains(&point.0))
        });
        let allowed = "a number, or pairs [progress, weight] with progress rising in [0, 1]";
        let points = points.ok_or_else(|| self.fail(&Fault::new(field, value, allowed)))?;
        for point in &points {
            number(field, point.1, 0.0..=1e9).map_err(|fault| self.fail(&fault))?;
        }
        Ok(points)
    }

    /// Between two points of any scenario the sum is a line, so that it is above 0 if it is at all points.
    fn check_weights(&self, entries: &[Entry]) -> Result<(), ScenarioError> {
        let points = entries.iter().flat_map(|entry| entry.weight.iter().map(|point| point.0));
        for at in points {
            let sum: f64 = entries.iter().map(|entry| weight_at(&entry.weight, at)).sum();
            if sum <= 0.0 {
                let value = format!("{sum} in all at progress {at}");
                let allowed = "weights of which one at least is above 0 at any progress";
                return Err(self.fail(&Fault::new("scenario[0].weight", value, allowed)));
            }
        }
        Ok(())
    }

    /// Tries every combination of the draws' ends, which loads every file that may be needed, and
    /// returns the most learning flows. The rules of a scenario are bounds on what rises or falls with each
    /// number, so that none fails between ends at which all hold.
    fn try_ends(
        &self,
        index: usize,
        entry: &mut Entry,
        learners: &[String],
        load: &mut Loader,
    ) -> Result<usize, ScenarioError> {
        let ends: Vec<Vec<Drawn>> = entry.draws.iter().map(Draw::ends).collect();
        let mut agents = 0;
        for combination in self.by_flows(index, entry, &ends)? {
            let values = entry.complete(combined(&ends, combination));
            let mut files = Files::new(load);
            entry.lend(&mut files);
            let known = files.recordings.len();
            let resolved =
                entry.resolve(&values, &mut files).map_err(|fault| self.refused(entry, &fault))?;
            let found = files.recordings.split_off(known).into_iter();
            let found: Vec<_> = found.filter(|found| !is_drawn(found, &values)).collect();
            entry.contents = files.contents;
            entry.recordings.extend(found);
            agents = agents.max(self.learning(index, &resolved.0, &resolved.1, learners)?);
        }
        Ok(agents)
    }

    /// The combinations of the draws' ends, those of the fewest flows first. Flows take most of the time
    /// that trying them takes: they are counted before, so that too many are refused at once.
    fn by_flows(
        &self,
        index: usize,
        entry: &Entry,
        ends: &[Vec<Drawn>],
    ) -> Result<Vec<usize>, ScenarioError> {
        let combinations = self.combinations(index, ends)?;
        let (mut counts, mut flows) = (Vec::with_capacity(combinations), 0);
        for combination in 0..combinations {
            // What cannot be read is refused when it is tried.
            let spec = entry.spec(&entry.complete(combined(ends, combination))).ok();
            let counted = spec.map_or(Ok(0.0), |spec| count_flows(&spec));
            let count = counted.map_err(|fault| self.refused(entry, &fault))? as usize;
            flows += count;
            self.check_work(index, flows, combinations)?;
            counts.push((count, combination));
        }
        counts.sort_unstable();
        Ok(counts.into_iter().map(|(_, combination)| combination).collect())
    }

    /// How many combinations the draws' ends have.
    fn combinations(&self, index: usize, ends: &[Vec<Drawn>]) -> Result<usize, ScenarioError> {
        let found = ends.iter().try_fold(1_usize, |all, ends| all.checked_mul(ends.len()));
        found.filter(|&all| all <= COMBINATIONS_MAX).ok_or_else(|| {
            let field = format!("scenario[{index}].draw");
            let value = format!("{} draws", ends.len());
            let allowed = format!(
                "so few that the ends of ranges and the choices have at most {COMBINATIONS_MAX} combinations"
            );
            self.fail(&Fault::new(&field, value, allowed))
        })
    }

    /// Ends of very many flows would be tried for minutes; `flows` are those counted so far.
    fn check_work(&self, index: usize, flows: usize, ends: usize) -> Result<(), ScenarioError> {
        if flows <= FLOWS_TRIED_MAX {
            return Ok(());
        }
        let field = format!("scenario[{index}].draw");
        let allowed = format!(
            "draws whose {ends} combinations of ends have at most {FLOWS_TRIED_MAX} flows in all"
        );
        Err(self.fail(&Fault::new(&field, format!("{flows} flows or more"), allowed)))
    }

    /// How many flows learn, each subflow for itself; at least one must.
    fn learning(
        &self,
        index: usize,
        spec: &ScenarioSpec,
        network: &NetworkPlan,
        learners: &[String],
    ) -> Result<usize, ScenarioError> {
        let names = spec.entry_names();
        let learns = |plan: &&ConnectionPlan| {
            learners.iter().any(|pattern| fits(pattern, &names[plan.entry]))
        };
        let learning = network.connections.iter().filter(learns);
        let count = learning.map(|plan| plan.subflows.len()).sum();
        if count == 0 {
            let names = names.join(", ");
            let allowed =
                format!("patterns one of which fits a flow of scenario[{index}]: {names}");
            return Err(self.fail(&Fault::new("learners", format!("{learners:?}"), allowed)));
        }
        Ok(count)
    }

    /// The error for what a scenario may not be: where the draw stands that makes it so, or else where
    /// the scenario says so itself.
    fn refused(&self, entry: &Entry, fault: &Fault) -> ScenarioError {
        let blamed = entry
            .draws
            .iter()
            .find(|draw| draw.targets.iter().any(|target| fault.lies_in(&target.join("."))));
        if let Some(draw) = blamed {
            let fault = Fault { path: draw.label(), ..fault.clone() };
            return self.fail_at(&draw.place, &fault);
        }
        match &entry.source {
            Source::Inline(place) => {
                let own = fault.path.replace('[', ".").replace(']', "");
                let steps: Vec<String> =
                    place.iter().cloned().chain(own.split('.').map(str::to_owned)).collect();
                let path = format!("scenario[{}].inline.{}", place[1], fault.path);
                self.fail_at(&steps, &Fault { path, ..fault.clone() })
            }
            Source::File(name, text) => ScenarioError {
                origin: self.beside(name),
                line: toml_error::line_of_path(text, &fault.path),
                message: format!("{fault} (a scenario of {})", toml_error::one_line(self.origin)),
            },
        }
    }

    /// The error for a fault of this file, at the line of its path.
    fn fail(&self, fault: &Fault) -> ScenarioError {
        let line = toml_error::line_of_path(self.text, &fault.path);
        ScenarioError { origin: self.origin.to_owned(), line, message: fault.to_string() }
    }

    /// The error for a fault at the steps of a place.
    fn fail_at(&self, place: &[String], fault: &Fault) -> ScenarioError {
        let line = toml_error::line_of(self.text, place.iter().map(String::as_str));
        ScenarioError { origin: self.origin.to_owned(), line, message: fault.to_string() }
    }

    /// The path of a file that is named relative to this one.
    fn beside(&self, name: &str) -> String {
        let name = toml_error::one_line(name);
        match self.origin.rsplit_once('/') {
            Some((folder, _)) if !name.starts_with('/') => format!("{folder}/{name}"),
            _ => name,
        }
    }
}

/// Whether a pattern, in which `*` stands for any characters and `?` for one, is this name.
pub fn fits(pattern: &str, name: &str) -> bool {
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    // Row by row: which beginnings of the name the beginning of the pattern fits.
    let mut fit = vec![false; name.len() + 1];
    fit[0] = true;
    for &symbol in &pattern {
        let mut next = vec![false; name.len() + 1];
        next[0] = symbol == '*' && fit[0];
        for (at, &own) in name.iter().enumerate() {
            next[at + 1] = match symbol {
                '*' => next[at] || fit[at + 1],
                '?' => fit[at],
                _ => fit[at] && symbol == own,
            };
        }
        fit = next;
    }
    fit[name.len()]
}

/// A pair of numbers.
fn point(value: &Value) -> Option<(f64, f64)> {
    match value.as_array()?.as_slice() {
        [at, weight] => Some((plain(at)?, plain(weight)?)),
        _ => None,
    }
}

/// Whether a trace is one of those drawn, which are not files.
fn is_drawn((_, found): &(RecordedSpec, Recorded), values: &[Drawn]) -> bool {
    let Recorded::Opportunities(trace) = found else { return false };
    values.iter().any(|(_, drawn)| drawn.as_ref().is_some_and(|drawn| Arc::ptr_eq(drawn, trace)))
}

/// Makes the names of files in a scenario relative to the folder that `folder` is relative to.
fn move_files(table: &mut Table, folder: &str) {
    let moved = |value: &mut Value| {
        if let Value::String(name) = value
            && !name.starts_with('/')
        {
            *name = format!("{folder}/{name}");
        }
    };
    for (topology, links) in [
        ("dumbbell", ["bottleneck", "reverse"].as_slice()),
        ("parking_lot", &["bottleneck"]),
        ("two_path", &["first", "second"]),
    ] {
        for link in links {
            let link = table.get_mut(topology).and_then(|value| value.get_mut(link));
            if let Some(link) = link {
                recorded_files(link, &moved);
            }
        }
    }
    for link in list_of(table, "link") {
        recorded_files(link, &moved);
    }
    for flow in list_of(table, "flow") {
        let controller = flow.get("controller").and_then(Value::as_str).unwrap_or_default();
        let settings = coupled::settings(controller).unwrap_or_default();
        for setting in settings.iter().filter(|setting| setting.kind.is_file()) {
            flow.get_mut("params").and_then(|params| params.get_mut(setting.name)).map(moved);
        }
    }
}

/// Shows the names of the files of a link's recordings.
fn recorded_files(link: &mut Value, each: &dyn Fn(&mut Value)) {
    for field in ["trace", "delay_trace"] {
        match link.get_mut(field) {
            Some(Value::Table(table)) => table.get_mut("file").map(each),
            other => other.map(each),
        };
    }
}

fn list_of<'a>(table: &'a mut Table, name: &str) -> &'a mut [Value] {
    table.get_mut(name).and_then(Value::as_array_mut).map(Vec::as_mut_slice).unwrap_or_default()
}

/// The place of a name in a list, at the end if it is new.
fn place_of(names: &mut Vec<String>, name: String) -> usize {
    names.iter().position(|known| *known == name).unwrap_or_else(|| {
        names.push(name);
        names.len() - 1
    })
}

fn stem(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or_default();
    name.strip_suffix(".toml").unwrap_or(name)
}

/// One of the combinations of the draws' ends; the first draw's change fastest.
fn combined(ends: &[Vec<Drawn>], combination: usize) -> Vec<Drawn> {
    let mut rest = combination;
    let mut pick = |ends: &Vec<Drawn>| {
        let chosen = ends[rest % ends.len()].clone();
        rest /= ends.len();
        chosen
    };
    ends.iter().map(&mut pick).collect()
}

/// FNV-1a over the text, the scenarios' and what their files hold.
fn digest(text: &str, entries: &[Entry]) -> u64 {
    let mut hash = fnv1a(EMPTY, text.as_bytes());
    for entry in entries {
        if let Source::File(_, text) = &entry.source {
            hash = fnv1a(hash, text.as_bytes());
        }
        for (_, recorded) in &entry.recordings {
            hash = fnv1a(hash, &recorded.digest().to_le_bytes());
        }
        for (_, content) in &entry.contents {
            hash = fnv1a(hash, &content.digest.to_le_bytes());
        }
    }
    hash
}

/// Largest scenario file, in bytes.
const SCENARIO_BYTES_MAX: u64 = 1 << 22;

/// Most combinations of ends: twelve ranges, tried in a tenth of a second.
const COMBINATIONS_MAX: usize = 4096;
/// Flows of all combinations together: they take about five seconds.
const FLOWS_TRIED_MAX: usize = 1_000_000;
