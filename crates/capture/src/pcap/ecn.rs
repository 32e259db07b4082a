//! What both ends of a TCP say to each other about marks, beside the ECN field of IP. The simulator's acknowledgements
//! count marked bytes; the bits of the header are made up from what arrives, by the RFCs' rules.
use ackademy::transport::config::{Ecn, SenderConfig};
use std::collections::VecDeque;

/// Congestion Window Reduced.
const CWR: u8 = 2;
/// ECN-Echo.
const ECE: u8 = 1;
/// What the counter of marked packets begins with (RFC 9768 section 3.2.1).
const COUNTER: u8 = 5;
/// What the acknowledgement of a SYN-ACK that is not ECN-capable says in its place (RFC 9768 table 3).
const OF_SYN_ACK: u8 = 2;
/// Most packets with CWR that are remembered.
const REDUCED_MAX: usize = 1 << 12;

/// Both ends of a flow.
#[derive(Clone, Debug)]
pub struct Marks {
    ecn: Ecn,
    /// The receiver says nothing.
    hidden: bool,
    /// Receiver: marked packets, for a counter of three bits.
    counted: u64,
    /// Receiver: echoes until it sees CWR.
    echoes: bool,
    /// Sender: the next new packet has CWR.
    reduces: bool,
    /// Sender: echoes of segments before are answered.
    answered: u64,
    /// Transmissions that had CWR, ascending.
    reduced: VecDeque<u32>,
}

impl Marks {
    /// No packet sent.
    pub fn new(config: &SenderConfig) -> Self {
        Self {
            ecn: config.ecn,
            hidden: config.misbehaviour.hide_marks,
            counted: 0,
            echoes: false,
            reduces: false,
            answered: 0,
            reduced: VecDeque::new(),
        }
    }

    /// The bits of a SYN, of its answer, and of the answer to that.
    pub fn of_handshake(&self) -> [u8; 3] {
        match self.ecn {
            Ecn::Off => [0; 3],
            Ecn::Classic => [CWR | ECE, ECE, 0],
            Ecn::Accurate | Ecn::L4s => [7, CWR, OF_SYN_ACK],
        }
    }

    /// Sender: a packet leaves.
    pub fn sent(&mut self, transmission: u32, retransmission: bool) {
        if self.reduces && !retransmission {
            self.reduces = false;
            if self.reduced.len() == REDUCED_MAX {
                self.reduced.pop_front();
            }
            self.reduced.push_back(transmission);
        }
    }

    /// The bits of this transmission.
    pub fn of_data(&self, transmission: u32) -> u8 {
        match self.ecn {
            Ecn::Classic if self.reduced.binary_search(&transmission).is_ok() => CWR,
            Ecn::Off | Ecn::Classic => 0,
            Ecn::Accurate | Ecn::L4s => COUNTER,
        }
    }

    /// Receiver: a data packet arrives.
    pub fn received(&mut self, transmission: u32, marked: bool) {
        if self.of_data(transmission) & CWR != 0 && self.ecn == Ecn::Classic {
            self.echoes = false;
        }
        if marked && !self.hidden {
            self.echoes = true;
            self.counted += 1;
        }
    }

    /// Receiver: the bits of an acknowledgement.
    pub fn of_ack(&self) -> u8 {
        match self.ecn {
            Ecn::Off => 0,
            Ecn::Classic => u8::from(self.echoes) * ECE,
            Ecn::Accurate | Ecn::L4s => ((u64::from(COUNTER) + self.counted) % 8) as u8,
        }
    }

    /// Sender: an acknowledgement with these bits arrives; segments up to `acked` are acknowledged, those up to
    /// `next` sent.
    pub fn acknowledged(&mut self, bits: u8, acked: u64, next: u64) {
        if self.ecn == Ecn::Classic && bits & ECE != 0 && acked >= self.answered {
            self.reduces = true;
            self.answered = next + 1;
        }
    }
}
