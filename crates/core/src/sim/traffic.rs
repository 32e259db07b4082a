//! What applications hand to their senders, and when.
use crate::rng::Rng;
use crate::sim::plan::TrafficSpec;
use crate::transport::sender::Supply;
use crate::units::{Rate, Span, Time};
use std::sync::Arc;

/// One connection's application.
#[derive(Clone, Debug)]
pub struct App {
    /// One for many applications of a kind.
    traffic: Arc<TrafficSpec>,
    rng: Rng,
    stop: Time,
    /// When it acts next without an event from outside.
    pub next: Time,
    /// There is an event at `stop` already.
    stop_scheduled: bool,
    /// What the sender may take.
    pub supply: Supply,
    /// Since when it has had something to send or to be acknowledged; `Time::NEVER` if it has not.
    active_since: Time,
    active: Span,
    /// Transfers fully acknowledged.
    pub transfers: u64,
    /// Sum of their durations.
    pub transfer_time: Span,
    /// Writes to a bounded send buffer.
    pub writes: Writes,
}

/// What became of the writes to a bounded send buffer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Writes {
    /// Made; a scenario's count fits.
    pub offered: u32,
    /// Refused whole for want of room.
    pub refused: u32,
}

impl App {
    /// Starts at `start`; hands over nothing from `stop` on.
    pub fn new(traffic: impl Into<Arc<TrafficSpec>>, start: Time, stop: Time, rng: Rng) -> Self {
        Self {
            traffic: traffic.into(),
            rng,
            stop,
            next: start,
            stop_scheduled: false,
            supply: Supply::default(),
            active_since: Time::NEVER,
            active: Span::ZERO,
            transfers: 0,
            transfer_time: Span::ZERO,
            writes: Writes::default(),
        }
    }

    /// Acts at `next`; `unacknowledged` bytes are sent and not cumulatively acknowledged.
    pub fn on_time(&mut self, now: Time, unacknowledged: u64) {
        self.next = Time::NEVER;
        if now >= self.stop {
            self.supply.unsent = 0;
            return;
        }
        let bytes = match *self.traffic {
            TrafficSpec::Bulk {} => u64::MAX,
            TrafficSpec::OnOff { mean_bytes, .. } | TrafficSpec::Poisson { mean_bytes, .. } => {
                (self.rng.exponential(mean_bytes) as u64).max(1)
            }
            TrafficSpec::Fixed { bytes } => bytes,
            TrafficSpec::RequestResponse { response_bytes, .. } => response_bytes,
            TrafficSpec::AppLimited { rate_mbps, write_bytes } => {
                let write = u64::from(write_bytes);
                self.next = now + Rate::from_mbps(rate_mbps).time_for(crate::units::Bytes(write));
                write
            }
            TrafficSpec::Writes { .. } => self.write(now, unacknowledged),
            TrafficSpec::Cbr { .. } => 0,
        };
        self.supply.unsent = self.supply.unsent.saturating_add(bytes);
        if self.stop < Time::NEVER {
            self.next = self.next.min(self.stop);
        }
        if self.active_since == Time::NEVER {
            self.active_since = now;
        }
    }

    /// What the next write adds to the send buffer.
    fn write(&mut self, now: Time, unacknowledged: u64) -> u64 {
        let TrafficSpec::Writes { count, write_bytes, interval_ms, send_buffer_bytes } =
            *self.traffic
        else {
            return 0;
        };
        let write = u64::from(write_bytes);
        let fits = self.supply.unsent + unacknowledged + write <= send_buffer_bytes;
        self.writes.offered += 1;
        self.writes.refused += u32::from(!fits);
        if u64::from(self.writes.offered) < count {
            self.next = now + Span::from_secs_f64(interval_ms / 1e3);
        }
        if fits { write } else { 0 }
    }

    /// When an event is to be made for `next`, if it has none: one at `stop` is enough, however
    /// many transfers come before.
    pub fn to_schedule(&mut self) -> Option<Time> {
        let stops = self.next == self.stop;
        if self.next == Time::NEVER || (stops && self.stop_scheduled) {
            return None;
        }
        self.stop_scheduled |= stops;
        Some(self.next)
    }

    /// What it hands over.
    pub fn traffic(&self) -> &Arc<TrafficSpec> {
        &self.traffic
    }

    /// When it stops.
    pub fn stop(&self) -> Time {
        self.stop
    }

    /// Whether a transfer is under way, so that its end is worth looking for.
    #[inline]
    pub fn may_finish(&self) -> bool {
        self.supply.unsent == 0 && self.active_since != Time::NEVER
    }

    /// Whether it has something to send or to be acknowledged.
    pub fn is_active(&self) -> bool {
        self.active_since != Time::NEVER
    }

    /// Nothing is under way and nothing will be handed over any more.
    pub fn is_over(&self) -> bool {
        self.next == Time::NEVER && self.supply.unsent == 0 && self.active_since == Time::NEVER
    }

    /// Everything handed over is acknowledged.
    pub fn on_all_acknowledged(&mut self, now: Time) {
        let pause_s = match *self.traffic {
            TrafficSpec::OnOff { mean_off_s, .. } => Some(mean_off_s),
            TrafficSpec::RequestResponse { mean_think_s, .. } => Some(mean_think_s),
            TrafficSpec::AppLimited { .. } | TrafficSpec::Cbr { .. } if now < self.stop => return,
            TrafficSpec::Writes { count, .. }
                if now < self.stop && u64::from(self.writes.offered) < count =>
            {
                return;
            }
            _ => None,
        };
        let took = now.since(self.active_since);
        self.active += took;
        self.active_since = Time::NEVER;
        self.transfers += 1;
        self.transfer_time += took;
        if let Some(mean_s) = pause_s {
            let resume = now + Span::from_secs_f64(self.rng.exponential(mean_s));
            self.next = if resume < self.stop { resume } else { Time::NEVER };
        }
    }

    /// How long it was active until `end` (from the first byte offered to the last acknowledged).
    pub fn active(&self, end: Time) -> Span {
        if self.active_since == Time::NEVER {
            return self.active;
        }
        self.active + end.since(self.active_since)
    }
}
