//! Which controller governs which connection, told by its address.
use super::plan::{Flow, KERNEL};
use super::result::AgentFlow;
use crate::kernel::{Assign, FlowKey, FlowTotals};
use ackademy::control::{Ack, Control, Coupled, FlowInfo, Loss, Send, SubflowId, Verdict};
use ackademy::rng::Seed;
use ackademy::scenario::TrafficSpec;
use ackademy::sim;
use ackademy::units::{Bytes, Time};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// What controllers left behind, by index of the flow.
#[derive(Debug, Default)]
pub struct Closed {
    /// How the flow was served.
    pub served: BTreeMap<usize, AgentFlow>,
    /// Counters of its controller.
    pub counters: BTreeMap<usize, Vec<(&'static str, f64)>>,
}

/// Gives each connection of a plan the controller that it has in the simulator, seeds included.
pub struct Governors {
    flows: Vec<Flow>,
    by_address: BTreeMap<IpAddr, usize>,
    seed: Seed,
    closed: Arc<Mutex<Closed>>,
}

impl Governors {
    /// For the flows of a plan; what is left of them goes to `closed`.
    pub fn new(flows: &[Flow], seed: Seed, closed: Arc<Mutex<Closed>>) -> Self {
        let numbered = flows.iter().enumerate();
        let by_address = numbered.map(|(index, flow)| (flow.sender, index)).collect();
        Self { flows: flows.to_vec(), by_address, seed, closed }
    }
}

/// Whether a flow is governed by this project's controllers.
pub fn is_governed(flow: &Flow) -> bool {
    !flow.plan.controller.starts_with(KERNEL)
        && !matches!(flow.plan.traffic, TrafficSpec::Cbr { .. })
}

impl Assign for Governors {
    fn governor(&mut self, key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        let flow = &self.flows[*self.by_address.get(&key.local.ip())?];
        let inner = sim::builtin(&flow.plan).ok()?;
        let sender = &flow.plan.sender;
        Some(Box::new(AsSimulated {
            inner,
            // As the simulator derives it; the flow is subflow 0 of its connection.
            seed: self.seed.derive("controller", flow.stream << 8),
            initial_cwnd_packets: sender.initial_cwnd.0 as f64 / sender.packet.0 as f64,
            initial_ssthresh_packets: sender.initial_ssthresh.0 / sender.packet.0,
        }))
    }

    fn closed(&mut self, key: &FlowKey, governor: Box<dyn Coupled>, totals: &FlowTotals) {
        let Some(&index) = self.by_address.get(&key.local.ip()) else { return };
        let served = AgentFlow {
            flow: self.flows[index].plan.name.clone(),
            samples: totals.samples,
            decisions: totals.decisions,
            fallbacks: totals.fallbacks,
            refused: totals.refused,
            invalid: totals.invalid,
        };
        let mut closed = self.closed.lock().expect("nobody panics while holding it");
        closed.served.insert(index, served);
        closed.counters.insert(index, governor.counters(SubflowId(0)));
    }
}

/// A governor that is told of its flow what the simulator would tell: the scenario's seed, initial
/// window and threshold instead of the kernel's.
struct AsSimulated {
    inner: Box<dyn Coupled>,
    seed: u64,
    initial_cwnd_packets: f64,
    initial_ssthresh_packets: u64,
}

impl Coupled for AsSimulated {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        let cwnd = (self.initial_cwnd_packets * flow.mss.0 as f64) as u64;
        let ssthresh = self.initial_ssthresh_packets.saturating_mul(flow.mss.0);
        let told = FlowInfo {
            seed: self.seed,
            initial_cwnd: Bytes(cwnd),
            initial_ssthresh: Bytes(ssthresh),
            ..*flow
        };
        self.inner.subflow_added(id, &told);
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
    fn on_send(&mut self, id: SubflowId, send: &Send) -> Verdict {
        self.inner.on_send(id, send)
    }
    fn gates(&self) -> bool {
        self.inner.gates()
    }
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        self.inner.on_timer(id, now);
    }
    fn next_timer(&self, id: SubflowId) -> Option<Time> {
        self.inner.next_timer(id)
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        self.inner.counters(id)
    }
}
