//! Q-TCP: Li, Zhou, Meleis and Chowdhury, "Learning-based and Data-driven TCP Design for
//! Memory-constrained `IoT`", DCOSS 2016, as Kong et al. 2018 compare with it. The loop is in [`kong`].
//!
//! *source* below means what secondary sources report of that paper (reading notes, and the
//! re-implementation cdgreenidge/ns-3-cos561).
use crate::control::{FlowInfo, Spec};
use crate::controllers::shared::kong::{self, Kong, Member, Objective, Path, axis, choice, number};
use crate::controllers::shared::tabular::{Grid, Update};
use crate::params::{Param, Params};
use crate::sensing::Outcome;
use crate::units::Span;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "q_tcp",
    about: "learns the congestion-avoidance increment by Q-learning; actions up to +20 packets",
    source: "Li et al., DCOSS 2016; Kong, Zang and Ma, NetAI 2018, section 4",
    params: PARAMS,
    build: |flow, params| Box::new(q_tcp(flow, params, ACTIONS, Update::QLearning)),
};

/// Packets that `cwnd` gains in one step (Kong et al. 2018, Table 2).
pub const ACTIONS: &[f64] = &[-1.0, 0.0, 5.0, 10.0, 20.0];

/// Settings of Q-TCP and its three variants.
pub const PARAMS: &[Param] = &kong::with_family::<{ OWN.len() + kong::FAMILY }>(OWN);

const OWN: &[Param] = &[
    number("delta", "weight of delay in the utility (source: 1)", 1.0, 0.0, 100.0),
    number(
        "dead_zone",
        "a change of utility up to this is none (source: ns-3-cos561)",
        1e-3,
        0.0,
        100.0,
    ),
    number("gamma", "discount per step (source: ns-3-cos561)", 0.9, 0.0, 1.0),
    choice(
        "ranges",
        "what the levels cut: `fit` as in RL-TCP (proposed), or `orig`, gaps to 10 ms and round \
         trips to five times the smallest (source: ns-3-cos561)",
        &["fit", "orig"],
    ),
];

/// Q-TCP with the given actions and update.
pub fn q_tcp(
    flow: &FlowInfo,
    params: &Params,
    actions: &'static [f64],
    update: Update,
) -> Kong<QObjective> {
    let path = Path::new(flow, params);
    let objective =
        QObjective { delta: params.number("delta"), dead_zone: params.number("dead_zone") };
    Kong::new(flow, params, Member { actions, grid: grid(&path, params), objective, update })
}

/// Both gaps, round-trip ratio and `ssthresh`; unlike in RL-TCP `cwnd` is not part of the state.
pub fn grid(path: &Path, params: &Params) -> Grid {
    let (gap_max_s, ratio_max) = match params.choice("ranges") {
        "orig" => (path.gap_given_s().unwrap_or(0.010), 5.0),
        _ => (path.gap_max_s(), path.rtt_ratio_max()),
    };
    Grid::new(vec![
        axis(0.0, gap_max_s, params, "levels"),
        axis(0.0, gap_max_s, params, "levels"),
        axis(1.0, ratio_max, params, "levels"),
        axis(0.0, path.ssthresh_max(), params, "levels"),
    ])
}

/// Utility and reward of Q-TCP.
#[derive(Clone, Debug)]
pub struct QObjective {
    delta: f64,
    dead_zone: f64,
}

impl Objective for QObjective {
    /// `ln(throughput) - delta ln(delay)`, where delay is the mean round trip of the step.
    fn utility(&self, step: &Outcome, min_rtt: Span) -> f64 {
        let delay_s = step.rtt_mean_s.max(min_rtt.as_secs_f64()).max(1e-9);
        libm::log(step.throughput_bps) - self.delta * libm::log(delay_s)
    }

    /// The sign of the change.
    fn reward(&self, change: f64) -> f64 {
        match change {
            change if change > self.dead_zone => 2.0,
            change if change < -self.dead_zone => -2.0,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::{Bytes, Time};

    const OBJECTIVE: QObjective = QObjective { delta: 1.0, dead_zone: 1e-3 };

    #[test]
    fn the_reward_is_the_sign_of_the_change_outside_the_dead_zone() {
        let rewards = [0.002, 0.0005, 0.0, -0.0005, -0.002].map(|x| OBJECTIVE.reward(x));
        let expected = [2.0, 0.0, 0.0, 0.0, -2.0];
        assert!(rewards.iter().zip(expected).all(|(reward, sign)| (reward - sign).abs() < 1e-9));
    }

    #[test]
    fn double_throughput_at_double_round_trip_is_no_gain() {
        let step = |factor: f64| Outcome {
            throughput_bps: 1e6 * factor,
            rtt_mean_s: 0.15 * factor,
            loss_ratio: 0.3,
        };
        let min_rtt = Span::from_millis(150);
        let change =
            OBJECTIVE.utility(&step(2.0), min_rtt) - OBJECTIVE.utility(&step(1.0), min_rtt);
        assert!(change.abs() < 1e-9, "{change}");
    }

    fn state(ranges: &str, features: &[f64]) -> u64 {
        let flow = FlowInfo {
            mss: Bytes(1250),
            initial_cwnd: Bytes(2500),
            initial_ssthresh: Bytes(u64::MAX),
            recovery: Recovery::Ns2,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given = [("ranges".to_owned(), ParamValue::Word(ranges.to_owned()))];
        let params = Params::resolve(PARAMS, &given).unwrap();
        grid(&Path::new(&flow, &params), &params).number(features)
    }

    #[test]
    fn the_original_ranges_see_no_difference_between_an_empty_and_a_full_buffer() {
        let (empty, full) = ([0.001, 0.001, 1.0, 75.0], [0.001, 0.001, 1.33, 75.0]);
        assert_eq!(state("orig", &empty), state("orig", &full));
        assert_ne!(state("fit", &empty), state("fit", &full));
    }

    #[test]
    fn cwnd_is_not_part_of_the_state() {
        let at = |cwnd| state("fit", &[0.001, 0.001, 1.2, 75.0, cwnd]);
        assert_eq!(at(1.0), at(150.0));
    }
}
