//! What the kernel says of an MPTCP socket and its subflows (`MPTCP_FULL_INFO`, Linux 6.5), as of Linux
//! 6.18's `include/uapi/linux/mptcp.h`.
use super::tcp_info::TcpInfo;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, BorrowedFd};

/// One subflow.
#[derive(Clone, Copy, Debug)]
pub struct Subflow {
    /// The kernel's number of it within its connection.
    pub id: u32,
    /// Sender's address.
    pub local: IpAddr,
    /// Its TCP.
    pub tcp: TcpInfo,
}

/// A connection at one moment.
#[derive(Clone, Debug)]
pub struct Connection {
    /// Its local token.
    pub token: u32,
    /// Whether the peer, or a middlebox, made it fall back to TCP.
    pub fell_back: bool,
    /// Data bytes sent again on the level of the connection, on any subflow.
    pub reinjected: u64,
    /// Data bytes that the peer has acknowledged on the level of the connection.
    pub acked: u64,
    /// Those that are open.
    pub subflows: Vec<Subflow>,
}

impl Connection {
    /// Reads it; `None` if the socket is not an MPTCP socket, or the kernel is too old.
    pub fn read(socket: BorrowedFd) -> Option<Self> {
        let mut addresses = [Addresses::default(); SUBFLOWS_MAX];
        let mut tcp = [TcpInfo::default(); SUBFLOWS_MAX];
        let mut full = FullInfo {
            size_tcp_user: size_of::<TcpInfo>() as u32,
            size_addresses_user: size_of::<Addresses>() as u32,
            size_arrays_user: SUBFLOWS_MAX as u32,
            addresses: (&raw mut addresses) as u64,
            tcp: (&raw mut tcp) as u64,
            ..FullInfo::default()
        };
        let mut length = size_of::<FullInfo>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `full`, and as many elements of the sizes
        // given into the two arrays as they have; all are integers that may hold any bits.
        let status = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                SOL_MPTCP,
                MPTCP_FULL_INFO,
                (&raw mut full).cast(),
                &raw mut length,
            )
        };
        let open = (full.num_subflows as usize).min(SUBFLOWS_MAX);
        let subflow = |(from, tcp): (&Addresses, &TcpInfo)| {
            Some(Subflow { id: from.id, local: from.local()?, tcp: *tcp })
        };
        (status == 0).then(|| Self {
            token: full.mptcp.token,
            fell_back: full.mptcp.flags & FLAG_FALLBACK != 0,
            reinjected: full.mptcp.bytes_retrans,
            acked: full.mptcp.bytes_acked,
            subflows: addresses[..open].iter().zip(&tcp).filter_map(subflow).collect(),
        })
    }
}

/// `struct mptcp_subflow_info`: two `sockaddr_storage` after the number.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Addresses {
    id: u32,
    padding: u32,
    local: [u8; 128],
    remote: [u8; 128],
}

impl Default for Addresses {
    fn default() -> Self {
        Self { id: 0, padding: 0, local: [0; 128], remote: [0; 128] }
    }
}

impl Addresses {
    fn local(&self) -> Option<IpAddr> {
        let family = u16::from_ne_bytes([self.local[0], self.local[1]]);
        match i32::from(family) {
            libc::AF_INET => {
                let bytes: [u8; 4] = self.local[4..8].try_into().ok()?;
                Some(Ipv4Addr::from(bytes).into())
            }
            libc::AF_INET6 => {
                let bytes: [u8; 16] = self.local[8..24].try_into().ok()?;
                Some(Ipv6Addr::from(bytes).into())
            }
            _ => None,
        }
    }
}

/// `struct mptcp_info`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct MptcpInfo {
    /// Subflows and addresses, and the limits of both.
    counts: [u8; 6],
    flags: u32,
    token: u32,
    write_seq: u64,
    snd_una: u64,
    rcv_nxt: u64,
    local: [u8; 3],
    retransmits: u32,
    bytes_retrans: u64,
    bytes_sent: u64,
    bytes_received: u64,
    bytes_acked: u64,
    subflows_total: u8,
    reserved: [u8; 3],
    last: [u32; 3],
}

/// `struct mptcp_full_info`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
struct FullInfo {
    size_tcp_kernel: u32,
    size_tcp_user: u32,
    size_addresses_kernel: u32,
    size_addresses_user: u32,
    num_subflows: u32,
    size_arrays_user: u32,
    addresses: u64,
    tcp: u64,
    mptcp: MptcpInfo,
}

const _: () = {
    assert!(size_of::<Addresses>() == 264);
    assert!(size_of::<MptcpInfo>() == 96);
};

/// More than the kernel's path manager opens.
const SUBFLOWS_MAX: usize = 9;
const SOL_MPTCP: libc::c_int = 284;
const MPTCP_FULL_INFO: libc::c_int = 4;
const FLAG_FALLBACK: u32 = 1;
