//! Compiles the one BPF program and writes its skeleton to `OUT_DIR`.
use libbpf_cargo::SkeletonBuilder;
use std::env::var;
use std::path::Path;

const SOURCE: &str = "src/kernel/bpf/ackademy.bpf.c";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=src/kernel/bpf");
    let skeleton = Path::new(&var("OUT_DIR")?).join("ackademy.skel.rs");
    // Where Debian keeps asm/types.h, which clang does not look for when it compiles for BPF.
    let headers = format!("/usr/include/{}-linux-gnu", var("CARGO_CFG_TARGET_ARCH")?);
    // v3: older instruction sets lack the atomics that return a value.
    SkeletonBuilder::new()
        .source(SOURCE)
        .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror", "-idirafter", &headers])
        .build_and_generate(skeleton)?;
    Ok(())
}
