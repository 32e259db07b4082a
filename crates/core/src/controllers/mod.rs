//! One file per controller. A new file here is in the table, in the conformance tests, on the
//! command line and in Python without another edit.
use crate::control::{Controller, FlowInfo, PerFlow, Spec};
use crate::law::cubic::{Cubic, PARAMS};
use crate::params::Params;

pub mod shared;
#[cfg(test)]
#[path = "tests/support.rs"]
pub(crate) mod test_support;

include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// The names of the plain controllers, for an error message.
pub fn names() -> String {
    ALL.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

/// The fallback of a learned controller after an invalid action: CUBIC with default settings.
pub fn fallback(flow: &FlowInfo) -> Box<dyn Controller> {
    Box::new(Cubic::new(flow, &Params::defaults(PARAMS)))
}

/// A plain controller for transports, which take coupled ones: one instance for each subflow.
pub fn per_flow(spec: &'static Spec, params: Params) -> PerFlow {
    PerFlow::new(move |flow: &FlowInfo| -> Box<dyn Controller> { (spec.build)(flow, &params) })
}
