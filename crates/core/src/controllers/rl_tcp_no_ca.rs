//! RL-TCP without its credit assignment (Kong et al. 2018, Table 2): each reward goes to the action
//! of the step that it measures, although that action shows one round trip later.
use crate::control::Spec;
use crate::controllers::rl_tcp::{PARAMS, rl_tcp};
use crate::controllers::shared::tabular::Update;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "rl_tcp_no_ca",
    about: "RL-TCP with plain SARSA in place of shifted credit",
    source: "Kong, Zang and Ma, NetAI 2018, section 3.2, equations 1, 2 and 4",
    params: PARAMS,
    build: |flow, params| Box::new(rl_tcp(flow, params, Update::Sarsa)),
};
