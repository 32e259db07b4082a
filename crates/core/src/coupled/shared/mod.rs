//! What the coupled controllers share: a table of subflows, each with the window of RFC 5681, and the settings
//! that say how they count.
use crate::control::{Ack, CWND_MAX, Control, Coupled, FlowInfo, Loss, LossKind, SubflowId};
use crate::law::reno_window::{RECORD_PACKETS_MAX, Window};
use crate::params::{Param, ParamKind, Params};
use crate::units::Bytes;

/// Setting: real numbers or the integers of the Linux code.
pub const KERNEL: Param = Param {
    name: "kernel",
    about: "`on` computes in the integers of Linux MPTCP 0.9x: whole packets, scaled fractions, half of \
            the window on a loss (source: multipath-tcp v0.92); `off` in real numbers (paper)",
    kind: ParamKind::Choice(&["off", "on"]),
};

/// Setting: what one step of the increase stands for.
pub const ABC: Param = Param {
    name: "abc",
    about: "`on` counts acknowledged packets (RFC 6356, bytes); `off` counts acknowledgements, so that \
            delayed ones halve the increase (source: multipath-tcp v0.92)",
    kind: ParamKind::Choice(&["on", "off"]),
};

/// Setting: what a loss reduces; as of `new_reno`.
pub const HALF_OF: Param = Param {
    name: "half_of",
    about: "what a loss reduces: `auto` takes FlightSize (RFC 5681 equation 4), and the window under \
            ns-2's recovery; `kernel = \"on\"` always takes the window (source: multipath-tcp v0.92)",
    kind: ParamKind::Choice(&["auto", "flight", "window"]),
};

/// How a coupled controller counts.
#[derive(Clone, Copy, Debug)]
pub struct Counting {
    /// In the integers of the Linux code.
    pub kernel: bool,
    /// Acknowledged packets; otherwise acknowledgements.
    pub abc: bool,
    /// What a loss reduces, if it is set.
    half_of_window: Option<bool>,
}

impl Counting {
    /// From [`KERNEL`], [`ABC`] and [`HALF_OF`].
    pub fn new(params: &Params) -> Self {
        let kernel = params.choice("kernel") == "on";
        let half_of_window = match params.choice("half_of") {
            "flight" => Some(false),
            "window" => Some(true),
            _ => None,
        };
        Self { kernel, abc: params.choice("abc") == "on", half_of_window }
    }

    /// What an acknowledgement counts for, packets.
    pub fn packets<M>(self, subflow: &Subflow<M>, ack: &Ack) -> f64 {
        match self {
            Self { abc: false, .. } => 1.0,
            Self { kernel: false, .. } => subflow.window.packets(ack.acked),
            Self { kernel: true, .. } => subflow.window.packets(ack.acked).ceil(),
        }
    }
}

/// One subflow: its window, its round trip, and what a rule remembers of it.
#[derive(Clone, Debug)]
pub struct Subflow<M> {
    id: SubflowId,
    /// As a NewReno flow has it; whole packets in the integers of the Linux code.
    pub window: Window,
    /// Smoothed round trip, seconds; zero before the first sample.
    pub srtt: f64,
    /// Whether a loss is repaired that was found by later deliveries.
    pub in_recovery: bool,
    /// Packets counted since the window grew, in the integers of the Linux code.
    pub count: u64,
    /// The rule's own.
    pub memory: M,
}

impl<M: Default> Subflow<M> {
    fn new(id: SubflowId, flow: &FlowInfo, counting: Counting) -> Self {
        let mut window = Window::new(flow);
        if let Some(half_of_window) = counting.half_of_window {
            window.half_of_window = half_of_window;
        }
        if counting.kernel {
            window.cwnd = window.cwnd.floor();
        }
        let memory = M::default();
        Self { id, window, srtt: 0.0, in_recovery: false, count: 0, memory }
    }
}

impl<M> Subflow<M> {
    /// Whether its round trip is known, so that it counts among the others.
    pub fn is_measured(&self) -> bool {
        self.srtt > 0.0
    }

    /// Smoothed round trip in whole microseconds, at least one.
    pub fn srtt_us(&self) -> u128 {
        ((self.srtt * 1e6) as u128).max(1)
    }

    /// The window in whole packets.
    pub fn whole(&self) -> u128 {
        self.window.cwnd as u128
    }

    /// Packets per second; zero before the first sample.
    pub fn rate(&self) -> f64 {
        if self.is_measured() { self.window.cwnd / self.srtt } else { 0.0 }
    }

    /// What a loss reduces, packets.
    pub fn base_of_reduction(&self, loss: &Loss) -> f64 {
        if self.window.half_of_window {
            self.window.cwnd
        } else {
            self.window.packets(loss.inflight)
        }
    }

    /// Answers a loss as NewReno does.
    pub fn reduce(&mut self, loss: &Loss, counting: Counting) {
        if counting.kernel {
            self.reduce_to(loss, (self.window.cwnd / 2.0).floor().max(2.0));
            self.window.cwnd = self.window.cwnd.floor();
        } else {
            self.window.reduce(loss);
        }
    }

    /// Answers a loss with a threshold of `ssthresh` packets, otherwise as NewReno does.
    pub fn reduce_to(&mut self, loss: &Loss, ssthresh: f64) {
        if !matches!(loss.kind, LossKind::Gap | LossKind::Timeout) {
            return self.window.reduce(loss);
        }
        self.window.remember();
        self.window.ssthresh = ssthresh;
        self.window.cwnd = self.window.cwnd.min(ssthresh);
        if loss.kind == LossKind::Timeout {
            self.window.cwnd = 1.0;
        }
    }

    /// Slow start; what is left of `packets` is for congestion avoidance. The Linux code of the time
    /// grows exponentially at the threshold too, to one packet above it.
    pub fn slow_start(&mut self, packets: f64, counting: Counting) -> f64 {
        if !counting.kernel {
            return self.window.slow_start(packets);
        }
        let above = self.window.ssthresh.floor() + 1.0 - self.window.cwnd;
        let step = packets.min(above.max(0.0));
        self.window.grow(step);
        packets - step
    }

    /// Congestion avoidance of NewReno.
    pub fn avoid_alone(&mut self, packets: f64, counting: Counting) {
        if !counting.kernel {
            return self.window.avoid(packets, 1.0);
        }
        for _ in 0..steps(packets) {
            let every = self.whole();
            self.count_to(every);
        }
    }

    /// Counts one packet; after `every` the window grows by one. Whether it grew.
    pub fn count_to(&mut self, every: u128) -> bool {
        if u128::from(self.count) < every {
            self.count += 1;
            return false;
        }
        self.count = 0;
        self.window.grow(1.0);
        true
    }
}

/// Packets of a record that are counted one by one.
pub fn steps(packets: f64) -> usize {
    (packets as usize).min(RECORD_PACKETS_MAX)
}

/// Number of subflows whose round trip is known.
pub fn measured<M>(set: &[Subflow<M>]) -> usize {
    set.iter().filter(|subflow| subflow.is_measured()).count()
}

/// The window part of an acknowledgement, RFC 5681 with another congestion avoidance: nothing grows during
/// a repair or while the window is not used, slow start is each subflow's own, and `avoid` takes the packets
/// that are left. A subflow without a round trip avoids as NewReno does.
pub fn grow<M>(
    set: &mut [Subflow<M>],
    at: usize,
    ack: &Ack,
    counting: Counting,
    avoid: impl FnOnce(&mut [Subflow<M>], f64),
) {
    if ack.recovering == 1 || ack.cwnd_limited == 0 {
        return;
    }
    let subflow = &mut set[at];
    let rest = subflow.slow_start(counting.packets(subflow, ack), counting);
    if rest <= 0.0 {
        return;
    }
    if set[at].is_measured() {
        avoid(set, rest);
    } else {
        set[at].avoid_alone(rest, counting);
    }
}

/// What tells one coupled controller from another.
pub trait Rule: std::marker::Send {
    /// What it remembers of a subflow.
    type Memory: Default + std::marker::Send;
    /// See [`Coupled::judges_rounds`].
    const JUDGES_ROUNDS: bool = false;
    /// Answers an acknowledgement of the subflow at this index.
    fn on_ack(&mut self, set: &mut [Subflow<Self::Memory>], at: usize, ack: &Ack);
    /// Answers a loss of the subflow at this index.
    fn on_loss(&mut self, set: &mut [Subflow<Self::Memory>], at: usize, loss: &Loss);
}

/// The subflows of a connection under one rule. Subflows join and leave at any time; a call that names
/// another subflow changes nothing.
pub struct Group<R: Rule> {
    rule: R,
    counting: Counting,
    set: Vec<Subflow<R::Memory>>,
    /// Window of a subflow that is not in the group: a packet.
    unknown: Bytes,
}

impl<R: Rule> Group<R> {
    /// Without subflows.
    pub fn new(rule: R, counting: Counting) -> Self {
        Self { rule, counting, set: Vec::new(), unknown: Bytes(1) }
    }

    fn find(&self, id: SubflowId) -> Option<usize> {
        self.set.iter().position(|subflow| subflow.id == id)
    }
}

impl<R: Rule> Coupled for Group<R> {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.subflow_removed(id);
        self.unknown = Bytes(flow.mss.0.clamp(1, CWND_MAX.0));
        self.set.push(Subflow::new(id, flow, self.counting));
    }

    fn subflow_removed(&mut self, id: SubflowId) {
        self.set.retain(|subflow| subflow.id != id);
    }

    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        let Some(at) = self.find(id) else { return };
        let subflow = &mut self.set[at];
        subflow.srtt = ack.srtt.as_secs_f64();
        subflow.in_recovery &= ack.recovering == 1;
        self.rule.on_ack(&mut self.set, at, ack);
    }

    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        let Some(at) = self.find(id) else { return };
        self.rule.on_loss(&mut self.set, at, loss);
        let in_recovery = &mut self.set[at].in_recovery;
        match loss.kind {
            LossKind::Gap => *in_recovery = true,
            LossKind::Timeout | LossKind::TimeoutAgain | LossKind::Spurious => *in_recovery = false,
            LossKind::More | LossKind::Deflate | LossKind::Idle => {}
        }
    }

    fn judges_rounds(&self) -> bool {
        R::JUDGES_ROUNDS
    }

    fn control(&self, id: SubflowId) -> Control {
        match self.find(id) {
            Some(at) => self.set[at].window.control(),
            None => Control::window(self.unknown),
        }
    }
}

#[cfg(test)]
pub mod tests;
