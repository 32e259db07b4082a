//! Ctrl-C, SIGTERM and SIGHUP as a flag, so that an interrupted command cleans up.
use crate::error::Error;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use std::sync::atomic::{AtomicBool, Ordering};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_signal: libc::c_int) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// From here on these signals only set the flag, which is returned.
pub fn watch() -> &'static AtomicBool {
    let action = SigAction::new(SigHandler::Handler(note), SaFlags::SA_RESTART, SigSet::empty());
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        // SAFETY: the handler does nothing but store to an atomic.
        unsafe { sigaction(signal, &action) }.expect("these signals can be caught");
    }
    &INTERRUPTED
}

/// From here on SIGHUP does nothing: what serves others' connections does not end with the terminal that it was started
/// from.
pub fn outlive_hangup() {
    let action = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is called.
    unsafe { sigaction(Signal::SIGHUP, &action) }.expect("this signal can be ignored");
}

/// Whether one of them came.
pub fn came() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Returns `Interrupted` after one of these signals.
///
/// # Errors
///
/// [`Error::Interrupted`].
pub fn check() -> Result<(), Error> {
    if came() { Err(Error::Interrupted) } else { Ok(()) }
}
