//! The sending ends: one thread opens all connections, writes what the simulator's applications
//! would hand over, and reads what the kernel measured.
use super::sender::{Sender, Setting, Socket, datagram_payload};
use super::sockets;
use super::tcp_info::unacknowledged;
use super::watch::READING;
use crate::clock;
use crate::error::Error;
use ackademy::sim::plan::TrafficSpec;
use ackademy::sim::record::{FlowRow, FlowSeries};
use ackademy::units::{Bytes, Rate, Span, Time};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What the senders leave behind.
#[derive(Debug)]
pub struct Sent {
    /// One row per subflow; what only the network knows is not filled in.
    pub rows: Vec<FlowRow>,
    /// What was counted of each connection.
    pub connections: Vec<ConnectionCounts>,
    /// Samples.
    pub series: FlowSeries,
    /// Flows that did not go as planned, one line each.
    pub failures: Vec<String>,
}

/// What only the level of a connection knows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Payload that the receiver's application read, in order.
    pub goodput_bytes: u64,
    /// Payload that MPTCP sent again.
    pub reinjected_bytes: u64,
}

impl Sent {
    /// Takes over what somebody else measured of a flow with one row.
    pub fn adopt(&mut self, row: usize, said: Result<(FlowRow, FlowSeries), Error>) {
        match said {
            Ok((measured, series)) => {
                self.rows[row] = measured;
                self.series.append(series);
            }
            Err(error) => self.failures.push(error.to_string()),
        }
    }
}

/// All senders of a run.
pub struct Senders<'a> {
    setting: Setting<'a>,
    ends: Vec<Sender>,
    /// When each application acts next without an event from outside, earliest first.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    epoll: Epoll,
    timer: TimerFd,
    next_reading: Time,
    next_sample: Time,
    series: FlowSeries,
}

impl<'a> Senders<'a> {
    /// Senders before the run.
    ///
    /// # Errors
    ///
    /// If the system refuses what it should not.
    pub fn new(setting: Setting<'a>) -> Result<Self, Error> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC).map_err(failed)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(failed)?;
        epoll.add(&timer, EpollEvent::new(EpollFlags::EPOLLIN, TIMER)).map_err(failed)?;
        let own = setting.flows.iter().enumerate().filter(|(_, flow)| !setting.is_foreign(flow));
        Ok(Self {
            due: own.map(|(index, flow)| Reverse((flow.start, index))).collect(),
            ends: setting.flows.iter().map(|flow| Sender::new(flow, &setting)).collect(),
            epoll,
            timer,
            next_reading: Time(0),
            next_sample: if setting.sample_interval > Span::ZERO { Time(0) } else { Time::NEVER },
            series: FlowSeries::default(),
            setting,
        })
    }

    /// Sends until the end of the run, or until `stop`.
    ///
    /// # Errors
    ///
    /// If the system refuses what it should not.
    pub fn run(mut self, stop: &AtomicBool) -> Result<Sent, Error> {
        let mut events = [EpollEvent::empty(); 64];
        let lead = self.setting.epoch.since(clock::now());
        std::thread::sleep(Duration::from_nanos(lead.0));
        let end = self.setting.duration;
        let mut now = self.now();
        while now < end && !stop.load(Ordering::Relaxed) {
            self.act(now);
            self.measure(now);
            self.set_timer()?;
            let count = match self.epoll.wait(&mut events, EpollTimeout::NONE) {
                Err(Errno::EINTR) => 0,
                other => other.map_err(failed)?,
            };
            for event in &events[..count] {
                if event.data() == TIMER {
                    let _ = self.timer.wait();
                } else {
                    self.on_writable(event.data() as usize);
                }
            }
            now = self.now();
        }
        Ok(self.finish(now.min(end)))
    }

    /// Time since the run began.
    fn now(&self) -> Time {
        Time(clock::now().since(self.setting.epoch).0)
    }

    /// Everything whose time has come.
    fn act(&mut self, now: Time) {
        while let Some(&Reverse((at, index))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            if self.ends[index].failure.is_some() {
                continue;
            }
            if matches!(self.ends[index].socket, Socket::None) {
                self.open(index, now);
            } else if matches!(self.ends[index].socket, Socket::Datagrams(..)) {
                self.send_datagrams(index, now);
            } else if self.ends[index].app.next == at {
                self.offer(index, now);
            }
        }
    }

    /// The time of a flow has come: its first byte follows when it is connected.
    fn open(&mut self, index: usize, now: Time) {
        let flow = &self.setting.flows[index];
        let (pair, host) = self.setting.hosts[flow.pair];
        if let Err(error) = host.enter() {
            self.ends[index].fail(flow, &error);
            return;
        }
        if let TrafficSpec::Cbr { rate_mbps, packet_bytes } = flow.plan.traffic {
            let every = Rate::from_mbps(rate_mbps).time_for(Bytes(u64::from(packet_bytes)));
            let payload = datagram_payload(flow, packet_bytes);
            return self.open_datagrams(index, now, payload, every.max(Span(1)));
        }
        let name = sockets::congestion_control(flow, self.setting.agent);
        let opened = sockets::connect_stream(flow, pair, name).and_then(|stream| {
            let wanted = EpollFlags::EPOLLOUT | EpollFlags::EPOLLET;
            self.epoll.add(&stream, EpollEvent::new(wanted, index as u64))?;
            Ok(stream)
        });
        match opened {
            Ok(stream) => self.ends[index].socket = Socket::Connecting(stream),
            Err(error) => self.ends[index].fail(flow, &error),
        }
    }

    fn open_datagrams(&mut self, index: usize, now: Time, payload: usize, every: Span) {
        let flow = &self.setting.flows[index];
        let sender = &mut self.ends[index];
        match sockets::datagram_socket(flow) {
            Ok(socket) => {
                sender.socket = Socket::Datagrams(socket, payload, every, now);
                sender.begun = now;
                sender.app.on_time(now, 0);
                self.send_datagrams(index, now);
            }
            Err(error) => sender.fail(flow, &error),
        }
    }

    /// A connection is made, has room again, or has failed.
    fn on_writable(&mut self, index: usize) {
        let now = self.now();
        let flow = &self.setting.flows[index];
        let sender = &mut self.ends[index];
        let error = match &sender.socket {
            Socket::Connecting(stream) | Socket::Open(stream) => stream.take_error(),
            _ => return,
        };
        if let Ok(Some(error)) | Err(error) = error {
            sender.fail(flow, &error);
            return;
        }
        match std::mem::replace(&mut sender.socket, Socket::None) {
            Socket::Connecting(stream) => {
                sender.socket = Socket::Open(stream);
                sender.begun = now;
                self.offer(index, now);
            }
            other => {
                sender.socket = other;
                self.write(index);
            }
        }
    }

    /// The application of a flow acts.
    fn offer(&mut self, index: usize, now: Time) {
        let Sender { app, socket, .. } = &mut self.ends[index];
        let in_socket = match socket {
            Socket::Open(stream) => unacknowledged(stream.as_fd()).unwrap_or(0),
            _ => 0,
        };
        app.on_time(now, in_socket);
        if let Some(next) = app.to_schedule() {
            self.due.push(Reverse((next, index)));
        }
        self.write(index);
    }

    /// Hands the kernel what it takes.
    fn write(&mut self, index: usize) {
        let sender = &mut self.ends[index];
        let Socket::Open(stream) = &sender.socket else { return };
        let supply = &mut sender.app.supply;
        while supply.unsent > 0 {
            let max = supply.unsent.min(CHUNK) as usize;
            let part = self.setting.content.part(index, sender.written, max);
            match sockets::write(stream, part, supply.unsent > max as u64) {
                Ok(count) => {
                    sender.written += count as u64;
                    supply.take(count as u64);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) => return sender.fail(&self.setting.flows[index], &error),
            }
        }
    }

    fn send_datagrams(&mut self, index: usize, now: Time) {
        let sender = &mut self.ends[index];
        let stop = sender.app.stop();
        let Socket::Datagrams(socket, payload, every, next) = &mut sender.socket else { return };
        while *next <= now && *next < stop {
            let part = self.setting.content.part(index, sender.written, *payload);
            // A full queue of the host drops it, as a real host's would.
            if socket.send(part).is_ok() {
                sender.written += 1;
            }
            *next += *every;
        }
        if *next < stop {
            self.due.push(Reverse((*next, index)));
        }
    }

    /// Ends transfers that are acknowledged; reads the kernel's measurements when it is time.
    fn measure(&mut self, now: Time) {
        for index in 0..self.ends.len() {
            self.finish_transfer(index, now);
        }
        if now < self.next_reading.min(self.next_sample) {
            return;
        }
        for (index, sender) in self.ends.iter_mut().enumerate() {
            // What happens to a flow without data is what has happened; one reading sees the end.
            let active = sender.app.supply.unsent > 0 || sender.app.may_finish();
            if active || sender.active {
                let arrived = self.setting.arrived[index].bytes.load(Ordering::Relaxed);
                sender.read(&self.setting.flows[index], arrived);
            }
            sender.active = active;
        }
        self.next_reading = now + READING;
        self.sample_until(now);
    }

    /// The latest readings as samples of every instant that has come: as many rows as in the
    /// simulator, also if this thread slept.
    fn sample_until(&mut self, now: Time) {
        while self.next_sample <= now {
            let at = self.next_sample;
            for (sender, flow) in self.ends.iter().zip(self.setting.flows) {
                if flow.start > at || self.setting.is_foreign(flow) {
                    continue;
                }
                for (row, watch) in (flow.first_row..).zip(&sender.watches) {
                    watch.sample(at, row as u32, &mut self.series);
                    self.series.lost_packets.push(self.setting.losses[row].packets());
                }
            }
            self.next_sample += self.setting.sample_interval;
        }
    }

    fn finish_transfer(&mut self, index: usize, now: Time) {
        let sender = &mut self.ends[index];
        let Socket::Open(stream) = &sender.socket else { return };
        if !sender.app.may_finish() || unacknowledged(stream.as_fd()) != Some(0) {
            return;
        }
        let before = sender.app.next;
        sender.app.on_all_acknowledged(now);
        if sender.app.next != before
            && let Some(next) = sender.app.to_schedule()
        {
            self.due.push(Reverse((next, index)));
        }
    }

    /// Wakes this thread when something is due next.
    fn set_timer(&self) -> Result<(), Error> {
        let pending = self.ends.iter().any(|sender| sender.app.may_finish());
        let check = if pending { clock::now() + CHECK } else { Time::NEVER };
        let due = self.due.peek().map_or(Time::NEVER, |&Reverse((at, _))| at);
        let next = due.min(self.next_reading).min(self.next_sample).min(self.setting.duration);
        let at = (self.setting.epoch + Span(next.0)).min(check);
        // Zero would stop the timer.
        let wait = at.since(clock::now()).0.max(1);
        let wait = TimeSpec::new((wait / 1_000_000_000) as i64, (wait % 1_000_000_000) as i64);
        self.timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty()).map_err(failed)
    }

    fn finish(mut self, now: Time) -> Sent {
        let mut rows = Vec::new();
        let mut connections = Vec::new();
        let mut failures = Vec::new();
        for (index, sender) in self.ends.iter_mut().enumerate() {
            let flow = &self.setting.flows[index];
            let arrived = &self.setting.arrived[index];
            let goodput_bytes = arrived.bytes.load(Ordering::Relaxed);
            sender.read(flow, goodput_bytes);
            rows.extend((0..flow.subflows.len()).map(|it| sender.row(flow, it, arrived, now)));
            let reinjected_bytes = sender.reinjected;
            connections.push(ConnectionCounts { goodput_bytes, reinjected_bytes });
            if let Some(failure) = sender.failure.take() {
                failures.push(failure);
            } else if matches!(sender.socket, Socket::Connecting(_)) {
                failures.push(format!("flow {:?}: not connected by the end", flow.plan.name));
            }
            if let Some(missing) = sender.unopened(flow, now) {
                let name = &flow.subflows[missing].name;
                failures.push(format!("flow {name:?}: the kernel opened no such subflow"));
            }
            if arrived.corrupt.load(Ordering::Relaxed) {
                failures.push(format!("flow {:?}: other bytes arrived than sent", flow.plan.name));
            }
        }
        self.sample_until(now);
        Sent { rows, connections, series: self.series, failures }
    }
}

fn failed(error: Errno) -> Error {
    Error::System(format!("senders: {error}"))
}

/// The timer's place in the list of events.
const TIMER: u64 = u64::MAX;
/// Written at a time.
const CHUNK: u64 = 1 << 16;
/// How often a transfer is asked whether it is acknowledged: the kernel does not notify.
const CHECK: Span = Span::from_millis(1);
