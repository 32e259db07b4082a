//! Qa-TCP: Q-TCP with the small actions of RL-TCP (Kong et al. 2018, Table 2).
use crate::control::Spec;
use crate::controllers::q_tcp::{PARAMS, q_tcp};
use crate::controllers::rl_tcp::ACTIONS;
use crate::controllers::shared::tabular::Update;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "qa_tcp",
    about: "Q-TCP with RL-TCP's actions, up to +3 packets",
    source: "Kong, Zang and Ma, NetAI 2018, Table 2",
    params: PARAMS,
    build: |flow, params| Box::new(q_tcp(flow, params, ACTIONS, Update::QLearning)),
};
