//! Headers as they are on the wire.
use super::options::Options;
use ackademy::transport::packet::{Ect, Packet};
use etherparse::{IpEcn, IpNumber, Ipv4Header, Ipv6Header, TcpHeader, UdpHeader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Port of receivers: that of a service that takes whatever it gets (RFC 863).
pub const RECEIVER_PORT: u16 = 9;
/// First port of senders.
const SENDER_PORT: u16 = 49_152;
const HOP_LIMIT: u8 = 64;
/// Headers at most: IPv6, and TCP with all options.
pub const HEADERS_MAX: usize = Ipv6Header::LEN + TcpHeader::MAX_LEN;
/// Payloads are zeros.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// Version of IP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IpVersion {
    /// With addresses of 10.0.0.0/8.
    #[default]
    V4,
    /// With addresses of `2001:db8::/32`, which is for documentation (RFC 3849).
    V6,
}

impl IpVersion {
    /// Bytes of its header.
    pub fn header(self) -> u32 {
        match self {
            Self::V4 => Ipv4Header::MIN_LEN as u32,
            Self::V6 => Ipv6Header::LEN as u32,
        }
    }
}

/// Both ends of a flow.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// Address of the sender.
    pub sender: IpAddr,
    /// Address of the receiver.
    pub receiver: IpAddr,
    /// Port of the sender.
    pub port: u16,
}

impl Ends {
    /// Of a connection's subflow: each has an address at the sender, all have the same at the receiver. Connections
    /// beyond 65535 share addresses and differ in their ports.
    pub fn of(version: IpVersion, connection: u32, subflow: u32) -> Self {
        let [_, _, high, low] = (connection % 0xFFFF + 1).to_be_bytes();
        let (side, receivers) = (subflow as u8, 128);
        let (sender, receiver) = match version {
            IpVersion::V4 => (
                Ipv4Addr::new(10, side, high, low).into(),
                Ipv4Addr::new(10, receivers, high, low).into(),
            ),
            IpVersion::V6 => {
                let host = u16::from_be_bytes([high, low]);
                let address = |side: u8| {
                    let net = u16::from(side);
                    IpAddr::from(Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host))
                };
                (address(side), address(receivers))
            }
        };
        Self { sender, receiver, port: SENDER_PORT + (connection / 0xFFFF) as u16 }
    }

    /// Addresses and ports of a packet: source first.
    fn of_packet(&self, to_receiver: bool) -> ((IpAddr, u16), (IpAddr, u16)) {
        let ends = ((self.sender, self.port), (self.receiver, RECEIVER_PORT));
        if to_receiver { ends } else { (ends.1, ends.0) }
    }
}

/// The field of the IP header that a simulated packet has.
pub fn ecn_of(packet: &Packet) -> IpEcn {
    match (packet.ect, packet.ce) {
        (Ect::Not, false) => IpEcn::NotEct,
        (Ect::One, false) => IpEcn::Ect1,
        (Ect::Zero, false) => IpEcn::Ect0,
        (_, true) => IpEcn::CongestionExperienced,
    }
}

/// A TCP segment.
#[allow(clippy::struct_excessive_bools, reason = "each is a flag of the header")]
#[derive(Clone, Debug, Default)]
pub struct Segment {
    /// Whether the sender of data sends it.
    pub to_receiver: bool,
    /// Sequence number.
    pub seq: u32,
    /// Acknowledgement number, but for a SYN.
    pub ack: Option<u32>,
    /// Opens its direction.
    pub syn: bool,
    /// Closes it.
    pub fin: bool,
    /// Ends what an application has written.
    pub push: bool,
    /// AE, CWR and ECE.
    pub echo: u8,
    /// Receive window, scaled.
    pub window: u16,
    /// Its options.
    pub options: Options,
    /// Bytes of payload.
    pub payload: usize,
    /// The packet's ECN field.
    pub ecn: IpEcn,
    /// Identification of the packet in IPv4.
    pub id: u16,
}

/// A packet in the file: `length` bytes, of which `bytes` has the first.
pub struct Bytes {
    /// What is kept.
    pub bytes: Vec<u8>,
    /// What there was.
    pub length: usize,
}

impl Segment {
    /// As bytes, the payload as far as `snaplen` lets it.
    pub fn to_bytes(&self, ends: &Ends, snaplen: usize) -> Bytes {
        let ((source, from), (destination, to)) = ends.of_packet(self.to_receiver);
        let mut tcp = TcpHeader::new(from, to, self.seq, self.window);
        tcp.acknowledgment_number = self.ack.unwrap_or_default();
        tcp.ack = self.ack.is_some();
        (tcp.syn, tcp.fin, tcp.psh) = (self.syn, self.fin, self.push);
        (tcp.ns, tcp.cwr, tcp.ece) = (self.echo & 4 != 0, self.echo & 2 != 0, self.echo & 1 != 0);
        tcp.set_options_raw(self.options.as_slice()).expect("options have at most 40 bytes");
        let payload = &ZEROS[..self.payload];
        let length = tcp.header_len() + payload.len();
        let mark = (self.ecn, self.id);
        let mut bytes = ip_header((source, destination), IpNumber::TCP, length, mark);
        tcp.checksum = match (source, destination) {
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                tcp.calc_checksum_ipv6_raw(source.octets(), destination.octets(), payload)
            }
            (source, destination) => {
                tcp.calc_checksum_ipv4_raw(octets(source), octets(destination), payload)
            }
        }
        .expect("a packet has at most 65535 bytes");
        bytes.extend(tcp.to_bytes());
        with_payload(bytes, payload, snaplen)
    }
}

/// A datagram of this payload to the receiver, as bytes.
pub fn datagram(ends: &Ends, payload: usize, mark: (IpEcn, u16), snaplen: usize) -> Bytes {
    let ((source, from), (destination, to)) = ends.of_packet(true);
    let payload = &ZEROS[..payload];
    let length = UdpHeader::LEN + payload.len();
    let mut bytes = ip_header((source, destination), IpNumber::UDP, length, mark);
    let mut udp =
        UdpHeader { source_port: from, destination_port: to, length: length as u16, checksum: 0 };
    udp.checksum = match (source, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            udp.calc_checksum_ipv6_raw(source.octets(), destination.octets(), payload)
        }
        (source, destination) => {
            udp.calc_checksum_ipv4_raw(octets(source), octets(destination), payload)
        }
    }
    .expect("a packet has at most 65535 bytes");
    bytes.extend(udp.to_bytes());
    with_payload(bytes, payload, snaplen)
}

fn ip_header(
    (source, destination): (IpAddr, IpAddr),
    protocol: IpNumber,
    length: usize,
    (ecn, id): (IpEcn, u16),
) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADERS_MAX);
    if let (IpAddr::V6(source), IpAddr::V6(destination)) = (source, destination) {
        let mut header = Ipv6Header {
            payload_length: length as u16,
            next_header: protocol,
            hop_limit: HOP_LIMIT,
            source: source.octets(),
            destination: destination.octets(),
            ..Ipv6Header::default()
        };
        header.set_ecn(ecn);
        bytes.extend(header.to_bytes());
        return bytes;
    }
    let (source, destination) = (octets(source), octets(destination));
    let mut header = Ipv4Header::new(length as u16, HOP_LIMIT, protocol, source, destination)
        .expect("a packet has at most 65535 bytes");
    (header.ecn, header.identification) = (ecn, id);
    header.header_checksum = header.calc_header_checksum();
    bytes.extend(header.to_bytes());
    bytes
}

fn octets(address: IpAddr) -> [u8; 4] {
    match address {
        IpAddr::V4(address) => address.octets(),
        IpAddr::V6(_) => unreachable!("both ends have addresses of one version"),
    }
}

fn with_payload(mut bytes: Vec<u8>, payload: &[u8], snaplen: usize) -> Bytes {
    let length = bytes.len() + payload.len();
    let kept = snaplen.saturating_sub(bytes.len()).min(payload.len());
    bytes.extend(&payload[..kept]);
    bytes.truncate(snaplen);
    Bytes { bytes, length }
}
