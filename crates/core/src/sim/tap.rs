//! Observers of packets: what leaves and reaches a host, and what links do to it. A simulation without a tap
//! takes no longer for them.
use super::{Flow, Hosts, Sim};
use crate::control::SubflowId;
use crate::transport::packet::Packet;
use crate::units::Time;

/// Where a packet is seen. Links are numbered as in the [plan](super::plan::NetworkPlan::links).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// It leaves its host: the sender of data, the receiver of what is acknowledged.
    Sent,
    /// It reaches the other host.
    Received,
    /// It comes to the queue of this link.
    Enters(u32),
    /// It has left this link's queue, marked or not: its last bit is sent.
    Leaves(u32),
    /// This link's queue, or its policer, drops it.
    Dropped(u32),
    /// It is lost on the wire of this link; it was seen to leave the queue.
    Lost(u32),
}

/// Sees every packet of a simulation, and changes nothing.
///
/// Packets at hosts are seen in the order of time. So are those at one link, but a link that decides on arrival
/// knows at once when a packet will leave: what it does is seen ahead of time, also after the end of the run.
pub trait Tap: std::marker::Send {
    /// A packet is at a point.
    fn packet(&mut self, at: Time, point: Point, packet: &Packet);

    /// A flow has nothing more to send: its application is done, or its subflow has closed. It may be told twice.
    fn ended(&mut self, _at: Time, _flow: u32) {}

    /// The run is over.
    fn finished(&mut self, _at: Time) {}
}

/// Who a flow is, for a tap that gets its number only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlowId {
    /// Unique; that of a subflow ends in `.N`.
    pub name: String,
    /// Number of its connection, in the order of their beginning in the plan.
    pub connection: u32,
    /// Its place among the connection's subflows.
    pub subflow: u32,
    /// Which of the controllers that were built governs it, in the order of building.
    pub governor: u32,
    /// How that controller calls it.
    pub id: SubflowId,
}

impl Sim {
    /// Shows every packet from here on to this tap; several see it in the order in which they were added.
    pub fn add_tap(&mut self, tap: Box<dyn Tap>) {
        self.net.watch();
        self.hosts.taps.push(tap);
    }

    /// Who the flows are, in the order of their numbers ([`Packet::flow`]).
    pub fn flow_ids(&self) -> impl Iterator<Item = FlowId> {
        let flows = self.hosts.flows.iter().zip(&self.hosts.plans).enumerate();
        flows.map(|(index, (flow, plan))| {
            let Flow { connection, governor, id, .. } = *flow;
            let first = self.hosts.connections[connection as usize].first_flow;
            let subflow = index as u32 - first;
            FlowId { name: plan.name.to_string(), connection, subflow, governor, id }
        })
    }
}

impl Hosts {
    pub(super) fn tell_taps_end(&mut self, at: Time, flow: u32) {
        for tap in &mut self.taps {
            tap.ended(at, flow);
        }
    }

    pub(super) fn finish_taps(&mut self, at: Time) {
        for tap in &mut self.taps {
            tap.finished(at);
        }
    }
}

#[cfg(test)]
#[path = "tests/tap.rs"]
mod tests;
