//! The controllers of s2n-quic as guests: `s2n:cubic` and `s2n:bbr`.
//!
//! [`Hosted`] calls `s2n_quic_core::recovery::CongestionController` as s2n-quic's recovery manager does. Its own file has
//! what is lost on the way. The functions are those of `crates/ffi/include/ackademy.h`.
mod hosted;

use ackademy::control::{
    Ack, Controller, FlowInfo, Loss, LossKind, PacketEvent, PacketEventKind, Send, SendAction,
};
use ackademy::units::Time;
use ackademy_guests::abi::{ABI, Answer, BAD_ARGUMENT, FELL_BACK, Flow, HOLD, OK, size_of_record};
use hosted::Hosted;
use s2n_quic_core::recovery::{bbr, cubic};
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

type Own = Box<dyn Controller>;

const NAMES: &CStr = c"cubic,bbr";

fn build(name: &str, flow: &FlowInfo) -> Option<Own> {
    let window = u32::try_from(flow.initial_cwnd.0).ok()?;
    match name {
        "cubic" => {
            let builder = cubic::builder::Builder::default();
            Some(Box::new(Hosted::new(
                builder.with_initial_congestion_window(window).build(),
                flow,
            )))
        }
        "bbr" => {
            let builder = bbr::builder::Builder::default();
            Some(Box::new(Hosted::new(
                builder.with_initial_congestion_window(window).build(),
                flow,
            )))
        }
        _ => None,
    }
}

#[unsafe(no_mangle)]
extern "C" fn ackademy_abi() -> u32 {
    ABI
}

#[unsafe(no_mangle)]
extern "C" fn ackademy_sizeof(record: u32) -> usize {
    size_of_record(record)
}

#[unsafe(no_mangle)]
extern "C" fn ackademy_names() -> *const c_char {
    NAMES.as_ptr()
}

/// # Safety
///
/// As `ackademy.h` says; so for the functions below.
#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_new(
    name: *const c_char,
    _settings: *const c_char,
    flow: *const Flow,
    _err: *mut c_char,
    _err_len: usize,
) -> *mut Own {
    let made = || {
        let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
        let flow = unsafe { flow.as_ref() }?.checked().ok()?;
        build(name.to_str().ok()?, &flow)
    };
    let made = catch_unwind(AssertUnwindSafe(made)).ok().flatten();
    made.map_or(std::ptr::null_mut(), |own| Box::into_raw(Box::new(own)))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_free(own: *mut Own) {
    if !own.is_null() {
        drop(unsafe { Box::from_raw(own) });
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_on_ack(
    own: *mut Own,
    subflow: u32,
    ack: *const Ack,
    answer: *mut Answer,
) -> i32 {
    let ack = unsafe { ack.as_ref() };
    unsafe { call(own, subflow, answer, ack, |own, ack| own.on_ack(ack)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_on_loss(
    own: *mut Own,
    subflow: u32,
    loss: *const Loss,
    answer: *mut Answer,
) -> i32 {
    // A number from C may be no kind: it is looked at before it becomes one.
    let kind = (!loss.is_null()).then(|| unsafe { (&raw const (*loss).kind).cast::<u64>().read() });
    let known = kind.is_some_and(|kind| kind <= LossKind::TimeoutAgain as u64);
    let loss = if known { unsafe { loss.as_ref() } } else { None };
    unsafe { call(own, subflow, answer, loss, |own, loss| own.on_loss(loss)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_on_send(
    own: *mut Own,
    subflow: u32,
    send: *const Send,
    answer: *mut Answer,
) -> i32 {
    let mut action = SendAction::Send;
    let send = unsafe { send.as_ref() };
    let code = unsafe { call(own, subflow, answer, send, |own, send| action = own.on_send(send)) };
    if code == OK && action == SendAction::Hold { HOLD } else { code }
}

/// # Safety
///
/// As `ackademy.h` says.
#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_on_packet(
    own: *mut Own,
    subflow: u32,
    packet: *const PacketEvent,
) -> i32 {
    let kind =
        (!packet.is_null()).then(|| unsafe { (&raw const (*packet).kind).cast::<u64>().read() });
    let known = kind.is_some_and(|kind| kind <= PacketEventKind::Discarded as u64);
    let packet = if known { unsafe { packet.as_ref() } } else { None };
    let nowhere = std::ptr::null_mut();
    unsafe { call(own, subflow, nowhere, packet, |own, packet| own.on_packet(packet)) }
}

#[unsafe(no_mangle)]
extern "C" fn ackademy_wants_packets(_: *const Own, subflow: u32) -> i32 {
    i32::from(subflow == 0)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_on_timer(
    own: *mut Own,
    subflow: u32,
    now: u64,
    answer: *mut Answer,
) -> i32 {
    unsafe { call(own, subflow, answer, Some(&Time(now)), |own, &now| own.on_timer(now)) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn ackademy_control(own: *mut Own, subflow: u32, answer: *mut Answer) -> i32 {
    unsafe { call(own, subflow, answer, Some(&()), |_, ()| ()) }
}

unsafe fn call<T>(
    own: *mut Own,
    subflow: u32,
    answer: *mut Answer,
    record: Option<&T>,
    tell: impl FnOnce(&mut Own, &T),
) -> i32 {
    let (Some(own), Some(record), 0) = (unsafe { own.as_mut() }, record, subflow) else {
        return BAD_ARGUMENT;
    };
    let told = catch_unwind(AssertUnwindSafe(|| {
        tell(own, record);
        Answer::new(own.control(), own.next_timer())
    }));
    let Ok(given) = told else { return FELL_BACK };
    if let Some(answer) = unsafe { answer.as_mut() } {
        *answer = given;
    }
    OK
}
