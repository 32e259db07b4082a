//! Every subflow sends all data, so that each byte arrives by the fastest path.
use super::{Candidate, Scheduler, Spec};

/// Entry of the table of schedulers.
pub const SPEC: Spec = Spec {
    name: "redundant",
    about: "every subflow that has room sends every byte that it has not itself sent",
    source: "MPTCP v0.94, scheduler `redundant`",
    build: || Box::new(Redundant),
};

#[derive(Debug)]
struct Redundant;

impl Scheduler for Redundant {
    fn choose(&self, _candidates: &[Candidate]) -> usize {
        0
    }

    fn is_redundant(&self) -> bool {
        true
    }
}
