//! Lists `controllers/`, `coupled/` and `transport/schedulers/`, so that a new file needs no other edit, and
//! hashes the sources, so that a result can name the code that made it.
use std::fmt::Write as _;
use std::{env, fs, path::Path};

#[path = "code_hash.rs"]
mod code_hash;
#[path = "src/digest.rs"]
mod digest;

fn main() {
    let root = env::var("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR");
    let out = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    println!("cargo:rerun-if-changed=src");
    for (folder, entry) in
        [("controllers", "SPEC"), ("coupled", "SPEC"), ("transport/schedulers", "SPEC")]
    {
        let path = Path::new(&root).join("src").join(folder);
        let modules = modules_in(&path);
        let name = path.file_name().expect("a folder has a name").to_string_lossy();
        fs::write(Path::new(&out).join(format!("{name}.rs")), table(&path, &modules, entry))
            .expect("OUT_DIR is writable");
    }
    println!(
        "cargo:rustc-env=ACKADEMY_CODE_HASH={:016x}",
        code_hash::hash_tree(&Path::new(&root).join("src"))
    );
}

fn modules_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .expect("the folder exists")
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter_map(|name| name.strip_suffix(".rs").map(str::to_owned))
        .filter(|name| name != "mod")
        .collect();
    names.sort();
    names
}

/// `pub mod name;` for each file and the slice `ALL` of their entries.
fn table(folder: &Path, modules: &[String], entry: &str) -> String {
    let mut text = String::new();
    for name in modules {
        let file = folder.join(format!("{name}.rs"));
        let _ = write!(text, "#[path = {:?}]\npub mod {name};\n", file.display().to_string());
    }
    text += "/// Every entry of this folder, by name.\npub const ALL: &[&Spec] = &[";
    for name in modules {
        let _ = write!(text, "&{name}::{entry}, ");
    }
    text + "];\n"
}
