//! Datagrams on the simulator's links: what they carry, and what becomes of them.
use ackademy::digest::{EMPTY, fnv1a};
use ackademy::sim::network::{Ends, Path};
use ackademy::sim::pipe::Pipe;
use ackademy::transport::packet::{Kind, Packet};
use ackademy::units::Time;
use bytes::BytesMut;
use noq_proto::EcnCodepoint;

/// What flows and the run itself wait for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Event {
    /// A timer of this end of a flow may be due; it was set for this time.
    End(u32, Side, Time),
    /// This flow's application acts.
    App(u32),
    /// The next datagram of this flow of constant rate leaves.
    Datagram(u32),
    /// Time for a row of every flow's series.
    Sample,
}

/// One of the ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Connects, and sends the data.
    Client,
    /// Receives.
    Server,
}

impl Side {
    pub(crate) fn sends(self) -> Kind {
        if self == Self::Client { Kind::Data } else { Kind::Ack }
    }

    pub(crate) fn sending(packet: &Packet) -> Self {
        if packet.kind == Kind::Data { Self::Client } else { Self::Server }
    }

    pub(crate) fn receiving(packet: &Packet) -> Self {
        if packet.kind == Kind::Data { Self::Server } else { Self::Client }
    }
}

/// What became of a flow's datagrams from the sender of its data.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sent: u64,
    pub(crate) sent_bytes: u64,
    pub(crate) received: u64,
    /// Without copies that links made.
    pub(crate) received_bytes: u64,
    pub(crate) queue_drops: u64,
    pub(crate) random_losses: u64,
    pub(crate) owd_sum: u128,
}

/// What a datagram carries.
#[derive(Clone, Debug)]
pub(crate) struct Payload {
    pub(crate) bytes: BytesMut,
    pub(crate) ecn: Option<EcnCodepoint>,
}

/// All datagrams that are on their way.
pub(crate) struct Wire {
    /// Of each row of the tables, there and back.
    pub(crate) paths: Vec<(Path, Path)>,
    /// Of each row: its connection, and which path of it.
    pub(crate) owners: Vec<(u32, usize)>,
    pub(crate) counts: Vec<Counts>,
    payloads: Vec<Option<Payload>>,
    free: Vec<u64>,
    /// Over time, size and direction of every datagram sent.
    pub(crate) digest: u64,
    pub(crate) datagrams: u64,
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            paths: Vec::new(),
            owners: Vec::new(),
            counts: Vec::new(),
            payloads: Vec::new(),
            free: Vec::new(),
            digest: EMPTY,
            datagrams: 0,
        }
    }

    /// A row of the tables: a path there and back, and what it belongs to.
    pub(crate) fn add_row(&mut self, path: (Path, Path), owner: (u32, usize)) {
        self.paths.push(path);
        self.owners.push(owner);
        self.counts.push(Counts::default());
    }

    /// Keeps a payload; the packet carries the number of its place.
    pub(crate) fn put(&mut self, payload: Payload) -> u64 {
        let place = self.free.pop().unwrap_or_else(|| {
            self.payloads.push(None);
            self.payloads.len() as u64 - 1
        });
        self.payloads[place as usize] = Some(payload);
        place
    }

    pub(crate) fn take(&mut self, packet: &Packet) -> Option<Payload> {
        let payload = self.payloads.get_mut(packet.seq as usize)?.take()?;
        self.free.push(packet.seq);
        Some(payload)
    }

    pub(crate) fn book_sent(&mut self, now: Time, packet: &Packet) {
        self.datagrams += 1;
        let direction = u64::from(packet.kind == Kind::Data);
        for part in [now.0, u64::from(packet.size), u64::from(packet.flow), direction] {
            self.digest = fnv1a(self.digest, &part.to_le_bytes());
        }
        let counts = &mut self.counts[packet.flow as usize];
        counts.sent += direction;
        counts.sent_bytes += direction * u64::from(packet.size);
    }

    pub(crate) fn book_received(&mut self, now: Time, packet: &Packet) {
        let counts = &mut self.counts[packet.flow as usize];
        counts.received += 1;
        counts.received_bytes += if packet.copy { 0 } else { u64::from(packet.size) };
        counts.owd_sum += u128::from(now.since(packet.sent_at).0);
    }

    fn book_loss(&mut self, packet: &Packet, count: fn(&mut Counts) -> &mut u64) {
        self.take(packet);
        if packet.kind == Kind::Data && !packet.copy {
            *count(&mut self.counts[packet.flow as usize]) += 1;
        }
    }
}

impl Ends for Wire {
    type Event = Event;

    fn path(&self, packet: &Packet) -> Path {
        let (forward, reverse) = self.paths[packet.flow as usize];
        if packet.kind == Kind::Data { forward } else { reverse }
    }

    fn dropped(&mut self, packet: &Packet) {
        self.book_loss(packet, |counts| &mut counts.queue_drops);
    }

    fn lost(&mut self, packet: &Packet) {
        self.book_loss(packet, |counts| &mut counts.random_losses);
    }

    fn copied(&mut self, copy: &mut Packet) {
        if let Some(payload) = self.payloads[copy.seq as usize].clone() {
            copy.seq = self.put(payload);
        }
    }

    fn fetch_for_packets(&self, _pipe: &Pipe) {}

    fn fetch_for_event(&self, _event: Event) {}
}
