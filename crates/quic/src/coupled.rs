//! A coupled controller as one controller per path, which is what noq asks for.
use crate::factory::locked;
use ackademy::control::{
    Ack, Control, Controller, Coupled, FlowInfo, Loss, PacketEvent, SubflowId,
};
use ackademy::units::Time;
use std::sync::{Arc, Mutex};

/// What governs all paths of a connection.
pub(crate) type Shared = Arc<Mutex<Box<dyn Coupled>>>;

/// One of its paths.
pub(crate) struct PathOf {
    shared: Shared,
    id: SubflowId,
}

impl PathOf {
    /// A path joins.
    pub(crate) fn join(shared: &Shared, id: SubflowId, flow: &FlowInfo) -> Self {
        let mut coupled = locked(shared);
        coupled.subflow_added(id, flow);
        coupled.subflow_of(id, 0);
        Self { shared: Arc::clone(shared), id }
    }
}

/// The path is gone, such as after a migration.
impl Drop for PathOf {
    fn drop(&mut self) {
        locked(&self.shared).subflow_removed(self.id);
    }
}

impl Controller for PathOf {
    fn on_ack(&mut self, ack: &Ack) {
        locked(&self.shared).on_ack(self.id, ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        locked(&self.shared).on_loss(self.id, loss);
    }

    fn control(&self) -> Control {
        locked(&self.shared).control(self.id)
    }

    fn answer(&mut self, ack: &Ack) -> (Control, Option<Time>) {
        locked(&self.shared).answer(self.id, ack)
    }

    fn on_packet(&mut self, event: &PacketEvent) {
        locked(&self.shared).on_packet(self.id, event);
    }

    fn wants_packets(&self) -> bool {
        locked(&self.shared).wants_packets()
    }

    fn on_timer(&mut self, now: Time) {
        locked(&self.shared).on_timer(self.id, now);
    }

    fn next_timer(&self) -> Option<Time> {
        locked(&self.shared).next_timer(self.id)
    }

    fn on_end(&mut self, now: Time) {
        locked(&self.shared).on_end(self.id, now);
    }

    fn fell_back(&self) -> bool {
        locked(&self.shared).fell_back(self.id)
    }

    fn counters(&self) -> Vec<(&'static str, f64)> {
        locked(&self.shared).counters(self.id)
    }
}
