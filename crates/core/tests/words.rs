//! The sources under `crates/` use the field's words. Each word of [`REPLACED`] once had a private
//! meaning here; the second column is the word to use.
use std::fs;
use std::path::{Path, PathBuf};

/// Words that are not used, alone or as a part of an identifier, and what to say.
const REPLACED: &[(&str, &str)] = &[
    ("pilot", "learned controller, policy"),
    ("mind", "agent"),
    ("student", "agent"),
    ("pupil", "agent"),
    ("enrol", "add"),
    ("desk", "agents"),
    ("seat", "agent"),
    ("lesson", "environment"),
    ("school", "environment"),
    ("cashier", "reward"),
    ("ledger", "interval accounts"),
    ("refusal", "invalid action"),
    ("hear", "observe, receive"),
    ("hears", "observes, receives"),
    ("heard", "received, known"),
    ("entrant", "scheme"),
    ("contender", "scheme"),
];

/// Sources that still have such a word: Python's names of the core, and the transport.
const EXCEPT: &[(&str, &str)] =
    &[("core/src/transport/sender/", "hear"), ("core/src/sim/", "mind")];

/// Sources below `folder`: Rust, C and BPF.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources").flatten() {
        let path = entry.path();
        let ends = path.extension().and_then(|ends| ends.to_str());
        if path.is_dir() {
            sources(&path, found);
        } else if matches!(ends, Some("rs" | "c" | "h")) && !path.ends_with("tests/words.rs") {
            found.push(path);
        }
    }
}

/// The words of a line in lower case; `PolicySpec` and `policy_spec` are two words each.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for letter in line.chars() {
        let starts = letter.is_uppercase() && before.is_lowercase();
        if !letter.is_alphabetic() || starts {
            words.push(String::new());
        }
        if letter.is_alphabetic() {
            words.last_mut().expect("never empty").extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}

/// The entry of [`REPLACED`] for a word or its plural.
fn replaced(word: &str) -> Option<&'static (&'static str, &'static str)> {
    REPLACED.iter().find(|(old, _)| word == *old || word.strip_suffix('s') == Some(old))
}

#[test]
fn the_sources_use_the_words_of_the_field() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("crates/");
    let mut files = Vec::new();
    sources(crates, &mut files);
    assert!(files.len() > 200, "{} sources under {}", files.len(), crates.display());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).expect("a source is UTF-8");
        let place = file.strip_prefix(crates).expect("below crates/").display().to_string();
        for (number, line) in text.lines().enumerate() {
            for (old, say) in words(line).iter().filter_map(|word| replaced(word)) {
                if EXCEPT
                    .iter()
                    .any(|(folder, word)| place.starts_with(folder) && old.starts_with(word))
                {
                    continue;
                }
                found.push(format!("crates/{place}:{}: `{old}`: say {say}", number + 1));
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn old_words_are_found_in_identifiers_and_plurals_but_not_inside_other_words() {
    let old = |line: &str| words(line).iter().filter_map(|word| replaced(word)).count();
    assert_eq!(old("struct PilotSpec; fn take_seat(); // two minds"), 3);
    assert_eq!(old("remind, shear, heart, desktop, schooling"), 0);
}
