//! Reno as Google's QUIC stack has it (`TcpCubicSenderBytes` with Reno's growth), the baseline of
//! Zhang's `LearningCC` paper.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::params::{Param, ParamKind, Params};
use crate::quic::{HyStart, MSS, ON_TIMEOUT, Window, pacing_rate, restarts_on_timeout};
use crate::units::Span;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "quic_reno",
    about: "Reno of Google's QUIC: paced, counts packets, leaves slow start when round trips grow",
    source: "Google QUIC, tcp_cubic_sender_bytes",
    params: &[
        Param {
            name: "beta",
            about: "what a reduction leaves of the window (source: the scripts of the LearningCC \
                    paper; the stack's own default is 0.7)",
            kind: ParamKind::Number { default: 0.5, min: 0.05, max: 0.95 },
        },
        MSS,
        ON_TIMEOUT,
    ],
    build: |flow, params| Box::new(QuicReno::new(flow, params)),
};

/// One packet more per round trip; a part of the window for each round trip with a loss.
#[derive(Clone, Debug)]
pub struct QuicReno {
    window: Window,
    hystart: HyStart,
    beta: f64,
    restarts: bool,
    srtt: Span,
}

impl QuicReno {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            window: Window::new(flow, params, PACKETS_MIN),
            hystart: HyStart::default(),
            beta: params.number("beta"),
            restarts: restarts_on_timeout(params),
            srtt: Span::ZERO,
        }
    }
}

impl Controller for QuicReno {
    fn on_ack(&mut self, ack: &Ack) {
        self.srtt = ack.srtt;
        self.window.note(ack);
        let window = &mut self.window;
        if window.in_slow_start() && self.hystart.on_ack(ack, window.packets(), window.packet()) {
            window.leave_slow_start();
        }
        if window.in_recovery() {
            return;
        }
        if window.in_slow_start() {
            if window.is_limited() {
                window.grow_exponentially(ack.acked);
            }
        } else {
            window.grow_additively(ack.acked, 1, true);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap | LossKind::More if self.window.answers_loss(loss) => {
                let cwnd = self.window.cwnd().0 as f64 * self.beta;
                self.window.cut_to(loss.now, cwnd as u64);
            }
            LossKind::Timeout if self.restarts => self.window.restart(),
            _ => {}
        }
    }

    fn control(&self) -> Control {
        let percent = if self.window.in_slow_start() { 200 } else { 125 };
        Control {
            cwnd: self.window.allowed(),
            pacing_rate: pacing_rate(self.window.cwnd(), percent, self.srtt),
            ssthresh: self.window.ssthresh(),
        }
    }
}

/// Smallest window, in packets.
const PACKETS_MIN: u64 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::{Bytes, Rate, Time};

    const PACKET: u64 = 1000;

    /// A flow of 20 packets in congestion avoidance.
    fn quic_reno(given: &[(String, ParamValue)]) -> QuicReno {
        let flow = FlowInfo {
            mss: Bytes(PACKET),
            initial_cwnd: Bytes(20 * PACKET),
            initial_ssthresh: Bytes(20 * PACKET),
            recovery: Recovery::Sack,
            start: Time(0),
            seed: 1,
        };
        QuicReno::new(&flow, &Params::resolve(SPEC.params, given).unwrap())
    }

    fn ack() -> Ack {
        Ack {
            now: Time(10),
            srtt: Span::from_millis(40),
            acked: Bytes(PACKET),
            prior_inflight: Bytes(20 * PACKET),
            ..Ack::default()
        }
    }

    #[test]
    fn a_window_of_acks_adds_one_packet() {
        let mut reno = quic_reno(&[]);
        (0..19).for_each(|_| reno.on_ack(&ack()));
        assert_eq!(reno.window.cwnd(), Bytes(20 * PACKET));
        reno.on_ack(&ack());
        assert_eq!(reno.window.cwnd(), Bytes(21 * PACKET));
    }

    #[test]
    fn a_further_loss_of_packets_sent_before_the_reduction_changes_nothing() {
        let mut reno = quic_reno(&[]);
        let loss = Loss { now: Time(100), lost: Bytes(PACKET), sent_at: Time(50), ..Loss::default() };
        reno.on_loss(&loss);
        reno.on_loss(&Loss { sent_at: Time(99), kind: LossKind::More, ..loss });
        assert_eq!(reno.window.cwnd(), Bytes(10 * PACKET));
        reno.on_loss(&Loss { now: Time(200), sent_at: Time(100), kind: LossKind::More, ..loss });
        assert_eq!(reno.window.cwnd(), Bytes(5 * PACKET));
    }

    #[test]
    fn it_paces_a_quarter_above_the_window() {
        let mut reno = quic_reno(&[]);
        reno.on_ack(&ack());
        assert_eq!(reno.control().pacing_rate, Rate(20 * PACKET * 8 * 25 * 125 / 100));
    }

    #[test]
    fn a_timeout_restarts_unless_it_is_ignored() {
        let timeout = Loss { kind: LossKind::Timeout, ..Loss::default() };
        let mut reno = quic_reno(&[]);
        reno.on_loss(&timeout);
        assert_eq!(reno.window.cwnd(), Bytes(2 * PACKET));
        let ignore = ("on_timeout".to_owned(), ParamValue::Word("ignore".to_owned()));
        let mut reno = quic_reno(&[ignore]);
        reno.on_loss(&timeout);
        assert_eq!(reno.window.cwnd(), Bytes(20 * PACKET));
    }
}
