//! A controller with its settings, of which any number of fresh ones are made.
use crate::control::{Coupled, Spec};
use crate::controllers;
use crate::coupled;
use crate::params::{self, Loader, Param, ParamError, ParamValue, Params};

/// An entry of one of the tables of controllers.
#[derive(Clone, Copy, Debug)]
pub enum Entry {
    /// Each flow has its own.
    Plain(&'static Spec),
    /// Subflows have one together.
    Coupled(&'static coupled::Spec),
}

impl Entry {
    /// The controller called `name`, plain or coupled.
    pub fn find(name: &str) -> Option<Self> {
        let plain = controllers::find(name).map(Self::Plain);
        plain.or_else(|| coupled::find(name).map(Self::Coupled))
    }

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain(spec) => spec.name,
            Self::Coupled(spec) => spec.name,
        }
    }

    /// What may be set.
    pub fn params(self) -> &'static [Param] {
        match self {
            Self::Plain(spec) => spec.params,
            Self::Coupled(spec) => spec.params,
        }
    }
}

/// A controller with its settings. It is what a transport keeps to begin again, such as on a new path: every controller
/// that it makes is as at the start, whatever became of those before, and no file is read again.
#[derive(Clone, Debug)]
pub struct Scheme {
    /// Which controller.
    pub entry: Entry,
    /// Its settings, complete and in range.
    pub params: Params,
}

impl Scheme {
    /// The controller called `name`, with these settings, whose files are read already.
    ///
    /// # Errors
    ///
    /// If there is none, or a setting is unknown, out of range or missing.
    pub fn resolve(name: &str, given: &[(String, ParamValue)]) -> Result<Self, ParamError> {
        let entry = Entry::find(name).ok_or_else(|| ParamError {
            name: "controller".to_owned(),
            value: format!("{name:?}"),
            allowed: coupled::all_names(),
        })?;
        Ok(Self { entry, params: Params::resolve(entry.params(), given)? })
    }

    /// With settings whose files are loaded here.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Self::resolve), and if a file cannot be loaded or does not hold what it must.
    pub fn open(
        entry: Entry,
        given: &[(String, ParamValue)],
        load: &mut Loader,
    ) -> Result<Self, ParamError> {
        let opened = params::open(entry.params(), given, load)?;
        Ok(Self { entry, params: Params::resolve(entry.params(), &opened)? })
    }

    /// Makes a fresh one.
    pub fn build(&self) -> Box<dyn Coupled> {
        match self.entry {
            Entry::Plain(spec) => Box::new(controllers::per_flow(spec, self.params.clone())),
            Entry::Coupled(spec) => (spec.build)(&self.params),
        }
    }
}
