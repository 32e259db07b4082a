//! Delivery-rate samples for senders that have none of their own.
//!
//! Both records lie in the caller's memory and start as zeros. Every bit pattern of them is a number.
use crate::governor::guard;
use crate::{BAD_ARGUMENT, OK};
use ackademy::control::Ack;
use ackademy::transport::delivery_rate::{DeliveryRate, SentState};
use ackademy::units::Time;
use std::ffi::c_int;

/// A packet of `size` bytes leaves and finds `inflight` on the way, and `lost` were declared lost before.
///
/// # Safety
///
/// `rate` is a record or NULL, `sent` has room for one or is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_rate_sent(
    rate: *mut DeliveryRate,
    now: u64,
    inflight: u64,
    size: u64,
    lost: u64,
    sent: *mut SentState,
) -> c_int {
    let Some(rate) = (unsafe { rate.as_mut() }) else { return BAD_ARGUMENT };
    if sent.is_null() || inflight.checked_add(size).is_none() {
        return BAD_ARGUMENT;
    }
    unsafe { sent.write(rate.on_sent(Time(now), inflight, size, lost)) };
    OK
}

/// So many bytes are delivered.
///
/// # Safety
///
/// As [`ackademy_rate_sent`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_rate_delivered(
    rate: *mut DeliveryRate,
    now: u64,
    bytes: u64,
) -> c_int {
    obey(unsafe { rate.as_mut() }, |rate| rate.on_delivered(Time(now), bytes))
}

/// The application has nothing to send, with `inflight` bytes on the way.
///
/// # Safety
///
/// As [`ackademy_rate_sent`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_rate_app_limited(
    rate: *mut DeliveryRate,
    inflight: u64,
) -> c_int {
    obey(unsafe { rate.as_mut() }, |rate| rate.on_app_limited(inflight))
}

/// Fills `delivered`, `delivery_rate`, `tx_inflight`, `delivered_since`, `lost_since` and `app_limited` of `ack`, whose
/// `sent_at` and `min_rtt` are filled, from the newest packet that it delivers. So many bytes are declared `lost`.
///
/// # Safety
///
/// As [`ackademy_rate_sent`]; `ack` is a record or NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ackademy_rate_sample(
    rate: *mut DeliveryRate,
    sent: *const SentState,
    lost: u64,
    ack: *mut Ack,
) -> c_int {
    let (Some(sent), Some(ack)) = (unsafe { (sent.as_ref(), ack.as_mut()) }) else {
        return BAD_ARGUMENT;
    };
    obey(unsafe { rate.as_mut() }, |rate| {
        let delivered_since = rate.delivered_since(sent);
        *ack = Ack {
            delivered: rate.delivered(),
            delivery_rate: rate.sample(ack.sent_at, sent, ack.min_rtt),
            tx_inflight: sent.inflight(),
            delivered_since,
            lost_since: sent.lost_since(lost),
            app_limited: u64::from(sent.app_limited()),
            ..*ack
        };
    })
}

/// A packet that a rate did not see may say anything: sums that overflow are refused where they are checked.
fn obey(rate: Option<&mut DeliveryRate>, work: impl FnOnce(&mut DeliveryRate)) -> c_int {
    let Some(rate) = rate else { return BAD_ARGUMENT };
    guard(|| work(rate)).map_or(BAD_ARGUMENT, |()| OK)
}
