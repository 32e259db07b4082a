//! Any policy that was learned before it runs: a network that decides from a history of features
//! what to do to the window or the rate (`docs/reference/policies.md`).
use crate::control::{Controller, FlowInfo, Spec};
use crate::params::{Param, ParamKind, Params};
use crate::policy::{FILES, LearnedController, Policy};
use std::sync::Arc;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "policy",
    about: "A trained policy; its folder defines observation, decisions and actions",
    source: "this project",
    params: &[Param {
        name: "policy",
        about: "the policy's folder",
        kind: ParamKind::Files {
            holds: "a folder with policy.toml and weights.safetensors, such as policies/aurora_mixed",
            names: FILES,
            read: |files| Ok(Arc::new(Policy::read(files)?)),
        },
    }],
    build: |flow, params| governed(flow, params),
};

/// A flow under the policy that the setting `policy` names.
pub(super) fn governed(flow: &FlowInfo, params: &Params) -> Box<dyn Controller> {
    let policy: Arc<Policy> = params.file("policy");
    Box::new(LearnedController::new(flow, policy.spec(), Box::new(policy.agent()), super::fallback))
}
