//! LIA (RFC 6356): the subflows of a connection together take what one TCP flow would take on the best path.
use super::shared::{self, ABC, Counting, Group, HALF_OF, KERNEL, Rule, Subflow};
use crate::control::{Ack, Loss, LossKind};
use crate::coupled::{Scope, Spec};

/// Entry of the table of coupled controllers.
pub const SPEC: Spec = Spec {
    name: "lia",
    about: "linked increases: one TCP's share in total, half of the window on a loss",
    source: "RFC 6356; multipath-tcp v0.92 mptcp_coupled.c",
    params: &[KERNEL, ABC, HALF_OF],
    scope: Scope::Connection,
    single: "new_reno",
    build: |params| {
        let counting = Counting::new(params);
        Box::new(Group::new(Lia { counting, alpha: 1, stale: true }, counting))
    },
};

/// The rule. A connection with one measured subflow is NewReno.
#[derive(Clone, Debug)]
pub struct Lia {
    counting: Counting,
    /// The Linux code's alpha over the sum of the windows, scaled by `2^ALPHA_BITS`.
    alpha: u128,
    /// Whether a repair began since it was computed, or nothing did.
    stale: bool,
}

/// Growth per acknowledged packet that the aggressiveness allows, packets: alpha over the sum of the
/// windows in RFC 6356 equation 1.
fn linked(set: &[Subflow<()>]) -> f64 {
    let known = || set.iter().filter(|subflow| subflow.is_measured());
    let best = known().map(|subflow| subflow.rate() / subflow.srtt).fold(0.0, f64::max);
    let sum: f64 = known().map(Subflow::rate).sum();
    best / (sum * sum)
}

/// As [`linked`], times `2^ALPHA_BITS`, in the integers of the Linux code; at least one.
fn linked_whole(set: &[Subflow<()>]) -> u128 {
    let known = || set.iter().filter(|subflow| subflow.is_measured());
    let score = |one: &Subflow<()>| one.rate() / one.srtt;
    let by_score = |one: &&Subflow<()>, other: &&Subflow<()>| score(one).total_cmp(&score(other));
    let Some(best) = known().max_by(by_score) else { return 1 };
    let share = |one: &Subflow<()>| (one.whole() << SUM_BITS) * best.srtt_us() / one.srtt_us();
    let sum: u128 = known().map(share).sum();
    let square = sum.saturating_mul(sum).max(1);
    ((best.whole() << NUMERATOR_BITS) / square).max(1)
}

impl Lia {
    fn avoid(&mut self, set: &mut [Subflow<()>], at: usize, packets: f64) {
        if shared::measured(set) <= 1 {
            return set[at].avoid_alone(packets, self.counting);
        }
        if !self.counting.kernel {
            let growth = linked(set).min(1.0 / set[at].window.cwnd);
            return set[at].window.grow(packets * growth);
        }
        if std::mem::take(&mut self.stale) {
            self.alpha = linked_whole(set);
        }
        for _ in 0..shared::steps(packets) {
            let every = ((1 << ALPHA_BITS) / self.alpha).max(set[at].whole());
            if set[at].count_to(every) {
                self.alpha = linked_whole(set);
            }
        }
    }
}

impl Rule for Lia {
    type Memory = ();

    fn on_ack(&mut self, set: &mut [Subflow<()>], at: usize, ack: &Ack) {
        let before = set[at].window.cwnd;
        shared::grow(set, at, ack, self.counting, |set, packets| self.avoid(set, at, packets));
        if self.counting.kernel && before <= set[at].window.ssthresh {
            self.alpha = linked_whole(set);
        }
    }

    fn on_loss(&mut self, set: &mut [Subflow<()>], at: usize, loss: &Loss) {
        set[at].reduce(loss, self.counting);
        self.stale |= matches!(loss.kind, LossKind::Gap);
        if self.counting.kernel {
            self.alpha = linked_whole(set);
        }
    }
}

/// Scale of a window above the line.
const NUMERATOR_BITS: u32 = 32;
/// Scale of the sum of the rates, which is squared.
const SUM_BITS: u32 = 10;
/// Scale of what is left.
const ALPHA_BITS: u32 = NUMERATOR_BITS - 2 * SUM_BITS;

#[cfg(test)]
mod tests {
    use super::super::shared::tests::{Bench, MSS};
    use super::*;

    #[test]
    fn two_equal_paths_grow_by_a_quarter_of_a_reno_each() {
        let mut bench = Bench::new(&SPEC, &[], &[(20.0, 0.1), (20.0, 0.1)]);
        bench.ack(0, 1);
        assert!((bench.window(0) - 20.0 - 1.0 / 80.0).abs() < 1e-3, "{}", bench.window(0));
        assert!((bench.window(1) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn the_increase_is_that_of_the_rfc_on_unequal_paths() {
        let paths = [(30.0, 0.05), (12.0, 0.2)];
        for at in 0..2 {
            let mut bench = Bench::new(&SPEC, &[], &paths);
            bench.ack(at, 1);
            // RFC 6356 section 3 as it is written, alpha first.
            let total = 42.0;
            let best = f64::max(30.0 / (0.05 * 0.05), 12.0 / (0.2 * 0.2));
            let sum: f64 = 30.0 / 0.05 + 12.0 / 0.2;
            let alpha = total * best / (sum * sum);
            let expected = f64::min(alpha / total, 1.0 / paths[at as usize].0);
            let grown = bench.window(at) - paths[at as usize].0;
            assert!((grown - expected).abs() < 1.1 / MSS as f64, "{grown} {expected}");
        }
    }

    #[test]
    fn no_subflow_grows_faster_than_a_reno_flow_would() {
        // A small window on a short path: alpha / w_total is above 1 / w of the other.
        let mut bench = Bench::new(&SPEC, &[], &[(50.0, 0.2), (2.0, 0.01)]);
        bench.ack(0, 1);
        assert!(bench.window(0) - 50.0 <= 1.0 / 50.0 + 1e-9);
    }

    #[test]
    fn a_loss_halves_one_window_and_leaves_the_other() {
        let mut bench = Bench::new(&SPEC, &[], &[(20.0, 0.1), (20.0, 0.1)]);
        bench.lose(0, LossKind::Gap);
        assert!((bench.window(0) - 10.0).abs() < 1e-9);
        assert!((bench.window(1) - 20.0).abs() < 1e-9);
    }

    #[test]
    fn integer_alpha_is_within_a_tenth_of_the_real_one() {
        for paths in
            [[(20.0, 0.1), (20.0, 0.1)], [(40.0, 0.03), (13.0, 0.17)], [(5.0, 0.2), (7.0, 0.3)]]
        {
            let bench = Bench::new(&SPEC, &[], &paths);
            let set: Vec<Subflow<()>> = bench.subflows();
            let (real, whole) = (linked(&set), linked_whole(&set) as f64 / 4096.0);
            assert!((whole / real - 1.0).abs() < 0.1, "{real} and {whole} on {paths:?}");
        }
    }

    #[test]
    fn the_integer_window_grows_like_the_real_one_within_a_packet_in_ten_round_trips() {
        let paths = [(20.0, 0.1), (20.0, 0.1)];
        let (mut real, mut whole) =
            (Bench::new(&SPEC, &[], &paths), Bench::new(&SPEC, &[("kernel", "on")], &paths));
        for _ in 0..200 {
            for at in 0..2 {
                real.ack(at, 1);
                whole.ack(at, 1);
            }
        }
        assert!((real.window(0) - whole.window(0)).abs() <= 1.0);
        assert!((whole.window(0).fract()).abs() < 1e-9, "whole packets");
    }
}
