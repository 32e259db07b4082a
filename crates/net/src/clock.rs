//! The clock that the kernel's BPF programs and this process share, and this process's own time.
use ackademy::units::{Span, Time};
use nix::time::{ClockId, clock_gettime};
use std::sync::LazyLock;

/// `CLOCK_MONOTONIC` of the kernel, which is also `bpf_ktime_get_ns`: without what a time namespace adds to it.
pub fn now() -> Time {
    static ADDED: LazyLock<i64> = LazyLock::new(|| {
        let offsets = std::fs::read_to_string("/proc/self/timens_offsets").unwrap_or_default();
        added(&offsets).unwrap_or(0)
    });
    let at = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("every Linux has this clock");
    Time((at.tv_sec() * 1_000_000_000 + at.tv_nsec() - *ADDED).cast_unsigned())
}

/// Nanoseconds that a time namespace adds to `CLOCK_MONOTONIC` (`time_namespaces(7)`).
fn added(offsets: &str) -> Option<i64> {
    let mut words =
        offsets.lines().find_map(|line| line.strip_prefix("monotonic"))?.split_whitespace();
    let (seconds, nanoseconds): (i64, i64) =
        (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    Some(seconds * 1_000_000_000 + nanoseconds)
}

/// Processor time that the calling thread has had.
pub fn spent() -> Span {
    let spent =
        clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("every Linux has this clock");
    Span(spent.tv_sec() as u64 * 1_000_000_000 + spent.tv_nsec() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_time_namespace_adds_is_read() {
        let text = "monotonic     -100000        50\nboottime           7         0\n";
        assert_eq!(added(text), Some(-100_000_000_000_000 + 50));
        assert_eq!(added(""), None);
    }
}
