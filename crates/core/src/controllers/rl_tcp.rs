//! RL-TCP: Kong, Zang and Ma, "Improving TCP Congestion Control with Machine Intelligence", `NetAI`
//! 2018, section 3.2. The loop of its Table 1 is in [`kong`]; here is what is RL-TCP's own.
use crate::control::{FlowInfo, Spec};
use crate::controllers::shared::kong::{
    self, Kong, Member, Objective, Path, axis, number, range_end,
};
use crate::controllers::shared::tabular::{Grid, Update};
use crate::params::{Param, Params};
use crate::sensing::Outcome;
use crate::units::{Rate, Span};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "rl_tcp",
    about: "learns the congestion-avoidance increment by SARSA; credit shifted by a round trip",
    source: "Kong, Zang and Ma, NetAI 2018, section 3.2, Table 1, equations 1, 3 and 4",
    params: PARAMS,
    build: |flow, params| Box::new(rl_tcp(flow, params, Update::ShiftedSarsa)),
};

/// Packets that `cwnd` gains in one step.
pub const ACTIONS: &[f64] = &[-1.0, 0.0, 1.0, 3.0];

/// RL-TCP's settings, with or without its credit assignment.
pub const PARAMS: &[Param] = &kong::with_family::<{ OWN.len() + kong::FAMILY }>(OWN);

const OWN: &[Param] = &[
    number(
        "delta1",
        "weight of delay in the utility (paper: 0.01 alone; 0.2 among four; 0.4 on-off; 0 against \
         NewReno)",
        0.01,
        0.0,
        100.0,
    ),
    number(
        "delta2",
        "weight of loss in the utility (paper: 0.1; 0 against NewReno)",
        0.1,
        0.0,
        100.0,
    ),
    number("gamma", "discount per step (paper: section 4)", 0.5, 0.0, 1.0),
    number("levels_cwnd", "intervals of `cwnd` (paper: 10 to 20)", 20.0, 1.0, 1000.0),
    number(
        "cwnd_max_packets",
        "end of the range of `cwnd` for one sender; 0: BDP + L (proposed)",
        0.0,
        0.0,
        1e9,
    ),
    number(
        "delay_floor_ms",
        "an empty queue counts as this much delay, whose logarithm is finite (proposed)",
        0.1,
        1e-6,
        1000.0,
    ),
];

/// RL-TCP with the given update: equation 3, or equation 2 for the comparison without credit
/// assignment.
pub fn rl_tcp(flow: &FlowInfo, params: &Params, update: Update) -> Kong<RlObjective> {
    let path = Path::new(flow, params);
    let member = Member {
        actions: ACTIONS,
        grid: grid(&path, params),
        objective: RlObjective {
            bandwidth: path.bandwidth,
            delta1: params.number("delta1"),
            delta2: params.number("delta2"),
            delay_floor_ms: params.number("delay_floor_ms"),
        },
        update,
    };
    Kong::new(flow, params, member)
}

/// "Uniformly discretized over a range where most of its values lie in". The ranges are proposed.
pub fn grid(path: &Path, params: &Params) -> Grid {
    let cwnd_max = path.window_max(range_end(params, "cwnd_max_packets"));
    Grid::new(vec![
        axis(0.0, path.gap_max_s(), params, "levels"),
        axis(0.0, path.gap_max_s(), params, "levels"),
        axis(1.0, path.rtt_ratio_max(), params, "levels"),
        axis(0.0, path.ssthresh_max(), params, "levels"),
        axis(0.0, cwnd_max, params, "levels_cwnd"),
    ])
}

/// Utility and reward of RL-TCP.
#[derive(Clone, Debug)]
pub struct RlObjective {
    bandwidth: Rate,
    delta1: f64,
    delta2: f64,
    delay_floor_ms: f64,
}

impl Objective for RlObjective {
    /// Equation 1; d in ms, as in the paper's tables (its unit cancels in the change of utility).
    fn utility(&self, step: &Outcome, min_rtt: Span) -> f64 {
        let delay_ms = (step.rtt_mean_s * 1e3 - min_rtt.as_millis_f64()).max(self.delay_floor_ms);
        libm::log(step.throughput_bps / self.bandwidth.0 as f64) - self.delta1 * libm::log(delay_ms)
            + self.delta2 * libm::log(1.0 - step.loss_ratio)
    }

    /// Equation 4.
    fn reward(&self, change: f64) -> f64 {
        match change {
            change if change >= 1.0 => 10.0,
            change if change >= 0.0 => 2.0,
            change if change >= -1.0 => -2.0,
            _ => -10.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::{Bytes, Time};

    const OBJECTIVE: RlObjective =
        RlObjective { bandwidth: Rate(10_000_000), delta1: 0.01, delta2: 0.1, delay_floor_ms: 0.1 };

    fn utility(throughput_bps: f64, rtt_mean_s: f64, loss_ratio: f64) -> f64 {
        let step = Outcome { throughput_bps, rtt_mean_s, loss_ratio };
        OBJECTIVE.utility(&step, Span::from_millis(150))
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn equation_4_has_four_levels_with_its_own_borders() {
        let changes = [1.0, 0.999, 0.0, -0.001, -1.0, -1.001, f64::NAN];
        let rewards = changes.map(|change| OBJECTIVE.reward(change));
        let expected = [10.0, 2.0, 2.0, -2.0, -2.0, -10.0, -10.0];
        assert!(rewards.iter().zip(expected).all(|(reward, level)| (reward - level).abs() < 1e-9));
    }

    #[test]
    fn equation_1_is_zero_for_a_full_link_with_a_millisecond_of_queue_and_no_loss() {
        close(utility(1e7, 0.151, 0.0), 0.0);
    }

    #[test]
    fn equation_1_weighs_throughput_delay_and_loss() {
        close(utility(5e6, 0.151, 0.0), -libm::log(2.0));
        close(utility(1e7, 0.170, 0.0), -0.01 * libm::log(20.0));
        close(utility(1e7, 0.151, 0.5), -0.1 * libm::log(2.0));
    }

    /// Number of the box of these features in the grid with these settings.
    fn state(settings: &[(&str, ParamValue)], features: &[f64]) -> u64 {
        let flow = FlowInfo {
            mss: Bytes(1250),
            initial_cwnd: Bytes(2500),
            initial_ssthresh: Bytes(u64::MAX),
            recovery: Recovery::Ns2,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given: Vec<_> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let params = Params::resolve(PARAMS, &given).unwrap();
        grid(&Path::new(&flow, &params), &params).number(features)
    }

    #[test]
    fn a_wider_range_of_cwnd_resolves_it_less() {
        let (low, high) = ([0.001, 0.001, 1.2, 75.0, 101.0], [0.001, 0.001, 1.2, 75.0, 149.0]);
        let wide = [("cwnd_max_packets", ParamValue::Number(1000.0))];
        assert_ne!(state(&[], &low), state(&[], &high)); // levels of 10 packets
        assert_eq!(state(&wide, &low), state(&wide, &high)); // levels of 50
        let beyond = [0.001, 0.001, 1.2, 75.0, 151.0];
        assert_ne!(state(&wide, &low), state(&wide, &beyond));
    }

    #[test]
    fn the_ranges_of_one_sender_serve_four_or_are_scaled_to_them() {
        let four = |scale: &str| {
            let given = [
                ("flows", ParamValue::Number(4.0)),
                ("grid_scale", ParamValue::Word(scale.to_owned())),
                ("cwnd_max_packets", ParamValue::Number(200.0)),
            ];
            move |cwnd| state(&given, &[0.001, 0.001, 1.2, 75.0, cwnd])
        };
        let (scaled, one) = (four("flows"), four("one"));
        assert_ne!(scaled(21.0), scaled(29.0)); // 0 to 2/4 of 200: levels of 5 packets
        assert_eq!(one(21.0), one(29.0)); // 0 to 200: levels of 10
    }

    #[test]
    fn an_empty_queue_counts_as_a_tenth_of_a_millisecond() {
        close(utility(1e7, 0.150, 0.0), -0.01 * libm::log(0.1));
        close(utility(1e7, 0.0, 0.0), -0.01 * libm::log(0.1));
    }
}
