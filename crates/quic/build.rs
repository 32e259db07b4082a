//! Hashes the sources, so that a result can name the code that made it.
#![allow(dead_code, reason = "what the core's build script uses besides")]
use std::{env, fs, path::Path};

#[path = "../core/code_hash.rs"]
mod code_hash;
#[path = "../core/src/digest.rs"]
mod digest;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let sources = code_hash::hash_tree(&Path::new(&root).join("src"));
    // It names the versions of noq and quinn.
    let manifest = fs::read(Path::new(&root).join("Cargo.toml")).expect("the manifest is readable");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=Cargo.toml");
    let hash = digest::fnv1a(sources, &manifest);
    println!("cargo:rustc-env=ACKADEMY_QUIC_HASH={hash:016x}");
}
