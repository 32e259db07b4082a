//! That what limits a link in bytes has room for the packets of every flow over it: nothing of a flow passes a
//! drop-tail queue or a policer's bucket that one packet exceeds.
use super::links::{Builder, Topology};
use super::spec::{LinkSpec, ScenarioSpec};
use crate::sim::plan::{ConnectionPlan, LinkPlan, QueueSpec, TrafficSpec};
use crate::toml_error::Fault;

impl Builder {
    /// Every flow's data and acknowledgements fit what its links hold.
    pub(super) fn check_room(
        &self,
        spec: &ScenarioSpec,
        connections: &[ConnectionPlan],
    ) -> Result<(), Fault> {
        let most: Vec<u64> = self.links.iter().map(room).collect();
        if most.iter().all(|&bytes| bytes == u64::MAX) {
            return Ok(());
        }
        for plan in connections {
            let (data, ack) = (data_bytes(plan), ack_bytes(plan));
            for route in &plan.subflows {
                for (links, size) in [(&route.forward, data), (&route.reverse, ack)] {
                    let narrow = |link: &&u32| most[**link as usize] < size;
                    if let Some(&link) = links.iter().find(narrow) {
                        return Err(self.no_room(spec, link as usize, &plan.name, size));
                    }
                }
            }
        }
        Ok(())
    }

    fn no_room(&self, spec: &ScenarioSpec, link: usize, flow: &str, size: u64) -> Fault {
        let (path, given) = self.source(spec, link);
        let allowed = format!("{size} bytes or more, a packet of flow {flow}");
        if let Some(policer) = given.policer.filter(|policer| policer.burst_bytes < size) {
            let field = format!("{path}.policer.burst_bytes");
            return Fault::new(&field, policer.burst_bytes, allowed);
        }
        match given.queue {
            QueueSpec::DropTail { bytes: Some(bytes), .. } if bytes < size => {
                Fault::new(&format!("{path}.queue.bytes"), bytes, allowed)
            }
            QueueSpec::DropTail { bdp: Some(bdp), .. } => {
                let allowed = format!("a limit of {allowed}, as with min_bytes = {size}");
                Fault::new(&format!("{path}.queue.bdp"), bdp, allowed)
            }
            _ => unreachable!("a link without a limit in bytes has room"),
        }
    }

    /// Where the file describes the link of this index, which has a limit: access links have none.
    fn source<'a>(&self, spec: &'a ScenarioSpec, link: usize) -> (String, &'a LinkSpec) {
        let found = match self.topology {
            Topology::Free => spec.link.get(link).map(|it| (format!("link[{link}]"), it)),
            Topology::Dumbbell { .. } => spec.dumbbell.as_ref().and_then(|it| match link {
                0 => Some(("dumbbell.bottleneck".to_owned(), &it.bottleneck)),
                _ => it.reverse.as_ref().map(|back| ("dumbbell.reverse".to_owned(), back)),
            }),
            Topology::ParkingLot { .. } => spec
                .parking_lot
                .as_ref()
                .map(|it| ("parking_lot.bottleneck".to_owned(), &it.bottleneck)),
            Topology::TwoPath => spec.two_path.as_ref().map(|it| match link {
                0 => ("two_path.first".to_owned(), &it.first),
                _ => ("two_path.second".to_owned(), &it.second),
            }),
        };
        found.expect("only links of the file have a limit")
    }
}

/// Bytes of the largest packet that can pass a link; no limit if there is none.
fn room(link: &LinkPlan) -> u64 {
    let queue = match link.queue {
        QueueSpec::DropTail { bytes: Some(bytes), .. } => bytes,
        _ => u64::MAX,
    };
    link.extras.policer.map_or(queue, |policer| queue.min(policer.burst_bytes))
}

/// Bytes of a packet of what the application usually writes.
fn data_bytes(plan: &ConnectionPlan) -> u64 {
    let (packet, header) = (plan.sender.packet.0, plan.sender.header.0);
    let piece = match plan.traffic {
        TrafficSpec::Cbr { packet_bytes, .. } => return u64::from(packet_bytes),
        TrafficSpec::Bulk {} => packet,
        TrafficSpec::OnOff { mean_bytes, .. } | TrafficSpec::Poisson { mean_bytes, .. } => {
            mean_bytes as u64
        }
        TrafficSpec::Fixed { bytes } => bytes,
        TrafficSpec::RequestResponse { response_bytes, .. } => response_bytes,
        TrafficSpec::AppLimited { write_bytes, .. } | TrafficSpec::Writes { write_bytes, .. } => {
            u64::from(write_bytes)
        }
    };
    packet.min(header + piece)
}

/// Bytes of an acknowledgement; datagrams have none.
fn ack_bytes(plan: &ConnectionPlan) -> u64 {
    if matches!(plan.traffic, TrafficSpec::Cbr { .. }) { 0 } else { plan.sender.ack.0 }
}
