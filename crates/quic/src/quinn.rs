//! quinn's trait. It is told of what leaves together with one call, which may be several packets, and of no packet that is
//! lost by its number.
use crate::adapter::Adapter;
use crate::factory::Factory;
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};
use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let (mut flow, mtu) = (self.handle.flow(), u64::from(self.mtu));
        for _ in 0..bytes / mtu {
            flow.sent(now, mtu, last_packet_number);
        }
        if !bytes.is_multiple_of(mtu) {
            flow.sent(now, bytes % mtu, last_packet_number);
        }
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        _app_limited: bool,
        _rtt: &RttEstimator,
    ) {
        self.handle.flow().acked(now, sent, bytes, None);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        _largest_packet_num_acked: Option<u64>,
    ) {
        let mut flow = self.handle.flow();
        if !app_limited {
            flow.window_is_full();
        }
        flow.end_acks(now, in_flight, app_limited);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut flow = self.handle.flow();
        flow.lost_until(sent, lost_bytes);
        flow.congestion(now, is_persistent_congestion, lost_bytes == 0);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.mtu = new_mtu;
    }

    fn window(&self) -> u64 {
        self.allowed()
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

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.path(now, current_mtu))
    }
}
