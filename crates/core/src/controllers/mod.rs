//! One file per controller. A new file here is in the table, in the conformance tests, on the
//! command line and in Python without another edit.
use crate::control::{Controller, FlowInfo, PerFlow, Spec};
use crate::params::Params;

include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// All names, for an error message.
pub fn names() -> String {
    ALL.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

/// A plain controller as the transports want it: one for each subflow.
pub fn per_flow(spec: &'static Spec, params: Params) -> PerFlow {
    PerFlow::new(move |flow: &FlowInfo| -> Box<dyn Controller> { (spec.build)(flow, &params) })
}
