//! A scenario as a text that runs in any folder.
use super::spec::LinkSpec;
use super::{ParamSpec, Scenario, ScenarioSpec};
use crate::coupled;
use crate::sim::trace::Trace;

impl Scenario {
    /// The scenario as TOML with every default filled in, and the traces that it then names, to be written
    /// beside it: each trace under a name that follows from its content, each file of a controller
    /// under what `place` makes of its name.
    pub fn portable(&self, place: &dyn Fn(&str) -> String) -> (String, Vec<(String, &Trace)>) {
        let mut spec = self.spec.clone();
        let renamed = |name: &str| {
            let known = self.traces.iter().find(|(known, _)| known == name);
            known.map(|(_, trace)| format!("{:016x}.trace", trace.digest()))
        };
        for link in links(&mut spec) {
            if let Some(name) = &mut link.trace
                && let Some(other) = renamed(name)
            {
                *name = other;
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
        let mut traces: Vec<(String, &Trace)> = Vec::new();
        for (name, trace) in &self.traces {
            let name = renamed(name).expect("each trace is among the traces");
            if traces.iter().all(|(known, _)| *known != name) {
                traces.push((name, trace));
            }
        }
        (text, traces)
    }
}

/// Every link of the file.
fn links(spec: &mut ScenarioSpec) -> impl Iterator<Item = &mut LinkSpec> {
    let dumbbell = spec.dumbbell.as_mut();
    let dumbbell = dumbbell.map(|one| std::iter::once(&mut one.bottleneck).chain(&mut one.reverse));
    let lot = spec.parking_lot.as_mut().map(|lot| &mut lot.bottleneck);
    let two = spec.two_path.as_mut().map(|two| [&mut two.first, &mut two.second]);
    dumbbell.into_iter().flatten().chain(lot).chain(two.into_iter().flatten()).chain(&mut spec.link)
}
