//! Proportional rate reduction for senders that have none of their own. The record lies in the caller's memory; every
//! bit pattern of it is a number.
use crate::{BAD_ARGUMENT, OK};
use ackademy::transport::prr::Prr;
use std::ffi::c_int;

/// A reduction begins, from `flight` bytes.
///
/// # Safety
///
/// `prr` has room for a record or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_prr_enter(prr: *mut Prr, flight: u64) -> c_int {
    if prr.is_null() {
        return BAD_ARGUMENT;
    }
    unsafe { prr.write(Prr::enter(flight)) };
    OK
}

/// See [`Prr::acked`].
///
/// # Safety
///
/// `prr` is a record or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_prr_acked(
    prr: *mut Prr,
    delivered: u64,
    inflight: u64,
    ssthresh: u64,
    extra: u64,
) -> c_int {
    let Some(prr) = (unsafe { prr.as_mut() }) else { return BAD_ARGUMENT };
    prr.acked(delivered, inflight, ssthresh, extra);
    OK
}

/// A packet leaves.
///
/// # Safety
///
/// As [`ackademy_prr_acked`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_prr_sent(prr: *mut Prr, size: u64) -> c_int {
    let Some(prr) = (unsafe { prr.as_mut() }) else { return BAD_ARGUMENT };
    prr.sent(size);
    OK
}
