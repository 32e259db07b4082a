//! The receiving ends: one thread reads all connections, checks what they carry and counts it.
use super::content::Content;
use super::plan::{Family, Flow, Pair};
use super::sockets::{listen, reset_on_close};
use crate::error::Error;
use crate::namespace::Namespace;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Port that every receiver listens at.
pub const PORT: u16 = 5201;

/// What has arrived of one flow; written by the receivers, read by the sampler.
#[derive(Debug, Default)]
pub struct Arrived {
    /// Payload read in order.
    pub bytes: AtomicU64,
    /// Datagrams.
    pub datagrams: AtomicU64,
    /// Something other than what was sent.
    pub corrupt: AtomicBool,
}

/// Listening sockets of all receiving hosts, and what they accepted.
pub struct Receivers<'a> {
    flows: BTreeMap<IpAddr, usize>,
    content: &'a Content,
    arrived: &'a [Arrived],
    epoll: Epoll,
    sources: Vec<Source>,
    buffer: Vec<u8>,
}

enum Source {
    Listener(TcpListener),
    Datagrams(UdpSocket),
    /// A connection, and its flow; `None` once it has ended.
    Stream(Option<TcpStream>, usize),
}

impl<'a> Receivers<'a> {
    /// Listens on every host. One `Arrived` per flow.
    ///
    /// # Errors
    ///
    /// If the system refuses a socket.
    pub fn listen(
        hosts: &[(&Pair, &Namespace)],
        flows: &[Flow],
        content: &'a Content,
        arrived: &'a [Arrived],
    ) -> Result<Self, Error> {
        let family = if flows[0].sender.is_ipv4() { Family::V4 } else { Family::V6 };
        let mut receivers = Self {
            flows: flows.iter().enumerate().map(|(index, flow)| (flow.sender, index)).collect(),
            content,
            arrived,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)
                .map_err(|e| failed("epoll", &e.into()))?,
            sources: Vec::new(),
            buffer: vec![0; 1 << 18],
        };
        for (pair, host) in hosts {
            let (listener, datagrams) = host.inside(|| open(pair, family))?;
            receivers.add(Source::Listener(listener))?;
            receivers.add(Source::Datagrams(datagrams))?;
        }
        Ok(receivers)
    }

    /// Reads until `stop`.
    ///
    /// # Errors
    ///
    /// If the system refuses what it should not.
    pub fn run(mut self, stop: &AtomicBool) -> Result<(), Error> {
        let mut events = [EpollEvent::empty(); 64];
        while !stop.load(Ordering::Relaxed) {
            let count = match self.epoll.wait(&mut events, STOP_CHECK_MS) {
                Err(Errno::EINTR) => continue,
                other => other.map_err(|error| failed("epoll", &error.into()))?,
            };
            for event in &events[..count] {
                self.serve(event.data() as usize)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, source: Source) -> Result<(), Error> {
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.sources.len() as u64);
        let added = match &source {
            Source::Listener(socket) => self.epoll.add(socket, event),
            Source::Datagrams(socket) => self.epoll.add(socket, event),
            Source::Stream(Some(socket), _) => self.epoll.add(socket, event),
            Source::Stream(None, _) => Ok(()),
        };
        added.map_err(|error| failed("epoll", &error.into()))?;
        self.sources.push(source);
        Ok(())
    }

    fn serve(&mut self, index: usize) -> Result<(), Error> {
        match &mut self.sources[index] {
            Source::Listener(listener) => {
                let Ok((socket, peer)) = listener.accept() else { return Ok(()) };
                let Some(&flow) = self.flows.get(&peer.ip()) else { return Ok(()) };
                let _ = socket.set_nonblocking(true);
                self.add(Source::Stream(Some(socket), flow))
            }
            Source::Datagrams(socket) => {
                while let Ok((_, peer)) = socket.recv_from(&mut self.buffer) {
                    if let Some(&flow) = self.flows.get(&peer.ip()) {
                        self.arrived[flow].datagrams.fetch_add(1, Ordering::Relaxed);
                    }
                }
                Ok(())
            }
            Source::Stream(stream, flow) => {
                let Some(socket) = stream else { return Ok(()) };
                let arrived = &self.arrived[*flow];
                match socket.read(&mut self.buffer) {
                    Ok(count) if count > 0 => {
                        let before = arrived.bytes.fetch_add(count as u64, Ordering::Relaxed);
                        if !self.content.matches(*flow, before, &self.buffer[..count]) {
                            arrived.corrupt.store(true, Ordering::Relaxed);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    _ => *stream = None,
                }
                Ok(())
            }
        }
    }
}

fn open(pair: &Pair, family: Family) -> Result<(TcpListener, UdpSocket), Error> {
    let any: IpAddr = match family {
        Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
        Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
    };
    let address = SocketAddr::new(any, PORT);
    let fail = |error: std::io::Error| failed("listen", &error);
    let listener = listen(address, pair.only.is_some()).map_err(fail)?;
    listener.set_nonblocking(true).map_err(fail)?;
    reset_on_close(&listener).map_err(fail)?;
    if let Some(window) = pair.window {
        clamp_window(&listener, window.0 as libc::c_int).map_err(fail)?;
    }
    let datagrams = UdpSocket::bind(address).map_err(fail)?;
    datagrams.set_nonblocking(true).map_err(fail)?;
    Ok((listener, datagrams))
}

/// Bounds the window that accepted connections offer.
fn clamp_window(listener: &TcpListener, bytes: libc::c_int) -> std::io::Result<()> {
    // SAFETY: the kernel reads one integer.
    let status = unsafe {
        libc::setsockopt(
            listener.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_WINDOW_CLAMP,
            (&raw const bytes).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

fn failed(what: &str, error: &std::io::Error) -> Error {
    Error::System(format!("receivers: {what}: {error}"))
}

/// How long a receiver may go on after it was told to stop.
const STOP_CHECK_MS: u16 = 50;
