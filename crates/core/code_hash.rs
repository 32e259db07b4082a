//! The hash of the sources, by which a result names the code that made it: of what a library has, unit tests
//! aside. The build script uses this file.
use crate::digest::{EMPTY, fnv1a};
use std::fs;
use std::path::{Path, PathBuf};

/// FNV-1a over the names and contents of the files below `folder`, in sorted order, without unit tests.
pub fn hash_tree(folder: &Path) -> u64 {
    let mut files = Vec::new();
    collect(folder, &mut files);
    files.sort();
    files.iter().fold(EMPTY, |hash, file| {
        let name = file.strip_prefix(folder).expect("below folder").to_string_lossy();
        let source = fs::read_to_string(file).expect("readable source");
        fnv1a(fnv1a(hash, name.as_bytes()), without_tests(&source).as_bytes())
    })
}

/// A source without the modules that its outermost level has for tests alone. One in braces ends at the first
/// line that is a closing brace, as rustfmt leaves it: what follows counts, so that no code is ever left out.
pub fn without_tests(source: &str) -> String {
    let mut kept = String::new();
    let mut lines = source.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        if line.trim_end() != "#[cfg(test)]" {
            kept += line;
            continue;
        }
        while lines.next_if(|next| next.starts_with("#[")).is_some() {}
        if let Some(module) = lines.next_if(|next| is_module(next))
            && !module.trim_end().ends_with(';')
        {
            lines.find(|next| next.trim_end() == "}");
        }
    }
    kept
}

fn is_module(line: &str) -> bool {
    ["mod ", "pub mod ", "pub(crate) mod "].iter().any(|start| line.starts_with(start))
}

/// Files that are modules of tests by their names: `tests.rs`, `…_tests.rs` and those of folders `tests`.
fn is_of_tests(path: &Path) -> bool {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    name == "tests" || name.ends_with("_tests")
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("readable folder").flatten() {
        let path = entry.path();
        match (path.is_dir(), is_of_tests(&path)) {
            (_, true) => {}
            (true, false) => collect(&path, files),
            (false, false) => files.push(path),
        }
    }
}
