//! OLIA (Khalili, Gast, Popovic, Le Boudec 2012): a coupled increase that is Pareto-optimal, and a term that
//! moves window from the paths with the largest window to the best ones.
use super::shared::{self, ABC, Counting, Group, HALF_OF, KERNEL, Rule, Subflow};
use crate::control::{Ack, Loss, LossKind};
use crate::coupled::{Scope, Spec};

/// Entry of the table of coupled controllers.
pub const SPEC: Spec = Spec {
    name: "olia",
    about: "coupled increase that shifts window to the paths with the fewest losses",
    source: "Khalili et al. 2012; multipath-tcp v0.92 mptcp_olia.c",
    params: &[KERNEL, ABC, HALF_OF],
    scope: Scope::Connection,
    single: "new_reno",
    build: |params| {
        let counting = Counting::new(params);
        Box::new(Group::new(Olia { counting }, counting))
    },
};

/// The rule. With one measured subflow its formula is NewReno's.
#[derive(Clone, Debug)]
pub struct Olia {
    counting: Counting,
}

/// What is kept of a subflow's losses.
#[derive(Clone, Copy, Debug, Default)]
pub struct Losses {
    /// Bytes acknowledged since the latest loss.
    since: f64,
    /// Bytes acknowledged between the two latest losses.
    before: f64,
    /// Part of a packet that the window has grown by, times `1 << BITS`, in the integers of the Linux code.
    part: i128,
}

impl Losses {
    /// Estimate of the bytes between two losses.
    fn between(self) -> f64 {
        self.since.max(self.before)
    }
}

type Path = Subflow<Losses>;

/// A subflow's window as the sums take it, packets: the threshold during a repair.
fn weight(path: &Path) -> f64 {
    if path.in_recovery { path.window.ssthresh } else { path.window.cwnd }
}

/// The term that moves window between paths, as numerator and denominator: 1 / (|R| |B \ M|) on a best
/// path without the largest window, -1 / (|R| |M|) on one with the largest window if there is such a best
/// path, otherwise 0.
fn shift(set: &[Path], at: usize) -> (i8, usize) {
    let known = || set.iter().filter(|path| path.is_measured());
    let quality = |path: &Path| path.memory.between() / (path.srtt * path.srtt);
    let largest = known().map(weight).fold(0.0, f64::max);
    let best = known().map(quality).fold(0.0, f64::max);
    let is_largest = |path: &Path| weight(path) >= largest;
    let is_collected = |path: &Path| quality(path) >= best && !is_largest(path);
    let n_collected = known().filter(|path| is_collected(path)).count();
    let n_largest = known().filter(|path| is_largest(path)).count();
    let paths = known().count();
    if n_collected == 0 {
        (0, 1)
    } else if is_collected(&set[at]) {
        (1, paths * n_collected)
    } else if is_largest(&set[at]) {
        (-1, paths * n_largest)
    } else {
        (0, 1)
    }
}

/// Growth per acknowledged packet, packets: (w / srtt^2) / (sum of w / srtt)^2 + shift / w.
fn growth(set: &[Path], at: usize) -> f64 {
    let own = &set[at];
    let known = set.iter().filter(|path| path.is_measured());
    // Both sides of the fraction times srtt^2: a single path then gives 1 / w without rounding.
    let sum: f64 = known.map(|path| weight(path) * (own.srtt / path.srtt)).sum();
    let share = own.window.cwnd / sum;
    let (sign, parts) = shift(set, at);
    share * share / own.window.cwnd + f64::from(sign) / (parts as f64 * own.window.cwnd)
}

/// As [`growth`], times `1 << BITS`, in the integers of the Linux code, rounded to zero.
fn growth_whole(set: &[Path], at: usize) -> i128 {
    let own = &set[at];
    let known = set.iter().filter(|path| path.is_measured());
    let share =
        |path: &Path| ((weight(path) as u128) << BITS) * own.srtt_us() / path.srtt_us().max(1);
    let sum = known.map(share).sum::<u128>();
    // Below 2^127 whatever the windows and round trips are.
    let rate = sum.min(1 << 40).pow(2) as i128;
    let window = own.whole().min(1 << 30) as i128;
    let (sign, parts) = shift(set, at);
    let parts = parts as i128;
    let scaled = window << BITS;
    let above = parts * scaled * scaled + i128::from(sign) * rate;
    let below = (parts * window * rate).max(1);
    (above << BITS) / below
}

impl Olia {
    fn avoid(&self, set: &mut [Path], at: usize, packets: f64) {
        if !self.counting.kernel {
            let growth = growth(set, at);
            return set[at].window.grow(packets * growth);
        }
        for _ in 0..shared::steps(packets) {
            let path_growth = growth_whole(set, at);
            let path = &mut set[at];
            path.memory.part += path_growth;
            if path.memory.part.abs() >= (1 << BITS) - 1 {
                path.window.grow(path.memory.part.signum() as f64);
                path.memory.part = 0;
            }
        }
    }
}

impl Rule for Olia {
    type Memory = Losses;

    fn on_ack(&mut self, set: &mut [Path], at: usize, ack: &Ack) {
        set[at].memory.since += ack.acked.0 as f64;
        shared::grow(set, at, ack, self.counting, |set, packets| self.avoid(set, at, packets));
    }

    fn on_loss(&mut self, set: &mut [Path], at: usize, loss: &Loss) {
        let memory = &mut set[at].memory;
        if matches!(loss.kind, LossKind::Gap | LossKind::Timeout) && memory.since > 0.0 {
            memory.before = std::mem::take(&mut memory.since);
        }
        set[at].reduce(loss, self.counting);
    }
}

/// Scale of the parts of a packet.
const BITS: u32 = 10;

#[cfg(test)]
mod tests {
    use super::super::shared::tests::{Bench, MSS};
    use super::*;

    #[test]
    fn window_moves_from_the_largest_to_the_best_path() {
        let bench = Bench::new(&SPEC, &[], &[(30.0, 0.1), (10.0, 0.1)]);
        let set: Vec<Path> = bench.subflows_with(|at| Losses {
            since: [10.0, 100.0][at] * MSS as f64,
            ..Losses::default()
        });
        // |R| = 2, |B \ M| = 1, |M| = 1.
        assert_eq!(shift(&set, 0), (-1, 2));
        assert_eq!(shift(&set, 1), (1, 2));
        let first = 30.0 / (40.0 * 40.0);
        assert!((growth(&set, 0) - (first - 0.5 / 30.0)).abs() < 1e-12);
        let second = 10.0 / (40.0 * 40.0);
        assert!((growth(&set, 1) - (second + 0.5 / 10.0)).abs() < 1e-12);
    }

    #[test]
    fn nothing_moves_while_a_best_path_has_the_largest_window() {
        let bench = Bench::new(&SPEC, &[], &[(30.0, 0.1), (10.0, 0.1)]);
        let set: Vec<Path> = bench.subflows_with(|at| Losses {
            since: [100.0, 10.0][at] * MSS as f64,
            ..Losses::default()
        });
        assert_eq!((shift(&set, 0).0, shift(&set, 1).0), (0, 0));
    }

    #[test]
    fn the_best_path_is_that_with_the_most_bytes_between_losses_over_the_square_of_the_round_trip()
    {
        // Four times the bytes at twice the round trip: a tie; a little more wins.
        let of = |second: f64| {
            let bench = Bench::new(&SPEC, &[], &[(30.0, 0.1), (10.0, 0.2)]);
            let set: Vec<Path> =
                bench.subflows_with(|at| Losses { since: [1e5, second][at], ..Losses::default() });
            shift(&set, 1).0
        };
        assert_eq!((of(3.9e5), of(4.1e5)), (0, 1));
    }

    #[test]
    fn the_bytes_between_losses_are_the_larger_of_this_gap_and_the_last() {
        let mut rule = Olia { counting: Bench::counting(&SPEC, &[]) };
        let mut set: Vec<Path> =
            Bench::new(&SPEC, &[], &[(20.0, 0.1)]).subflows_with(|_| Losses::default());
        let ack = |packets: u64| Bench::ack_of(0.1, packets, 0);
        let loss = Bench::loss_of(20, LossKind::Gap);
        rule.on_ack(&mut set, 0, &ack(50));
        rule.on_loss(&mut set, 0, &loss);
        rule.on_ack(&mut set, 0, &ack(7));
        assert!((set[0].memory.between() - 50.0 * MSS as f64).abs() < 1e-6);
        rule.on_loss(&mut set, 0, &loss);
        assert!((set[0].memory.between() - 7.0 * MSS as f64).abs() < 1e-6);
        rule.on_loss(&mut set, 0, &loss);
        assert!((set[0].memory.between() - 7.0 * MSS as f64).abs() < 1e-6, "nothing acknowledged");
    }

    #[test]
    fn a_path_in_recovery_counts_with_its_threshold() {
        let bench = Bench::new(&SPEC, &[], &[(30.0, 0.1), (10.0, 0.1)]);
        let mut set: Vec<Path> =
            bench.subflows_with(|at| Losses { since: [1e6, 1e5][at], ..Losses::default() });
        set[0].in_recovery = true;
        set[0].window.ssthresh = 15.0;
        let expected = 10.0 / (25.0 * 25.0);
        assert!((growth(&set, 1) - expected).abs() < 1e-12, "{}", growth(&set, 1));
    }

    #[test]
    fn the_integer_growth_is_within_a_unit_of_its_scale() {
        let unit = 1.0 / f64::from(1 << BITS);
        for (first, second) in [((20.0, 0.1), (20.0, 0.1)), ((40.0, 0.03), (13.0, 0.17))] {
            for bytes in [[1e5, 1e4], [1e4, 1e6]] {
                let bench = Bench::new(&SPEC, &[], &[first, second]);
                let set: Vec<Path> =
                    bench.subflows_with(|at| Losses { since: bytes[at], ..Losses::default() });
                for at in 0..2 {
                    let (real, whole) = (growth(&set, at), growth_whole(&set, at) as f64 * unit);
                    // A fraction that is cut: one unit, and a hundredth for the rounded sum.
                    let bound = unit + 0.01 * real.abs();
                    assert!((whole - real).abs() <= bound, "{real} and {whole}");
                }
            }
        }
    }

    #[test]
    fn an_integer_window_falls_by_a_packet_when_the_parts_make_one() {
        let mut set: Vec<Path> = Bench::new(&SPEC, &[], &[(2.0, 0.1), (1.0, 0.1)])
            .subflows_with(|at| Losses { since: [1.0, 1e6][at], part: -1000, before: 0.0 });
        let rule = Olia { counting: Bench::counting(&SPEC, &[("kernel", "on")]) };
        assert_eq!(shift(&set, 0).0, -1);
        rule.avoid(&mut set, 0, 1.0);
        assert!((set[0].window.cwnd - 1.0).abs() < 1e-9);
        assert_eq!(set[0].memory.part, 0);
    }
}
