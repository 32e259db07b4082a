//! The records and numbers of `ackademy.h` that are not the core's own; `tests/guests.rs` compares them with those of
//! `ackademy-ffi`.
use ackademy::control::{Ack, Control, FlowInfo, Loss, Recovery, Send};
use ackademy::params::ParamError;
use ackademy::units::{Bytes, Time};

/// Changes when a record or a function does.
pub const ABI: u32 = 1;
/// The call was obeyed.
pub const OK: i32 = 0;
/// The packet is to be kept back.
pub const HOLD: i32 = 1;
/// A pointer is NULL, or a number is out of range.
pub const BAD_ARGUMENT: i32 = -1;
/// The controller panicked.
pub const FELL_BACK: i32 = -2;

/// What C calls `ackademy_controller`.
#[repr(C)]
pub struct RawController {
    _opaque: [u8; 0],
}

/// See `ackademy_flow`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// Size of a full packet, bytes.
    pub mss: u64,
    /// Window to start with, bytes.
    pub initial_cwnd: u64,
    /// Slow-start threshold to start with, bytes; `u64::MAX` for none.
    pub initial_ssthresh: u64,
    /// 1 if the sender paces by itself where the controller sets no rate, else 0.
    pub paces: u64,
    /// When the flow starts, ns.
    pub start: u64,
    /// Seed of the controller's own randomness.
    pub seed: u64,
}

impl From<&FlowInfo> for Flow {
    fn from(flow: &FlowInfo) -> Self {
        Self {
            mss: flow.mss.0,
            initial_cwnd: flow.initial_cwnd.0,
            initial_ssthresh: flow.initial_ssthresh.0,
            paces: u64::from(flow.paces),
            start: flow.start.0,
            seed: flow.seed,
        }
    }
}

impl Flow {
    /// The core's record, if every controller can be built for it.
    ///
    /// # Errors
    ///
    /// See [`FlowInfo::checked`].
    pub fn checked(&self) -> Result<FlowInfo, ParamError> {
        let flow = FlowInfo {
            mss: Bytes(self.mss),
            initial_cwnd: Bytes(self.initial_cwnd),
            initial_ssthresh: Bytes(self.initial_ssthresh),
            recovery: Recovery::Sack,
            paces: self.paces != 0,
            start: Time(self.start),
            seed: self.seed,
        };
        flow.checked()
    }
}

/// See `ackademy_answer`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Answer {
    /// Most bytes in flight.
    pub cwnd: u64,
    /// Fastest sending rate, bit/s; `u64::MAX` leaves pacing off.
    pub pacing_rate: u64,
    /// Slow-start threshold, bytes; `u64::MAX` for none.
    pub ssthresh: u64,
    /// When to call the timer, ns; `u64::MAX` for never.
    pub timer: u64,
}

impl Answer {
    /// Of what a controller of the core allows.
    pub fn new(control: Control, timer: Option<Time>) -> Self {
        Self {
            cwnd: control.cwnd.0,
            pacing_rate: control.pacing_rate.0,
            ssthresh: control.ssthresh.0,
            timer: timer.unwrap_or(Time::NEVER).0,
        }
    }
}

/// Size of a record, in the order of `ACKADEMY_RECORD_`; 0 for another number.
pub fn size_of_record(record: u32) -> usize {
    let sizes = [
        size_of::<Flow>(),
        size_of::<Ack>(),
        size_of::<Loss>(),
        size_of::<Send>(),
        size_of::<Answer>(),
    ];
    sizes.get(record as usize).copied().unwrap_or(0)
}
