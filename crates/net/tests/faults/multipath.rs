//! The daemon of a coupled controller dies, or the network goes away, under an MPTCP connection over two
//! emulated paths.
use crate::bed::{Bed, SECOND, SOON, wait_for};
use crate::common::bench::Bench;
use crate::common::kernel::Transfer;
use crate::common::machine::governs_mptcp;
use ackademy::units::{Span, Time};
use ackademy_net::clock;
use ackademy_net::lab::mptcp_info::Connection;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

const LIA: [&str; 2] = ["--cc", "lia"];
/// A sample unanswered for longer sends its subflow to CUBIC; the daemon's default.
const WATCHDOG: Span = ackademy_net::kernel::WATCHDOG;
/// From a kill to the fallback.
const GOAL: Span = Span::from_millis(200);
/// Time between samples, so the longest from a kill to the first sample without an answer.
const INTERVAL: Span = Span::from_millis(10);
/// Of [`paths`] with all that the sender may have in flight in one queue. A subflow falls back with an
/// acknowledgement, and one that was given nothing for a while gets its next one this much later.
const ROUND_TRIP: Span = Span::from_millis(140);

/// Two paths of 10 Mb/s, 20 ms each. Their queues hold all that the send buffers let out, 64 KiB for each
/// subflow: what stalls is not TCP's own time-out after a loss. `more` are fields of both
/// links.
fn paths(label: &str, more: &str) -> Bench {
    let queue = "queue = { kind = \"drop_tail\", packets = 200 }";
    let link = format!("rate_mbps = 10\ndelay_ms = 15\n{queue}\n{more}");
    let bench = Bench::two_paths(label, [&link, &link]);
    let buffer = "4096 65536 65536";
    bench.within(0, || std::fs::write("/proc/sys/net/ipv4/tcp_wmem", buffer));
    bench
}

/// What the sender's socket says of its connection while it sends.
#[derive(Default)]
struct Seen {
    acked: AtomicU64,
    over: AtomicBool,
}

/// Ends the transfer, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `task` beside a connection that sends as fast as its windows let it. Asserts that it stayed one
/// connection of MPTCP with two subflows, and that every byte arrived as sent. Also returns the longest time
/// without an acknowledgement of new data.
fn beside_a_connection(bed: &Bed, bench: &Bench, task: impl FnOnce(&Seen)) -> (Transfer, Duration) {
    let seen = Seen::default();
    let mut tokens = Vec::new();
    let (mut since, mut gap) = (Duration::ZERO, Duration::ZERO);
    let look = |at: Duration, connection: &Connection| {
        gap = gap.max(at.saturating_sub(since));
        if seen.acked.swap(connection.acked, Ordering::Relaxed) != connection.acked {
            since = at;
        }
        if at > Duration::from_millis(500) {
            assert_eq!(connection.subflows.len(), 2, "subflows at {at:?}");
        }
        assert!(!connection.fell_back, "fell back to TCP at {at:?}");
        tokens.push(connection.token);
    };
    let more = |_| !seen.over.load(Ordering::Relaxed);
    let transfer = thread::scope(|scope| {
        let ends = Ends(&seen.over);
        let sending = scope.spawn(|| bench.transfer_subflows_while(&bed.name, more, look));
        task(&seen);
        drop(ends);
        sending.join().unwrap()
    });
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "one connection: {tokens:?}");
    transfer.check();
    (transfer, gap)
}

/// Waits until all of `count` flows are under CUBIC; how long after `since` the last one was.
fn falls(bed: &Bed, count: usize, since: Time) -> Span {
    loop {
        let flows = bed.status().flows;
        let elapsed = clock::now().since(since);
        if flows.len() == count && flows.iter().all(|flow| flow.state == "cubic") {
            return elapsed;
        }
        assert!(elapsed < SOON, "not {count} flows, all cubic: {flows:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Waits until the receiver has acknowledged more of the connection.
fn goes_on(seen: &Seen) {
    let before = seen.acked.load(Ordering::Relaxed);
    wait_for("the connection goes on", SOON, || {
        seen.acked.load(Ordering::Relaxed) > before + 20_000
    });
}

/// A connection that opens now is governed on both paths.
fn takes_a_new_connection(bed: &Bed, bench: &Bench) {
    let mut governed = false;
    let look = |_, connection: &Connection| {
        let token = Some(format!("{:08x}", connection.token));
        let flows = bed.status().flows;
        let own = flows.iter().filter(|flow| flow.token == token && flow.state == "agent");
        governed |= own.filter(|flow| flow.decisions > 10).count() == 2;
    };
    bench.transfer_subflows(&bed.name, Duration::from_secs(2), look).check();
    assert!(governed, "both subflows of a new connection obey the daemon: {}", bed.status());
}

/// How long subflows took to fall back after each kill, ascending.
fn sorted(mut falls: Vec<Span>) -> Vec<Span> {
    falls.sort_unstable();
    let (median, max) = (falls[falls.len() / 2], falls[falls.len() - 1]);
    println!("from kill to the fallback of both subflows: {median} (median), {max} (max)");
    falls
}

/// Kills the daemon so often under a connection; returns [`sorted`] times, none where the kernel cannot run it.
fn kill(label: &str, kills: u64) -> Vec<Span> {
    let Some(bed) = Bed::new() else { return Vec::new() };
    if !governs_mptcp() {
        return Vec::new();
    }
    let bench = paths(label, "");
    let mut daemon = Some(bed.daemon(&LIA));
    let mut times = Vec::new();
    let (transfer, gap) = beside_a_connection(&bed, &bench, |seen| {
        for kill in 0..kills {
            bed.wait_until_all(2, "agent");
            let killed_at = clock::now();
            daemon.take().unwrap().kill();
            times.push(falls(&bed, 2, killed_at));
            let status = bed.status();
            assert!(status.flows.iter().all(|flow| flow.fallbacks > kill), "counted: {status}");
            assert_eq!((status.daemon, status.connections.len()), (None, 1));
            goes_on(seen);
            daemon = Some(bed.daemon(&LIA));
        }
        bed.wait_until_all(2, "agent");
        takes_a_new_connection(&bed, &bench);
    });
    println!("{kills} kills, {} bytes, longest gap {gap:?}", transfer.received);
    assert!(gap < Duration::from_nanos(SECOND.0), "the connection stalled for {gap:?}");
    wait_for("all flows end", SOON, || bed.status().flows.is_empty());
    daemon.unwrap().stop();
    drop(bench);
    bed.finish();
    sorted(times)
}

#[test]
fn kills_under_a_coupled_controller_lose_no_byte_and_leave_both_subflows_to_cubic() {
    // Beside other work a fall is seen late; a time-out of TCP's own takes more than twice the goal.
    let falls = kill("mk", 5);
    assert!(falls.is_empty() || falls[2] < GOAL * 2, "late after half of the kills: {falls:?}");
}

#[test]
#[ignore = "takes a minute"]
fn a_hundred_kills_under_a_coupled_controller_lose_no_byte_and_fall_back_when_the_watchdog_says() {
    let falls = kill("mh", 100);
    let (Some(&median), Some(&max)) = (falls.get(50), falls.last()) else { return };
    assert!(median < WATCHDOG + INTERVAL + INTERVAL, "late after half of the kills: {falls:?}");
    assert!(falls[94] < GOAL, "late after more than five kills: {falls:?}");
    assert!(max < WATCHDOG + INTERVAL + ROUND_TRIP, "late after a kill: {falls:?}");
}

#[test]
fn paths_that_carry_nothing_for_two_seconds_delay_a_coupled_connection_and_lose_nothing() {
    let Some(bed) = Bed::new() else { return };
    if !governs_mptcp() {
        return;
    }
    let daemon = bed.daemon(&LIA);
    let start = clock::now();
    let bench = paths("mo", "outages = [[3, 5]]");
    let sleep_until = |secs: f64| {
        let left = Span::from_secs_f64(secs) - clock::now().since(start);
        thread::sleep(Duration::from_nanos(left.0));
    };
    let (_, gap) = beside_a_connection(&bed, &bench, |seen| {
        bed.wait_until_all(2, "agent");
        sleep_until(4.0);
        let before = seen.acked.load(Ordering::Relaxed);
        sleep_until(4.8);
        assert_eq!(seen.acked.load(Ordering::Relaxed), before, "nothing is carried");
        wait_for("data arrive again", SOON, || {
            seen.acked.load(Ordering::Relaxed) > before + 2_000_000
        });
        bed.wait_until_all(2, "agent");
    });
    println!("longest gap {gap:?}");
    wait_for("all flows end", SOON, || bed.status().flows.is_empty());
    daemon.stop();
    drop(bench);
    bed.finish();
}
