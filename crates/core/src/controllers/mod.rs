//! One file per controller. A new file here is in the table, in the conformance tests, on the
//! command line and in Python without another edit.
use crate::control::{Controller, FlowInfo, PerFlow, Spec};
use crate::coupled;
use crate::params::{Param, ParamError, Params};

pub mod shared;

include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// The settings of the controller called `name`, plain or coupled.
pub fn settings(name: &str) -> Option<&'static [Param]> {
    find(name).map(|spec| spec.params).or_else(|| coupled::find(name).map(|spec| spec.params))
}

/// The entry called `name` of the table of coupled controllers, where no plain one will do.
///
/// # Errors
///
/// If there is none of that name; a plain controller of the name is told apart from an unknown one.
pub fn require_coupled(name: &str) -> Result<&'static coupled::Spec, ParamError> {
    coupled::find(name).ok_or_else(|| ParamError {
        name: "controller".to_owned(),
        value: match find(name) {
            Some(_) => format!("{name:?}, which governs one subflow"),
            None => format!("{name:?}"),
        },
        allowed: format!("a coupled controller: {}", coupled::names()),
    })
}

/// All names, plain and coupled, for an error message.
pub fn all_names() -> String {
    match coupled::ALL {
        [] => names(),
        _ => format!("{}; coupled: {}", names(), coupled::names()),
    }
}

/// The names of the plain controllers, for an error message.
pub fn names() -> String {
    ALL.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

/// The fallback of a learned controller after an invalid action: CUBIC with default settings.
pub fn fallback(flow: &FlowInfo) -> Box<dyn Controller> {
    Box::new(cubic::Cubic::new(flow, &Params::defaults(cubic::SPEC.params)))
}

/// A plain controller for transports, which take coupled ones: one instance for each subflow.
pub fn per_flow(spec: &'static Spec, params: Params) -> PerFlow {
    PerFlow::new(move |flow: &FlowInfo| -> Box<dyn Controller> { (spec.build)(flow, &params) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_controller_named_as_coupled_is_told_apart_from_an_unknown_one() {
        let refused = |name| require_coupled(name).unwrap_err().to_string();
        let allowed = format!("allowed is a coupled controller: {}", coupled::names());
        let plain = "`controller` = \"cubic\", which governs one subflow";
        assert_eq!(refused("cubic"), format!("{plain}: {allowed}"));
        assert_eq!(refused("cubik"), format!("`controller` = \"cubik\": {allowed}"));
    }

    #[test]
    fn the_plain_controller_of_every_coupled_one_is_in_the_table() {
        for spec in coupled::ALL {
            assert!(find(spec.single).is_some(), "{}: {}", spec.name, spec.single);
            assert!(find(spec.name).is_none(), "{} is plain too", spec.name);
        }
    }
}
