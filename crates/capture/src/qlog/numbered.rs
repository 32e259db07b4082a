//! The qlog of senders that number their packets themselves, as those of QUIC do.
use super::board::ranges;
use super::records::{
    self, Event, Head, Metrics, PacketLost, PacketReceived, PacketSent, StateUpdated,
};
use super::state_of;
use crate::failure::Output;
use ackademy::control::{Ack, Control};
use ackademy::units::Time;
use std::sync::{Arc, Mutex, PoisonError};

/// Writes what they do, while they do it.
#[derive(Clone)]
pub struct Numbered(Arc<Mutex<Log>>);

struct Log {
    out: Output,
    /// If there may be several.
    names: Option<Vec<String>>,
}

impl std::fmt::Debug for Numbered {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Numbered").finish_non_exhaustive()
    }
}

impl Numbered {
    /// Begins a file about one sender, or about senders that are [named](Self::flow) later; `about` says what it is.
    pub fn new(mut out: Output, about: &str, only: Option<&str>) -> Self {
        out.write(|out| records::write(out, &Head::new(about, "QUIC", only)));
        let names = only.is_none().then(Vec::new);
        Self(Arc::new(Mutex::new(Log { out, names })))
    }

    /// What is written of one more sender.
    pub fn flow(&self, name: &str) -> Sender {
        let flow = self.with(|log| {
            let names = log.names.as_mut();
            names.map_or(0, |names| {
                names.push(name.to_owned());
                names.len() - 1
            })
        });
        let (log, metrics, state) = (self.clone(), Metrics::default(), "");
        Sender { log, flow, metrics, state, acks: 0, acked: Vec::new(), space: 0, latest: None }
    }

    /// Writes what is buffered.
    pub fn flush(&self) {
        self.with(|log| log.out.flush());
    }

    fn with<T>(&self, work: impl FnOnce(&mut Log) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// One of these senders.
#[derive(Debug)]
pub struct Sender {
    log: Numbered,
    flow: usize,
    metrics: Metrics,
    state: &'static str,
    acks: u64,
    /// By the acknowledgement that is being handled.
    acked: Vec<u64>,
    /// Of QUIC's packet number spaces.
    space: usize,
    latest: Option<u64>,
}

impl Sender {
    /// A packet leaves. A number that does not rise begins the next space.
    pub fn sent(&mut self, at: Time, number: u64, size: u32) {
        if self.latest.is_some_and(|latest| number <= latest) {
            self.space = (self.space + 1).min(SPACES.len() - 1);
        }
        self.latest = Some(number);
        self.write(at, PacketSent::of_space(SPACES[self.space], number, size));
    }

    /// A packet is acknowledged.
    pub fn acked(&mut self, number: u64) {
        self.acked.push(number);
    }

    /// A packet is declared lost.
    pub fn lost(&mut self, at: Time, number: u64) {
        self.write(at, PacketLost::of_number(number));
    }

    /// The acknowledgement is handled; this is what the sender knows, and what its controller allows.
    pub fn told(&mut self, ack: &Ack, control: &Control) {
        let (number, ranges) = (self.acks, ranges(std::mem::take(&mut self.acked)));
        self.acks += 1;
        self.write(ack.now, PacketReceived::of_ranges(number, &ranges));
        self.update(ack.now, Metrics::of_control(control).with_ack(ack));
        self.enter(ack.now, state_of(control, ack.recovering != 0));
    }

    /// The controller has been told of losses.
    pub fn reduced(&mut self, at: Time, control: &Control) {
        self.update(at, Metrics::of_control(control));
        self.enter(at, Some("recovery"));
    }

    fn update(&mut self, at: Time, metrics: Metrics) {
        if let Some(news) = metrics.news(&mut self.metrics) {
            self.write(at, news);
        }
    }

    fn enter(&mut self, at: Time, state: Option<&'static str>) {
        if let Some(new) = state.filter(|&new| new != self.state) {
            self.state = new;
            self.write(at, StateUpdated { new });
        }
    }

    fn write<D: records::Data>(&self, at: Time, data: D) {
        let flow = self.flow;
        self.log.with(|Log { out, names }| {
            let group = names.as_ref().map(|names| &*names[flow]);
            out.write(|out| records::write(out, &Event::new(at, group, data)));
        });
    }
}

/// Types of packets, in the order in which a connection uses them.
const SPACES: [&str; 3] = ["initial", "handshake", "1RTT"];
