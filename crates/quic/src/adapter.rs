//! noq's trait, in which the calls of one acknowledgement come in this order: packets acknowledged, the end of them,
//! packets lost, the congestion event.
use crate::factory::{Factory, Handle};
use ackademy::control::CWND_MAX;
use ackademy::units::Rate;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerMetrics};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

/// A controller of the core on a path of noq.
#[derive(Debug)]
pub(crate) struct Adapter {
    factory: Arc<Factory>,
    pub(crate) handle: Handle,
    pub(crate) mtu: u16,
    pub(crate) initial: u64,
}

impl Adapter {
    pub(crate) fn new(factory: Arc<Factory>, handle: Handle, initial: u64) -> Self {
        let mtu = handle.flow().mtu();
        Self { factory, handle, mtu, initial }
    }

    /// After a migration: a controller as at the start, with the same settings.
    pub(crate) fn again(&self) -> Self {
        let now = self.handle.flow().latest_call();
        self.factory.path(now, self.mtu)
    }

    /// What may be in flight: at least two packets (RFC 9002 section 7.2).
    pub(crate) fn allowed(&self) -> u64 {
        self.handle.control().cwnd.0.clamp(2 * u64::from(self.mtu), CWND_MAX.0)
    }
}

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.handle.flow().sent(now, u64::from(bytes), pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.handle.flow().window_is_full();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.handle.flow().acked(now, sent, bytes, Some(pn));
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        self.handle.flow().end_acks(now, in_flight, app_limited);
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, _now: Instant) {
        self.handle.flow().lost(u64::from(lost_bytes), pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        self.handle.flow().congestion(now, is_persistent_congestion, is_ecn);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.handle.flow().spurious();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
    }

    fn window(&self) -> u64 {
        self.allowed()
    }

    fn metrics(&self) -> ControllerMetrics {
        let control = self.handle.control();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.allowed();
        metrics.ssthresh = (control.ssthresh <= CWND_MAX).then_some(control.ssthresh.0);
        let is_paced = control.pacing_rate != Rate::UNLIMITED;
        // Whatever a controller answers, a packet leaves every second.
        metrics.pacing_rate =
            is_paced.then_some((control.pacing_rate.0 / 8).max(u64::from(self.mtu)));
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.again())
    }

    fn initial_window(&self) -> u64 {
        self.initial
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
