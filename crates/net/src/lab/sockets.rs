//! Sockets of sending hosts.
use super::plan::{Flow, KERNEL, Pair};
use super::receivers::PORT;
use ackademy::transport::packet::Ect;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, Backlog, SockFlag, SockType, SockaddrStorage, bind, connect, setsockopt, socket,
    sockopt,
};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Begins to connect a flow under congestion control `name`; the calling thread is in its host.
pub fn connect_stream(flow: &Flow, pair: &Pair, name: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::from(stream_socket(flow.sender, flow.is_multipath())?);
    stream.set_nonblocking(true)?;
    // Before it connects: every later subflow gets the same.
    setsockopt(&stream, sockopt::TcpCongestion, &name.to_owned().into())?;
    stream.set_nodelay(true)?;
    reset_on_close(&stream)?;
    if !flow.is_multipath() {
        // MPTCP asks for more only when data is acknowledged in order: waiting for a path with a longer
        // round trip, the others would run dry.
        set_integer(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, pair.backlog.0)?;
    }
    if flow.plan.sender.pacing {
        // Any bound turns on TCP's own pacing, at the kernel's 2 and 1.2 times cwnd/srtt.
        set_integer(stream.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, u64::MAX >> 1)?;
    }
    let port = |address, port| SockaddrStorage::from(SocketAddr::new(address, port));
    bind(stream.as_fd().as_raw_fd(), &port(flow.sender, 0))?;
    match connect(stream.as_fd().as_raw_fd(), &port(flow.receiver, PORT)) {
        Ok(()) | Err(Errno::EINPROGRESS) => Ok(stream),
        Err(error) => Err(error.into()),
    }
}

/// A listening socket.
pub fn listen(at: SocketAddr, mptcp: bool) -> io::Result<TcpListener> {
    let socket = stream_socket(at.ip(), mptcp)?;
    setsockopt(&socket, sockopt::ReuseAddr, &true)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(at))?;
    nix::sys::socket::listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// A socket of TCP or MPTCP for addresses like `of`.
fn stream_socket(of: IpAddr, mptcp: bool) -> io::Result<OwnedFd> {
    let family = if of.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let protocol = if mptcp { libc::IPPROTO_MPTCP } else { libc::IPPROTO_TCP };
    // SAFETY: a call without pointers.
    let socket = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol) };
    if socket < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it is open, and nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(socket) })
}

/// Closing is then the end, also by the kernel after this process was killed: nothing goes on in a
/// network that is no longer there. What a listener accepts does as the listener.
pub fn reset_on_close(socket: &impl AsFd) -> io::Result<()> {
    let now = libc::linger { l_onoff: 1, l_linger: 0 };
    Ok(setsockopt(socket, sockopt::Linger, &now)?)
}

/// A socket for a flow of datagrams; the calling thread is in its host.
pub fn datagram_socket(flow: &Flow) -> io::Result<UdpSocket> {
    let family = family(flow);
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let socket = UdpSocket::from(socket(family, SockType::Datagram, flags, None)?);
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(flow.sender, 0)))?;
    socket.connect(SocketAddr::new(flow.receiver, PORT))?;
    announce(&socket, flow)?;
    Ok(socket)
}

/// Announces in each datagram what the flow's `sender.ecn` says.
fn announce(socket: &UdpSocket, flow: &Flow) -> io::Result<()> {
    let bits = match flow.plan.sender.ecn.ect() {
        Ect::Not => return Ok(()),
        Ect::Zero => 0b10,
        Ect::One => 0b01,
    };
    let (level, name) = if flow.sender.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    set_integer(socket.as_fd(), level, name, bits)
}

/// Name that the flow gives to `TCP_CONGESTION`, if `agent` is what this project's controllers are
/// registered as.
pub fn congestion_control<'a>(flow: &'a Flow, agent: &'a str) -> &'a str {
    flow.plan.controller.strip_prefix(KERNEL).unwrap_or(agent)
}

/// Writes with a hint whether more follows at once, so that segments are filled.
pub fn write(stream: &TcpStream, bytes: &[u8], more: bool) -> io::Result<usize> {
    let flags = libc::MSG_NOSIGNAL | if more { libc::MSG_MORE } else { 0 };
    // SAFETY: the pointer and the length are of one slice.
    let sent = unsafe { libc::send(stream.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn family(flow: &Flow) -> AddressFamily {
    if flow.sender.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}

/// Sets an option of four bytes (of `IPPROTO_TCP`) or eight (of `SOL_SOCKET`).
fn set_integer(socket: BorrowedFd, level: i32, name: i32, value: u64) -> io::Result<()> {
    let short = value.min(u64::from(u32::MAX)) as u32;
    let (pointer, length): (*const libc::c_void, usize) = if level == libc::SOL_SOCKET {
        ((&raw const value).cast(), size_of::<u64>())
    } else {
        ((&raw const short).cast(), size_of::<u32>())
    };
    // SAFETY: the kernel reads `length` bytes of a value that outlives the call.
    let status = unsafe {
        libc::setsockopt(socket.as_raw_fd(), level, name, pointer, length as libc::socklen_t)
    };
    if status == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
