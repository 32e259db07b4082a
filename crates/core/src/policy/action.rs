//! The action map: how an action changes window and rate, within the bounds.
use super::spec::{ActionSpec, BoundsSpec, MapSpec, SpecError, Step};
use super::{ACTION_MAX, Action, InvalidAction};
use crate::control::{Ack, Control, FlowInfo, Loss, LossKind};
use crate::law::reno_window::Window;
use crate::sensing::delivered::{Count, most_bps};
use crate::units::{Bytes, Rate};

/// The window that follows from a rate: what the rate carries in this many round trips ...
const CAP_RTTS: f64 = 2.0;
/// ... plus this many packets (both proposed, as for PCC).
const CAP_PACKETS: f64 = 10.0;
/// Window after a time-out, packets.
const AFTER_TIMEOUT: f64 = 2.0;

/// Applies actions.
#[derive(Clone, Debug)]
pub struct ActionMap {
    map: MapSpec,
    steps: Vec<Step>,
    scale: f64,
    limit: f32,
}

impl ActionMap {
    /// The map that the table describes.
    ///
    /// # Errors
    ///
    /// If a step is malformed.
    pub fn new(spec: &ActionSpec) -> Result<Self, SpecError> {
        let (map, steps) = (spec.map, spec.steps()?);
        Ok(Self { map, steps, scale: spec.scale, limit: spec.limit as f32 })
    }

    /// Whether actions change a pacing rate.
    pub fn paces(&self) -> bool {
        matches!(self.map, MapSpec::RateChange | MapSpec::RateAndCwnd)
    }

    /// Whether the window follows from the rate.
    fn window_follows(&self) -> bool {
        self.map == MapSpec::RateChange
    }

    /// Applies an action; an invalid one changes nothing. Returns its values, each in [-1, 1]: of choice i of
    /// n steps 2 i / (n - 1) - 1, and 0 where the map has no further value.
    ///
    /// # Errors
    ///
    /// If a value is not finite or beyond the limit, or the action is of another kind than the map's.
    pub fn apply(
        &self,
        action: Action,
        hold: &mut Hold,
    ) -> Result<[f64; ACTION_MAX], InvalidAction> {
        let mut values = [0.0; ACTION_MAX];
        match (self.map, action) {
            (MapSpec::CwndSteps, Action::Choice(index)) => {
                let step = self.steps.get(index).ok_or(InvalidAction::OutOfRange)?;
                hold.change_cwnd(hold.window.cwnd * step.factor + step.packets);
                values[0] = 2.0 * index as f64 / (self.steps.len() - 1) as f64 - 1.0;
            }
            (MapSpec::CwndFactor, Action::Values([value, _])) => {
                values[0] = self.value(value)?;
                hold.change_cwnd(hold.window.cwnd * libm::exp2(self.scale * values[0]));
            }
            (MapSpec::RateChange, Action::Values([value, _])) => {
                values[0] = self.value(value)?;
                let change = self.scale * values[0];
                let factor = if change < 0.0 { 1.0 / (1.0 - change) } else { 1.0 + change };
                hold.scale_rate(factor);
            }
            (MapSpec::RateAndCwnd, Action::Values([rate, cwnd])) => {
                values = [self.value(rate)?, self.value(cwnd)?];
                hold.scale_rate(libm::exp2(self.scale * values[0]));
                hold.set_cwnd(hold.window.cwnd * libm::exp2(self.scale * values[1]));
            }
            // A law takes them (`law::Corrected`).
            (map, Action::Values(given)) if map.is_over_law() => {
                for (value, given) in values.iter_mut().zip(given).take(map.values()) {
                    *value = self.value(given)?;
                }
            }
            _ => return Err(InvalidAction::OutOfRange),
        }
        Ok(values)
    }

    fn value(&self, value: f32) -> Result<f64, InvalidAction> {
        if !value.is_finite() {
            return Err(InvalidAction::NotFinite);
        }
        if value.abs() > self.limit {
            return Err(InvalidAction::OutOfRange);
        }
        Ok(f64::from(value.clamp(-1.0, 1.0)))
    }
}

/// The flow's present window and rate, within the bounds.
#[derive(Clone, Debug)]
pub struct Hold {
    /// In packets.
    pub window: Window,
    min: f64,
    max: f64,
    /// Window of a flow that restarts after idling, packets.
    restart: f64,
    /// Pacing, bits per second.
    rate_bps: Option<f64>,
    window_follows: bool,
    packet_bits: f64,
    /// Latest smoothed round trip, s; 0 before the first.
    pub srtt_s: f64,
    /// The window was full since the decision before.
    used: bool,
    count: Count,
    /// Largest rate of delivery of ten seconds, bits per second.
    delivered_bps: f64,
}

impl Hold {
    /// The flow's initial window, without pacing.
    pub fn new(flow: &FlowInfo, bounds: &BoundsSpec, map: &ActionMap) -> Self {
        let window = Window::new(flow);
        let mut hold = Self {
            restart: window.cwnd,
            window,
            min: bounds.cwnd_min_packets,
            max: bounds.cwnd_max_packets,
            rate_bps: None,
            window_follows: map.window_follows(),
            packet_bits: flow.mss.0.max(1) as f64 * 8.0,
            srtt_s: 0.0,
            used: true,
            count: Count::new(flow.start),
            delivered_bps: 0.0,
        };
        hold.set_cwnd(hold.window.cwnd);
        hold
    }

    /// Takes in a record.
    pub fn on_ack(&mut self, ack: &Ack) {
        self.srtt_s = ack.srtt.as_secs_f64();
        self.used |= ack.cwnd_limited == 1;
        self.delivered_bps = self.count.add(ack, self.srtt_s);
    }

    /// A decision was made: the window is to be used anew before it grows again.
    pub fn decided(&mut self) {
        self.used = false;
    }

    /// As [`Hold::set_cwnd`], for an action: a window that was not used does not grow (RFC 9438 section 5.8).
    fn change_cwnd(&mut self, packets: f64) {
        if self.used || packets < self.window.cwnd {
            self.set_cwnd(packets);
        }
    }

    /// Sets the window, in packets.
    pub fn set_cwnd(&mut self, packets: f64) {
        self.window.cwnd = packets.clamp(self.min, self.max);
    }

    /// The window in force, packets.
    pub fn cwnd(&self) -> f64 {
        match self.rate_bps {
            Some(rate_bps) if self.window_follows => {
                let cap = CAP_RTTS * self.packets_per_rtt(rate_bps) + CAP_PACKETS;
                cap.clamp(self.min, self.max)
            }
            _ => self.window.cwnd,
        }
    }

    /// Packets in flight at this setting: the window, or what the rate carries in a round trip.
    pub fn pipe(&self) -> f64 {
        match self.rate_bps {
            Some(rate_bps) if self.window_follows => {
                self.packets_per_rtt(rate_bps).clamp(self.min, self.max)
            }
            _ => self.window.cwnd,
        }
    }

    fn packets_per_rtt(&self, rate_bps: f64) -> f64 {
        rate_bps * self.srtt_s / self.packet_bits
    }

    /// Begins to pace at one window per round trip, once a round trip is known.
    pub fn pace(&mut self) {
        if self.rate_bps.is_none() && self.srtt_s > 0.0 {
            self.rate_bps = Some(self.window.cwnd * self.packet_bits / self.srtt_s);
        }
    }

    fn scale_rate(&mut self, factor: f64) {
        let (Some(rate_bps), true) = (self.rate_bps, self.srtt_s > 0.0) else { return };
        let per_packet = self.packet_bits / self.srtt_s;
        let most_bps = most_bps(self.delivered_bps, self.restart, self.packet_bits, self.srtt_s);
        let most_bps = most_bps.clamp(self.min * per_packet, self.max * per_packet);
        self.rate_bps = Some((rate_bps * factor).clamp(self.min * per_packet, most_bps));
    }

    /// Halves window and rate.
    pub fn halve(&mut self) {
        self.set_cwnd(self.window.cwnd / 2.0);
        self.scale_rate(0.5);
    }

    /// `NewReno`'s reaction to a loss that is not a time-out.
    pub fn guard(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap => self.halve(),
            LossKind::Deflate | LossKind::Idle => {
                self.window.reduce(loss);
                self.set_cwnd(self.window.cwnd);
                if loss.kind == LossKind::Idle {
                    let factor = self.restart / self.pipe().max(1.0);
                    self.scale_rate(factor.min(1.0));
                }
            }
            LossKind::More | LossKind::Timeout | LossKind::TimeoutAgain | LossKind::Spurious => {}
        }
    }

    /// Sets the window to two packets and the threshold to half of what was in flight,
    /// which one of what was answered before does not change.
    pub fn after_timeout(&mut self, kind: LossKind) {
        if kind == LossKind::Timeout || self.cwnd() > AFTER_TIMEOUT {
            self.window.ssthresh = (self.pipe() / 2.0).max(AFTER_TIMEOUT);
        }
        self.rate_bps = None;
        self.set_cwnd(AFTER_TIMEOUT);
    }

    /// The settings for the transport. Outside slow start the threshold is at most the window, so
    /// that the transport does not grow the window by itself.
    pub fn control(&self, in_slow_start: bool) -> Control {
        let packet = self.packet_bits / 8.0;
        let cwnd = Bytes(whole(self.cwnd() * packet));
        let ssthresh = Bytes(whole(self.window.ssthresh * packet));
        Control {
            cwnd,
            pacing_rate: self.rate_bps.map_or(Rate::UNLIMITED, |rate| Rate(whole(rate.max(1.0)))),
            ssthresh: if in_slow_start { ssthresh } else { ssthresh.min(cwnd) },
        }
    }
}

/// The whole part of a number from 0, at most `i64::MAX`: processors convert to signed numbers in one instruction.
fn whole(number: f64) -> u64 {
    number as i64 as u64
}

#[cfg(test)]
#[path = "tests/action.rs"]
mod tests;
