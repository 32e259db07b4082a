//! Which controller the flows of a daemon get.
use super::{Assign, FlowKey, Group};
use ackademy::control::{Coupled, FlowInfo, Spec};
use ackademy::controllers;
use ackademy::coupled::{self, Scope};
use ackademy::params::{Param, Params};

/// An entry of one of the tables of controllers.
#[derive(Clone, Copy, Debug)]
pub enum Scheme {
    /// Each flow has its own.
    Plain(&'static Spec),
    /// Subflows have one together.
    Coupled(&'static coupled::Spec),
}

impl Scheme {
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

    /// Makes a governor.
    pub fn build(self, params: &Params) -> Box<dyn Coupled> {
        match self {
            Self::Plain(spec) => Box::new(controllers::per_flow(spec, params.clone())),
            Self::Coupled(spec) => (spec.build)(params),
        }
    }

    /// Which flows share a governor.
    pub fn group(self, key: &FlowKey) -> Group {
        match self {
            Self::Plain(_) => Group::Flow,
            Self::Coupled(_) if key.token == 0 => Group::Flow,
            Self::Coupled(coupled::Spec { scope: Scope::Connection, .. }) => Group::Connection,
            // A network namespace is a host.
            Self::Coupled(_) => Group::Number(key.namespace),
        }
    }
}

/// The same controller for every flow of the machine; under a coupled one, plain TCP gets the plain
/// controller that stands in for it.
pub struct OneForAll {
    /// The controller.
    pub scheme: Scheme,
    /// Its settings.
    pub params: Params,
}

impl Assign for OneForAll {
    fn group(&mut self, key: &FlowKey) -> Group {
        self.scheme.group(key)
    }

    fn governor(&mut self, key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        match self.scheme {
            Scheme::Coupled(spec) if key.token == 0 => {
                let single = controllers::find(spec.single)?;
                let params = Params::defaults(single.params);
                Some(Box::new(controllers::per_flow(single, params)))
            }
            scheme => Some(scheme.build(&self.params)),
        }
    }
}
