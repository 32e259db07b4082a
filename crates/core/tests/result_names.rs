//! A result names the code that made it: all that runs in a simulation, and no unit test.
use crate::code_hash::{hash_tree, without_tests};
use std::fs;
use std::path::Path;

const CODE: &str = "fn rate() -> u32 {\n    5\n}\n";
const TESTS: &str = "\n#[cfg(test)]\n#[path = \"tests/rate.rs\"]\nmod tests;\n\n#[cfg(test)]\nmod more {\n    #[test]\n    fn five() {}\n}\n";

#[test]
fn modules_of_tests_are_left_out_and_what_follows_them_is_not() {
    let source = [CODE, TESTS, "fn more() {}\n"].concat();
    assert_eq!(without_tests(&source), [CODE, "\n\nfn more() {}\n"].concat());
    let attribute = "#[cfg(test)]\nuse std::fmt;\nfn rate() {}\n";
    assert!(without_tests(attribute).contains("fn rate"));
}

#[test]
fn a_changed_test_keeps_the_hash_and_changed_code_changes_it() {
    let folder = std::env::temp_dir().join(format!("ackademy-code-hash-{}", std::process::id()));
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("writable");
    fs::create_dir_all(folder.join("tests")).expect("a folder for this test");
    write("rate.rs", CODE);
    let plain = hash_tree(&folder);
    write("tests/rate.rs", "fn five() {}");
    write("rate_tests.rs", "fn six() {}");
    write("rate.rs", &CODE.replace('5', "6"));
    let changed = hash_tree(&folder);
    write("rate.rs", CODE);
    let tested = hash_tree(&folder);
    fs::remove_dir_all(&folder).expect("this test's folder");
    assert_eq!(plain, tested);
    assert_ne!(plain, changed);
}

/// A file that is left out by its name and is no test would be code without a name in the results.
#[test]
fn every_file_that_is_named_as_a_test_is_declared_for_tests_alone() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for text in sources(&source) {
        let code = without_tests(&text);
        for path in ["tests/", "tests.rs", "mod tests;", "_tests;"] {
            let used = code.lines().find(|line| {
                line.contains(path)
                    && !line.trim_start().starts_with("//")
                    && !line.contains("include")
            });
            assert_eq!(used, None, "code that uses a file of tests");
        }
    }
}

fn sources(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("readable folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if !path.to_string_lossy().contains("tests") {
            found.push(fs::read_to_string(&path).expect("readable source"));
        }
    }
    found
}
