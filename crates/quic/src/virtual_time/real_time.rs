//! The same ends in real time: a caller has the clock, the sockets and the network.
use super::wire::{Payload, Side};
use super::{Quic, plan};
use crate::Refused;
use ackademy::transport::packet::{Ect, Packet};
use ackademy::units::Time;
use bytes::BytesMut;
use noq_proto::EcnCodepoint;

/// What goes from one end of a flow to the other.
#[derive(Debug)]
pub struct Datagram {
    /// Row of the flow's path in the tables.
    pub row: u32,
    /// Whether it comes from the end that sends the data.
    pub is_data: bool,
    /// The payload of UDP.
    pub bytes: BytesMut,
    /// What the header of IP says.
    pub ecn: Option<EcnCodepoint>,
}

impl Quic {
    /// From here on datagrams do not enter the scenario's network: [`outgoing`](Self::outgoing) hands them over.
    pub fn in_real_time(mut self) -> Self {
        self.outgoing = Some(Vec::new());
        self
    }

    /// Handles what was due by `now`, as of `now`.
    ///
    /// # Errors
    ///
    /// If a stack closes a connection.
    pub fn reach(&mut self, now: Time) -> Result<(), Refused> {
        self.reached = now.min(self.end);
        self.run_until(now)
    }

    /// A datagram has arrived at the other end.
    ///
    /// # Errors
    ///
    /// If a stack closes a connection.
    pub fn arrive(&mut self, now: Time, datagram: Datagram) -> Result<(), Refused> {
        self.reach(now)?;
        let Datagram { row, is_data, bytes, ecn } = datagram;
        let side = if is_data { Side::Client } else { Side::Server };
        let packet = Packet {
            flow: row,
            size: (bytes.len() as u64 + plan::HEADER_BYTES) as u32,
            kind: side.sends(),
            ect: if ecn.is_some() { Ect::Zero } else { Ect::Not },
            ce: ecn == Some(EcnCodepoint::Ce),
            seq: self.wire.put(Payload { bytes, ecn }),
            sent_at: self.now(), // only the network knows
            ..Packet::default()
        };
        self.receive(&packet);
        self.lost.take().map_or(Ok(()), |reason| Err(Refused(reason)))
    }

    /// The datagrams to be sent, in order.
    pub fn outgoing(&mut self) -> Vec<Datagram> {
        let Self { outgoing: Some(outgoing), wire, .. } = self else { return Vec::new() };
        let datagram = |packet: Packet| {
            let Payload { bytes, ecn } = wire.take(&packet)?;
            Some(Datagram {
                row: packet.flow,
                is_data: Side::sending(&packet) == Side::Client,
                bytes,
                ecn,
            })
        };
        outgoing.drain(..).filter_map(datagram).collect()
    }

    /// When [`reach`](Self::reach) has something to do.
    pub fn next_due(&mut self) -> Time {
        self.net.next_due().unwrap_or(Time::NEVER)
    }

    /// How many packets of a path the network has dropped or lost so far.
    pub fn set_lost(&mut self, row: u32, packets: u64) {
        self.wire.counts[row as usize].queue_drops = packets;
    }
}
