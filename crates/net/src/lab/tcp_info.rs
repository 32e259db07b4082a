//! What the kernel says of a TCP socket (`TCP_INFO`), as of Linux 6.18's `include/uapi/linux/tcp.h`.
use ackademy::units::Span;
use std::os::fd::{AsRawFd, BorrowedFd};

/// State of a socket. Older kernels leave the last fields zero.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
#[allow(missing_docs)] // the kernel's fields under the kernel's names
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub wscale: u8,
    pub flags: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
    pub total_rto_time: u32,
}

/// `TCP_CA_Recovery`: the sender repairs a loss without a time-out.
pub const RECOVERY: u8 = 3;

impl TcpInfo {
    /// Reads it; `None` if the socket is not a TCP socket.
    pub fn read(socket: BorrowedFd) -> Option<Self> {
        let mut info = Self::default();
        let mut length = size_of::<Self>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes, all of them inside `info`, whose fields
        // are integers that may hold any bits.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        (status == 0).then_some(info)
    }

    /// Smoothed round trip; zero before the first sample.
    pub fn srtt(&self) -> Span {
        Span::from_micros(u64::from(self.rtt))
    }

    /// Sent, neither delivered nor declared lost: RFC 6675's pipe, as `tcp_packets_in_flight`.
    pub fn inflight_packets(&self) -> u64 {
        let left = self.sacked.saturating_add(self.lost);
        u64::from(self.unacked.saturating_sub(left).saturating_add(self.retrans))
    }
}

/// Bytes written and not yet acknowledged (`SIOCOUTQ`).
pub fn unacknowledged(socket: BorrowedFd) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has TIOCOUTQ's number, writes one integer.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    (status == 0).then_some(u64::from(bytes.unsigned_abs()))
}
