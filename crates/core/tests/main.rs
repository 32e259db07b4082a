//! The tests of the core, in one program: each file beside this one is a module of it. Files that count
//! what the process allocates (`flow_memory.rs`, `neural_allocation.rs`) are programs of their own.
mod baselines;
mod conformance;
mod copies;
mod coupled_fixed_points;
mod drawn_peers;
mod fields;
mod flow_info;
mod forwarding;
mod golden;
mod kernel_cubic;
mod layers;
mod links;
mod live;
mod lives;
mod overload;
mod packets;
mod peers;
mod reported;
mod result_names;
mod simulator;
mod stalls;
mod swarm;
mod ties;
mod words;

/// Of the build script.
#[path = "../code_hash.rs"]
mod code_hash;
use ackademy::digest;

/// What several of them share.
mod support {
    pub mod draw;
    #[allow(dead_code, reason = "a test of crates/net uses the rest")]
    pub mod files;
    pub mod life;
    pub mod seeds;
    pub mod sender;
    pub mod table;
    pub mod watch;
}

use std::fs;
use std::path::Path;

/// A file that no program names would never run.
#[test]
fn every_file_of_tests_belongs_to_a_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |file: &str| fs::read_to_string(folder.join(file)).expect("a file of this package");
    let (programs, modules) = (read("Cargo.toml"), read("tests/main.rs"));
    for entry in fs::read_dir(folder.join("tests")).expect("the folder of this file").flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|ends| ends == "rs") {
            let name = path.file_stem().expect("it has one").to_string_lossy();
            let is_module = modules.lines().any(|line| line == format!("mod {name};"));
            let is_program = programs.contains(&format!("path = \"tests/{name}.rs\""));
            assert!(is_module || is_program, "{}", path.display());
        }
    }
}
