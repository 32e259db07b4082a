//! Which controller the flows of a daemon get.
use super::{Assign, FlowKey, Group};
use ackademy::control::{Coupled, FlowInfo};
use ackademy::controllers;
use ackademy::coupled::{self, Scope};
use ackademy::params::Params;
use ackademy::scheme::{Entry, Scheme};

/// The same controller for every flow of the machine; under a coupled one, plain TCP gets the plain
/// controller that stands in for it.
pub struct OneForAll {
    /// The controller with its settings.
    pub scheme: Scheme,
}

impl Assign for OneForAll {
    fn group(&mut self, key: &FlowKey) -> Group {
        match self.scheme.entry {
            Entry::Plain(_) => Group::Flow,
            Entry::Coupled(_) if key.token == 0 => Group::Flow,
            Entry::Coupled(coupled::Spec { scope: Scope::Connection, .. }) => Group::Connection,
            // A network namespace is a host.
            Entry::Coupled(_) => Group::Number(key.namespace),
        }
    }

    fn governor(&mut self, key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        match self.scheme.entry {
            Entry::Coupled(spec) if key.token == 0 => {
                let single = controllers::find(spec.single)?;
                let params = Params::defaults(single.params);
                Some(Box::new(controllers::per_flow(single, params)))
            }
            _ => Some(self.scheme.build()),
        }
    }
}
