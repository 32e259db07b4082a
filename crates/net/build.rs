//! Compiles the BPF programs and writes their skeletons to `OUT_DIR`.
use libbpf_cargo::SkeletonBuilder;
use std::env::var;
use std::path::Path;

const FOLDER: &str = "src/kernel/bpf";
/// The congestion control, and what asks its compiled policies without a connection.
const PROGRAMS: [&str; 2] = ["ackademy", "ask"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={FOLDER}");
    // Where Debian keeps asm/types.h, which clang does not look for when it compiles for BPF.
    let headers = format!("/usr/include/{}-linux-gnu", var("CARGO_CFG_TARGET_ARCH")?);
    for program in PROGRAMS {
        let skeleton = Path::new(&var("OUT_DIR")?).join(format!("{program}.skel.rs"));
        // v3: older instruction sets lack the atomics that return a value.
        SkeletonBuilder::new()
            .source(Path::new(FOLDER).join(format!("{program}.bpf.c")))
            .clang_args(["-O2", "-mcpu=v3", "-Wall", "-Werror", "-idirafter", &headers])
            .build_and_generate(skeleton)?;
    }
    Ok(())
}
