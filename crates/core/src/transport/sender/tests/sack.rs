//! One test per rule of RFC 6675, RFC 8985, RFC 9937, RFC 6298 and their neighbours, on a sender
//! whose ACKs are written by hand.
use super::super::tests::{MSS, Script, ack, at, config, numbers};
use super::*;

#[path = "sack/application.rs"]
mod application;
#[path = "sack/loss.rs"]
mod loss;
#[path = "sack/next_episode.rs"]
mod next_episode;
#[path = "sack/reduction.rs"]
mod reduction;
#[path = "sack/spurious.rs"]
mod spurious;
#[path = "sack/timers.rs"]
mod timers;

/// A sender with its controller and clock.
struct Bench {
    sender: SackSender,
    script: Script,
    supply: Supply,
    now: u64,
}

impl Bench {
    /// With a window of `packets` and no end of data.
    fn new(fields: &str, packets: u64) -> Self {
        let mut script = Script::new(packets);
        let sender = SackSender::new(&config(fields), &script.governor());
        Self { sender, script, supply: Supply { unsent: u64::MAX, ..Supply::default() }, now: 0 }
    }

    /// Everything that may leave at `millis`.
    fn send(&mut self, millis: u64) -> Vec<Result<u64, u64>> {
        self.now = millis;
        let mut sent = Vec::new();
        while let Some(out) =
            self.sender.transmit(at(millis), &mut self.script.governor(), &mut self.supply)
        {
            sent.push(out);
        }
        numbers(&sent)
    }

    /// An ACK arrives; then everything that it lets out.
    fn ack(&mut self, millis: u64, seq: u64, blocks: &[(u64, u64)]) -> Vec<Result<u64, u64>> {
        self.receive(millis, &ack(seq, blocks))
    }

    fn receive(&mut self, millis: u64, packet: &Packet) -> Vec<Result<u64, u64>> {
        let mut governor = self.script.governor();
        self.sender.on_ack(at(millis), packet, &mut governor, &mut self.supply);
        self.send(millis)
    }

    /// What is due at `millis` happens; then everything that it lets out.
    fn expire(&mut self, millis: u64) -> Vec<Result<u64, u64>> {
        assert!(self.sender.deadline() <= at(millis), "nothing is due: {}", self.sender.deadline());
        let mut governor = self.script.governor();
        self.sender.on_deadline(at(millis), &mut governor, &mut self.supply);
        self.send(millis)
    }

    /// One round trip of 100 ms: a first sample, ten packets in flight at 100 ms.
    fn warm(fields: &str) -> Self {
        let mut bench = Self::new(&format!("ack_every = 1\n{fields}"), 1);
        assert_eq!(bench.send(0), [Ok(0)]);
        bench.script.control.cwnd = Bytes(10 * MSS);
        assert_eq!(bench.ack(100, 1, &[]).len(), 10);
        bench.script.acks.clear();
        bench
    }

    fn pipe(&self) -> u64 {
        self.sender.board.inflight() / MSS
    }
}

const COUNTING: &str = "rack = false\ntlp = false\nprr = false";
