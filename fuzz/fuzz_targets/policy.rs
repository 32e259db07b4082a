//! Any bytes are a policy or one short line of complaint; a policy answers every packet.
//! Run with `cargo +nightly fuzz run policy`.
#![no_main]
use ackademy::controllers::lp_tcp::Policy;
use ackademy::sensing::sends::FEATURES;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match Policy::read(bytes) {
        Ok(policy) => {
            let probability = policy.loss_probability(&[0.5; FEATURES]);
            assert!((0.0..=1.0).contains(&probability), "{probability}");
        }
        Err(message) => {
            assert!(message.len() < 500 && !message.contains(|char: char| char.is_control()));
        }
    }
});
