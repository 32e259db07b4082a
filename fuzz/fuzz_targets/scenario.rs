//! Any text is a scenario or one line of complaint. Run with `cargo +nightly fuzz run scenario`.
#![no_main]
use ackademy::scenario::Scenario;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Err(error) = Scenario::parse(text, "fuzz") {
        let message = error.to_string();
        assert!(message.starts_with("fuzz"), "{message}");
        assert!(!message.contains(['\n', '\r']), "{message:?}");
    }
});
