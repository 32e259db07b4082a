//! Handovers, as between satellites in a low orbit: rate and delay of a link change together at regular times,
//! and for a moment nothing passes.
use super::check::{MBPS_MAX, MILLIS_MAX, SECONDS_MAX, millis, number};
use super::spec::{HandoverSpec, LinkSpec};
use crate::sim::plan::{DelayPlan, RatePlan};
use crate::toml_error::Fault;
use crate::units::{Rate, Span, Time};

/// Most handovers of a link in a run.
const HANDOVERS_MAX: f64 = 1e6;

/// What handovers make of a link's rate, delay and outages.
pub(super) struct Handovers {
    pub(super) rate: RatePlan,
    pub(super) delay: DelayPlan,
    pub(super) outages: Vec<(Time, Time)>,
}

impl Handovers {
    /// Those that the link at `path` has, if it has any.
    pub(super) fn of(path: &str, link: &LinkSpec, duration_s: f64) -> Result<Option<Self>, Fault> {
        let Some(spec) = &link.handover else { return Ok(None) };
        check_alone(path, link)?;
        let field = |name: &str| format!("{path}.handover.{name}");
        let HandoverSpec { every_s, low_mbps, high_mbps, low_ms, high_ms, outage_ms } = *spec;
        let shortest = (duration_s / HANDOVERS_MAX).max(1e-3);
        number(&field("every_s"), every_s, shortest..=SECONDS_MAX)?;
        number(&field("low_mbps"), low_mbps, 1e-2..=MBPS_MAX)?;
        number(&field("high_mbps"), high_mbps, low_mbps..=MBPS_MAX)?;
        number(&field("low_ms"), low_ms, 0.0..=MILLIS_MAX)?;
        number(&field("high_ms"), high_ms, low_ms..=MILLIS_MAX)?;
        number(&field("outage_ms"), outage_ms, 0.0..=every_s * 999.0)?;
        let every = Span::from_secs_f64(every_s);
        let (low, high) = (Rate::from_mbps(low_mbps), Rate::from_mbps(high_mbps));
        Ok(Some(Self {
            rate: RatePlan::Random { low, high, every },
            delay: DelayPlan::Random { low: millis(low_ms), high: millis(high_ms), every },
            outages: outages(every, millis(outage_ms), Time::from_secs_f64(duration_s)),
        }))
    }
}

/// That nothing else says what handovers say.
fn check_alone(path: &str, link: &LinkSpec) -> Result<(), Fault> {
    let others = [
        ("rate_mbps", link.rate_mbps.is_some()),
        ("rate_schedule", link.rate_schedule.is_some()),
        ("rate_random", link.rate_random.is_some()),
        ("trace", link.trace.is_some()),
        ("delay_ms", link.delay_ms != 0.0),
        ("delay_schedule", link.delay_schedule.is_some()),
        ("delay_random", link.delay_random.is_some()),
        ("jitter_ms", link.jitter_ms > 0.0),
        ("outages", !link.outages.is_empty()),
    ];
    match others.iter().find(|(_, given)| *given) {
        Some((name, _)) => {
            let allowed = "nothing beside handover, which has rate, delay and outages";
            Err(Fault::new(&format!("{path}.{name}"), "given", allowed))
        }
        None => Ok(()),
    }
}

/// One at the beginning of each stretch but the first.
fn outages(every: Span, length: Span, end: Time) -> Vec<(Time, Time)> {
    if length == Span::ZERO {
        return Vec::new();
    }
    let begins = (1..).map(|number| Time(0) + every * number);
    begins.take_while(|&begin| begin < end).map(|begin| (begin, begin + length)).collect()
}
