//! Reno as Google's QUIC stack has it (`TcpCubicSenderBytes` with Reno's growth), the baseline of
//! Zhang's `LearningCC` paper.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use crate::controllers::shared::quic::{Answer, MSS, ON_TIMEOUT, Sender};
use crate::params::{Param, ParamKind, Params};

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
    sender: Sender,
    beta: f64,
}

impl QuicReno {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self { sender: Sender::new(flow, params), beta: params.number("beta") }
    }
}

impl Controller for QuicReno {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.sender.on_ack(ack) {
            return;
        }
        let window = &mut self.sender.window;
        if window.in_slow_start() {
            if window.is_limited() {
                window.grow_exponentially(ack.acked);
            }
        } else {
            window.grow_additively(ack.acked, 1, true);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        let answer = self.sender.answer(loss);
        let window = &mut self.sender.window;
        match answer {
            Some(Answer::Reduce) => {
                let cwnd = window.cwnd().0 as f64 * self.beta;
                window.cut_to(loss.now, cwnd as u64);
            }
            Some(Answer::Restart) => window.restart(loss),
            None => {}
        }
    }

    fn control(&self) -> Control {
        self.sender.control()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::{LossKind, Recovery};
    use crate::params::ParamValue;
    use crate::units::{Bytes, Rate, Span, Time};

    const PACKET: u64 = 1000;

    /// A flow of 20 packets in congestion avoidance.
    fn quic_reno(given: &[(String, ParamValue)]) -> QuicReno {
        let flow = FlowInfo {
            mss: Bytes(PACKET),
            initial_cwnd: Bytes(20 * PACKET),
            initial_ssthresh: Bytes(20 * PACKET),
            recovery: Recovery::Sack,
            paces: false,
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
        assert_eq!(reno.sender.window.cwnd(), Bytes(20 * PACKET));
        reno.on_ack(&ack());
        assert_eq!(reno.sender.window.cwnd(), Bytes(21 * PACKET));
    }

    #[test]
    fn a_further_loss_of_packets_sent_before_the_reduction_changes_nothing() {
        let mut reno = quic_reno(&[]);
        let loss =
            Loss { now: Time(100), lost: Bytes(PACKET), sent_at: Time(50), ..Loss::default() };
        reno.on_loss(&loss);
        reno.on_loss(&Loss { sent_at: Time(99), kind: LossKind::More, ..loss });
        assert_eq!(reno.sender.window.cwnd(), Bytes(10 * PACKET));
        reno.on_loss(&Loss { now: Time(200), sent_at: Time(100), kind: LossKind::More, ..loss });
        assert_eq!(reno.sender.window.cwnd(), Bytes(5 * PACKET));
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
        assert_eq!(reno.sender.window.cwnd(), Bytes(2 * PACKET));
        let ignore = ("on_timeout".to_owned(), ParamValue::Word("ignore".to_owned()));
        let mut reno = quic_reno(&[ignore]);
        reno.on_loss(&timeout);
        assert_eq!(reno.sender.window.cwnd(), Bytes(20 * PACKET));
    }
}
