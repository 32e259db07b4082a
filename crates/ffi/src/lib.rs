//! The core's controllers for C. `include/ackademy.h` declares what is here and says what each call means.
//!
//! A caller's pointers are the only `unsafe`: they are NULL or point to what the header says. Everything else is
//! checked: numbers by their range, subflows by their presence, and a panic hands the flows to CUBIC.
mod governor;
mod prr;
mod rate;
mod records;
mod settings;

pub use governor::Governor;
pub use prr::{ackademy_prr_acked, ackademy_prr_enter, ackademy_prr_sent};
pub use rate::{
    ackademy_rate_app_limited, ackademy_rate_delivered, ackademy_rate_sample, ackademy_rate_sent,
};
pub use records::{Answer, Flow, LossRecord, PacketRecord};

use ackademy::control::{Ack, Send, SendAction};
use ackademy::transport::delivery_rate::{DeliveryRate, SentState};
use ackademy::transport::prr::Prr;
use ackademy::units::Time;
use governor::{Called, guard};
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

/// Changes when a record or a function does.
pub const ABI: u32 = 1;
/// The call was obeyed.
pub const OK: c_int = 0;
/// The packet is to be kept back.
pub const HOLD: c_int = 1;
/// A pointer is NULL, a subflow is not there, or a number is out of range; nothing changed.
pub const BAD_ARGUMENT: c_int = -1;
/// The controller panicked; from now on CUBIC governs its subflows.
pub const FELL_BACK: c_int = -2;

/// The number of this ABI.
#[unsafe(no_mangle)]
pub extern "C" fn ackademy_abi() -> u32 {
    ABI
}

/// Size of a record, in the order of the header's `ACKADEMY_RECORD_`; 0 for another number.
#[unsafe(no_mangle)]
pub extern "C" fn ackademy_sizeof(record: u32) -> usize {
    let sizes = [
        size_of::<Flow>(),
        size_of::<Ack>(),
        size_of::<LossRecord>(),
        size_of::<Send>(),
        size_of::<Answer>(),
        size_of::<DeliveryRate>(),
        size_of::<SentState>(),
        size_of::<Prr>(),
        size_of::<PacketRecord>(),
    ];
    sizes.get(record as usize).copied().unwrap_or(0)
}

/// The names of the controllers, separated by commas.
#[unsafe(no_mangle)]
pub extern "C" fn ackademy_names() -> *const c_char {
    static NAMES: OnceLock<CString> = OnceLock::new();
    NAMES.get_or_init(|| CString::new(settings::names()).unwrap_or_default()).as_ptr()
}

/// A controller and its subflow 0; NULL, and a line in `err`, if there is none.
///
/// # Safety
///
/// `name` and `settings` end in NUL, `err` has room for `err_len` bytes; each, and `flow`, may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_new(
    name: *const c_char,
    settings: *const c_char,
    flow: *const Flow,
    err: *mut c_char,
    err_len: usize,
) -> *mut Governor {
    let made = match unsafe { (text(name), flow.as_ref()) } {
        (Some(name), Some(flow)) => {
            let settings = unsafe { text(settings) }.unwrap_or_default();
            guard(|| Governor::new(&name, &settings, flow))
                .unwrap_or_else(|| Err(format!("{name}: the controller panicked")))
        }
        _ => Err("name and flow: allowed is not NULL".to_owned()),
    };
    match made {
        Ok(governor) => Box::into_raw(Box::new(governor)),
        Err(line) => {
            unsafe { say(err, err_len, &line) };
            std::ptr::null_mut()
        }
    }
}

/// A fresh controller with the same settings, for `flow`, or for the same flow where that is NULL.
///
/// # Safety
///
/// The controller is of [`ackademy_new`] or NULL, `flow` a record or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_again(
    controller: *const Governor,
    flow: *const Flow,
) -> *mut Governor {
    let (controller, flow) = unsafe { (controller.as_ref(), flow.as_ref()) };
    let made = controller.and_then(|own| guard(|| own.again(flow)).flatten());
    made.map_or(std::ptr::null_mut(), |governor| Box::into_raw(Box::new(governor)))
}

/// A further subflow, of the connection of this number.
///
/// # Safety
///
/// As [`ackademy_again`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_join(
    controller: *mut Governor,
    subflow: u32,
    connection: u32,
    flow: *const Flow,
) -> c_int {
    match unsafe { (controller.as_mut(), flow.as_ref()) } {
        (Some(own), Some(flow)) => code(own.join(subflow, connection, flow)),
        _ => BAD_ARGUMENT,
    }
}

/// A subflow is over.
///
/// # Safety
///
/// As [`ackademy_again`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_leave(controller: *mut Governor, subflow: u32) -> c_int {
    unsafe { controller.as_mut() }.map_or(BAD_ARGUMENT, |own| code(own.leave(subflow)))
}

/// Something was delivered.
///
/// # Safety
///
/// As [`ackademy_again`]; `ack` is a record or NULL, `answer` has room for one or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_on_ack(
    controller: *mut Governor,
    subflow: u32,
    ack: *const Ack,
    answer: *mut Answer,
) -> c_int {
    let Some(ack) = (unsafe { ack.as_ref() }) else { return BAD_ARGUMENT };
    unsafe { call(controller, answer, |own| own.call(subflow, |inner, id| inner.on_ack(id, ack))) }
}

/// Something was lost.
///
/// # Safety
///
/// As [`ackademy_on_ack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_on_loss(
    controller: *mut Governor,
    subflow: u32,
    loss: *const LossRecord,
    answer: *mut Answer,
) -> c_int {
    let loss = unsafe { loss.as_ref() }.and_then(LossRecord::checked);
    let Some(loss) = loss else { return BAD_ARGUMENT };
    unsafe {
        call(controller, answer, |own| own.call(subflow, |inner, id| inner.on_loss(id, &loss)))
    }
}

/// A packet is about to leave: [`HOLD`] to keep it back, [`OK`] to send it.
///
/// # Safety
///
/// As [`ackademy_on_ack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_on_send(
    controller: *mut Governor,
    subflow: u32,
    send: *const Send,
    answer: *mut Answer,
) -> c_int {
    let Some(send) = (unsafe { send.as_ref() }) else { return BAD_ARGUMENT };
    let mut action = SendAction::Send;
    let code = unsafe {
        call(controller, answer, |own| {
            own.call(subflow, |inner, id| action = inner.on_send(id, send))
        })
    };
    if code == OK && action == SendAction::Hold { HOLD } else { code }
}

/// Something became of a packet.
///
/// # Safety
///
/// As [`ackademy_again`]; `packet` is a record or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_on_packet(
    controller: *mut Governor,
    subflow: u32,
    packet: *const PacketRecord,
) -> c_int {
    let packet = unsafe { packet.as_ref() }.and_then(PacketRecord::checked);
    let Some(packet) = packet else { return BAD_ARGUMENT };
    let tell = |own: &mut Governor| own.call(subflow, |inner, id| inner.on_packet(id, &packet));
    unsafe { call(controller, std::ptr::null_mut(), tell) }
}

/// 1 if the controller wants to know of each packet, else 0.
///
/// # Safety
///
/// As [`ackademy_again`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_wants_packets(
    controller: *const Governor,
    subflow: u32,
) -> c_int {
    let wants = unsafe { controller.as_ref() }.and_then(|own| own.wants_packets(subflow));
    wants.map_or(BAD_ARGUMENT, c_int::from)
}

/// The time asked for in the last answer has come.
///
/// # Safety
///
/// As [`ackademy_on_ack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_on_timer(
    controller: *mut Governor,
    subflow: u32,
    now: u64,
    answer: *mut Answer,
) -> c_int {
    unsafe {
        call(controller, answer, |own| own.call(subflow, |inner, id| inner.on_timer(id, Time(now))))
    }
}

/// What is allowed now.
///
/// # Safety
///
/// As [`ackademy_on_ack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_control(
    controller: *mut Governor,
    subflow: u32,
    answer: *mut Answer,
) -> c_int {
    unsafe { call(controller, answer, |own| own.call(subflow, |_, _| ())) }
}

/// 1 if a panic or an invalid action gave the subflow to CUBIC, else 0.
///
/// # Safety
///
/// As [`ackademy_again`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_fell_back(controller: *const Governor, subflow: u32) -> c_int {
    let fell_back = unsafe { controller.as_ref() }.and_then(|own| own.fell_back(subflow));
    fell_back.map_or(BAD_ARGUMENT, c_int::from)
}

/// Ends a controller; NULL is allowed.
///
/// # Safety
///
/// As [`ackademy_again`]; it is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_free(controller: *mut Governor) {
    if !controller.is_null() {
        let _ = guard(|| drop(unsafe { Box::from_raw(controller) }));
    }
}

fn code(called: Called) -> c_int {
    match called {
        Called::Done(_) => OK,
        Called::FellBack(_) => FELL_BACK,
        Called::Refused => BAD_ARGUMENT,
    }
}

unsafe fn call(
    controller: *mut Governor,
    answer: *mut Answer,
    tell: impl FnOnce(&mut Governor) -> Called,
) -> c_int {
    let Some(own) = (unsafe { controller.as_mut() }) else { return BAD_ARGUMENT };
    let called = tell(own);
    if let (Called::Done(given) | Called::FellBack(given), Some(answer)) =
        (called, unsafe { answer.as_mut() })
    {
        *answer = given;
    }
    code(called)
}

unsafe fn text(from: *const c_char) -> Option<String> {
    let is_there = !from.is_null();
    is_there.then(|| unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Copies what fits, and a NUL.
unsafe fn say(err: *mut c_char, err_len: usize, line: &str) {
    if !err.is_null() && err_len > 0 {
        let length = line.len().min(err_len - 1);
        unsafe {
            err.copy_from_nonoverlapping(line.as_ptr().cast(), length);
            err.add(length).write(0);
        }
    }
}
