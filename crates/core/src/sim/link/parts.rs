//! What a link is made of, as planned.
use super::{Discipline, Extras};
use crate::rng::{Rng, Seed};
use crate::sim::aggregation::Aggregation;
use crate::sim::delay::{Delay, Jitter};
use crate::sim::loss::{GilbertElliott, Loss, Process};
use crate::sim::plan::{
    DelayPlan, Dualpi2Spec, ExtrasPlan, LinkPlan, LossSpec, QueueSpec, RatePlan,
};
use crate::sim::policer::Policer;
use crate::sim::queues::codel::{self, Codel};
use crate::sim::queues::device::BelowDiscipline;
use crate::sim::queues::drop_tail::DropTail;
use crate::sim::queues::dualpi2::{self, Dualpi2};
use crate::sim::queues::fq_codel::{self, FqCodel};
use crate::sim::queues::pie::{self, Pie};
use crate::sim::queues::red::{self, Red};
use crate::sim::queues::step::Step;
use crate::sim::remark::Remark;
use crate::sim::retransmit::Retransmit;
use crate::sim::service::{Outages, Service};
use crate::sim::steps::{Redraws, Steps};
use crate::units::{Bytes, Span, Time};

/// A typical full packet.
const FULL_PACKET: Bytes = Bytes(1500);

/// Whether packets on the wire are neither lost nor copied, nor is one of them delayed or overtaken.
pub(super) fn has_plain_wire(plan: &LinkPlan) -> bool {
    plan.loss.is_none()
        && plan.loss_schedule.is_empty()
        && plan.extras == ExtrasPlan::default()
        && plan.reorder.is_none()
        && plan.duplicate_ratio <= 0.0
}

/// Whether packets may be lost after they have left the queue.
pub(super) fn may_lose(plan: &LinkPlan) -> bool {
    plan.loss.is_some() || !plan.loss_schedule.is_empty() || plan.extras.retransmit.is_some()
}

pub(super) fn extras(plan: &LinkPlan, rng: &dyn Fn(&str) -> Rng) -> Option<Box<Extras>> {
    let spec = &plan.extras;
    if *spec == ExtrasPlan::default() {
        return None;
    }
    let remarks = spec.bleach || spec.forge_ce > 0.0;
    Some(Box::new(Extras {
        policer: spec.policer.as_ref().map(Policer::new),
        aggregation: spec.aggregation.as_ref().map(|one| Aggregation::new(one, rng("aggregation"))),
        retransmit: spec.retransmit.as_ref().map(|one| Retransmit::new(one, rng("retransmit"))),
        remark: remarks.then(|| Remark {
            bleach: spec.bleach,
            forge: spec.forge_ce,
            rng: rng("remark"),
        }),
    }))
}

pub(super) fn service(plan: &LinkPlan, seed: Seed) -> Service {
    let service = match &plan.rate {
        RatePlan::Constant(rate) => Service::constant(*rate),
        RatePlan::Schedule(steps) => Service::schedule(steps.clone()),
        RatePlan::Random { low, high, every, finer } => {
            let draws = Redraws::new(low.0, high.0, *every, seed);
            Service::drawn(draws.expect("the scenario's range is checked").with_steps(*finer))
        }
        RatePlan::Trace(trace) => Service::trace(std::sync::Arc::clone(trace)),
    };
    if plan.outages.is_empty() {
        return service;
    }
    let periods = plan.outages.iter().copied().filter(|(from, to)| from < to).collect();
    service.with_outages(Outages::new(periods).expect("the scenario's outages are checked"))
}

pub(super) fn delay(plan: &LinkPlan, seed: Seed) -> Delay {
    match &plan.delay {
        DelayPlan::Constant(span) if plan.jitter > Span::ZERO => Delay::Jitter(Jitter {
            mean: *span,
            sd: plan.jitter,
            min: Span::ZERO,
            rng: seed.stream("jitter", 0),
        }),
        DelayPlan::Constant(span) => Delay::Constant(*span),
        DelayPlan::Schedule(steps) => Delay::Schedule(steps.clone()),
        DelayPlan::Random { low, high, every, finer } => {
            let draws = Redraws::new(low.0, high.0, *every, seed);
            Delay::drawn(draws.expect("the scenario's range is checked").with_steps(*finer))
        }
    }
}

pub(super) fn loss(plan: &LinkPlan, rng: Rng) -> Option<Loss> {
    if !plan.loss_schedule.is_empty() {
        let ratios =
            Steps::new(plan.loss_schedule.clone()).expect("the scenario's steps are checked");
        let process = Process::Schedule(ratios);
        return Some(Loss { process, from: Time(0), until: Time::NEVER, rng });
    }
    let (process, from_s, until_s) = match *plan.loss.as_ref()? {
        LossSpec::Bernoulli { ratio, from_s, until_s } => {
            (Process::Bernoulli { ratio }, from_s, until_s)
        }
        LossSpec::GilbertElliott {
            good_to_bad,
            bad_to_good,
            good_loss,
            bad_loss,
            from_s,
            until_s,
        } => {
            let model = GilbertElliott {
                p_good_to_bad: good_to_bad,
                p_bad_to_good: bad_to_good,
                loss_good: good_loss,
                loss_bad: bad_loss,
                bad: false,
            };
            (Process::GilbertElliott(model), from_s, until_s)
        }
    };
    let until = until_s.map_or(Time::NEVER, Time::from_secs_f64);
    Some(Loss { process, from: Time::from_secs_f64(from_s), until, rng })
}

pub(super) fn discipline(plan: &LinkPlan, hash_seed: impl FnOnce() -> u64) -> Discipline {
    let millis = |ms: f64| Span::from_secs_f64(ms / 1e3);
    let limit = |packets: u64| DropTail { packets, bytes: u64::MAX };
    let codel = |target_ms: f64, interval_ms: f64, packets: u64, ecn: bool| codel::Config {
        target: millis(target_ms),
        interval: millis(interval_ms),
        ecn,
        limit: limit(packets),
        ..codel::Config::default()
    };
    // RED ages its average by what an idle link could have sent: full packets at its mean rate.
    let packet_time = match plan.rate {
        RatePlan::Constant(rate) => rate.time_for(FULL_PACKET),
        _ => red::Config::default().packet_time,
    };
    match plan.queue {
        QueueSpec::DropTail { packets: None, bytes: None, .. } => Discipline::Unlimited,
        QueueSpec::DropTail { packets, bytes, .. } => Discipline::DropTail(DropTail {
            packets: packets.unwrap_or(u64::MAX),
            bytes: bytes.unwrap_or(u64::MAX),
        }),
        QueueSpec::Red { min_packets, max_packets, max_ratio, weight, packets, ecn } => {
            Discipline::Admission(Box::new(Red::new(red::Config {
                min_packets,
                max_packets,
                max_probability: max_ratio,
                weight,
                ecn,
                packet_time,
                limit: limit(packets),
            })))
        }
        QueueSpec::Pie { target_ms, update_ms, packets, ecn } => {
            Discipline::Admission(Box::new(Pie::new(pie::Config {
                target: millis(target_ms),
                t_update: millis(update_ms),
                ecn,
                limit: limit(packets),
                ..pie::Config::default()
            })))
        }
        QueueSpec::Step { mark_packets, packets } => {
            Discipline::Admission(Box::new(Step { mark_packets, limit: limit(packets) }))
        }
        QueueSpec::Dualpi2(spec) => dualpi2(spec),
        QueueSpec::Codel { target_ms, interval_ms, packets, ecn } => {
            let config = codel(target_ms, interval_ms, packets, ecn);
            Discipline::Scheduler(Box::new(Codel::new(config)))
        }
        QueueSpec::FqCodel {
            target_ms,
            interval_ms,
            packets,
            queues,
            quantum_bytes,
            newton,
            device_packets,
            ecn,
        } => {
            let queue = FqCodel::new(fq_codel::Config {
                queues,
                quantum_bytes,
                perturbation: hash_seed(),
                codel: codel::Config { newton, ..codel(target_ms, interval_ms, packets, ecn) },
            });
            if device_packets == 0 {
                return Discipline::Scheduler(Box::new(queue));
            }
            Discipline::Scheduler(Box::new(BelowDiscipline::new(queue, device_packets)))
        }
    }
}

fn dualpi2(spec: Dualpi2Spec) -> Discipline {
    let millis = |ms: f64| Span::from_secs_f64(ms / 1e3);
    Discipline::Scheduler(Box::new(Dualpi2::new(dualpi2::Config {
        target: millis(spec.target_ms),
        t_update: millis(spec.update_ms),
        alpha: spec.alpha,
        beta: spec.beta,
        coupling: spec.coupling,
        step: millis(spec.step_ms),
        classic_share: spec.classic_share,
        limit: DropTail { packets: spec.packets, bytes: u64::MAX },
    })))
}
