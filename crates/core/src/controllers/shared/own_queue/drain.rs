//! Drains: for one round trip a flow keeps less in flight than the path holds without a queue, so that the
//! smallest round trip is measured anew. Where the queue stays, it is somebody else's.
use crate::control::{Ack, FlowInfo};
use crate::controllers::shared::sensing::signals::Interval;
use crate::rng::Rng;
use crate::units::{Span, Time};

/// Time from a round trip without own packets in the queue to the next drain.
const EVERY: Span = Span::from_millis(5000);
/// The same in round trips, where that is longer, up to this: the base is that of 10 s.
const EVERY_RTTS: u64 = 50;
const EVERY_MAX: Span = Span::from_millis(8000);
/// By so much, as a part, intervals differ at random.
const JITTER: f64 = 0.1;
/// The window of a drain, as a part of what the path holds without a queue.
const PART: f64 = 0.75;
/// A drain that lowers the round trip by less than this part of what it should doubles the interval ...
const MOVED: f64 = 0.5;
/// ... up to so many times.
const BACKOFF_MAX: u64 = 4;
/// Intervals after a drain whose round trips and deliveries are its effect.
const AFTER: u32 = 1;

/// A drain under way.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// A packet sent later has met the drained queue.
    since: Time,
    window: f64,
    /// Round trip before, and the base.
    before: Span,
    base: Span,
    /// Smallest round trip since.
    least: Span,
    /// The packet has come back: the window is as before.
    over: bool,
}

/// When to drain, and the drain under way.
#[derive(Clone, Debug)]
pub struct Drains {
    rng: Rng,
    /// The queue was last nearly empty then.
    empty_at: Time,
    jitter: f64,
    backoff: u64,
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
        Self { rng, empty_at: flow.start, jitter, backoff: 1, drain: None, rest: 0, count: 0 }
    }

    /// How many there were.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The window while one is under way, packets.
    pub fn window(&self) -> Option<f64> {
        self.drain.filter(|drain| !drain.over).map(|drain| drain.window)
    }

    /// A packet sent after the beginning ends it.
    pub fn on_ack(&mut self, ack: &Ack) {
        let Some(drain) = &mut self.drain else { return };
        if ack.rtt > Span::ZERO {
            drain.least = drain.least.min(ack.rtt);
            if ack.batch_rtt_min > Span::ZERO {
                drain.least = drain.least.min(ack.batch_rtt_min);
            }
        }
        drain.over |= ack.sent_at > drain.since;
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
        let Some(drain) = self.drain.take() else { return };
        let wanted = drain.before.0.saturating_sub(drain.base.0) as f64;
        let moved = drain.before.0.saturating_sub(drain.least.0) as f64;
        self.backoff = if moved < MOVED * wanted { (self.backoff * 2).min(BACKOFF_MAX) } else { 1 };
        self.empty_at = now;
        self.jitter = self.rng.uniform_in(1.0 - JITTER, 1.0 + JITTER);
    }

    /// Whether the queue has not been empty for so long that the base is in doubt.
    pub fn is_due(&self, interval: &Interval) -> bool {
        let every = EVERY.max((interval.srtt * EVERY_RTTS).min(EVERY_MAX)).mul_f64(self.jitter);
        interval.now.since(self.empty_at) > every * self.backoff
    }

    /// Begins one, on a path that holds `pipe` packets without a queue.
    pub fn begin(&mut self, interval: &Interval, pipe: f64) {
        self.count += 1;
        self.drain = Some(Drain {
            since: interval.now,
            window: PART * pipe,
            before: interval.rtt_min,
            base: interval.base,
            least: Span::MAX,
            over: false,
        });
    }

    /// Ends the one under way.
    pub fn cancel(&mut self) {
        (self.drain, self.rest) = (None, 0);
    }
}
