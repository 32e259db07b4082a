//! Which flows were active when, and what each could have had: max-min fair shares.
use super::Facts;
use crate::sim::Event;
use crate::sim::network::Network;
use crate::sim::plan::{LinkPlan, RatePlan};
use crate::units::{Rate, Time};
use std::collections::VecDeque;

/// Most changes of activity that are remembered.
const EPOCHS_MAX: usize = 4096;

/// A part of the past.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) from: Time,
    pub(super) until: Time,
}

/// A flow that has something to send.
#[derive(Clone, Copy, Debug)]
pub(super) struct Active {
    pub(super) flow: u32,
    /// The most that it wants.
    pub(super) demand_mbps: f64,
}

/// From a time until the next, these flows were active.
struct Epoch {
    from: Time,
    active: Vec<Active>,
    /// Whose activity changed at its beginning.
    changed: Vec<u32>,
    /// Each flow's share, where the capacity of links does not change.
    shares: Option<Vec<Share>>,
}

/// What a flow could have had.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) fair_mbps: f64,
    /// The link that bounds it; that of the least capacity if the flow wants less.
    pub(super) bottleneck: u32,
    /// What that could carry.
    pub(super) capacity_mbps: f64,
}

/// The history of flows' activity.
pub(super) struct Shares {
    epochs: VecDeque<Epoch>,
    is_active: Vec<bool>,
    /// What policers let pass, per link, Mb/s.
    policed_mbps: Vec<f64>,
    /// No link's rate ever changes.
    is_steady: bool,
}

impl Shares {
    /// Of so many flows, none of them active at time 0.
    pub(super) fn new(flows: usize, links: &[LinkPlan]) -> Self {
        let first = Epoch { from: Time(0), active: Vec::new(), changed: Vec::new(), shares: None };
        let steady =
            |link: &LinkPlan| matches!(link.rate, RatePlan::Constant(_)) && link.outages.is_empty();
        let policed =
            |link: &LinkPlan| link.extras.policer.map_or(f64::INFINITY, |spec| spec.rate_mbps);
        Self {
            epochs: VecDeque::from([first]),
            is_active: vec![false; flows],
            policed_mbps: links.iter().map(policed).collect(),
            is_steady: links.iter().all(steady),
        }
    }

    /// Whether a flow is active now.
    pub(super) fn is_active(&self, flow: u32) -> bool {
        self.is_active[flow as usize]
    }

    /// A flow becomes active or idle.
    pub(super) fn note(&mut self, now: Time, flow: Active, active: bool) {
        self.is_active[flow.flow as usize] = active;
        let last = self.epochs.back().expect("there is a first epoch");
        if last.from < now {
            let (active, changed) = (last.active.clone(), Vec::new());
            self.epochs.push_back(Epoch { from: now, active, changed, shares: None });
        }
        if self.epochs.len() > EPOCHS_MAX {
            self.epochs.pop_front();
        }
        let last = self.epochs.back_mut().expect("there is a first epoch");
        last.shares = None;
        last.changed.push(flow.flow);
        if active {
            last.active.push(flow);
        } else {
            last.active.retain(|other| other.flow != flow.flow);
        }
    }

    /// The flows that were active at a time.
    pub(super) fn active_at(&self, at: Time) -> impl Iterator<Item = u32> {
        self.epochs[self.epoch_at(at)].active.iter().map(|one| one.flow)
    }

    /// When one of these flows came or went last.
    pub(super) fn last_change(&self, until: Time, of: impl Fn(u32) -> bool) -> Option<Time> {
        let until = self.epoch_at(until) + 1;
        let epochs = self.epochs.range(..until).rev();
        let mut found = epochs.filter(|epoch| epoch.changed.iter().any(|&flow| of(flow)));
        found.next().map(|epoch| epoch.from)
    }

    fn epoch_at(&self, at: Time) -> usize {
        self.epochs.partition_point(|epoch| epoch.from <= at).saturating_sub(1)
    }

    /// The share of a flow in a window, mean over the time in which it was active; what its path could carry
    /// if it was not.
    pub(super) fn of(
        &mut self,
        flow: u32,
        window: Window,
        flows: &[Facts],
        net: &mut Network<Event>,
    ) -> Share {
        let mut mean = Share { fair_mbps: 0.0, bottleneck: 0, capacity_mbps: 0.0 };
        let mut weight = 0.0;
        for index in self.epoch_at(window.from)..self.epochs.len() {
            let next = self.epochs.get(index + 1).map_or(Time::NEVER, |next| next.from);
            let from = window.from.max(self.epochs[index].from);
            let part = Window { from, until: window.until.min(next) };
            if part.from >= part.until {
                break;
            }
            if let Some(share) = self.in_epoch((index, part), flow, flows, net) {
                let length = part.until.since(part.from).as_secs_f64();
                mean.fair_mbps += share.fair_mbps * length;
                mean.bottleneck = share.bottleneck;
                weight += length;
            }
        }
        if weight > 0.0 {
            let capacity_mbps = self.capacity_mbps(mean.bottleneck, window, net);
            return Share { fair_mbps: mean.fair_mbps / weight, capacity_mbps, ..mean };
        }
        let path = &flows[flow as usize].forward;
        let capacity = |&link: &u32| (link, self.capacity_mbps(link, window, net));
        let least = path.iter().map(capacity).min_by(|one, other| one.1.total_cmp(&other.1));
        let (bottleneck, mbps) = least.unwrap_or((0, 0.0));
        Share { fair_mbps: mbps, bottleneck, capacity_mbps: mbps }
    }

    /// The share of a flow in a part of an epoch, if it was active.
    fn in_epoch(
        &mut self,
        (index, part): (usize, Window),
        flow: u32,
        flows: &[Facts],
        net: &mut Network<Event>,
    ) -> Option<Share> {
        let epoch = &self.epochs[index];
        let place = epoch.active.iter().position(|one| one.flow == flow)?;
        if let Some(shares) = &epoch.shares {
            return Some(shares[place]);
        }
        let mut links = vec![f64::NAN; self.policed_mbps.len()];
        for one in &epoch.active {
            for &link in &flows[one.flow as usize].forward {
                if links[link as usize].is_nan() {
                    links[link as usize] = self.capacity_mbps(link, part, net);
                }
            }
        }
        let path = |flow: u32| flows[flow as usize].forward.as_slice();
        let shares = max_min(&epoch.active, path, &links);
        let found = shares[place];
        if self.is_steady {
            self.epochs[index].shares = Some(shares);
        }
        Some(found)
    }

    fn capacity_mbps(&self, link: u32, window: Window, net: &mut Network<Event>) -> f64 {
        let Some(policed) = self.policed_mbps.get(link as usize) else { return 0.0 };
        let bytes = net.link(link as usize).capacity(window.from, window.until);
        Rate::of(bytes, window.until.since(window.from)).as_mbps().min(*policed)
    }
}

/// Max-min fair shares of flows on links of these capacities, Mb/s: all rates rise together, and each flow's
/// stops where it has what it wants or a link of its path is full.
pub(super) fn max_min<'a>(
    active: &[Active],
    path: impl Fn(u32) -> &'a [u32],
    capacity: &[f64],
) -> Vec<Share> {
    let mut left = capacity.to_vec();
    let mut count = vec![0_u32; left.len()];
    for link in active.iter().flat_map(|one| path(one.flow)) {
        count[*link as usize] += 1;
    }
    let mut shares: Vec<Option<Share>> = vec![None; active.len()];
    while let Some((at, level)) = next_level(active, &shares, &left, &count) {
        for (one, share) in active.iter().zip(&mut shares) {
            let links = path(one.flow);
            let stops = match at {
                Stop::Link(link) => links.contains(&link),
                Stop::Demand => one.demand_mbps <= level,
            };
            if share.is_some() || !stops {
                continue;
            }
            let narrow = |one: &&u32, other: &&u32| {
                capacity[**one as usize].total_cmp(&capacity[**other as usize])
            };
            let bottleneck = match at {
                Stop::Link(link) => link,
                Stop::Demand => links.iter().min_by(narrow).copied().unwrap_or_default(),
            };
            let capacity_mbps = capacity.get(bottleneck as usize).copied().unwrap_or(level);
            *share = Some(Share { fair_mbps: level, bottleneck, capacity_mbps });
            for &link in links {
                left[link as usize] = (left[link as usize] - level).max(0.0);
                count[link as usize] -= 1;
            }
        }
    }
    let nothing = Share { fair_mbps: 0.0, bottleneck: 0, capacity_mbps: 0.0 };
    shares.into_iter().map(|share| share.unwrap_or(nothing)).collect()
}

/// What stops the next flows.
#[derive(Clone, Copy)]
enum Stop {
    Link(u32),
    Demand,
}

/// At which rate the next flows stop, and why; none if all have.
fn next_level(
    active: &[Active],
    shares: &[Option<Share>],
    left: &[f64],
    count: &[u32],
) -> Option<(Stop, f64)> {
    let links = (0_u32..).zip(left.iter().zip(count)).filter(|(_, (_, count))| **count > 0);
    let levels = links.map(|(link, (left, count))| (Stop::Link(link), left / f64::from(*count)));
    let full = levels.min_by(|one, other| one.1.total_cmp(&other.1));
    let open = active.iter().zip(shares).filter(|(_, share)| share.is_none());
    let wanted = open.map(|(one, _)| one.demand_mbps).min_by(f64::total_cmp)?;
    match full {
        Some((link, level)) if level < wanted => Some((link, level)),
        _ => Some((Stop::Demand, wanted)),
    }
}
