//! A rate is obeyed on the wire: over every stretch of time a sender sends at most what the
//! controller's rates add up to, and the packet that opens the stretch. Both senders, with losses,
//! time-outs and rates that change.
use super::tests::{at, config};
use super::{Governor, Outgoing, Sender, Supply};
use crate::control::{Ack, Control, Coupled, FlowInfo, Loss, LossKind, SubflowId};
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::transport::receiver::Receiver;
use crate::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

const PACKET: u64 = 1000;
const DELAY: Span = Span::from_millis(20);
const END: Time = Time(20_000_000_000);
/// How long each rate is asked for.
const TURN: Span = Span::from_millis(70);

/// Goes through its rates again and again, and leaves the window open.
struct Turns {
    rates: Vec<Rate>,
    turn: usize,
    next: Time,
    window: Bytes,
    timeouts: u32,
    told: Vec<Ack>,
}

impl Turns {
    fn rate(&self) -> Rate {
        self.rates[self.turn % self.rates.len()]
    }
}

impl Coupled for Turns {
    fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
    fn subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, ack: &Ack) {
        self.told.push(*ack);
    }
    fn on_loss(&mut self, _: SubflowId, loss: &Loss) {
        self.timeouts += u32::from(loss.kind == LossKind::Timeout);
    }
    fn on_timer(&mut self, _: SubflowId, now: Time) {
        self.turn += 1;
        self.next = now + TURN;
    }
    fn next_timer(&self, _: SubflowId) -> Option<Time> {
        Some(self.next)
    }
    fn control(&self, _: SubflowId) -> Control {
        Control { pacing_rate: self.rate(), ..Control::window(self.window) }
    }
}

/// What left when, and what would have been allowed by then.
#[derive(Default)]
struct Departures {
    bytes: f64,
    allowed: f64,
    counted_to: Time,
    /// Smallest of sent less allowed before a departure: where the worst stretch could begin.
    lowest: f64,
    /// Largest excess over what a stretch allows, in bytes.
    excess: f64,
}

impl Departures {
    fn pass(&mut self, now: Time, rate: Rate) {
        self.allowed += now.since(self.counted_to).as_secs_f64() * rate.0 as f64 / 8.0;
        self.counted_to = now;
    }

    fn record(&mut self, packet: Outgoing) {
        self.lowest = self.lowest.min(self.bytes - self.allowed);
        self.bytes += f64::from(packet.size);
        self.excess = self.excess.max(self.bytes - self.allowed - self.lowest);
    }
}

/// Runs a sender of this kind over 40 ms of path that loses packets at random.
fn run(fields: &str, rates_kbps: &[u64], loss_ratio: f64) -> Departures {
    run_within(fields, rates_kbps, loss_ratio, 1000, false).departures
}

/// What happened in a run.
struct Run {
    departures: Departures,
    turns: Turns,
    sent: Vec<(Time, Outgoing)>,
    /// Deadlines that came.
    wakes: u32,
}

/// As [`run`], with a window of so many packets; `holds` if wake-ups are spared for packets that it holds back.
fn run_within(fields: &str, rates_kbps: &[u64], loss_ratio: f64, window: u64, holds: bool) -> Run {
    let config = config(fields);
    let rates = rates_kbps.iter().map(|kbps| Rate(kbps * 1000)).collect();
    let mut turns = Turns {
        rates,
        turn: 0,
        next: Time(0) + TURN,
        window: Bytes(window * PACKET),
        timeouts: 0,
        told: Vec::new(),
    };
    let (mut sent, mut wakes) = (Vec::new(), 0);
    let governor = Governor { coupled: &mut turns, id: SubflowId(0) };
    let mut sender = Sender::new(&config, &governor);
    let mut receiver = Receiver::new(1, Span::ZERO, 40, !fields.contains("ns2"));
    let mut supply = Supply { unsent: u64::MAX, ..Supply::default() };
    let mut rng = Rng::new(1);
    let mut departures = Departures::default();
    let (mut there, mut back) = (VecDeque::<Packet>::new(), VecDeque::<(Time, Packet)>::new());
    let mut now = Time(0);
    while now < END {
        let mut governor = Governor { coupled: &mut turns, id: SubflowId(0) };
        while let Some(out) = sender.transmit(now, &mut governor, &mut supply) {
            departures.record(out);
            sent.push((now, out));
            if !rng.chance(loss_ratio) {
                let (seq, size, repeat) = (out.seq, out.size, out.retransmission);
                there.push_back(Packet { seq, size, repeat, sent_at: now, ..Packet::default() });
            }
        }
        if holds {
            sender.hold_while_full(supply);
        }
        let arrival = there.front().map_or(Time::NEVER, |packet| packet.sent_at + DELAY);
        let acked = back.front().map_or(Time::NEVER, |(left, _)| *left + DELAY);
        let next = sender.deadline().min(arrival).min(acked).max(now);
        departures.pass(next, turns.rate());
        now = next;
        let mut governor = Governor { coupled: &mut turns, id: SubflowId(0) };
        if now == arrival {
            let mut ack = Packet::default();
            receiver.on_data(now, &there.pop_front().expect("arrived"), &mut ack);
            back.push_back((now, ack));
        } else if now == acked && sender.deadline() > now {
            // What is due goes first: an acknowledgement finds the window full that a wake-up has found full.
            let (_, ack) = back.pop_front().expect("arrived");
            sender.on_ack(now, &ack, &mut governor, &mut supply);
        } else {
            sender.on_deadline(now, &mut governor, &mut supply);
            wakes += 1;
        }
    }
    assert!(now < END + TURN * 20, "nothing happens");
    Run { departures, turns, sent, wakes }
}

#[test]
fn wake_ups_spared_for_packets_that_the_window_holds_back_change_nothing() {
    for (window, loss_ratio) in [(2, 0.0), (7, 0.0), (7, 0.02), (30, 0.3)] {
        let run = |holds| run_within("tlp = true", &[8_000, 1_500], loss_ratio, window, holds);
        let (mut woken, mut spared) = (run(false), run(true));
        // The last event of either may be later.
        for run in [&mut woken, &mut spared] {
            run.turns.told.retain(|ack| ack.now < END);
        }
        assert_eq!(woken.sent, spared.sent, "window {window}, loss {loss_ratio}");
        assert_eq!(woken.turns.told, spared.turns.told, "window {window}, loss {loss_ratio}");
        assert!(spared.wakes < woken.wakes, "{} of {} wake-ups", spared.wakes, woken.wakes);
    }
}

const KINDS: [&str; 2] = ["tlp = true", "recovery = \"ns2\""];

#[test]
fn a_constant_rate_is_kept_to_within_a_packet_and_used() {
    for fields in KINDS {
        for kbps in [64, 5_000, 40_000] {
            let departures = run(fields, &[kbps], 0.0);
            let (excess, used) = (departures.excess, departures.bytes / departures.allowed);
            assert!(excess <= PACKET as f64 + 1.0, "{fields}, {kbps} kb/s: {excess} bytes more");
            assert!(used > 0.98, "{fields}, {kbps} kb/s: {used} of the rate used");
        }
    }
}

#[test]
fn a_changing_rate_is_kept_to_within_two_packets() {
    // A packet that left at a high rate has the next one follow early, whatever the rate is by then.
    for fields in KINDS {
        let departures = run(fields, &[8_000, 800, 20_000, 2_000], 0.0);
        let (excess, used) = (departures.excess, departures.bytes / departures.allowed);
        assert!(excess <= 2.0 * PACKET as f64, "{fields}: {excess} bytes more");
        assert!(used > 0.95, "{fields}: {used} of the rate used");
    }
}

#[test]
fn losses_and_time_outs_add_a_packet_at_most() {
    for fields in KINDS {
        // A window that is never full keeps acknowledgements coming, so that nothing times out with SACK.
        for (loss_ratio, window) in [(0.02, 1000), (0.4, 1000), (0.02, 3), (0.4, 3)] {
            let run = run_within(fields, &[8_000, 800, 4_000], loss_ratio, window, false);
            let (excess, timeouts) = (run.departures.excess, run.turns.timeouts);
            let expects = loss_ratio > 0.1 && window == 3;
            assert!(timeouts > 0 || !expects, "{fields}: no time-out was tested");
            assert!(
                excess <= 3.0 * PACKET as f64,
                "{fields}, {loss_ratio}, {window}: {excess} bytes more"
            );
        }
    }
}

#[test]
fn a_window_that_opens_late_is_not_made_up_for() {
    // One packet in flight: at each acknowledgement one leaves, never two.
    let mut script = super::tests::Script::new(1);
    script.control.pacing_rate = Rate(8_000_000);
    for fields in KINDS {
        let mut sender = Sender::new(&config(fields), &script.governor());
        let mut supply = Supply { unsent: u64::MAX, ..Supply::default() };
        assert!(sender.transmit(at(0), &mut script.governor(), &mut supply).is_some());
        assert!(sender.transmit(at(10), &mut script.governor(), &mut supply).is_none());
        script.control.cwnd = Bytes(10 * PACKET);
        sender.on_ack(at(40), &super::tests::ack(1, &[]), &mut script.governor(), &mut supply);
        assert!(sender.transmit(at(40), &mut script.governor(), &mut supply).is_some(), "{fields}");
        assert!(sender.transmit(at(40), &mut script.governor(), &mut supply).is_none(), "{fields}");
        assert!(sender.transmit(at(41), &mut script.governor(), &mut supply).is_some(), "{fields}");
        script.control.cwnd = Bytes(PACKET);
    }
}

#[test]
fn a_packet_that_left_at_a_tiny_rate_holds_the_next_one_back_for_a_second_at_most() {
    let mut script = super::tests::Script::new(10);
    for fields in KINDS {
        script.control.pacing_rate = Rate(1000); // eight seconds for a packet
        let mut sender = Sender::new(&config(fields), &script.governor());
        let mut supply = Supply { unsent: u64::MAX, ..Supply::default() };
        // The first may be a small one that opens the connection.
        assert!(sender.transmit(at(0), &mut script.governor(), &mut supply).is_some());
        sender.on_ack(at(40), &super::tests::ack(1, &[]), &mut script.governor(), &mut supply);
        assert!(sender.transmit(at(2000), &mut script.governor(), &mut supply).is_some());
        script.control.pacing_rate = Rate(8_000_000);
        sender.on_ack(at(2040), &super::tests::ack(2, &[]), &mut script.governor(), &mut supply);
        assert_eq!(sender.release(), at(3000), "{fields}");
        assert!(sender.transmit(at(2999), &mut script.governor(), &mut supply).is_none());
        assert!(sender.transmit(at(3000), &mut script.governor(), &mut supply).is_some());
        assert!(sender.transmit(at(3001), &mut script.governor(), &mut supply).is_some());
    }
}
