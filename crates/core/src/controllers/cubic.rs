//! CUBIC (RFC 9438); the code is `law/cubic.rs`, over which policies act, too.
use crate::control::Spec;
use crate::law::cubic::{Cubic, PARAMS};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "cubic",
    about: "window grows as a cubic of the time since the last reduction; HyStart as in Linux",
    source: "RFC 9438; HyStart from Linux 6 and Ha and Rhee 2011; HyStart++ from RFC 9406",
    params: PARAMS,
    build: |flow, params| Box::new(Cubic::new(flow, params)),
};
