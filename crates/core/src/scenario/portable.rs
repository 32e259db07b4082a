//! A scenario as a text that runs in any folder.
use super::recorded::{RecordedSpec, TraceSpec};
use super::spec::LinkSpec;
use super::{ParamSpec, Scenario, ScenarioSpec};
use crate::coupled;
use crate::sim::series::Recorded;

impl Scenario {
    /// The scenario as TOML with every default filled in, and the traces that it then names, to be written
    /// beside it: each trace under a name that follows from its content, each file of a controller
    /// under what `place` makes of its name.
    pub fn portable(&self, place: &dyn Fn(&str) -> String) -> (String, Vec<(String, &Recorded)>) {
        let mut spec = self.spec.clone();
        for link in links(&mut spec) {
            if let Some(trace) = &mut link.trace {
                let own = trace.table();
                let known = self.recording(&own, |known| !matches!(known, Recorded::Delays(_)));
                *trace = match known.map_or(own.clone(), |known| moved(&own, known)) {
                    RecordedSpec { file, interval_ms: None, time: None, from_s: None, .. } => {
                        TraceSpec::File(file)
                    }
                    table => TraceSpec::Table(table),
                };
            }
            if let Some(own) = &mut link.delay_trace
                && let Some(known) =
                    self.recording(own, |known| matches!(known, Recorded::Delays(_)))
            {
                *own = moved(own, known);
            }
        }
        for flow in &mut spec.flow {
            let settings = coupled::settings(&flow.controller).unwrap_or_default();
            for setting in settings.iter().filter(|setting| setting.kind.is_file()) {
                if let Some(ParamSpec::Word(name)) = flow.params.get_mut(setting.name) {
                    *name = place(name);
                }
            }
        }
        let text = toml::to_string(&spec).expect("a parsed scenario can be written");
        let mut files: Vec<(String, &Recorded)> = Vec::new();
        for (_, recorded) in &self.recordings {
            let name = file_of(recorded);
            if files.iter().all(|(known, _)| *known != name) {
                files.push((name, recorded));
            }
        }
        (text, files)
    }

    fn recording(&self, spec: &RecordedSpec, is_kind: fn(&Recorded) -> bool) -> Option<&Recorded> {
        let whole = spec.whole();
        let mut known = self.recordings.iter();
        known.find(|(own, known)| *own == whole && is_kind(known)).map(|(_, known)| known)
    }
}

/// The name of a recording's file, which follows from its content.
fn file_of(recorded: &Recorded) -> String {
    let kind = match recorded {
        Recorded::Opportunities(_) => "trace",
        Recorded::Rates(_) => "rates",
        Recorded::Delays(_) => "delays",
    };
    format!("{:016x}.{kind}", recorded.digest())
}

/// What names a recording that is written as [`Recorded::to_text`] has it.
fn moved(spec: &RecordedSpec, recorded: &Recorded) -> RecordedSpec {
    let column = |number: &str| match recorded {
        Recorded::Opportunities(_) => None,
        Recorded::Rates(_) | Recorded::Delays(_) => Some(number.to_owned()),
    };
    RecordedSpec {
        from_s: spec.from_s,
        time: column("1"),
        column: column("2"),
        ..RecordedSpec::named(&file_of(recorded))
    }
}

/// Every link of the file.
pub(super) fn links(spec: &mut ScenarioSpec) -> impl Iterator<Item = &mut LinkSpec> {
    let dumbbell = spec.dumbbell.as_mut();
    let dumbbell = dumbbell.map(|one| std::iter::once(&mut one.bottleneck).chain(&mut one.reverse));
    let lot = spec.parking_lot.as_mut().map(|lot| &mut lot.bottleneck);
    let two = spec.two_path.as_mut().map(|two| [&mut two.first, &mut two.second]);
    dumbbell.into_iter().flatten().chain(lot).chain(two.into_iter().flatten()).chain(&mut spec.link)
}
