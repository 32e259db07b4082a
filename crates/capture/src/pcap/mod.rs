//! pcapng: the packets that one point of a simulation sees, with headers of IP and TCP.
//!
//! What the simulation has is exact: times, sequence and acknowledgement numbers, selective acknowledgements,
//! marks, mappings of Multipath TCP. What it has not is made up: addresses, ports, initial numbers, handshakes, ends,
//! windows, payloads (zeros).
use self::blocks::Head;
use self::mptcp::Connection;
use self::state::State;
pub use self::wire::IpVersion;
use self::wire::{Bytes, HEADERS_MAX, Segment, datagram, ecn_of};
use crate::failure::Output;
use crate::flows::Flow;
use ackademy::sim::tap::{Point, Tap};
use ackademy::transport::packet::{Kind, Packet};
use ackademy::units::Time;
use std::net::IpAddr;

mod acks;
mod blocks;
mod clock;
mod ecn;
mod mptcp;
mod options;
mod state;
mod wire;

/// Most flows whose names are written into a file.
const NAMES_MAX: usize = 1000;
/// Headers of UDP.
const UDP_HEADER: u32 = 8;

/// Bytes of a packet that always hold its headers.
pub const SNAPLEN_MIN: u32 = 128;
/// Most payload of a packet that IP can carry with all headers.
const PAYLOAD_MAX: usize = u16::MAX as usize - HEADERS_MAX;

/// Where packets are seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum At {
    /// At the hosts of the senders: data that leaves, acknowledgements that arrive.
    Sender,
    /// At the hosts of the receivers: data that arrives, acknowledgements that leave.
    Receiver,
    /// On a link, by its number and name: what has left its queue, marks included. What the queue drops is not
    /// there, what the wire loses is.
    Link(u32, String),
}

impl At {
    /// Name and description of the interface.
    fn described(&self) -> (&str, String) {
        match self {
            Self::Sender => ("sender", "the hosts of all senders".into()),
            Self::Receiver => ("receiver", "the hosts of all receivers".into()),
            Self::Link(_, name) => (name, format!("what has left the queue of link {name}")),
        }
    }

    /// Whether it is here that a packet is seen.
    fn is(&self, point: Point, kind: Kind) -> bool {
        let is_ack = kind == Kind::Ack;
        match (self, point) {
            (Self::Sender, Point::Sent) | (Self::Receiver, Point::Received) => !is_ack,
            (Self::Sender, Point::Received) | (Self::Receiver, Point::Sent) => is_ack,
            (Self::Link(index, _), Point::Leaves(link)) => *index == link,
            _ => false,
        }
    }
}

/// What is written.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where packets are seen.
    pub at: At,
    /// Most bytes of each packet, [`SNAPLEN_MIN`] or more.
    pub snaplen: u32,
    /// Version of IP.
    pub ip: IpVersion,
    /// End of the run, after which nothing is written.
    pub until: Time,
    /// What was simulated, for who opens the file.
    pub about: String,
}

/// Writes the packets of a simulation.
pub struct Pcap {
    out: Output,
    settings: Settings,
    flows: Vec<State>,
    /// Latest time in the file.
    last: Time,
}

impl Pcap {
    /// Writes to `out` what the tap sees of these flows.
    ///
    /// # Errors
    ///
    /// If a packet of a flow is too large for IP: which one and what is allowed.
    pub fn new(mut out: Output, settings: Settings, flows: Vec<Flow>) -> Result<Self, String> {
        let is_large = |flow: &&Flow| flow.payload() as usize > PAYLOAD_MAX;
        if let Some(flow) = flows.iter().find(is_large) {
            return Err(format!(
                "flow {:?}: a packet has {} bytes of payload: allowed in a pcap are at most {PAYLOAD_MAX}",
                flow.id.name,
                flow.payload()
            ));
        }
        let (interface, description) = settings.at.described();
        let head = Head {
            comment: &settings.about,
            interface,
            description: &description,
            snaplen: settings.snaplen,
        };
        out.write(|out| blocks::write_head(out, &head));
        let flows: Vec<State> =
            flows.into_iter().map(|flow| State::new(flow, settings.ip)).collect();
        if flows.len() <= NAMES_MAX {
            out.write(|out| blocks::write_names(out, names(&flows)));
        }
        Ok(Self { out, settings, flows, last: Time(0) })
    }

    /// Whether packets in this direction pass where packets are seen.
    fn passes(&self, flow: usize, to_receiver: bool) -> bool {
        let At::Link(index, _) = &self.settings.at else { return true };
        let route = self.flows[flow].flow.route();
        let links = if to_receiver { &route.forward } else { &route.reverse };
        links.contains(index)
    }

    fn write_segment(&mut self, at: Time, flow: usize, segment: &Segment) {
        let bytes = segment.to_bytes(&self.flows[flow].ends, self.settings.snaplen as usize);
        self.write(at, &bytes);
    }

    /// Writes packets that the simulation does not send, as far as they pass.
    fn write_made_up(&mut self, at: Time, flow: usize, segments: &[Segment]) {
        for segment in segments {
            if self.passes(flow, segment.to_receiver) {
                self.write_segment(at, flow, segment);
            }
        }
    }

    fn write(&mut self, at: Time, packet: &Bytes) {
        // A link is seen ahead of time, the end of a flow is not.
        self.last = self.last.max(at);
        let at = self.last;
        self.out.write(|out| blocks::write_packet(out, at, &packet.bytes, packet.length));
    }

    fn begin(&mut self, at: Time, flow: usize) {
        let segments = self.flows[flow].handshake(at);
        self.write_made_up(at, flow, &segments);
    }

    fn end_if_over(&mut self, at: Time, flow: usize) {
        let segments = self.flows[flow].end(at);
        self.write_made_up(at, flow, &segments);
    }

    /// The first subflow of a connection that sends opens it; the others join.
    fn open(&mut self, flow: usize) {
        let state = &self.flows[flow];
        if !state.flow.is_subflow() || state.connection.is_some() {
            return;
        }
        let id = &state.flow.id;
        let first = flow - id.subflow as usize;
        let own = first..first + state.flow.plan.routes.len();
        let known = self.flows[own].iter().find_map(|other| other.connection);
        let connection = known.unwrap_or_else(|| Connection::new(id.connection, flow as u32));
        self.flows[flow].connection = Some(connection);
    }

    fn data(&mut self, at: Time, point: Point, packet: &Packet) {
        let flow = packet.flow as usize;
        match point {
            Point::Sent => {
                self.open(flow);
                self.flows[flow].data_sent(packet);
            }
            Point::Received => self.flows[flow].data_received(packet),
            _ => {}
        }
        if self.settings.at.is(point, Kind::Data) {
            self.begin(at, flow);
            let segment = self.flows[flow].data(packet);
            self.write_segment(at, flow, &segment);
        }
    }

    fn ack(&mut self, at: Time, point: Point, packet: &Packet) {
        let flow = packet.flow as usize;
        let is_here = self.settings.at.is(point, Kind::Ack);
        let state = &mut self.flows[flow];
        let sent = match point {
            Point::Sent => Some(state.ack_sent(at, packet)),
            Point::Received => state.ack_received(at, packet),
            Point::Leaves(_) if is_here => state.ack_on_link(packet),
            _ => None,
        };
        if let Some(sent) = sent.filter(|_| is_here) {
            self.begin(at, flow);
            let segment = self.flows[flow].ack(packet, &sent);
            self.write_segment(at, flow, &segment);
        }
        if point == Point::Received {
            self.end_if_over(at, flow);
        }
    }

    fn datagram(&mut self, at: Time, packet: &Packet) {
        let ends = self.flows[packet.flow as usize].ends;
        let payload = packet.size.saturating_sub(self.settings.ip.header() + UDP_HEADER);
        let mark = (ecn_of(packet), packet.seq as u16);
        let bytes = datagram(&ends, payload as usize, mark, self.settings.snaplen as usize);
        self.write(at, &bytes);
    }
}

impl Tap for Pcap {
    fn packet(&mut self, at: Time, point: Point, packet: &Packet) {
        if at > self.settings.until {
            return;
        }
        match packet.kind {
            Kind::Data => self.data(at, point, packet),
            Kind::Ack => self.ack(at, point, packet),
            Kind::Datagram if self.settings.at.is(point, Kind::Datagram) => {
                self.datagram(at, packet);
            }
            Kind::Datagram => {}
        }
    }

    fn ended(&mut self, at: Time, flow: u32) {
        self.flows[flow as usize].is_over = true;
        self.end_if_over(at, flow as usize);
    }

    fn finished(&mut self, _at: Time) {
        self.out.flush();
    }
}

/// The names of all addresses.
fn names(flows: &[State]) -> impl Iterator<Item = (IpAddr, String)> {
    flows.iter().flat_map(|state| {
        let name = &state.flow.id.name;
        let receiver = (state.ends.receiver, format!("{name}.receiver"));
        [(state.ends.sender, name.clone()), receiver]
    })
}
