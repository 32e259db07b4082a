//! A record stands for many acknowledgements: the controllers must decide as if each had come alone.
use ackademy::control::{
    Ack, Control, Controller, Coupled, FlowInfo, Loss, PerFlow, Send, SendAction, Spec, SubflowId,
};
use ackademy::controllers::{self, ALL};
use ackademy::params::Params;
use ackademy::policy::{Action, Agent, FEATURES, InvalidAction, LearnedController, PolicySpec};
use ackademy::units::{Bytes, Time};
use ackademy_net::kernel::adapter::{Adapter, Allowed, flow_info};
use ackademy_net::kernel::governor::Governor;
use ackademy_net::kernel::may_pace;
use ackademy_net::kernel::record::{Flow, PACING_NONE, Record, flag, kind};
use std::sync::{Arc, Mutex};

use crate::files::files;

const RTT_US: u32 = 100_000;
const START_NS: u64 = 1_000_000_000;
/// Packets that the default sampling puts in a record on a path of a thousand packets a second.
const BATCHES: [u32; 3] = [1, 6, 10];

fn flow(seed: u32) -> Flow {
    Flow {
        generation: seed,
        opened_at: START_NS,
        family: libc::AF_INET as u16,
        header: 52,
        mss: 1448,
        initial_cwnd: 10,
        initial_ssthresh: 60,
        ..Flow::default()
    }
}

/// The record made when `delivered` packets have arrived, one each millisecond.
fn record(delivered: u32) -> Record {
    let now = START_NS + u64::from(RTT_US) * 1000 + u64::from(delivered) * 1_000_000;
    Record {
        kind: kind::SAMPLE,
        flags: flag::CWND_LIMITED,
        now,
        sent_at: now - u64::from(RTT_US) * 1000,
        rtt_us: RTT_US,
        rtt_max_us: RTT_US,
        srtt_us: RTT_US,
        min_rtt_us: RTT_US,
        delivered,
        inflight: 100,
        newest: 1,
        flight: 100,
        rate_delivered: 100,
        rate_interval_us: RTT_US,
        ..Record::default()
    }
}

/// Settings of a controller: defaults, beside the small files that the core's own tests have for it.
fn settings(spec: &'static Spec) -> Params {
    Params::resolve(spec.params, &files(spec)).expect("defaults are in range")
}

/// A flow with a governor of its own.
struct Single {
    adapter: Adapter,
    governor: Governor,
}

impl Single {
    fn new(flow: &Flow, first: &Record, coupled: Box<dyn Coupled>) -> Self {
        let mut governor = Governor::new(coupled);
        Self { adapter: Adapter::new(flow, first, &flow_info(flow), &mut governor), governor }
    }
    fn on_record(&mut self, record: &Record) {
        self.adapter.on_record(&mut self.governor, record);
    }
    fn on_timer(&mut self, now: Time) {
        self.adapter.on_timer(&mut self.governor, now);
    }
    fn is_due(&self) -> bool {
        self.adapter.is_due(&self.governor)
    }
    fn settle(&mut self) {
        self.adapter.decide(&mut self.governor);
    }
    fn next_timer(&self) -> Option<Time> {
        self.adapter.next_timer(&self.governor)
    }
    fn allowed(&self) -> Option<Allowed> {
        self.adapter.allowed(&self.governor)
    }
}

/// As the agent: what falls due with a record is decided with it.
fn deliver(adapter: &mut Single, record: &Record) {
    adapter.on_record(record);
    if adapter.is_due() {
        adapter.settle();
    }
}

/// The window in packets after `packets`, with one loss among the first 4000 of them, told `batch`
/// at a time; events are told at once, as the kernel does.
fn window(spec: &'static Spec, seed: u32, batch: u32, packets: u32) -> f64 {
    let (loss, recovered) = (4000, 4100);
    let params = settings(spec);
    let mut adapter =
        Single::new(&flow(seed), &record(0), Box::new(controllers::per_flow(spec, params)));
    for delivered in 1..=packets {
        let held = delivered.clamp(loss, recovered) - loss;
        let lost = u32::from(delivered >= loss);
        let counted = Record { held, lost, ..record(delivered) };
        if adapter.next_timer().is_some_and(|timer| timer.0 <= counted.now) {
            adapter.on_timer(Time(counted.now));
        }
        if delivered == loss {
            deliver(&mut adapter, &Record { kind: kind::GAP, ..counted });
        } else if delivered % batch == 0 {
            deliver(&mut adapter, &counted);
        }
    }
    f64::from(adapter.allowed().expect("a window that a sender obeys").cwnd)
}

/// As `batched_acks_give_the_same_window` among the core's conformance tests: a controller that
/// draws random numbers takes other draws when its calls shift by a packet; for it the mean over the
/// seeds must lie among those that single acknowledgements give.
#[test]
fn records_of_many_packets_give_the_windows_of_single_ones() {
    for spec in ALL {
        // Slow start, the end of slow start, congestion avoidance with a loss behind.
        for packets in [30, 120, 12_000] {
            let over_seeds = |batch| -> Vec<f64> {
                (1..=8).map(|seed| window(spec, seed, batch, packets)).collect()
            };
            let single = over_seeds(1);
            let low = single.iter().copied().fold(f64::INFINITY, f64::min);
            let high = single.iter().copied().fold(0.0, f64::max);
            for batch in BATCHES {
                let mean = over_seeds(batch).iter().sum::<f64>() / 8.0;
                assert!(
                    mean >= 0.95 * low - 0.5 && mean <= 1.05 * high + 0.5,
                    "{} after {packets}: {mean} packets with {batch} a record, {low} to {high} \
                     with one",
                    spec.name
                );
            }
        }
    }
}

/// What paces is asked for before it has been seen: the BPF program is loaded without what paced flows need
/// where no controller sets a rate.
#[test]
fn a_controller_that_ever_sets_a_rate_is_known_to_from_the_start() {
    let mut paced = Vec::new();
    for spec in ALL {
        let governor = || Box::new(controllers::per_flow(spec, settings(spec)));
        let mut adapter = Single::new(&flow(1), &record(0), governor());
        let sets_a_rate = (1..=6000).any(|delivered| {
            let lost = u32::from(delivered >= 4000);
            let kind = if delivered == 4000 { kind::GAP } else { kind::SAMPLE };
            deliver(&mut adapter, &Record { kind, lost, ..record(delivered) });
            adapter.allowed().is_some_and(|allowed| allowed.pacing != PACING_NONE)
        });
        if sets_a_rate {
            assert!(may_pace(spec.params, governor()), "{}", spec.name);
            paced.push(spec.name);
        }
    }
    assert!(paced.contains(&"vivace"), "{paced:?}");
    let new_reno = controllers::find("new_reno").expect("in the table");
    assert!(!may_pace(
        new_reno.params,
        Box::new(controllers::per_flow(new_reno, settings(new_reno)))
    ));
}

/// Keeps the window and every observation.
struct Witness(Arc<Mutex<Vec<Vec<f32>>>>);

impl Agent for Witness {
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction> {
        self.0.lock().expect("no panic").push(observation.to_vec());
        Ok(Action::Choice(0))
    }
}

/// Mean and standard deviation of every feature over the decisions of 20 s, in which round trips
/// swing between 80 and 120 ms, in records of `batch`.
fn features(batch: u32) -> Vec<[f64; 2]> {
    let names: Vec<_> = FEATURES.iter().map(|feature| format!("{:?}", feature.name)).collect();
    let text = format!(
        "observation = {{ features = [{}], history = 1 }}\ndecision = {{ every = \"srtt\" }}\n\
         action = {{ map = \"cwnd_steps\", steps = [\"+0\", \"+1\"] }}\n\
         start = {{ slow_start = false }}\n",
        names.join(", ")
    );
    let spec = PolicySpec::parse(&text).expect("the tables of a learned controller");
    let (spec, seen) = (Arc::new(spec), Arc::new(Mutex::new(Vec::new())));
    let witness = Arc::clone(&seen);
    let governor = PerFlow::new(move |flow: &FlowInfo| -> Box<dyn Controller> {
        Box::new(LearnedController::new(
            flow,
            &spec,
            Box::new(Witness(Arc::clone(&witness))),
            controllers::fallback,
        ))
    });
    // The window is about what a round trip delivers, as a window in use is.
    let wide = Flow { initial_cwnd: 100, ..flow(1) };
    let mut adapter = Single::new(&wide, &record(0), Box::new(governor));
    for delivered in (1..=20_000_u32).filter(|delivered| delivered % batch == 0) {
        let swing = (f64::from(delivered) / 1000.0 * std::f64::consts::PI).sin();
        let rtt_us = (100_000.0 + 20_000.0 * swing) as u32;
        let all = record(delivered);
        let sent_at = all.now - u64::from(rtt_us) * 1000;
        let min_rtt_us = 80_000;
        deliver(&mut adapter, &Record { rtt_us, rtt_max_us: rtt_us, min_rtt_us, sent_at, ..all });
    }
    let seen = seen.lock().expect("no panic");
    assert!(seen.len() > 150, "{} decisions", seen.len());
    // The first second is the start's.
    let rows = &seen[10..];
    let count = rows.len() as f64;
    (0..FEATURES.len())
        .map(|index| {
            let values = || rows.iter().map(|row| f64::from(row[index]));
            let mean = values().sum::<f64>() / count;
            let variance = values().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
            [mean, variance.sqrt()]
        })
        .collect()
}

#[test]
fn a_policy_sees_nearly_the_same_in_records_as_in_single_acknowledgements() {
    let single = features(1);
    for batch in BATCHES {
        for ((feature, own), expected) in FEATURES.iter().zip(features(batch)).zip(&single) {
            for (own, expected) in own.into_iter().zip(expected) {
                let tolerance = 0.05 * expected.abs() + 0.02;
                assert!(
                    (own - expected).abs() <= tolerance,
                    "{}: {own} with {batch} a record, {expected} with one",
                    feature.name
                );
            }
        }
    }
}

/// What lets the kernel continue slow start by itself between two decisions.
#[test]
fn slow_start_is_seen_until_the_threshold_and_not_after_it() {
    let spec = controllers::find("new_reno").expect("in the table");
    let params = Params::defaults(spec.params);
    let mut adapter =
        Single::new(&flow(1), &record(0), Box::new(controllers::per_flow(spec, params)));
    let mut growing = Vec::new();
    for delivered in (10..=100).step_by(10) {
        adapter.on_record(&record(delivered));
        growing.push(adapter.allowed().expect("a window").growing);
    }
    let (before, after) = growing.split_at(5);
    assert!(before.iter().all(|growing| *growing), "{growing:?}");
    assert!(after.iter().all(|growing| !growing), "{growing:?}");
}

/// A ring that was full loses no packet: the next record's counts hold what the last one's did.
#[test]
fn a_refused_record_changes_nothing_but_the_time() {
    for spec in ALL.iter().filter(|spec| ["new_reno", "cubic"].contains(&spec.name)) {
        let windows = [[10, 20, 30], [10, 10, 30]].map(|told| {
            let params = Params::defaults(spec.params);
            let governor = Box::new(controllers::per_flow(spec, params));
            let mut adapter = Single::new(&flow(1), &record(0), governor);
            for delivered in told {
                adapter.on_record(&record(delivered));
            }
            adapter.allowed().expect("a window").cwnd
        });
        assert_eq!(windows[0], windows[1], "{}", spec.name);
        assert_eq!(windows[0], 40, "{}", spec.name);
    }
}

#[test]
fn counts_may_wrap() {
    let spec = controllers::find("new_reno").expect("in the table");
    let governor = controllers::per_flow(spec, Params::defaults(spec.params));
    let near = Record { delivered: u32::MAX - 4, lost: u32::MAX, ..record(0) };
    let mut adapter = Single::new(&flow(1), &near, Box::new(governor));
    adapter.on_record(&Record { delivered: 5, lost: u32::MAX, ..record(10) });
    assert_eq!(adapter.allowed().expect("a window").cwnd, 20);
}

/// Grows by a packet a round trip; holds what would be more than 120 packets in flight, and lowers
/// its window by one for each packet held.
struct Holder {
    cwnd: f64,
}

impl Coupled for Holder {
    fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
    fn subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, ack: &Ack) {
        self.cwnd += ack.acked.0 as f64 / 1500.0 / self.cwnd;
    }
    fn on_loss(&mut self, _: SubflowId, _: &Loss) {}
    fn on_send(&mut self, _: SubflowId, send: &Send) -> SendAction {
        if send.inflight.0 < 120 * 1500 {
            return SendAction::Send;
        }
        self.cwnd -= 1.0;
        SendAction::Hold
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn control(&self, _: SubflowId) -> Control {
        Control::window(Bytes((self.cwnd * 1500.0) as u64))
    }
}

/// A sender that fills what it was allowed with the last record, on a path of a packet each
/// millisecond: the most packets that it had in flight.
fn longest_flight(batch: u32) -> u32 {
    let governor = Box::new(Holder { cwnd: 100.0 });
    let mut adapter = Single::new(&flow(1), &record(0), governor);
    let mut sent = 100;
    let mut longest = 0;
    for delivered in 1..=20_000 {
        sent = sent.max(delivered + adapter.allowed().expect("a window").cwnd);
        longest = longest.max(sent - delivered);
        if delivered % batch == 0 {
            let inflight = sent - delivered;
            adapter.on_record(&Record { inflight, flight: inflight, ..record(delivered) });
        }
    }
    longest
}

#[test]
fn a_send_hook_called_once_a_record_holds_the_flight_to_within_a_record() {
    for batch in BATCHES {
        let longest = longest_flight(batch);
        assert!((120..=121 + batch).contains(&longest), "{longest} with {batch} a record");
    }
}
