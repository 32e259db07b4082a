//! BALIA (Peng, Walid, Hwang, Low 2016): balances how friendly a connection is to single-path TCP with how
//! fast it answers changes.
use super::shared::{self, ABC, Counting, Group, HALF_OF, KERNEL, Rule, Subflow};
use crate::control::{Ack, Loss, LossKind};
use crate::coupled::{Scope, Spec};
use crate::params::{Param, ParamKind};

/// Entry of the table of coupled controllers.
pub const SPEC: Spec = Spec {
    name: "balia",
    about: "balanced linked adaptation: the slower path grows faster and falls deeper",
    source: "Peng et al. 2016; multipath-tcp v0.92 mptcp_balia.c",
    params: &[
        KERNEL,
        ABC,
        HALF_OF,
        Param {
            name: "int_alpha",
            about: "`on` drops the fraction of alpha in the decrease, which is then half of the window or \
                    three quarters (source: multipath-tcp v0.92); implied by `kernel = \"on\"`",
            kind: ParamKind::Choice(&["off", "on"]),
        },
    ],
    scope: Scope::Connection,
    single: "new_reno",
    build: |params| {
        let counting = Counting::new(params);
        let int_alpha = counting.kernel || params.choice("int_alpha") == "on";
        Box::new(Group::new(Balia { counting, int_alpha }, counting))
    },
};

/// The rule. A connection with one measured subflow is NewReno.
#[derive(Clone, Debug)]
pub struct Balia {
    counting: Counting,
    int_alpha: bool,
}

/// What is kept of a subflow: the Linux code's acknowledgements per packet of growth, computed when the
/// window changes; zero before.
type Path = Subflow<u128>;

/// Largest rate among the paths over that of this one, at least one; 1 while it is not known.
fn alpha(set: &[Path], at: usize) -> f64 {
    let best = set.iter().map(Subflow::rate).fold(0.0, f64::max);
    let own = set[at].rate();
    if own > 0.0 { best / own } else { 1.0 }
}

/// Growth per acknowledged packet, packets.
fn growth(set: &[Path], at: usize) -> f64 {
    let sum: f64 = set.iter().map(Subflow::rate).sum();
    let (own, alpha) = (&set[at], alpha(set, at));
    own.rate() / (own.srtt * sum * sum) * (1.0 + alpha) * (4.0 + alpha) / 10.0
}

/// Acknowledged packets per packet of growth in the integers of the Linux code: the inverse of
/// [`growth`] with rates in bytes per second.
fn every(set: &[Path], at: usize) -> u128 {
    let packet = set[at].window.bytes(1.0).0;
    let rate = |path: &Path| {
        if path.is_measured() {
            u128::from(packet) * path.whole() * 1_000_000 / path.srtt_us()
        } else {
            0
        }
    };
    let mut best = set.iter().map(rate).max().unwrap_or_default();
    let mut bits = 0;
    while best > 1 << RATE_BITS_MAX {
        best >>= RATE_STEP_BITS;
        bits += RATE_STEP_BITS;
    }
    let sum: u128 = set.iter().map(|path| rate(path) >> bits).sum();
    let own = rate(&set[at]) >> bits;
    let window = set[at].whole();
    let every = sum * sum * 10 / (own + best).max(1) * window / (4 * own + best).max(1);
    if every == 0 { window } else { every }
}

impl Balia {
    fn avoid(&self, set: &mut [Path], at: usize, packets: f64) {
        if shared::measured(set) <= 1 {
            return set[at].avoid_alone(packets, self.counting);
        }
        if !self.counting.kernel {
            let growth = growth(set, at);
            return set[at].window.grow(packets * growth);
        }
        for _ in 0..shared::steps(packets) {
            if set[at].memory == 0 {
                set[at].memory = every(set, at);
            }
            let every = set[at].memory;
            if set[at].count_to(every) {
                set[at].memory = 0;
            }
        }
    }

    /// The threshold that a loss leaves, packets: w - w / 2 * min(alpha, 1.5).
    fn reduced(&self, set: &[Path], at: usize, loss: &Loss) -> f64 {
        let alpha = alpha(set, at);
        let share = if self.int_alpha { alpha.floor() } else { alpha }.min(DECREASE_MAX);
        if self.counting.kernel {
            let half = (set[at].window.cwnd / 2.0).floor();
            return (set[at].window.cwnd.floor() - (half * share).floor()).max(1.0);
        }
        let base = set[at].base_of_reduction(loss);
        (base - base / 2.0 * share).max(1.0)
    }
}

impl Rule for Balia {
    type Memory = u128;

    fn on_ack(&mut self, set: &mut [Path], at: usize, ack: &Ack) {
        let before = set[at].window.cwnd;
        shared::grow(set, at, ack, self.counting, |set, packets| self.avoid(set, at, packets));
        if before <= set[at].window.ssthresh {
            set[at].memory = 0;
        }
    }

    fn on_loss(&mut self, set: &mut [Path], at: usize, loss: &Loss) {
        if shared::measured(set) <= 1 {
            set[at].reduce(loss, self.counting);
        } else {
            let reduced = self.reduced(set, at, loss);
            set[at].reduce_to(loss, reduced);
        }
        if matches!(loss.kind, LossKind::Gap | LossKind::Timeout | LossKind::TimeoutAgain) {
            // The rates of all have changed.
            for path in set {
                path.memory = 0;
            }
        }
    }
}

/// Most of half a window that a loss takes.
const DECREASE_MAX: f64 = 1.5;
/// Rates, bytes per second, are cut below this power of two.
const RATE_BITS_MAX: u32 = 25;
/// By so many bits at a time.
const RATE_STEP_BITS: u32 = 5;

#[cfg(test)]
mod tests {
    use super::super::shared::tests::{Bench, MSS};
    use super::*;

    #[test]
    fn two_equal_paths_grow_by_a_quarter_of_a_reno_each() {
        let bench = Bench::new(&SPEC, &[], &[(20.0, 0.1), (20.0, 0.1)]);
        let set: Vec<Path> = bench.subflows();
        assert!((growth(&set, 0) - 1.0 / 80.0).abs() < 1e-12);
        assert!((alpha(&set, 0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_growth_is_the_formula_of_the_paper_on_unequal_paths() {
        let paths = [(30.0, 0.05), (12.0, 0.2)];
        let set: Vec<Path> = Bench::new(&SPEC, &[], &paths).subflows();
        let rates = paths.map(|(window, srtt)| window / srtt);
        let sum = rates[0] + rates[1];
        for at in 0..2 {
            let alpha = rates[0].max(rates[1]) / rates[at];
            let expected =
                rates[at] / (paths[at].1 * sum * sum) * (0.5 + alpha / 2.0) * (0.8 + alpha / 5.0);
            assert!((growth(&set, at) - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_single_path_has_the_growth_of_reno() {
        let set: Vec<Path> = Bench::new(&SPEC, &[], &[(20.0, 0.1)]).subflows();
        assert!((growth(&set, 0) - 1.0 / 20.0).abs() < 1e-12);
    }

    /// The second window after a loss, beside a first path `alpha` times as fast.
    fn after_loss(settings: &[(&str, &str)], alpha: f64) -> f64 {
        let mut bench = Bench::new(&SPEC, settings, &[(20.0 * alpha, 0.1), (20.0, 0.1)]);
        bench.lose(1, LossKind::Gap);
        bench.window(1)
    }

    #[test]
    fn a_loss_takes_half_of_the_window_times_alpha_up_to_three_quarters() {
        for (alpha, left) in [(1.0, 10.0), (1.2, 8.0), (1.5, 5.0), (4.0, 5.0)] {
            assert!((after_loss(&[], alpha) - left).abs() < 2.0 / MSS as f64, "{alpha}");
        }
    }

    #[test]
    fn an_integer_alpha_takes_half_or_three_quarters() {
        for settings in [[("int_alpha", "on")], [("kernel", "on")]] {
            for (alpha, left) in [(1.0, 10.0), (1.9, 10.0), (2.0, 5.0), (4.0, 5.0)] {
                assert!((after_loss(&settings, alpha) - left).abs() < 1e-9, "{settings:?} {alpha}");
            }
        }
    }

    #[test]
    fn integer_growth_is_within_two_hundredths_of_the_real_one() {
        for paths in
            [[(20.0, 0.1), (20.0, 0.1)], [(40.0, 0.03), (13.0, 0.17)], [(9e4, 0.01), (3e4, 0.02)]]
        {
            let set: Vec<Path> = Bench::new(&SPEC, &[], &paths).subflows();
            for at in 0..2 {
                let (real, whole) = (1.0 / growth(&set, at), every(&set, at) as f64);
                // A whole number of packets: one unit, and what the cut rates lose.
                assert!((whole - real).abs() <= 1.0 + 0.02 * real, "{real} and {whole}");
            }
        }
    }
}
