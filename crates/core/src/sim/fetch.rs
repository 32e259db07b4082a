//! Asks for flows' state before it is needed.
//!
//! Pipes are ordered, so the flows of the next arrivals are known. Their lines come from memory side by
//! side while earlier events are handled; one after the other, as they are used, each would be waited for.
use super::pipe::Pipe;
use super::{Flow, Hosts};
use crate::transport::packet::{Kind, Packet};
use ackademy_prefetch::prefetch;

/// Flows whose state fits into a core's own cache: below, asking costs more than it saves.
pub(super) const MANY: usize = 200;

/// Flows of which what hangs off their state does not fit beside it.
const VAST: usize = 4000;

/// How many arrivals ahead a flow's own state is asked for; what it points to, and so on, when what
/// points there has come.
const FLOW: usize = 14;
const BEHIND: usize = 9;
const GOVERNOR: usize = 6;
const CONTROLLER: usize = 3;

/// What a wake-up looks at first.
pub(super) fn for_timer(flow: &Flow) {
    prefetch(&flow.sender_due);
    prefetch(&flow.receiver);
}

fn for_data(flow: &Flow) {
    prefetch(&flow.forward);
    prefetch(&flow.sender_due);
    prefetch(&flow.receiver);
    prefetch(&flow.arrived);
}

fn for_ack(flow: &Flow) {
    prefetch(&flow.reverse);
    prefetch(&flow.sender_due);
    prefetch(&flow.sender);
}

impl Hosts {
    /// Asks for what the next arrivals of a link's pipe will touch.
    #[inline(never)]
    pub(super) fn fetch_ahead(&self, pipe: &Pipe) {
        let Some(&Packet { kind, .. }) = pipe.front().map(|next| &next.packet) else { return };
        let vast = self.flows.len() > VAST;
        if vast {
            pipe.fetch(FLOW);
        }
        let flow = |ahead: usize| {
            let next = pipe.get(ahead).map(|next| &next.packet);
            next.filter(|packet| packet.kind == kind)
                .map(|packet| &self.flows[packet.flow as usize])
        };
        if kind != Kind::Ack {
            flow(FLOW).into_iter().for_each(for_data);
            if let Some(flow) = flow(BEHIND).filter(|_| vast) {
                flow.receiver.prefetch_heap();
            }
            return;
        }
        flow(FLOW).into_iter().for_each(for_ack);
        let governor = |flow: &Flow| &self.governors[flow.governor as usize];
        if let Some(flow) = flow(BEHIND) {
            flow.sender.prefetch_heap(vast);
            prefetch(governor(flow));
            prefetch(&self.connections[flow.connection as usize].app.supply);
        }
        if let Some(flow) = flow(GOVERNOR) {
            prefetch(&**governor(flow));
        }
        if let Some(flow) = flow(CONTROLLER) {
            governor(flow).fetch(flow.id);
        }
    }
}
