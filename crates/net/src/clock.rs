//! The clock that the kernel's BPF programs and this process share, and this process's own time.
use ackademy::units::{Span, Time};
use nix::time::{ClockId, clock_gettime};

/// `CLOCK_MONOTONIC`, which is also `bpf_ktime_get_ns`.
pub fn now() -> Time {
    let at = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Time(at.tv_sec() as u64 * 1_000_000_000 + at.tv_nsec() as u64)
}

/// Processor time that the calling thread has had.
pub fn spent() -> Span {
    let spent =
        clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has this clock");
    Span(spent.tv_sec() as u64 * 1_000_000_000 + spent.tv_nsec() as u64)
}
