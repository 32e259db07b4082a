//! An agent, and transfers under its congestion control whose bytes are checked.
use super::bench::Bench;
use super::machine::wait_until;
use ackademy::control::{Ack, Control, Controller, Coupled, FlowInfo, Loss, LossKind, PerFlow};
use ackademy::controllers;
use ackademy::params::Params;
use ackademy::units::{Span, Time};
use ackademy_net::kernel::record::Totals;
use ackademy_net::kernel::{Agent, Assign, Counters, FlowKey, FlowTotals, Group, Options};
use ackademy_net::lab::mptcp_info::Connection;
use nix::sys::socket::{self, Backlog, SockaddrStorage, bind, connect, setsockopt, sockopt};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

impl Bench {
    /// A counter of the sender's TCP, as `nstat` names it.
    pub fn counter(&self, name: &str) -> u64 {
        let text = self.within(0, || std::fs::read_to_string("/proc/thread-self/net/netstat"));
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with("TcpExt:")).collect();
        let names = rows[0].split_whitespace();
        let at = names.enumerate().find(|(_, known)| *known == name).expect("a counter").0;
        rows[1].split_whitespace().nth(at).expect("a value").parse().expect("a number")
    }

    /// Sends under a congestion control for some time, then ends the connection and waits until all
    /// has arrived. `look` is called every 20 ms.
    pub fn transfer(
        &self,
        congestion_control: &str,
        time: Duration,
        mut look: impl FnMut(Duration, &TcpInfo) + Send,
    ) -> Transfer {
        self.transfer_watched(congestion_control, time, |at, stream| look(at, &TcpInfo::of(stream)))
    }

    /// The same; `look` gets the socket.
    pub fn transfer_watched(
        &self,
        congestion_control: &str,
        time: Duration,
        look: impl FnMut(Duration, &TcpStream) + Send,
    ) -> Transfer {
        self.transfer_while(congestion_control, |at| at < time, look)
    }

    /// As [`Self::transfer`], of an MPTCP connection.
    pub fn transfer_subflows(
        &self,
        congestion_control: &str,
        time: Duration,
        look: impl FnMut(Duration, &Connection) + Send,
    ) -> Transfer {
        self.transfer_subflows_while(congestion_control, |at| at < time, look)
    }

    /// The same for as long as `more` says so.
    pub fn transfer_subflows_while(
        &self,
        congestion_control: &str,
        more: impl Fn(Duration) -> bool,
        mut look: impl FnMut(Duration, &Connection) + Send,
    ) -> Transfer {
        self.transfer_while(congestion_control, more, |at, stream| {
            look(at, &Connection::read(stream.as_fd()).expect("an MPTCP socket"));
        })
    }

    fn transfer_while(
        &self,
        congestion_control: &str,
        more: impl Fn(Duration) -> bool,
        mut look: impl FnMut(Duration, &TcpStream) + Send,
    ) -> Transfer {
        let listener = self.within(1, || listen(self.addresses[1], self.mptcp));
        let to = listener.local_addr().expect("bound");
        let receiver = thread::spawn(move || receive(&listener));
        let stream = self.within(0, || open(to, congestion_control, self.mptcp));
        let start = ackademy_net::clock::now();
        let elapsed = || Duration::from_nanos(ackademy_net::clock::now().since(start).0);
        let mut pattern = Pattern::default();
        let mut block = pattern.block();
        let mut looked = Duration::ZERO;
        let mut sent = 0;
        while more(elapsed()) {
            match (&stream).write(&block) {
                Ok(length) => {
                    sent += length as u64;
                    block.drain(..length);
                    if block.is_empty() {
                        block = pattern.block();
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error} after {:?}", elapsed()),
            }
            if elapsed() >= looked {
                looked += Duration::from_millis(20);
                look(elapsed(), &stream);
            }
        }
        drop(stream);
        let (received, intact) = receiver.join().expect("no panic");
        Transfer { sent, received, intact }
    }

    /// Sends a little, pauses, and sends as much again.
    pub fn pause(&self, congestion_control: &str, pause: Duration) -> Transfer {
        self.bursts(congestion_control, 2, 4 * 65_536, pause)
    }

    /// Sends so many bytes, pauses, sends as many again, and so on.
    pub fn bursts(
        &self,
        congestion_control: &str,
        count: usize,
        bytes: usize,
        pause: Duration,
    ) -> Transfer {
        let listener = self.within(1, || listen(self.addresses[1], self.mptcp));
        let to = listener.local_addr().expect("bound");
        let receiver = thread::spawn(move || receive(&listener));
        let mut stream = self.within(0, || open(to, congestion_control, self.mptcp));
        stream.set_nonblocking(false).expect("blocking");
        let (mut pattern, mut text) = (Pattern::default(), Vec::new());
        while text.len() < count * bytes {
            text.extend(pattern.block());
        }
        for (burst, part) in text[..count * bytes].chunks(bytes).enumerate() {
            if burst > 0 {
                thread::sleep(pause);
            }
            stream.write_all(part).expect("sent");
        }
        drop(stream);
        let (received, intact) = receiver.join().expect("no panic");
        Transfer { sent: (count * bytes) as u64, received, intact }
    }
}

/// What a transfer did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Bytes handed to the socket.
    pub sent: u64,
    /// Bytes that the receiver read.
    pub received: u64,
    /// Whether they were the sender's.
    pub intact: bool,
}

impl Transfer {
    /// Fails unless every byte has arrived.
    pub fn check(&self) {
        assert!(self.intact && self.sent == self.received && self.sent > 0, "{self:?}");
    }
}

/// A part of the kernel's `tcp_info`.
#[derive(Clone, Copy, Debug)]
pub struct TcpInfo {
    /// Packets.
    pub cwnd: u32,
    /// Bytes per second.
    pub pacing: u64,
    /// Payload bytes.
    pub acked: u64,
}

impl TcpInfo {
    /// Of a socket now.
    pub fn of(stream: &TcpStream) -> Self {
        let mut bytes = [0_u8; 256];
        let mut length = 256;
        // SAFETY: as many bytes as `length` says.
        let done = unsafe {
            let to = bytes.as_mut_ptr().cast();
            let fd = stream.as_raw_fd();
            libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &raw mut length)
        };
        assert_eq!(done, 0, "getsockopt(TCP_INFO)");
        let cwnd = u32::from_ne_bytes(bytes[80..84].try_into().expect("4 bytes"));
        let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
        Self { cwnd, pacing: long(104), acked: long(120) }
    }
}

fn open(to: SocketAddr, congestion_control: &str, mptcp: bool) -> std::io::Result<TcpStream> {
    let stream = TcpStream::from(stream_socket(to.ip(), mptcp)?);
    setsockopt(&stream, sockopt::TcpCongestion, &congestion_control.into())?;
    connect(stream.as_raw_fd(), &SockaddrStorage::from(to))?;
    stream.set_nonblocking(true)?;
    Ok(stream)
}

fn listen(at: IpAddr, mptcp: bool) -> std::io::Result<TcpListener> {
    let socket = stream_socket(at, mptcp)?;
    bind(socket.as_raw_fd(), &SockaddrStorage::from(SocketAddr::new(at, 0)))?;
    socket::listen(&socket, Backlog::MAXCONN)?;
    Ok(socket.into())
}

/// Of TCP or MPTCP.
pub fn stream_socket(of: IpAddr, mptcp: bool) -> std::io::Result<OwnedFd> {
    let family = if of.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    let protocol = if mptcp { libc::IPPROTO_MPTCP } else { libc::IPPROTO_TCP };
    // SAFETY: a call without pointers; what it returns is nobody else's.
    unsafe {
        let socket = libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, protocol);
        if socket < 0 {
            Err(std::io::Error::last_os_error())
        } else {
            Ok(OwnedFd::from_raw_fd(socket))
        }
    }
}

fn receive(listener: &TcpListener) -> (u64, bool) {
    let (mut stream, _) = listener.accept().expect("a connection");
    let mut pattern = Pattern::default();
    let (mut received, mut intact) = (0, true);
    let mut wanted: Vec<u8> = Vec::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let length = stream.read(&mut buffer).expect("data");
        if length == 0 {
            return (received, intact);
        }
        while wanted.len() < length {
            wanted.extend(pattern.block());
        }
        intact &= wanted[..length] == buffer[..length];
        wanted.drain(..length);
        received += length as u64;
    }
}

/// Bytes without a period (xorshift).
struct Pattern(u64);

impl Default for Pattern {
    fn default() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }
}

impl Pattern {
    fn block(&mut self) -> Vec<u8> {
        let mut next = || {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0.to_ne_bytes()
        };
        (0..8192).flat_map(|_| next()).collect()
    }
}

/// An agent at work in a thread.
pub struct Served {
    /// What its congestion control is called.
    pub name: String,
    opened: Arc<AtomicUsize>,
    closed: Arc<Mutex<Vec<(FlowKey, FlowTotals)>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Totals>>,
}

type Build = Box<dyn FnMut(&FlowKey, &FlowInfo) -> Option<Box<dyn Coupled>> + Send>;

struct With {
    build: Build,
    group: Group,
    opened: Arc<AtomicUsize>,
    closed: Arc<Mutex<Vec<(FlowKey, FlowTotals)>>>,
}

impl Assign for With {
    fn group(&mut self, _: &FlowKey) -> Group {
        self.opened.fetch_add(1, Ordering::Relaxed);
        self.group
    }
    fn governor(&mut self, key: &FlowKey, info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        (self.build)(key, info)
    }
    fn closed(&mut self, key: &FlowKey, _counters: Counters, totals: &FlowTotals) {
        self.closed.lock().expect("no panic").push((*key, *totals));
    }
}

impl Served {
    /// Serves what `build` makes, under a name of this process and `label` (at most 5 letters).
    pub fn with(
        label: &str,
        build: impl FnMut(&FlowKey, &FlowInfo) -> Option<Box<dyn Coupled>> + Send + 'static,
    ) -> Self {
        Self::grouped(label, Group::Flow, build)
    }

    /// The same with one governor for each `group` of flows.
    pub fn grouped(
        label: &str,
        group: Group,
        build: impl FnMut(&FlowKey, &FlowInfo) -> Option<Box<dyn Coupled>> + Send + 'static,
    ) -> Self {
        Self::every(label, Options::default().interval, group, build)
    }

    /// The same with records at most this far apart.
    fn every(
        label: &str,
        interval: Span,
        group: Group,
        build: impl FnMut(&FlowKey, &FlowInfo) -> Option<Box<dyn Coupled>> + Send + 'static,
    ) -> Self {
        let name = format!("ak{label}{}", std::process::id());
        let closed = Arc::new(Mutex::new(Vec::new()));
        let opened = Arc::new(AtomicUsize::new(0));
        let assign = With {
            build: Box::new(build),
            group,
            opened: Arc::clone(&opened),
            closed: Arc::clone(&closed),
        };
        let options =
            Options { name: name.clone(), pins: None, interval, slots: 64, ..Options::default() };
        let mut agent = Agent::start(&options, Box::new(assign)).expect("a congestion control");
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let thread = Some(thread::spawn(move || {
            agent.run(&flag).expect("served");
            agent.totals()
        }));
        Self { name, opened, closed, stop, thread }
    }

    /// Serves one of the project's controllers with its defaults.
    pub fn controller(label: &str, name: &str) -> Self {
        Self::controller_every(label, name, Options::default().interval)
    }

    /// The same with records at most this far apart.
    pub fn controller_every(label: &str, name: &str, interval: Span) -> Self {
        let spec = controllers::find(name).expect("a controller");
        Self::every(label, interval, Group::Flow, move |_, _| {
            Some(Box::new(controllers::per_flow(spec, Params::defaults(spec.params))))
        })
    }

    /// Serves what `build` makes for each flow, and notes what it is told.
    pub fn logged(
        label: &str,
        build: impl Fn(&FlowInfo) -> Box<dyn Controller> + Send + Clone + 'static,
    ) -> (Self, Arc<Mutex<Log>>) {
        let log = Arc::new(Mutex::new(Log::default()));
        let shared = Arc::clone(&log);
        let served = Self::with(label, move |_, _| {
            let (log, build) = (Arc::clone(&shared), build.clone());
            Some(Box::new(PerFlow::new(move |info: &FlowInfo| -> Box<dyn Controller> {
                Box::new(Logged { inner: build(info), log: Arc::clone(&log) })
            })))
        });
        (served, log)
    }

    /// Stops, once all flows have ended: a socket lets go of its congestion control a round trip
    /// after its last byte. The counts over all flows and of each that was closed.
    pub fn finish(self) -> (Totals, Vec<(FlowKey, FlowTotals)>) {
        self.finish_without(0)
    }

    /// The same if so many flows lost their controllers, whose end is not reported.
    pub fn finish_without(mut self, lost: usize) -> (Totals, Vec<(FlowKey, FlowTotals)>) {
        let all_ended = || {
            let closed = self.closed.lock().expect("no panic").len();
            closed + lost == self.opened.load(Ordering::Relaxed)
        };
        wait_until("all flows end", all_ended);
        self.stop.store(true, Ordering::Relaxed);
        let totals = self.thread.take().expect("not yet finished").join().expect("no panic");
        let closed = std::mem::take(&mut *self.closed.lock().expect("no panic"));
        (totals, closed)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a controller was told.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// Every acknowledgement.
    pub acks: Vec<Ack>,
    /// Every loss.
    pub losses: Vec<Loss>,
}

impl Log {
    /// How many losses of a kind.
    pub fn count(&self, kind: LossKind) -> u64 {
        self.losses.iter().filter(|loss| loss.kind == kind).count() as u64
    }
}

struct Logged {
    inner: Box<dyn Controller>,
    log: Arc<Mutex<Log>>,
}

impl Controller for Logged {
    fn on_ack(&mut self, ack: &Ack) {
        self.log.lock().expect("no panic").acks.push(*ack);
        self.inner.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.log.lock().expect("no panic").losses.push(*loss);
        self.inner.on_loss(loss);
    }
    fn on_timer(&mut self, now: Time) {
        self.inner.on_timer(now);
    }
    fn next_timer(&self) -> Option<Time> {
        self.inner.next_timer()
    }
    fn control(&self) -> Control {
        self.inner.control()
    }
}

/// Never decides anything else.
pub struct Fixed(pub Control);

impl Controller for Fixed {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn control(&self) -> Control {
        self.0
    }
}
