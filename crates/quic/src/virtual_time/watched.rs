//! What a run counts of any controller: those of the core, and a stack's own.
use crate::factory::{locked, nanos};
use ackademy::control::{Ack, Control};
use ackademy::histogram::SpanHistogram;
use ackademy::units::{Bytes, Span, Time};
use ackademy_capture::qlog::Sender;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Counts of a flow's sender.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) samples: u64,
    pub(crate) sum_ns: u128,
    pub(crate) min: Span,
    pub(crate) max: Span,
    pub(crate) latest: Span,
    pub(crate) histogram: SpanHistogram,
    /// Episodes of loss without persistent congestion, and those with it.
    pub(crate) recoveries: u64,
    pub(crate) timeouts: u64,
    pub(crate) inflight: u64,
    /// If its events are written.
    pub(crate) log: Option<PathLog>,
}

/// Writes what happens on a path.
#[derive(Debug)]
pub(crate) struct PathLog {
    pub(crate) sender: Sender,
    /// Time 0 of the file.
    pub(crate) origin: Instant,
}

impl PathLog {
    fn at(&self, now: Instant) -> Time {
        Time(nanos(now, self.origin))
    }

    fn told(
        &mut self,
        now: Instant,
        (sent, inflight, recovers): (Instant, u64, bool),
        rtt: Rtt,
        control: &Control,
    ) {
        let ack = Ack {
            now: self.at(now),
            rtt: Span(now.saturating_duration_since(sent).as_nanos() as u64),
            srtt: rtt.smoothed,
            min_rtt: rtt.min,
            inflight: Bytes(inflight),
            recovering: u64::from(recovers),
            ..Ack::default()
        };
        self.sender.told(&ack, control);
    }
}

/// The stack's estimates.
#[derive(Clone, Copy, Debug, Default)]
struct Rtt {
    smoothed: Span,
    min: Span,
}

impl Seen {
    fn sample(&mut self, rtt: Span) {
        self.min = if self.samples == 0 { rtt } else { self.min.min(rtt) };
        self.max = self.max.max(rtt);
        self.latest = rtt;
        self.samples += 1;
        self.sum_ns += u128::from(rtt.0);
        self.histogram.add(rtt, 1);
    }
}

/// Makes controllers that are watched; `F` is the stack's trait of factories.
pub(crate) struct WatchedFactory<F: ?Sized> {
    pub(super) inner: Arc<F>,
    /// Of each path, in the order in which they are made; the last one is of all that follow, too.
    seen: Vec<Arc<Mutex<Seen>>>,
    made: AtomicUsize,
}

impl<F: ?Sized> WatchedFactory<F> {
    pub(crate) fn new(inner: Arc<F>, seen: Vec<Arc<Mutex<Seen>>>) -> Self {
        Self { inner, seen, made: AtomicUsize::new(0) }
    }

    /// What watches the next controller.
    pub(super) fn next(&self) -> Watcher {
        let path = self.made.fetch_add(1, Ordering::Relaxed).min(self.seen.len() - 1);
        Watcher::new(&self.seen[path])
    }
}

/// A controller that is watched; `C` is the stack's trait of controllers.
#[derive(Debug)]
pub(super) struct Watched<C: ?Sized> {
    pub(super) inner: Box<C>,
    pub(super) own: Watcher,
}

/// Watches the controller of a path.
#[derive(Debug)]
pub(super) struct Watcher {
    seen: Arc<Mutex<Seen>>,
    /// When the latest loss episode was noticed.
    episode: Option<Instant>,
    /// When the newest packet of an acknowledgement was sent.
    newest: Option<Instant>,
    rtt: Rtt,
}

impl Watcher {
    fn new(seen: &Arc<Mutex<Seen>>) -> Self {
        Self { seen: Arc::clone(seen), episode: None, newest: None, rtt: Rtt::default() }
    }

    /// Watches the same path's next controller.
    pub(super) fn again(&self) -> Self {
        Self::new(&self.seen)
    }

    /// `number` is `None` where the stack does not tell it.
    pub(super) fn sent(&mut self, now: Instant, bytes: u64, number: Option<u64>) {
        let mut seen = locked(&self.seen);
        seen.inflight += bytes;
        if let (Some(log), Some(number)) = (&mut seen.log, number) {
            let at = log.at(now);
            log.sender.sent(at, number, bytes as u32);
        }
    }

    /// A packet is acknowledged; `rtt` is the smoothed round trip and the smallest.
    pub(super) fn acked(&mut self, sent: Instant, number: Option<u64>, rtt: (Duration, Duration)) {
        self.newest = self.newest.max(Some(sent));
        let span = |time: Duration| Span(time.as_nanos() as u64);
        self.rtt = Rtt { smoothed: span(rtt.0), min: span(rtt.1) };
        if let (Some(log), Some(number)) = (&mut locked(&self.seen).log, number) {
            log.sender.acked(number);
        }
    }

    /// That were all packets of an acknowledgement; when the newest of them was sent.
    pub(super) fn ended(&mut self, now: Instant, in_flight: u64) -> Option<Instant> {
        let newest = self.newest.take();
        let mut seen = locked(&self.seen);
        seen.inflight = in_flight;
        if let Some(sent) = newest {
            seen.sample(Span(now.saturating_duration_since(sent).as_nanos() as u64));
        }
        newest
    }

    /// The controller has been told of an acknowledgement.
    pub(super) fn told(
        &mut self,
        now: Instant,
        (newest, in_flight): (Option<Instant>, u64),
        control: impl FnOnce() -> Control,
    ) {
        if let Some(sent) = newest
            && let Some(log) = &mut locked(&self.seen).log
        {
            let recovers = self.episode.is_some_and(|start| sent <= start);
            log.told(now, (sent, in_flight, recovers), self.rtt, &control());
        }
    }

    /// Packets are lost or marked, the newest of which was sent at `sent`.
    pub(super) fn congested(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent: bool,
        lost_bytes: u64,
    ) {
        let mut seen = locked(&self.seen);
        seen.inflight = seen.inflight.saturating_sub(lost_bytes);
        seen.timeouts += u64::from(is_persistent);
        if self.episode.is_none_or(|start| sent > start) {
            self.episode = Some(now);
            seen.recoveries += u64::from(!is_persistent);
        }
    }

    /// The controller has been told of that.
    pub(super) fn reduced(&mut self, now: Instant, control: impl FnOnce() -> Control) {
        if let Some(log) = &mut locked(&self.seen).log {
            let at = log.at(now);
            log.sender.reduced(at, &control());
        }
    }

    pub(super) fn lost(&mut self, now: Instant, number: u64) {
        if let Some(log) = &mut locked(&self.seen).log {
            let at = log.at(now);
            log.sender.lost(at, number);
        }
    }
}
