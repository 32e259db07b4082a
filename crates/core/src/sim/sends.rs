//! What senders knew at each transmission, and which transmissions a queue dropped: the set that a
//! loss predictor is fitted on (Kong, Zang and Ma, `NetAI` 2018, section 3.1).
//!
//! A run is made twice. The first tells which transmissions are dropped, the second, which is the
//! same to the last bit, then knows the fate of a packet before it leaves: nothing waits for its
//! label, and memory holds only what is kept.
use super::{Builder, Sim};
use crate::control::{Ack, Control, Coupled, FlowInfo, Loss, Send, SendAction, SubflowId};
use crate::rng::{Rng, Seed};
use crate::sensing::sends::SendState;
use crate::sim::plan::{ConnectionPlan, NetworkPlan};
use crate::transport::config::SendHook;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Transmissions, in order of time: one row of each vector.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sends {
    /// What the sender knew right before: [`FEATURES`](crate::sensing::sends::FEATURES) numbers a row.
    pub features: Vec<f32>,
    /// Whether a queue dropped this transmission, or a copy of it that a link made.
    pub dropped: Vec<bool>,
    /// When it left.
    pub time_s: Vec<f64>,
    /// Index of its flow.
    pub flow: Vec<u32>,
    /// 1 in congestion avoidance, 0 in slow start and recovery.
    pub phase: Vec<u8>,
    /// All transmissions, kept or not.
    pub sends: u64,
    /// All that a queue dropped.
    pub drops: u64,
}

/// Which transmissions to keep.
#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// Of the run and of the choice.
    pub seed: Seed,
    /// Every dropped transmission is kept, and of the others one in this many, by chance.
    pub keep_one_in: u64,
}

/// Runs a network, calls send hooks before each packet, and keeps what its senders knew. `build` makes the controllers; `drive` brings a
/// simulation to its end, or stops it with an error.
///
/// # Errors
///
/// Those of `build` and `drive`.
///
/// # Panics
///
/// If `keep_one_in` is zero.
pub fn collect<E>(
    network: &NetworkPlan,
    sampling: Sampling,
    build: &mut Builder<E>,
    drive: &mut dyn FnMut(&mut Sim) -> Result<(), E>,
) -> Result<Sends, E> {
    // Seen from an acknowledgement, questions would not be transmissions.
    let mut network = network.clone();
    for plan in &mut network.connections {
        plan.sender.send_hook = SendHook::Packet;
    }
    let mut first = Sim::new(&network, sampling.seed, build)?;
    first.hosts.drop_log = Some(Vec::new());
    drive(&mut first)?;
    let log = Arc::new(Mutex::new(Log {
        sampling,
        drops: by_flow(first.hosts.drop_log.take().unwrap_or_default(), first.hosts.flows.len()),
        flows: 0,
        sends: Sends::default(),
    }));
    drop(first);
    let mut observed = |plan: &ConnectionPlan| -> Result<Box<dyn Coupled>, E> {
        let inner = build(plan)?;
        Ok(Box::new(Observed { inner, has_hook: false, log: Arc::clone(&log), flows: Vec::new() }))
    };
    let mut second = Sim::new(&network, sampling.seed, &mut observed)?;
    drive(&mut second)?;
    drop(second);
    let sends = std::mem::take(&mut lock(&log).sends);
    Ok(sends)
}

/// Which transmissions of each flow were dropped, the last one first.
fn by_flow(mut log: Vec<(u32, u32)>, flows: usize) -> Vec<Vec<u32>> {
    let mut drops = vec![Vec::new(); flows];
    log.sort_unstable_by(|left, right| right.cmp(left));
    log.dedup();
    for (flow, transmission) in log {
        drops[flow as usize].push(transmission);
    }
    drops
}

struct Log {
    sampling: Sampling,
    drops: Vec<Vec<u32>>,
    flows: u32,
    sends: Sends,
}

fn lock(log: &Mutex<Log>) -> MutexGuard<'_, Log> {
    log.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Hands everything on, and looks at every packet that leaves.
struct Observed {
    inner: Box<dyn Coupled>,
    /// Whether `inner` has a send hook: it looks through its controllers to tell.
    has_hook: bool,
    log: Arc<Mutex<Log>>,
    flows: Vec<Observer>,
}

struct Observer {
    flow: u32,
    state: SendState,
    /// Transmissions so far.
    sent: u32,
    /// Those still to come that will be dropped, the next one last.
    drops: Vec<u32>,
    chance: Rng,
}

impl Observed {
    fn observe(&mut self, id: SubflowId, send: &Send) {
        let observer = &mut self.flows[id.0 as usize];
        let mut log = lock(&self.log);
        let dropped = observer.drops.last() == Some(&observer.sent);
        if dropped {
            observer.drops.pop();
        }
        observer.sent += 1;
        log.sends.sends += 1;
        log.sends.drops += u64::from(dropped);
        if dropped || observer.chance.below(log.sampling.keep_one_in) == 0 {
            let control = self.inner.control(id);
            let rows = &mut log.sends;
            rows.features.extend_from_slice(observer.state.features(&control, send));
            rows.dropped.push(dropped);
            rows.time_s.push(send.now.as_secs_f64());
            rows.flow.push(observer.flow);
            rows.phase.push(u8::from(observer.state.in_avoidance(&control)));
        }
        observer.state.on_sent(send);
    }
}

impl Coupled for Observed {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.inner.subflow_added(id, flow);
        self.has_hook = self.inner.has_send_hook();
        let mut log = lock(&self.log);
        let index = log.flows;
        log.flows += 1;
        self.flows.push(Observer {
            flow: index,
            state: SendState::new(flow.mss),
            sent: 0,
            drops: std::mem::take(&mut log.drops[index as usize]),
            chance: log.sampling.seed.stream("sends", u64::from(index)),
        });
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.inner.on_ack(id, ack);
        self.flows[id.0 as usize].state.on_ack(ack);
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.inner.on_loss(id, loss);
        self.flows[id.0 as usize].state.on_loss(loss);
    }
    fn on_send(&mut self, id: SubflowId, send: &Send) -> SendAction {
        if self.has_hook && self.inner.on_send(id, send) == SendAction::Hold {
            return SendAction::Hold;
        }
        self.observe(id, send);
        SendAction::Send
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(self.inner.as_ref())
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(self.inner.as_mut())
    }
}

#[cfg(test)]
#[path = "tests/sends.rs"]
mod tests;
