//! One thread that moves packets between TUN devices and the [`Fabric`], each as close to its time
//! as the machine allows.
use super::delays::Delays;
use super::fabric::{Fabric, Totals};
use super::tun::Port;
use crate::clock;
use crate::error::Error;
use crate::priority;
use ackademy::units::{Span, Time};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::time::TimeSpec;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When the network's time 0 is, on [`clock::now`]; schedules, traces and samples begin there.
    /// What enters before it enters at time 0. `None`: when the emulator starts to run.
    pub epoch: Option<Time>,
    /// Busy-wait for the last part of every wait: less lateness for more CPU.
    pub spin: Span,
    /// Real-time priority (`SCHED_FIFO`), if the process may: it takes `CAP_SYS_NICE`.
    pub realtime: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { epoch: None, spin: Span::ZERO, realtime: true }
    }
}

/// What a run leaves behind.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the network counted.
    pub network: Totals,
    /// How late packets were handed to their namespaces.
    pub lateness: Delays,
    /// Packets that the kernel dropped because this process did not read them in time: losses that
    /// no link decided.
    pub missed: u64,
    /// Whether the thread had real-time priority.
    pub realtime: bool,
    /// How long it ran, from the epoch.
    pub elapsed: Span,
}

/// What an observer sees of a run.
pub struct Progress<'a> {
    /// Time since the epoch.
    pub now: Time,
    /// The network.
    pub fabric: &'a mut Fabric,
    /// Lateness so far.
    pub lateness: &'a Delays,
    /// Bytes delivered so far, per port.
    pub delivered: &'a [u64],
}

/// Devices and the network between them.
pub struct Emulator {
    ports: Vec<Port>,
    fabric: Fabric,
    options: Options,
    lateness: Delays,
    delivered: Vec<u64>,
    buffer: Vec<u8>,
}

/// Packets read from a device before the others, and what is due, have their turn.
const BATCH: usize = 32;
/// Longest sleep: so late `stop` is seen.
const SLEEP_MAX: Span = Span::from_millis(20);

impl Emulator {
    /// Ready to run; port numbers of the fabric are indices of `ports`.
    pub fn new(ports: Vec<Port>, fabric: Fabric, options: Options) -> Self {
        let largest = ports.iter().map(|port| port.plan().mtu).max().unwrap_or(0);
        let delivered = vec![0; ports.len()];
        let buffer = vec![0; largest as usize];
        Self { ports, fabric, options, lateness: Delays::default(), delivered, buffer }
    }

    /// Carries packets until `stop` is set. Give it a thread of its own, whose scheduling it
    /// changes.
    ///
    /// # Errors
    ///
    /// If a device goes away.
    pub fn run(self, stop: &AtomicBool) -> Result<Report, Error> {
        self.run_observed(stop, Span::MAX, &mut |_| ())
    }

    /// As [`Self::run`], and lets `observe` look every so often.
    ///
    /// # Errors
    ///
    /// See [`Self::run`].
    pub fn run_observed(
        mut self,
        stop: &AtomicBool,
        every: Span,
        observe: &mut dyn FnMut(&mut Progress),
    ) -> Result<Report, Error> {
        let realtime = self.options.realtime && priority::realtime(priority::EMULATOR);
        // Ordinary timers may be 50 us late to save wake-ups; refused, they are.
        let _ = set_timerslack(1);
        let epoch = self.options.epoch.unwrap_or_else(clock::now);
        let now = || Time(clock::now().since(epoch).0);
        let mut next_look = Time(0) + every;
        while !stop.load(Ordering::Relaxed) {
            let readable = self.wait(now(), next_look)?;
            for port in readable {
                self.read(port, &now)?;
            }
            self.deliver(&now)?;
            if now() >= next_look {
                next_look += every;
                observe(&mut Progress {
                    now: now(),
                    fabric: &mut self.fabric,
                    lateness: &self.lateness,
                    delivered: &self.delivered,
                });
            }
        }
        let end = now();
        let missed = self.ports.iter().map(Port::dropped).sum::<Result<u64, Error>>()?;
        Ok(Report {
            network: self.fabric.finish(end),
            lateness: self.lateness,
            missed,
            realtime,
            elapsed: Span(end.0),
        })
    }

    /// Sleeps until a device has packets, or something is about to be due. Returns the devices.
    fn wait(&mut self, now: Time, next_look: Time) -> Result<Vec<usize>, Error> {
        let due = self.fabric.next_due().unwrap_or(Time::NEVER);
        let sleep = Span(due.since(now).0.saturating_sub(self.options.spin.0));
        let sleep = sleep.min(next_look.since(now)).min(SLEEP_MAX);
        let fds = self.ports.iter().map(|port| PollFd::new(port.as_fd(), PollFlags::POLLIN));
        let mut fds: Vec<PollFd> = fds.collect();
        match ppoll(&mut fds, Some(TimeSpec::from(Duration::from_nanos(sleep.0))), None) {
            Ok(0) | Err(Errno::EINTR) => Ok(Vec::new()),
            Ok(_) => {
                let ready = |fd: &PollFd| fd.any().unwrap_or(true);
                Ok((0..fds.len()).filter(|&port| ready(&fds[port])).collect())
            }
            Err(error) => Err(Error::System(format!("ppoll: {error}"))),
        }
    }

    fn read(&mut self, port: usize, now: &impl Fn() -> Time) -> Result<(), Error> {
        for _ in 0..BATCH {
            let Some(bytes) = self.ports[port].read(&mut self.buffer)? else { break };
            self.fabric.inject(now(), port, bytes);
        }
        Ok(())
    }

    /// Hands over what is due by now; what becomes due meanwhile waits for the devices' turn.
    fn deliver(&mut self, now: &impl Fn() -> Time) -> Result<(), Error> {
        let by = now();
        while let Some(packet) = self.fabric.pop_due(by) {
            self.lateness.record(now().since(packet.due));
            self.delivered[packet.port] += packet.bytes.len() as u64;
            self.ports[packet.port].write(packet.bytes)?;
        }
        Ok(())
    }
}
