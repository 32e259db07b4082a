//! QUIC in virtual time, and what it tells a controller.
use ackademy::control::{
    Ack, Control, Controller, FlowInfo, Loss, LossKind, PacketEvent, PacketEventKind, Send,
    SendAction, Spec,
};
use ackademy::controllers;
use ackademy::params::Params;
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::scheme::{Entry, Scheme};
use ackademy::sim::record::Outcome;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_quic::Factory;
use ackademy_quic::virtual_time::{Governor, Quic, check, run};
use noq_proto::congestion::ControllerFactory;
use std::sync::{Mutex, PoisonError};

/// Where random points come from.
const SEED: u64 = 43;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// One flow over a drop-tail bottleneck; `more` goes to the bottleneck.
fn path(
    controller: &str,
    (mbps, rtt_ms, bdp): (f64, f64, f64),
    seconds: u32,
    more: &str,
) -> Scenario {
    scenario(&format!(
        "duration_s = {seconds}\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\nrate_mbps = {mbps}\n\
         queue = {{ kind = \"drop_tail\", bdp = {bdp}, min_bytes = 6000 }}\n{more}\n[[flow]]\nname = \"bulk\"\n\
         controller = {controller:?}\n"
    ))
}

fn random_path(rng: &mut Rng) -> (f64, f64, f64) {
    (rng.uniform_in(2.0, 30.0), rng.uniform_in(10.0, 80.0), rng.uniform_in(0.5, 4.0))
}

fn outcome(scenario: &Scenario, seed: u64) -> Outcome {
    run(&scenario.network, Seed(seed)).unwrap_or_else(|error| panic!("{error}"))
}

fn goodput_mbps(scenario: &Scenario, seed: u64) -> f64 {
    let bytes: u64 = outcome(scenario, seed).flows.iter().map(|flow| flow.goodput_bytes).sum();
    bytes as f64 * 8e-6 / scenario.network.duration.as_secs_f64()
}

#[test]
fn two_runs_send_the_same_datagrams_at_the_same_times() {
    let mut rng = Rng::new(SEED);
    let quinns = ["quinn:bbr", "quinn:cubic", "quinn:new_reno"];
    for controller in ["cubic", "bbr3", "vivace", "noq:cubic"].into_iter().chain(quinns) {
        let point = random_path(&mut rng);
        let lossy = "loss = { kind = \"bernoulli\", ratio = 0.01 }\nreorder = { ratio = 0.01, low_ms = 1, high_ms = 5 }\n\
                     duplicate_ratio = 0.01";
        let scenario = path(controller, point, 4, lossy);
        let digest = |seed| {
            let mut quic = Quic::new(&scenario.network, Seed(seed)).unwrap();
            quic.run_until(Time::NEVER).expect("connections stay");
            (quic.digest(), quic.finish())
        };
        let (first, again, other) = (digest(1), digest(1), digest(2));
        assert_eq!(first.0, again.0, "{controller} on {point:?}, seed {SEED}");
        // As text: a mean that there is not is NaN.
        assert_eq!(format!("{:?}", first.1), format!("{:?}", again.1), "{controller} on {point:?}");
        assert_ne!(first.0, other.0, "{controller} on {point:?}: the losses are others");
    }
}

#[test]
fn our_cubic_and_new_reno_get_what_noqs_own_get_on_drop_tail_within_3_percent() {
    let mut rng = Rng::new(SEED);
    for (own, theirs) in [("cubic", "noq:cubic"), ("new_reno", "noq:new_reno")] {
        for _ in 0..3 {
            let point = random_path(&mut rng);
            let [ours, noqs] = [own, theirs].map(|cc| goodput_mbps(&path(cc, point, 30, ""), 1));
            let apart = (ours / noqs - 1.0).abs();
            assert!(apart < 0.03, "{own} on {point:?}, seed {SEED}: {ours} and {noqs} Mb/s");
        }
    }
}

/// A policer drops many packets of a round trip: a loss that is found after the recovery is over, of a packet sent
/// before it, is not a new episode.
#[test]
fn our_cubic_and_new_reno_get_what_noqs_own_get_behind_a_policer_within_3_percent() {
    let policer = "policer = { rate_mbps = 10, burst_bytes = 50_000 }";
    for (own, theirs) in [("cubic", "noq:cubic"), ("new_reno", "noq:new_reno")] {
        let behind = |cc| goodput_mbps(&path(cc, (100.0, 40.0, 1.0), 30, policer), 1);
        let (ours, noqs) = (behind(own), behind(theirs));
        assert!((ours / noqs - 1.0).abs() < 0.03, "{own}: {ours} and {noqs} Mb/s");
    }
}

#[test]
fn every_controller_without_a_send_hook_delivers_over_quic() {
    let mut rng = Rng::new(SEED);
    let mut tried = 0;
    for spec in controllers::ALL.iter().filter(|spec| spec.runs_on_defaults()) {
        let point = random_path(&mut rng);
        let lossy = "loss = { kind = \"bernoulli\", ratio = 0.005 }";
        let scenario = path(spec.name, point, 5, lossy);
        match run(&scenario.network, Seed(1)) {
            Ok(outcome) => {
                tried += 1;
                let row = &outcome.flows[0];
                let payload = row.goodput_bytes as f64 * 8e-6 / 5.0;
                let place = format!("{} on {point:?}, seed {SEED}: {payload} Mb/s", spec.name);
                assert!(payload > 0.05 * point.0.min(2.0) && payload < point.0, "{place}");
                assert!(row.rtt_min_ms >= point.1, "{place}: {} ms", row.rtt_min_ms);
            }
            Err(error) => assert!(error.to_string().contains("has a send hook"), "{error}"),
        }
    }
    assert!(tried >= 25, "{tried} controllers");
}

#[test]
fn packets_are_sent_delivered_dropped_or_lost_and_a_transfer_delivers_its_bytes() {
    let mut rng = Rng::new(SEED);
    for _ in 0..6 {
        let point = random_path(&mut rng);
        let (bytes, ratio) = (rng.below(1_000_000) + 1, rng.uniform_in(0.0, 0.05));
        let mut text = path(
            "cubic",
            point,
            60,
            &format!("loss = {{ kind = \"bernoulli\", ratio = {ratio} }}"),
        );
        let network = &mut text.network;
        network.connections[0].traffic = ackademy::sim::plan::TrafficSpec::Fixed { bytes };
        let row = &outcome(&text, 7).flows[0];
        let place = format!("{bytes} bytes on {point:?} with loss {ratio}, seed {SEED}: {row:?}");
        assert_eq!((row.goodput_bytes, row.transfers), (bytes, 1), "{place}");
        assert_eq!(row.sent_packets, row.received_packets + row.dropped_packets, "{place}");
        assert!(row.fct_mean_ms > 2.0 * point.1, "a round trip more than the handshake: {place}");
    }
}

#[test]
fn applications_transfer_pause_and_stop() {
    for (traffic, transfers) in [
        ("{ kind = \"request_response\", response_bytes = 50_000, mean_think_s = 0.1 }", 5..200),
        ("{ kind = \"on_off\", mean_bytes = 1e5, mean_off_s = 0.1 }", 5..200),
        ("{ kind = \"app_limited\", rate_mbps = 1, write_bytes = 1000 }", 0..2),
        (
            "{ kind = \"writes\", count = 100, write_bytes = 1000, interval_ms = 20, send_buffer_bytes = 50_000 }",
            1..2,
        ),
    ] {
        let text = format!(
            "duration_s = 12\n[dumbbell]\nrtt_ms = 20\nbottleneck = {{ rate_mbps = 10 }}\n[[flow]]\ncount = 2\n\
             start_s = 1\nstop_s = 10\ncontroller = \"cubic\"\ntraffic = {traffic}\n"
        );
        for row in outcome(&scenario(&text), 3).flows {
            assert!(transfers.contains(&row.transfers), "{traffic}: {row:?}");
            assert!(row.goodput_bytes > 90_000 && row.active_s < 9.5, "{traffic}: {row:?}");
        }
    }
}

/// Datagrams at a constant rate are of no connection: they are those of the simulator.
#[test]
fn datagrams_at_a_constant_rate_are_those_of_the_simulator() {
    let mut rng = Rng::new(SEED);
    for _ in 0..5 {
        let (mbps, size) = (rng.uniform_in(0.5, 3.0), 100 + rng.below(1400));
        let (loss, stop) = (rng.uniform_in(0.0, 0.1), rng.uniform_in(2.0, 6.0));
        let text = format!(
            "duration_s = 5\n[dumbbell]\nrtt_ms = 20\n[dumbbell.bottleneck]\nrate_mbps = 2\n\
             queue = {{ kind = \"drop_tail\", packets = 20 }}\n\
             loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n[[flow]]\nstart_s = 0.1\nstop_s = {stop}\n\
             controller = \"cubic\"\ntraffic = {{ kind = \"cbr\", rate_mbps = {mbps}, packet_bytes = {size} }}\n"
        );
        let scenario = scenario(&text);
        let simulated = ackademy::sim::run(&scenario.network, Seed(1)).expect("it runs");
        let rows = [simulated, outcome(&scenario, 1)].map(|outcome| {
            let mut row = outcome.flows[0].clone();
            row.mss_bytes = 0;
            format!("{row:?}")
        });
        assert_eq!(rows[0], rows[1], "seed {SEED}: {text}");
    }
    let beside = "duration_s = 5\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 10 }\n[[flow]]\n\
         controller = \"cubic\"\n[[flow]]\ncontroller = \"cubic\"\n\
         traffic = { kind = \"cbr\", rate_mbps = 4, packet_bytes = 200 }\n";
    let found = outcome(&scenario(beside), 1);
    let share = found.flows[0].goodput_bytes as f64 * 8e-6 / 5.0;
    assert!(share > 4.0 && share < 6.0, "{share} of the 6 Mb/s that are left: {found:?}");
}

#[test]
fn what_quic_cannot_do_is_refused_in_one_line() {
    let flow = |more: &str| {
        format!(
            "duration_s = 1\n[dumbbell]\nrtt_ms = 20\nbottleneck = {{ rate_mbps = 10 }}\n[[flow]]\nname = \"x\"\n{more}"
        )
    };
    for (more, says) in [
        ("controller = \"cubic\"\nsender = { recovery = \"ns2\" }", "sender.recovery"),
        ("controller = \"cubic\"\nsender = { ecn = \"accurate\" }", "sender.ecn"),
        (
            "controller = \"cubic\"\nsender = { packet_bytes = 1000 }",
            "packet_bytes = 1000: allowed with QUIC is 1228",
        ),
        ("controller = \"cubic\"\nsender = { fuzz_records = 0.1 }", "fuzz_records"),
        ("controller = \"kernel:cubic\"", "noq:cubic"),
        ("controller = \"noq:vegas\"", "noq:cubic"),
        ("controller = \"quinn:vegas\"", "quinn:bbr, quinn:cubic, quinn:new_reno"),
    ] {
        let text = flow(more);
        let scenario = scenario(&text);
        let error = check(&scenario.network).expect_err(more).to_string();
        assert!(error.contains(says) && error.contains("allowed"), "{more}: {error}");
        assert!(!error.contains('\n') && error.contains("\"x\""), "{more}: {error}");
        assert!(Quic::new(&scenario.network, Seed(1)).is_err(), "{more}");
    }
}

/// A connection over two unequal paths.
fn two_paths(controller: &str, more: &str) -> Scenario {
    scenario(&format!(
        "duration_s = 20\n[two_path.first]\nrate_mbps = 10\ndelay_ms = 10\n\
         queue = {{ kind = \"drop_tail\", packets = 60 }}\n[two_path.second]\nrate_mbps = 4\ndelay_ms = 40\n\
         queue = {{ kind = \"drop_tail\", packets = 60 }}\n[[flow]]\nname = \"both\"\nmultipath = true\n\
         controller = {controller:?}\n{more}"
    ))
}

#[test]
fn a_connection_fills_two_paths_under_coupled_plain_and_noqs_controllers() {
    for controller in ["lia", "olia", "balia", "wvegas", "cubic", "bbr3", "noq:cubic"] {
        let found = outcome(&two_paths(controller, ""), 1);
        let [first, second] = &found.flows[..] else { panic!("{controller}: two rows") };
        let goodput = found.connections[0].goodput_bytes;
        let shares = first.goodput_bytes + second.goodput_bytes;
        assert!(goodput - shares <= 2, "{controller}: {goodput} and {shares}, rounded down");
        assert_eq!((&*first.flow, &*second.flow), ("both.0", "both.1"));
        for (row, mbps) in [(first, 10.0), (second, 4.0)] {
            let carried = row.delivered_bytes as f64 * 8e-6 / 20.0;
            assert!(carried > 0.75 * mbps && carried <= mbps, "{controller}: {carried} of {mbps}");
        }
        let again = outcome(&two_paths(controller, ""), 1);
        assert_eq!(format!("{found:?}"), format!("{again:?}"), "{controller}");
    }
}

/// At a shared bottleneck, a coupled connection takes what one flow would take; uncoupled, what two would.
#[test]
fn a_coupled_controller_takes_less_beside_a_plain_flow_than_two_plain_ones() {
    let beside = "\n[[flow]]\nname = \"one\"\ncontroller = \"new_reno\"\n";
    let share = |controller| {
        let mut scenario = two_paths(controller, beside);
        let network = &mut scenario.network;
        // Both paths are the first link, there and back.
        let route = network.connections[0].subflows[0].clone();
        network.connections[0].subflows[1] = route.clone();
        network.connections[1].subflows = vec![route];
        network.duration = Time::from_secs_f64(60.0);
        let found = outcome(&scenario, 1);
        let [both, one] = [0, 1].map(|index| found.connections[index].goodput_bytes as f64);
        both / (both + one)
    };
    let (coupled, uncoupled) = (share("lia"), share("new_reno"));
    assert!(coupled < uncoupled - 0.05 && coupled > 0.3, "{coupled} and {uncoupled}");
}

/// In one stream, noq's receiver holds 1024 gaps, and closes the connection then.
#[test]
fn a_controller_that_ignores_losses_delivers_what_the_link_carries() {
    let scenario = path("cubic", (20.0, 40.0, 4.0), 20, "");
    let mut build = |_: &_| Ok(Governor::Core(Factory::new(&plain(&FLOOD))?));
    let mut quic = Quic::governed(&scenario.network, Seed(1), &mut build).expect("a path");
    quic.run_until(Time::NEVER).expect("connections stay");
    let row = &quic.finish().flows[0];
    assert!(row.queue_drops > 10_000, "{row:?}");
    assert!(row.goodput_bytes as f64 * 8e-6 / 20.0 > 0.6 * 20.0, "{row:?}");
}

/// What a spy was told.
#[derive(Default)]
struct Told {
    acks: Vec<Ack>,
    losses: Vec<Loss>,
    timers: Vec<(Time, Time)>,
    packets: Vec<PacketEvent>,
    hold: bool,
}

static TOLD: Mutex<Option<Told>> = Mutex::new(None);

fn told<T>(act: impl FnOnce(&mut Told) -> T) -> T {
    act(TOLD.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_default())
}

fn plain(spec: &'static Spec) -> Scheme {
    Scheme { entry: Entry::Plain(spec), params: Params::defaults(spec.params) }
}

/// A window far beyond what a path holds.
struct Flood(Bytes);

impl Controller for Flood {
    fn on_ack(&mut self, _ack: &Ack) {}
    fn on_loss(&mut self, _loss: &Loss) {}
    fn control(&self) -> Control {
        Control::window(self.0)
    }
}

static FLOOD: Spec = Spec {
    name: "flood",
    about: "",
    source: "",
    params: &[],
    build: |flow: &FlowInfo, _| Box::new(Flood(Bytes(2000 * flow.mss.0))),
};

/// A window of fixed size, and a timer every 7 ms.
struct Spy {
    due: Time,
    cwnd: Bytes,
}

impl Controller for Spy {
    fn on_ack(&mut self, ack: &Ack) {
        told(|told| told.acks.push(*ack));
    }
    fn on_loss(&mut self, loss: &Loss) {
        told(|told| told.losses.push(*loss));
    }
    fn on_packet(&mut self, event: &PacketEvent) {
        told(|told| told.packets.push(*event));
    }
    fn wants_packets(&self) -> bool {
        true
    }
    fn control(&self) -> Control {
        Control::window(self.cwnd)
    }
    fn on_timer(&mut self, now: Time) {
        told(|told| told.timers.push((now, self.due)));
        self.due += Span::from_millis(7);
    }
    fn next_timer(&self) -> Option<Time> {
        Some(self.due)
    }
    fn has_send_hook(&self) -> bool {
        told(|told| told.hold)
    }
    fn on_send(&mut self, _send: &Send) -> SendAction {
        SendAction::Hold
    }
}

static SPY: Spec = Spec {
    name: "spy",
    about: "",
    source: "",
    params: &[],
    build: |flow: &FlowInfo, _| {
        Box::new(Spy { due: flow.start + Span::from_millis(7), cwnd: Bytes(40 * flow.mss.0) })
    },
};

fn spied(scenario: &Scenario) -> (Told, Outcome) {
    told(|told| *told = Told::default());
    let mut build = |_: &_| Ok(Governor::Core(Factory::new(&plain(&SPY))?));
    let mut quic = Quic::governed(&scenario.network, Seed(1), &mut build).expect("a path");
    quic.run_until(Time::NEVER).expect("connections stay");
    let outcome = quic.finish();
    (told(std::mem::take), outcome)
}

/// The tests of what a spy is told, in one: there is one place where it is kept.
#[test]
fn a_controller_is_told_what_the_table_of_the_guide_says() {
    let codel = "queue = { kind = \"codel\", packets = 100, ecn = true }";
    let marking = scenario(&format!(
        "duration_s = 10\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 5\n{codel}\n[[flow]]\n\
         controller = \"cubic\"\nsender = {{ ecn = \"classic\" }}\n"
    ));
    let lossy = "loss = { kind = \"bernoulli\", ratio = 0.01 }";
    for (scenario, marks) in [(path("cubic", (8.0, 40.0, 4.0), 10, lossy), false), (marking, true)]
    {
        let (told, outcome) = spied(&scenario);
        let row = &outcome.flows[0];
        assert!(told.acks.len() > 500 && !told.losses.is_empty(), "{row:?}");
        acks_are_exact(&told.acks, row.rtt_min_ms);
        losses_are_exact(&told.losses, marks);
        packets_are_exact(&told);
        let late = told.timers.iter().find(|(now, due)| now != due);
        assert!(
            told.timers.len() > 1000 && late.is_none(),
            "a timer fires when it is due: {late:?}"
        );
    }
    told(|told| told.hold = true);
    let error = Factory::new(&plain(&SPY)).expect_err("a send hook").to_string();
    assert!(error.contains("controller spy: has a send hook") && !error.contains('\n'), "{error}");
}

fn acks_are_exact(acks: &[Ack], rtt_min_ms: f64) {
    let (mut delivered, mut before, mut min_rtt) = (0, Time(0), Span(u64::MAX));
    for ack in acks {
        assert!(ack.now >= before && ack.rtt == ack.now.since(ack.sent_at), "{ack:?}");
        before = ack.now;
        min_rtt = min_rtt.min(ack.batch_rtt_min);
        assert_eq!(ack.min_rtt, min_rtt);
        assert!(ack.batch_rtt_min <= ack.rtt && ack.rtt <= ack.rtt_max, "{ack:?}");
        assert!(ack.srtt >= ack.min_rtt && ack.min_rtt.as_millis_f64() >= rtt_min_ms, "{ack:?}");
        delivered += ack.acked.0;
        assert_eq!(
            (ack.delivered.0, ack.prior_inflight.0),
            (delivered, ack.inflight.0 + ack.acked.0)
        );
        assert!(ack.tx_inflight.0 > 0 && ack.tx_inflight <= Bytes(41 * 1472), "{ack:?}");
        assert!(
            ack.delivered_since >= ack.acked && ack.delivered_since <= ack.delivered,
            "{ack:?}"
        );
        assert!(ack.delivery_rate < Rate::from_mbps(8.5), "{ack:?}");
        assert_eq!(ack.ce_marked, Bytes(0), "absent");
    }
    let late = &acks[acks.len() / 2..];
    assert!(late.iter().all(|ack| ack.app_limited == 0), "the application always has more");
    assert!(late.iter().filter(|ack| ack.cwnd_limited == 1).count() > late.len() * 9 / 10);
    assert!(
        late.iter().any(|ack| ack.recovering == 1) && late.iter().any(|ack| ack.recovering == 0)
    );
}

fn losses_are_exact(losses: &[Loss], marks: bool) {
    for loss in losses {
        assert!(matches!(loss.kind, LossKind::Gap | LossKind::More), "{loss:?}");
        assert!(loss.inflight.0 > 0 && loss.inflight <= Bytes(40 * 1472), "{loss:?}");
        if loss.lost == Bytes(0) {
            assert!(marks && loss.kind == LossKind::Gap, "a mark: {loss:?}");
        } else {
            assert!(loss.sent_at < loss.now && loss.lost_since >= loss.lost, "{loss:?}");
            assert!(loss.tx_inflight.0 > 0, "{loss:?}");
        }
    }
    assert_eq!(losses.iter().any(|loss| loss.lost == Bytes(0)), marks);
}

/// A packet is sent, then acknowledged, lost or discarded, and the records count what was told of packets.
fn packets_are_exact(told: &Told) {
    let mut open = std::collections::BTreeMap::new();
    let mut sums = [0; 4];
    for event in &told.packets {
        sums[event.kind as usize] += event.size.0;
        if event.kind == PacketEventKind::Sent {
            assert_eq!((event.sent_at, event.number), (event.now, open.len() as u64), "{event:?}");
            open.insert(event.number, Some((event.sent_at, event.size)));
        } else {
            let packet = open.get_mut(&event.number).and_then(Option::take);
            assert_eq!(packet, Some((event.sent_at, event.size)), "{event:?}");
        }
    }
    let acked: u64 = told.acks.iter().map(|ack| ack.acked.0).sum();
    let lost: u64 = told.losses.iter().map(|loss| loss.lost.0).sum();
    assert_eq!((sums[1], sums[2]), (acked, lost));
    assert_eq!(open.values().flatten().map(|packet| packet.1.0).sum::<u64>(), {
        sums[0] - sums[1..].iter().sum::<u64>()
    });
    // The keys of the handshake go while its last packets are in flight.
    assert!(sums[3] < 10_000, "{sums:?}");
}

/// Every field of `Ack` and every field and kind of `Loss` has one row in the guide.
#[test]
fn the_guides_table_has_a_row_for_every_field() {
    let root = env!("CARGO_MANIFEST_DIR");
    let read = |name: &str| std::fs::read_to_string(format!("{root}/{name}")).unwrap();
    let (guide, control) = (read("../../docs/guide/quic.md"), read("../core/src/control.rs"));
    let body = |start: &str| {
        let from = control.find(start).unwrap() + start.len();
        control[from..].split("\n}\n").next().unwrap()
    };
    let fields = |start| {
        body(start).lines().filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next())
    };
    let kinds =
        body("pub enum LossKind {").lines().filter_map(|line| line.trim().split_once(" = "));
    let names: Vec<String> = fields("pub struct Ack {")
        .map(|name| format!("| `Ack` | `{name}` |"))
        .chain(fields("pub struct Loss {").map(|name| format!("| `Loss` | `{name}` |")))
        .chain(kinds.map(|(name, _)| format!("| `LossKind` | `{name}` |")))
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        let rows: Vec<&str> = guide.lines().filter(|line| line.starts_with(&name)).collect();
        assert_eq!(rows.len(), 1, "{name}");
        let says = ["exact", "approximate", "absent"];
        assert!(says.iter().any(|word| rows[0].contains(&format!("| {word} |"))), "{}", rows[0]);
    }
}

/// noq asks for a copy of the controller when a path migrates.
#[test]
fn a_path_that_migrates_gets_a_controller_as_at_the_start() {
    let cubic = Scheme::resolve("cubic", &[]).expect("in the table");
    let factory = Factory::new(&cubic).expect("no hook").observed();
    let factory = std::sync::Arc::new(factory);
    #[expect(clippy::disallowed_methods, reason = "noq's clock")]
    let began = std::time::Instant::now();
    let at = |millis| began + std::time::Duration::from_millis(millis);
    let mut old = std::sync::Arc::clone(&factory).build(began, 1400);
    assert_eq!((old.window(), old.initial_window()), (14_000, 14_000));
    (0..10).for_each(|number| old.on_packet_sent(at(1), 1400, number));
    old.on_packet_lost(1400, 0, at(50));
    old.on_congestion_event(at(50), at(1), false, false, 1400, 0);
    assert_eq!(old.window(), 7 * 1400, "70 % of ten packets");
    let new = old.clone_box();
    assert_eq!((new.window(), factory.handles().len()), (14_000, 2));
}
