//! Both ends of all connections of QUIC: noq as in virtual time, but with sockets, in the time of this machine. One
//! thread sends a datagram per call, without segmentation offload, when noq's pacer wants it.
use super::plan::{Family, Flow, Plan};
use super::receivers::PORT;
use super::run::{Client, Options};
use super::senders::{ConnectionCounts, Sent};
use crate::clock;
use crate::error::Error;
use crate::link::delays::Delays;
use crate::link::fabric::Losses;
use crate::namespace::Namespace;
use ackademy::sim::plan::NetworkPlan;
use ackademy::units::{Span, Time};
use ackademy_quic::Refused;
use ackademy_quic::virtual_time::{self, Datagram, Quic};
use bytes::BytesMut;
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::socket::{setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use noq::EcnCodepoint;
use noq::udp::{self, RecvMeta, UdpSocketState};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The connections of a scenario before the run.
///
/// # Errors
///
/// If QUIC cannot do what the scenario or the options ask.
pub(super) fn ends(network: &NetworkPlan, options: &Options) -> Result<Quic, Error> {
    if options.family == Family::V6 {
        return Err(Error::Input("--ipv6: allowed with --over quic is IPv4".to_owned()));
    }
    if options.client == Client::Iperf3 {
        return Err(Error::Input("--client iperf3: allowed with --over tcp".to_owned()));
    }
    virtual_time::check(network).map_err(refused)?;
    Ok(Quic::new(network, options.seed).map_err(refused)?.in_real_time())
}

/// The connections with their sockets.
pub(super) struct Ends {
    quic: Quic,
    sockets: Vec<Socket>,
    /// By row: where data leaves, and where it goes.
    senders: Vec<(usize, SocketAddr)>,
    /// By row: where acknowledgements leave, and where they go.
    receivers: Vec<(usize, SocketAddr)>,
    /// Packets of each row that the network has dropped or lost.
    losses: Vec<Losses>,
    epoll: Epoll,
    timer: TimerFd,
    epoch: Time,
    duration: Time,
    /// How late this thread handled what was due.
    lateness: Delays,
    buffer: Vec<u8>,
}

struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
    /// Whether data arrives here, and the rows by the address of their other end.
    takes_data: bool,
    rows: BTreeMap<IpAddr, u32>,
}

impl Ends {
    /// Opens the sockets of all flows in their hosts; `timed`: losses by row, when the run begins, and how long it is.
    pub(super) fn new(
        quic: Quic,
        plan: &Plan,
        hosts: &[(Namespace, Namespace)],
        timed: (Vec<Losses>, Time, Time),
    ) -> Result<Self, Error> {
        let (losses, epoch, duration) = timed;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let mut ends = Self {
            quic,
            sockets: Vec::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
            losses,
            epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(system)?,
            timer: TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(system)?,
            epoch,
            duration,
            lateness: Delays::default(),
            buffer: vec![0; 1 << 16],
        };
        let timer = EpollEvent::new(EpollFlags::EPOLLIN, TIMER);
        ends.epoll.add(&ends.timer, timer).map_err(system)?;
        for flow in &plan.flows {
            ends.open(flow, &hosts[flow.pair])?;
        }
        Ok(ends)
    }

    /// A socket for the receiver, and one for each path at the sender.
    fn open(&mut self, flow: &Flow, hosts: &(Namespace, Namespace)) -> Result<(), Error> {
        let receiver = SocketAddr::new(flow.receiver, PORT);
        let rows = (flow.first_row as u32..).zip(&flow.subflows);
        let of_data = rows.clone().map(|(row, subflow)| (subflow.sender, row)).collect();
        let at_receiver = self.add(&hosts.1, receiver, (true, of_data))?;
        for (row, subflow) in rows {
            let sender = SocketAddr::new(subflow.sender, PORT);
            let of_acks = BTreeMap::from([(flow.receiver, row)]);
            let at_sender = self.add(&hosts.0, sender, (false, of_acks))?;
            self.senders.push((at_sender, receiver));
            self.receivers.push((at_receiver, sender));
        }
        Ok(())
    }

    fn add(
        &mut self,
        host: &Namespace,
        at: SocketAddr,
        (takes_data, rows): (bool, BTreeMap<IpAddr, u32>),
    ) -> Result<usize, Error> {
        let fail = |error: io::Error| Error::System(format!("a socket at {at}: {error}"));
        let io = host.inside(|| UdpSocket::bind(at).map_err(fail))?;
        let state = UdpSocketState::new((&io).into()).map_err(fail)?;
        // Refused, the usual size has to do: this thread reads at once.
        let _ = setsockopt(&io, sockopt::RcvBufForce, &BUFFER_BYTES);
        let event = EpollEvent::new(EpollFlags::EPOLLIN, self.sockets.len() as u64);
        self.epoll.add(&io, event).map_err(system)?;
        self.sockets.push(Socket { io, state, takes_data, rows });
        Ok(self.sockets.len() - 1)
    }

    /// Runs to the end of the scenario, or until `stop`.
    ///
    /// # Errors
    ///
    /// If noq closes a connection, or the system refuses what it should not.
    pub(super) fn run(mut self, stop: &AtomicBool, lateness_max: Span) -> Result<Sent, Error> {
        let mut events = [EpollEvent::empty(); 64];
        std::thread::sleep(Duration::from_nanos(self.epoch.since(clock::now()).0));
        while self.now() < self.duration && !stop.load(Ordering::Relaxed) {
            self.act()?;
            self.set_timer()?;
            let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Err(Errno::EINTR) => 0,
                other => other.map_err(system)?,
            };
            for event in &events[..count] {
                if event.data() == TIMER {
                    let _ = self.timer.wait();
                } else {
                    self.receive(event.data() as usize)?;
                }
            }
        }
        self.quic.reach(self.duration).map_err(failed)?;
        Ok(self.finish(lateness_max))
    }

    /// Time since the run began.
    fn now(&self) -> Time {
        Time(clock::now().since(self.epoch).0)
    }

    /// Handles what is due, and sends.
    fn act(&mut self) -> Result<(), Error> {
        let now = self.now();
        let due = self.quic.next_due();
        if due <= now {
            self.lateness.record(now.since(due));
            for (row, losses) in self.losses.iter().enumerate() {
                self.quic.set_lost(row as u32, losses.packets());
            }
            self.quic.reach(now).map_err(failed)?;
        }
        self.send();
        Ok(())
    }

    fn send(&mut self) {
        for Datagram { row, is_data, bytes, ecn } in self.quic.outgoing() {
            let ways = if is_data { &self.senders } else { &self.receivers };
            let (from, destination) = ways[row as usize];
            let Socket { io, state, .. } = &self.sockets[from];
            let transmit = udp::Transmit {
                destination,
                ecn: ecn.map(|ecn| match ecn {
                    EcnCodepoint::Ect0 => udp::EcnCodepoint::Ect0,
                    EcnCodepoint::Ect1 => udp::EcnCodepoint::Ect1,
                    EcnCodepoint::Ce => udp::EcnCodepoint::Ce,
                }),
                contents: &bytes,
                segment_size: None,
                src_ip: None,
            };
            // A full queue of the host drops it, as a real host's would.
            let _ = state.try_send(io.into(), &transmit);
        }
    }

    /// Reads what has arrived at a socket, up to a bound: the others have their turn.
    fn receive(&mut self, index: usize) -> Result<(), Error> {
        for _ in 0..READS {
            let Socket { io, state, takes_data, rows } = &self.sockets[index];
            let mut meta = [RecvMeta::default()];
            let mut parts = [IoSliceMut::new(&mut self.buffer)];
            match state.recv(io.into(), &mut parts, &mut meta) {
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(Error::System(format!("a socket of QUIC: {error}"))),
            }
            let [RecvMeta { addr, len, stride, ecn, .. }] = meta;
            let Some(&row) = rows.get(&addr.ip()) else { continue };
            let is_data = *takes_data;
            let ecn = ecn.map(|ecn| match ecn {
                udp::EcnCodepoint::Ect0 => EcnCodepoint::Ect0,
                udp::EcnCodepoint::Ect1 => EcnCodepoint::Ect1,
                udp::EcnCodepoint::Ce => EcnCodepoint::Ce,
            });
            let now = self.now();
            for bytes in self.buffer[..len].chunks(stride.max(1)) {
                let bytes = BytesMut::from(bytes);
                let arrived = Datagram { row, is_data, bytes, ecn };
                self.quic.arrive(now, arrived).map_err(failed)?;
            }
            self.send();
        }
        Ok(())
    }

    /// Wakes this thread when something is due next.
    fn set_timer(&mut self) -> Result<(), Error> {
        let next = self.quic.next_due().min(self.duration);
        // Zero would stop the timer.
        let wait = next.since(self.now()).0.clamp(1, LOOK.0);
        let wait = TimeSpec::new(0, wait as i64);
        self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty()).map_err(system)
    }

    fn finish(self, lateness_max: Span) -> Sent {
        let late = self.lateness.quantile(0.99);
        let outcome = self.quic.finish();
        let connections = outcome
            .connections
            .iter()
            .map(|row| ConnectionCounts { goodput_bytes: row.goodput_bytes, reinjected_bytes: 0 });
        let failures = (late > lateness_max)
            .then(|| format!("p99 lateness of the ends {late} exceeds {lateness_max}"));
        Sent {
            connections: connections.collect(),
            rows: outcome.flows,
            series: outcome.flow_series,
            failures: failures.into_iter().collect(),
        }
    }
}

fn refused(error: Refused) -> Error {
    Error::Input(error.0)
}

fn failed(error: Refused) -> Error {
    Error::System(error.0)
}

fn system(error: Errno) -> Error {
    Error::System(format!("ends of QUIC: {error}"))
}

/// The timer's place in the list of events.
const TIMER: u64 = u64::MAX;
/// How often `stop` is looked at.
const LOOK: Span = Span::from_millis(50);
/// Datagrams read from a socket before the others have their turn.
const READS: usize = 32;
/// Of what the kernel keeps of a socket's arrivals.
const BUFFER_BYTES: usize = 1 << 22;
