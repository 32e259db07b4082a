//! Any text is a distribution that draws, or one line of complaint. Run with `cargo +nightly fuzz run distribution`.
#![no_main]
use ackademy::rng::Seed;
use ackademy::scenario::Distribution;
use libfuzzer_sys::fuzz_target;

const SCENARIO: &[u8] = b"duration_s = 1\nflow = [{}]\n[dumbbell.bottleneck]\nrate_mbps = 8\n";

fuzz_target!(|text: &str| {
    let mut load = |name: &str, _| {
        Ok(if name.ends_with(".trace") { b"0\n5\n".to_vec() } else { SCENARIO.to_vec() })
    };
    match Distribution::parse(text, "fuzz", &mut load) {
        Ok(distribution) => {
            for seed in 0..3 {
                let drawn = distribution.draw(Seed(seed), 0.5);
                drawn.expect("what lies between valid ends is valid");
            }
        }
        Err(error) => {
            let message = error.to_string();
            assert!(
                message.starts_with("fuzz") || message.contains("a scenario of fuzz"),
                "{message}"
            );
            assert!(!message.contains(['\n', '\r']), "{message:?}");
        }
    }
});
