//! Makes controllers for the paths of noq's connections.
use crate::adapter::Adapter;
use crate::coupled::{PathOf, Shared};
use crate::flow::Flow;
use ackademy::control::{Control, Controller, FlowInfo, Recovery, SubflowId};
use ackademy::rng::Seed;
use ackademy::scheme::{Entry, Scheme};
use ackademy::transport::send_hook;
use ackademy::units::{Bytes, Rate, Time};
use noq_proto::congestion::{self, ControllerFactory};
use std::fmt;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Why a controller cannot govern a connection of QUIC, on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

/// What a flow begins with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Start {
    /// Initial window, in packets.
    pub cwnd_packets: f64,
    /// Initial slow-start threshold, in packets; infinite for none.
    pub ssthresh_packets: f64,
    /// Seed of the controllers' randomness.
    pub seed: u64,
    /// What the controllers take for time 0; `None` for when the first path begins.
    pub origin: Option<Instant>,
}

impl Default for Start {
    /// Ten packets (RFC 9002 section 7.2), no threshold.
    fn default() -> Self {
        Self { cwnd_packets: 10.0, ssthresh_packets: f64::INFINITY, seed: 1, origin: None }
    }
}

type Build = dyn Fn(&FlowInfo) -> Box<dyn Controller> + Send + Sync;

/// A [`ControllerFactory`]: each path gets a controller of its own, also after a migration.
pub struct Factory {
    build: Box<Build>,
    start: Start,
    built: AtomicU64,
    /// Whether one controller governs all paths.
    is_coupled: bool,
    /// If they are kept.
    handles: Option<Mutex<Vec<Handle>>>,
}

impl fmt::Debug for Factory {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Factory").field("start", &self.start).finish_non_exhaustive()
    }
}

impl Factory {
    /// Controllers of this kind, with these settings. A coupled one governs the paths of one connection, which has this
    /// factory to itself.
    ///
    /// # Errors
    ///
    /// If the controller has a send hook: QUIC reports a packet after it was sent.
    pub fn new(scheme: &Scheme) -> Result<Self, Refused> {
        if send_hook::has_send_hook(scheme.build()) {
            return Err(Refused(format!(
                "controller {}: has a send hook, and QUIC reports a packet after it was sent; allowed with QUIC are \
                 controllers without",
                scheme.entry.name()
            )));
        }
        Ok(Self {
            build: build(scheme),
            start: Start::default(),
            built: AtomicU64::new(0),
            is_coupled: matches!(scheme.entry, Entry::Coupled(_)),
            handles: None,
        })
    }

    /// Flows begin like this.
    pub fn starting(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Keeps a handle of every controller that it makes, also when its path is gone.
    pub fn observed(mut self) -> Self {
        self.handles = Some(Mutex::default());
        self
    }

    /// The controllers made so far, in order, if they are kept ([`observed`](Self::observed)): to observe them, and to
    /// fire their timers when they are due.
    pub fn handles(&self) -> Vec<Handle> {
        self.handles.as_ref().map_or_else(Vec::new, |handles| locked(handles).clone())
    }

    /// When the next timer of a controller is due.
    pub fn next_timer(&self) -> Option<Instant> {
        let handles = locked(self.handles.as_ref()?);
        handles.iter().filter_map(Handle::next_timer).min()
    }

    /// Fires the timers that are due.
    pub fn on_timer(&self, now: Instant) {
        self.handles.iter().for_each(|handles| {
            locked(handles).iter().for_each(|handle| handle.on_timer(now));
        });
    }

    /// Makes the controller of a path that begins at `now`.
    pub(crate) fn path(self: &Arc<Self>, now: Instant, mtu: u16) -> Adapter {
        let origin = self.start.origin.unwrap_or(now);
        let number = self.built.fetch_add(1, Ordering::Relaxed);
        let info = self.flow_info(Time(nanos(now, origin)), u64::from(mtu), number);
        let flow = Flow::new((self.build)(&info), &info, (origin, self.is_coupled));
        let handle = Handle(Arc::new(Mutex::new(flow)));
        if let Some(handles) = &self.handles {
            locked(handles).push(handle.clone());
        }
        Adapter::new(Arc::clone(self), handle, info.initial_cwnd.0)
    }

    fn flow_info(&self, start: Time, mtu: u64, number: u64) -> FlowInfo {
        let bytes = |packets: f64| (packets * mtu as f64) as u64; // infinity becomes u64::MAX
        FlowInfo {
            mss: Bytes(mtu),
            initial_cwnd: Bytes(bytes(self.start.cwnd_packets).max(2 * mtu)),
            initial_ssthresh: Bytes(bytes(self.start.ssthresh_packets)),
            recovery: Recovery::Sack,
            paces: true,
            start,
            seed: Seed(self.start.seed).derive("controller", number),
        }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn congestion::Controller> {
        Box::new(self.path(now, current_mtu))
    }
}

/// The controller of a path, from outside of the connection.
///
/// noq's trait has no timer. Without a caller of [`on_timer`](Self::on_timer), a timer fires with the next packet that
/// is sent or acknowledged.
#[derive(Clone, Debug)]
pub struct Handle(pub(crate) Arc<Mutex<Flow>>);

impl Handle {
    pub(crate) fn flow(&self) -> MutexGuard<'_, Flow> {
        locked(&self.0)
    }

    /// When [`on_timer`](Self::on_timer) is to be called next.
    pub fn next_timer(&self) -> Option<Instant> {
        let mut flow = self.flow();
        flow.timer().map(|at| flow.origin() + Duration::from_nanos(at.0))
    }

    /// Fires the timer, if it is due; the connection is to be polled afterwards.
    pub fn on_timer(&self, now: Instant) {
        self.flow().fire(now);
    }

    /// What the controller allows.
    pub fn control(&self) -> Control {
        self.flow().control()
    }

    /// The latest delivery-rate sample.
    pub fn delivery_rate(&self) -> Rate {
        self.flow().delivery_rate()
    }

    /// See [`Controller::fell_back`].
    pub fn fell_back(&self) -> bool {
        self.flow().core().fell_back()
    }

    /// See [`Controller::counters`].
    pub fn counters(&self) -> Vec<(&'static str, f64)> {
        self.flow().core().counters()
    }

    /// See [`Controller::on_end`].
    pub fn on_end(&self, now: Instant) {
        self.flow().end(now);
    }
}

/// What makes the controllers of paths.
fn build(scheme: &Scheme) -> Box<Build> {
    match scheme.entry {
        Entry::Plain(spec) => {
            let params = Arc::new(scheme.params.clone());
            Box::new(move |flow| (spec.build)(flow, &params))
        }
        Entry::Coupled(_) => {
            let shared: Shared = Arc::new(Mutex::new(scheme.build()));
            let joined = AtomicU32::new(0);
            Box::new(move |flow| {
                let id = SubflowId(joined.fetch_add(1, Ordering::Relaxed));
                Box::new(PathOf::join(&shared, id, flow))
            })
        }
    }
}

/// From `origin` to `now`.
pub(crate) fn nanos(now: Instant, origin: Instant) -> u64 {
    now.saturating_duration_since(origin).as_nanos() as u64
}

/// The value, also after a panic of another thread.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Smallest payload of a datagram that QUIC allows (RFC 9000 section 14).
pub(crate) const MTU_MIN: u64 = 1200;
