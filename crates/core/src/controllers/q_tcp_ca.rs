//! Q-TCP with the credit assignment of RL-TCP (Kong et al. 2018, Table 2): a reward goes to the
//! action of the step before. That it stays Q-learning is proposed; the paper does not say.
use crate::control::Spec;
use crate::controllers::q_tcp::{ACTIONS, PARAMS, q_tcp};
use crate::controllers::shared::tabular::Update;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "q_tcp_ca",
    about: "Q-TCP with credit shifted by a round trip",
    source: "Kong, Zang and Ma, NetAI 2018, Table 2 and equation 3",
    params: PARAMS,
    build: |flow, params| Box::new(q_tcp(flow, params, ACTIONS, Update::ShiftedQLearning)),
};
