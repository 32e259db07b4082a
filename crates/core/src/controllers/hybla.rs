//! Hybla (Caini and Firrincieli 2004): a flow with a long round trip grows as fast, in packets per
//! second, as one whose round trip is the reference.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::Span;

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "hybla",
    about: "Reno whose growth does not depend on the round trip",
    source: "Caini and Firrincieli 2004, equations 10 and 11; Linux tcp_hybla.c; ns-3 tcp-hybla.cc",
    params: &[
        Param {
            name: "variant",
            about: "whose rules: `linux` has a reference of 25 ms and rho in steps of 1/8, `ns3` 50 ms \
                    and round trips in whole ms",
            kind: ParamKind::Choice(&["linux", "ns3"]),
        },
        Param {
            name: "rtt0_ms",
            about: "reference round trip, ms; 0 takes the variant's (source: Linux rtt0, ns-3 RRTT)",
            kind: ParamKind::Number { default: 0.0, min: 0.0, max: 10_000.0 },
        },
    ],
    build: |flow, params| Box::new(Hybla::new(flow, params)),
};

/// Growth by 2^rho - 1 for each packet, then by rho^2 for each round trip.
#[derive(Clone, Debug)]
pub struct Hybla {
    window: Window,
    ns3: bool,
    /// Reference round trip, ms.
    rtt0_ms: f64,
    /// Smallest smoothed round trip; `Span::MAX` before the first.
    min_srtt: Span,
    /// Smallest round trip over the reference; at least 1.
    rho: f64,
}

impl Hybla {
    /// Starts in slow start, as Reno until the first round trip.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let ns3 = params.choice("variant") == "ns3";
        let rtt0_ms = match params.number("rtt0_ms") {
            0.0 if ns3 => 50.0,
            0.0 => 25.0,
            given => given,
        };
        Self { window: Window::new(flow), ns3, rtt0_ms, min_srtt: Span::MAX, rho: 1.0 }
    }

    fn sample(&mut self, srtt: Span) {
        if srtt == Span::ZERO || srtt >= self.min_srtt {
            return;
        }
        self.min_srtt = srtt;
        let rho = if self.ns3 {
            srtt.as_millis_f64().floor() / self.rtt0_ms
        } else {
            (8.0 * srtt.as_millis_f64() / self.rtt0_ms).floor() / 8.0
        };
        self.rho = rho.max(1.0);
    }

    /// Slow start, never beyond `ssthresh`; what is left of `acked` (packets) is for congestion
    /// avoidance.
    fn slow_start(&mut self, acked: f64) -> f64 {
        if !self.window.in_slow_start() {
            return acked;
        }
        let per_packet = libm::exp2(self.rho.min(RHO_MAX)) - 1.0;
        let room = self.window.ssthresh - self.window.cwnd;
        let step = acked.min((room / per_packet).ceil());
        self.window.grow((per_packet * step).min(room));
        acked - step
    }
}

impl Controller for Hybla {
    fn on_ack(&mut self, ack: &Ack) {
        self.sample(ack.srtt);
        if ack.recovering == 1 || ack.cwnd_limited == 0 {
            return;
        }
        let rest = self.slow_start(self.window.packets(ack.acked));
        self.window.avoid_singly(rest, self.rho * self.rho);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.window.reduce(loss);
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

/// Largest rho in slow start (*proposed*): 2^16 packets per packet exceed any path.
const RHO_MAX: f64 = 16.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::{Bytes, Time};

    fn hybla(variant: &str, ssthresh: u64) -> Hybla {
        with_reference(variant, ssthresh, 0.0)
    }

    fn with_reference(variant: &str, ssthresh: u64, rtt0_ms: f64) -> Hybla {
        let flow = FlowInfo {
            mss: Bytes(1000),
            initial_cwnd: Bytes(10_000),
            initial_ssthresh: Bytes(ssthresh * 1000),
            recovery: Recovery::Sack,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given = [
            ("variant".to_owned(), ParamValue::Word(variant.to_owned())),
            ("rtt0_ms".to_owned(), ParamValue::Number(rtt0_ms)),
        ];
        Hybla::new(&flow, &Params::resolve(SPEC.params, &given).unwrap())
    }

    fn ack(srtt_us: u64, packets: u64) -> Ack {
        Ack {
            srtt: Span::from_micros(srtt_us),
            acked: Bytes(packets * 1000),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    #[test]
    fn rho_is_the_smallest_round_trip_over_the_reference_and_at_least_one() {
        for (variant, srtt_us, rho) in [
            ("linux", 10_000, 1.0),
            ("linux", 50_000, 2.0),
            ("linux", 110_000, 4.375), // 35/8: steps of an eighth
            ("ns3", 40_000, 1.0),
            ("ns3", 220_900, 4.4), // whole milliseconds
        ] {
            let mut hybla = hybla(variant, 1000);
            hybla.on_ack(&ack(srtt_us, 1));
            close(hybla.rho, rho);
            hybla.on_ack(&ack(srtt_us + 90_000, 1));
            close(hybla.rho, rho);
        }
    }

    #[test]
    fn slow_start_adds_two_to_the_rho_less_one_for_each_packet() {
        let mut hybla = hybla("ns3", 1000);
        hybla.on_ack(&ack(150_000, 1));
        close(hybla.window.cwnd, 17.0);
        hybla.on_ack(&ack(150_000, 2));
        close(hybla.window.cwnd, 31.0);
    }

    #[test]
    fn slow_start_ends_at_the_threshold_and_hands_on_the_rest() {
        let mut hybla = hybla("ns3", 20);
        hybla.on_ack(&ack(150_000, 2));
        close(hybla.window.cwnd, 20.0);
        let mut hybla = self::hybla("ns3", 20);
        hybla.on_ack(&ack(150_000, 3)); // the third packet finds congestion avoidance
        close(hybla.window.cwnd, 20.0 + 9.0 / 20.0);
    }

    #[test]
    fn congestion_avoidance_adds_rho_squared_for_each_window() {
        let mut hybla = hybla("ns3", 2);
        hybla.window.cwnd = 100.0;
        hybla.on_ack(&ack(150_000, 1));
        close(hybla.window.cwnd, 100.0 + 9.0 / 100.0);
        (1..100).for_each(|_| hybla.on_ack(&ack(150_000, 1)));
        assert!((108.0..109.0).contains(&hybla.window.cwnd), "{}", hybla.window.cwnd);
    }

    #[test]
    fn at_the_reference_it_is_reno() {
        let mut hybla = hybla("linux", 12);
        hybla.on_ack(&ack(25_000, 2));
        close(hybla.window.cwnd, 12.0);
        hybla.on_ack(&ack(25_000, 1));
        close(hybla.window.cwnd, 12.0 + 1.0 / 12.0);
    }

    #[test]
    fn a_given_reference_replaces_the_variants() {
        for variant in ["linux", "ns3"] {
            let mut hybla = with_reference(variant, 1000, 100.0);
            hybla.on_ack(&ack(150_000, 1));
            close(hybla.rho, 1.5);
        }
    }

    #[test]
    fn a_loss_halves_like_renos() {
        let mut hybla = hybla("linux", 1000);
        hybla.window.cwnd = 40.0;
        hybla.on_loss(&Loss { inflight: Bytes(30_000), ..Loss::default() });
        close(hybla.window.cwnd, 15.0);
        close(hybla.window.ssthresh, 15.0);
    }

    #[test]
    fn nothing_grows_in_recovery_or_while_the_window_is_not_used() {
        let mut hybla = hybla("linux", 1000);
        hybla.on_ack(&Ack { recovering: 1, ..ack(150_000, 1) });
        hybla.on_ack(&Ack { cwnd_limited: 0, ..ack(150_000, 1) });
        close(hybla.window.cwnd, 10.0);
    }
}
