//! What only the simulator knows about flows that learn ([`Truth`]): their fair share, how long their packets
//! waited in queues, what queues dropped. Collected only if a run is asked to, and without any effect on it.
//!
//! A packet's wait is known at the link that sends it, and counts for the interval in which it left its sender
//! (`waits`). Everything else is a question about the past: which flows were active when, and what the links
//! could carry (`shares`). It is asked for the time in which the bottleneck served what an interval measured:
//! the time in which its acknowledgements came, less the propagation from the bottleneck to the receiver and back.
use super::network::Network;
use super::plan::{LinkPlan, LossSpec, NetworkPlan, RatePlan, TrafficSpec};
use super::{Event, Sim};
use crate::decision::{AgentState, Credit, Metrics, TRUTH, Truth};
use crate::transport::packet::Packet;
use crate::units::{Span, Time};
use shares::{Active, Shares, Window};
use waits::{Sums, Waits};

mod shares;
mod waits;

/// Largest buffer, in bandwidth-delay products; also that of a queue without a limit.
const BUFFER_MAX: f64 = 1000.0;
/// Intervals since an event are counted up to here.
const INTERVALS_MAX: usize = 64;
/// Shortest time over which capacity is measured.
const WINDOW_MIN: Span = Span::from_millis(1);

/// Controllers that fill a buffer until it overflows, beside those that are named after CUBIC or Reno.
const LOSS_BASED: &[&str] =
    &["balia", "compound", "hybla", "illinois", "lia", "lp_tcp", "olia", "westwood_plus"];

/// What a flow's controller does to others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    LossBased,
    Bbr,
    Other,
}

impl Kind {
    fn of(controller: &str) -> Self {
        if controller.starts_with("bbr") {
            Self::Bbr
        } else if controller.contains("cubic")
            || controller.contains("reno")
            || LOSS_BASED.contains(&controller)
        {
            Self::LossBased
        } else {
            Self::Other
        }
    }
}

/// What is known of a flow beforehand.
struct Facts {
    /// Links of its data, and of its acknowledgements.
    forward: Vec<u32>,
    reverse: Vec<u32>,
    controller: Box<str>,
    kind: Kind,
    packet_bytes: f64,
    /// Of a flow that learns.
    own: Option<Box<Own>>,
}

/// What is collected of a flow that learns.
#[derive(Default)]
struct Own {
    waits: Waits,
    /// The link that bounded its fair share last.
    bottleneck: u32,
    /// When its latest intervals ended.
    ends: Vec<Time>,
    /// The decision whose report was completed last.
    told: Option<u64>,
}

/// What an agent was told, of which it may know the truth.
struct Told {
    decision: u64,
    arrived: Metrics,
    credit: Option<Credit>,
}

/// Of what arrived, and of what was sent.
type Rows = ([f64; TRUTH], Option<[f64; TRUTH]>);

/// Everything that is collected.
pub(super) struct Collector {
    class: f64,
    links: Vec<LinkPlan>,
    flows: Vec<Facts>,
    shares: Shares,
    /// For each link, what it had served at some times.
    served: Vec<Vec<(Time, f64)>>,
}

impl Sim {
    /// Collects [`Truth`] for the flows of this controller from time 0 on; `class` is what it says of the
    /// class.
    pub fn collect_truth(&mut self, plan: &NetworkPlan, controller: &str, class: usize) {
        let learns: Vec<u32> = self.flows_of(controller).collect();
        let facts = |index: usize| {
            let flow = &self.hosts.flows[index];
            let name = match &self.hosts.plans[index].datagrams {
                Some(_) => "none",
                None => &*self.hosts.connections[flow.connection as usize].controller,
            };
            let forward = self.net.links_of(flow.forward).to_vec();
            let bottleneck = forward.first().copied().unwrap_or_default();
            let own = || Box::new(Own { bottleneck, ..Own::default() });
            Facts {
                forward,
                reverse: self.net.links_of(flow.reverse).to_vec(),
                controller: name.into(),
                kind: Kind::of(name),
                packet_bytes: flow.packet_bytes as f64,
                own: learns.contains(&(index as u32)).then(own),
            }
        };
        let flows: Vec<Facts> = (0..self.hosts.flows.len()).map(facts).collect();
        let served = vec![Vec::new(); plan.links.len()];
        let shares = Shares::new(flows.len(), &plan.links);
        let links = plan.links.clone();
        self.hosts.truth =
            Some(Box::new(Collector { class: class as f64, links, flows, shares, served }));
        self.net.watch();
    }

    /// As [`agent_state`](Self::agent_state), with the [`Truth`] of what it reports if that is collected.
    pub fn agent_state_with_truth(&mut self, flow: u32) -> Option<&mut AgentState> {
        let fresh = self.agent_state(flow).filter(|state| state.fresh);
        let told = fresh.map(|state| Told {
            decision: state.decision,
            arrived: state.arrived,
            credit: state.credit,
        });
        if let Some(told) = told
            && let Some(mut truth) = self.hosts.truth.take()
        {
            let rows = truth.rows_of(flow as usize, &told, &mut self.net);
            self.hosts.truth = Some(truth);
            if let (Some((row, credit_row)), Some(state)) = (rows, self.agent_state(flow)) {
                state.truth = row;
                state.credit_truth = credit_row.unwrap_or(state.credit_truth);
            }
        }
        self.agent_state(flow)
    }

    /// Notes that the application of a connection may have become active or idle.
    pub(super) fn note_activity(&mut self, connection: u32) {
        let Some(mut truth) = self.hosts.truth.take() else { return };
        let one = &self.hosts.connections[connection as usize];
        let active = one.app.is_active();
        for index in one.first_flow..one.first_flow + one.flow_count {
            if truth.shares.is_active(index) != active {
                let demand_mbps = if active { self.demand_mbps(index) } else { 0.0 };
                truth.shares.note(self.net.now(), Active { flow: index, demand_mbps }, active);
            }
        }
        self.hosts.truth = Some(truth);
    }

    /// The most that a flow's application wants, Mb/s on the wire: its rate if it has one; of a transfer, all
    /// of it within a round trip.
    fn demand_mbps(&self, index: u32) -> f64 {
        let (flow, plan) = (&self.hosts.flows[index as usize], &self.hosts.plans[index as usize]);
        let app = &self.hosts.connections[flow.connection as usize].app;
        let packet = flow.packet_bytes as f64;
        let on_wire = packet / (packet - plan.header_bytes as f64).max(1.0);
        match **app.traffic() {
            TrafficSpec::Bulk {} => f64::INFINITY,
            TrafficSpec::Cbr { rate_mbps, .. } => rate_mbps,
            TrafficSpec::AppLimited { rate_mbps, .. } => rate_mbps * on_wire,
            TrafficSpec::Writes { write_bytes, interval_ms, .. } => {
                mbps(f64::from(write_bytes) * on_wire, interval_ms / 1e3)
            }
            TrafficSpec::OnOff { .. }
            | TrafficSpec::Fixed { .. }
            | TrafficSpec::Poisson { .. }
            | TrafficSpec::RequestResponse { .. } => {
                let bytes = (app.supply.unsent as f64 * on_wire).max(packet);
                mbps(bytes, plan.base_rtt.as_secs_f64().max(1e-3))
            }
        }
    }
}

/// Mb/s of so many bytes in so many seconds; 0 in no time.
fn mbps(bytes: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes * 8e-6 / seconds } else { 0.0 }
}

impl Collector {
    /// A link has begun to send a packet that waited this long, the first of its path or a later one.
    #[inline]
    pub(super) fn waited(&mut self, packet: &Packet, wait: Span) {
        if let Some(own) = &mut self.flows[packet.flow as usize].own {
            own.waits.waited(packet.sent_at, wait, packet.hop == 0);
        }
    }

    /// A queue has dropped a packet.
    pub(super) fn dropped(&mut self, packet: &Packet) {
        if let Some(own) = &mut self.flows[packet.flow as usize].own {
            own.waits.dropped(packet.sent_at, packet.hop == 0);
        }
    }

    /// The truth of what an agent was told, in the same order; none if it was asked for before.
    fn rows_of(&mut self, flow: usize, told: &Told, net: &mut Network<Event>) -> Option<Rows> {
        let mut own = self.flows[flow].own.take()?;
        let is_new = own.told != Some(told.decision);
        let rows = is_new.then(|| self.new_rows(flow, &mut own, told, net));
        self.flows[flow].own = Some(own);
        rows
    }

    fn new_rows(
        &mut self,
        flow: usize,
        own: &mut Own,
        told: &Told,
        net: &mut Network<Event>,
    ) -> Rows {
        own.told = Some(told.decision);
        self.sample_served(own.bottleneck, net);
        if own.ends.len() == INTERVALS_MAX {
            own.ends.remove(0);
        }
        own.ends.push(net.now());
        let took = Span::from_secs_f64(told.arrived.duration_s);
        let sent = (own.waits.take_recent(), took);
        let truth = self.row(flow, own, net, (&told.arrived, sent));
        let row = Truth { interval: told.decision as f64 - 1.0, ..truth }.row();
        let credit_row = told.credit.map(|credit| {
            let sums = own.waits.take(credit.sent_from, credit.sent_until);
            let sent = (sums, credit.sent_until.since(credit.sent_from));
            let truth = self.row(flow, own, net, (&credit.metrics, sent));
            Truth { interval: credit.decision as f64, ..truth }.row()
        });
        (row, credit_row)
    }

    /// The truth of an interval with these metrics, with what became of packets that were sent for so long.
    fn row(
        &mut self,
        flow: usize,
        own: &mut Own,
        net: &mut Network<Event>,
        (metrics, (sums, sending)): (&Metrics, (Sums, Span)),
    ) -> Truth {
        let window = self.served_in(flow, own.bottleneck, net, metrics);
        let share = self.shares.of(flow as u32, window, &self.flows, net);
        own.bottleneck = share.bottleneck;
        let facts = &self.flows[flow];
        let base_rtt_s = self.propagation_s(flow, net, window.until);
        let capacity = share.capacity_mbps;
        let queue_ms = sums.mean_ms();
        let packets = if sending > Span::ZERO { sums.waited_ns / sending.0 as f64 } else { 0.0 };
        let own_queue_ms = packets * facts.packet_bytes * 8e-3 / capacity;
        let kinds = self.kinds(flow, window.until);
        Truth {
            interval: 0.0,
            fair_mbps: share.fair_mbps,
            queue_ms,
            congestion_loss: sums.dropped_ratio(),
            own_queue_packets: packets,
            // The packets of a flow wait no longer for each other than for all.
            own_queue_ms: if own_queue_ms < queue_ms { own_queue_ms } else { queue_ms },
            capacity_mbps: capacity,
            base_rtt_ms: base_rtt_s * 1e3,
            buffer_bdp: self.buffer_bdp(own.bottleneck, facts.packet_bytes, capacity * base_rtt_s),
            utilisation: self.utilisation(own.bottleneck, window, capacity),
            own_kind_flows: kinds[0],
            loss_based_flows: kinds[1],
            bbr_flows: kinds[2],
            random_loss: self.random_loss(flow, window.until),
            class: self.class,
            intervals_since_event: self.since_event(flow, &own.ends, window),
        }
    }

    /// When the bottleneck served what an interval measured.
    fn served_in(
        &self,
        flow: usize,
        bottleneck: u32,
        net: &mut Network<Event>,
        metrics: &Metrics,
    ) -> Window {
        let end = Time::from_secs_f64(metrics.time_s);
        let took = Span::from_secs_f64(metrics.duration_s);
        let facts = &self.flows[flow];
        let behind = facts.forward.iter().skip_while(|link| **link != bottleneck);
        let tail: Span = behind
            .chain(&facts.reverse)
            .map(|&link| net.link(link as usize).propagation(end))
            .sum();
        let until = Time(end.0.saturating_sub(tail.0).max(WINDOW_MIN.0));
        Window { from: Time(until.0 - took.max(WINDOW_MIN).0.min(until.0)), until }
    }

    fn propagation_s(&self, flow: usize, net: &mut Network<Event>, at: Time) -> f64 {
        let Facts { forward, reverse, .. } = &self.flows[flow];
        let links = forward.iter().chain(reverse);
        links.map(|&link| net.link(link as usize).propagation(at)).sum::<Span>().as_secs_f64()
    }

    fn buffer_bdp(&self, link: u32, packet_bytes: f64, megabits: f64) -> f64 {
        let Some(plan) = self.links.get(link as usize) else { return BUFFER_MAX };
        let held = plan.queue.limit_bytes(packet_bytes);
        let bytes = megabits * 1e6 / 8.0;
        if held < BUFFER_MAX * bytes { held / bytes } else { BUFFER_MAX }
    }

    /// What a link has served until now, for later questions.
    fn sample_served(&mut self, link: u32, net: &mut Network<Event>) {
        let now = net.now();
        let Some(samples) = self.served.get_mut(link as usize) else { return };
        if samples.last().is_none_or(|last| last.0 < now) {
            if samples.len() == SAMPLES_MAX {
                samples.drain(..SAMPLES_MAX / 2);
            }
            samples.push((now, net.link(link as usize).served(now) as f64));
        }
    }

    fn utilisation(&self, link: u32, window: Window, capacity_mbps: f64) -> f64 {
        let Some(samples) = self.served.get(link as usize) else { return 0.0 };
        let bytes = served_by(samples, window.until) - served_by(samples, window.from);
        let used = mbps(bytes, window.until.since(window.from).as_secs_f64());
        if capacity_mbps > 0.0 { (used / capacity_mbps).clamp(0.0, 1.0) } else { 0.0 }
    }

    /// Flows that share a link with this one: of its own kind, itself included, loss-based, of BBR.
    fn kinds(&self, flow: usize, at: Time) -> [f64; 3] {
        let own = &self.flows[flow];
        let mut counts = [1.0, 0.0, 0.0];
        let others = self.shares.active_at(at).filter(|&other| other as usize != flow);
        for other in others.map(|other| &self.flows[other as usize]) {
            if !other.meets(own) {
                continue;
            }
            if other.controller == own.controller {
                counts[0] += 1.0;
            }
            counts[1] += f64::from(u8::from(other.kind == Kind::LossBased));
            counts[2] += f64::from(u8::from(other.kind == Kind::Bbr));
        }
        counts
    }

    fn random_loss(&self, flow: usize, at: Time) -> f64 {
        let links = self.flows[flow].forward.iter().map(|&link| &self.links[link as usize]);
        1.0 - links.map(|link| 1.0 - expected_loss(link, at)).product::<f64>()
    }

    /// How many intervals ago the last event on the path of a flow was; 0 for that in which it was.
    fn since_event(&self, flow: usize, ends: &[Time], window: Window) -> f64 {
        let Window { from, until } = window;
        let own = &self.flows[flow];
        let came_or_went = self.shares.last_change(until, |other| {
            other as usize == flow || self.flows[other as usize].meets(own)
        });
        let links = own.forward.iter().map(|&link| &self.links[link as usize]);
        let changed = links.filter_map(|link| last_rate_change(link, until)).max();
        let event = came_or_went.max(changed).unwrap_or_default();
        if event >= from {
            return 0.0;
        }
        let since = ends.iter().filter(|&&end| event < end && end <= from).count();
        (since + 1).min(INTERVALS_MAX) as f64
    }
}

/// Most samples kept of what a link has served.
const SAMPLES_MAX: usize = 2048;

/// What was served by a time between samples.
fn served_by(samples: &[(Time, f64)], at: Time) -> f64 {
    let after = samples.partition_point(|sample| sample.0 < at);
    let next = samples.get(after).copied().or(samples.last().copied()).unwrap_or_default();
    let before = after.checked_sub(1).map_or((Time(0), 0.0), |before| samples[before]);
    let span = next.0.since(before.0).0 as f64;
    if span <= 0.0 {
        return next.1;
    }
    before.1 + (next.1 - before.1) * (at.since(before.0).0 as f64 / span).min(1.0)
}

impl Facts {
    /// Whether the data of two flows share a link.
    fn meets(&self, other: &Self) -> bool {
        self.forward.iter().any(|link| other.forward.contains(link))
    }
}

/// Part of packets that a link loses, as its plan says.
fn expected_loss(link: &LinkPlan, at: Time) -> f64 {
    let unrepaired = link
        .extras
        .retransmit
        .map_or(0.0, |spec| libm::pow(spec.ratio, f64::from(spec.most) + 1.0));
    let holds = |from_s: f64, until_s: Option<f64>| {
        let now = at.as_secs_f64();
        from_s <= now && until_s.is_none_or(|until| now < until)
    };
    let step = link.loss_schedule.iter().take_while(|step| step.0 <= at).last();
    let lost = match link.loss {
        _ if step.is_some() => step.map_or(0.0, |step| step.1),
        Some(LossSpec::Bernoulli { ratio, from_s, until_s }) if holds(from_s, until_s) => ratio,
        Some(LossSpec::GilbertElliott {
            good_to_bad,
            bad_to_good,
            good_loss,
            bad_loss,
            from_s,
            until_s,
        }) if holds(from_s, until_s) => {
            let changes = good_to_bad + bad_to_good;
            let bad = if changes > 0.0 { good_to_bad / changes } else { 0.0 };
            bad * bad_loss + (1.0 - bad) * good_loss
        }
        _ => 0.0,
    };
    1.0 - (1.0 - lost) * (1.0 - unrepaired)
}

/// When the rate of a link changed last; a trace changes always.
fn last_rate_change(link: &LinkPlan, until: Time) -> Option<Time> {
    let of_rate = match &link.rate {
        RatePlan::Constant(_) => None,
        RatePlan::Schedule(steps) => Some(steps.began(until)).filter(|&at| at > Time(0)),
        RatePlan::Random { every, finer, .. } => {
            let within = until.0 % every.0.max(1);
            let step = finer.map_or(0, |finer| within - within % finer.every.0.max(1));
            Some(Time(until.0 - within + step)).filter(|&at| at > Time(0))
        }
        RatePlan::Trace(_) => Some(until),
    };
    let ends = link.outages.iter().flat_map(|&(from, to)| [from, to]);
    of_rate.max(ends.filter(|at| *at <= until).max())
}

#[cfg(test)]
mod tests;
