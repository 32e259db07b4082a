//! Handovers, as between satellites in a low orbit: rate and delay of a link change together at regular times,
//! and for a moment nothing passes.
use super::check::{MBPS_MAX, MILLIS_MAX, SECONDS_MAX, millis, number};
use super::spec::{HandoverSpec, LinkSpec};
use crate::sim::plan::{DelayPlan, LossSpec, RatePlan};
use crate::sim::steps::Finer;
use crate::toml_error::Fault;
use crate::units::{Rate, Span, Time};

/// Most handovers of a link in a run.
const HANDOVERS_MAX: f64 = 1e6;

/// Most changes between handovers in a run.
const STEPS_MAX: f64 = 1e8;

/// What handovers make of a link's rate, delay and outages.
pub(super) struct Handovers {
    pub(super) rate: RatePlan,
    pub(super) delay: DelayPlan,
    pub(super) outages: Vec<(Time, Time)>,
    /// Part of packets lost, from a time on; empty if handovers lose none.
    pub(super) losses: Vec<(Time, f64)>,
}

impl Handovers {
    /// Those that the link at `path` has, if it has any.
    pub(super) fn of(path: &str, link: &LinkSpec, duration_s: f64) -> Result<Option<Self>, Fault> {
        let Some(spec) = &link.handover else { return Ok(None) };
        check_alone(path, link)?;
        let field = |name: &str| format!("{path}.handover.{name}");
        let HandoverSpec { every_s, low_mbps, high_mbps, low_ms, high_ms, outage_ms, .. } = *spec;
        let shortest = (duration_s / HANDOVERS_MAX).max(1e-3);
        number(&field("every_s"), every_s, shortest..=SECONDS_MAX)?;
        number(&field("low_mbps"), low_mbps, 1e-2..=MBPS_MAX)?;
        number(&field("high_mbps"), high_mbps, low_mbps..=MBPS_MAX)?;
        number(&field("low_ms"), low_ms, 0.0..=MILLIS_MAX)?;
        number(&field("high_ms"), high_ms, low_ms..=MILLIS_MAX)?;
        number(&field("outage_ms"), outage_ms, 0.0..=every_s * 999.0)?;
        let every = Span::from_secs_f64(every_s);
        let (low, high) = (Rate::from_mbps(low_mbps), Rate::from_mbps(high_mbps));
        let (low_delay, high_delay) = (millis(low_ms), millis(high_ms));
        let end = Time::from_secs_f64(duration_s);
        let [of_rate, of_delay] = steps(path, spec, duration_s)?;
        Ok(Some(Self {
            rate: RatePlan::Random { low, high, every, finer: of_rate },
            delay: DelayPlan::Random { low: low_delay, high: high_delay, every, finer: of_delay },
            outages: outages(every, millis(outage_ms), end),
            losses: losses(path, link, spec, end)?,
        }))
    }
}

/// How rate and delay change between handovers.
fn steps(path: &str, spec: &HandoverSpec, duration_s: f64) -> Result<[Option<Finer>; 2], Fault> {
    let field = |name: &str| format!("{path}.handover.{name}");
    let spreads = [("rate_spread", spec.rate_spread), ("delay_spread", spec.delay_spread)];
    for (name, spread) in spreads {
        number(&field(name), spread, 0.0..=0.99)?;
        if spread > 0.0 && spec.step_ms.is_none() {
            return Err(Fault::new(&field(name), spread, "0 without step_ms"));
        }
    }
    let Some(step_ms) = spec.step_ms else { return Ok([None, None]) };
    let shortest = (duration_s * 1e3 / STEPS_MAX).max(1.0);
    let every = millis(number(&field("step_ms"), step_ms, shortest..=MILLIS_MAX)?);
    let finer = |spread: f64| Some(Finer { every, spread: (spread * 1e6) as u32 });
    Ok(spreads.map(|(_, spread)| finer(spread)))
}

/// The random loss of the link, raised at each handover.
fn losses(
    path: &str,
    link: &LinkSpec,
    spec: &HandoverSpec,
    end: Time,
) -> Result<Vec<(Time, f64)>, Fault> {
    let field = |name: &str| format!("{path}.handover.{name}");
    number(&field("loss"), spec.loss, 0.0..=1.0)?;
    number(&field("loss_ms"), spec.loss_ms, 0.0..=spec.every_s * 999.0 - spec.outage_ms)?;
    if spec.loss <= 0.0 {
        return Ok(Vec::new());
    }
    let usual = match link.loss {
        None => 0.0,
        Some(LossSpec::Bernoulli { ratio, from_s, until_s: None }) if from_s <= 0.0 => ratio,
        Some(_) => {
            let allowed = "absent, or bernoulli at all times, beside handover.loss";
            return Err(Fault::new(&format!("{path}.loss"), "given", allowed));
        }
    };
    if link.loss_schedule.is_some() {
        let allowed = "absent beside handover.loss";
        return Err(Fault::new(&format!("{path}.loss_schedule"), "given", allowed));
    }
    let length = millis(spec.outage_ms + spec.loss_ms).max(Span(1));
    let begins = handovers(Span::from_secs_f64(spec.every_s), end);
    let raised = begins.flat_map(|begin| [(begin, spec.loss), (begin + length, usual)]);
    Ok(std::iter::once((Time(0), usual)).chain(raised).collect())
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
        ("delay_trace", link.delay_trace.is_some()),
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
    handovers(every, end).map(|begin| (begin, begin + length)).collect()
}

/// When stretches begin, without the first.
fn handovers(every: Span, end: Time) -> impl Iterator<Item = Time> {
    (1..).map(move |number| Time(0) + every * number).take_while(move |&begin| begin < end)
}
