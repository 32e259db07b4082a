//! The files that a scenario names.
use super::check::{MBPS_MAX, MILLIS_MAX};
use super::recorded::{RecordedSpec, TraceSpec};
use crate::params::{Content, Loader, Reader as FileReader};
use crate::sim::plan::{DelayPlan, RatePlan};
use crate::sim::series::{self, Layout, Recorded};
use crate::sim::steps::Steps;
use crate::sim::trace::{self, Trace, TraceError};
use crate::toml_error::Fault;
use crate::units::{Rate, Span};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// What links need beyond their own fields.
pub(super) struct Reader<'a, 'b> {
    /// Bounds how often a link may change.
    pub(super) duration_s: f64,
    pub(super) files: &'a mut Files<'b>,
}

/// The files that a scenario names.
pub(super) struct Files<'a> {
    load: &'a mut Loader<'a>,
    /// Each read once.
    pub(super) recordings: Vec<(RecordedSpec, Recorded)>,
    /// Files and folders of controllers, each read once by name and reader.
    pub(super) contents: Vec<(FileReader, Content)>,
}

impl<'a> Files<'a> {
    pub(super) fn new(load: &'a mut Loader<'a>) -> Self {
        Self { load, recordings: Vec::new(), contents: Vec::new() }
    }

    /// The recording of a link's rate.
    pub(super) fn rate(
        &mut self,
        spec: &RecordedSpec,
        layout: Option<&Layout>,
    ) -> Result<Recorded, String> {
        let read = |content: &[u8]| match layout {
            None => {
                Trace::parse(content, &spec.file).map(|trace| Recorded::Opportunities(trace.into()))
            }
            Some(layout) => series::parse(content, &spec.file, layout, Rate).map(Recorded::Rates),
        };
        let bytes_max = if layout.is_some() { series::MAX_BYTES } else { trace::MAX_BYTES };
        self.recording(spec, bytes_max, |known| !matches!(known, Recorded::Delays(_)), read)
    }

    /// The recording of a link's delay.
    pub(super) fn delay(
        &mut self,
        spec: &RecordedSpec,
        layout: &Layout,
    ) -> Result<Steps<Span>, String> {
        let read =
            |content: &[u8]| series::parse(content, &spec.file, layout, Span).map(Recorded::Delays);
        let is_delay = |known: &Recorded| matches!(known, Recorded::Delays(_));
        match self.recording(spec, series::MAX_BYTES, is_delay, read)? {
            Recorded::Delays(steps) => Ok(steps),
            _ => unreachable!("a delay was asked for"),
        }
    }

    fn recording(
        &mut self,
        spec: &RecordedSpec,
        bytes_max: u64,
        is_kind: impl Fn(&Recorded) -> bool,
        read: impl Fn(&[u8]) -> Result<Recorded, TraceError>,
    ) -> Result<Recorded, String> {
        let spec = spec.whole();
        let mut recordings = self.recordings.iter();
        if let Some((_, known)) = recordings.find(|(own, known)| *own == spec && is_kind(known)) {
            return Ok(known.clone());
        }
        let content = (self.load)(&spec.file, bytes_max)?;
        if let Some(asked) = &spec.sha256 {
            let found = sha256(&content);
            if !found.eq_ignore_ascii_case(asked) {
                return Err(format!("of the sha256 {asked}, not {found}"));
            }
        }
        let recorded = read(&content).map_err(|error| error.to_string())?;
        self.recordings.push((spec, recorded.clone()));
        Ok(recorded)
    }

    /// What the file or folder called `name` holds for a controller.
    pub(super) fn content(&mut self, name: &str, reader: FileReader) -> Result<Content, String> {
        let mut contents = self.contents.iter();
        if let Some((_, content)) =
            contents.find(|(known, content)| content.path == name && *known == reader)
        {
            return Ok(content.clone());
        }
        let content = Content::load(name, reader, self.load)?;
        self.contents.push((reader, content.clone()));
        Ok(content)
    }
}

impl TraceSpec {
    /// What it makes of a link's rate.
    pub(super) fn rate(&self, path: &str, files: &mut Files) -> Result<RatePlan, Fault> {
        let spec = self.table();
        let layout = spec.layout(path, MBPS_MAX)?;
        let place = spec.place(path)?;
        let refused = |message: String| {
            let what = if layout.is_some() { "a file of rates" } else { "a mahimahi trace" };
            Fault::new(path, format!("{:?}", spec.file), format!("{what} ({message})"))
        };
        match files.rate(&spec, layout.as_ref()).map_err(refused)? {
            Recorded::Opportunities(trace) if place == Span::ZERO => Ok(RatePlan::Trace(trace)),
            Recorded::Opportunities(trace) => Ok(RatePlan::Trace(trace.begun_at(place).into())),
            Recorded::Rates(steps) if steps.values().all(|rate| rate.0 == 0) => {
                let allowed = "a file of rates, one of them above 0";
                Err(Fault::new(path, format!("{:?}", spec.file), allowed))
            }
            Recorded::Rates(steps) => Ok(RatePlan::Schedule(steps.begun_at(place))),
            Recorded::Delays(_) => unreachable!("a rate was asked for"),
        }
    }
}

impl RecordedSpec {
    /// What it makes of a link's delay.
    pub(super) fn delay(&self, path: &str, files: &mut Files) -> Result<DelayPlan, Fault> {
        let Some(layout) = self.layout(path, MILLIS_MAX)? else {
            let allowed = "given, or time and column";
            return Err(Fault::new(&format!("{path}.interval_ms"), "absent", allowed));
        };
        let place = self.place(path)?;
        let steps = files.delay(self, &layout).map_err(|message| {
            Fault::new(path, format!("{:?}", self.file), format!("a file of delays ({message})"))
        })?;
        Ok(DelayPlan::Schedule(steps.begun_at(place)))
    }
}

fn sha256(content: &[u8]) -> String {
    let mut text = String::new();
    for byte in Sha256::digest(content) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
