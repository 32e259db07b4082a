//! Which controller governs which connection, told by its address.
use super::plan::{Flow, KERNEL};
use super::result::AgentFlow;
use crate::kernel::{Assign, FlowKey, FlowTotals};
use ackademy::control::{Ack, Control, Coupled, FlowInfo, Loss, SubflowId};
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
        let mut closed = self.closed.lock().expect("no thread panics while it holds the lock");
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
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::control::{Send, SendAction};
    use ackademy::units::Time;

    /// Records which of the calls that have a default reached it.
    struct Probe(Arc<Mutex<Vec<&'static str>>>);

    impl Probe {
        fn called(&self, name: &'static str) {
            self.0.lock().unwrap().push(name);
        }
    }

    impl Coupled for Probe {
        fn subflow_added(&mut self, _: SubflowId, flow: &FlowInfo) {
            assert_eq!(flow.seed, 7, "the scenario's seed");
        }
        fn subflow_removed(&mut self, _: SubflowId) {}
        fn on_ack(&mut self, _: SubflowId, _: &Ack) {}
        fn on_loss(&mut self, _: SubflowId, _: &Loss) {}
        fn control(&self, _: SubflowId) -> Control {
            Control::window(Bytes(1))
        }
        fn on_send(&mut self, _: SubflowId, _: &Send) -> SendAction {
            self.called("on_send");
            SendAction::Hold
        }
        fn has_send_hook(&self) -> bool {
            true
        }
        fn on_timer(&mut self, _: SubflowId, _: Time) {
            self.called("on_timer");
        }
        fn next_timer(&self, _: SubflowId) -> Option<Time> {
            Some(Time(3))
        }
        fn on_end(&mut self, _: SubflowId, _: Time) {
            self.called("on_end");
        }
        fn fell_back(&self, _: SubflowId) -> bool {
            true
        }
        fn counters(&self, _: SubflowId) -> Vec<(&'static str, f64)> {
            vec![("probe", 1.0)]
        }
    }

    #[test]
    fn a_controller_told_the_simulators_values_gets_every_call() {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let inner = Box::new(Probe(Arc::clone(&calls)));
        let mut wrapper = AsSimulated {
            inner,
            seed: 7,
            initial_cwnd_packets: 10.0,
            initial_ssthresh_packets: 64,
        };
        let id = SubflowId(0);
        let send = Send { now: Time(1), ..Send::default() };
        assert_eq!(wrapper.on_send(id, &send), SendAction::Hold);
        wrapper.on_timer(id, Time(1));
        wrapper.on_end(id, Time(2));
        assert_eq!(*calls.lock().unwrap(), ["on_send", "on_timer", "on_end"]);
        assert!(wrapper.has_send_hook() && wrapper.fell_back(id));
        assert_eq!(wrapper.next_timer(id), Some(Time(3)));
        assert_eq!(wrapper.counters(id), [("probe", 1.0)]);
    }
}
