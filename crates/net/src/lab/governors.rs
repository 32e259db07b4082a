//! Which controller governs which connection, told by its address.
use super::plan::{Flow, KERNEL};
use super::result::AgentFlow;
use crate::kernel::{Assign, Counters, FlowKey, FlowTotals};
use ackademy::control::{Coupled, FlowInfo};
use ackademy::rng::Seed;
use ackademy::sim;
use ackademy::sim::plan::TrafficSpec;
use ackademy::units::Bytes;
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
    /// What the simulator would tell: the scenario's seed, initial window and threshold.
    fn info(&mut self, key: &FlowKey, info: FlowInfo) -> FlowInfo {
        let Some(&index) = self.by_address.get(&key.local.ip()) else { return info };
        let flow = &self.flows[index];
        let sender = &flow.plan.sender;
        let initial_cwnd = sender.initial_cwnd.0 as f64 / sender.packet.0 as f64;
        let initial_ssthresh = sender.initial_ssthresh.0 / sender.packet.0;
        FlowInfo {
            // As the simulator derives it; the flow is subflow 0 of its connection.
            seed: self.seed.derive("controller", flow.stream << 8),
            initial_cwnd: Bytes((initial_cwnd * info.mss.0 as f64) as u64),
            initial_ssthresh: Bytes(initial_ssthresh.saturating_mul(info.mss.0)),
            ..info
        }
    }

    fn governor(&mut self, key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        let flow = &self.flows[*self.by_address.get(&key.local.ip())?];
        sim::builtin(&flow.plan).ok()
    }

    fn closed(&mut self, key: &FlowKey, counters: Counters, totals: &FlowTotals) {
        let Some(&index) = self.by_address.get(&key.local.ip()) else { return };
        let served = AgentFlow {
            flow: self.flows[index].plan.name.clone(),
            samples: totals.samples,
            decisions: totals.decisions,
            fallbacks: totals.fallbacks,
            refused: totals.refused,
            invalid: totals.invalid,
        };
        let mut closed = self.closed.lock().expect("no thread panics while it holds the lock");
        closed.served.insert(index, served);
        closed.counters.insert(index, counters);
    }
}
