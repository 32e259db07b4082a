//! From the file's links to planned ones: every direction of every link of a topology.
use super::check::{MBPS_MAX, MILLIS_MAX, SECONDS_MAX, duplicate, integer, millis, number, one_of};
use super::files::Reader;
use super::handover::Handovers;
use super::spec::{DelayRandomSpec, LinkEcn, LinkSpec, RateRandomSpec, ScenarioSpec};
use crate::sim::plan::{DelayPlan, ExtrasPlan, LinkPlan, RatePlan};
use crate::sim::plan::{Dualpi2Spec, LossSpec, QueueSpec};
use crate::sim::steps::Steps;
use crate::toml_error::Fault;
use crate::units::{Rate, Span, Time};

/// Most redraws of a rate or delay, and updates of PIE, in a run.
const DRAWS_MAX: f64 = 1e8;

/// How flows find their links.
pub(super) enum Topology {
    Free,
    Dumbbell { access: Option<(Rate, Span)> },
    ParkingLot { hops: u32 },
    TwoPath,
}

/// Links made so far: a topology's own, then access links with each flow.
pub(super) struct Builder {
    pub(super) links: Vec<LinkPlan>,
    pub(super) topology: Topology,
}

impl Builder {
    /// Makes the links that the scenario names or its preset stands for.
    pub(super) fn topology(
        &mut self,
        spec: &ScenarioSpec,
        reader: &mut Reader,
    ) -> Result<(), Fault> {
        let given = one_of(&[
            ("dumbbell", spec.dumbbell.is_some()),
            ("parking_lot", spec.parking_lot.is_some()),
            ("two_path", spec.two_path.is_some()),
            ("link", !spec.link.is_empty()),
        ]);
        if let Err(given) = given {
            let path = given.last().unwrap_or(&"topology");
            let value = if given.is_empty() { "absent".into() } else { given.join(" and ") };
            let allowed = "exactly one of [dumbbell], [parking_lot], [two_path], [[link]]";
            return Err(Fault::new(path, value, allowed));
        }
        if let Some(dumbbell) = &spec.dumbbell {
            return self.dumbbell(dumbbell, reader);
        }
        if let Some(lot) = &spec.parking_lot {
            integer("parking_lot.hops", u64::from(lot.hops), 1..=100)?;
            if let Some(back_ms) = lot.reverse_delay_ms {
                number("parking_lot.reverse_delay_ms", back_ms, 0.0..=MILLIS_MAX)?;
            }
            let plan = link_plan("parking_lot.bottleneck", &lot.bottleneck, "hop", None, reader)?;
            let back = lot.reverse_delay_ms.map_or(plan.delay.minimum(), millis);
            for hop in 0..lot.hops {
                let link = LinkPlan { name: format!("{}{hop}", plan.name), ..plan.clone() };
                let reverse = reverse_of(&link, &format!("{}_reverse", link.name), back);
                self.links.extend([link, reverse]);
            }
            self.topology = Topology::ParkingLot { hops: lot.hops };
        } else if let Some(two) = &spec.two_path {
            for (index, (field, link)) in
                [("first", &two.first), ("second", &two.second)].into_iter().enumerate()
            {
                let path = format!("two_path.{field}");
                let link = link_plan(&path, link, &format!("path{index}"), None, reader)?;
                let min = link.delay.minimum();
                let reverse = reverse_of(&link, &format!("path{index}_reverse"), min);
                self.links.extend([link, reverse]);
            }
            self.topology = Topology::TwoPath;
        } else {
            for (index, link) in spec.link.iter().enumerate() {
                let path = format!("link[{index}]");
                let plan = link_plan(&path, link, &format!("link{index}"), None, reader)?;
                self.links.push(plan);
            }
        }
        if let Some((index, name)) = duplicate(self.links.iter().map(|link| link.name.as_str())) {
            let path = match self.topology {
                Topology::TwoPath => "two_path.second.name".to_owned(),
                _ => format!("link[{index}].name"),
            };
            let allowed = "a name of its own for every link";
            return Err(Fault::new(&path, format!("{name:?}"), allowed));
        }
        Ok(())
    }
}

pub(super) fn link_plan(
    path: &str,
    spec: &LinkSpec,
    default_name: &str,
    rtt_ms: Option<f64>,
    reader: &mut Reader,
) -> Result<LinkPlan, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    for (name, value) in [("delay_ms", spec.delay_ms), ("jitter_ms", spec.jitter_ms)] {
        number(&field(name), value, 0.0..=MILLIS_MAX)?;
    }
    let varies = spec.has_delay() && spec.delay_ms == 0.0;
    if spec.jitter_ms > 0.0 && varies {
        let allowed = "0 with delay_schedule, delay_random or delay_trace";
        return Err(Fault::new(&field("jitter_ms"), spec.jitter_ms, allowed));
    }
    number(&field("duplicate_ratio"), spec.duplicate_ratio, 0.0..=1.0)?;
    if let Some(reorder) = &spec.reorder {
        number(&field("reorder.ratio"), reorder.ratio, 0.0..=1.0)?;
        number(&field("reorder.low_ms"), reorder.low_ms, 0.0..=MILLIS_MAX)?;
        number(&field("reorder.high_ms"), reorder.high_ms, reorder.low_ms..=MILLIS_MAX)?;
    }
    let mut outages: Vec<(Time, Time)> = Vec::new();
    for (index, &(from, to)) in spec.outages.iter().enumerate() {
        let here = field(&format!("outages[{index}]"));
        let earliest = outages.last().map_or(0.0, |last| last.1.as_secs_f64());
        number(&here, from, earliest..=SECONDS_MAX)?;
        number(&here, to, from..=SECONDS_MAX)?;
        outages.push((Time::from_secs_f64(from), Time::from_secs_f64(to)));
    }
    if let Some(loss) = &spec.loss {
        check_loss(&field("loss"), loss)?;
    }
    let rtt = rtt_ms.unwrap_or(2.0 * spec.delay_ms);
    let mut losses = loss_schedule(path, spec)?;
    let (rate, delay) = match Handovers::of(path, spec, reader.duration_s)? {
        Some(handovers) => {
            outages = handovers.outages;
            if !handovers.losses.is_empty() {
                losses = handovers.losses;
            }
            (handovers.rate, handovers.delay)
        }
        None => (rate_plan(path, spec, reader)?, delay_plan(path, spec, reader)?),
    };
    Ok(LinkPlan {
        name: spec.name.clone().unwrap_or_else(|| default_name.to_owned()),
        sampled: true,
        rate,
        outages,
        delay,
        delay_of: None,
        jitter: millis(spec.jitter_ms),
        keep_order: spec.keep_order,
        queue: queue_plan(&field("queue"), &spec.queue, spec.rate_mbps, rtt, reader)?,
        loss: spec.loss.clone().filter(|_| losses.is_empty()),
        loss_schedule: losses,
        duplicate_ratio: spec.duplicate_ratio,
        reorder: spec.reorder.clone(),
        extras: extras_plan(path, spec, reader)?,
    })
}

fn extras_plan(path: &str, spec: &LinkSpec, reader: &Reader) -> Result<ExtrasPlan, Fault> {
    let check = |name: &str, value: f64, low: f64, high: f64| {
        number(&format!("{path}.{name}"), value, low..=high).map(drop)
    };
    if let Some(policer) = &spec.policer {
        check("policer.rate_mbps", policer.rate_mbps, 1e-6, MBPS_MAX)?;
        integer(&format!("{path}.policer.burst_bytes"), policer.burst_bytes, 1..=1 << 40)?;
    }
    if let Some(aggregation) = &spec.aggregation {
        let min = (reader.duration_s * 1e3 / DRAWS_MAX).max(1e-3);
        check("aggregation.low_ms", aggregation.low_ms, min, MILLIS_MAX)?;
        check("aggregation.high_ms", aggregation.high_ms, aggregation.low_ms, MILLIS_MAX)?;
    }
    if let Some(retransmit) = &spec.retransmit {
        check("retransmit.ratio", retransmit.ratio, 0.0, 1.0)?;
        check("retransmit.delay_ms", retransmit.delay_ms, 0.0, MILLIS_MAX)?;
        integer(&format!("{path}.retransmit.most"), u64::from(retransmit.most), 0..=1000)?;
    }
    let forge_ce = spec.forge_ce.unwrap_or(0.0);
    check("forge_ce", forge_ce, 0.0, 1.0)?;
    let bleach = spec.ecn == Some(LinkEcn::Bleach);
    if bleach && forge_ce > 0.0 {
        let allowed = "0 beside ecn = \"bleach\", which leaves no packet that may be marked";
        return Err(Fault::new(&format!("{path}.forge_ce"), forge_ce, allowed));
    }
    Ok(ExtrasPlan {
        policer: spec.policer,
        aggregation: spec.aggregation,
        retransmit: spec.retransmit,
        bleach,
        forge_ce,
    })
}

fn rate_plan(path: &str, spec: &LinkSpec, reader: &mut Reader) -> Result<RatePlan, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    let given = one_of(&[
        ("rate_mbps", spec.rate_mbps.is_some()),
        ("rate_schedule", spec.rate_schedule.is_some()),
        ("rate_random", spec.rate_random.is_some()),
        ("trace", spec.trace.is_some()),
    ]);
    if let Err(given) = given {
        let allowed = "exactly one of rate_mbps, rate_schedule, rate_random, trace";
        return Err(match given.last() {
            Some(last) => Fault::new(&field(last), given.join(" and "), allowed),
            None => Fault::new(&field("rate_mbps"), "absent", allowed),
        });
    }
    if let Some(mbps) = spec.rate_mbps {
        number(&field("rate_mbps"), mbps, 1e-6..=MBPS_MAX)?;
        return Ok(RatePlan::Constant(Rate::from_mbps(mbps)));
    }
    if let Some(steps) = &spec.rate_schedule {
        let here = field("rate_schedule");
        let steps = schedule(&here, steps, MBPS_MAX)?;
        if steps.iter().all(|step| step.1 <= 0.0) {
            return Err(Fault::new(&here, "only zeros", "at least one rate above 0"));
        }
        return Ok(RatePlan::Schedule(planned(steps, Rate::from_mbps)));
    }
    if let Some(RateRandomSpec { low_mbps, high_mbps, hz }) = spec.rate_random {
        number(&field("rate_random.low_mbps"), low_mbps, 1e-2..=MBPS_MAX)?;
        number(&field("rate_random.high_mbps"), high_mbps, low_mbps..=MBPS_MAX)?;
        check_hz(&field("rate_random.hz"), hz, reader)?;
        let every = Span::from_secs_f64(1.0 / hz);
        let (low, high) = (Rate::from_mbps(low_mbps), Rate::from_mbps(high_mbps));
        return Ok(RatePlan::Random { low, high, every, finer: None });
    }
    let trace = spec.trace.as_ref().expect("one of four rates is given");
    trace.rate(&field("trace"), reader.files)
}

fn delay_plan(path: &str, spec: &LinkSpec, reader: &mut Reader) -> Result<DelayPlan, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    let given = one_of(&[
        ("delay_ms", spec.delay_ms != 0.0),
        ("delay_schedule", spec.delay_schedule.is_some()),
        ("delay_random", spec.delay_random.is_some()),
        ("delay_trace", spec.delay_trace.is_some()),
    ]);
    if let Err(given) = given
        && let Some(last) = given.last()
    {
        let allowed = "at most one of delay_ms, delay_schedule, delay_random, delay_trace";
        return Err(Fault::new(&field(last), given.join(" and "), allowed));
    }
    if let Some(recorded) = &spec.delay_trace {
        return recorded.delay(&field("delay_trace"), reader.files);
    }
    match (&spec.delay_schedule, &spec.delay_random) {
        (None, None) => Ok(DelayPlan::Constant(millis(spec.delay_ms))),
        (Some(steps), None) => {
            let steps = schedule(&field("delay_schedule"), steps, MILLIS_MAX)?;
            Ok(DelayPlan::Schedule(planned(steps, millis)))
        }
        (None, Some(DelayRandomSpec { low_ms, high_ms, hz })) => {
            number(&field("delay_random.low_ms"), *low_ms, 0.0..=MILLIS_MAX)?;
            number(&field("delay_random.high_ms"), *high_ms, *low_ms..=MILLIS_MAX)?;
            check_hz(&field("delay_random.hz"), *hz, reader)?;
            let every = Span::from_secs_f64(1.0 / hz);
            Ok(DelayPlan::Random {
                low: millis(*low_ms),
                high: millis(*high_ms),
                every,
                finer: None,
            })
        }
        (Some(_), Some(_)) => unreachable!("at most one of them is given"),
    }
}

/// Checked steps with their values made into what a plan has.
fn planned<T: Copy>(steps: Vec<(Time, f64)>, make: impl Fn(f64) -> T) -> Steps<T> {
    let steps = steps.into_iter().map(|(at, value)| (at, make(value))).collect();
    Steps::new(steps).expect("a scenario's steps begin at zero and increase")
}

/// A frequency of redraws, few enough in a run to be added up at its end.
fn check_hz(path: &str, hz: f64, reader: &Reader) -> Result<(), Fault> {
    number(path, hz, 1e-6..=(DRAWS_MAX / reader.duration_s).min(1e3)).map(|_| ())
}

fn schedule(path: &str, steps: &[(f64, f64)], high: f64) -> Result<Vec<(Time, f64)>, Fault> {
    let mut checked: Vec<(Time, f64)> = Vec::with_capacity(steps.len());
    for (index, &(at_s, value)) in steps.iter().enumerate() {
        let here = format!("{path}[{index}]");
        let at = Time::from_secs_f64(number(&here, at_s, 0.0..=SECONDS_MAX)?);
        number(&here, value, 0.0..=high)?;
        let follows = checked.last().is_none_or(|last| last.0 < at);
        if !follows || (index == 0 && at > Time(0)) {
            let allowed = "pairs (from second, value) that begin at 0 and increase";
            return Err(Fault::new(&here, format!("[{at_s}, {value}]"), allowed));
        }
        checked.push((at, value));
    }
    if checked.is_empty() {
        return Err(Fault::new(path, "[]", "at least one pair (from second, value)"));
    }
    Ok(checked)
}

fn loss_schedule(path: &str, spec: &LinkSpec) -> Result<Vec<(Time, f64)>, Fault> {
    let Some(steps) = &spec.loss_schedule else { return Ok(Vec::new()) };
    let here = format!("{path}.loss_schedule");
    if spec.loss.is_some() {
        return Err(Fault::new(&here, "given", "absent beside loss"));
    }
    schedule(&here, steps, 1.0)
}

fn check_loss(path: &str, loss: &LossSpec) -> Result<(), Fault> {
    let check = |name: &str, value: f64| number(&format!("{path}.{name}"), value, 0.0..=1.0);
    let (from_s, until_s) = match *loss {
        LossSpec::Bernoulli { ratio, from_s, until_s } => {
            check("ratio", ratio)?;
            (from_s, until_s)
        }
        LossSpec::GilbertElliott {
            good_to_bad,
            bad_to_good,
            good_loss,
            bad_loss,
            from_s,
            until_s,
        } => {
            check("good_to_bad", good_to_bad)?;
            check("bad_to_good", bad_to_good)?;
            check("good_loss", good_loss)?;
            check("bad_loss", bad_loss)?;
            (from_s, until_s)
        }
    };
    number(&format!("{path}.from_s"), from_s, 0.0..=SECONDS_MAX)?;
    if let Some(until_s) = until_s {
        number(&format!("{path}.until_s"), until_s, from_s..=SECONDS_MAX)?;
    }
    Ok(())
}

fn queue_plan(
    path: &str,
    queue: &QueueSpec,
    rate_mbps: Option<f64>,
    rtt_ms: f64,
    reader: &Reader,
) -> Result<QueueSpec, Fault> {
    let field = |name: &str| format!("{path}.{name}");
    let at_least_one = |name: &str, value: u64| integer(&field(name), value, 1..=u64::MAX >> 1);
    match queue {
        QueueSpec::DropTail { packets, bytes, bdp, min_bytes } => {
            if let Some(packets) = packets {
                at_least_one("packets", *packets)?;
            }
            if let Some(bytes) = bytes {
                at_least_one("bytes", *bytes)?;
            }
            if let Some(min) = min_bytes {
                at_least_one("min_bytes", *min)?;
                if bdp.is_none() {
                    return Err(Fault::new(&field("min_bytes"), min, "absent without bdp"));
                }
            }
            let mut limit = *bytes;
            if let Some(bdp) = bdp {
                number(&field("bdp"), *bdp, 1e-6..=1e6)?;
                let Some(mbps) = rate_mbps else {
                    return Err(Fault::new(&field("bdp"), bdp, "absent without rate_mbps"));
                };
                let bytes = Rate::from_mbps(mbps).bytes_in(millis(rtt_ms)).0 as f64 * bdp;
                if bytes < 1.0 {
                    let allowed = "a multiple of rate_mbps times round trip that is a byte or more";
                    return Err(Fault::new(&field("bdp"), bdp, allowed));
                }
                let bytes = (bytes as u64).max(min_bytes.unwrap_or(0));
                limit = Some(limit.unwrap_or(u64::MAX).min(bytes));
            }
            let (packets, bytes) = (*packets, limit);
            return Ok(QueueSpec::DropTail { packets, bytes, bdp: None, min_bytes: None });
        }
        QueueSpec::Red { min_packets, max_packets, max_ratio, weight, packets, .. } => {
            integer(&field("min_packets"), *min_packets, 0..=1_000_000_000)?;
            integer(&field("max_packets"), *max_packets, *min_packets + 1..=1_000_000_001)?;
            number(&field("max_ratio"), *max_ratio, 1e-9..=1.0)?;
            number(&field("weight"), *weight, 1e-9..=1.0)?;
            at_least_one("packets", *packets)?;
        }
        QueueSpec::Codel { target_ms, interval_ms, packets, .. }
        | QueueSpec::FqCodel { target_ms, interval_ms, packets, .. } => {
            number(&field("target_ms"), *target_ms, 1e-3..=MILLIS_MAX)?;
            number(&field("interval_ms"), *interval_ms, 1e-3..=MILLIS_MAX)?;
            at_least_one("packets", *packets)?;
        }
        QueueSpec::Pie { target_ms, update_ms, packets, .. } => {
            number(&field("target_ms"), *target_ms, 1e-3..=MILLIS_MAX)?;
            let min = (reader.duration_s * 1e3 / DRAWS_MAX).max(1e-3);
            number(&field("update_ms"), *update_ms, min..=MILLIS_MAX)?;
            at_least_one("packets", *packets)?;
        }
        QueueSpec::Dualpi2(spec) => check_dualpi2(path, spec, reader)?,
        QueueSpec::Step { mark_packets, packets } => {
            integer(&field("mark_packets"), *mark_packets, 0..=1_000_000_000)?;
            at_least_one("packets", *packets)?;
        }
    }
    if let QueueSpec::FqCodel { queues, quantum_bytes, device_packets, .. } = queue {
        integer(&field("device_packets"), *device_packets, 0..=1_000_000)?;
        integer(&field("queues"), u64::from(*queues), 1..=65_536)?;
        // A packet waits for as many turns as it has quanta.
        integer(&field("quantum_bytes"), u64::from(*quantum_bytes), 64..=1_000_000)?;
    }
    Ok(queue.clone())
}

fn check_dualpi2(path: &str, spec: &Dualpi2Spec, reader: &Reader) -> Result<(), Fault> {
    let field = |name: &str| format!("{path}.{name}");
    let update_min = (reader.duration_s * 1e3 / DRAWS_MAX).max(1e-3);
    for (name, value, range) in [
        ("target_ms", spec.target_ms, 1e-3..=MILLIS_MAX),
        ("update_ms", spec.update_ms, update_min..=MILLIS_MAX),
        ("alpha", spec.alpha, 0.0..=1e6),
        ("beta", spec.beta, 0.0..=1e6),
        ("coupling", spec.coupling, 1e-3..=1e3),
        ("step_ms", spec.step_ms, 0.0..=MILLIS_MAX),
        ("classic_share", spec.classic_share, 1e-3..=0.999),
    ] {
        number(&field(name), value, range)?;
    }
    integer(&field("packets"), spec.packets, 1..=u64::MAX >> 1)?;
    Ok(())
}

/// A link without queue limit, loss or any other property.
pub(super) fn plain(name: String, rate: RatePlan, delay: Span) -> LinkPlan {
    LinkPlan {
        name,
        sampled: true,
        rate,
        outages: Vec::new(),
        delay: DelayPlan::Constant(delay),
        delay_of: None,
        jitter: Span::ZERO,
        keep_order: true,
        queue: QueueSpec::default(),
        loss: None,
        loss_schedule: Vec::new(),
        duplicate_ratio: 0.0,
        reorder: None,
        extras: ExtrasPlan::default(),
    }
}

/// The reverse direction of a preset's link: as fast, unlimited queue; where the rate varies, as
/// fast as the format allows, so that ACKs never queue.
pub(super) fn reverse_of(link: &LinkPlan, name: &str, delay: Span) -> LinkPlan {
    let rate = match link.rate {
        RatePlan::Constant(rate) => rate,
        _ => Rate::from_mbps(MBPS_MAX),
    };
    let mut reverse = plain(name.to_owned(), RatePlan::Constant(rate), delay);
    reverse.sampled = false;
    reverse
}
