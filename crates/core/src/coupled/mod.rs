//! One file per controller that governs several subflows together.
use crate::control::Coupled;
use crate::params::{Param, Params};

/// Entry of the table of coupled controllers.
#[derive(Debug)]
pub struct Spec {
    /// Name in scenario files; equals the file's name.
    pub name: &'static str,
    /// One line for `ackademy list`.
    pub about: &'static str,
    /// RFC or paper.
    pub source: &'static str,
    /// What a scenario may set.
    pub params: &'static [Param],
    /// Makes one for a connection.
    pub build: fn(&Params) -> Box<dyn Coupled>,
}

include!(concat!(env!("OUT_DIR"), "/coupled.rs"));

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}
