//! The preset of one bottleneck: both of its directions, and the access links.
use super::check::{MBPS_MAX, MILLIS_MAX, millis, number};
use super::files::Reader;
use super::links::{Builder, Topology, link_plan, reverse_of};
use super::spec::{DumbbellSpec, LinkSpec};
use crate::sim::plan::{DelayPlan, LinkPlan, QueueSpec};
use crate::toml_error::Fault;
use crate::units::{Rate, Span};

impl Builder {
    /// Makes the bottleneck and its reverse direction; access links follow with the flows.
    pub(super) fn dumbbell(
        &mut self,
        spec: &DumbbellSpec,
        reader: &mut Reader,
    ) -> Result<(), Fault> {
        let (link, back) = data_direction(spec, reader)?;
        let mut reverse = match &spec.reverse {
            None => reverse_of(&link, "reverse", back),
            Some(own) => own_reverse(spec, own, back, reader)?,
        };
        if spec.reverse_varies {
            check_varies(spec)?;
            reverse.delay = link.delay.clone();
            reverse.delay_of = Some(self.links.len() as u64);
            reverse.keep_order = link.keep_order;
            if spec.bottleneck.handover.is_some() && reverse.outages.is_empty() {
                reverse.outages.clone_from(&link.outages);
            }
        }
        self.links.extend([link, reverse]);
        let access_delay_ms =
            number("dumbbell.access_delay_ms", spec.access_delay_ms, 0.0..=MILLIS_MAX)?;
        let access = match spec.access_mbps {
            None if access_delay_ms > 0.0 => {
                let allowed = "absent without access_mbps";
                return Err(Fault::new("dumbbell.access_delay_ms", access_delay_ms, allowed));
            }
            None => None,
            Some(mbps) => {
                number("dumbbell.access_mbps", mbps, 1e-6..=MBPS_MAX)?;
                Some((Rate::from_mbps(mbps), millis(access_delay_ms)))
            }
        };
        self.topology = Topology::Dumbbell { access };
        Ok(())
    }
}

/// The bottleneck, and the propagation of the reverse direction.
fn data_direction(spec: &DumbbellSpec, reader: &mut Reader) -> Result<(LinkPlan, Span), Fault> {
    if let Some(rtt_ms) = spec.rtt_ms {
        number("dumbbell.rtt_ms", rtt_ms, 0.0..=MILLIS_MAX)?;
    }
    let path = "dumbbell.bottleneck";
    let mut link = link_plan(path, &spec.bottleneck, "bottleneck", spec.rtt_ms, reader)?;
    number("dumbbell.reverse_delay_ms", spec.reverse_delay_ms, 0.0..=MILLIS_MAX)?;
    let Some(rtt_ms) = spec.rtt_ms else { return Ok((link, millis(spec.reverse_delay_ms))) };
    if spec.bottleneck.delay_ms != 0.0 || spec.reverse_delay_ms != 0.0 {
        let allowed = "no delay_ms and reverse_delay_ms beside it";
        return Err(Fault::new("dumbbell.rtt_ms", rtt_ms, allowed));
    }
    let back = Span(millis(rtt_ms).0 / 2);
    if matches!(link.delay, DelayPlan::Constant(_)) {
        link.delay = DelayPlan::Constant(millis(rtt_ms) - back);
    }
    Ok((link, back))
}

/// The reverse direction as its own table says: as fast as the bottleneck unless it has a rate, and as
/// long as the other fields of the preset say unless it has a delay.
fn own_reverse(
    spec: &DumbbellSpec,
    own: &LinkSpec,
    back: Span,
    reader: &mut Reader,
) -> Result<LinkPlan, Fault> {
    let path = "dumbbell.reverse";
    let field = |name: &str| format!("{path}.{name}");
    let has_delay = own.has_delay();
    if own.delay_ms != 0.0 && spec.rtt_ms.is_some() {
        return Err(Fault::new(&field("delay_ms"), own.delay_ms, "0 beside dumbbell.rtt_ms"));
    }
    if has_delay && spec.reverse_delay_ms != 0.0 {
        let allowed = "0 beside a delay in dumbbell.reverse";
        return Err(Fault::new("dumbbell.reverse_delay_ms", spec.reverse_delay_ms, allowed));
    }
    let has_rate = own.rate_mbps.is_some()
        || own.rate_schedule.is_some()
        || own.rate_random.is_some()
        || own.trace.is_some();
    let mut filled = own.clone();
    if !has_rate {
        if let (QueueSpec::DropTail { bdp: Some(bdp), .. }, None) =
            (&own.queue, spec.bottleneck.rate_mbps)
        {
            return Err(Fault::new(&field("queue.bdp"), bdp, "absent without rate_mbps"));
        }
        filled.rate_mbps = Some(spec.bottleneck.rate_mbps.unwrap_or(MBPS_MAX));
    }
    let back_ms = if has_delay { own.delay_ms } else { back.as_millis_f64() };
    let rtt_ms = spec.rtt_ms.unwrap_or(spec.bottleneck.delay_ms + back_ms);
    let mut link = link_plan(path, &filled, "reverse", Some(rtt_ms), reader)?;
    if !has_delay {
        link.delay = DelayPlan::Constant(back);
    }
    Ok(link)
}

/// That the reverse direction may repeat the bottleneck's draws.
fn check_varies(spec: &DumbbellSpec) -> Result<(), Fault> {
    if spec.reverse.as_ref().is_some_and(LinkSpec::has_delay) {
        let allowed = "false beside a delay in dumbbell.reverse";
        return Err(Fault::new("dumbbell.reverse_varies", true, allowed));
    }
    let given = spec.rtt_ms.is_some() || spec.reverse_delay_ms != 0.0;
    let own = &spec.bottleneck;
    let varies = own.delay_random.is_some() || own.delay_trace.is_some() || own.handover.is_some();
    if given || !varies {
        let allowed = "false unless the bottleneck has delay_random, delay_trace or handover, and neither \
                       rtt_ms nor reverse_delay_ms is given";
        return Err(Fault::new("dumbbell.reverse_varies", true, allowed));
    }
    Ok(())
}
