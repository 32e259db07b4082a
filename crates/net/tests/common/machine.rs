//! What a machine needs for these tests. What it lacks is said once per test program, and the tests that
//! need it pass without having tested anything, unless `ACKADEMY_REQUIRE` names it (`require.rs`).
use super::require::has;
use ackademy_net::kernel::check::Machine;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::thread::sleep;
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

/// How often [`best_of`] tries.
const ATTEMPTS: usize = 4;

/// Holds a claim about times or rates against a few attempts, of which one must keep it: a machine with
/// other work to do makes some of them late, a fault makes all of them wrong.
///
/// # Panics
///
/// If no attempt keeps the claim, with what each of them found.
pub fn best_of(mut attempt: impl FnMut() -> Result<(), String>) {
    let mut found = Vec::new();
    while found.len() < ATTEMPTS {
        match attempt() {
            Ok(()) => return,
            Err(what) => found.push(what),
        }
    }
    panic!("none of {ATTEMPTS} attempts: {}", found.join("; "));
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
