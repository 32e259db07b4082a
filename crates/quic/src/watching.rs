//! What a program may know of a connection's sender that noq does not keep.
use crate::factory::locked;
use crate::virtual_time::{PathLog, Seen, WatchedFactory};
use ackademy_capture::qlog::Sender;
use noq_proto::congestion::ControllerFactory;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Watches the controllers of one connection.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Seen>>);

impl Watch {
    /// The same controllers, watched.
    pub fn factory(
        &self,
        inner: Arc<dyn ControllerFactory + Send + Sync>,
    ) -> Arc<dyn ControllerFactory + Send + Sync> {
        Arc::new(WatchedFactory::new(inner, vec![Arc::clone(&self.0)]))
    }

    /// Writes what the sender does; `origin` is time 0 of the file.
    pub fn log(&self, sender: Sender, origin: Instant) {
        locked(&self.0).log = Some(PathLog { sender, origin });
    }

    /// Smallest round trip and mean of the samples, one per acknowledgement, in milliseconds; NaN without any.
    pub fn rtt_ms(&self) -> (f64, f64) {
        let seen = locked(&self.0);
        if seen.samples == 0 {
            return (f64::NAN, f64::NAN);
        }
        (seen.min.as_millis_f64(), seen.sum_ns as f64 / seen.samples as f64 / 1e6)
    }
}
