//! Rules of the send hook per acknowledgement, with a controller that holds what would make its flight too long.
use super::*;
use crate::control::{Controller, PerFlow};
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::Sim;
use crate::units::Span;
use std::sync::{Arc, Mutex};

const PACKET: u64 = 1000;
const ID: SubflowId = SubflowId(0);

type Questions = Arc<Mutex<Vec<Send>>>;

/// Grows by a packet a round trip; holds what would be more than `limit` packets in flight, and
/// lowers its window by one for each packet held.
struct Toy {
    packet: f64,
    cwnd: f64,
    limit: u64,
    asked: Questions,
}

impl Controller for Toy {
    fn on_ack(&mut self, ack: &Ack) {
        self.cwnd += self.packet * ack.acked.0 as f64 / self.cwnd;
    }
    fn on_loss(&mut self, loss: &Loss) {
        if loss.kind != LossKind::More {
            self.cwnd = (self.cwnd / 2.0).max(2.0 * self.packet);
        }
    }
    fn on_send(&mut self, send: &Send) -> SendAction {
        self.asked.lock().unwrap().push(*send);
        if (send.inflight.0 + send.size.0) as f64 <= self.limit as f64 * self.packet {
            return SendAction::Send;
        }
        self.cwnd = (self.cwnd - self.packet).max(2.0 * self.packet);
        SendAction::Hold
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn control(&self) -> Control {
        Control::window(Bytes(self.cwnd as u64))
    }
}

fn toys(limit: u64, asked: &Questions) -> Box<dyn Coupled> {
    let asked = Arc::clone(asked);
    Box::new(PerFlow::new(move |flow| {
        let (packet, cwnd) = (flow.mss.0 as f64, flow.initial_cwnd.0 as f64);
        Box::new(Toy { packet, cwnd, limit, asked: Arc::clone(&asked) })
    }))
}

/// A hook that was called at the start for a first window of ten packets.
fn hook(limit: u64) -> (AckSendHook, Questions) {
    let asked = Questions::default();
    let mut hook = AckSendHook::new(toys(limit, &asked));
    let flow = FlowInfo {
        mss: Bytes(PACKET),
        initial_cwnd: Bytes(10 * PACKET),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    };
    hook.subflow_added(ID, &flow);
    (hook, asked)
}

/// Packets acknowledged, and left in flight by that.
fn ack(now_ms: u64, acked: u64, inflight: u64) -> Ack {
    Ack {
        now: Time(0) + Span::from_millis(now_ms),
        acked: Bytes(acked * PACKET),
        inflight: Bytes(inflight * PACKET),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

/// The questions since the last call: milliseconds, packets in flight.
fn taken(asked: &Questions) -> Vec<(f64, u64)> {
    let sent = std::mem::take(&mut *asked.lock().unwrap());
    sent.iter().map(|send| (send.now.as_secs_f64() * 1e3, send.inflight.0 / PACKET)).collect()
}

fn window(hook: &AckSendHook) -> u64 {
    hook.control(ID).cwnd.0 / PACKET
}

#[test]
fn the_first_window_is_asked_for_at_the_start_until_a_packet_is_held() {
    let (hook, asked) = hook(4);
    assert_eq!(taken(&asked), (0..5).map(|inflight| (0.0, inflight)).collect::<Vec<_>>());
    assert_eq!(window(&hook), 4, "the controller's own is nine");
}

#[test]
fn an_acknowledgement_asks_for_what_it_lets_out() {
    let (mut hook, asked) = hook(100);
    taken(&asked);
    hook.on_ack(ID, &ack(50, 2, 8));
    assert_eq!(taken(&asked), [(50.0, 8), (50.0, 9)]);
    assert_eq!(window(&hook), 10);
}

#[test]
fn a_sender_that_fills_its_window_slowly_is_asked_for_what_leaves() {
    let (hook, asked) = hook(100);
    let mut hook = hook.with_burst(3);
    taken(&asked);
    hook.on_ack(ID, &ack(50, 1, 3));
    assert_eq!(taken(&asked), [(50.0, 3), (50.0, 4), (50.0, 5)], "the window has room for ten");
    assert_eq!(window(&hook), 10);
}

#[test]
fn a_held_packet_is_asked_for_again_with_the_next_acknowledgement() {
    let (mut hook, asked) = hook(9);
    assert_eq!(taken(&asked).len(), 10, "nine pass, the tenth is held");
    hook.on_ack(ID, &ack(50, 1, 8));
    assert_eq!(taken(&asked), [(50.0, 8)]);
    assert_eq!(window(&hook), 9);
}

#[test]
fn a_sender_that_was_quicker_than_the_answer_is_one_packet_ahead_and_no_more() {
    let (mut hook, asked) = hook(9);
    taken(&asked);
    // All ten had left: the one that was held is asked for late, in the place of the one delivered.
    for round in 1..=5 {
        hook.on_ack(ID, &ack(50 + round, 1, 9));
        assert_eq!(taken(&asked), [((50 + round) as f64, 8)]);
        assert_eq!(window(&hook), 9);
    }
    assert_eq!(hook.counters(ID), [("send_hook_calls", 15.0), ("send_hook_calls_late", 5.0)]);
}

#[test]
fn what_left_between_two_records_is_asked_for_as_if_it_had_left_all_along() {
    let (mut hook, asked) = hook(100);
    taken(&asked);
    hook.on_ack(ID, &ack(100, 10, 9));
    let times: Vec<f64> = taken(&asked).iter().map(|question| question.0).collect();
    let late: Vec<f64> = (1..=9).map(|number| f64::from(number) * 100.0 / 9.0).collect();
    assert_eq!(times.len(), 11, "nine that left, and two that the window of eleven admits");
    assert!(times[..9].iter().zip(&late).all(|(a, b)| (a - b).abs() < 1e-3), "{times:?}");
    assert_eq!(times[9..], [100.0, 100.0]);
}

/// Eight packets are four acknowledgements of a receiver that delays every second one.
#[test]
fn a_record_of_many_acknowledgements_may_hold_one_packet_for_each_of_them() {
    let (mut hook, _) = hook(0);
    let before = hook.inner.control(ID).cwnd.0 / PACKET;
    hook.on_ack(ID, &ack(100, 8, 10));
    assert_eq!(before - hook.inner.control(ID).cwnd.0 / PACKET, 4);
}

#[test]
fn nothing_new_is_asked_for_while_the_window_is_not_used() {
    let (mut hook, asked) = hook(100);
    taken(&asked);
    hook.on_ack(ID, &Ack { cwnd_limited: 0, ..ack(50, 5, 5) });
    assert_eq!(taken(&asked), []);
    hook.on_ack(ID, &Ack { cwnd_limited: 0, ..ack(60, 1, 6) });
    assert_eq!(taken(&asked), [(60.0, 4), (60.0, 5)], "two left without a question");
}

#[test]
fn in_recovery_the_controller_is_told_of_repairs_and_holds_nothing() {
    let (mut hook, asked) = hook(9);
    let lost = Loss { lost: Bytes(PACKET), kind: LossKind::Gap, ..Loss::default() };
    hook.on_loss(ID, &lost);
    assert_eq!(hook.control(ID).cwnd, hook.inner.control(ID).cwnd);
    taken(&asked);
    hook.on_ack(ID, &Ack { recovering: 1, ..ack(50, 1, 9) });
    hook.on_ack(ID, &Ack { recovering: 1, ..ack(51, 1, 9) });
    let flags: Vec<u64> = asked.lock().unwrap().iter().map(|send| send.retransmission).collect();
    assert_eq!(flags, [1, 0]);
    assert_eq!(hook.control(ID).cwnd, hook.inner.control(ID).cwnd);
}

#[test]
fn a_flow_of_which_everything_is_held_still_sends_a_packet() {
    let (mut hook, _) = hook(0);
    assert_eq!(hook.control(ID).cwnd, Bytes(PACKET));
    hook.on_ack(ID, &ack(50, 1, 0));
    assert_eq!(hook.control(ID).cwnd, Bytes(PACKET));
}

fn questions_in_the_simulator(when: &str, more: &str) -> Vec<Send> {
    let text = format!(
        "duration_s = 20\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 5\n\
         queue = {{ kind = \"drop_tail\", packets = 100 }}\n{more}\n[[flow]]\ncontroller = \"new_reno\"\n\
         sender = {{ send_hook = \"{when}\", ack_every = 1 }}\n"
    );
    let network = Scenario::parse(&text, "test").expect("a scenario").network;
    let asked = Questions::default();
    let mut build = |_: &_| Ok::<_, ()>(toys(20, &asked));
    let mut sim = Sim::new(&network, Seed(1), &mut build).expect("toys");
    sim.run_until(network.duration);
    drop(sim);
    Arc::into_inner(asked).expect("the last").into_inner().unwrap()
}

/// Without losses, and with a sender that applies the window at once, the two hooks are equal.
#[test]
fn the_calls_of_a_hook_per_acknowledgement_are_those_of_a_hook_per_packet() {
    let each = questions_in_the_simulator("packet", "");
    let together = questions_in_the_simulator("ack", "");
    assert!(each.len() > 8000, "{}", each.len());
    assert_eq!(each.len(), together.len());
    assert_eq!(each.iter().zip(&together).find(|(a, b)| a != b), None);
}

/// In recovery the hook per acknowledgement learns late of what leaves, and of the packets in which
/// others were found lost not at all.
#[test]
fn with_losses_the_two_hooks_are_called_for_nearly_the_same_packets() {
    let loss = "loss = { kind = \"bernoulli\", ratio = 0.01 }";
    let each = questions_in_the_simulator("packet", loss).len() as f64;
    let together = questions_in_the_simulator("ack", loss).len() as f64;
    assert!((together / each - 1.0).abs() < 0.03, "{each} and {together}");
}

#[test]
fn a_controller_is_known_to_have_a_send_hook_before_it_has_a_flow() {
    let plain = crate::controllers::find("cubic").expect("in the table");
    let params = crate::params::Params::defaults(plain.params);
    assert!(!has_send_hook(Box::new(crate::controllers::per_flow(plain, params))));
    assert!(has_send_hook(toys(1, &Questions::default())));
}

#[test]
fn a_controller_without_a_send_hook_is_forwarded_unchanged() {
    let run = |when: &str| {
        let text = format!(
            "duration_s = 5\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 5\n\
             queue = {{ kind = \"drop_tail\", packets = 10 }}\n[[flow]]\n\
             sender = {{ send_hook = \"{when}\" }}\n"
        );
        let network = Scenario::parse(&text, "test").expect("a scenario").network;
        format!("{:?}", crate::sim::run(&network, Seed(1)).expect("built-in"))
    };
    assert_eq!(run("packet"), run("ack"));
}

/// A timer found the loss, and no acknowledgement told of its repair.
#[test]
fn what_leaves_after_a_recovery_is_new() {
    let (mut hook, asked) = hook(100);
    let loss = Loss { lost: Bytes(2 * PACKET), inflight: Bytes(10 * PACKET), ..Loss::default() };
    hook.on_loss(ID, &loss);
    hook.on_ack(ID, &ack(50, 4, 4));
    asked.lock().unwrap().clear();
    hook.on_ack(ID, &ack(60, 2, 2));
    let again = |send: &Send| send.retransmission == 1;
    let asked = asked.lock().unwrap();
    assert!(!asked.is_empty() && !asked.iter().any(again), "{asked:?}");
}
