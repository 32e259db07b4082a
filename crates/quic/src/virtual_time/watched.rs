//! What a run counts of any controller: those of the core, and noq's own.
use crate::factory::{locked, nanos};
use ackademy::control::{Ack, Control};
use ackademy::histogram::SpanHistogram;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_capture::qlog::Sender;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
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

/// noq's estimates.
#[derive(Clone, Copy, Debug, Default)]
struct Rtt {
    smoothed: Span,
    min: Span,
}

/// What a controller of noq's allows.
fn control(metrics: &ControllerMetrics) -> Control {
    Control {
        cwnd: Bytes(metrics.congestion_window),
        pacing_rate: metrics.pacing_rate.map_or(Rate::UNLIMITED, |rate| Rate(8 * rate)),
        ssthresh: Bytes(metrics.ssthresh.unwrap_or(u64::MAX)),
    }
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

/// Makes controllers that are watched.
pub(crate) struct WatchedFactory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    /// Of each path, in the order in which they are made; the last one is of all that follow, too.
    seen: Vec<Arc<Mutex<Seen>>>,
    made: AtomicUsize,
}

impl WatchedFactory {
    pub(crate) fn new(
        inner: Arc<dyn ControllerFactory + Send + Sync>,
        seen: Vec<Arc<Mutex<Seen>>>,
    ) -> Self {
        Self { inner, seen, made: AtomicUsize::new(0) }
    }
}

impl ControllerFactory for WatchedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let path = self.made.fetch_add(1, Ordering::Relaxed).min(self.seen.len() - 1);
        Box::new(Watched {
            inner: Arc::clone(&self.inner).build(now, current_mtu),
            seen: Arc::clone(&self.seen[path]),
            episode: None,
            newest: None,
            rtt: Rtt::default(),
        })
    }
}

#[derive(Debug)]
struct Watched {
    inner: Box<dyn Controller>,
    seen: Arc<Mutex<Seen>>,
    /// When the latest loss episode was noticed.
    episode: Option<Instant>,
    /// When the newest packet of an acknowledgement was sent.
    newest: Option<Instant>,
    rtt: Rtt,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.inner.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        let mut seen = locked(&self.seen);
        seen.inflight += u64::from(bytes);
        if let Some(log) = &mut seen.log {
            let at = log.at(now);
            log.sender.sent(at, pn, u32::from(bytes));
        }
        drop(seen);
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.inner.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.newest = self.newest.max(Some(sent));
        let span = |time: Duration| Span(time.as_nanos() as u64);
        self.rtt = Rtt { smoothed: span(rtt.get()), min: span(rtt.min()) };
        if let Some(log) = &mut locked(&self.seen).log {
            log.sender.acked(pn);
        }
        self.inner.on_ack(now, sent, bytes, pn, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        let newest = self.newest.take();
        let mut seen = locked(&self.seen);
        seen.inflight = in_flight;
        if let Some(sent) = newest {
            seen.sample(Span(now.saturating_duration_since(sent).as_nanos() as u64));
        }
        drop(seen);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
        if let Some(sent) = newest
            && let Some(log) = &mut locked(&self.seen).log
        {
            let recovers = self.episode.is_some_and(|start| sent <= start);
            log.told(now, (sent, in_flight, recovers), self.rtt, &control(&self.inner.metrics()));
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let mut seen = locked(&self.seen);
        seen.inflight = seen.inflight.saturating_sub(lost_bytes);
        seen.timeouts += u64::from(is_persistent_congestion);
        if self.episode.is_none_or(|start| sent > start) {
            self.episode = Some(now);
            seen.recoveries += u64::from(!is_persistent_congestion);
        }
        drop(seen);
        self.inner.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
        if let Some(log) = &mut locked(&self.seen).log {
            let at = log.at(now);
            log.sender.reduced(at, &control(&self.inner.metrics()));
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        if let Some(log) = &mut locked(&self.seen).log {
            let at = log.at(now);
            log.sender.lost(at, pn);
        }
        self.inner.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.inner.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(
        &mut self,
        ack_eliciting_threshold: u64,
        requested_max_ack_delay: Duration,
    ) {
        self.inner.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            seen: Arc::clone(&self.seen),
            episode: None,
            newest: None,
            rtt: Rtt::default(),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.inner.into_any()
    }
}
