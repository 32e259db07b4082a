//! The project uses the field's words: `tests/words.toml` lists those it does not use, and what to
//! say. `tests/test_words.py` reads the same list, for those who run the Python tests alone.
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The list.
#[derive(serde::Deserialize)]
struct List {
    /// What to say for each old word.
    say: BTreeMap<String, String>,
    read: Read,
    allowed: Vec<Allowed>,
}

/// Which files are read.
#[derive(serde::Deserialize)]
struct Read {
    ends: Vec<String>,
    paths: Vec<String>,
    not: Vec<String>,
}

/// Where a word stays.
#[derive(serde::Deserialize)]
struct Allowed {
    word: String,
    r#in: Option<String>,
    #[serde(default)]
    paths: Vec<String>,
}

impl List {
    fn read(root: &Path) -> Self {
        let text = fs::read_to_string(root.join("tests/words.toml")).expect("the list is UTF-8");
        toml::from_str(&text).expect("the list has its fields")
    }

    /// The entry for a word or its plural.
    fn old<'a>(&'a self, word: &'a str) -> Option<(&'a str, &'a str)> {
        let entry = self.say.get_key_value(word);
        let entry = entry.or_else(|| self.say.get_key_value(word.strip_suffix('s')?));
        entry.map(|(old, say)| (old.as_str(), say.as_str()))
    }

    fn is_allowed(&self, word: &str, line: &str, path: &str) -> bool {
        self.allowed.iter().any(|allowed| {
            let in_line = allowed.r#in.as_ref().is_some_and(|text| line.contains(text));
            let in_path = allowed.paths.iter().any(|start| path.starts_with(start));
            allowed.word == word && (in_line || in_path)
        })
    }

    /// The files of `path`, relative to `root`.
    fn files(&self, root: &Path, path: &Path, found: &mut Vec<PathBuf>) {
        let full = root.join(path);
        let name = path.display().to_string();
        if self.read.not.iter().any(|not| name.starts_with(not)) {
            return;
        }
        if full.is_dir() {
            for entry in fs::read_dir(full).expect("a folder").flatten() {
                self.files(root, &path.join(entry.file_name()), found);
            }
            return;
        }
        let ends = path.extension().and_then(|ends| ends.to_str()).unwrap_or_default();
        if self.read.ends.iter().any(|own| own == ends) {
            found.push(path.to_owned());
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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("the checkout")
}

#[test]
fn no_old_word_is_used() {
    let list = List::read(root());
    let mut files = Vec::new();
    for path in &list.read.paths {
        list.files(root(), Path::new(path), &mut files);
    }
    assert!(files.len() > 500, "{} files", files.len());
    let mut found = Vec::new();
    for file in files {
        let text = fs::read_to_string(root().join(&file)).expect("a source is UTF-8");
        let path = file.display().to_string();
        for (number, line) in text.lines().enumerate() {
            for (old, say) in words(line).iter().filter_map(|word| list.old(word)) {
                if !list.is_allowed(old, line, &path) {
                    found.push(format!("{path}:{}: {old}: say {say}", number + 1));
                }
            }
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn words_are_found_in_identifiers_and_plurals_but_not_inside_others() {
    let list = List::read(root());
    let old = |line: &str| words(line).iter().filter(|word| list.old(word).is_some()).count();
    assert_eq!(old("struct PilotSpec; fn take_seat(); // two pilots"), 3);
    assert_eq!(old("remind, shear, heart, desktop, schooling"), 0);
}
