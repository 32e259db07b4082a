//! What the tests of both senders share: a controller that does what it is told and notes what it
//! receives, and a sender with its clock.
use super::{Allowed, Governor, Outgoing, Supply};
use crate::control::{
    Ack, Control, Coupled, FlowInfo, Loss, LossKind, Send, SendAction, SubflowId,
};
use crate::scenario::Scenario;
use crate::transport::config::SenderConfig;
use crate::transport::packet::{Kind, Packet, SACK_BLOCKS};
use crate::units::{Bytes, Rate, Span, Time};

/// The size of a packet, so that windows are easy to read.
pub(super) const MSS: u64 = 1000;

/// Notes every call; halves its window once per loss episode and falls to one packet on a time-out.
pub(super) struct Script {
    pub control: Control,
    pub acks: Vec<Ack>,
    pub losses: Vec<Loss>,
    pub timer: Option<Time>,
    pub timer_calls: u32,
    /// What it says of every packet, if it wants to be asked.
    pub send_action: Option<SendAction>,
}

impl Script {
    pub fn new(packets: u64) -> Self {
        let control = Control::window(Bytes(packets * MSS));
        Self {
            control,
            acks: Vec::new(),
            losses: Vec::new(),
            timer: None,
            timer_calls: 0,
            send_action: None,
        }
    }

    pub fn governor(&mut self) -> Governor<'_> {
        Governor { coupled: self, id: SubflowId(0) }
    }

    /// The kinds of the losses told so far.
    pub fn kinds(&self) -> Vec<LossKind> {
        self.losses.iter().map(|loss| loss.kind).collect()
    }
}

impl Coupled for Script {
    fn subflow_added(&mut self, _id: SubflowId, _flow: &FlowInfo) {}
    fn subflow_removed(&mut self, _id: SubflowId) {}
    fn on_ack(&mut self, _id: SubflowId, ack: &Ack) {
        self.acks.push(*ack);
    }
    fn on_loss(&mut self, _id: SubflowId, loss: &Loss) {
        self.losses.push(*loss);
        match loss.kind {
            LossKind::Gap => self.control.cwnd = Bytes(self.control.cwnd.0 / 2),
            LossKind::Timeout => self.control.cwnd = Bytes(MSS),
            _ => {}
        }
    }
    fn on_send(&mut self, _id: SubflowId, _send: &Send) -> SendAction {
        self.send_action.unwrap_or_default()
    }
    fn has_send_hook(&self) -> bool {
        self.send_action.is_some()
    }
    fn on_timer(&mut self, _id: SubflowId, _now: Time) {
        self.timer_calls += 1;
    }
    fn next_timer(&self, _id: SubflowId) -> Option<Time> {
        self.timer
    }
    fn control(&self, _id: SubflowId) -> Control {
        self.control
    }
}

/// The settings that `[sender]` with these fields means, with packets of [`MSS`] bytes.
pub(super) fn config(fields: &str) -> SenderConfig {
    let text = format!(
        "duration_s = 1\n[[link]]\nname = \"a\"\nrate_mbps = 1\n[[flow]]\npath = [\"a\"]\n\
         [sender]\npacket_bytes = {MSS}\nheader_bytes = 0\n{fields}\n"
    );
    Scenario::parse(&text, "test").expect("a sender").network.connections[0].sender
}

pub(super) fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

/// An acknowledgement of everything below `seq`, with these blocks of segments beyond it.
pub(super) fn ack(seq: u64, blocks: &[(u64, u64)]) -> Packet {
    let mut sack = [(0, 0); SACK_BLOCKS];
    for (block, &(start, end)) in sack.iter_mut().zip(blocks) {
        *block = ((start - seq) as u32, (end - start) as u32);
    }
    Packet { kind: Kind::Ack, seq, sack, ..Packet::default() }
}

/// Numbers of the packets, those sent again as `Err`.
pub(super) fn numbers(packets: &[Outgoing]) -> Vec<Result<u64, u64>> {
    packets.iter().map(|out| if out.retransmission { Err(out.seq) } else { Ok(out.seq) }).collect()
}

#[test]
fn supply_hands_out_what_there_is_and_no_end_never_ends() {
    let mut supply = Supply { unsent: 1500, ..Supply::default() };
    assert_eq!((supply.take(1000), supply.take(1000), supply.take(1000)), (1000, 500, 0));
    let mut endless = Supply { unsent: u64::MAX, ..Supply::default() };
    assert_eq!((endless.take(u64::MAX - 1), endless.unsent), (u64::MAX - 1, u64::MAX));
}

#[test]
fn what_a_controller_allows_is_bounded() {
    let mut script = Script::new(0);
    script.control.pacing_rate = Rate(0);
    let allowed = Allowed::read(&script.governor(), MSS);
    assert_eq!((allowed.cwnd, allowed.pacing_rate), (MSS, Rate(1000)));
    script.control.cwnd = Bytes(u64::MAX);
    assert_eq!(Allowed::read(&script.governor(), MSS).cwnd, 1 << 40);
}

#[test]
fn a_timer_that_stays_in_the_past_is_called_once() {
    let mut script = Script::new(10);
    script.timer = Some(at(5));
    for fields in ["", "recovery = \"ns2\""] {
        let mut sender = super::Sender::new(&config(fields), &script.governor());
        let mut supply = Supply::default();
        script.timer_calls = 0;
        assert_eq!(sender.deadline(), at(5));
        sender.on_deadline(at(5), &mut script.governor(), &mut supply);
        assert_eq!((script.timer_calls, sender.deadline()), (1, Time::NEVER), "{fields}");
    }
}
