//! What taps must know of the flows of a simulation beforehand.
use ackademy::rng::Seed;
use ackademy::sim::plan::{ConnectionPlan, NetworkPlan, Route, TrafficSpec};
use ackademy::sim::tap::FlowId;
use ackademy::sim::{Sim, arrivals};
use ackademy::transport::config::SenderConfig;
use std::sync::Arc;

/// A flow of a simulation.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its number in the simulation.
    pub number: u32,
    /// Who it is.
    pub id: FlowId,
    /// What its connection has in common with the others of its plan.
    pub plan: Arc<Plan>,
}

/// What a plan says of its connections.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How they send.
    pub sender: SenderConfig,
    /// The route of each subflow.
    pub routes: Vec<Route>,
    /// Receive buffer of the connection, if it has several subflows.
    pub shared_window: Option<u64>,
    /// Whether they send datagrams, to which nobody answers.
    pub is_datagrams: bool,
}

impl Plan {
    fn of(plan: &ConnectionPlan) -> Self {
        Self {
            sender: plan.sender,
            routes: plan.subflows.clone(),
            shared_window: plan.mptcp.as_ref().map(|mptcp| mptcp.receive_buffer.0),
            is_datagrams: matches!(plan.traffic, TrafficSpec::Cbr { .. }),
        }
    }
}

impl Flow {
    /// The flows of a simulation of this network with this seed, in the order of their numbers.
    pub fn all(network: &NetworkPlan, seed: Seed, sim: &Sim) -> Vec<Self> {
        let mut ids = sim.flow_ids();
        let mut flows: Vec<Self> = Vec::new();
        for (index, connection) in network.connections.iter().enumerate() {
            let plan = Arc::new(Plan::of(connection));
            let begun = arrivals(connection, index as u64, seed, network.duration).count();
            for id in ids.by_ref().take(begun * plan.routes.len()) {
                flows.push(Self { number: flows.len() as u32, id, plan: Arc::clone(&plan) });
            }
        }
        flows
    }

    /// Where its data and acknowledgements go.
    pub fn route(&self) -> &Route {
        &self.plan.routes[self.id.subflow as usize]
    }

    /// Whether it is one of several subflows.
    pub fn is_subflow(&self) -> bool {
        self.plan.shared_window.is_some()
    }

    /// Payload of a full packet, bytes.
    pub fn payload(&self) -> u64 {
        self.plan.sender.packet.0 - self.plan.sender.header.0
    }

    /// Payload of a packet of this size on the wire, bytes.
    pub fn payload_of(&self, size: u32) -> u64 {
        u64::from(size).saturating_sub(self.plan.sender.header.0)
    }
}
