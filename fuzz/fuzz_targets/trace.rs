//! Any bytes are a trace or one short line of complaint; a trace survives its own text.
//! Run with `cargo +nightly fuzz run trace`.
#![no_main]
use ackademy::sim::trace::Trace;
use ackademy::units::Span;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Trace::parse(bytes, "fuzz") {
        Ok(trace) => {
            assert!(trace.millis().is_sorted() && trace.period() > Span::ZERO);
            assert_eq!(Trace::parse(trace.to_text().as_bytes(), "again"), Ok(trace));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.len() < 300 && !message.contains(|char: char| char.is_control()));
        }
    }
});
