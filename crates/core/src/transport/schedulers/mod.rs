//! One file per MPTCP scheduler: which subflow is offered the next segment of a connection's data.
use crate::units::Span;
use std::fmt::Debug;

/// A subflow that may have room for a segment: it has refused none since the sender was last asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// Its number within the connection.
    pub subflow: usize,
    /// Smoothed round-trip time; zero before the first sample.
    pub srtt: Span,
}

/// Distributes a connection's data over its subflows. Segments are offered, not assigned: a subflow
/// whose window is full refuses, and the next candidate is asked, so no scheduler leaves a window unused.
pub trait Scheduler: Debug + Send {
    /// Index into `candidates` of the subflow that is offered the next segment; there is at least one.
    fn choose(&self, candidates: &[Candidate]) -> usize;

    /// A subflow took a segment.
    fn on_sent(&mut self, _subflow: usize) {}

    /// Whether every subflow sends all data, and not only what no other has sent.
    fn is_redundant(&self) -> bool {
        false
    }
}

/// Entry of the table of schedulers.
#[derive(Debug)]
pub struct Spec {
    /// Name in scenario files; equals the file's name.
    pub name: &'static str,
    /// One line.
    pub about: &'static str,
    /// Where the rule comes from.
    pub source: &'static str,
    /// Makes one for a connection.
    pub build: fn() -> Box<dyn Scheduler>,
}

include!(concat!(env!("OUT_DIR"), "/schedulers.rs"));

/// The default.
pub const DEFAULT: &str = min_rtt::SPEC.name;

/// The entry called `name`.
pub fn find(name: &str) -> Option<&'static Spec> {
    ALL.iter().copied().find(|spec| spec.name == name)
}

/// All names, for messages.
pub fn names() -> String {
    ALL.iter().map(|spec| spec.name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidates(of: &[(usize, u64)]) -> Vec<Candidate> {
        of.iter()
            .map(|&(subflow, millis)| Candidate { subflow, srtt: Span::from_millis(millis) })
            .collect()
    }

    #[test]
    fn every_scheduler_is_found_by_the_name_of_its_file() {
        assert_eq!(names(), "min_rtt, redundant, round_robin");
        assert!(
            ALL.iter().all(|spec| find(spec.name).is_some_and(|found| found.name == spec.name))
        );
        assert!(find(DEFAULT).is_some() && find("fastest").is_none());
    }

    #[test]
    fn every_scheduler_chooses_one_of_the_candidates() {
        let mut rng = crate::rng::Rng::new(1);
        for spec in ALL {
            let mut scheduler = (spec.build)();
            for _ in 0..500 {
                let some = (0..8).filter(|_| rng.chance(0.5));
                let numbers: Vec<usize> = some.chain([8]).collect();
                let drawn: Vec<_> = numbers.iter().map(|&one| (one, rng.below(90))).collect();
                let candidates = candidates(&drawn);
                let chosen = scheduler.choose(&candidates);
                scheduler.on_sent(candidates[chosen].subflow);
            }
        }
    }

    #[test]
    fn min_rtt_chooses_the_lowest_srtt_and_of_equals_the_first() {
        let scheduler = (min_rtt::SPEC.build)();
        assert_eq!(scheduler.choose(&candidates(&[(0, 30), (1, 10), (2, 20)])), 1);
        assert_eq!(scheduler.choose(&candidates(&[(0, 30), (2, 10), (3, 10)])), 1);
        assert_eq!(scheduler.choose(&candidates(&[(0, 30), (1, 0)])), 1, "no sample yet");
    }

    #[test]
    fn round_robin_goes_on_after_the_subflow_that_sent_last() {
        let mut scheduler = (round_robin::SPEC.build)();
        let all = candidates(&[(0, 9), (1, 1), (3, 5)]);
        let mut sent = Vec::new();
        for _ in 0..5 {
            let subflow = all[scheduler.choose(&all)].subflow;
            scheduler.on_sent(subflow);
            sent.push(subflow);
        }
        assert_eq!(sent, [0, 1, 3, 0, 1]);
        assert_eq!(scheduler.choose(&all[..1]), 0, "one that has room is not waited for");
    }

    #[test]
    fn only_the_redundant_scheduler_sends_all_data_on_every_subflow() {
        let redundant: Vec<_> =
            ALL.iter().filter(|spec| (spec.build)().is_redundant()).map(|spec| spec.name).collect();
        assert_eq!(redundant, ["redundant"]);
    }
}
