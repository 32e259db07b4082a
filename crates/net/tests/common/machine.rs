//! What a machine needs for these tests. What it lacks is said once per test program, and the tests that
//! need it pass without having tested anything, unless `ACKADEMY_REQUIRE` names it (`require.rs`).
use super::require::has;
use ackademy::units::Span;
use ackademy_net::clock::now;
use ackademy_net::kernel::check::Machine;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{scope, sleep};
use std::time::Duration;

/// Whether emulated links can be made.
pub fn makes_links() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| has("links", &links()))
}

/// Whether flows can be governed over emulated links.
pub fn governs_flows() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let refused = Machine::here(None).require().err().map(|why| why.to_string());
        let refused = refused.iter().flat_map(|why| why.lines()).map(ToOwned::to_owned);
        has("kernel", &links().into_iter().chain(refused).collect::<Vec<String>>())
    })
}

/// Whether subflows of MPTCP connections can be governed over emulated links.
pub fn governs_mptcp() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let refused = Machine::here(None).require_mptcp("lia", "new_reno").err();
        let lacking = refused.map(|why| why.to_string());
        governs_flows() && has("kernel", &lacking.into_iter().collect::<Vec<_>>())
    })
}

/// Whether there is `iperf3`.
pub fn has_iperf3() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| {
        let called = Command::new("iperf3").arg("--version").output();
        let lacking = called.err().map(|error| format!("iperf3: {error}"));
        has("iperf3", &lacking.into_iter().collect::<Vec<_>>())
    })
}

/// Waits for something that a machine does within seconds, however slow it is.
///
/// # Panics
///
/// If it has not come to pass after 20 s.
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..2000 {
        if holds() {
            return;
        }
        sleep(Duration::from_millis(10));
    }
    panic!("{what}: not after 20 s");
}

/// How often [`best_of`] tries on a machine that is on time, and how often in all.
const ATTEMPTS: (usize, usize) = (4, 12);
/// A machine is on time if it wakes a sleeping thread so soon, 19 times of 20.
const ON_TIME: Span = Span::from_millis(2);
/// What the thread sleeps at a time.
const NAP: Span = Span::from_millis(1);

/// Holds a claim about times or rates against a few attempts, of which one must keep it: a machine with
/// other work to do makes some of them late, a fault makes all of them wrong. An attempt that fails while the machine
/// is late says nothing. Every claim about a rate of the kernel, the lab or a link is made here.
///
/// A claim that stays unjudged, since too few attempts were on time, is told past the test harness, which keeps what a
/// passing test prints.
///
/// # Panics
///
/// If no attempt keeps the claim, with what each of them found.
pub fn best_of(mut attempt: impl FnMut() -> Result<(), String>) {
    match judge(|| beside_sleeper(&mut attempt)) {
        Ok(None) => {}
        Ok(Some(unjudged)) => {
            let test = std::thread::current().name().unwrap_or_default().to_owned();
            let _ = writeln!(std::io::stderr(), "not judged: {test}: {unjudged}");
        }
        Err(found) => panic!("{found}"),
    }
}

/// What attempts at a claim show together, each with how late the machine was: nothing if one keeps the claim, or
/// why that stays unjudged.
///
/// # Errors
///
/// If the claim is wrong: what the attempts found.
pub fn judge(
    mut attempt: impl FnMut() -> (Result<(), String>, Span),
) -> Result<Option<String>, String> {
    let (mut found, mut late) = (Vec::new(), 0);
    while found.len() < ATTEMPTS.0 && found.len() + late < ATTEMPTS.1 {
        match attempt() {
            (Ok(()), _) => return Ok(None),
            (Err(_), delay) if delay > ON_TIME => late += 1,
            (Err(what), _) => found.push(what),
        }
    }
    let (on_time, found) = (found.len(), found.join("; "));
    if on_time == ATTEMPTS.0 {
        return Err(format!("none of {on_time} attempts: {found}"));
    }
    Ok(Some(format!("the machine was late in {late} of {} attempts. {found}", ATTEMPTS.1)))
}

/// Does some work beside a thread that sleeps a millisecond at a time: how late it wakes, 19 times of 20.
fn beside_sleeper<T>(work: impl FnOnce() -> T) -> (T, Span) {
    let done = AtomicBool::new(false);
    scope(|threads| {
        let sleeper = threads.spawn(|| {
            let mut delays = Vec::new();
            while !done.load(Ordering::Relaxed) {
                let wanted = now() + NAP;
                sleep(Duration::from_nanos(NAP.0));
                delays.push(now().since(wanted));
            }
            delays.sort();
            delays.get(delays.len() * 19 / 20).copied().unwrap_or_default()
        });
        let _ends = Ends(&done);
        let result = work();
        done.store(true, Ordering::Relaxed);
        (result, sleeper.join().expect("no panic"))
    })
}

/// Ends the sleeper, also after a panic.
struct Ends<'a>(&'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// `Err` with what was found, unless the claim is kept.
pub fn kept(claim: bool, found: impl FnOnce() -> String) -> Result<(), String> {
    if claim { Ok(()) } else { Err(found()) }
}

/// What the machine lacks for links.
fn links() -> Vec<String> {
    const CAP_SYS_ADMIN: u32 = 21;
    const TUN: &str = "/dev/net/tun";
    let mut lacking = Vec::new();
    let root = nix::unistd::geteuid().is_root();
    if !root || Machine::here(None).capabilities >> CAP_SYS_ADMIN & 1 == 0 {
        lacking.push("namespaces are made by root with CAP_SYS_ADMIN".to_owned());
    }
    if !Path::new(TUN).exists() {
        lacking.push(format!("there is no {TUN}"));
    }
    lacking
}
