//! The few fields of an IP packet that a link looks at: RFC 791, RFC 8200, RFC 3168, RFC 9293.
use ackademy::transport::packet::Ect;
use std::net::IpAddr;

/// What a link needs to know of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Where it comes from.
    pub source: IpAddr,
    /// Where it goes.
    pub destination: IpAddr,
    /// The two ECN bits.
    pub ecn: u8,
    /// A UDP datagram, or a TCP segment with payload.
    pub is_data: bool,
    /// Equal for packets of one transport flow: protocol, addresses and ports, hashed.
    pub flow_hash: u32,
}

/// Not ECN-capable (RFC 3168 section 5).
pub const NOT_ECT: u8 = 0b00;
/// ECN-capable, for low latency (RFC 9331).
pub const ECT_1: u8 = 0b01;
/// Congestion experienced.
pub const CE: u8 = 0b11;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// Reads a packet's header; `None` if it is no whole IPv4 or IPv6 packet.
pub fn parse(bytes: &[u8]) -> Option<Header> {
    let (source, destination, traffic_class, protocol, transport) = match bytes.first()? >> 4 {
        4 => {
            let header = usize::from(bytes[0] & 0x0f) * 4;
            if header < 20 || bytes.len() < header {
                return None;
            }
            let address = |at: usize| bytes[at..at + 4].try_into().map(|of: [u8; 4]| of.into());
            // Later fragments carry no transport header.
            let fragment = u16::from_be_bytes([bytes[6], bytes[7]]) & 0x1fff != 0;
            let transport = if fragment { &[] } else { &bytes[header..] };
            (address(12).ok()?, address(16).ok()?, bytes[1], bytes[9], transport)
        }
        6 => {
            if bytes.len() < 40 {
                return None;
            }
            let address = |at: usize| bytes[at..at + 16].try_into().map(|of: [u8; 16]| of.into());
            let traffic_class = (bytes[0] << 4) | (bytes[1] >> 4);
            (address(8).ok()?, address(24).ok()?, traffic_class, bytes[6], &bytes[40..])
        }
        _ => return None,
    };
    Some(Header {
        source,
        destination,
        ecn: traffic_class & CE,
        is_data: is_data(protocol, transport),
        flow_hash: flow_hash(source, destination, protocol, transport),
    })
}

fn is_data(protocol: u8, transport: &[u8]) -> bool {
    match protocol {
        UDP => true,
        TCP => {
            transport.get(12).is_some_and(|offset| transport.len() > usize::from(offset >> 4) * 4)
        }
        _ => false,
    }
}

/// FNV-1a: enough to tell flows apart; the queue that asks mixes it again.
fn flow_hash(source: IpAddr, destination: IpAddr, protocol: u8, transport: &[u8]) -> u32 {
    let mut hash = 0x811c_9dc5_u32;
    let mut add = |bytes: &[u8]| {
        for &byte in bytes {
            hash = (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        }
    };
    for address in [source, destination] {
        match address {
            IpAddr::V4(address) => add(&address.octets()),
            IpAddr::V6(address) => add(&address.octets()),
        }
    }
    add(&[protocol]);
    if matches!(protocol, TCP | UDP) {
        add(transport.get(..4).unwrap_or_default());
    }
    hash
}

/// What the two ECN bits announce; of a packet that has a mark already, no more than that it may have.
pub fn ect(ecn: u8) -> Ect {
    match ecn {
        NOT_ECT => Ect::Not,
        ECT_1 => Ect::One,
        _ => Ect::Zero,
    }
}

/// The two ECN bits of a packet that announces this and has a mark or not.
pub fn ecn_bits(ect: Ect, ce: bool) -> u8 {
    match ect {
        _ if ce => CE,
        Ect::Not => NOT_ECT,
        Ect::Zero => 0b10,
        Ect::One => ECT_1,
    }
}

/// Sets the two ECN bits.
pub fn set_ecn(bytes: &mut [u8], ecn: u8) {
    match bytes.first().map(|first| first >> 4) {
        Some(4) if bytes[1] & CE != ecn => {
            let before = u16::from_be_bytes([bytes[0], bytes[1]]);
            bytes[1] = (bytes[1] & !CE) | ecn;
            let after = u16::from_be_bytes([bytes[0], bytes[1]]);
            let checksum = updated(u16::from_be_bytes([bytes[10], bytes[11]]), before, after);
            bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        Some(6) => bytes[1] = (bytes[1] & !(CE << 4)) | (ecn << 4), // no checksum covers it
        _ => {}
    }
}

/// A checksum after one 16-bit word changed (RFC 1624 equation 3).
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    let sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    let folded = (sum & 0xffff) + (sum >> 16);
    !(((folded & 0xffff) + (folded >> 16)) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checksum(header: &[u8]) -> u16 {
        let words = header.chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let mut sum: u32 = words.sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    /// An IPv4 packet with a right checksum.
    fn v4(tos: u8, identification: u16, protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x45, tos, 0, 20 + transport.len() as u8, 0, 0, 0, 0, 64, protocol];
        bytes[4..6].copy_from_slice(&identification.to_be_bytes());
        bytes.extend([0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        let sum = checksum(&bytes);
        bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        bytes.extend(transport);
        bytes
    }

    fn v6(traffic_class: u8, next_header: u8, transport: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x60 | traffic_class >> 4, traffic_class << 4, 0, 0, 0, 0];
        bytes.extend([next_header, 64]);
        bytes.extend([0xfd; 16]);
        bytes.extend([0xfe; 16]);
        bytes.extend(transport);
        bytes
    }

    /// A TCP header of 20 bytes and a payload.
    fn tcp(payload: usize) -> Vec<u8> {
        let mut bytes = vec![0; 20 + payload];
        bytes[12] = 5 << 4;
        bytes
    }

    #[test]
    fn a_mark_keeps_the_ipv4_checksum_right_whatever_the_header() {
        for tos in 0..=255 {
            for identification in [0, 1, 0x1234, 0xfffe, 0xffff] {
                let mut bytes = v4(tos, identification, UDP, &[]);
                set_ecn(&mut bytes, CE);
                assert_eq!(parse(&bytes).map(|header| header.ecn), Some(CE));
                assert_eq!(bytes[1] & !CE, tos & !CE, "the code point is kept");
                assert_eq!(checksum(&bytes[..20]), 0, "tos {tos} identification {identification}");
            }
        }
    }

    #[test]
    fn a_mark_sets_the_ecn_bits_of_an_ipv6_traffic_class_and_no_other() {
        let mut bytes = v6(0b1010_0110, UDP, &[0; 8]);
        assert_eq!(parse(&bytes).map(|header| header.ecn), Some(0b10));
        set_ecn(&mut bytes, CE);
        assert_eq!(bytes, v6(0b1010_0111, UDP, &[0; 8]));
    }

    #[test]
    fn any_ecn_bits_can_be_set_and_the_checksum_stays_right() {
        for (before, after) in [(CE, NOT_ECT), (0b10, CE), (ECT_1, ECT_1), (NOT_ECT, ECT_1)] {
            let mut bytes = v4(0xb8 | before, 7, UDP, &[0; 8]);
            set_ecn(&mut bytes, after);
            assert_eq!(bytes, v4(0xb8 | after, 7, UDP, &[0; 8]));
            let mut bytes = v6(0xb8 | before, UDP, &[0; 8]);
            set_ecn(&mut bytes, after);
            assert_eq!(bytes, v6(0xb8 | after, UDP, &[0; 8]));
        }
    }

    #[test]
    fn the_two_ecn_bits_tell_low_latency_traffic_from_classic() {
        let of = |bits| parse(&v4(bits, 0, UDP, &[0; 8])).map(|header| ect(header.ecn));
        assert_eq!([of(0b00), of(0b10), of(0b01)], [Ect::Not, Ect::Zero, Ect::One].map(Some));
        assert_eq!(of(CE), Some(Ect::Zero));
    }

    #[test]
    fn data_is_a_datagram_or_a_segment_with_payload() {
        let is_data = |bytes: &[u8]| parse(bytes).expect("an IP packet").is_data;
        assert!(is_data(&v4(0, 0, UDP, &[0; 8])));
        assert!(is_data(&v4(0, 0, TCP, &tcp(1))));
        assert!(!is_data(&v4(0, 0, TCP, &tcp(0))));
        assert!(is_data(&v6(0, TCP, &tcp(1))));
        assert!(!is_data(&v6(0, TCP, &tcp(0))));
        assert!(!is_data(&v4(0, 0, 1, &[0; 64])));
    }

    #[test]
    fn ports_tell_flows_apart() {
        let hash = |ports: [u8; 4]| parse(&v4(0, 0, UDP, &ports)).expect("an IP packet").flow_hash;
        assert_eq!(hash([1, 2, 3, 4]), hash([1, 2, 3, 4]));
        assert_ne!(hash([1, 2, 3, 4]), hash([1, 2, 3, 5]));
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(mut bytes: Vec<u8>, version in 4_u8..=6) {
            if let Some(first) = bytes.first_mut() {
                *first = (version << 4) | (*first & 0x0f);
            }
            if parse(&bytes).is_some() {
                set_ecn(&mut bytes, CE);
                proptest::prop_assert_eq!(parse(&bytes).map(|header| header.ecn), Some(CE));
            }
        }
    }

    #[test]
    fn what_is_too_short_for_its_header_is_no_packet() {
        assert_eq!(parse(&[]), None);
        assert_eq!(parse(&v4(0, 0, UDP, &[])[..19]), None);
        assert_eq!(parse(&v6(0, UDP, &[])[..39]), None);
        assert_eq!(parse(&[0x4f; 20]), None);
        assert_eq!(parse(&[0x00; 40]), None);
    }
}
