//! What every coupled controller must hold, whatever its rules. The tests loop over the table and know no
//! names: a new file is tested without an edit here.
use ackademy::control::{
    Ack, CWND_MAX, Control, Coupled, FlowInfo, Loss, LossKind, Recovery, SubflowId,
};
use ackademy::controllers;
use ackademy::coupled::{ALL, Scope, Spec};
use ackademy::params::{ParamValue, Params};
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim::Sim;
use ackademy::sim::record::Outcome;
use ackademy::units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::support::files::files_of;
use crate::support::table;
use table::{MSS, ack, loss, number};

fn defaults(spec: &'static Spec) -> Params {
    table::defaults(spec.name, spec.params)
}

/// Windows after each call, in bytes.
type Windows = Arc<Mutex<Vec<u64>>>;

/// A coupled controller whose answers are checked after every call.
struct Checked {
    name: &'static str,
    inner: Box<dyn Coupled>,
    windows: Windows,
    mss: u64,
    present: BTreeSet<SubflowId>,
}

impl Checked {
    fn new(spec: &'static Spec, params: &Params) -> Self {
        let (inner, windows) = ((spec.build)(params), Windows::default());
        Self { name: spec.name, inner, windows, mss: 1, present: BTreeSet::new() }
    }

    /// With two subflows in congestion avoidance at 20 packets.
    fn with_two(spec: &'static Spec) -> Self {
        let mut checked = Self::new(spec, &defaults(spec));
        for id in IDS {
            checked.subflow_added(id, &flow(20));
            let rtt = Span::from_millis(100);
            let ack = Ack { rtt, srtt: rtt, min_rtt: rtt, rtt_max: rtt, ..Ack::default() };
            checked.on_ack(id, &Ack { cwnd_limited: 1, acked: Bytes(MSS), ..ack });
        }
        checked
    }

    fn cwnd(&self, id: SubflowId) -> u64 {
        self.inner.control(id).cwnd.0
    }

    /// Every subflow has a window and a rate that a sender can obey.
    fn check(&self) {
        for &id in &self.present {
            let (name, control) = (self.name, self.inner.control(id));
            let cwnd = control.cwnd.0;
            assert!(
                cwnd >= self.mss,
                "{name}: a window of {cwnd} bytes stops the subflow for ever"
            );
            assert!(cwnd <= CWND_MAX.0, "{name}: a window of {cwnd} bytes");
            assert!(control.pacing_rate > Rate(0), "{name}: a rate of zero stops the subflow");
            self.windows.lock().expect("no panic").push(cwnd);
        }
    }
}

impl Coupled for Checked {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.mss = flow.mss.0;
        self.present.insert(id);
        self.inner.subflow_added(id, flow);
        self.check();
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.present.remove(&id);
        self.inner.subflow_removed(id);
        self.check();
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.inner.on_ack(id, ack);
        self.check();
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.inner.on_loss(id, loss);
        self.check();
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
}

const IDS: [SubflowId; 2] = [SubflowId(0), SubflowId(1)];

fn flow(packets: u64) -> FlowInfo {
    FlowInfo {
        mss: Bytes(MSS),
        initial_cwnd: Bytes(packets * MSS),
        initial_ssthresh: Bytes((packets - 1) * MSS),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    }
}

/// Two connections on two paths.
fn two_paths(link: &str, seconds: f64) -> Scenario {
    let text = format!(
        "duration_s = {seconds}\n[two_path.first]\n{link}\n[two_path.second]\n{link}\n\
         [[flow]]\ncount = 2\nmultipath = true\n"
    );
    Scenario::parse(&text, "test").expect("a scenario")
}

const LINK: &str = "rate_mbps = 10\ndelay_ms = 25\nqueue = { kind = \"drop_tail\", packets = 50 }";

/// A run under a checked controller, and its windows.
fn run(spec: &'static Spec, params: &Params, scenario: &Scenario) -> (Outcome, Vec<u64>) {
    let windows = Windows::default();
    let mut network = scenario.network.clone();
    for plan in &mut network.connections {
        spec.name.clone_into(&mut plan.controller);
    }
    let mut build = |_: &_| -> Result<Box<dyn Coupled>, ()> {
        let checked = Checked::new(spec, params);
        Ok(Box::new(Checked { windows: Arc::clone(&windows), ..checked }))
    };
    let mut sim = Sim::new(&network, Seed(1), &mut build).expect("it is built");
    sim.run_until(network.duration);
    let outcome = sim.finish();
    let windows = std::mem::take(&mut *windows.lock().expect("no panic"));
    (outcome, windows)
}

fn delivered(outcome: &Outcome) -> u64 {
    outcome.flows.iter().map(|flow| flow.goodput_bytes).sum()
}

#[test]
fn names_are_file_names() {
    table::check_names("coupled", ALL.iter().map(|spec| spec.name));
}

#[test]
fn every_coupled_controller_and_every_setting_says_what_it_is() {
    for spec in ALL {
        table::check_texts(spec.name, [spec.about, spec.source], spec.params);
        assert!(controllers::find(spec.single).is_some(), "{}: {}", spec.name, spec.single);
    }
}

#[test]
fn the_same_seed_repeats_every_window() {
    let scenario =
        two_paths(&format!("{LINK}\nloss = {{ kind = \"bernoulli\", ratio = 0.001 }}"), 5.0);
    for spec in ALL {
        let params = defaults(spec);
        let (first, second) = (run(spec, &params, &scenario), run(spec, &params, &scenario));
        assert_eq!(first.1, second.1, "{}", spec.name);
        assert_eq!(format!("{:?}", first.0.flows), format!("{:?}", second.0.flows));
    }
}

#[test]
fn clean_paths_are_used() {
    for spec in ALL {
        let (outcome, _) = run(spec, &defaults(spec), &two_paths(LINK, 10.0));
        let share = delivered(&outcome) as f64 / (2.0 * 10e6 / 8.0 * 10.0);
        assert!(share > 0.3, "{} uses {share} of the links", spec.name);
    }
}

#[test]
fn every_setting_at_every_end_survives() {
    let scenario =
        two_paths(&format!("{LINK}\nloss = {{ kind = \"bernoulli\", ratio = 0.02 }}"), 2.0);
    for spec in ALL {
        for params in table::at_every_end(spec.name, spec.params) {
            run(spec, &params, &scenario);
        }
    }
}

#[test]
fn extreme_paths_are_survived() {
    let link = |rate: f64, delay_ms: f64, packets: u32, loss: f64| {
        format!(
            "rate_mbps = {rate:?}\ndelay_ms = {delay_ms:?}\nloss = {{ kind = \"bernoulli\", ratio = {loss:?} }}\n\
             queue = {{ kind = \"drop_tail\", packets = {packets} }}"
        )
    };
    let paths = [
        ("1 us", link(1000.0, 0.0005, 50, 0.0), 0.02),
        ("10 s", link(10.0, 5000.0, 50, 0.0), 100.0),
        ("30 % loss", link(10.0, 25.0, 50, 0.3), 30.0),
        ("no buffer", link(10.0, 25.0, 1, 0.0), 5.0),
    ];
    for spec in ALL {
        for (what, link, seconds) in &paths {
            let (outcome, _) = run(spec, &defaults(spec), &two_paths(link, *seconds));
            assert!(delivered(&outcome) > 0, "{} delivers nothing on {what}", spec.name);
        }
    }
}

/// The windows of two subflows after 20 s of a thousand packets a second on each with one loss, told `batch`
/// packets at a time.
fn windows_after_stream(spec: &'static Spec, batch: u64) -> [f64; 2] {
    let mut checked = Checked::new(spec, &defaults(spec));
    for id in IDS {
        checked.subflow_added(id, &FlowInfo { initial_ssthresh: Bytes(60 * MSS), ..flow(10) });
    }
    let losses_ms = [4000, 8000];
    for now_ms in (1..=20_000_u64).filter(|now_ms| now_ms % batch == 0) {
        for (id, loss_ms) in IDS.into_iter().zip(losses_ms) {
            let now = Time(0) + Span::from_millis(100 + now_ms);
            let sent_at = Time(0) + Span::from_millis(now_ms);
            let inflight = Bytes(100 * MSS);
            if now_ms == loss_ms {
                let kind = LossKind::Gap;
                let lost = Bytes(MSS);
                let loss = Loss { now, sent_at, lost, inflight, kind, ..Loss::default() };
                checked.on_loss(id, &loss);
            }
            let rtt = Span::from_millis(100);
            checked.on_ack(
                id,
                &Ack {
                    now,
                    sent_at,
                    rtt,
                    srtt: rtt,
                    min_rtt: Span::from_millis(95),
                    rtt_max: rtt,
                    acked: Bytes(batch * MSS),
                    inflight,
                    prior_inflight: inflight + Bytes(MSS),
                    delivered: Bytes(now_ms * MSS),
                    delivery_rate: Rate(10_000_000),
                    recovering: u64::from((loss_ms..=loss_ms + 100).contains(&now_ms)),
                    cwnd_limited: 1,
                    ..Ack::default()
                },
            );
        }
    }
    IDS.map(|id| checked.cwnd(id) as f64)
}

#[test]
fn batched_acks_give_the_same_windows() {
    for spec in ALL {
        let single = windows_after_stream(spec, 1);
        for batch in [2, 8] {
            let batched = windows_after_stream(spec, batch);
            for (one, many) in single.iter().zip(batched) {
                let ratio = many / one;
                let name = spec.name;
                assert!((0.95..=1.05).contains(&ratio), "{name}: {single:?} {batched:?}, {batch}");
            }
        }
    }
}

#[test]
fn a_loss_lowers_one_window_and_raises_none() {
    for spec in ALL {
        let mut checked = Checked::with_two(spec);
        if checked.control(IDS[0]).pacing_rate != Rate::UNLIMITED {
            continue;
        }
        let before = IDS.map(|id| checked.cwnd(id));
        let inflight = Bytes(before[0]);
        let now = Time::from_secs_f64(1.0);
        let loss = Loss { now, inflight, lost: Bytes(MSS), ..Loss::default() };
        checked.on_loss(IDS[0], &loss);
        assert!(checked.cwnd(IDS[0]) < before[0] && checked.cwnd(IDS[1]) <= before[1]);
        checked.on_loss(IDS[0], &Loss { kind: LossKind::Timeout, ..loss });
        assert!(checked.cwnd(IDS[0]) <= 2 * MSS, "{}", spec.name);
        assert!(checked.cwnd(IDS[1]) <= before[1], "{}", spec.name);
    }
}

#[test]
fn a_time_out_of_what_was_answered_keeps_the_threshold_and_closes_the_window() {
    for spec in ALL {
        for kind in [LossKind::Gap, LossKind::Timeout] {
            let mut checked = Checked::with_two(spec);
            let inflight = Bytes(checked.cwnd(IDS[0]));
            let loss = Loss { inflight, lost: Bytes(MSS), kind, ..Loss::default() };
            checked.on_loss(IDS[0], &loss);
            let first = checked.control(IDS[0]).ssthresh;
            for _ in 0..3 {
                checked.on_loss(IDS[0], &Loss { kind: LossKind::TimeoutAgain, ..loss });
                assert_eq!(checked.control(IDS[0]).ssthresh, first, "{}", spec.name);
                assert!(checked.cwnd(IDS[0]) <= 2 * MSS, "{}", spec.name);
            }
        }
    }
}

#[test]
fn a_spurious_loss_gives_back_no_more_than_was_taken() {
    for spec in ALL {
        for kind in [LossKind::Gap, LossKind::Timeout] {
            let mut checked = Checked::with_two(spec);
            if checked.control(IDS[0]).pacing_rate != Rate::UNLIMITED {
                continue;
            }
            let before = checked.cwnd(IDS[0]);
            let loss = Loss { inflight: Bytes(before), lost: Bytes(MSS), kind, ..Loss::default() };
            checked.on_loss(IDS[0], &loss);
            let reduced = checked.cwnd(IDS[0]);
            checked.on_loss(IDS[0], &Loss { kind: LossKind::Spurious, ..loss });
            let after = checked.cwnd(IDS[0]);
            assert!(
                after >= reduced && after <= before,
                "{}: {before} {reduced} {after}",
                spec.name
            );
        }
    }
}

#[test]
fn subflows_join_and_leave_in_the_middle_and_the_others_go_on() {
    for spec in ALL {
        let mut checked = Checked::with_two(spec);
        let rtt = Span::from_millis(100);
        let ack =
            Ack { rtt, srtt: rtt, min_rtt: rtt, rtt_max: rtt, cwnd_limited: 1, ..Ack::default() };
        for round in 0..200_u64 {
            let now = Time::from_secs_f64(1.0 + round as f64 * 0.1);
            let sent_at = Time(now.0 - rtt.0);
            let visitor = SubflowId(2 + (round / 20 % 3) as u32);
            match round % 20 {
                5 => checked.subflow_added(visitor, &flow(10)),
                15 => checked.subflow_removed(visitor),
                _ => {}
            }
            let present: Vec<SubflowId> = checked.present.iter().copied().collect();
            for id in present {
                checked.on_ack(id, &Ack { now, sent_at, acked: Bytes(MSS), ..ack });
            }
        }
        assert_eq!(checked.present.len(), 2, "{}", spec.name);
    }
}

/// Anything a transport could say, and more.
#[derive(Clone, Debug)]
enum Event {
    Added,
    Removed,
    Ack(Ack),
    Loss(Loss),
    Timer(Time),
}

fn event() -> impl Strategy<Value = (u32, Event)> {
    let event = prop_oneof![
        1 => Just(Event::Added),
        1 => Just(Event::Removed),
        8 => ack().prop_map(Event::Ack),
        2 => loss().prop_map(Event::Loss),
        1 => number().prop_map(|now| Event::Timer(Time(now))),
    ];
    // A few numbers that are reused, and one that no subflow has.
    (prop_oneof![4 => 0_u32..4, 1 => Just(u32::MAX)], event)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_sequence_of_events_breaks_a_controller_nor_does_an_unknown_subflow_one_of_a_connection(
        events in prop::collection::vec(event(), 1..200),
        setting in any::<bool>(),
    ) {
        for spec in ALL {
            let mut given = files_of(spec.name, spec.params);
            if setting && spec.params.iter().any(|param| param.name == "kernel") {
                given.push(("kernel".to_owned(), ParamValue::Word("on".to_owned())));
            }
            let mut checked = Checked::new(spec, &Params::resolve(spec.params, &given).unwrap());
            for (id, event) in &events {
                // A transport numbers its subflows from zero: memory may grow with the number.
                let is_added = matches!(event, Event::Added);
                let id = SubflowId(if is_added { id % 4 } else { *id });
                // What governs a host is only ever told of subflows that are there, as `Coupled` has it.
                if spec.scope == Scope::Host && checked.present.contains(&id) == is_added {
                    continue;
                }
                match event {
                    Event::Added => checked.subflow_added(id, &flow(10)),
                    Event::Removed => checked.subflow_removed(id),
                    Event::Ack(ack) => checked.on_ack(id, ack),
                    Event::Loss(loss) => checked.on_loss(id, loss),
                    Event::Timer(now) => checked.on_timer(id, *now),
                }
                if spec.scope == Scope::Host && !checked.present.contains(&id) {
                    continue;
                }
                let _ = (checked.inner.next_timer(id), checked.inner.counters(id));
                prop_assert!(checked.inner.control(id).cwnd > Bytes(0));
            }
        }
    }
}
