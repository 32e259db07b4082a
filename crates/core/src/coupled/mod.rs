//! One file per controller that governs several subflows together.
use crate::control::Coupled;
use crate::controllers;
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
    /// Which subflows one instance governs.
    pub scope: Scope,
    /// The plain controller that takes its place for a flow that the kernel runs over plain TCP.
    pub single: &'static str,
    /// Makes one for a connection or a host, as `scope` says.
    pub build: fn(&Params) -> Box<dyn Coupled>,
}

/// Which subflows one instance of a coupled controller governs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Those of one connection.
    Connection,
    /// Those of every connection of the host whose flow names the controller.
    Host,
}

impl Scope {
    /// As `ackademy list` prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connection => "connection",
            Self::Host => "host",
        }
    }
}

pub mod shared;

include!(concat!(env!("OUT_DIR"), "/coupled.rs"));

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// All names, for an error message.
pub fn names() -> String {
    ALL.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

/// The settings of the controller called `name`, plain or coupled.
pub fn settings(name: &str) -> Option<&'static [Param]> {
    controllers::find(name).map(|spec| spec.params).or_else(|| find(name).map(|spec| spec.params))
}

/// All names, plain and coupled, for an error message.
pub fn all_names() -> String {
    match ALL {
        [] => controllers::names(),
        _ => format!("{}; coupled: {}", controllers::names(), names()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_plain_controller_of_every_coupled_one_is_in_the_table() {
        for spec in ALL {
            assert!(controllers::find(spec.single).is_some(), "{}: {}", spec.name, spec.single);
            assert!(controllers::find(spec.name).is_none(), "{} is plain too", spec.name);
        }
    }
}
