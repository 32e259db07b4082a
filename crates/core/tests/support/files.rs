//! The files of controllers that cannot do without: `tests/files/CONTROLLER/SETTING`.
use ackademy::control::Spec;
use ackademy::params::{self, Param, ParamValue};

/// Values of the settings of a controller that need files; none for most.
pub fn files(spec: &Spec) -> Vec<(String, ParamValue)> {
    files_of(spec.name, spec.params)
}

/// As [`files`], of any table.
pub fn files_of(controller: &str, params: &'static [Param]) -> Vec<(String, ParamValue)> {
    // From the manifest of any of this workspace's crates.
    let folder = format!("{}/../core/tests/files/{}", env!("CARGO_MANIFEST_DIR"), controller);
    let needed = params.iter().filter(|param| param.kind.is_file());
    let given: Vec<_> = needed
        .map(|param| (param.name.to_owned(), ParamValue::Word(param.name.to_owned())))
        .collect();
    let mut load = |name: &str, _| {
        std::fs::read(format!("{folder}/{name}")).map_err(|error| error.to_string())
    };
    params::open(params, &given, &mut load).unwrap_or_else(|error| panic!("{folder}: {error}"))
}
