//! Environments for the agent of a host: one decision at a time, each about one of its connections.
use super::{EnvError, Run, learning};
use crate::coupled::drl_cc::{DrlCc, SPEC};
use crate::decision::{ACTION_MAX, Action, AgentState, InvalidAction};
use crate::policy::joint::{JointAgent, JointObservation, JointSpec, PATHS_MAX, WINDOW_MIN};
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::plan::{ConnectionPlan, Dualpi2Spec, NetworkPlan, QueueSpec, RatePlan};
use crate::sim::{self, Sim};
use crate::units::{Span, Time};

/// Connections of one subflow under an agent that learns.
const TCP: &str = "new_reno";

/// A scenario in which a host's agent learns.
#[derive(Clone, Debug)]
pub struct HostEnvironment {
    network: NetworkPlan,
    spec: JointSpec,
}

impl HostEnvironment {
    /// The connections of the entries whose names match one of `learners` (`*` stands for any text, `?`
    /// for any one character) are those of the host.
    ///
    /// # Errors
    ///
    /// If no connection of the host has several subflows, one has another number of them than `spec` says,
    /// or one sends without a congestion controller.
    pub fn new(
        scenario: &Scenario,
        spec: &JointSpec,
        learners: &[String],
    ) -> Result<Self, EnvError> {
        let mut network = scenario.network.clone();
        let subflows = learning(scenario, &mut network, learners, SPEC.name)?;
        let several = |count: &&usize| **count > 1;
        match subflows.iter().find(|count| several(count) && **count != spec.paths) {
            Some(count) => {
                let about = "allowed is the number of subflows of every connection with several";
                Err(EnvError(format!("paths = {}: {about}; one has {count}", spec.paths)))
            }
            None if !subflows.iter().any(|count| *count > 1) => {
                let allowed = "patterns that match a flow with `multipath`";
                Err(EnvError(format!("learners = {learners:?}: allowed are {allowed}")))
            }
            None => Ok(Self { network, spec: *spec }),
        }
    }

    /// What the numbers of a scenario are divided by: the rates of the links that bound the routes of the
    /// host's subflows, the smallest round trip, the largest bandwidth-delay product of a route. The largest
    /// window is 1.5 times that product, or what the route and its queue hold for each of the connections that
    /// are there at once, if that is less.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new), and if a link's rate is a trace's.
    pub fn scales(scenario: &Scenario, learners: &[String]) -> Result<JointSpec, EnvError> {
        let mut network = scenario.network.clone();
        let subflows = learning(scenario, &mut network, learners, SPEC.name)?;
        let governed =
            |plan: &&ConnectionPlan| plan.controller == SPEC.name && plan.subflows.len() > 1;
        let connections: Vec<_> = network.connections.iter().filter(governed).collect();
        let mut bounds = Vec::new();
        let (mut rtt, mut bdp, mut held) = (f64::INFINITY, 0.0_f64, f64::INFINITY);
        for plan in &connections {
            let packet = plan.sender.packet.0.max(1) as f64;
            for route in &plan.subflows {
                let (link, rate) = bound(&network, &route.forward)?;
                let hops = route.forward.iter().chain(&route.reverse);
                let delays = hops.map(|&hop| network.links[hop as usize].delay.minimum());
                let delay = delays.sum::<Span>().as_secs_f64();
                let own = (rate * 1e6 * delay / 8.0 / packet).max(1.0);
                bounds.push((link, rate));
                (rtt, bdp) = (rtt.min(delay), bdp.max(own));
                if let Some(queue) = packets_of(&network.links[link as usize].queue, packet) {
                    held = held.min(own + queue);
                }
            }
        }
        bounds.sort_by_key(|(link, _)| *link);
        bounds.dedup_by_key(|(link, _)| *link);
        let share = held / at_once(&connections).max(1) as f64;
        let spec = JointSpec {
            paths: subflows.into_iter().max().unwrap_or_default(),
            rate_mbps: bounds.iter().map(|(_, rate)| rate).sum(),
            rtt_ms: rtt * 1e3,
            bdp_packets: bdp,
            window_packets: Some((1.5 * bdp).min(share).max(2.0 * WINDOW_MIN)),
            ..JointSpec::default()
        };
        spec.check().map_err(|error| EnvError(error.message()))?;
        Ok(spec)
    }

    /// An episode at time 0.
    ///
    /// # Errors
    ///
    /// If another flow's controller cannot be made; a checked scenario has no such fault.
    pub fn begin(&self, seed: Seed) -> Result<HostEpisode, EnvError> {
        let mut build = |plan: &ConnectionPlan| {
            if plan.controller != SPEC.name || !plan.params.is_empty() {
                return sim::builtin(plan).map_err(EnvError::from);
            }
            let agent = Box::new(ExternalAgent::default());
            Ok(Box::new(DrlCc::new(&self.spec, agent, TCP)) as Box<dyn crate::control::Coupled>)
        };
        let sim = Sim::new(&self.network, seed, &mut build)?;
        Ok(Run::new(sim, self.network.duration, LastAsked(0)))
    }

    /// What the numbers of the observation are.
    pub fn spec(&self) -> &JointSpec {
        &self.spec
    }
}

/// The largest number of connections that are there at the same time.
fn at_once(connections: &[&ConnectionPlan]) -> usize {
    let there = |now: Time, own: &ConnectionPlan| own.start <= now && now < own.stop;
    let beside =
        |own: &ConnectionPlan| connections.iter().filter(|other| there(own.start, other)).count();
    connections.iter().map(|own| beside(own)).max().unwrap_or_default()
}

/// The slowest link of a route, and its largest rate, Mb/s.
fn bound(network: &NetworkPlan, route: &[u32]) -> Result<(u32, f64), EnvError> {
    let mut slowest = (0, f64::INFINITY);
    for &link in route {
        let plan = &network.links[link as usize];
        let rate = match &plan.rate {
            RatePlan::Constant(rate) | RatePlan::Random { high: rate, .. } => rate.as_mbps(),
            RatePlan::Schedule(rates) => {
                rates.values().map(crate::units::Rate::as_mbps).fold(0.0, f64::max)
            }
            RatePlan::Trace(_) => {
                let about = "its rate is a trace, which gives no scale: allowed is a table `host`";
                return Err(EnvError(format!("link {}: {about}", plan.name)));
            }
        };
        if rate < slowest.1 {
            slowest = (link, rate);
        }
    }
    Ok(slowest)
}

/// Packets that a queue holds, if it is bounded.
fn packets_of(queue: &QueueSpec, packet: f64) -> Option<f64> {
    match *queue {
        QueueSpec::DropTail { packets, bytes, .. } => {
            packets.map(|packets| packets as f64).or(bytes.map(|bytes| bytes as f64 / packet))
        }
        QueueSpec::Red { packets, .. }
        | QueueSpec::Codel { packets, .. }
        | QueueSpec::FqCodel { packets, .. }
        | QueueSpec::Pie { packets, .. }
        | QueueSpec::Dualpi2(Dualpi2Spec { packets, .. })
        | QueueSpec::Step { packets, .. } => Some(packets as f64),
    }
}

/// The flow whose acknowledgement made the latest decision due: a host's agent is asked for any of them.
pub struct LastAsked(u32);

/// An episode of a host's agent.
pub type HostEpisode = Run<LastAsked>;

impl HostEpisode {
    /// Runs until an action is awaited, or to the end. Returns true if an action is awaited. Does
    /// nothing while one is.
    pub fn advance(&mut self) -> bool {
        self.ends(self.end);
        self.agents.0 = self.asking.unwrap_or(self.agents.0);
        !self.over
    }

    /// Sets the changes of the target's windows. Returns false, and does nothing, if none are awaited.
    pub fn act(&mut self, changes: [f32; ACTION_MAX]) -> bool {
        let acted = self.state().is_some_and(|state| state.act(Action::Values(changes)));
        if acted {
            self.asking = None;
        }
        acted
    }

    /// What the agent observes: `observation` as in [`JointObservation::numbers`]; of the metrics, the time
    /// and the length of the epoch.
    pub fn state(&mut self) -> Option<&mut AgentState> {
        self.sim.agent_state(self.agents.0)
    }
}

/// Publishes observations, and returns the actions that were set meanwhile.
#[derive(Default)]
struct ExternalAgent(AgentState);

impl JointAgent for ExternalAgent {
    fn act(&mut self, _: &[f32]) -> Result<[f32; PATHS_MAX], InvalidAction> {
        match self.0.take_action() {
            Some(Action::Values(values)) => Ok(values),
            // No action was set, although the episode was continued: fall back.
            _ => Err(InvalidAction::OutOfRange),
        }
    }

    fn observe(&mut self, observation: &JointObservation) {
        let state = &mut self.0;
        state.observation.clear();
        state.observation.extend_from_slice(observation.numbers);
        state.arrived.time_s = observation.time_s;
        state.arrived.duration_s = observation.duration_s;
        state.decision = observation.decision;
        state.fresh = true;
        state.due = true;
    }

    fn state(&mut self) -> Option<&mut AgentState> {
        Some(&mut self.0)
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
