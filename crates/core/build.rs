//! Lists `controllers/`, `coupled/` and `transport/schedulers/`, so that a new file needs no other edit, and
//! hashes the sources, so that a result can name the code that made it.
use digest::{EMPTY, fnv1a};
use std::fmt::Write as _;
use std::{env, fs, path::Path};

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
        hash_tree(&Path::new(&root).join("src"))
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

/// FNV-1a over the names and contents of all files below `folder`, in sorted order.
fn hash_tree(folder: &Path) -> u64 {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    let mut hash = EMPTY;
    let mut feed = |bytes: &[u8]| hash = fnv1a(hash, bytes);
    for file in files {
        feed(file.strip_prefix(folder).expect("below folder").to_string_lossy().as_bytes());
        feed(&fs::read(&file).expect("readable source"));
    }
    hash
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
