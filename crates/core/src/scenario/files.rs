//! The files that a scenario names.
use crate::params::{Content, Loader, Reader as FileReader};
use crate::sim::trace::{self, Trace};
use std::sync::Arc;

/// What links need beyond their own fields.
pub(super) struct Reader<'a, 'b> {
    /// Bounds how often a link may change.
    pub(super) duration_s: f64,
    pub(super) files: &'a mut Files<'b>,
}

/// The files that a scenario names.
pub(super) struct Files<'a> {
    load: &'a mut Loader<'a>,
    /// Each read once, by name.
    pub(super) traces: Vec<(String, Arc<Trace>)>,
    /// Files and folders of controllers, each read once by name and reader.
    pub(super) contents: Vec<(FileReader, Content)>,
}

impl<'a> Files<'a> {
    pub(super) fn new(load: &'a mut Loader<'a>) -> Self {
        Self { load, traces: Vec::new(), contents: Vec::new() }
    }

    pub(super) fn trace(&mut self, name: &str) -> Result<Arc<Trace>, String> {
        if let Some((_, trace)) = self.traces.iter().find(|(known, _)| known == name) {
            return Ok(Arc::clone(trace));
        }
        let content = (self.load)(name, trace::MAX_BYTES)?;
        let trace = Arc::new(Trace::parse(&content, name).map_err(|error| error.to_string())?);
        self.traces.push((name.to_owned(), Arc::clone(&trace)));
        Ok(trace)
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
