//! What is known of a flow while its packets are written.
use super::acks::{Acks, Place, SentAck};
use super::clock::{Echo, ticks};
use super::ecn::Marks;
use super::mptcp::{Connection, Shake};
use super::options::Options;
use super::wire::{Ends, IpVersion, Segment, ecn_of};
use crate::flows::Flow;
use crate::positions::Positions;
use ackademy::control::Recovery;
use ackademy::rng::Seed;
use ackademy::transport::multipath::Mapping;
use ackademy::transport::packet::{Packet, SACK_BLOCKS};
use ackademy::units::Time;

/// Window of the sender of data, which gets none.
const SENDER_WINDOW: u16 = 65_535;
/// Largest window scale (RFC 7323).
const SHIFT_MAX: u8 = 14;

/// A flow, and what both ends have said so far.
pub struct State {
    pub flow: Flow,
    pub ends: Ends,
    positions: Positions,
    acks: Acks,
    marks: Marks,
    echo: Echo,
    /// Initial sequence numbers, of the SYNs.
    isn: u32,
    receiver_isn: u32,
    /// Receive window and its scale.
    window: (u16, u8),
    /// The first segment that its sender does not know to be received.
    una: u64,
    /// When its handshake was made up.
    began: Option<Time>,
    /// Its application is done.
    pub is_over: bool,
    /// Its end was made up.
    closed: bool,
    /// Of several subflows, once one has sent.
    pub connection: Option<Connection>,
    /// What its receiver said last of the connection's data.
    data_ack: u32,
}

impl State {
    /// Nothing sent.
    pub fn new(flow: Flow, ip: IpVersion) -> Self {
        let isn = |side| Seed(0).derive(side, u64::from(flow.number)) as u32;
        let payload = flow.payload();
        let packets = flow.plan.sender.receiver_window_packets;
        let window = flow.plan.shared_window.unwrap_or_else(|| packets.saturating_mul(payload));
        Self {
            ends: Ends::of(ip, flow.id.connection, flow.id.subflow),
            positions: Positions::new(payload),
            acks: Acks::default(),
            marks: Marks::new(&flow.plan.sender),
            echo: Echo::default(),
            isn: isn("isn of sender"),
            receiver_isn: isn("isn of receiver"),
            window: scaled(window),
            una: 0,
            began: None,
            is_over: false,
            closed: false,
            connection: None,
            data_ack: 0,
            flow,
        }
    }

    fn is_ns2(&self) -> bool {
        self.flow.plan.sender.recovery == Recovery::Ns2
    }

    /// Whether its first segment is a SYN that the simulation sends (ns-2).
    fn has_syn(&self) -> bool {
        self.is_ns2() && self.flow.plan.sender.handshake
    }

    /// The sequence number of a byte of the flow.
    fn number_of(&self, byte: u64) -> u32 {
        self.isn.wrapping_add(1).wrapping_add(byte as u32)
    }

    /// Its sender sends a packet.
    pub fn data_sent(&mut self, packet: &Packet) {
        self.positions.sent(packet.seq, self.flow.payload_of(packet.size));
        self.marks.sent(packet.transmission, packet.repeat);
    }

    /// A data packet arrives.
    pub fn data_received(&mut self, packet: &Packet) {
        self.marks.received(packet.transmission, packet.ce);
    }

    /// Its receiver sends an acknowledgement.
    pub fn ack_sent(&mut self, at: Time, packet: &Packet) -> SentAck {
        self.data_ack = packet.transmission;
        self.acks.sent(at, packet, self.marks.of_ack())
    }

    /// An acknowledgement is on a link.
    pub fn ack_on_link(&mut self, packet: &Packet) -> Option<SentAck> {
        self.acks.seen(Place::Link, packet)
    }

    /// An acknowledgement arrives at the sender.
    pub fn ack_received(&mut self, at: Time, packet: &Packet) -> Option<SentAck> {
        let sent = self.acks.seen(Place::Sender, packet)?;
        self.echo.arrived(at, ticks(sent.at));
        self.marks.acknowledged(sent.echo, packet.seq, self.positions.next().0);
        self.una = self.una.max(packet.seq);
        Some(sent)
    }

    /// The packets of the handshake, which the simulation does not send; none if it has been or need not be made up.
    pub fn handshake(&mut self, at: Time) -> Vec<Segment> {
        if self.began.is_some() {
            return Vec::new();
        }
        self.began = Some(at);
        if self.has_syn() {
            return Vec::new();
        }
        [Shake::Syn, Shake::SynAck, Shake::Ack].map(|shake| self.shake(shake, at)).into()
    }

    /// A packet of the handshake.
    fn shake(&self, shake: Shake, at: Time) -> Segment {
        let syn = shake != Shake::Ack;
        let to_receiver = shake != Shake::SynAck;
        let echo = if shake == Shake::Syn { 0 } else { ticks(at) };
        let mut options = if syn { self.syn_options(to_receiver) } else { Options::default() };
        self.add_timestamps(&mut options, ticks(at), echo);
        if let Some(connection) = &self.connection {
            options.mptcp(&connection.handshake(shake, self.flow.number, self.flow.id.subflow));
        }
        Segment {
            to_receiver,
            seq: match shake {
                Shake::Syn => self.isn,
                Shake::SynAck => self.receiver_isn,
                Shake::Ack => self.number_of(0),
            },
            ack: match shake {
                Shake::Syn => None,
                Shake::SynAck => Some(self.number_of(0)),
                Shake::Ack => Some(self.receiver_isn.wrapping_add(1)),
            },
            syn,
            echo: self.marks.of_handshake()[shake as usize],
            window: if to_receiver { SENDER_WINDOW } else { self.window.0 },
            options,
            ..Segment::default()
        }
    }

    fn syn_options(&self, of_sender: bool) -> Options {
        let shift = if of_sender { 0 } else { self.window.1 };
        let mss = self.flow.payload().min(u64::from(u16::MAX)) as u16;
        Options::of_syn(mss, !self.is_ns2(), shift)
    }

    fn add_timestamps(&self, options: &mut Options, value: u32, echo: u32) {
        if self.flow.plan.sender.timestamps {
            options.timestamps(value, echo);
        }
    }

    /// A data packet as a segment.
    pub fn data(&self, packet: &Packet) -> Segment {
        let payload = self.flow.payload_of(packet.size);
        let byte = self.positions.of(packet.seq);
        let syn = self.has_syn() && packet.seq == 0;
        let mut options = if syn { self.syn_options(true) } else { Options::default() };
        let echo = self.echo.at(packet.sent_at).unwrap_or_else(|| self.first_echo());
        self.add_timestamps(&mut options, ticks(packet.sent_at), if syn { 0 } else { echo });
        if let Some(connection) = &self.connection {
            options.mptcp(&connection.data(self.flow.number, byte, packet.mapping()));
        }
        Segment {
            to_receiver: true,
            seq: if syn { self.isn } else { self.number_of(byte) },
            ack: (!syn).then(|| self.receiver_isn.wrapping_add(1)),
            syn,
            push: payload > 0 && payload < self.flow.payload(),
            echo: self.marks.of_data(packet.transmission),
            window: SENDER_WINDOW,
            options,
            payload: payload as usize,
            ecn: ecn_of(packet),
            id: packet.transmission as u16,
            ..Segment::default()
        }
    }

    /// An acknowledgement as a segment.
    pub fn ack(&self, packet: &Packet, sent: &SentAck) -> Segment {
        let syn = self.has_syn() && packet.seq == 1 && self.positions.next().0 <= 1;
        let mut options = if syn { self.syn_options(false) } else { Options::default() };
        let echo = ticks(packet.sent_at).max(self.first_echo());
        self.add_timestamps(&mut options, ticks(sent.at), echo);
        if let Some(connection) = &self.connection {
            options.mptcp(&connection.data_ack(packet.transmission));
        }
        options.sack(&self.blocks(packet));
        Segment {
            to_receiver: false,
            seq: self
                .receiver_isn
                .wrapping_add(u32::from(!syn))
                .wrapping_add(u32::from(self.closed)),
            ack: Some(self.number_of(self.acknowledged(packet))),
            syn,
            echo: sent.echo,
            window: self.window.0,
            options,
            ecn: ecn_of(packet),
            id: sent.number as u16,
            ..Segment::default()
        }
    }

    /// What is echoed before anything arrived: the handshake's.
    fn first_echo(&self) -> u32 {
        ticks(self.began.unwrap_or_default())
    }

    /// The byte that an acknowledgement asks for: of a part of a packet, one within it.
    fn acknowledged(&self, packet: &Packet) -> u64 {
        let start = self.positions.of(packet.seq);
        let left = u64::from(packet.left());
        if left == 0 {
            return start;
        }
        let payload = self.positions.len_of(packet.seq);
        let size = payload + self.flow.plan.sender.header.0;
        start + payload - (left * payload).div_ceil(size.max(1)).min(payload)
    }

    fn blocks(&self, packet: &Packet) -> Vec<(u32, u32)> {
        let mut blocks = Vec::with_capacity(SACK_BLOCKS);
        for &(offset, length) in packet.sack.iter().filter(|block| block.1 > 0) {
            // A report of a duplicate may be of what is acknowledged already.
            let first = packet.seq.saturating_add_signed(i64::from(offset as i32));
            let end = first + u64::from(length);
            let [start, end] = [first, end].map(|seq| self.number_of(self.positions.of(seq)));
            blocks.push((start, end));
        }
        blocks
    }

    /// The packets that close it, which the simulation does not send; none before it is over and acknowledged, or if
    /// nothing of it was seen.
    pub fn end(&mut self, at: Time) -> Vec<Segment> {
        let is_acknowledged = self.una >= self.positions.next().0;
        if !self.is_over || !is_acknowledged || self.closed || self.began.is_none() {
            return Vec::new();
        }
        self.closed = true;
        let last = self.number_of(self.positions.next().1);
        let own = self.receiver_isn.wrapping_add(1);
        let step = |to_receiver: bool, seq, ack, fin| {
            let mut options = Options::default();
            self.add_timestamps(&mut options, ticks(at), ticks(at));
            if let Some(connection) = &self.connection {
                options.mptcp(&if to_receiver {
                    connection.data(self.flow.number, 0, Mapping::default())
                } else {
                    connection.data_ack(self.data_ack)
                });
            }
            let window = if to_receiver { SENDER_WINDOW } else { self.window.0 };
            let ack = Some(ack);
            let echo = if to_receiver { self.marks.of_data(u32::MAX) } else { self.marks.of_ack() };
            Segment { to_receiver, seq, ack, fin, echo, window, options, ..Segment::default() }
        };
        let behind = last.wrapping_add(1);
        vec![
            step(true, last, own, true),
            step(false, own, behind, true),
            step(true, behind, own.wrapping_add(1), false),
        ]
    }
}

/// A window in the 16 bits that it has, and the scale: the next larger one that they can say, or the largest.
fn scaled(window: u64) -> (u16, u8) {
    let most = u64::from(u16::MAX);
    let shift = (0..SHIFT_MAX).find(|&shift| window.div_ceil(1 << shift) <= most);
    let shift = shift.unwrap_or(SHIFT_MAX);
    (window.div_ceil(1 << shift).min(most) as u16, shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_is_said_as_exactly_as_its_scale_allows() {
        assert_eq!(scaled(20 * 1448), (28_960, 0));
        assert_eq!(scaled(65_536), (32_768, 1));
        assert_eq!(scaled(100_001), (50_001, 1));
        assert_eq!(scaled(u64::MAX), (65_535, 14));
    }
}
