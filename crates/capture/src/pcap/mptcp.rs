//! Options of Multipath TCP (RFC 8684, version 1). Keys and nonces are made up; what follows from them is right, so
//! that a reader finds the subflows of a connection and numbers its data.
use ackademy::rng::Seed;
use ackademy::transport::multipath::Mapping;
use sha2::{Digest, Sha256};

const CAPABLE: u8 = 0x01; // and the version
const JOIN: u8 = 0x10;
const DSS: u8 = 0x20;
/// HMAC-SHA256, and no checksums.
const FLAGS: u8 = 0x01;
const HAS_DATA_ACK: u8 = 0x01;
const HAS_MAPPING: u8 = 0x04;
const BLOCK: usize = 64;

/// A packet of the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shake {
    /// From the sender.
    Syn,
    /// From the receiver.
    SynAck,
    /// From the sender.
    Ack,
}

/// One end of a connection.
#[derive(Clone, Copy, Debug)]
struct End {
    key: [u8; 8],
    token: [u8; 4],
    /// The number of its first byte.
    first: u32,
}

impl End {
    fn new(side: &str, connection: u32) -> Self {
        let key = Seed(0).derive(side, u64::from(connection)).to_be_bytes();
        let digest: [u8; 32] = Sha256::digest(key).into();
        let word = |at: usize| [digest[at], digest[at + 1], digest[at + 2], digest[at + 3]];
        // Of the initial number of 64 bits, the digest's last, the options carry 32.
        Self { key, token: word(0), first: u32::from_be_bytes(word(28)).wrapping_add(1) }
    }
}

/// A connection of several subflows.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    sender: End,
    receiver: End,
    /// The flow that opened it.
    first_flow: u32,
}

impl Connection {
    /// Opened by this flow.
    pub fn new(connection: u32, first_flow: u32) -> Self {
        Self {
            sender: End::new("mptcp sender", connection),
            receiver: End::new("mptcp receiver", connection),
            first_flow,
        }
    }

    /// What a packet of a subflow's handshake carries.
    pub fn handshake(&self, shake: Shake, flow: u32, subflow: u32) -> Vec<u8> {
        if flow == self.first_flow { self.capable(shake) } else { self.join(shake, flow, subflow) }
    }

    fn capable(&self, shake: Shake) -> Vec<u8> {
        let keys: &[&[u8]] = match shake {
            Shake::Syn => &[],
            Shake::SynAck => &[&self.receiver.key],
            Shake::Ack => &[&self.sender.key, &self.receiver.key],
        };
        [&[CAPABLE, FLAGS], &*keys.concat()].concat()
    }

    fn join(&self, shake: Shake, flow: u32, subflow: u32) -> Vec<u8> {
        let nonce = |side| Seed(0).derive(side, u64::from(flow)).to_be_bytes();
        let (own, peer) = (&nonce("nonce of sender")[..4], &nonce("nonce of receiver")[..4]);
        let (sender, receiver) = (&self.sender.key, &self.receiver.key);
        let id = subflow as u8;
        match shake {
            Shake::Syn => [&[JOIN, id], &self.receiver.token[..], own].concat(),
            Shake::SynAck => {
                let code = hmac([*receiver, *sender].as_flattened(), &[peer, own].concat());
                [&[JOIN, id], &code[..8], peer].concat()
            }
            Shake::Ack => {
                let code = hmac([*sender, *receiver].as_flattened(), &[own, peer].concat());
                [&[JOIN, 0], &code[..20]].concat()
            }
        }
    }

    /// What a data packet carries, whose payload begins at byte `offset` of its subflow. The first one repeats
    /// the keys.
    pub fn data(&self, flow: u32, offset: u64, mapping: Mapping) -> Vec<u8> {
        let length = (mapping.len as u16).to_be_bytes();
        if flow == self.first_flow && offset == 0 && mapping.start == 0 && mapping.len > 0 {
            return [&*self.capable(Shake::Ack), &length].concat();
        }
        let data_ack = self.receiver.first.to_be_bytes();
        if mapping.len == 0 {
            return [&[DSS, HAS_DATA_ACK], &data_ack[..]].concat();
        }
        let first = self.sender.first.wrapping_add(mapping.start as u32).to_be_bytes();
        let of_subflow = (offset as u32).wrapping_add(1).to_be_bytes();
        let head = [DSS, HAS_DATA_ACK | HAS_MAPPING];
        [&head, &data_ack[..], &first, &of_subflow, &length].concat()
    }

    /// What an acknowledgement carries, given the low bits of the data that the receiver expects.
    pub fn data_ack(&self, next: u32) -> Vec<u8> {
        let data_ack = self.sender.first.wrapping_add(next).to_be_bytes();
        [&[DSS, HAS_DATA_ACK], &data_ack[..]].concat()
    }
}

/// HMAC-SHA256 (RFC 2104) with a key of at most 64 bytes.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let padded = |pad: u8| -> [u8; BLOCK] {
        std::array::from_fn(|at| key.get(at).copied().unwrap_or_default() ^ pad)
    };
    let inner = Sha256::new().chain_update(padded(0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(padded(0x5c)).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 4231, test case 2.
    #[test]
    fn the_authentication_code_is_that_of_the_rfc() {
        let code = hmac(b"Jefe", b"what do ya want for nothing?");
        assert_eq!(code[..8], [0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e]);
        assert_eq!(code[24..], [0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43]);
    }

    #[test]
    fn options_have_the_lengths_of_the_rfc() {
        let connection = Connection::new(3, 7);
        let of = |flow: u32| {
            [Shake::Syn, Shake::SynAck, Shake::Ack]
                .map(|shake| connection.handshake(shake, flow, 1).len() + 2)
        };
        assert_eq!((of(7), of(8)), ([4, 12, 20], [12, 16, 24]));
        let mapping = Mapping { start: 0, len: 1448 };
        assert_eq!(connection.data(7, 0, mapping).len() + 2, 22);
        assert_eq!(connection.data(7, 1448, mapping).len() + 2, 18);
        assert_eq!(connection.data(8, 0, mapping).len() + 2, 18);
        assert_eq!(connection.data_ack(5).len() + 2, 8);
    }
}
