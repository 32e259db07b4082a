//! Any two files are a policy or one short line of complaint; a policy answers every observation.
//! Up to the first zero byte the input is `policy.toml`, behind it `weights.safetensors`.
//! Run with `cargo +nightly fuzz run neural`.
#![no_main]
use ackademy::policy::{Action, Agent, ERROR_MAX, Policy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
    let (description, weights) = bytes.split_at(end);
    let files = [description.to_vec(), weights.get(1..).unwrap_or_default().to_vec()];
    match Policy::read(&files) {
        Ok(policy) => {
            let input = policy.network().input().size();
            for value in [0.0, 0.5, -3.0, f32::NAN] {
                let mut agent = policy.agent();
                assert_eq!(agent.outputs(&vec![value; input]).len(), policy.network().outputs());
                if let Ok(Action::Choice(choice)) = agent.act(&vec![value; input]) {
                    assert!(choice < policy.spec().choices());
                }
            }
        }
        Err(message) => {
            assert!(message.chars().count() <= ERROR_MAX, "{message}");
            assert!(!message.contains(|char: char| char.is_control()), "{message:?}");
            assert!(
                message.starts_with("policy.toml") || message.starts_with("weights.safetensors")
            );
        }
    }
});
