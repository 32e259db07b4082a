//! What can be seen of a run before it is over.
use super::Sim;
use super::network::{Ends, Inside};
use crate::sim::record::FlowSeries;
use crate::units::Span;

impl Sim {
    /// The rows of the flows' series so far.
    pub fn flow_series(&self) -> &FlowSeries {
        &self.flow_series
    }

    /// Name, controller and start in seconds of each flow.
    pub fn flow_names(&self) -> impl Iterator<Item = (&str, &str, f64)> {
        self.hosts.plans.iter().zip(&self.hosts.flows).map(|(plan, flow)| {
            let controller = &self.hosts.connections[flow.connection as usize].controller;
            (&*plan.name, &**controller, plan.start.as_secs_f64())
        })
    }

    /// Packets and bytes in the queue of a link, or in transmission, now.
    pub fn backlog(&mut self, link: usize) -> (u64, u64) {
        let now = self.now();
        self.net.link(link).backlog(now)
    }

    /// Packets and bytes in a link, as [`backlog`](Self::backlog), at each sample so far; none for a link without
    /// time series.
    pub fn link_samples(&mut self, link: usize) -> &[(u64, u64)] {
        let now = self.now();
        let link = self.net.link(link);
        link.sample_until(now);
        &link.samples
    }

    /// Propagation of a link now; the mean where every packet's differs.
    pub fn propagation(&mut self, link: usize) -> Span {
        let now = self.now();
        self.net.link(link).propagation(now)
    }

    /// Shows every packet in a queue or on a wire, acknowledgements included. One of a queue that decides on
    /// arrival has a time of arrival that is further off than the propagation.
    pub fn show_packets(&self, each: &mut dyn FnMut(Inside<'_>)) {
        self.net.show(|packet| self.hosts.path(packet), each);
    }
}
