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
