//! Other people's controllers as controllers of the core.
//!
//! A *guest* is a shared library that has the functions which `crates/ffi/include/ackademy.h` declares: the ABI by which
//! C programs call the core, in the other direction. [`Library`] loads one by its path, [`Guest`] is a [`Controller`]
//! that calls it.
//!
//! The folder `linux` compiles Linux's own controllers, `s2n` those of s2n-quic, each outside of this workspace.
pub mod abi;
mod library;

pub use library::Library;

use abi::{Answer, HOLD, OK, RawController};
use ackademy::control::{
    Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, PacketEvent, PerFlow, Send, SendAction,
};
use ackademy::controllers;
use ackademy::units::{Bytes, Rate, Time};
use std::ptr::NonNull;
use std::sync::Arc;

/// A controller of a library. After a call that fails, or an answer that no sender can obey, CUBIC governs the flow.
pub struct Guest {
    library: Arc<Library>,
    /// Until the library fails.
    raw: Option<NonNull<RawController>>,
    answer: Answer,
    mss: u64,
    /// What governs after a failure, made before it is needed.
    spare: Box<dyn Controller>,
}

// SAFETY: a guest is used by one thread at a time, which is all that `ackademy.h` asks for.
unsafe impl std::marker::Send for Guest {}

impl Guest {
    /// The controller of this name in the library; CUBIC if the library makes none for the flow.
    pub fn new(library: Arc<Library>, name: &str, flow: &FlowInfo) -> Self {
        let (raw, mss) = (library.make(name, flow), flow.mss.0);
        let (spare, answer) = (controllers::fallback(flow), Answer::default());
        let mut guest = Self { library, raw, answer, mss, spare };
        guest.call(|library, raw, answer| unsafe { (library.control)(raw, 0, answer) });
        guest
    }

    /// For transports: one instance for each subflow.
    pub fn per_flow(library: Arc<Library>, name: String) -> PerFlow {
        PerFlow::new(move |flow: &FlowInfo| Box::new(Self::new(Arc::clone(&library), &name, flow)))
    }

    /// Calls the library and keeps its answer; what it returned, if the library governs.
    fn call(
        &mut self,
        tell: impl FnOnce(&Library, *mut RawController, *mut Answer) -> i32,
    ) -> Option<i32> {
        let raw = self.raw?;
        let code = tell(&self.library, raw.as_ptr(), &raw mut self.answer);
        let is_answer = self.answer.cwnd > 0 && self.answer.pacing_rate > 0;
        if is_answer && (code == OK || code == HOLD) {
            return Some(code);
        }
        self.free();
        None
    }

    fn free(&mut self) {
        if let Some(raw) = self.raw.take() {
            // SAFETY: it came from this library and is not used again.
            unsafe { (self.library.free)(raw.as_ptr()) };
        }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.free();
    }
}

// SAFETY, of the calls below: the pointers are of a controller of this library and of records that live as long as the
// call; the library was loaded for its ABI.
impl Controller for Guest {
    fn on_ack(&mut self, ack: &Ack) {
        self.spare.on_ack(ack);
        self.call(|library, raw, answer| unsafe { (library.on_ack)(raw, 0, ack, answer) });
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.spare.on_loss(loss);
        self.call(|library, raw, answer| unsafe { (library.on_loss)(raw, 0, loss, answer) });
    }

    fn on_send(&mut self, send: &Send) -> SendAction {
        let Some(on_send) = self.library.on_send else { return SendAction::Send };
        let code = self.call(|_, raw, answer| unsafe { on_send(raw, 0, send, answer) });
        if code == Some(HOLD) { SendAction::Hold } else { SendAction::Send }
    }

    fn has_send_hook(&self) -> bool {
        self.library.on_send.is_some()
    }

    fn on_packet(&mut self, event: &PacketEvent) {
        if let (Some(raw), Some(on_packet)) = (self.raw, self.library.on_packet)
            && unsafe { on_packet(raw.as_ptr(), 0, event) } != OK
        {
            self.free();
        }
    }

    fn wants_packets(&self) -> bool {
        let wants = self.library.wants_packets.filter(|_| self.library.on_packet.is_some());
        let asked = self.raw.zip(wants);
        asked.is_some_and(|(raw, wants)| unsafe { wants(raw.as_ptr(), 0) } == 1)
    }

    fn on_timer(&mut self, now: Time) {
        let Some(on_timer) = self.library.on_timer else { return };
        self.call(|_, raw, answer| unsafe { on_timer(raw, 0, now.0, answer) });
    }

    fn next_timer(&self) -> Option<Time> {
        let timer = Time(self.answer.timer);
        (self.raw.is_some() && timer != Time::NEVER).then_some(timer)
    }

    fn control(&self) -> Control {
        if self.raw.is_none() {
            return self.spare.control();
        }
        Control {
            cwnd: Bytes(self.answer.cwnd.clamp(self.mss.min(CWND_MAX.0), CWND_MAX.0)),
            pacing_rate: Rate(self.answer.pacing_rate),
            ssthresh: Bytes(self.answer.ssthresh),
        }
    }

    fn fell_back(&self) -> bool {
        self.raw.is_none()
    }
}
