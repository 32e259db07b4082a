//! CUBIC to the letter of RFC 9438: [`cubic`](super::cubic) in fractions of packets, whose slow start
//! ends by loss alone, as simulators have it.
use crate::control::Spec;
use crate::law::cubic::{BETA, C, Cubic, FAST_CONVERGENCE, REDUCE_FROM};
use crate::params::{Param, ParamKind};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "cubic_rfc9438",
    about: "cubic to the letter of the RFC: slow start ends by loss alone",
    source: "RFC 9438",
    params: &[
        BETA,
        C,
        FAST_CONVERGENCE,
        Param {
            name: "hystart",
            about: "as of `cubic`, but `off` (source: RFC 5681) unless asked for",
            kind: ParamKind::Choice(&["off", "linux", "plus"]),
        },
        REDUCE_FROM,
        Param {
            name: "rules",
            about: "as of `cubic`, but `rfc9438` (source: RFC 9438 section 4.3) unless asked for",
            kind: ParamKind::Choice(&["rfc9438", "linux"]),
        },
    ],
    build: |flow, params| Box::new(Cubic::new(flow, params)),
};
