//! Connections of several subflows: where the subflows run, and how they share the data.
use super::check::{SECONDS_MAX, integer, number};
use super::links::{Builder, Topology};
use super::spec::{FlowSpec, MptcpSpec, Place, SubflowSpec};
use crate::sim::plan::{MptcpPlan, TrafficSpec};
use crate::toml_error::Fault;
use crate::transport::config::SenderConfig;
use crate::transport::multipath::{BUFFER_MAX, SUBFLOWS_MAX};
use crate::transport::schedulers;
use crate::units::{Bytes, Time};

impl SubflowSpec {
    pub(super) fn place(&self) -> Place<'_> {
        Place {
            path: self.path.as_deref(),
            reverse: self.reverse.as_deref(),
            route: self.route.as_deref(),
            backward: false,
        }
    }
}

/// The subflows that a flow lists.
pub(super) fn subflows(flow: &FlowSpec) -> &[SubflowSpec] {
    flow.mptcp.as_ref().map_or(&[], |mptcp| &mptcp.subflow)
}

impl Builder {
    /// What a flow says of where it runs fits the topology and itself.
    pub(super) fn check_subflows(&self, path: &str, flow: &FlowSpec) -> Result<(), Fault> {
        let field = |name: &str| format!("{path}.{name}");
        let listed = subflows(flow);
        if flow.multipath && !matches!(self.topology, Topology::TwoPath) {
            let allowed = "only with [two_path]; elsewhere mptcp.subflow lists the subflows";
            return Err(Fault::new(&field("multipath"), true, allowed));
        }
        if flow.backward && matches!(self.topology, Topology::Free) {
            let allowed = "only with a preset; with [[link]], path and reverse name the links";
            return Err(Fault::new(&field("backward"), true, allowed));
        }
        if flow.mptcp.is_some() && listed.is_empty() && !flow.multipath {
            let allowed =
                "only for several subflows: with mptcp.subflow, or multipath = true in [two_path]";
            return Err(Fault::new(&field("mptcp"), "given", allowed));
        }
        if listed.is_empty() && !flow.multipath {
            return self.check_place(path, Place::of(flow));
        }
        let own = [
            ("path", flow.path.is_some()),
            ("reverse", flow.reverse.is_some()),
            ("route", flow.route.is_some()),
        ];
        if let Some((name, _)) = own.iter().find(|(_, given)| *given) {
            let beside = if flow.multipath { "multipath" } else { "mptcp.subflow" };
            return Err(Fault::new(&field(name), "given", format!("nothing beside {beside}")));
        }
        if flow.multipath && !listed.is_empty() {
            let allowed = "false beside mptcp.subflow";
            return Err(Fault::new(&field("multipath"), true, allowed));
        }
        for (index, subflow) in listed.iter().enumerate() {
            self.check_place(&field(&format!("mptcp.subflow[{index}]")), subflow.place())?;
        }
        Ok(())
    }
}

/// How a flow's subflows share its data; `None` for a flow of one, and for datagrams, which have no order.
pub(super) fn mptcp_plan(
    path: &str,
    flow: &FlowSpec,
    sender: &SenderConfig,
) -> Result<Option<MptcpPlan>, Fault> {
    let datagrams = matches!(flow.traffic, TrafficSpec::Cbr { .. });
    if flow.mptcp.is_some() && datagrams {
        let allowed = "a kind that is not cbr: datagrams have no subflows";
        return Err(Fault::new(&format!("{path}.traffic.kind"), "\"cbr\"", allowed));
    }
    if (!flow.multipath && flow.mptcp.is_none()) || datagrams {
        return Ok(None);
    }
    let spec = flow.mptcp.clone().unwrap_or_default();
    let field = |name: &str| format!("{path}.mptcp.{name}");
    let Some(scheduler) = schedulers::find(&spec.scheduler) else {
        let value = format!("{:?}", spec.scheduler);
        return Err(Fault::new(&field("scheduler"), value, schedulers::names()));
    };
    let payload = sender.packet.0 - sender.header.0;
    for (name, bytes) in [
        ("receive_buffer_bytes", spec.receive_buffer_bytes),
        ("send_buffer_bytes", spec.send_buffer_bytes),
    ] {
        integer(&field(name), bytes, payload..=BUFFER_MAX)?;
    }
    Ok(Some(MptcpPlan {
        scheduler,
        receive_buffer: Bytes(spec.receive_buffer_bytes),
        send_buffer: Bytes(spec.send_buffer_bytes),
        opportunistic: spec.opportunistic,
        times: times(path, &spec)?,
    }))
}

/// When each subflow opens and closes.
fn times(path: &str, spec: &MptcpSpec) -> Result<Vec<(Time, Time)>, Fault> {
    if spec.subflow.is_empty() {
        return Ok(vec![(Time(0), Time::NEVER); 2]);
    }
    let count = spec.subflow.len();
    if !(2..=SUBFLOWS_MAX).contains(&count) {
        let allowed = format!("2 to {SUBFLOWS_MAX} subflows");
        return Err(Fault::new(&format!("{path}.mptcp.subflow"), count, allowed));
    }
    let one = |(index, subflow): (usize, &SubflowSpec)| {
        let field = |name: &str| format!("{path}.mptcp.subflow[{index}].{name}");
        number(&field("start_s"), subflow.start_s, 0.0..=SECONDS_MAX)?;
        if let Some(stop_s) = subflow.stop_s {
            number(&field("stop_s"), stop_s, subflow.start_s..=SECONDS_MAX)?;
        }
        let stop = subflow.stop_s.map_or(Time::NEVER, Time::from_secs_f64);
        Ok((Time::from_secs_f64(subflow.start_s), stop))
    };
    spec.subflow.iter().enumerate().map(one).collect()
}
