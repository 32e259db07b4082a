//! Flows that never end by themselves, each with bytes of its own, hashed at both ends.
use crate::bed::{Bed, RECEIVER, inside};
use ackademy::digest::{EMPTY, fnv1a};
use ackademy::units::Span;
use ackademy_net::clock;
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, connect, setsockopt, socket, sockopt,
};
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Longer than any stall that a test provokes.
const PATIENCE: Duration = Duration::from_secs(30);

/// What every flow sends: `chunk` bytes, a pause, again.
#[derive(Clone, Copy)]
pub struct Pattern {
    pub chunk: usize,
    pub pause: Duration,
}

/// 8 Mb/s per flow.
pub const STEADY: Pattern = Pattern { chunk: 10_000, pause: Duration::from_millis(10) };

/// Running flows.
pub struct Traffic {
    stop: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
    senders: Vec<JoinHandle<std::io::Result<u64>>>,
    receivers: Vec<JoinHandle<std::io::Result<Received>>>,
}

struct Received {
    hash: u64,
    longest_gap: Span,
}

impl Traffic {
    /// Opens `flows` flows under the bed's congestion control.
    pub fn start(bed: &Bed, flows: usize, pattern: Pattern) -> Self {
        Self::of_user(0, bed, flows, pattern)
    }

    /// The same, with sockets of a user.
    pub fn of_user(user: u32, bed: &Bed, flows: usize, pattern: Pattern) -> Self {
        let listener = inside(&bed.namespace('b'), || TcpListener::bind((RECEIVER, 0)).unwrap());
        let listener = listener.join().unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = Arc::new(AtomicBool::new(false));
        let received = Arc::new(AtomicU64::new(0));
        let mut traffic = Self { stop, received, senders: Vec::new(), receivers: Vec::new() };
        for flow in 0..flows {
            let name = bed.name.clone();
            let open = inside(&bed.namespace('a'), move || {
                nix::unistd::setfsuid(user.into());
                open(port, &name)
            });
            let to = open.join().unwrap();
            let (from, _) = listener.accept().unwrap();
            let stop = Arc::clone(&traffic.stop);
            traffic.senders.push(thread::spawn(move || send(to, flow, pattern, &stop)));
            let received = Arc::clone(&traffic.received);
            traffic.receivers.push(thread::spawn(move || receive(from, &received)));
        }
        traffic
    }

    /// Bytes that have arrived, of all flows.
    pub fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed)
    }

    /// Closes the flows, asserts that none was reset and that all bytes arrived as sent, and returns
    /// the longest time for which one of them received nothing.
    pub fn finish(self) -> Span {
        self.stop.store(true, Ordering::Relaxed);
        let mut longest_gap = Span::ZERO;
        for (sender, receiver) in self.senders.into_iter().zip(self.receivers) {
            let sent = sender.join().unwrap().expect("the sender was not reset");
            let received = receiver.join().unwrap().expect("the receiver was not reset");
            assert_eq!(sent, received.hash, "hash of what was sent and of what arrived");
            longest_gap = longest_gap.max(received.longest_gap);
        }
        longest_gap
    }
}

fn open(port: u16, congestion: &str) -> TcpStream {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
    setsockopt(&socket, sockopt::TcpCongestion, &congestion.into()).unwrap();
    let to = SockaddrIn::from(SocketAddrV4::new(RECEIVER, port));
    connect(std::os::fd::AsRawFd::as_raw_fd(&socket), &to).unwrap();
    TcpStream::from(socket)
}

fn send(
    mut to: TcpStream,
    flow: usize,
    pattern: Pattern,
    stop: &AtomicBool,
) -> std::io::Result<u64> {
    to.set_write_timeout(Some(PATIENCE))?;
    let mut state = flow as u64 + 1;
    let mut hash = EMPTY;
    let mut chunk = vec![0; pattern.chunk];
    while !stop.load(Ordering::Relaxed) {
        for byte in &mut chunk {
            // xorshift64 (Marsaglia 2003)
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = state as u8;
        }
        hash = fnv1a(hash, &chunk);
        to.write_all(&chunk)?;
        thread::sleep(pattern.pause);
    }
    Ok(hash)
}

fn receive(mut from: TcpStream, received: &AtomicU64) -> std::io::Result<Received> {
    from.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = vec![0; 1 << 16];
    let mut hash = EMPTY;
    let mut longest_gap = Span::ZERO;
    let mut last = clock::now();
    loop {
        let count = from.read(&mut buffer)?;
        let now = clock::now();
        longest_gap = longest_gap.max(now.since(last));
        last = now;
        if count == 0 {
            return Ok(Received { hash, longest_gap });
        }
        received.fetch_add(count as u64, Ordering::Relaxed);
        hash = fnv1a(hash, &buffer[..count]);
    }
}
