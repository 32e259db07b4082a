//! The subflow with the lowest smoothed round-trip time sends, as long as it has room.
use super::{Candidate, Scheduler, Spec};

/// Entry of the table of schedulers.
pub const SPEC: Spec = Spec {
    name: "min_rtt",
    about: "the subflow with the lowest srtt that has room",
    source: "MPTCP v0.92, default scheduler",
    build: || Box::new(MinRtt),
};

#[derive(Debug)]
struct MinRtt;

impl Scheduler for MinRtt {
    /// One without a sample comes first: it is measured as early as possible.
    fn choose(&self, candidates: &[Candidate]) -> usize {
        let numbered = candidates.iter().enumerate();
        numbered.min_by_key(|(_, candidate)| candidate.srtt).map_or(0, |(index, _)| index)
    }
}
