//! What is linked into `ackademyd` is named, with its licence and its copyright notices, in the file that
//! is shipped with it. `ACKADEMY_BLESS=1` writes that file anew.
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const FILE: &str = "THIRD-PARTY-LICENSES.txt";
/// Texts that are needed once, by the name of their file here.
const TEXTS: &str = "licenses";

/// A crate that is linked.
#[derive(Debug)]
struct Package {
    name: String,
    version: String,
    license: String,
    repository: String,
    folder: PathBuf,
}

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Crates of others that `ackademyd` links: not what only builds or tests need, nor procedural macros.
fn linked() -> Vec<Package> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let asked = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform", &target])
        .current_dir(here())
        .output()
        .expect("cargo runs the tests");
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    let metadata: Value = serde_json::from_slice(&asked.stdout).expect(&said);
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let packages: BTreeMap<String, Value> =
        list(&metadata["packages"]).into_iter().map(|one| (text(&one["id"]), one)).collect();
    let nodes: BTreeMap<String, Value> = list(&metadata["resolve"]["nodes"])
        .into_iter()
        .map(|one| (text(&one["id"]), one))
        .collect();
    let is_macro = |id: &str| {
        let targets = list(&packages[id]["targets"]);
        targets.iter().any(|target| list(&target["kind"]).contains(&Value::from("proc-macro")))
    };
    let root = packages.iter().find(|(_, one)| one["name"] == "ackademy-net").expect("this one");
    let (mut found, mut left) = (BTreeSet::new(), vec![root.0.clone()]);
    while let Some(id) = left.pop() {
        if is_macro(&id) || !found.insert(id.clone()) {
            continue;
        }
        for dependency in list(&nodes[&id]["deps"]) {
            if list(&dependency["dep_kinds"]).iter().any(|one| one["kind"].is_null()) {
                left.push(text(&dependency["pkg"]));
            }
        }
    }
    let foreign = found.iter().map(|id| &packages[id]).filter(|one| !one["source"].is_null());
    let mut linked: Vec<Package> = foreign
        .map(|one| Package {
            name: text(&one["name"]),
            version: text(&one["version"]),
            license: text(&one["license"]),
            repository: text(&one["repository"]),
            folder: Path::new(&text(&one["manifest_path"])).parent().expect("a file").to_owned(),
        })
        .collect();
    linked.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    linked
}

/// The line that names a crate.
fn line(package: &Package) -> String {
    let Package { name, version, license, repository, .. } = package;
    format!("{name} {version}: {license}; {repository}")
}

/// The file as it should be.
fn whole(packages: &[Package]) -> String {
    let read = |name: &str| {
        let path = here().join(TEXTS).join(name);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let mut file = read("head.txt");
    for package in packages {
        writeln!(file, "{}", line(package)).expect("memory");
    }
    file.push('\n');
    file.push_str(&read("system.txt"));
    // Texts that several crates share stand once, after their names.
    let mut texts: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages {
        for text in notices(package) {
            texts.entry(text).or_default().push(package.name.clone());
        }
    }
    let mut texts: Vec<(Vec<String>, String)> =
        texts.into_iter().map(|(text, names)| (names, text)).collect();
    texts.sort();
    for (mut names, text) in texts {
        names.dedup();
        write!(file, "\n{}\n{}\n\n{text}\n", "-".repeat(80), names.join(", ")).expect("memory");
    }
    for name in ["Apache-2.0", "LGPL-3.0", "GPL-3.0", "LGPL-2.1", "GPL-2.0"] {
        let text = read(&format!("{name}.txt"));
        write!(file, "\n{}\n{name}\n\n{}\n", "-".repeat(80), text.trim_end()).expect("memory");
    }
    file
}

/// Licences and notices in a crate's folder, but for Apache's, whose text is in the file once.
fn notices(package: &Package) -> Vec<String> {
    // The source of libbpf is inside a crate.
    let folders = [package.folder.clone(), package.folder.join("libbpf")];
    let entries = folders.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let is_notice = |path: &&PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().to_uppercase();
        let known = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
        let in_file = name.contains("APACHE") || name.contains("LGPL");
        path.is_file() && !in_file && known.iter().any(|word| name.starts_with(word))
    };
    let texts = paths.iter().filter(is_notice).filter_map(|path| fs::read_to_string(path).ok());
    let lines = |text: String| {
        text.lines().map(str::trim_end).collect::<Vec<_>>().join("\n").trim_matches('\n').to_owned()
    };
    texts.map(lines).collect()
}

#[test]
fn every_linked_crate_is_named_with_its_licence_in_the_shipped_file() {
    let packages = linked();
    let path = here().join(FILE);
    if std::env::var_os("ACKADEMY_BLESS").is_some() {
        fs::write(&path, whole(&packages)).expect("the file can be written");
    }
    let file = fs::read_to_string(&path).expect("the file is there");
    let lines: BTreeSet<&str> = file.lines().collect();
    let missing: Vec<String> =
        packages.iter().map(line).filter(|line| !lines.contains(line.as_str())).collect();
    assert!(missing.is_empty(), "ACKADEMY_BLESS=1 adds {missing:#?}");
}

#[test]
fn every_licence_that_the_file_names_is_one_that_it_holds() {
    /// What a user of a binary must be given is in the file: each crate's own text, or one of those that
    /// stand once.
    const ALLOWED: [&str; 8] = [
        "MIT",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "ISC",
        "Zlib",
        "Unicode-3.0",
        "LGPL-2.1-only",
    ];
    let file = fs::read_to_string(here().join(FILE)).expect("the file is there");
    for package in linked() {
        let choices: Vec<&str> = package.license.split(" OR ").collect();
        let allowed = |one: &&str| one.split(" AND ").all(|part| ALLOWED.contains(&part));
        assert!(choices.iter().any(allowed), "{}: no choice we know", line(&package));
        let own = notices(&package);
        let has_text = own.iter().any(|text| file.contains(text.as_str()));
        let in_file = choices.contains(&"Apache-2.0");
        assert!(has_text || in_file, "{}: its licence's text is not in the file", package.name);
    }
}

#[test]
fn the_file_holds_the_texts_for_the_systems_libraries() {
    let file = fs::read_to_string(here().join(FILE)).expect("the file is there");
    for wanted in [
        "libelf (elfutils)",
        "zlib",
        "The GNU C Library",
        "libbpf",
        "GNU LESSER GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007",
        "GNU GENERAL PUBLIC LICENSE\n                       Version 3, 29 June 2007",
        "Version 2.1, February 1999",
        "Apache License\n                           Version 2.0, January 2004",
        "Jean-loup Gailly and Mark Adler",
    ] {
        assert!(file.contains(wanted), "{wanted}");
    }
}

#[test]
fn the_bpf_program_comes_with_the_text_of_its_licences() {
    let folder = here().join("src/kernel/bpf");
    let read = |name: &str| fs::read_to_string(folder.join(name)).expect("it is there");
    assert!(
        read("LICENSE-GPL-2.0")
            .contains("GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991")
    );
    assert!(
        read("LICENSE").contains("BSD 2-Clause License")
            && read("LICENSE").contains("LICENSE-GPL-2.0")
    );
}

#[test]
fn the_program_prints_the_file() {
    let output = Command::new(env!("CARGO_BIN_EXE_ackademyd")).arg("licenses").output();
    let output = output.expect("the program was built with the tests");
    assert!(output.status.success());
    let file = fs::read_to_string(here().join(FILE)).expect("the file is there");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.trim_end() == file.trim_end(), "{} bytes, not {}", printed.len(), file.len());
}
