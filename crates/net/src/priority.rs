//! Threads that must not wait behind ordinary programs.

/// Of the emulator, which keeps time for everybody else: above every ordinary process, below the
/// kernel's own threads.
pub const EMULATOR: i32 = 10;
/// Of the lab's agent.
pub const AGENT: i32 = 9;
/// Of the lab's senders and receivers.
pub const HOSTS: i32 = 8;

/// Real-time priority (`SCHED_FIFO`) for the calling thread; whether it was granted, which takes
/// `CAP_SYS_NICE`.
///
/// Niceness would not do: where the kernel groups processes by session (`sched_autogroup_enabled`), it
/// counts among the processes of one's own terminal alone.
pub fn realtime(priority: i32) -> bool {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: thread 0 is the calling one, and the kernel only reads `parameters`.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}
