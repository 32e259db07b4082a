//! What controllers of Google's QUIC stack have in common: a window in bytes, growth by counted
//! packets, rate reduction inside the window, rounds counted by packets.
//!
//! The stack orders packets by number, ours by when they were sent: "above the highest number sent
//! so far" is "sent now or later". A retransmission has a new number there and a new send time here.
mod hystart;
mod rounds;
mod sender;
mod window;

pub use hystart::HyStart;
pub use rounds::{RoundMax, Rounds};
pub use sender::{Answer, Sender};
pub use window::Window;

use crate::params::{Param, ParamKind, Params};
use crate::units::{Bytes, Rate, Span};

/// What the stack takes for the smoothed round trip before the first sample.
pub const INITIAL_RTT: Span = Span::from_millis(100);

/// Setting of every controller of the stack.
pub const ON_TIMEOUT: Param = Param {
    name: "on_timeout",
    about: "`restart` halves the threshold and closes the window (source: the stack's handler); \
            `ignore` changes nothing (source: the experiments of the LearningCC paper never called \
            the handler)",
    kind: ParamKind::Choice(&["restart", "ignore"]),
};

/// Setting of every controller of the stack.
pub const MSS: Param = Param {
    name: "mss_bytes",
    about: "what the window's arithmetic takes for a packet; 0 for the packet's own size (source: the \
            stack takes 1460, whatever it sends)",
    kind: ParamKind::Number { default: 0.0, min: 0.0, max: 65_535.0 },
};

/// Whether [`ON_TIMEOUT`] says `restart`.
pub fn restarts_on_timeout(params: &Params) -> bool {
    params.choice(ON_TIMEOUT.name) == "restart"
}

/// `percent` of `cwnd` per smoothed round trip.
pub fn pacing_rate(cwnd: Bytes, percent: u64, srtt: Span) -> Rate {
    let srtt = if srtt == Span::ZERO { INITIAL_RTT } else { srtt };
    Rate::of(cwnd * percent / 100, srtt).max(Rate(1))
}
