//! Layouts that cross between the BPF program and this process; `bpf/abi.h` holds the same.
//!
//! The counts of packets in them are the kernel's: 32 bits that wrap.

use super::NAME_MAX;
use serde::Serialize;

/// Changes with every change of a layout or of a meaning.
pub const ABI_VERSION: u32 = 14;
/// Buckets of [`Totals::latency`].
pub const LATENCY_BUCKETS: usize = 256;
/// `pacing` of a flow that is not paced.
pub const PACING_NONE: u64 = u64::MAX;
/// `ssthresh` of a flow that has none.
pub const SSTHRESH_INFINITE: u32 = 0x7fff_ffff;

/// Values of [`Record::kind`].
pub mod kind {
    /// The connection is established, or has just chosen this congestion control.
    pub const OPEN: u32 = 1;
    /// Acknowledgements arrived.
    pub const SAMPLE: u32 = 2;
    /// A loss episode began. Its first loss may have been told before, in the episode before it.
    pub const GAP: u32 = 3;
    /// The retransmission timer expired.
    pub const TIMEOUT: u32 = 4;
    /// The flow sends again after it idled longer than its time-out.
    pub const IDLE: u32 = 5;
    /// The connection is closed, or has chosen another congestion control.
    pub const CLOSE: u32 = 6;
    /// The kernel answers an echoed mark, or a packet that its own device's queue refused.
    pub const MARK: u32 = 7;
    /// The kernel found that the latest `GAP` or `TIMEOUT` was spurious, and restored its window.
    pub const SPURIOUS: u32 = 8;
}

/// Bits of [`Record::flags`].
pub mod flag {
    /// The application limited the newest delivery-rate sample.
    pub const APP_LIMITED: u32 = 1;
    /// The window was full at some acknowledgement since the last record.
    pub const CWND_LIMITED: u32 = 2;
    /// Lost packets are being repaired: an episode that follows may begin with one that is lost already.
    pub const REPAIRING: u32 = 4;
    /// A `TIMEOUT` of what had been answered: a packet that timed out before, or within a reduction.
    pub const ANSWERED: u32 = 8;
}

/// Values of [`Decision::verdict`].
pub mod verdict {
    /// The decision holds.
    pub const OBEY: u16 = 0;
    /// The decision holds, and until the next one the window grows by what is delivered: the
    /// controller is in slow start.
    pub const GROW: u16 = 1;
    /// No sender can obey what the controller wants: CUBIC until it wants something else.
    pub const INVALID: u16 = 2;
    /// CUBIC until the flow ends.
    pub const ABANDON: u16 = 3;
}

/// Bits of [`Decision::flags`].
pub mod decided {
    /// The controller has given itself up: CUBIC of this process decides.
    pub const FELL_BACK: u16 = 1;
}

/// Values of [`Flow::state`].
pub mod state {
    /// Without a controller.
    pub const FREE: u32 = 0;
    /// Obeys decisions.
    pub const AGENT: u32 = 1;
    /// Under CUBIC until the next decision.
    pub const CUBIC: u32 = 2;
    /// Under CUBIC until it ends.
    pub const ABANDONED: u32 = 3;
}

/// What became of a socket that was to be handed back, a byte each.
pub mod handed {
    /// A connection went.
    pub const FLOW: u8 = 1;
    /// A listening socket went.
    pub const LISTENER: u8 = 2;
    /// The kernel refused.
    pub const NOTHING: u8 = 3;
}

/// Up: what happened to a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Record {
    /// One of [`kind`].
    pub kind: u32,
    /// The flow's place in the tables.
    pub slot: u32,
    /// How many flows that slot has had, this one included.
    pub generation: u32,
    /// Some of [`flag`].
    pub flags: u32,
    /// Counts the flow's records from 1.
    pub number: u64,
    /// When it was made, in nanoseconds of `CLOCK_MONOTONIC`.
    pub now: u64,
    /// When the newest delivered packet left; same clock.
    pub sent_at: u64,
    /// Newest round-trip sample since the last record; 0 for none.
    pub rtt_us: u32,
    /// Largest since the last record.
    pub rtt_max_us: u32,
    /// Smoothed round trip.
    pub srtt_us: u32,
    /// Smallest sample of the flow.
    pub min_rtt_us: u32,
    /// Packets delivered since the connection began.
    pub delivered: u32,
    /// Part of them that was marked.
    pub delivered_ce: u32,
    /// Part of `delivered` during which no window grows: duplicate acknowledgements, recovery.
    pub held: u32,
    /// Packets declared lost since the connection began, and losses that a probe repaired.
    pub lost: u32,
    /// Packets in flight.
    pub inflight: u32,
    /// Part of `delivered` that the newest acknowledgement delivered.
    pub newest: u32,
    /// Packets outstanding when the newest loss was declared.
    pub flight: u32,
    /// Newest delivery-rate sample: this many packets ...
    pub rate_delivered: u32,
    /// ... in this time.
    pub rate_interval_us: u32,
    /// Decisions that the flow has taken.
    pub decisions: u32,
    /// Times that it fell back to CUBIC.
    pub fallbacks: u32,
    /// Records that the full ring refused.
    pub refused: u32,
    /// Decisions that no sender can obey.
    pub invalid: u32,
    /// Smallest round-trip sample since the last record; 0 for none.
    pub rtt_min_us: u32,
}

/// Down: what a flow may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Decision {
    /// Odd while the decision is being written.
    pub sequence: u64,
    /// The flow's [`Record::generation`].
    pub generation: u32,
    /// One of [`verdict`].
    pub verdict: u16,
    /// Some of [`decided`].
    pub flags: u16,
    /// Newest record it answers.
    pub number: u64,
    /// When that record was made.
    pub sampled_at: u64,
    /// When the decision was written.
    pub written_at: u64,
    /// Payload bytes per second, or [`PACING_NONE`].
    pub pacing: u64,
    /// In packets.
    pub cwnd: u32,
    /// In packets, or [`SSTHRESH_INFINITE`].
    pub ssthresh: u32,
    /// `delivered` less `held` of that record.
    pub base: u32,
    /// The BPF program's.
    pub barrier: u32,
}

/// What anyone may read of the flow in a slot, without the daemon.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Flow {
    /// One of [`state`].
    pub state: u32,
    /// Raised whenever a flow gets or loses the slot.
    pub generation: u32,
    /// In nanoseconds of `CLOCK_MONOTONIC`.
    pub opened_at: u64,
    /// When what follows was last written.
    pub updated_at: u64,
    /// Inode of the network namespace.
    pub netns: u64,
    /// Sender's address; IPv4 in the first four bytes.
    pub local: [u8; 16],
    /// Receiver's address.
    pub remote: [u8; 16],
    /// `AF_INET` or `AF_INET6`.
    pub family: u16,
    /// Sender's port.
    pub local_port: u16,
    /// Receiver's port.
    pub remote_port: u16,
    /// Bytes of IP and TCP header, with options, of every packet.
    pub header: u16,
    /// Payload bytes of a full packet at the opening.
    pub mss: u32,
    /// Packets.
    pub initial_cwnd: u32,
    /// Packets.
    pub initial_ssthresh: u32,
    /// Smoothed round trip.
    pub srtt_us: u32,
    /// Smallest sample of the flow.
    pub min_rtt_us: u32,
    /// Packets.
    pub cwnd: u32,
    /// Packets.
    pub ssthresh: u32,
    /// Packets.
    pub inflight: u32,
    /// Payload bytes per second, or [`PACING_NONE`].
    pub pacing: u64,
    /// Records that went up.
    pub samples: u64,
    /// Decisions taken.
    pub decisions: u64,
    /// Times that the flow fell back to CUBIC.
    pub fallbacks: u64,
    /// Records that the full ring refused.
    pub refused: u64,
    /// Decisions that no sender can obey.
    pub invalid: u64,
    /// As in the newest [`Record`].
    pub delivered: u32,
    /// As in the newest [`Record`].
    pub delivered_ce: u32,
    /// As in the newest [`Record`].
    pub held: u32,
    /// As in the newest [`Record`].
    pub lost: u32,
    /// 1 if [`decided::FELL_BACK`] holds, else 0.
    pub fell_back: u32,
    /// Local token of the MPTCP connection that it is a subflow of (RFC 8684 section 3.2); 0 for plain TCP.
    pub token: u32,
    /// The kernel's number of the subflow within its connection.
    pub subflow: u32,
    /// User of the socket.
    pub owner: u32,
}

/// How to serve; what may change under live flows is what the daemon that took over wants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Settings {
    /// [`ABI_VERSION`] of the program that made the maps.
    pub abi: u32,
    /// Entries of the tables.
    pub slots: u32,
    /// What the congestion control is called; zeros after it.
    pub name: [u8; NAME_MAX + 1],
    /// Longest time between samples, in nanoseconds.
    pub interval: u64,
    /// Shortest time without an answer that sends a flow to CUBIC, in nanoseconds.
    pub watchdog: u64,
    /// 1: packets of flows under a rate leave singly ([`super::Options::paced`]).
    pub paced: u32,
    /// 1: decisions are made in the kernel, without a daemon.
    pub in_kernel: u32,
}

/// What is where it is in every version of [`Settings`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Origin {
    /// [`Settings::abi`].
    pub abi: u32,
    /// [`Settings::slots`], of this version.
    pub slots: u32,
    /// [`Settings::name`].
    pub name: [u8; NAME_MAX + 1],
}

impl Origin {
    /// What the congestion control is called.
    pub fn name(&self) -> String {
        String::from_utf8_lossy(&self.name).trim_end_matches('\0').to_owned()
    }
}

/// Counts over all flows, open and closed, since the maps were made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[repr(C)]
pub struct Counts {
    /// Flows that got a slot.
    pub opened: u64,
    /// Flows that gave it back.
    pub closed: u64,
    /// Flows that found no slot and are under CUBIC.
    pub without_slot: u64,
    /// Samples that went up.
    pub samples: u64,
    /// Decisions that were applied.
    pub decisions: u64,
    /// Falls to CUBIC.
    pub fallbacks: u64,
    /// Samples that the full ring refused.
    pub refused: u64,
    /// Decisions that no sender can obey.
    pub invalid: u64,
    /// Flows whose controller gave itself up; they are under CUBIC of the daemon.
    pub policy_fallbacks: u64,
    /// Slots that went from a flow that was idle, or of a user with more of them, to one that had none.
    pub reassigned: u64,
}

/// What is counted over all flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Totals {
    /// Of each event.
    pub counts: Counts,
    /// From record to applied decision: four buckets per power of two of nanoseconds, counted by the BPF
    /// program, which cannot use [`SpanHistogram`](ackademy::histogram::SpanHistogram).
    pub latency: [u64; LATENCY_BUCKETS],
}

const _: () = {
    assert!(size_of::<Record>() == 112);
    assert!(size_of::<Decision>() == 64);
    assert!(size_of::<Flow>() == 184);
    assert!(size_of::<Settings>() == 48);
    assert!(size_of::<Totals>() == 80 + 8 * LATENCY_BUCKETS);
};

/// A layout of plain integers: every pattern of bits is a value.
///
/// # Safety
///
/// `repr(C)`, integers only, no padding.
pub unsafe trait Plain: Copy {
    /// As the kernel wants it.
    fn bytes(&self) -> &[u8] {
        // SAFETY: no padding, so that every byte is initialised.
        unsafe { std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>()) }
    }

    /// As the kernel gave it; `None` if there are too few bytes.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        // SAFETY: long enough, and every pattern of bits is a value.
        (bytes.len() >= size_of::<Self>())
            .then(|| unsafe { bytes.as_ptr().cast::<Self>().read_unaligned() })
    }
}

// SAFETY: each is `repr(C)`, of integers, and as long as its members together.
unsafe impl Plain for Record {}
// SAFETY: as above.
unsafe impl Plain for Decision {}
// SAFETY: as above.
unsafe impl Plain for Flow {}
// SAFETY: as above.
unsafe impl Plain for Settings {}
// SAFETY: as above.
unsafe impl Plain for Origin {}
// SAFETY: as above.
unsafe impl Plain for Totals {}
