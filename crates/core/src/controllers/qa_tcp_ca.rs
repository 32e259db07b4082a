//! Qa-TCP with the credit assignment of RL-TCP (Kong et al. 2018, Table 2).
use crate::control::Spec;
use crate::controllers::q_tcp::{PARAMS, q_tcp};
use crate::controllers::rl_tcp::ACTIONS;
use crate::controllers::shared::tabular::Update;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "qa_tcp_ca",
    about: "Q-TCP with RL-TCP's actions and credit shifted by a round trip",
    source: "Kong, Zang and Ma, NetAI 2018, Table 2 and equation 3",
    params: PARAMS,
    build: |flow, params| Box::new(q_tcp(flow, params, ACTIONS, Update::ShiftedQLearning)),
};
