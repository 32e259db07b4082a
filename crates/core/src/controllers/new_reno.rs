//! NewReno (RFC 5681, RFC 6582), in packets of the flow's own size.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use crate::params::{Param, ParamKind, Params};
use crate::reno_window::Window;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "new_reno",
    about: "additive increase, multiplicative decrease",
    source: "RFC 5681, RFC 6582",
    params: &[Param {
        name: "half_of",
        about: "what a loss halves: `auto` takes FlightSize (RFC 5681 equation 4), and the window \
                under ns-2's recovery, whose rule it is (source: ns-2.35 tcp.cc)",
        kind: ParamKind::Choice(&["auto", "flight", "window"]),
    }],
    build: |flow, params| Box::new(NewReno::new(flow, params)),
};

/// Halves the window once per loss episode, grows by one packet per round trip without.
#[derive(Clone, Debug)]
pub struct NewReno {
    window: Window,
}

impl NewReno {
    /// Starts in slow start.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let mut window = Window::new(flow);
        match params.choice("half_of") {
            "flight" => window.half_of_window = false,
            "window" => window.half_of_window = true,
            _ => {}
        }
        Self { window }
    }
}

impl Controller for NewReno {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.recovering == 1 || ack.cwnd_limited == 0 {
            return;
        }
        let acked = self.window.packets(ack.acked);
        let rest = self.window.slow_start(acked);
        if rest > 0.0 {
            self.window.avoid(rest, 1.0);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss);
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}
