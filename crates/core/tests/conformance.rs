//! What every controller must hold, whatever its rules: plain ones, one for each subflow as transports run them, and
//! coupled ones. The tests loop over both tables and know no names: a new file is tested without an edit here.
//!
//! Where a rule applies to some controllers only, a property that can be observed decides: a controller whose
//! pacing rate stays unlimited governs by its window, and a window must answer losses.
use ackademy::control::{
    Ack, CWND_MAX, Control, Coupled, FlowInfo, Loss, LossKind, Recovery, SubflowId,
};
use ackademy::coupled::Scope;
use ackademy::params::{Param, ParamValue, Params};
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::scheme::{self, Scheme};
use ackademy::sim::Sim;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy::{controllers, coupled};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use crate::support::files::files_of;
use crate::support::sender::{PATH, Path, send, tell_timer};
use crate::support::table;
use table::{MSS, ack, loss, number};

/// An entry of either table.
struct Entry {
    name: &'static str,
    texts: [&'static str; 2],
    params: &'static [Param],
    /// Of a coupled controller, what it governs.
    scope: Option<Scope>,
    of: scheme::Entry,
}

impl Entry {
    /// Every setting at its default, beside the files.
    fn defaults(&self) -> Params {
        table::defaults(self.name, self.params)
    }

    /// Whether calls that name a subflow which is not there are allowed: a transport makes none.
    fn takes_unknown(&self) -> bool {
        self.scope == Some(Scope::Connection)
    }
}

/// Both tables.
fn all() -> Vec<Entry> {
    let plain = controllers::ALL
        .iter()
        .map(|spec| (scheme::Entry::Plain(spec), [spec.about, spec.source], None));
    let coupled = coupled::ALL
        .iter()
        .map(|spec| (scheme::Entry::Coupled(spec), [spec.about, spec.source], Some(spec.scope)));
    let row = |(entry, texts, scope): (scheme::Entry, _, _)| Entry {
        name: entry.name(),
        texts,
        params: entry.params(),
        scope,
        of: entry,
    };
    plain.chain(coupled).map(row).collect()
}

/// Windows after each call, in bytes.
type Windows = Arc<Mutex<Vec<u64>>>;

/// A controller whose answers are checked after every call.
struct Checked {
    name: &'static str,
    inner: Box<dyn Coupled>,
    windows: Windows,
    mss: u64,
    present: BTreeSet<SubflowId>,
}

impl Checked {
    fn new(entry: &Entry, params: &Params) -> Self {
        let scheme = Scheme { entry: entry.of, params: params.clone() };
        let (inner, windows) = (scheme.build(), Windows::default());
        Self { name: entry.name, inner, windows, mss: 1, present: BTreeSet::new() }
    }

    /// With two subflows. Only the simulator says whose they are: until then, what governs a host runs each as a
    /// plain flow.
    fn with_two(entry: &Entry, params: &Params, flow: &FlowInfo) -> Self {
        let mut checked = Self::new(entry, params);
        for id in IDS {
            let seed = flow.seed.wrapping_add(u64::from(id.0));
            checked.subflow_added(id, &FlowInfo { seed, ..*flow });
        }
        checked
    }

    /// As a connection begins.
    fn fresh(entry: &Entry, params: &Params, seed: u64) -> Self {
        let recovery = if seed.is_multiple_of(2) { Recovery::Ns2 } else { Recovery::Sack };
        let flow = FlowInfo { initial_ssthresh: Bytes(u64::MAX), recovery, seed, ..flow(10) };
        Self::with_two(entry, params, &flow)
    }

    /// After a run over `path`.
    fn after_run(entry: &Entry, params: &Params, path: &Path) -> Self {
        let mut checked = Self::fresh(entry, params, 1);
        send(path, &mut checked, &IDS, Time(0));
        checked
    }

    /// With two subflows in congestion avoidance at 20 packets.
    fn at_20_packets(entry: &Entry, params: &Params) -> Self {
        let mut checked = Self::new(entry, params);
        for id in IDS {
            checked.subflow_added(id, &flow(20));
            let rtt = Span::from_millis(100);
            let ack = Ack { rtt, srtt: rtt, min_rtt: rtt, rtt_max: rtt, ..Ack::default() };
            checked.on_ack(id, &Ack { cwnd_limited: 1, acked: Bytes(MSS), ..ack });
        }
        checked
    }

    fn cwnd(&self, id: SubflowId) -> Bytes {
        self.control(id).cwnd
    }

    /// What is allowed on a subflow after a loss of it.
    fn lose(&mut self, id: SubflowId, loss: &Loss) -> Control {
        self.on_loss(id, loss);
        self.control(id)
    }

    fn governs_by_window(&self) -> bool {
        self.control(IDS[0]).pacing_rate == Rate::UNLIMITED
    }

    /// Every subflow has a window and a rate that a sender can obey.
    fn check(&self) {
        for &id in &self.present {
            let window = self.control(id).cwnd.0;
            self.windows.lock().expect("no panic").push(window);
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
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        self.inner.on_timer(id, now);
        self.check();
    }
    fn control(&self, id: SubflowId) -> Control {
        let control = self.inner.control(id);
        if self.present.contains(&id) {
            let (name, cwnd) = (self.name, control.cwnd.0);
            assert!(cwnd >= self.mss, "{name}: a window of {cwnd} bytes stops the flow for ever");
            assert!(cwnd <= CWND_MAX.0, "{name}: a window of {cwnd} bytes");
            assert!(control.pacing_rate > Rate(0), "{name}: a pacing rate of zero stops the flow");
        }
        control
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

/// Bytes delivered on each subflow, or of each connection, and all that can be seen of a run.
type Seen = (Vec<Bytes>, Vec<u64>, String);

/// A run of one connection by the tests' own sender.
fn run(entry: &Entry, params: &Params, seed: u64, path: &Path) -> Seen {
    let mut checked = Checked::fresh(entry, params, seed);
    let delivered = send(path, &mut checked, &IDS, Time(0));
    let windows = std::mem::take(&mut *checked.windows.lock().expect("no panic"));
    (delivered, windows, format!("{:?}", IDS.map(|id| checked.counters(id))))
}

/// A run of two connections of two subflows in the simulator, over two links like that of `path`.
fn simulate(entry: &Entry, params: &Params, path: &Path) -> Seen {
    let windows = Windows::default();
    let mut network = two_paths(path).network;
    for plan in &mut network.connections {
        entry.name.clone_into(&mut plan.controller);
    }
    let mut build = |_: &_| -> Result<Box<dyn Coupled>, ()> {
        let checked = Checked::new(entry, params);
        Ok(Box::new(Checked { windows: Arc::clone(&windows), ..checked }))
    };
    let mut sim = Sim::new(&network, Seed(1), &mut build).expect("it is built");
    sim.run_until(network.duration);
    let flows = sim.finish().flows;
    let delivered = flows.iter().map(|flow| Bytes(flow.goodput_bytes)).collect();
    let windows = std::mem::take(&mut *windows.lock().expect("no panic"));
    (delivered, windows, format!("{flows:?}"))
}

fn two_paths(path: &Path) -> Scenario {
    let (rate, delay) = (path.rate.0 as f64 / 1e6, path.base_rtt.as_secs_f64() * 500.0);
    let link = format!(
        "rate_mbps = {rate:?}\ndelay_ms = {delay:?}\n\
         queue = {{ kind = \"drop_tail\", packets = {} }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {:?} }}",
        path.buffer.max(1),
        path.loss_ratio
    );
    let text = format!(
        "duration_s = {:?}\n[two_path.first]\n{link}\n[two_path.second]\n{link}\n\
         [[flow]]\ncount = 2\nmultipath = true\n",
        path.duration.as_secs_f64()
    );
    Scenario::parse(&text, "test").expect("a scenario")
}

/// Part of the link of `PATH` in a run.
fn share(delivered: Bytes) -> f64 {
    delivered.0 as f64 / PATH.rate.bytes_in(PATH.duration).0 as f64
}

#[test]
fn names_are_file_names() {
    table::check_names("controllers", controllers::ALL.iter().map(|spec| spec.name));
    table::check_names("coupled", coupled::ALL.iter().map(|spec| spec.name));
}

#[test]
fn every_controller_and_every_setting_says_what_it_is() {
    for entry in all() {
        table::check_texts(entry.name, entry.texts, entry.params);
    }
    for spec in coupled::ALL {
        assert!(controllers::find(spec.single).is_some(), "{}: {}", spec.name, spec.single);
    }
}

#[test]
fn the_same_seed_repeats_every_window() {
    let path = Path { loss_ratio: 0.001, ..PATH };
    for entry in all() {
        let params = entry.defaults();
        let twice = [(); 2].map(|()| run(&entry, &params, 6, &path));
        assert_eq!(twice[0], twice[1], "{}", entry.name);
        let twice = [(); 2].map(|()| simulate(&entry, &params, &path));
        assert_eq!(twice[0], twice[1], "{} in the simulator", entry.name);
    }
}

/// Transports begin again with the same scheme, such as on a new path.
#[test]
fn a_scheme_makes_controllers_as_at_the_start_whatever_became_of_those_before() {
    let path = Path { loss_ratio: 0.001, ..PATH };
    for entry in all() {
        let first = run(&entry, &entry.defaults(), 6, &path);
        let params = entry.defaults();
        let before = Checked::after_run(&entry, &params, &path);
        assert_eq!(run(&entry, &params, 6, &path), first, "{}", entry.name);
        drop(before);
        assert_eq!(run(&entry, &params, 6, &path), first, "{}", entry.name);
    }
}

#[test]
fn clean_paths_are_used() {
    for entry in all() {
        let params = entry.defaults();
        for (id, delivered) in run(&entry, &params, 1, &PATH).0.into_iter().enumerate() {
            let share = share(delivered);
            assert!(share > 0.3, "{} uses {share} of link {id}", entry.name);
        }
        let share = share(simulate(&entry, &params, &PATH).0.into_iter().sum()) / 2.0;
        assert!(share > 0.3, "{} uses {share} of the links of the simulator", entry.name);
    }
}

#[test]
fn every_setting_at_every_end_survives() {
    let path = Path { loss_ratio: 0.02, duration: Span::from_millis(2000), buffer: 20, ..PATH };
    for entry in all() {
        for params in table::at_every_end(entry.name, entry.params) {
            run(&entry, &params, 2, &path);
            simulate(&entry, &params, &Path { buffer: 50, ..path });
        }
    }
}

#[test]
fn extreme_paths_are_survived() {
    let with = |rate, base_rtt, millis| {
        let duration = Span::from_millis(millis);
        Path { rate: Rate(rate), base_rtt, duration, ..PATH }
    };
    let short = with(10_000_000_000, Span::from_micros(1), 40);
    let long = with(10_000_000, Span::from_millis(10_000), 200_000);
    let lossy = Path { loss_ratio: 0.3, duration: Span::from_millis(60_000), ..PATH };
    let paths = [
        ("1 us", short),
        ("10 s", long),
        ("30 % loss", lossy),
        ("no samples", Path { samples: false, loss_ratio: 0.01, ..PATH }),
        ("no buffer", Path { buffer: 0, ..PATH }),
        ("64 in a record", Path { batch: 64, ..PATH }),
    ];
    for entry in all() {
        let (name, params) = (entry.name, entry.defaults());
        for (what, path) in &paths {
            for seed in [1, 2] {
                let delivered = run(&entry, &params, seed, path).0;
                let all = delivered.iter().all(|&bytes| bytes > Bytes(0));
                assert!(all, "{name} delivers nothing on {what}: {delivered:?}");
            }
            // The simulator's sender measures round trips, and its records are of one acknowledgement.
            if path.samples && path.batch == 1 {
                let path = Path { duration: path.duration / 2, ..*path };
                let delivered: Bytes = simulate(&entry, &params, &path).0.into_iter().sum();
                assert!(delivered > Bytes(0), "{name} delivers nothing on {what}, simulated");
            }
        }
    }
}

#[test]
fn an_idle_hour_does_not_more_than_double_the_window() {
    for entry in all() {
        let path = Path { loss_ratio: 0.0005, ..PATH };
        let mut checked = Checked::after_run(&entry, &entry.defaults(), &path);
        let rtt = PATH.base_rtt;
        let now = Time::from_secs_f64(3610.0);
        let sent_at = Time(now.0 - rtt.0);
        let (srtt, min_rtt, rtt_max, batch_rtt_min) = (rtt, rtt, rtt, rtt);
        let ack = Ack { now, sent_at, rtt, srtt, min_rtt, rtt_max, batch_rtt_min, ..STREAM };
        for id in IDS {
            let before = checked.cwnd(id);
            checked.on_ack(id, &ack);
            let after = checked.cwnd(id);
            assert!(after <= before * 2, "{}: {before:?} to {after:?}", entry.name);
        }
        send(&PATH, &mut checked, &IDS, now);
    }
}

/// What all ACKs of an open-loop stream share.
const STREAM: Ack = Ack {
    now: Time(0),
    sent_at: Time(0),
    rtt: Span::from_millis(100),
    srtt: Span::from_millis(100),
    min_rtt: Span::from_millis(95),
    rtt_max: Span::from_millis(100),
    batch_rtt_min: Span::from_millis(100),
    acked: Bytes(MSS),
    ce_marked: Bytes(0),
    inflight: Bytes(100 * MSS),
    prior_inflight: Bytes(101 * MSS),
    delivered: Bytes(0),
    delivery_rate: Rate(10_000_000),
    tx_inflight: Bytes(0),
    delivered_since: Bytes(0),
    lost_since: Bytes(0),
    app_limited: 0,
    recovering: 0,
    cwnd_limited: 1,
};

/// The windows of two subflows after 20 s of a thousand packets a second on each with one loss, told `batch` packets at
/// a time.
fn windows_after_stream(entry: &Entry, seed: u64, batch: u64) -> [f64; 2] {
    let flow = FlowInfo { initial_ssthresh: Bytes(60 * MSS), seed, ..flow(10) };
    let mut checked = Checked::with_two(entry, &entry.defaults(), &flow);
    let losses_ms = [4000, 8000];
    for now_ms in (1..=20_000_u64).filter(|now_ms| now_ms % batch == 0) {
        for (id, loss_ms) in IDS.into_iter().zip(losses_ms) {
            let now = Time(0) + Span::from_millis(100 + now_ms);
            let sent_at = Time(0) + Span::from_millis(now_ms);
            tell_timer(&mut checked, id, now);
            if now_ms == loss_ms {
                let (lost, inflight) = (Bytes(MSS), Bytes(100 * MSS));
                checked.on_loss(id, &Loss { now, sent_at, lost, inflight, ..Loss::default() });
            }
            let recovering = u64::from((loss_ms..=loss_ms + 100).contains(&now_ms));
            let (acked, delivered) = (Bytes(batch * MSS), Bytes(now_ms * MSS));
            checked.on_ack(id, &Ack { now, sent_at, acked, delivered, recovering, ..STREAM });
        }
    }
    IDS.map(|id| checked.cwnd(id).0 as f64)
}

#[test]
fn batched_acks_give_the_same_windows() {
    // Within 5 % of the windows that single ACKs give. A controller that draws random numbers takes
    // other draws when its calls shift by a packet; for it the mean over the seeds must lie among
    // those that single ACKs give.
    for entry in all() {
        let windows = |batch| (1..=8).map(move |seed| (seed, batch));
        let of = |(seed, batch)| windows_after_stream(&entry, seed, batch);
        let single: Vec<_> = windows(1).map(of).collect();
        for batch in [2, 8] {
            let batched: Vec<_> = windows(batch).map(of).collect();
            for id in [0, 1] {
                let low = single.iter().map(|windows| windows[id]).fold(f64::INFINITY, f64::min);
                let high = single.iter().map(|windows| windows[id]).fold(0.0, f64::max);
                let mean = batched.iter().map(|windows| windows[id]).sum::<f64>() / 8.0;
                assert!(
                    mean >= 0.95 * low && mean <= 1.05 * high,
                    "{}: {mean} bytes with {batch} ACKs a call, {low} to {high} with one",
                    entry.name
                );
            }
        }
    }
}

/// One packet lost a second after a run over `PATH`, with a full window in flight.
fn lost_after_run(kind: LossKind, window: Bytes) -> Loss {
    Loss {
        now: Time::from_secs_f64(11.0),
        sent_at: Time::from_secs_f64(10.9),
        lost: Bytes(MSS),
        inflight: window,
        kind,
        ..Loss::default()
    }
}

/// What is to lose a packet.
fn before_loss(entry: &Entry, params: &Params, path: &Path) -> [Checked; 2] {
    [Checked::after_run(entry, params, path), Checked::at_20_packets(entry, params)]
}

#[test]
fn a_loss_raises_no_window_and_a_timeout_nearly_closes_one() {
    for entry in all() {
        for mut checked in before_loss(&entry, &entry.defaults(), &PATH) {
            if !checked.governs_by_window() {
                continue;
            }
            let before = IDS.map(|id| checked.cwnd(id));
            let mut loss = lost_after_run(LossKind::Gap, before[0]);
            checked.on_loss(IDS[0], &loss);
            let after = IDS.map(|id| checked.cwnd(id));
            let raises = after[0] > before[0] || after[1] > before[1];
            assert!(!raises, "{}: {before:?} to {after:?}", entry.name);
            loss.kind = LossKind::Timeout;
            loss.now = Time::from_secs_f64(12.0);
            checked.on_loss(IDS[0], &loss);
            let after = IDS.map(|id| checked.cwnd(id));
            let closes = after[0] <= Bytes(2 * MSS) && after[1] <= before[1];
            assert!(closes, "{}: {before:?} to {after:?} after a timeout", entry.name);
        }
    }
}

#[test]
fn a_loss_in_congestion_avoidance_lowers_the_window() {
    for entry in all() {
        let mut checked = Checked::at_20_packets(&entry, &entry.defaults());
        let before = checked.cwnd(IDS[0]);
        let after = checked.lose(IDS[0], &lost_after_run(LossKind::Gap, before)).cwnd;
        let lowers = after < before || !checked.governs_by_window();
        assert!(lowers, "{}: {before:?} to {after:?}", entry.name);
    }
}

#[test]
fn a_time_out_of_what_was_answered_keeps_the_threshold_and_closes_the_window() {
    // RFC 5681 section 3.1; Linux: tcp_enter_loss. A controller that answers no gap lowers its threshold at the first.
    let path = Path { duration: Span::from_millis(3000), ..PATH };
    for entry in all() {
        let at_ends = table::at_every_end(entry.name, entry.params);
        for params in std::iter::once(entry.defaults()).chain(at_ends) {
            for kind in [LossKind::Timeout, LossKind::Gap] {
                for checked in before_loss(&entry, &params, &path) {
                    time_out_again(&entry, &params, checked, kind);
                }
            }
        }
    }
}

fn time_out_again(entry: &Entry, params: &Params, mut checked: Checked, kind: LossKind) {
    let closes = checked.governs_by_window();
    let loss = lost_after_run(kind, checked.cwnd(IDS[0]));
    let mut before = checked.lose(IDS[0], &loss);
    let answered = kind == LossKind::Timeout || entry.scope.is_some();
    for times in 1..4_u64 {
        let now = Time::from_secs_f64(11.0 + times as f64);
        let again = Loss { now, kind: LossKind::TimeoutAgain, ..loss };
        let after = checked.lose(IDS[0], &again);
        let what = format!("{}: {params:?}: {before:?} {after:?}", entry.name);
        let most = if closes { Bytes(0) } else { before.cwnd };
        assert!(after.cwnd <= most.max(Bytes(2 * MSS)), "{what}");
        if answered || times > 1 {
            assert_eq!(after.ssthresh, before.ssthresh, "{what}");
        }
        before = after;
    }
}

/// RFC 5681 section 4.3: what was sent again after a time-out is lost, which is congestion once more.
#[test]
fn a_gap_after_a_time_out_raises_no_window_and_the_links_are_used_again() {
    for entry in all() {
        let mut checked = Checked::after_run(&entry, &entry.defaults(), &PATH);
        let mut now = Time(0);
        for id in IDS {
            let loss = lost_after_run(LossKind::Timeout, checked.cwnd(id));
            let before = checked.lose(id, &loss);
            now = loss.now + Span::from_millis(200);
            let (sent_at, kind, inflight) = (loss.now, LossKind::Gap, Bytes(2 * MSS));
            let after = checked.lose(id, &Loss { now, sent_at, inflight, kind, ..loss });
            if checked.governs_by_window() {
                let what = format!("{}: {before:?} {after:?}", entry.name);
                assert!(after.cwnd <= before.cwnd.max(Bytes(2 * MSS)), "{what}");
                assert!(after.ssthresh <= before.ssthresh, "{what}");
            }
        }
        let start = now + Span::from_millis(100);
        for (id, delivered) in send(&PATH, &mut checked, &IDS, start).into_iter().enumerate() {
            let share = share(delivered);
            assert!(share > 0.3, "{} uses {share} of link {id}", entry.name);
        }
    }
}

#[test]
fn a_spurious_loss_lowers_no_window_and_gives_back_no_more_than_was_taken() {
    for entry in all() {
        for kind in [LossKind::Gap, LossKind::Timeout] {
            for mut checked in before_loss(&entry, &entry.defaults(), &PATH) {
                if !checked.governs_by_window() {
                    continue;
                }
                let before = checked.cwnd(IDS[0]);
                let loss = lost_after_run(kind, before);
                let reduced = checked.lose(IDS[0], &loss).cwnd;
                let undone = Loss { lost: Bytes::ZERO, kind: LossKind::Spurious, ..loss };
                let after = checked.lose(IDS[0], &undone).cwnd;
                let held = after >= reduced && after <= before;
                assert!(held, "{}: {before:?} {reduced:?} {after:?}", entry.name);
            }
        }
    }
}

#[test]
fn subflows_join_and_leave_in_the_middle_and_the_others_go_on() {
    for entry in all() {
        let mut checked = Checked::at_20_packets(&entry, &entry.defaults());
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
            for id in checked.present.clone() {
                checked.on_ack(id, &Ack { now, sent_at, acked: Bytes(MSS), ..ack });
            }
        }
        assert_eq!(checked.present.len(), 2, "{}", entry.name);
    }
}

/// Anything a transport could say of a subflow, and more.
#[derive(Clone, Debug)]
enum Event {
    Ack(Ack),
    Loss(Loss),
    Timer(Time),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        8 => ack().prop_map(Event::Ack),
        2 => loss().prop_map(Event::Loss),
        1 => number().prop_map(|now| Event::Timer(Time(now))),
    ]
}

/// As a subflow joins, leaves or goes on.
#[derive(Clone, Debug)]
enum Change {
    Added,
    Removed,
    Event(Event),
}

fn change() -> impl Strategy<Value = (u32, Change)> {
    let change = prop_oneof![
        1 => Just(Change::Added),
        1 => Just(Change::Removed),
        11 => event().prop_map(Change::Event),
    ];
    // A few numbers that are reused, and one that no subflow has.
    (prop_oneof![4 => 0_u32..4, 1 => Just(u32::MAX)], change)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_sequence_of_events_breaks_a_controller(
        events in prop::collection::vec(event(), 1..200),
        seed in any::<u64>(),
    ) {
        for entry in all() {
            let mut checked = Checked::fresh(&entry, &entry.defaults(), seed);
            for (event, id) in events.iter().flat_map(|event| IDS.map(|id| (event, id))) {
                match event {
                    Event::Ack(ack) => checked.on_ack(id, ack),
                    Event::Loss(loss) => checked.on_loss(id, loss),
                    Event::Timer(now) => tell_timer(&mut checked, id, *now),
                }
            }
        }
    }

    #[test]
    fn no_flow_breaks_a_controller(
        [cwnd, ssthresh, start, seed] in [number(), number(), number(), number()],
        acks in prop::collection::vec(ack(), 1..50),
    ) {
        for entry in all() {
            let flow = FlowInfo {
                initial_cwnd: Bytes(cwnd),
                initial_ssthresh: Bytes(ssthresh),
                recovery: Recovery::Ns2,
                start: Time(start),
                seed,
                ..flow(10)
            };
            let mut checked = Checked::with_two(&entry, &entry.defaults(), &flow);
            for (ack, id) in acks.iter().flat_map(|ack| IDS.map(|id| (ack, id))) {
                checked.on_ack(id, ack);
            }
        }
    }

    #[test]
    fn no_sequence_of_subflows_breaks_a_controller_nor_does_an_unknown_one_of_a_connection(
        changes in prop::collection::vec(change(), 1..200),
        setting in any::<bool>(),
    ) {
        for entry in all() {
            let mut given = files_of(entry.name, entry.params);
            if setting && entry.params.iter().any(|param| param.name == "kernel") {
                given.push(("kernel".to_owned(), ParamValue::Word("on".to_owned())));
            }
            let params = Params::resolve(entry.params, &given).unwrap();
            let mut checked = Checked::new(&entry, &params);
            for (id, change) in &changes {
                // A transport numbers its subflows from zero: memory may grow with the number.
                let is_added = matches!(change, Change::Added);
                let id = SubflowId(if is_added { id % 4 } else { *id });
                if !entry.takes_unknown() && checked.present.contains(&id) == is_added {
                    continue;
                }
                match change {
                    Change::Added => checked.subflow_added(id, &flow(10)),
                    Change::Removed => checked.subflow_removed(id),
                    Change::Event(Event::Ack(ack)) => checked.on_ack(id, ack),
                    Change::Event(Event::Loss(loss)) => checked.on_loss(id, loss),
                    Change::Event(Event::Timer(now)) => checked.on_timer(id, *now),
                }
                if !entry.takes_unknown() && !checked.present.contains(&id) {
                    continue;
                }
                let _ = (checked.next_timer(id), checked.counters(id));
                prop_assert!(checked.control(id).cwnd > Bytes(0), "{}", entry.name);
            }
        }
    }
}
