//! The subflows send in turn, a segment each.
use super::{Candidate, Scheduler, Spec};

/// Entry of the table of schedulers.
pub const SPEC: Spec = Spec {
    name: "round_robin",
    about: "one segment per subflow in turn, of those that have room",
    source: "MPTCP v0.92, scheduler `roundrobin` with num_segments = 1",
    build: || Box::new(RoundRobin { last: usize::MAX }),
};

#[derive(Debug)]
struct RoundRobin {
    /// The subflow that sent last; `usize::MAX` before the first segment.
    last: usize,
}

impl Scheduler for RoundRobin {
    fn choose(&self, candidates: &[Candidate]) -> usize {
        let after =
            |candidate: &Candidate| self.last == usize::MAX || candidate.subflow > self.last;
        candidates.iter().position(after).unwrap_or(0)
    }

    fn on_sent(&mut self, subflow: usize) {
        self.last = subflow;
    }
}
