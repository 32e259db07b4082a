//! What Reno and CUBIC of the stack are both: `TcpCubicSenderBytes`, which leaves to them how a
//! window grows once it does not double, and how far it is reduced.
use super::{HyStart, Window, pacing_rate, restarts_on_timeout};
use crate::control::{Ack, Control, FlowInfo, Loss, LossKind};
use crate::params::Params;
use crate::units::Span;

/// Smallest window, in packets.
const PACKETS_MIN: u64 = 2;

/// A paced window that leaves slow start when round trips grow.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The window; its owner grows and reduces it.
    pub window: Window,
    hystart: HyStart,
    restarts: bool,
    srtt: Span,
}

/// What a loss calls for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A smaller window.
    Reduce,
    /// A new slow start, from [`Window::restart`].
    Restart,
}

impl Sender {
    /// Starts in slow start; `params` holds [`super::MSS`] and [`super::ON_TIMEOUT`].
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            window: Window::new(flow, params, PACKETS_MIN),
            hystart: HyStart::default(),
            restarts: restarts_on_timeout(params),
            srtt: Span::ZERO,
        }
    }

    /// Takes in an acknowledgement; whether it counts for growth, which a recovery holds up.
    pub fn on_ack(&mut self, ack: &Ack) -> bool {
        self.srtt = ack.srtt;
        self.window.note(ack);
        let window = &mut self.window;
        if window.in_slow_start() && self.hystart.on_ack(ack, window.packets(), window.packet()) {
            window.leave_slow_start();
        }
        !window.in_recovery()
    }

    /// What the owner has to do about `loss`.
    pub fn answer(&self, loss: &Loss) -> Option<Answer> {
        match loss.kind {
            LossKind::Gap | LossKind::More => {
                self.window.answers_loss(loss).then_some(Answer::Reduce)
            }
            LossKind::Timeout | LossKind::TimeoutAgain => self.restarts.then_some(Answer::Restart),
            LossKind::Deflate | LossKind::Idle | LossKind::Spurious => None,
        }
    }

    /// The window, paced at twice its rate in slow start and at a quarter more after it.
    pub fn control(&self) -> Control {
        let percent = if self.window.in_slow_start() { 200 } else { 125 };
        Control {
            cwnd: self.window.allowed(),
            pacing_rate: pacing_rate(self.window.cwnd(), percent, self.srtt),
            ssthresh: self.window.ssthresh(),
        }
    }
}
