//! Which losses are the flow's doing: those that go when it sends less. A loss that stays with a smaller
//! window and an empty queue is the path's own, and is not answered.
use super::ceiling::Ceiling;
use crate::sensing::signals::Interval;
use crate::units::Span;

/// Weight of the past, per interval, in the sums of lost and sent packets.
const PAST: f64 = 0.75;
/// More than so many standard deviations beyond what is allowed is no chance.
const DEVIATIONS: f64 = 2.0;
/// A cut, and that at a loss of more than [`HEAVY`].
const CUT: f64 = 0.7;
const HEAVY_CUT: f64 = 0.5;
const HEAVY: f64 = 0.10;
/// Intervals after a cut in which losses from before are found.
const SETTLING: u32 = 2;
/// Then so many intervals and packets are judged, but no more intervals than this.
const JUDGED: (u32, f64) = (2, 60.0);
const JUDGED_MAX: u32 = 6;
/// The path's own loss is what stays of it after a cut, if that is at least this part ...
const STAYS: f64 = 0.6;
/// ... and the queue fell below this part, or was below this part of the base and this part of the jitter.
const QUEUE_FELL: f64 = 0.35;
const QUEUE_NONE: f64 = 0.002;
const QUEUE_JITTER: f64 = 0.5;
/// ... and fewer packets arrive in a round trip, at most this part of those before the cut. Behind a policer as many
/// arrive from half of a window that is several times too large, while most of the loss stays.
const ARRIVES: f64 = 0.8;
/// Intervals that tell what the path delivers.
const DELIVERIES: usize = 3;
/// Allowed above the path's own loss, as a part of it.
const SPREAD: f64 = 0.25;
/// ... and it is at most this: more is always answered.
const OWN_MAX: f64 = 0.06;
/// Part of the target that losses leave at least, and where some are the path's own.
const RESTRAINED: f64 = 1.0 / 16.0;
const RESTRAINED_OWN: f64 = 0.25;

/// What the losses ask for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer {
    /// Nothing, below this window.
    Go {
        /// Packets.
        ceiling: f64,
    },
    /// No growth.
    Hold,
    /// This window at once.
    Cut(f64),
    /// This window: the loss was not the flow's doing, or it is over.
    Restore(f64),
}

/// What is found out after a cut.
#[derive(Clone, Copy, Debug)]
struct Probe {
    cwnd: f64,
    ratio: f64,
    queue: Span,
    intervals: u32,
    lost: f64,
    sent: f64,
    /// Largest of the intervals' smallest queueing delays.
    queue_after: Span,
    /// Most that a round trip delivered before.
    delivered: f64,
}

/// Judges the losses of a flow.
#[derive(Clone, Debug)]
pub struct Losses {
    /// Of this interval, before it ends.
    pending: f64,
    lost: f64,
    sent: f64,
    /// Loss ratio of the path itself.
    own: f64,
    probe: Option<Probe>,
    ceiling: Ceiling,
    /// By each of the latest intervals, packets per round trip.
    delivered: [f64; DELIVERIES],
    /// Intervals to come whose losses have been answered.
    settling: u32,
    /// How often a known overload came again.
    known: u64,
}

impl Default for Losses {
    fn default() -> Self {
        Self {
            pending: 0.0,
            lost: 0.0,
            sent: 0.0,
            own: 0.0,
            probe: None,
            ceiling: Ceiling::default(),
            delivered: [0.0; DELIVERIES],
            settling: 0,
            known: 0,
        }
    }
}

impl Losses {
    /// Loss ratio of the path itself.
    pub fn own(&self) -> f64 {
        self.own
    }

    /// How often a known overload came again.
    pub fn known(&self) -> u64 {
        self.known
    }

    /// Factor of the target, from 1 without losses down to [`RESTRAINED`] where they reach the `limit`, the path's own
    /// included. Flows whose targets are more than the buffer lose alike; so they meet, in proportion to their targets,
    /// where these fit. One that takes such losses for its path's must meet them, too, but over a lossy path that also
    /// jitters too small a target would leave nothing.
    pub fn restraint(&self, limit: f64) -> f64 {
        if self.sent <= 0.0 {
            return 1.0;
        }
        let least = if self.own > 0.0 { RESTRAINED_OWN } else { RESTRAINED };
        (1.0 - libm::sqrt((self.lost / self.sent / limit).min(1.0))).max(least)
    }

    /// So many packets were declared lost.
    pub fn on_loss(&mut self, packets: f64) {
        self.pending += packets;
    }

    /// Whether the interval has lost more of a window than an answer may wait for.
    pub fn is_flood(&self, cwnd: f64) -> bool {
        self.pending > allowed(HEAVY, cwnd)
    }

    /// The losses of this interval and the next ones have been answered.
    pub fn answered(&mut self) {
        self.settling = SETTLING;
    }

    /// After a restart the past says nothing.
    pub fn forget(&mut self) {
        *self = Self { own: self.own, known: self.known, ..Self::default() };
    }

    /// Ends an interval with a window of `cwnd` packets; a loss ratio of `limit` is allowed.
    pub fn judge(&mut self, interval: &Interval, cwnd: f64, limit: f64) -> Answer {
        self.pending = 0.0;
        let (lost, sent) = (interval.lost_packets, interval.lost_packets + interval.acked_packets);
        self.ceiling.pass(interval);
        let queue = Span(interval.rtt_min.0.saturating_sub(interval.base.0));
        let rounds = interval.duration.as_secs_f64() / interval.rtt_min.as_secs_f64();
        self.delivered.rotate_left(1);
        self.delivered[DELIVERIES - 1] = interval.acked_packets / rounds.max(0.1);
        let mean_queue = Span(interval.rtt_mean.0.saturating_sub(interval.base.0));
        if let Some(probe) = self.probe {
            return self.follow(probe, interval, queue, limit);
        }
        if self.settling > 0 {
            self.settling -= 1;
            let [.., last] = self.delivered;
            return self.ceiling.compare(last).map_or(Answer::Hold, Answer::Restore);
        }
        self.lost = PAST * self.lost + lost;
        self.sent = PAST * self.sent + sent;
        if self.lost <= allowed(self.limit(limit), self.sent) {
            let mean = self.delivered.iter().sum::<f64>() / DELIVERIES as f64;
            return Answer::Go { ceiling: self.ceiling.raise(cwnd, mean) };
        }
        if let Some(window) = self.ceiling.come_back(cwnd, mean_queue, interval) {
            (self.lost, self.sent) = (0.0, 0.0);
            self.known += 1;
            self.answered();
            return Answer::Cut(window);
        }
        let ratio = self.lost / self.sent;
        self.begin(cwnd, ratio, mean_queue, 0.0)
    }

    /// Loss ratio that is not answered.
    fn limit(&self, limit: f64) -> f64 {
        limit + self.own * (1.0 + SPREAD)
    }

    /// Cuts the window; a round trip has delivered `delivered` packets before the latest cut.
    fn begin(&mut self, cwnd: f64, ratio: f64, queue: Span, delivered: f64) -> Answer {
        let (intervals, lost, sent, queue_after) = (0, 0.0, 0.0, Span::ZERO);
        let delivered = self.delivered.iter().copied().fold(delivered, f64::max);
        self.probe =
            Some(Probe { cwnd, ratio, queue, intervals, lost, sent, queue_after, delivered });
        (self.lost, self.sent) = (0.0, 0.0);
        let factor = if ratio > self.own + HEAVY { HEAVY_CUT } else { CUT };
        Answer::Cut(factor * cwnd)
    }

    /// An interval after a cut.
    fn follow(&mut self, probe: Probe, interval: &Interval, queue: Span, limit: f64) -> Answer {
        let mut probe = Probe { intervals: probe.intervals + 1, ..probe };
        if probe.intervals > SETTLING {
            probe.lost += interval.lost_packets;
            probe.sent += interval.lost_packets + interval.acked_packets;
            probe.queue_after = probe.queue_after.max(queue);
        }
        self.probe = Some(probe);
        let judged = probe.intervals.saturating_sub(SETTLING);
        let enough = judged >= JUDGED.0 && probe.sent >= JUDGED.1;
        if !enough && judged < JUDGED_MAX {
            return Answer::Hold;
        }
        self.probe = None;
        self.conclude(&probe, interval, limit)
    }

    fn conclude(&mut self, probe: &Probe, interval: &Interval, limit: f64) -> Answer {
        let ratio = probe.lost / probe.sent.max(1.0);
        let none = QUEUE_NONE * interval.base.0 as f64 + QUEUE_JITTER * interval.jitter.0 as f64;
        let small = probe.queue_after.0 as f64 <= none;
        let fell = probe.queue_after.0 as f64 <= QUEUE_FELL * probe.queue.0 as f64;
        // Of the last two intervals; at least two were judged.
        let [.., earlier, last] = self.delivered;
        let less = f64::midpoint(earlier, last) <= ARRIVES * probe.delivered;
        if (small || fell) && less && ratio >= STAYS * probe.ratio {
            self.own = ratio.min(OWN_MAX);
            return Answer::Restore(probe.cwnd);
        }
        if small || fell {
            self.own = if less { self.own.min(ratio) } else { 0.0 };
        }
        if probe.lost > allowed(self.limit(limit), probe.sent) {
            return self.begin(probe.cwnd * CUT, ratio, probe.queue_after, probe.delivered);
        }
        Answer::Restore(self.ceiling.set(probe.delivered, probe.cwnd, probe.queue, interval))
    }
}

/// So many of the sent may be lost, with chance.
fn allowed(ratio: f64, sent: f64) -> f64 {
    ratio * sent + DEVIATIONS * libm::sqrt(ratio * sent).max(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: Span = Span::from_millis(100);

    /// A round trip that delivered and lost so many, with a queue of so long.
    fn interval(acked_packets: f64, lost_packets: f64, queue_ms: u64) -> Interval {
        let rtt = BASE + Span::from_millis(queue_ms);
        Interval {
            duration: rtt,
            rtt_min: rtt,
            rtt_mean: rtt,
            base: BASE,
            acked_packets,
            lost_packets,
            ..Interval::default()
        }
    }

    #[test]
    fn losses_that_have_been_answered_only_hold() {
        let mut losses = Losses::default();
        losses.answered();
        for _ in 0..SETTLING {
            assert_eq!(losses.judge(&interval(70.0, 30.0, 0), 100.0, 0.02), Answer::Hold);
        }
        assert_eq!(losses.judge(&interval(70.0, 30.0, 0), 100.0, 0.02), Answer::Cut(50.0));
    }

    #[test]
    fn a_restart_forgets_that_losses_have_been_answered() {
        let mut losses = Losses::default();
        losses.answered();
        losses.forget();
        assert_eq!(losses.judge(&interval(70.0, 30.0, 0), 100.0, 0.02), Answer::Cut(50.0));
    }

    /// The answer after a cut and the intervals that follow it.
    fn after_a_cut(losses: &mut Losses, interval: &Interval) -> Answer {
        for _ in 0..SETTLING + JUDGED.0 - 1 {
            assert_eq!(losses.judge(interval, 50.0, 0.02), Answer::Hold);
        }
        losses.judge(interval, 50.0, 0.02)
    }

    /// Lost packets and the window that follow an overload: it loses while the window exceeds 60 packets, of which
    /// so many were delivered, and the window is found to be `cwnd` after a pause of `seconds`.
    fn overload(losses: &mut Losses, cwnd: f64, seconds: u32, queue_ms: u64) -> Answer {
        for _ in 0..10 * seconds {
            let Answer::Go { .. } = losses.judge(&interval(55.0, 0.0, 0), 55.0, 0.02) else {
                panic!("nothing was lost")
            };
        }
        losses.judge(&interval(60.0, cwnd - 60.0, queue_ms), cwnd, 0.02)
    }

    /// The losses end after the cut.
    fn ended(losses: &mut Losses) -> f64 {
        let Answer::Restore(cwnd) = after_a_cut(losses, &interval(48.0, 0.0, 0)) else {
            panic!("a loss that has gone is over")
        };
        cwnd
    }

    #[test]
    fn an_overload_that_came_again_without_a_queue_is_answered_at_once_from_then_on() {
        let mut losses = Losses::default();
        for _ in 0..2 {
            assert_eq!(overload(&mut losses, 80.0, 4, 0), Answer::Cut(0.7 * 80.0));
            assert!((ended(&mut losses) - 0.92 * 60.0).abs() < 1e-9);
        }
        let Answer::Cut(cwnd) = overload(&mut losses, 80.0, 9, 0) else { panic!("it is known") };
        assert!((cwnd - 0.92 * 60.0).abs() < 1e-9, "{cwnd}");
        assert_eq!(losses.known(), 1);
        // Its last losses are found in the next intervals.
        for _ in 0..SETTLING {
            assert_eq!(losses.judge(&interval(60.0, 20.0, 0), 55.2, 0.02), Answer::Hold);
        }
        let go = losses.judge(&interval(55.0, 0.0, 0), 55.2, 0.02);
        assert!(matches!(go, Answer::Go { .. }), "{go:?}");
    }

    #[test]
    fn an_overload_with_a_queue_or_from_a_window_that_was_hardly_too_large_is_not_known() {
        for (cwnd, queue_ms) in [(80.0, 20), (70.0, 0)] {
            let mut losses = Losses::default();
            for _ in 0..4 {
                let Answer::Cut(_) = overload(&mut losses, cwnd, 9, queue_ms) else {
                    panic!("a cut")
                };
                ended(&mut losses);
            }
            assert_eq!(losses.known(), 0, "{cwnd} {queue_ms}");
        }
    }

    #[test]
    fn jitter_does_not_hide_that_a_loss_is_the_paths_own() {
        let of = |jitter: Span| {
            let mut losses = Losses::default();
            let lossy = |acked: f64, lost: f64| Interval { jitter, ..interval(acked, lost, 1) };
            assert_eq!(losses.judge(&lossy(92.0, 8.0), 100.0, 0.02), Answer::Cut(70.0));
            (after_a_cut(&mut losses, &lossy(64.0, 5.5)), losses.own())
        };
        let (answer, own) = of(Span::from_millis(2));
        assert_eq!(answer, Answer::Restore(100.0));
        assert!((own - OWN_MAX).abs() < 1e-9, "{own}: no more than this");
        assert!(matches!(of(Span::ZERO), (Answer::Cut(_), 0.0)), "a queue of a hundredth");
    }

    #[test]
    fn losses_leave_a_part_of_the_target_and_more_of_it_where_they_are_the_paths() {
        let mut losses = Losses { lost: 5.0, sent: 100.0, ..Losses::default() };
        assert!((losses.restraint(0.02) - 1.0 / 16.0).abs() < 1e-9);
        losses.own = 0.05;
        assert!((losses.restraint(0.02) - 0.25).abs() < 1e-9);
        losses.lost = 0.5;
        assert!((losses.restraint(0.02) - 0.5).abs() < 1e-9, "a quarter of what is allowed");
    }

    #[test]
    fn a_second_cut_remembers_what_was_delivered_before_the_first() {
        let mut losses = Losses::default();
        assert_eq!(losses.judge(&interval(60.0, 20.0, 10), 100.0, 0.02), Answer::Cut(50.0));
        let Answer::Cut(_) = after_a_cut(&mut losses, &interval(30.0, 10.0, 10)) else {
            panic!("a loss that stays with the queue is cut again")
        };
        let Answer::Restore(cwnd) = after_a_cut(&mut losses, &interval(30.0, 0.0, 0)) else {
            panic!("a loss that has gone is over")
        };
        // Not of the 30 packets that smaller windows had delivered since.
        assert!((cwnd - 0.92 * 60.0).abs() < 1e-9, "{cwnd}");
    }
}
