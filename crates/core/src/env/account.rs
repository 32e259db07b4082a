//! Who is rewarded for what: which interval of a flow gets a reward after a step, which decision it is for, and what it is
//! compared with. Environments and rollouts account by it.
use crate::decision::{METRICS, metric_place};

const THROUGHPUT: usize = metric_place("throughput_mbps");
const TIME: usize = metric_place("time_s");
const ACKED: usize = metric_place("acked_packets");
const LOST: usize = metric_place("lost_packets");

/// What a decision is rewarded for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreditKind {
    /// The packets sent in its interval.
    Sent,
    /// What was acknowledged until the next decision.
    Arrived,
}

/// Metrics of an interval, in the order of [`METRIC_NAMES`](crate::decision::METRIC_NAMES).
pub type Row = [f64; METRICS];

/// What a step shows of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// Of what arrived since the interval before.
    pub arrived: &'a Row,
    /// Of the packets sent in an interval whose fate became known, and the decision that began it.
    pub credit: Option<(&'a Row, u64)>,
    /// Whether a decision is due.
    pub due: bool,
    /// Whether the flow has ended.
    pub left: bool,
}

/// An interval that is rewarded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rewarded {
    /// The decision that it is for.
    pub decision: u64,
    /// The interval.
    pub own: Baseline,
    /// What it is compared with.
    pub before: Baseline,
}

/// The account of one flow in one episode.
#[derive(Clone, Copy, Debug, Default)]
pub struct Account {
    /// What the next rewarded interval is compared with, once a decision has been due.
    baseline: Option<Baseline>,
    /// The flow had ended by the step before.
    left: bool,
    /// The latest decision.
    made: Option<u64>,
}

impl Account {
    /// Whether a decision has been due.
    pub fn has_entered(&self) -> bool {
        self.baseline.is_some()
    }

    /// The interval that is rewarded after a step: that whose packets' fate became known, or that since the latest
    /// decision where the next one is due or the flow ends. The last one of an episode counts only if something was
    /// acknowledged or lost in it: else its length would decide its reward.
    pub fn close(&mut self, kind: CreditKind, shown: &Shown) -> Option<Rewarded> {
        let was_left = std::mem::replace(&mut self.left, shown.left);
        let baseline = self.baseline.as_mut()?;
        let ends = shown.left && !was_left && has_more(shown.arrived, baseline);
        let (row, decision) = match kind {
            CreditKind::Sent => shown.credit?,
            CreditKind::Arrived if shown.due || ends => (shown.arrived, self.made?),
            CreditKind::Arrived => return None,
        };
        let before = baseline.replace(*row);
        Some(Rewarded { decision, own: *baseline, before })
    }

    /// A decision is due: the interval before the first one is what the first rewarded one is compared with.
    pub fn enter(&mut self, decision: u64, arrived: &Row) {
        self.made = Some(decision);
        self.baseline.get_or_insert_with(|| Baseline::new(*arrived));
    }
}

/// Whether a last interval has anything to tell. A flow that has fallen back has no new metrics.
fn has_more(arrived: &Row, baseline: &Baseline) -> bool {
    let known = arrived[ACKED] > 0.0 || arrived[LOST] > 0.0;
    known && arrived[TIME] > baseline.row[TIME]
}

/// The latest rewarded interval of a flow, which the next one is compared with; at first the one that ended with the
/// flow's first decision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Baseline {
    /// Its metrics.
    pub row: Row,
    /// Highest throughput of an interval of the flow in its episode, this one included, Mb/s.
    pub best: f64,
}

impl Baseline {
    /// Of a flow's first interval.
    pub fn new(row: Row) -> Self {
        Self { row, best: row[THROUGHPUT] }
    }

    /// Takes in the next rewarded interval, and returns what that is compared with.
    pub fn replace(&mut self, row: Row) -> Self {
        let before = *self;
        *self = Self { row, best: before.best.max(row[THROUGHPUT]) };
        before
    }

    /// Throughput of the interval, Mb/s.
    pub fn throughput_mbps(&self) -> f64 {
        self.row[THROUGHPUT]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Metrics;

    fn row(throughput_mbps: f64) -> [f64; METRICS] {
        Metrics { throughput_mbps, ..Metrics::default() }.row()
    }

    #[test]
    fn an_interval_is_rewarded_when_its_packets_are_accounted_for_or_the_next_decision_is_due() {
        let [first, second] = [row(5.0), row(4.0)];
        let shown = Shown { arrived: &first, credit: None, due: true, left: false };
        for kind in [CreditKind::Sent, CreditKind::Arrived] {
            let mut account = Account::default();
            assert_eq!(account.close(kind, &shown), None, "nothing was decided");
            account.enter(7, &first);
            let credit = (kind == CreditKind::Sent).then_some((&second, 7));
            let later = Shown { arrived: &second, credit, ..shown };
            let rewarded = account.close(kind, &later).expect("it is known");
            assert_eq!((rewarded.decision, rewarded.own.row), (7, second));
            assert_eq!(rewarded.before, Baseline::new(first));
            let waiting = Shown { credit: None, due: false, ..later };
            assert_eq!(account.close(kind, &waiting), None);
        }
    }

    #[test]
    fn the_last_interval_is_rewarded_once_and_only_with_something_in_it() {
        let mut account = Account::default();
        account.enter(0, &row(5.0));
        let empty = Metrics { time_s: 1.0, ..Metrics::default() }.row();
        let full = Metrics { time_s: 2.0, acked_packets: 1.0, ..Metrics::default() }.row();
        let last = |arrived| Shown { arrived, credit: None, due: false, left: true };
        let mut emptied = account;
        assert_eq!(emptied.close(CreditKind::Arrived, &last(&empty)), None);
        assert_eq!(
            account.close(CreditKind::Arrived, &last(&full)).map(|one| one.decision),
            Some(0)
        );
        assert_eq!(account.close(CreditKind::Arrived, &last(&full)), None);
    }

    #[test]
    fn an_interval_is_compared_with_the_one_before_and_the_best_so_far() {
        let mut baseline = Baseline::new(row(5.0));
        assert_eq!(baseline.replace(row(4.0)), Baseline::new(row(5.0)));
        assert_eq!(baseline.replace(row(8.0)), Baseline { row: row(4.0), best: 5.0 });
        assert_eq!(baseline, Baseline { row: row(8.0), best: 8.0 });
    }
}
