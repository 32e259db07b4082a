//! CUBIC as Google's QUIC stack has it (`CubicBytes` in `TcpCubicSenderBytes`, one connection): it
//! adds the smallest round trip to the time in the cubic, and half of what was acknowledged at most
//! to the window.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use crate::controllers::shared::quic::{Answer, MSS, ON_TIMEOUT, Sender};
use crate::params::{Param, ParamKind, Params};
use crate::units::Time;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "quic_cubic",
    about: "CUBIC of Google's QUIC: paced, leaves slow start when round trips grow",
    source: "Google QUIC, tcp_cubic_sender_bytes and cubic_bytes",
    params: &[
        Param {
            name: "beta",
            about: "what a reduction leaves of the window (source: the stack)",
            kind: ParamKind::Number { default: 0.7, min: 0.05, max: 0.95 },
        },
        Param {
            name: "c",
            about: "steepness of the cubic, packets/s^3 (source: the stack)",
            kind: ParamKind::Number { default: 0.4, min: 0.001, max: 100.0 },
        },
        MSS,
        ON_TIMEOUT,
    ],
    build: |flow, params| Box::new(QuicCubic::new(flow, params)),
};

/// Returns fast to the window of the last loss, lingers there, then probes beyond it.
#[derive(Clone, Debug)]
pub struct QuicCubic {
    sender: Sender,
    beta: f64,
    c: f64,
    /// Where the last reduction began, bytes.
    last_max: f64,
    epoch: Option<Epoch>,
}

/// Growth since a reduction or an unused window.
#[derive(Clone, Debug)]
struct Epoch {
    began: Time,
    /// When the cubic reaches `origin`, seconds after `began`.
    k: f64,
    /// Plateau, bytes.
    origin: f64,
    /// What Reno would have, bytes.
    reno: f64,
}

impl QuicCubic {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        Self {
            sender: Sender::new(flow, params),
            beta: params.number("beta"),
            c: params.number("c"),
            last_max: 0.0,
            epoch: None,
        }
    }

    fn avoid(&mut self, ack: &Ack) {
        let (cwnd, mss) = (self.sender.window.cwnd().0 as f64, self.sender.window.mss() as f64);
        let acked = ack.acked.0 as f64;
        let (last_max, c) = (self.last_max, self.c);
        let epoch = self.epoch.get_or_insert_with(|| Epoch {
            began: ack.now,
            k: if last_max > cwnd { libm::cbrt((last_max - cwnd) / mss / c) } else { 0.0 },
            origin: last_max.max(cwnd),
            reno: cwnd,
        });
        let elapsed = (ack.now.since(epoch.began) + ack.min_rtt).as_secs_f64();
        let since_plateau = elapsed - epoch.k;
        let cubic = epoch.origin + c * since_plateau * since_plateau * since_plateau * mss;
        let alpha = 3.0 * (1.0 - self.beta) / (1.0 + self.beta);
        epoch.reno += acked * alpha * mss / epoch.reno;
        let target = cubic.min(cwnd + acked / 2.0).max(epoch.reno);
        self.sender.window.set(target as u64);
    }

    fn reduce(&mut self, now: Time) {
        let (cwnd, mss) = (self.sender.window.cwnd().0 as f64, self.sender.window.mss() as f64);
        // Fast convergence: a window that did not come back gives some of it up.
        let came_back = cwnd + mss >= self.last_max;
        self.last_max = if came_back { cwnd } else { BETA_LAST_MAX * cwnd };
        self.epoch = None;
        self.sender.window.cut_to(now, (cwnd * self.beta) as u64);
    }
}

impl Controller for QuicCubic {
    fn on_ack(&mut self, ack: &Ack) {
        if !self.sender.on_ack(ack) {
            return;
        }
        let window = &mut self.sender.window;
        if !window.is_limited() {
            self.epoch = None;
        } else if window.in_slow_start() {
            window.grow_exponentially(ack.acked);
        } else {
            self.avoid(ack);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match self.sender.answer(loss) {
            Some(Answer::Reduce) => self.reduce(loss.now),
            Some(Answer::Restart) => {
                self.sender.window.restart(loss);
                (self.last_max, self.epoch) = (0.0, None);
            }
            None => {}
        }
    }

    fn control(&self) -> Control {
        self.sender.control()
    }
}

/// What fast convergence leaves of the maximum.
const BETA_LAST_MAX: f64 = 0.85;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::units::{Bytes, Span};

    const PACKET: u64 = 1000;

    /// A flow of 100 packets in congestion avoidance.
    fn quic_cubic() -> QuicCubic {
        let flow = FlowInfo {
            mss: Bytes(PACKET),
            initial_cwnd: Bytes(100 * PACKET),
            initial_ssthresh: Bytes(100 * PACKET),
            recovery: Recovery::Sack,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        QuicCubic::new(&flow, &Params::defaults(SPEC.params))
    }

    fn lose(cubic: &mut QuicCubic, secs: f64) {
        let now = Time::from_secs_f64(secs);
        cubic.on_loss(&Loss { now, sent_at: now, lost: Bytes(PACKET), ..Loss::default() });
    }

    /// Windows of ACKs at 100 ms from `start` to `end` seconds.
    fn run(cubic: &mut QuicCubic, (start, end): (f64, f64)) {
        let rtt = Span::from_millis(100);
        let mut now = start;
        while now < end {
            cubic.on_ack(&Ack {
                now: Time::from_secs_f64(now),
                sent_at: Time::from_secs_f64(now - 0.1),
                rtt,
                srtt: rtt,
                min_rtt: rtt,
                acked: Bytes(PACKET),
                prior_inflight: cubic.sender.window.cwnd() + Bytes(PACKET),
                ..Ack::default()
            });
            now += 0.1 / cubic.sender.window.packets() as f64;
        }
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_the_plateau_comes_after_k_seconds() {
        let mut cubic = quic_cubic();
        lose(&mut cubic, 1.0);
        assert_eq!(cubic.sender.window.packets(), 70);
        let k = libm::cbrt(30.0 / 0.4);
        run(&mut cubic, (1.1, 1.0 + k));
        assert!(
            (99..=101).contains(&cubic.sender.window.packets()),
            "{}",
            cubic.sender.window.packets()
        );
    }

    #[test]
    fn a_window_that_did_not_come_back_lowers_the_plateau() {
        let mut cubic = quic_cubic();
        lose(&mut cubic, 1.0);
        lose(&mut cubic, 2.0);
        assert!((cubic.last_max - 0.85 * 70_000.0).abs() < 1e-6, "{}", cubic.last_max);
    }

    #[test]
    fn no_more_than_half_of_what_was_acknowledged_is_added() {
        let mut cubic = quic_cubic();
        cubic.last_max = 1e9;
        run(&mut cubic, (1.0, 1.1)); // one round trip of 100 to 150 acknowledgements
        let packets = cubic.sender.window.packets();
        assert!((140..=165).contains(&packets), "{packets}");
    }

    #[test]
    fn a_window_that_is_not_used_begins_a_new_epoch() {
        let mut cubic = quic_cubic();
        run(&mut cubic, (1.0, 1.5));
        assert!(cubic.epoch.is_some());
        cubic.on_ack(&Ack { acked: Bytes(PACKET), ..Ack::default() });
        assert!(cubic.epoch.is_none());
    }
}
