//! Python module `ackademy._core`: converts and delegates, nothing else. One file per class or
//! group of functions; `python/ackademy/_core.pyi` states what Python sees.
#![allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value

use ackademy::digest::{EMPTY, fnv1a};
use pyo3::prelude::*;

mod board;
mod captures;
mod catalogue;
mod controller;
mod coupled_controller;
mod distribution;
mod episodes;
mod errors;
mod files;
mod forest;
mod guests;
mod host;
mod ns3;
mod policy;
mod quic;
mod records;
mod reward;
mod rewarded;
mod rollouts;
mod scenario;
mod sends;
mod simulate;
mod simulation;
mod tables;
mod trace;
mod watch;
mod workers;

/// The sources between the core and Python, for their hash.
const SOURCES: [&str; 5] = [
    include_str!("controller.rs"),
    include_str!("records.rs"),
    include_str!("scenario.rs"),
    include_str!("simulate.rs"),
    include_str!("tables.rs"),
];

/// FNV-1a over the sources of this crate, as the core's build script hashes its own.
fn binding_hash() -> String {
    let hash = |hash, source: &&str| fnv1a(hash, source.as_bytes());
    format!("{:016x}", SOURCES.iter().fold(EMPTY, hash))
}

/// Ackademy's compiled core.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("CODE_HASH", ackademy::CODE_HASH)?;
    module.add("BINDING_HASH", binding_hash())?;
    module.add_class::<records::Ack>()?;
    module.add_class::<distribution::Distribution>()?;
    module.add_class::<episodes::Episodes>()?;
    module.add_class::<records::Flow>()?;
    module.add_class::<forest::Forest>()?;
    module.add_class::<host::HostEpisodes>()?;
    module.add_class::<host::JointPolicy>()?;
    module.add_class::<policy::Policy>()?;
    module.add_class::<records::Loss>()?;
    module.add_class::<rewarded::RewardedIntervals>()?;
    module.add_class::<rollouts::Rollouts>()?;
    module.add_class::<scenario::Scenario>()?;
    module.add_function(wrap_pyfunction!(catalogue::controllers, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::ranges, module)?)?;
    module.add_function(wrap_pyfunction!(catalogue::schema, module)?)?;
    module.add_function(wrap_pyfunction!(episodes::observation_features, module)?)?;
    module.add_function(wrap_pyfunction!(episodes::interval_metrics, module)?)?;
    module.add_function(wrap_pyfunction!(guests::guest_names, module)?)?;
    module.add_function(wrap_pyfunction!(ns3::check_ns3, module)?)?;
    module.add_function(wrap_pyfunction!(ns3::ns3_plan, module)?)?;
    module.add("QUIC_HASH", ackademy_quic::CODE_HASH)?;
    module.add_function(wrap_pyfunction!(quic::check_quic, module)?)?;
    module.add_function(wrap_pyfunction!(quic::run_quic, module)?)?;
    module.add_function(wrap_pyfunction!(reward::aurora_reward, module)?)?;
    module.add_function(wrap_pyfunction!(reward::flagship_reward, module)?)?;
    module.add_function(wrap_pyfunction!(reward::flagship_team, module)?)?;
    module.add_function(wrap_pyfunction!(reward::truth_columns, module)?)?;
    module.add_function(wrap_pyfunction!(scenario::fits, module)?)?;
    module.add_function(wrap_pyfunction!(sends::collect_sends, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::simulate, module)?)?;
    module.add_function(wrap_pyfunction!(trace::fitted_traces, module)?)?;
    module.add_function(wrap_pyfunction!(trace::generate_grants, module)?)?;
    module.add_function(wrap_pyfunction!(trace::generate_trace, module)?)?;
    module.add_function(wrap_pyfunction!(watch::watch, module)?)
}
