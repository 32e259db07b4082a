//! TCP-Drinc: Xiao, Mao and Tugnait, "TCP-Drinc: Smart Congestion Control Based on Deep Reinforcement
//! Learning", IEEE Access 7, 2019. A window moved in steps by a network that reads the history of five
//! features; the network is a policy's, trained by ourselves.
//!
//! The paper names the five features; what else there is is proposed in
//! `docs/reference/controllers/tcp_drinc.md`.
use super::policy::governed;
use crate::control::Spec;
use crate::params::{Param, ParamKind};
use crate::policy::{FILES, MapSpec, Policy, PolicySpec};
use std::sync::Arc;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "tcp_drinc",
    about: "A window moved in steps by a deep network over the history of five features",
    source: "Xiao, Mao and Tugnait, IEEE Access 7, 2019, by its two-page review; numbers proposed",
    params: &[Param {
        name: "policy",
        about: "the trained agent's folder; no weights were published",
        kind: ParamKind::Files {
            holds: "a folder with a policy over TCP-Drinc's features, such as policies/tcp_drinc",
            names: FILES,
            read: |files| {
                let policy = Policy::read(files)?;
                check(policy.spec()).map_err(|fault| format!("{}: {fault}", FILES[0]))?;
                Ok(Arc::new(policy))
            },
        },
    }],
    build: |flow, params| governed(flow, params),
};

/// The features, in the paper's order.
const FEATURES: [&str; 5] = ["cwnd_change", "rtt_mean", "rtt_ratio", "rtt_excess", "ack_gap"];
/// Vectors of the history (proposed).
const HISTORY: u32 = 64;

fn check(spec: &PolicySpec) -> Result<(), String> {
    let observation = &spec.observation;
    if observation.features != FEATURES {
        let given = &observation.features;
        return Err(format!("observation.features = {given:?}: allowed is {FEATURES:?}"));
    }
    if observation.history != HISTORY {
        let given = observation.history;
        return Err(format!("observation.history = {given}: allowed is {HISTORY}"));
    }
    let map = spec.action.map;
    if map != MapSpec::CwndSteps {
        let given = serde_json::to_string(&map).expect("a word can be written");
        return Err(format!("action.map = {given}: allowed is \"cwnd_steps\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = include_str!("../../tests/files/tcp_drinc/policy/policy.toml");
    const WEIGHTS: &[u8] = include_bytes!("../../tests/files/tcp_drinc/policy/weights.safetensors");

    fn read(text: &str) -> Result<(), String> {
        let ParamKind::Files { read, .. } = SPEC.params[0].kind else { unreachable!() };
        read(&[text.as_bytes().to_vec(), WEIGHTS.to_vec()]).map(drop)
    }

    #[test]
    fn only_the_paper_s_features_and_their_history_are_taken() {
        assert_eq!(read(GOOD), Ok(()));
        let swapped = GOOD.replace("\"rtt_mean\", \"rtt_ratio\"", "\"rtt_ratio\", \"rtt_mean\"");
        let fault = read(&swapped).unwrap_err();
        assert!(
            fault.starts_with("policy.toml: observation.features = [\"cwnd_change\", \"rtt_ra")
        );
        assert_eq!(
            read(&GOOD.replace("history = 64", "history = 32")),
            Err("policy.toml: observation.history = 32: allowed is 64".to_owned())
        );
    }

    #[test]
    fn a_policy_of_values_is_not_taken() {
        let values = GOOD.replace("map = \"cwnd_steps\"", "map = \"cwnd_factor\"");
        assert_eq!(
            read(&values),
            Err("policy.toml: action.map = \"cwnd_factor\": allowed is \"cwnd_steps\"".to_owned())
        );
    }
}
