//! NewReno (RFC 5681, RFC 6582), in packets of the flow's own size.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};

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
        self.window.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss);
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::{Bytes, Time};

    /// A flow of 20 packets in congestion avoidance.
    fn new_reno(recovery: Recovery, half_of: &str) -> NewReno {
        let flow = FlowInfo {
            mss: Bytes(1000),
            initial_cwnd: Bytes(20_000),
            initial_ssthresh: Bytes(20_000),
            recovery,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given = [("half_of".to_owned(), ParamValue::Word(half_of.to_owned()))];
        NewReno::new(&flow, &Params::resolve(SPEC.params, &given).unwrap())
    }

    fn ack() -> Ack {
        Ack { acked: Bytes(1000), cwnd_limited: 1, ..Ack::default() }
    }

    #[test]
    fn a_window_of_acks_adds_one_packet() {
        let mut new_reno = new_reno(Recovery::Sack, "auto");
        (0..20).for_each(|_| new_reno.on_ack(&ack()));
        let cwnd = new_reno.control().cwnd;
        assert!((20_950..=21_000).contains(&cwnd.0), "{cwnd:?}");
    }

    #[test]
    fn nothing_grows_in_recovery_or_while_the_window_is_not_used() {
        let mut new_reno = new_reno(Recovery::Sack, "auto");
        new_reno.on_ack(&Ack { recovering: 1, ..ack() });
        new_reno.on_ack(&Ack { cwnd_limited: 0, ..ack() });
        assert_eq!(new_reno.control().cwnd, Bytes(20_000));
    }

    #[test]
    fn what_is_halved_follows_the_recovery_unless_it_is_set() {
        let loss = Loss { inflight: Bytes(16_000), ..Loss::default() };
        for (recovery, half_of, cwnd) in [
            (Recovery::Sack, "auto", 8_000),
            (Recovery::Ns2, "auto", 10_000),
            (Recovery::Sack, "window", 10_000),
            (Recovery::Ns2, "flight", 8_000),
        ] {
            let mut new_reno = new_reno(recovery, half_of);
            new_reno.on_loss(&loss);
            assert_eq!(new_reno.control().cwnd, Bytes(cwnd), "{recovery:?}, {half_of}");
        }
    }
}
