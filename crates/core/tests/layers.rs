//! Modules of the core use only modules below them. The order is that of `docs/design.md`; tests may
//! use everything.
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules from the lowest up.
const LAYERS: &[&str] = &[
    "hint",
    "units",
    "digest",
    "rng",
    "histogram",
    "ranges",
    "toml_error",
    "params",
    "decision",
    "control",
    "checked",
    "transport",
    "sensing",
    "law",
    "policy",
    "controllers",
    "coupled",
    "scheme",
    "sim",
    "scenario",
    "live",
    "env",
];

/// Uses that go upwards on purpose: from, to, reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// The layer of a path such as `sim::link::Link`.
fn layer(path: &str) -> Option<usize> {
    let module = path.split("::").next();
    LAYERS.iter().position(|layer| Some(*layer) == module)
}

/// A source without its comments and without its tests at the end.
fn code(text: &str) -> String {
    let until = text.find("#[cfg(test)]\nmod tests {").unwrap_or(text.len());
    let lines = text[..until].lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// Every path below `crate::` that a source uses, groups in braces taken apart.
fn uses(text: &str) -> BTreeSet<String> {
    let text = code(text);
    let mut found = BTreeSet::new();
    for (start, _) in text.match_indices("crate::") {
        collect(&text[start + "crate::".len()..], "", &mut found);
    }
    found
}

/// Adds the paths that `text` begins with, below `prefix`.
fn collect(text: &str, prefix: &str, found: &mut BTreeSet<String>) {
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let end = text.find(|letter| !is_path(letter)).unwrap_or(text.len());
    let path = format!("{prefix}{}", &text[..end]);
    let Some(group) = text[end..].strip_prefix('{') else {
        found.insert(path.trim_end_matches("::").to_owned());
        return;
    };
    let (mut depth, mut from) = (0, 0);
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            ',' | '}' if depth == 0 => {
                if !group[from..at].trim().is_empty() {
                    collect(group[from..at].trim(), &path, found);
                }
                from = at + 1;
                if letter == '}' {
                    return;
                }
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
}

/// All sources below `folder` but tests.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        if path.is_dir() {
            if !path.ends_with("tests") {
                sources(&path, found);
            }
        } else if path.extension().is_some_and(|ends| ends == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
}

/// A source's path as a module's: `sim::link` of `sim/link.rs`, `sim` of `sim/mod.rs`.
fn module(file: &Path) -> String {
    let parts = file.with_extension("");
    let parts: Vec<_> = parts.iter().map(|part| part.to_string_lossy()).collect();
    parts.join("::").trim_end_matches("::mod").to_owned()
}

/// Each use of a module by another: both paths.
fn edges() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    assert!(files.len() > 90, "{} sources under {}", files.len(), root.display());
    let mut edges = Vec::new();
    for file in files {
        let from = module(file.strip_prefix(&root).expect("below src/"));
        let text = fs::read_to_string(&file).expect("a source is UTF-8");
        edges.extend(uses(&text).into_iter().map(|to| (from.clone(), to)));
    }
    edges
}

fn upwards() -> BTreeSet<(String, String)> {
    let goes_up = |(from, to): &(String, String)| layer(to) > layer(from);
    edges().into_iter().filter(|edge| edge.0 != "lib").filter(goes_up).collect()
}

#[test]
fn every_module_has_a_place_in_the_order() {
    let missing: BTreeSet<String> = edges()
        .into_iter()
        .flat_map(|(from, to)| [from, to])
        .filter(|path| path != "lib" && path != "CODE_HASH" && layer(path).is_none())
        .collect();
    assert_eq!(missing, BTreeSet::new());
}

#[test]
fn modules_use_only_modules_below_them() {
    let known = |edge: &(String, String)| {
        EXCEPTIONS.iter().any(|(from, to, _)| (*from, *to) == (&edge.0, &edge.1))
    };
    let found: Vec<String> = upwards()
        .iter()
        .filter(|edge| !known(edge))
        .map(|(from, to)| format!("{from} uses {to}"))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// Names of the files and folders beside a source in its folder that it uses.
fn beside(folder: &Path, file: &Path) -> BTreeSet<String> {
    let depth = file.strip_prefix(folder).expect("below the folder").components().count() - 1;
    let depth = depth - usize::from(file.ends_with("mod.rs"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let absolute = format!("crate::{}::", module(folder.strip_prefix(root).expect("in src/")));
    let text = code(&fs::read_to_string(file).expect("a source is UTF-8"));
    let mut found = BTreeSet::new();
    for prefix in [absolute, "super::".repeat(depth + 1)] {
        for (start, _) in text.match_indices(&prefix).filter(|(at, _)| !text[..*at].ends_with("::"))
        {
            collect(&text[start + prefix.len()..], "", &mut found);
        }
    }
    let first = |path: String| path.split("::").next().unwrap_or_default().to_owned();
    found.into_iter().map(first).collect()
}

/// Each use of a file or folder by another one of the same folder.
fn uses_within(folder: &Path) -> BTreeSet<(String, String)> {
    let mut names = BTreeSet::new();
    let mut files = Vec::new();
    sources(folder, &mut files);
    let first = |file: &Path| {
        let inside = file.strip_prefix(folder).expect("below the folder");
        let name = inside.components().next().expect("a name").as_os_str();
        Path::new(name).with_extension("").to_string_lossy().into_owned()
    };
    files.retain(|file| file.parent() != Some(folder) || !file.ends_with("mod.rs"));
    names.extend(files.iter().map(|file| first(file)));
    let edges = files.iter().flat_map(|file| {
        let from = first(file);
        beside(folder, file).into_iter().map(move |to| (from.clone(), to))
    });
    edges.filter(|(from, to)| from != to && names.contains(to)).collect()
}

#[test]
fn the_files_of_a_folder_use_each_other_in_one_direction() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let folders: BTreeSet<_> = files.iter().filter_map(|file| file.parent()).collect();
    assert!(folders.len() > 20, "{folders:?}");
    for folder in folders.into_iter().filter(|folder| **folder != root) {
        let mut edges = uses_within(folder);
        // What nothing uses is at the top: without it, the rest has a top, too, if there is no circle.
        loop {
            let used: BTreeSet<_> = edges.iter().map(|(_, to)| to.clone()).collect();
            let before = edges.len();
            edges.retain(|(from, _)| used.contains(from));
            if edges.len() == before {
                break;
            }
        }
        assert!(edges.is_empty(), "a circle in {}: {edges:?}", folder.display());
    }
}

#[test]
fn every_exception_is_still_needed() {
    let found = upwards();
    for (from, to, _) in EXCEPTIONS {
        assert!(found.contains(&((*from).to_owned(), (*to).to_owned())), "{from} uses {to}");
    }
}

#[test]
fn groups_are_taken_apart_and_comments_and_tests_left_out() {
    let text = "use crate::sim::{self, link::{Link, Offer}, queues};\n// crate::env\n\
                fn f() -> crate::units::Time {}\n#[cfg(test)]\nmod tests {\nuse crate::env;\n}\n";
    let expected =
        ["sim::link::Link", "sim::link::Offer", "sim::queues", "sim::self", "units::Time"];
    assert_eq!(uses(text), expected.map(str::to_owned).into());
}
