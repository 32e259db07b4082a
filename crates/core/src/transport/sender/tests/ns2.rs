//! One test per rule of docs/reference/ns2.md, with this crate's NewReno as the controller.
use super::super::tests::{MSS, ack, at, config, numbers};
use super::*;
use crate::control::Send;
use crate::control::{
    Control, Controller, Coupled, FlowInfo, PerFlow, Recovery, SendAction, SubflowId,
};
use crate::controllers;
use crate::params::Params;
use std::sync::{Arc, Mutex};

struct Bench {
    sender: Ns2Sender,
    controller: PerFlow,
    supply: Supply,
}

/// In milliseconds.
const RTT: u64 = 100;

impl Bench {
    fn new(fields: &str) -> Self {
        let config = config(&format!("recovery = \"ns2\"\n{fields}"));
        let spec = controllers::find("new_reno").expect("the name of a controller");
        Self::under(config, controllers::per_flow(spec, Params::defaults(spec.params)))
    }

    fn under(config: SenderConfig, mut controller: PerFlow) -> Self {
        controller.subflow_added(
            SubflowId(0),
            &FlowInfo {
                mss: config.packet,
                initial_cwnd: config.initial_cwnd,
                initial_ssthresh: config.initial_ssthresh,
                recovery: Recovery::Ns2,
                paces: false,
                start: Time(0),
                seed: 0,
            },
        );
        let governor = Governor { coupled: &mut controller, id: SubflowId(0) };
        let sender = Ns2Sender::new(&config, &governor);
        Self { sender, controller, supply: Supply { unsent: u64::MAX, ..Supply::default() } }
    }

    fn send(&mut self, millis: u64) -> Vec<Result<u64, u64>> {
        let mut governor = Governor { coupled: &mut self.controller, id: SubflowId(0) };
        let mut sent = Vec::new();
        while let Some(out) = self.sender.transmit(at(millis), &mut governor, &mut self.supply) {
            sent.push(out);
        }
        numbers(&sent)
    }

    /// The ACK that says packet `number` was the last in order, of a packet sent a round trip ago.
    fn ack(&mut self, millis: u64, number: i64) -> Vec<Result<u64, u64>> {
        let sent_at = at(millis.saturating_sub(RTT));
        let packet = Packet { sent_at, ..ack((number + 1) as u64, &[]) };
        let mut governor = Governor { coupled: &mut self.controller, id: SubflowId(0) };
        self.sender.on_ack(at(millis), &packet, &mut governor, &mut self.supply);
        self.send(millis)
    }

    fn expire(&mut self) -> Vec<Result<u64, u64>> {
        let now = self.sender.deadline();
        let mut governor = Governor { coupled: &mut self.controller, id: SubflowId(0) };
        self.sender.on_deadline(now, &mut governor, &mut self.supply);
        self.send(now.0 / 1_000_000)
    }

    fn window(&self) -> f64 {
        self.controller.control(SubflowId(0)).cwnd.0 as f64 / MSS as f64
    }

    fn threshold(&self) -> f64 {
        self.controller.control(SubflowId(0)).ssthresh.0 as f64 / MSS as f64
    }

    /// No SYN, twelve packets out, two acknowledged by one ACK: 2 to 14 in flight, the window 13.
    fn flying(fields: &str) -> Self {
        let mut bench =
            Self::new(&format!("handshake = false\ninitial_cwnd_packets = 12\n{fields}"));
        assert_eq!(bench.send(0).len(), 12);
        assert_eq!(bench.ack(100, 1), [Ok(12), Ok(13), Ok(14)]);
        bench
    }

    /// Packet 2 is missing, and three duplicate ACKs have said so.
    fn recovering(fields: &str) -> Self {
        let mut bench = Self::flying(fields);
        bench.ack(101, 1);
        bench.ack(102, 1);
        assert_eq!(bench.ack(103, 1)[0], Err(2));
        bench
    }
}

#[test]
fn a_syn_of_forty_bytes_goes_alone_and_opens_the_initial_window() {
    let mut bench = Bench::new("");
    let mut governor = Governor { coupled: &mut bench.controller, id: SubflowId(0) };
    let syn = bench.sender.transmit(at(0), &mut governor, &mut bench.supply).unwrap();
    assert_eq!((syn.seq, syn.size), (0, 40));
    assert_eq!(bench.send(0), []);
    assert_eq!(bench.ack(100, 0), [Ok(1), Ok(2)]);
    assert!((bench.window() - 2.0).abs() < 1e-9);
}

#[test]
fn the_syn_takes_nothing_from_a_transfer() {
    let mut bench = Bench::new("");
    bench.supply.unsent = 2 * MSS;
    assert_eq!(bench.send(0), [Ok(0)]);
    assert_eq!(bench.supply.unsent, 2 * MSS);
    assert_eq!(bench.ack(100, 0), [Ok(1), Ok(2)]);
    assert_eq!(bench.ack(200, 2), []);
    assert!(bench.sender.all_acknowledged());
}

#[test]
fn each_of_the_first_two_duplicate_acks_lets_one_new_packet_out() {
    let mut bench = Bench::flying("");
    assert_eq!(bench.ack(101, 1), [Ok(15)]);
    assert_eq!(bench.ack(102, 1), [Ok(16)]);
}

#[test]
fn the_third_duplicate_ack_halves_resends_and_inflates_by_three() {
    let bench = Bench::recovering("");
    assert!((bench.window() - 6.5).abs() < 1e-9, "{}", bench.window());
    assert!((bench.threshold() - 6.0).abs() < 1e-9, "the whole part of the half");
    assert_eq!((bench.sender.dupwnd, bench.sender.recover), (3, 16));
    assert_eq!(bench.sender.stats.recoveries, 1);
}

#[test]
fn further_duplicate_acks_inflate_and_let_at_most_two_packets_out() {
    let mut bench = Bench::recovering("");
    // Up to 1 + 6 + 3 + n may be out; 16 are.
    for millis in 104..110 {
        assert_eq!(bench.ack(millis, 1), [], "at {millis}");
    }
    assert_eq!(bench.ack(110, 1), [Ok(17)]);
    assert_eq!(bench.sender.dupwnd, 10);
}

#[test]
fn a_partial_ack_resends_the_next_hole_and_deflates() {
    let mut bench = Bench::recovering("");
    (104..108).for_each(|millis| drop(bench.ack(millis, 1)));
    // Four acknowledged of an inflation of seven: four remain.
    assert_eq!(bench.ack(200, 5)[0], Err(6));
    assert_eq!(bench.sender.dupwnd, 7 - (4 - 1));
    assert!((bench.window() - 6.5).abs() < 1e-9);
    // Six more than the inflation: the window shrinks by the rest.
    assert_eq!(bench.ack(201, 11)[0], Err(12));
    assert_eq!(bench.sender.dupwnd, 1);
    assert!((bench.window() - 4.5).abs() < 1e-9, "{}", bench.window());
}

#[test]
fn without_deflation_a_partial_ack_ends_the_inflation() {
    let mut bench = Bench::recovering("deflation = false");
    (104..108).for_each(|millis| drop(bench.ack(millis, 1)));
    assert_eq!(bench.ack(200, 5)[0], Err(6));
    assert_eq!(bench.sender.dupwnd, 0);
    assert!((bench.window() - 6.5).abs() < 1e-9);
}

#[test]
fn the_impatient_timer_is_restarted_by_the_first_partial_ack_only() {
    let mut bench = Bench::recovering("");
    bench.ack(200, 3);
    let due = bench.sender.deadline();
    bench.ack(250, 5);
    assert_eq!(bench.sender.deadline(), due);
    let mut patient = Bench::recovering("impatient = false");
    patient.ack(200, 3);
    patient.ack(250, 5);
    assert_eq!(patient.sender.deadline(), due + Span::from_millis(50));
}

#[test]
fn the_round_trip_is_not_sampled_in_recovery() {
    let mut bench = Bench::recovering("");
    let before = (bench.sender.rtt.srtt(), bench.sender.stats.rtt_samples);
    bench.ack(180, 3);
    bench.ack(190, 4);
    assert_eq!((bench.sender.rtt.srtt(), bench.sender.stats.rtt_samples), before);
}

#[test]
fn the_ack_that_ends_recovery_ends_the_inflation_and_keeps_the_half() {
    let mut bench = Bench::recovering("");
    let end = bench.sender.recover;
    bench.ack(200, end);
    assert_eq!((bench.sender.dupwnd, bench.sender.dupacks), (0, 0));
    assert_eq!(bench.sender.cut, Cut::Exited);
    // And grows as any ACK of new data does.
    assert!((bench.window() - (6.5 + 1.0 / 6.5)).abs() < 2e-3, "{}", bench.window());
}

#[test]
fn there_is_no_second_fast_retransmission_for_one_window() {
    let mut bench = Bench::recovering("");
    bench.expire();
    assert_eq!(bench.sender.cut, Cut::Timeout);
    let end = bench.sender.recover;
    bench.ack(1000, 4);
    let before = bench.sender.stats.recoveries;
    let sent: Vec<_> = (1001..1006).flat_map(|millis| bench.ack(millis, 4)).collect();
    assert_eq!(bench.sender.stats.recoveries, before);
    assert!(!sent.contains(&Err(5)), "{sent:?}");
    // Beyond it, there is.
    bench.ack(1050, end);
    bench.ack(1100, end + 1);
    (1101..1104).for_each(|millis| drop(bench.ack(millis, end + 1)));
    assert_eq!(bench.sender.stats.recoveries, before + 1);
}

#[test]
fn a_time_out_goes_back_to_the_first_packet_and_starts_slowly() {
    let mut bench = Bench::flying("");
    let rto = bench.sender.rtt.rto();
    assert_eq!(bench.expire(), [Err(2)]);
    assert!((bench.window() - 1.0).abs() < 1e-9 && (bench.threshold() - 6.0).abs() < 1e-9);
    assert_eq!(bench.sender.rtt.rto(), rto * 2);
    assert_eq!(bench.sender.recover, 14);
    // What the receiver has is sent again, too.
    assert_eq!(bench.ack(1000, 2), [Err(3), Err(4)]);
    assert_eq!(bench.ack(1001, 3), [Err(5), Err(6)]);
}

#[test]
fn the_back_off_ends_with_the_packet_that_is_timed() {
    let mut bench = Bench::flying("");
    let rto = bench.sender.rtt.rto();
    bench.expire();
    // No packet sent again is timed, so ACKs of them leave the back-off.
    bench.ack(1000, 2);
    assert!(bench.sender.rtt.rto() > rto + rto / 2);
    bench.ack(1001, 14);
    let next = bench.sender.highest_sent;
    bench.ack(1100, next);
    assert!(bench.sender.rtt.rto() < rto * 2, "{}", bench.sender.rtt.rto());
}

#[test]
fn idling_longer_than_the_timer_restarts_the_window_and_keeps_the_threshold() {
    let mut bench = Bench::flying("initial_ssthresh_packets = 50");
    bench.supply.unsent = 0;
    bench.ack(200, 14);
    assert!(bench.sender.all_acknowledged());
    assert_eq!(bench.expire(), []);
    assert!((bench.window() - 1.0).abs() < 1e-9 && (bench.threshold() - 50.0).abs() < 1e-9);
    assert_eq!(bench.sender.stats.timeouts, 0);
    assert_eq!(bench.sender.deadline(), Time::NEVER);
    bench.supply.unsent = 5 * MSS;
    bench.sender.on_supply();
    assert_eq!(bench.send(5000), [Ok(15)]);
    assert!(bench.sender.deadline() < Time::NEVER);
}

#[test]
fn what_the_application_adds_after_a_duplicate_ack_is_sent() {
    let mut bench = Bench::flying("");
    bench.supply.unsent = 0;
    bench.ack(200, 14);
    bench.ack(201, 14); // a copy of something: one duplicate ACK, and no packet to send
    bench.supply.unsent = 3 * MSS;
    bench.sender.on_supply();
    assert_eq!(bench.send(300).len(), 3);
}

#[test]
fn the_receivers_window_bounds_what_is_out() {
    let mut bench =
        Bench::new("handshake = false\ninitial_cwnd_packets = 12\nreceiver_window_packets = 3");
    assert_eq!(bench.send(0), [Ok(0), Ok(1), Ok(2)]);
    assert_eq!(bench.ack(100, 0), [Ok(3)]);
}

#[test]
fn without_timestamps_one_packet_is_timed_at_a_time() {
    let mut bench = Bench::flying("timestamps = false\nrto_tick_ms = 1");
    let samples = |bench: &Bench| bench.sender.rtt.latest();
    assert_eq!(samples(&bench), Span::from_millis(100));
    // 12 is timed, since it left with the first ACK; the ACKs before it give nothing.
    bench.ack(130, 5);
    assert_eq!(samples(&bench), Span::from_millis(100));
    bench.ack(250, 12);
    assert_eq!(samples(&bench), Span::from_millis(150));
}

#[test]
fn acks_of_what_was_never_sent_change_nothing() {
    let mut bench = Bench::flying("");
    assert_eq!(bench.ack(200, 1000), []);
    assert_eq!(bench.ack(201, -1), []);
    assert_eq!((bench.sender.acked, bench.sender.highest_sent), (1, 14));
}

/// Of each question whether it was about a retransmission, and the packet's place in the window.
type Asked = Arc<Mutex<Vec<(u64, u64)>>>;

/// Keeps a window of three packets and writes down what it is asked; holds new packets from `hold`
/// on.
struct Holding {
    asked: Asked,
    hold: u64,
    new: u64,
}

impl Controller for Holding {
    fn on_ack(&mut self, _: &Ack) {
        self.hold = u64::MAX;
    }
    fn on_loss(&mut self, _: &Loss) {}
    fn on_send(&mut self, send: &Send) -> SendAction {
        self.asked.lock().unwrap().push((send.retransmission, send.order));
        self.new += 1 - send.retransmission;
        if self.new > self.hold { SendAction::Hold } else { SendAction::Send }
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn control(&self) -> Control {
        Control::window(Bytes(3 * MSS))
    }
}

/// A sender whose controller holds new packets from the one numbered `hold` until an ACK.
fn holding(hold: u64) -> (Bench, Asked) {
    let asked = Asked::default();
    let shared = Arc::clone(&asked);
    let controller = PerFlow::new(move |_: &FlowInfo| -> Box<dyn Controller> {
        Box::new(Holding { asked: Arc::clone(&shared), hold, new: 0 })
    });
    (Bench::under(config("recovery = \"ns2\"\nhandshake = false"), controller), asked)
}

#[test]
fn a_packet_that_the_controller_holds_waits_for_the_next_ack() {
    let (mut bench, asked) = holding(2);
    assert_eq!(bench.send(0), [Ok(0), Ok(1)]);
    assert_eq!(bench.ack(100, 0), [Ok(2), Ok(3)]);
    let orders: Vec<u64> = asked.lock().unwrap().iter().map(|asked| asked.1).collect();
    assert_eq!(orders, [1, 2, 3, 2, 3], "packet 2 is asked about at 0 ms, held, and again");
}

#[test]
fn a_controller_sees_every_packet_retransmissions_and_limited_transmits_too() {
    let (mut bench, asked) = holding(u64::MAX);
    let mut sent = bench.send(0);
    for (millis, number) in [(100, 1), (101, 1), (102, 1), (103, 1), (200, 4), (300, 6)] {
        sent.extend(bench.ack(millis, number));
    }
    let retransmitted = |sent: &Result<u64, u64>| u64::from(sent.is_err());
    let asked = asked.lock().unwrap();
    let seen: Vec<u64> = asked.iter().map(|asked| asked.0).collect();
    assert_eq!(seen, sent.iter().map(retransmitted).collect::<Vec<_>>(), "{sent:?}");
    assert!(asked.contains(&(1, 1)) && asked.contains(&(0, 5)), "{asked:?}");
}
