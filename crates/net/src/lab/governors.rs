//! Which controller governs which connection, told by its address.
use super::plan::{Flow, KERNEL};
use super::result::AgentFlow;
use crate::kernel::{Assign, Counters, FlowKey, FlowTotals, Group};
use ackademy::control::{Coupled, FlowInfo};
use ackademy::coupled::{self, Scope};
use ackademy::rng::Seed;
use ackademy::sim;
use ackademy::sim::plan::{ConnectionPlan, TrafficSpec};
use ackademy::units::Bytes;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};

/// What controllers left behind, by row of the subflow.
#[derive(Debug, Default)]
pub struct Closed {
    /// How the subflow was served.
    pub served: BTreeMap<usize, AgentFlow>,
    /// Counters of its controller.
    pub counters: BTreeMap<usize, Vec<(&'static str, f64)>>,
}

/// Gives each connection of a plan the controller that it has in the simulator, seeds included.
pub struct Governors {
    flows: Vec<Flow>,
    /// Index of the flow, and of the subflow within it.
    by_address: BTreeMap<IpAddr, (usize, usize)>,
    seed: Seed,
    closed: Arc<Mutex<Closed>>,
}

impl Governors {
    /// For the flows of a plan; what is left of them goes to `closed`.
    pub fn new(flows: &[Flow], seed: Seed, closed: Arc<Mutex<Closed>>) -> Self {
        let by_address = flows.iter().enumerate().flat_map(|(flow, of)| {
            let subflows = of.subflows.iter().enumerate();
            subflows.map(move |(subflow, path)| (path.sender, (flow, subflow)))
        });
        Self { by_address: by_address.collect(), flows: flows.to_vec(), seed, closed }
    }

    /// The flow, and the index of its subflow.
    fn find(&self, key: &FlowKey) -> Option<(&Flow, usize)> {
        let &(flow, subflow) = self.by_address.get(&key.local.ip())?;
        Some((&self.flows[flow], subflow))
    }

    /// The first flow that is under the same governor of a host, as in the simulator.
    fn host(&self, flow: &Flow) -> u64 {
        let settings = |flow: &Flow| {
            let ConnectionPlan { controller, params, sender, .. } = &flow.plan;
            (controller.clone(), params.clone(), sender.send_hook)
        };
        let wanted = settings(flow);
        self.flows.iter().position(|known| settings(known) == wanted).unwrap_or(0) as u64
    }
}

/// Whether a flow is governed by this project's controllers.
pub fn is_governed(flow: &Flow) -> bool {
    !flow.plan.controller.starts_with(KERNEL)
        && !matches!(flow.plan.traffic, TrafficSpec::Cbr { .. })
}

impl Assign for Governors {
    fn group(&mut self, key: &FlowKey) -> Group {
        let Some((flow, _)) = self.find(key) else { return Group::Flow };
        match coupled::find(&flow.plan.controller).map(|spec| spec.scope) {
            None => Group::Flow,
            Some(Scope::Connection) => Group::Connection,
            Some(Scope::Host) => Group::Number(self.host(flow)),
        }
    }

    /// What the simulator would tell: the scenario's seed, initial window and threshold.
    fn info(&mut self, key: &FlowKey, info: FlowInfo) -> FlowInfo {
        let Some((flow, subflow)) = self.find(key) else { return info };
        let sender = &flow.plan.sender;
        let initial_cwnd = sender.initial_cwnd.0 as f64 / sender.packet.0 as f64;
        let initial_ssthresh = sender.initial_ssthresh.0 / sender.packet.0;
        FlowInfo {
            // As the simulator derives it.
            seed: self.seed.derive("controller", flow.stream << 8 | subflow as u64),
            initial_cwnd: Bytes((initial_cwnd * info.mss.0 as f64) as u64),
            initial_ssthresh: Bytes(initial_ssthresh.saturating_mul(info.mss.0)),
            ..info
        }
    }

    fn governor(&mut self, key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        sim::builtin(&self.find(key)?.0.plan).ok()
    }

    fn closed(&mut self, key: &FlowKey, counters: Counters, totals: &FlowTotals) {
        let Some((flow, subflow)) = self.find(key) else { return };
        let row = flow.first_row + subflow;
        let served = AgentFlow {
            flow: flow.subflows[subflow].name.clone(),
            samples: totals.samples,
            decisions: totals.decisions,
            fallbacks: totals.fallbacks,
            refused: totals.refused,
            invalid: totals.invalid,
        };
        let mut closed = self.closed.lock().expect("no thread panics while it holds the lock");
        closed.served.insert(row, served);
        closed.counters.insert(row, counters);
    }
}
