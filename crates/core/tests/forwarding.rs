//! Wrappers of controllers forward every call: a controller behind a box, behind [`PerFlow`] and behind
//! an [`AckSendHook`] gets what it gets without them.
use ackademy::control::{
    Ack, Control, Controller, Coupled, FlowInfo, Loss, PacketEvent, PerFlow, Send, SendAction,
    SubflowId,
};
use ackademy::decision::AgentState;
use ackademy::transport::send_hook::AckSendHook;
use ackademy::units::{Bytes, Time};
use std::sync::{Arc, Mutex};

use crate::support::table::ordinary_flow;

type Calls = Arc<Mutex<Vec<&'static str>>>;

/// Records its calls and answers each query with a value that no default returns.
struct Probe(Calls, AgentState);

impl Probe {
    fn called(&self, name: &'static str) {
        self.0.lock().expect("no panic").push(name);
    }
}

impl Controller for Probe {
    fn on_ack(&mut self, _: &Ack) {
        self.called("on_ack");
    }
    fn on_loss(&mut self, _: &Loss) {
        self.called("on_loss");
    }
    fn control(&self) -> Control {
        Control::window(Bytes(9000))
    }
    fn on_send(&mut self, _: &Send) -> SendAction {
        self.called("on_send");
        SendAction::Hold
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn on_packet(&mut self, _: &PacketEvent) {
        self.called("on_packet");
    }
    fn wants_packets(&self) -> bool {
        true
    }
    fn judges_rounds(&self) -> bool {
        true
    }
    fn on_timer(&mut self, _: Time) {
        self.called("on_timer");
    }
    fn next_timer(&self) -> Option<Time> {
        Some(Time(5))
    }
    fn on_end(&mut self, _: Time) {
        self.called("on_end");
    }
    fn agent_state(&mut self) -> Option<&mut AgentState> {
        Some(&mut self.1)
    }
    fn fell_back(&self) -> bool {
        true
    }
    fn counters(&self) -> Vec<(&'static str, f64)> {
        vec![("probe", 1.0)]
    }
}

const ID: SubflowId = SubflowId(0);

fn per_flow(calls: &Calls) -> PerFlow {
    let calls = Arc::clone(calls);
    PerFlow::new(move |_: &FlowInfo| -> Box<dyn Controller> {
        // A box in a box: calls go through the implementation for boxes.
        let inner: Box<dyn Controller> = Box::new(Probe(Arc::clone(&calls), AgentState::new(3)));
        Box::new(inner)
    })
}

/// Makes every call but that of the send hook.
fn call_all(wrapper: &mut dyn Coupled) {
    wrapper.subflow_added(ID, &ordinary_flow());
    wrapper.on_ack(ID, &Ack::default());
    wrapper.on_loss(ID, &Loss::default());
    wrapper.on_packet(ID, &PacketEvent::default());
    wrapper.on_timer(ID, Time(1));
    wrapper.on_end(ID, Time(2));
    assert_eq!(wrapper.next_timer(ID), Some(Time(5)));
    assert_eq!(wrapper.agent_state(ID).map(|state| state.observation.len()), Some(3));
    assert!(wrapper.fell_back(ID));
    assert!(wrapper.judges_rounds() && wrapper.wants_packets());
    assert!(wrapper.counters(ID).contains(&("probe", 1.0)));
}

/// Records which connection its subflows belong to, and leaves the rest to the defaults of a wrapper.
struct Host {
    inner: PerFlow,
    connections: Arc<Mutex<Vec<(SubflowId, u32)>>>,
}

impl Coupled for Host {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
    }
    fn subflow_of(&mut self, id: SubflowId, connection: u32) {
        self.connections.lock().expect("no panic").push((id, connection));
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.inner.on_ack(id, ack);
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.inner.on_loss(id, loss);
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
}

#[test]
fn a_governor_of_a_host_is_told_the_connection_of_a_subflow_through_a_wrapper() {
    let connections = Arc::default();
    let host = Host { inner: per_flow(&Calls::default()), connections: Arc::clone(&connections) };
    let mut wrapper = AckSendHook::new(Box::new(host));
    wrapper.subflow_added(SubflowId(3), &ordinary_flow());
    wrapper.subflow_of(SubflowId(3), 7);
    assert_eq!(*connections.lock().expect("no panic"), [(SubflowId(3), 7)]);
}

#[test]
fn a_boxed_controller_and_one_per_flow_get_every_call() {
    let calls = Calls::default();
    let mut wrapper = per_flow(&calls);
    call_all(&mut wrapper);
    assert!(wrapper.has_send_hook());
    assert_eq!(wrapper.control(ID).cwnd, Bytes(9000));
    let send = Send { now: Time(3), ..Send::default() };
    assert_eq!(wrapper.on_send(ID, &send), SendAction::Hold);
    let expected = ["on_ack", "on_loss", "on_packet", "on_timer", "on_end", "on_send"];
    assert_eq!(*calls.lock().expect("no panic"), expected);
}

#[test]
fn a_controller_behind_the_send_hook_per_acknowledgement_gets_every_call() {
    let calls = Calls::default();
    let mut wrapper = AckSendHook::new(Box::new(per_flow(&calls)));
    call_all(&mut wrapper);
    assert!(!wrapper.has_send_hook(), "the wrapper calls the hook, not the transport");
    let calls = calls.lock().expect("no panic");
    for name in ["on_ack", "on_loss", "on_packet", "on_timer", "on_end", "on_send"] {
        assert!(calls.contains(&name), "{name} of {calls:?}");
    }
}
