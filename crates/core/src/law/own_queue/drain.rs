//! Drains: for one round trip a flow keeps less in flight than the path holds without a queue, so that the
//! smallest round trip is measured anew.
use crate::control::{Ack, FlowInfo};
use crate::rng::Rng;
use crate::sensing::signals::Interval;
use crate::units::{Span, Time};

/// Time from a round trip without own packets in the queue to the next drain.
const EVERY: Span = Span::from_millis(5000);
/// The same in round trips, where that is longer, up to this: the base is that of 10 s.
const EVERY_RTTS: u64 = 50;
const EVERY_MAX: Span = Span::from_millis(8000);
/// The first one comes after so much time or so many round trips, whichever is longer: a flow that has met
/// the queues of others from its first packet on takes them for a part of the path.
const FIRST: Span = Span::from_millis(1250);
const FIRST_RTTS: u64 = 10;
/// By so much, as a part, intervals differ at random.
const JITTER: f64 = 0.1;
/// The window of a drain, as a part of what the path holds without a queue.
const PART: f64 = 0.5;
/// Intervals after a drain whose round trips and deliveries are its effect.
const AFTER: u32 = 1;

/// A drain under way.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// Its window is in force since then; once that is reached, a packet sent later has met the drained queue.
    since: Time,
    /// No more than the window is in flight: the window is as before.
    reached: bool,
    window: f64,
    /// The packet has come back.
    over: bool,
}

/// When to drain, and the drain under way.
#[derive(Clone, Debug)]
pub struct Drains {
    rng: Rng,
    /// The queue was last nearly empty then.
    empty_at: Time,
    jitter: f64,
    drain: Option<Drain>,
    /// Intervals in which the law rests.
    rest: u32,
    count: u64,
}

impl Drains {
    /// The first is due an interval after the flow's start.
    pub fn new(flow: &FlowInfo) -> Self {
        let mut rng = Rng::new(flow.seed);
        let jitter = rng.uniform_in(1.0 - JITTER, 1.0 + JITTER);
        Self { rng, empty_at: flow.start, jitter, drain: None, rest: 0, count: 0 }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The window while one is under way, packets.
    pub fn window(&self) -> Option<f64> {
        self.drain.filter(|drain| !drain.reached).map(|drain| drain.window)
    }

    /// Takes an acknowledgement that found `found` packets in flight.
    pub fn on_ack(&mut self, ack: &Ack, found: f64) {
        let Some(drain) = &mut self.drain else { return };
        if drain.reached {
            drain.over |= ack.sent_at > drain.since;
        } else if found <= drain.window || ack.sent_at > drain.since {
            (drain.reached, drain.since) = (true, ack.now);
        }
    }

    /// Whether the law rests in this interval, whose own queue was nearly `empty` or not.
    pub fn on_interval(&mut self, interval: &Interval, empty: bool) -> bool {
        if empty {
            self.empty_at = interval.now;
        }
        if self.drain.is_some_and(|drain| drain.over) {
            self.finish(interval.now);
            self.rest = AFTER;
            return true;
        }
        if self.drain.is_some() || self.rest > 0 {
            self.rest = self.rest.saturating_sub(1);
            return true;
        }
        false
    }

    fn finish(&mut self, now: Time) {
        self.drain = None;
        self.empty_at = now;
        self.jitter = self.rng.uniform_in(1.0 - JITTER, 1.0 + JITTER);
    }

    /// Whether the queue has not been empty for so long that the base is in doubt.
    pub fn is_due(&self, interval: &Interval) -> bool {
        let (time, rtts) = if self.count == 0 { (FIRST, FIRST_RTTS) } else { (EVERY, EVERY_RTTS) };
        let every = time.max((interval.srtt * rtts).min(EVERY_MAX)).mul_f64(self.jitter);
        interval.now.since(self.empty_at) > every
    }

    /// Begins one, on a path that holds `pipe` packets without a queue.
    pub fn begin(&mut self, interval: &Interval, pipe: f64) {
        self.count += 1;
        self.drain =
            Some(Drain { since: interval.now, window: PART * pipe, reached: false, over: false });
    }

    /// Ends the one under way.
    pub fn cancel(&mut self) {
        (self.drain, self.rest) = (None, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::test_support::flow;

    const BASE: Span = Span::from_millis(100);

    /// A drain to 50 packets that began at 1 s.
    fn draining() -> Drains {
        let mut drains = Drains::new(&flow());
        drains.begin(&interval(1000, 20), 100.0);
        assert_eq!(drains.window(), Some(50.0));
        drains
    }

    fn interval(now_ms: u64, queue_ms: u64) -> Interval {
        let rtt_min = BASE + Span::from_millis(queue_ms);
        let now = Time(now_ms * 1_000_000);
        Interval { now, rtt_min, srtt: rtt_min, base: BASE, ..Interval::default() }
    }

    fn ack(now_ms: u64, sent_ms: u64) -> Ack {
        let [now, sent_at] = [now_ms, sent_ms].map(|ms| Time(ms * 1_000_000));
        Ack { now, sent_at, rtt: now.since(sent_at), ..Ack::default() }
    }

    #[test]
    fn it_ends_when_its_window_is_reached_and_a_packet_sent_then_has_come_back() {
        let mut drains = draining();
        drains.on_ack(&ack(1010, 890), 51.0);
        assert_eq!(drains.window(), Some(50.0));
        drains.on_ack(&ack(1040, 920), 50.0);
        assert_eq!(drains.window(), None);
        // Sent in the drain, but before its window was reached.
        drains.on_ack(&ack(1125, 1020), 90.0);
        assert!(drains.on_interval(&interval(1130, 20), false), "it rests");
        drains.on_ack(&ack(1143, 1041), 95.0);
        assert!(drains.on_interval(&interval(1150, 2), false), "that interval shows the drain");
        assert!(drains.on_interval(&interval(1250, 2), false), "and the next one");
        assert!(!drains.on_interval(&interval(1350, 2), false));
    }

    #[test]
    fn the_first_is_due_after_ten_round_trips_and_the_next_after_fifty() {
        let mut drains = Drains { jitter: 1.0, ..Drains::new(&flow()) };
        drains.empty_at = Time(0);
        let first = 10 * 140;
        assert!(!drains.is_due(&interval(first, 40)) && drains.is_due(&interval(first + 1, 40)));
        drains.begin(&interval(first + 1, 40), 100.0);
        drains.finish(Time(2_000_000_000));
        drains.jitter = 1.0;
        let next = 2000 + 50 * 140;
        assert!(!drains.is_due(&interval(next, 40)) && drains.is_due(&interval(next + 1, 40)));
    }

    #[test]
    fn a_window_that_is_never_reached_is_in_force_for_a_round_trip() {
        let mut drains = draining();
        drains.on_ack(&ack(1110, 1000), 90.0);
        assert_eq!(drains.window(), Some(50.0));
        drains.on_ack(&ack(1121, 1001), 90.0);
        assert_eq!(drains.window(), None);
    }
}
