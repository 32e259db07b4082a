//! Tests that need no network but the loopback device: what the program says, its licences, what tests require, and the emulator
//! and the controllers fed by hand. One program, because it takes less to build than one for each file.
mod attempts;
mod cli;
#[allow(dead_code, reason = "these tests need a part of it")]
mod common {
    pub mod machine;
    pub mod require;
}
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "../../core/tests/support/files.rs"]
mod files;
mod kernel_batching;
mod licenses;
mod link_fabric;
mod quic_files;
mod require;

use std::fs;
use std::path::Path;

/// A file that no program names would never run.
#[test]
fn every_file_of_tests_belongs_to_one_program() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(folder.join("Cargo.toml")).expect("it is UTF-8");
    let read = |path: &Path| fs::read_to_string(path).expect("a source is UTF-8");
    let files = fs::read_dir(folder.join("tests")).expect("the folder of this file").flatten();
    let files: Vec<_> = files.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    let name = |path: &Path| path.file_stem().expect("a file").to_string_lossy().into_owned();
    let is_program =
        |path: &Path| manifest.contains(&format!("path = \"tests/{}.rs\"", name(path)));
    let (programs, modules): (Vec<_>, Vec<_>) = files.iter().partition(|path| is_program(path));
    assert!(programs.len() > 3 && modules.len() > 9, "{programs:?} {modules:?}");
    for module in modules {
        let line = format!("mod {};", name(module));
        let by = programs.iter().filter(|path| read(path).lines().any(|one| one == line));
        assert_eq!(by.count(), 1, "{}: {line}", module.display());
    }
}
