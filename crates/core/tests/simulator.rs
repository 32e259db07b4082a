//! What every simulation must hold, over scenarios drawn at random as text: every queue, every rate
//! and delay process, every kind of damage on the wire, every traffic, both senders, every
//! controller. A failing case prints the scenario, which `cargo run --example run` takes.
use std::fmt::Write as _;

use ackademy::record::Outcome;
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::{Scenario, TrafficSpec};
use ackademy::sim;
use ackademy::sim::trace::{Cellular, Trace};
use ackademy::units::{Rate, Span};
use ackademy::{controllers, coupled};

/// Draws scenarios. Not proptest's strategies, because a text is easier to build than a strategy, and
/// a seed is as good a counterexample as a shrunk one.
struct Draw(Rng);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    fn chance(&mut self, ratio: f64) -> bool {
        self.0.chance(ratio)
    }

    fn one<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Log-uniform, three digits.
    fn scale(&mut self, low: f64, high: f64) -> f64 {
        let value = (self.0.uniform_in(low.ln(), high.ln())).exp();
        format!("{value:.2e}").parse().expect("a number")
    }

    fn rate(&mut self) -> String {
        let (a, b) = (self.scale(0.2, 30.0), self.scale(0.2, 30.0));
        match self.below(5) {
            0 => {
                let (first, second) = (self.scale(0.1, 0.8), self.scale(0.9, 2.0));
                let dip = if self.chance(0.5) { 0.0 } else { b };
                format!("rate_schedule = [[0, {a}], [{first}, {dip}], [{second}, {b}]]\n")
            }
            1 => {
                let hz = self.scale(1.0, 100.0);
                let (low, high) = (a.min(b), a.max(b));
                format!("rate_random = {{ low_mbps = {low}, high_mbps = {high}, hz = {hz} }}\n")
            }
            2 => format!("trace = \"{}\"\n", self.below(1000)),
            _ => format!("rate_mbps = {a}\n"),
        }
    }

    fn delay(&mut self) -> String {
        let (a, b) = (self.scale(0.01, 60.0), self.scale(0.01, 60.0));
        match self.below(5) {
            0 => format!("delay_schedule = [[0, {a}], [{}, {b}]]\n", self.scale(0.1, 2.0)),
            1 => {
                let hz = self.scale(1.0, 100.0);
                format!(
                    "delay_random = {{ low_ms = {}, high_ms = {}, hz = {hz} }}\n",
                    a.min(b),
                    a.max(b)
                )
            }
            2 => format!("delay_ms = {a}\njitter_ms = {b}\n"),
            3 => String::new(),
            _ => format!("delay_ms = {a}\n"),
        }
    }

    fn queue(&mut self) -> String {
        let packets = 1 + self.below(200);
        let ecn = self.chance(0.5);
        let body = match self.below(7) {
            0 => return String::new(),
            1 => format!("\"drop_tail\", bytes = {}", 2000 + self.below(100_000)),
            2 => format!(
                "\"red\", min_packets = {}, max_packets = {}, packets = {packets}, ecn = {ecn}",
                self.below(20),
                20 + self.below(40)
            ),
            3 => format!("\"codel\", packets = {packets}, ecn = {ecn}"),
            4 => {
                let (queues, newton) = (1 + self.below(64), self.chance(0.5));
                let device = if self.chance(0.5) { self.below(100) } else { 0 };
                format!(
                    "\"fq_codel\", packets = {packets}, queues = {queues}, ecn = {ecn}, \
                     newton = {newton}, device_packets = {device}"
                )
            }
            5 => format!("\"pie\", packets = {packets}, ecn = {ecn}"),
            _ => format!("\"drop_tail\", packets = {packets}"),
        };
        format!("queue = {{ kind = {body} }}\n")
    }

    /// What happens on the wire.
    fn damage(&mut self) -> String {
        let mut text = String::new();
        match self.below(4) {
            0 => {
                let ratio = self.scale(1e-4, 0.3);
                let from = self.below(2);
                let _ = writeln!(
                    text,
                    "loss = {{ kind = \"bernoulli\", ratio = {ratio}, from_s = {from} }}"
                );
            }
            1 => {
                let (to_bad, to_good) = (self.scale(1e-3, 0.2), self.scale(0.05, 1.0));
                let _ = writeln!(
                    text,
                    "loss = {{ kind = \"gilbert_elliott\", good_to_bad = {to_bad}, bad_to_good = {to_good} }}"
                );
            }
            _ => {}
        }
        if self.chance(0.2) {
            let _ = writeln!(text, "duplicate_ratio = {}", self.scale(1e-3, 0.5));
        }
        if self.chance(0.2) {
            let (ratio, high) = (self.scale(1e-3, 0.3), self.scale(1.0, 50.0));
            let _ =
                writeln!(text, "reorder = {{ ratio = {ratio}, low_ms = 0.5, high_ms = {high} }}");
        }
        if self.chance(0.2) {
            let from = self.scale(0.1, 1.5);
            let _ = writeln!(text, "outages = [[{from}, {}]]", from + self.scale(0.01, 1.0));
        }
        if self.chance(0.2) {
            text += "keep_order = false\n";
        }
        text
    }

    fn link(&mut self, damaged: bool) -> String {
        let damage = if damaged { self.damage() } else { String::new() };
        self.rate() + &self.delay() + &self.queue() + &damage
    }

    fn traffic(&mut self) -> String {
        let bytes = self.scale(1.0, 1e6);
        let body = match self.below(9) {
            0 => {
                format!("\"on_off\", mean_bytes = {bytes}, mean_off_s = {}", self.scale(1e-3, 0.5))
            }
            1 => format!("\"fixed\", bytes = {}", bytes as u64 + 1),
            2 => format!(
                "\"app_limited\", rate_mbps = {}, write_bytes = {}",
                self.scale(0.01, 20.0),
                1 + self.below(20_000)
            ),
            3 => format!("\"poisson\", per_s = {}, mean_bytes = {bytes}", self.scale(0.5, 20.0)),
            4 => {
                let think = if self.chance(0.3) { 0.0 } else { self.scale(1e-3, 0.2) };
                format!(
                    "\"request_response\", response_bytes = {}, mean_think_s = {think}",
                    bytes as u64 + 1
                )
            }
            5 => format!(
                "\"cbr\", rate_mbps = {}, packet_bytes = {}",
                self.scale(0.01, 20.0),
                40 + self.below(1460)
            ),
            6 => format!(
                "\"writes\", count = {}, write_bytes = {}, interval_ms = {}, \
                 send_buffer_bytes = {}",
                1 + self.below(1000),
                1 + self.below(3000),
                self.scale(0.1, 10.0),
                3000 + self.below(200_000)
            ),
            _ => return String::new(),
        };
        format!("traffic = {{ kind = {body} }}\n")
    }

    fn sender(&mut self) -> String {
        let mut text = String::from("sender = { ");
        if self.chance(0.4) {
            text += "recovery = \"ns2\", ";
        }
        for (name, low, high) in [
            ("ack_every", 1.0, 4.9),
            ("quick_acks", 1.0, 1000.0),
            ("initial_cwnd_packets", 1.0, 40.0),
            ("packet_bytes", 80.0, 9000.0),
            ("receiver_window_packets", 1.0, 1000.0),
        ] {
            if self.chance(0.25) {
                let _ = write!(text, "{name} = {}, ", self.scale(low, high) as u64);
            }
        }
        for name in ["rto_min_ms", "ack_delay_ms", "rto_tick_ms", "initial_ssthresh_packets"] {
            if self.chance(0.2) {
                let _ = write!(text, "{name} = {}, ", self.scale(1.0, 300.0));
            }
        }
        for name in [
            "rack",
            "tlp",
            "prr",
            "pacing",
            "idle_restart",
            "timestamps",
            "deflation",
            "impatient",
            "handshake",
            "rescue",
        ] {
            if self.chance(0.3) {
                let _ = write!(text, "{name} = {}, ", self.chance(0.5));
            }
        }
        if self.chance(0.3) {
            text += "gate = \"ack\", ";
        }
        let _ = write!(text, "ecn = \"{}\" }}", self.one(&["off", "classic", "accurate"]));
        text + "\n"
    }

    fn controller(&mut self) -> &'static str {
        let names: Vec<&'static str> = controllers::ALL
            .iter()
            .map(|spec| spec.name)
            .chain(coupled::ALL.iter().map(|spec| spec.name))
            .collect();
        self.one(&names)
    }

    fn flow(&mut self, route: &str) -> String {
        let controller = self.controller();
        let mut text = format!("[[flow]]\n{route}controller = \"{controller}\"\n");
        if controller == "lp_tcp" {
            let threshold = self.scale(0.01, 1.0);
            let _ = writeln!(text, "params = {{ policy = \"lp_tcp\", threshold = {threshold} }}");
        }
        if ["policy", "tcp_drinc"].contains(&controller) {
            let _ = writeln!(text, "params = {{ policy = \"{controller}\" }}");
        }
        if self.chance(0.3) {
            let _ = writeln!(text, "count = {}\nstart_step_s = 0.01", 1 + self.below(4));
        }
        if self.chance(0.5) {
            let _ = writeln!(text, "start_s = {}", self.scale(0.01, 1.0));
        }
        if self.chance(0.3) {
            text += "start_spread_s = 0.3\n";
        }
        if self.chance(0.3) {
            let _ = writeln!(text, "stop_s = {}", self.scale(1.0, 3.0));
        }
        text + &self.traffic() + &self.sender()
    }

    fn scenario(&mut self) -> String {
        let mut text = format!("duration_s = {}\nsample_interval_ms = 10\n", self.scale(0.5, 3.0));
        let flows = 1 + self.below(4);
        let mut routes = Vec::new();
        match self.below(4) {
            0 => {
                text += "[dumbbell]\n";
                if self.chance(0.5) {
                    let _ = writeln!(text, "access_mbps = {}", self.scale(1.0, 100.0));
                }
                let _ = write!(text, "[dumbbell.bottleneck]\n{}", self.link(true));
                routes.resize(flows as usize, String::new());
            }
            1 => {
                let hops = 1 + self.below(4);
                let link = self.link(true);
                let _ =
                    write!(text, "[parking_lot]\nhops = {hops}\n[parking_lot.bottleneck]\n{link}");
                for _ in 0..flows {
                    let first = self.below(hops);
                    let last = first + self.below(hops - first);
                    routes.push(format!("route = [{first}, {last}]\n"));
                }
            }
            2 => {
                let (first, second) = (self.link(true), self.link(true));
                let _ = write!(text, "[two_path.first]\n{first}[two_path.second]\n{second}");
                for _ in 0..flows {
                    let route = self.one(&["multipath = true\n", "route = [0]\n", "route = [1]\n"]);
                    routes.push(route.to_owned());
                }
            }
            _ => {
                let links = 1 + self.below(4);
                for index in 0..links {
                    let _ = write!(text, "[[link]]\nname = \"l{index}\"\n{}", self.link(true));
                }
                for _ in 0..flows {
                    let path = |draw: &mut Self, least: u64| {
                        let hops = least + draw.below(3);
                        let names: Vec<String> =
                            (0..hops).map(|_| format!("\"l{}\"", draw.below(links))).collect();
                        names.join(", ")
                    };
                    let (forward, back) = (path(self, 1), path(self, 0));
                    routes.push(format!("path = [{forward}]\nreverse = [{back}]\n"));
                }
            }
        }
        for route in routes {
            text += &self.flow(&route);
        }
        text
    }
}

fn parse(text: &str) -> Scenario {
    let mut load = |name: &str, _| {
        let files: [(&str, &[u8]); 5] = [
            ("lp_tcp", include_bytes!("files/lp_tcp/policy")),
            ("policy/policy.toml", include_bytes!("files/policy/policy/policy.toml")),
            (
                "policy/weights.safetensors",
                include_bytes!("files/policy/policy/weights.safetensors"),
            ),
            ("tcp_drinc/policy.toml", include_bytes!("files/tcp_drinc/policy/policy.toml")),
            (
                "tcp_drinc/weights.safetensors",
                include_bytes!("files/tcp_drinc/policy/weights.safetensors"),
            ),
        ];
        if let Some((_, bytes)) = files.iter().find(|(file, _)| *file == name) {
            return Ok(bytes.to_vec());
        }
        let model = Cellular {
            duration: Span::from_millis(2000),
            mean: Rate::from_mbps(5.0),
            ..Cellular::default()
        };
        let seed = Seed(name.parse().map_err(|_| "a number".to_owned())?);
        Ok(Trace::generate(&model, seed).to_text().into_bytes())
    };
    Scenario::parse_with(text, "drawn", &[], &mut load)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(text: &str, seed: u64) -> Outcome {
    sim::run(&parse(text).network, Seed(seed)).expect("built-in controllers")
}

/// Equal to the last bit; `NaN` equals itself, unlike by `==`.
fn same(first: &Outcome, second: &Outcome) -> bool {
    format!("{first:?}") == format!("{second:?}")
}

/// The claims that need nothing but the outcome.
fn check(scenario: &Scenario, outcome: &Outcome) {
    let network = &scenario.network;
    let mut carried = vec![0; network.links.len()];
    let plans = network.connections.iter();
    let poisson = plans.clone().any(|plan| matches!(plan.traffic, TrafficSpec::Poisson { .. }));
    if !poisson {
        let routes = plans.flat_map(|plan| &plan.subflows);
        for (route, flow) in routes.zip(&outcome.flows) {
            let mut links = route.forward.clone();
            links.sort_unstable();
            links.dedup();
            for link in links {
                carried[link as usize] += flow.delivered_bytes;
            }
        }
    }
    for (link, carried) in outcome.links.iter().zip(carried) {
        assert_eq!(
            link.arrived_packets,
            link.queue_drops + link.random_losses + link.delivered_packets + link.queued_packets,
            "{link:?}"
        );
        assert!(link.delivered_bytes <= link.capacity_bytes, "{link:?}");
        assert!(carried <= link.delivered_bytes, "flows got {carried} bytes over {link:?}");
    }
    for flow in &outcome.flows {
        assert_eq!(flow.dropped_packets, flow.queue_drops + flow.random_losses);
        assert!(flow.dropped_packets <= flow.sent_packets, "{flow:?}");
        assert!(flow.retransmitted_packets <= flow.sent_packets, "{flow:?}");
        assert!(flow.goodput_bytes <= flow.delivered_bytes, "{flow:?}");
        let largest = flow.mss_bytes.max(40); // a SYN may be larger than a packet
        if flow.controller != "none" {
            assert!(flow.delivered_bytes <= flow.received_packets * largest, "{flow:?}");
            assert!(flow.sent_bytes <= flow.sent_packets * largest, "{flow:?}");
            assert!(flow.delivered_bytes <= flow.sent_bytes, "{flow:?}");
        }
        assert!(flow.rtt_samples == 0 || flow.rtt_min_ms <= flow.rtt_max_ms, "{flow:?}");
        assert!(flow.active_s <= network.duration.as_secs_f64(), "{flow:?}");
    }
    let series = &outcome.flow_series;
    assert!(series.time_s.is_sorted());
    assert!(series.cwnd_packets.iter().all(|cwnd| *cwnd >= 1.0 - 1e-9 && cwnd.is_finite()));
    for (flow, row) in outcome.flows.iter().enumerate() {
        let delivered = series.flow.iter().zip(&series.delivered_bytes);
        let own: Vec<u64> = delivered
            .filter(|(index, _)| **index as usize == flow)
            .map(|(_, bytes)| *bytes)
            .collect();
        assert!(own.is_sorted() && own.last().is_none_or(|last| *last <= row.delivered_bytes));
    }
}

/// `count` seeds: the same in every run, unless `ACKADEMY_SEED` names another first one.
fn seeds(count: u64) -> std::ops::Range<u64> {
    let first = std::env::var("ACKADEMY_SEED").map_or(0, |seed| seed.parse().expect("a number"));
    first..first + count
}

/// Runs `claims` for a scenario; prints it if they fail.
fn for_any_scenario(count: u64, claims: impl Fn(&Scenario, u64)) {
    for seed in seeds(count) {
        let text = Draw(Rng::new(seed)).scenario();
        let claims = || claims(&parse(&text), seed);
        if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(claims)) {
            println!("--- seed {seed}\n{text}---");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn any_scenario_keeps_the_books() {
    for_any_scenario(5000, |scenario, seed| {
        let outcome = sim::run(&scenario.network, Seed(seed)).expect("built-in controllers");
        check(scenario, &outcome);
    });
}

#[test]
fn the_same_seed_gives_the_same_outcome() {
    for_any_scenario(1500, |scenario, seed| {
        let run = || sim::run(&scenario.network, Seed(seed)).expect("built-in controllers");
        assert!(same(&run(), &run()));
    });
}

#[test]
fn the_draws_reach_everything_there_is() {
    let outcomes: Vec<Outcome> =
        (0..800).map(|seed| run(&Draw(Rng::new(seed)).scenario(), seed)).collect();
    let links = || outcomes.iter().flat_map(|outcome| &outcome.links);
    let flows = || outcomes.iter().flat_map(|outcome| &outcome.flows);
    assert!(links().map(|link| link.queue_drops).sum::<u64>() > 10_000);
    assert!(links().map(|link| link.random_losses).sum::<u64>() > 1000);
    assert!(links().map(|link| link.marked_packets).sum::<u64>() > 300);
    assert!(flows().map(|flow| flow.timeouts).sum::<u64>() > 100);
    assert!(flows().map(|flow| flow.recoveries).sum::<u64>() > 1000);
    assert!(flows().map(|flow| flow.transfers).sum::<u64>() > 1000);
    assert!(flows().map(|flow| flow.received_packets).sum::<u64>() > 300_000);
    let held =
        |counters: &[(&str, f64)]| counters.iter().any(|&(name, n)| name == "held" && n > 0.0);
    assert!(flows().any(|flow| held(&flow.counters)));
    assert!(flows().map(|flow| flow.refused_writes).sum::<u64>() > 100);
    for spec in controllers::ALL {
        assert!(flows().any(|flow| flow.controller == spec.name && flow.received_packets > 100));
    }
}

#[test]
fn threads_change_nothing() {
    let texts: Vec<String> = (0..32).map(|seed| Draw(Rng::new(1000 + seed)).scenario()).collect();
    let all = |threads: usize| -> Vec<String> {
        let mut outcomes = vec![String::new(); texts.len()];
        let share = texts.len().div_ceil(threads);
        std::thread::scope(|scope| {
            for (texts, outcomes) in texts.chunks(share).zip(outcomes.chunks_mut(share)) {
                // Backwards, so that another number of threads is another order, too.
                scope.spawn(move || {
                    for (text, outcome) in texts.iter().zip(outcomes).rev() {
                        *outcome = format!("{:?}", run(text, 7));
                    }
                });
            }
        });
        outcomes
    };
    let alone = all(1);
    assert!(alone == all(2) && alone == all(8));
}

#[test]
fn stopping_on_the_way_changes_nothing() {
    for seed in 0..40 {
        let scenario = parse(&Draw(Rng::new(2000 + seed)).scenario());
        let network = &scenario.network;
        let make = || sim::Sim::new(network, Seed(seed), &mut sim::builtin).expect("built-in");
        let mut whole = make();
        whole.run_until(network.duration);
        let mut parts = make();
        let mut rng = Rng::new(seed);
        while parts.now() < network.duration {
            parts.run_until(parts.now() + Span(rng.below(50_000_000)));
        }
        assert!(same(&whole.finish(), &parts.finish()));
    }
}

const BYTES: u64 = 300_000;

/// A fixed transfer over a path as `link` says, long enough to drain.
fn transfer(link: &str, sender: &str, controller: &str) -> String {
    format!(
        "duration_s = 3000\n[dumbbell]\nreverse_delay_ms = 10\n[dumbbell.bottleneck]\n{link}\n\
         [[flow]]\ncontroller = \"{controller}\"\ntraffic = {{ kind = \"fixed\", bytes = {BYTES} }}\n\
         sender = {{ {sender} }}\n"
    )
}

const SENDERS: &[&str] = &[
    "",
    "rack = false, tlp = false, prr = false",
    "rack = false",
    "tlp = false",
    "prr = false",
    "pacing = true, idle_restart = true, ecn = \"classic\"",
    "ack_every = 4, ack_delay_ms = 200",
    "initial_cwnd_packets = 1, receiver_window_packets = 1",
    "recovery = \"ns2\"",
    "recovery = \"ns2\", handshake = false, deflation = false, impatient = false",
    "recovery = \"ns2\", timestamps = false, rto_tick_ms = 10, ack_every = 2",
];

const LIVING: &[&str] = &[
    "rate_mbps = 5\nqueue = { kind = \"drop_tail\", packets = 1 }",
    "rate_mbps = 5\ndelay_ms = 20\nqueue = { kind = \"drop_tail\", packets = 20 }",
    "rate_mbps = 5\ndelay_ms = 20\nloss = { kind = \"bernoulli\", ratio = 0.2 }",
    "rate_mbps = 5\ndelay_ms = 20\nloss = { kind = \"gilbert_elliott\", good_to_bad = 0.05, bad_to_good = 0.2 }",
    "rate_mbps = 5\ndelay_ms = 20\nduplicate_ratio = 1",
    "rate_mbps = 5\ndelay_ms = 20\nreorder = { ratio = 0.5, low_ms = 1, high_ms = 100 }",
    "rate_mbps = 5\ndelay_ms = 20\njitter_ms = 20\nkeep_order = false",
    "rate_mbps = 5\ndelay_ms = 1\nqueue = { kind = \"codel\", packets = 100, ecn = true }",
    "rate_mbps = 0.05\ndelay_ms = 2000\nqueue = { kind = \"fq_codel\", packets = 10, ecn = true }",
    "rate_mbps = 5\ndelay_ms = 20\noutages = [[0.1, 0.3], [0.5, 5]]",
    "trace = \"3\"\nqueue = { kind = \"pie\", packets = 10 }",
    "rate_schedule = [[0, 5], [0.2, 0], [1, 0.1]]\nqueue = { kind = \"drop_tail\", bytes = 6000 }",
];

#[test]
fn every_transfer_over_a_living_path_ends_and_the_books_balance() {
    for link in LIVING {
        for sender in SENDERS {
            for controller in ["new_reno", "cubic", "rl_tcp"] {
                let text = transfer(link, sender, controller);
                let outcome = run(&text, 3);
                let flow = &outcome.flows[0];
                assert_eq!(flow.transfers, 1, "{text}\n{flow:?}");
                assert!(flow.goodput_bytes >= BYTES, "{text}\n{flow:?}");
                if !link.contains("duplicate") {
                    let ended = flow.received_packets + flow.dropped_packets;
                    assert_eq!(flow.sent_packets, ended, "{text}\n{flow:?}");
                }
                assert!(outcome.events < 3_000_000, "{text}\n{} events", outcome.events);
            }
        }
    }
}

#[test]
fn every_controller_brings_a_transfer_over_a_bad_path() {
    let link = "rate_mbps = 5\ndelay_ms = 20\nqueue = { kind = \"drop_tail\", packets = 20 }\n\
                loss = { kind = \"bernoulli\", ratio = 0.05 }";
    for spec in controllers::ALL.iter().filter(|spec| spec.runs_on_defaults()) {
        for sender in SENDERS {
            let flow = &run(&transfer(link, sender, spec.name), 4).flows[0];
            assert_eq!(flow.transfers, 1, "{} {sender} {flow:?}", spec.name);
        }
    }
}

#[test]
fn a_dead_link_ends_the_run_in_few_events() {
    for link in [
        "rate_mbps = 5\nloss = { kind = \"bernoulli\", ratio = 1 }",
        "rate_mbps = 5\noutages = [[0, 100000]]",
        "rate_mbps = 5\noutages = [[0.05, 100000]]\nqueue = { kind = \"codel\", packets = 5 }",
        "rate_schedule = [[0, 5], [0.05, 0]]",
        "rate_schedule = [[0, 5], [0.05, 0]]\nqueue = { kind = \"pie\", packets = 5 }",
        "rate_mbps = 5\nqueue = { kind = \"drop_tail\", bytes = 1 }",
    ] {
        for sender in SENDERS {
            let outcome = run(&transfer(link, sender, "cubic"), 5);
            assert_eq!(outcome.flows[0].transfers, 0);
            assert!(outcome.flows[0].timeouts > 10, "{link} {sender} {:?}", outcome.flows[0]);
            assert!(outcome.events < 2000, "{link} {sender}: {} events", outcome.events);
        }
    }
}

#[test]
fn a_flow_recovers_from_an_outage_of_ten_seconds() {
    for sender in SENDERS {
        for controller in ["new_reno", "cubic"] {
            let run = |outages: &str| {
                let text = format!(
                    "duration_s = 100\n[dumbbell]\nrtt_ms = 50\n[dumbbell.bottleneck]\nrate_mbps = 5\n\
                     queue = {{ kind = \"drop_tail\", packets = 50 }}\n{outages}\n\
                     [[flow]]\ncontroller = \"{controller}\"\nsender = {{ {sender} }}\n"
                );
                run(&text, 6).flows[0].clone()
            };
            let (smooth, cut) = (run(""), run("outages = [[20, 30]]"));
            assert!(cut.timeouts >= 1, "{sender} {cut:?}");
            // Ten seconds, and the wait for the backed-off timer at their end.
            let part = cut.delivered_bytes as f64 / smooth.delivered_bytes as f64;
            assert!(part > 0.75, "{controller} {sender}: {part}");
        }
    }
}

#[test]
fn a_link_that_keeps_order_does() {
    for seed in 0..300 {
        let mut draw = Draw(Rng::new(3000 + seed));
        let text = format!(
            "duration_s = 3\n[dumbbell]\n[dumbbell.bottleneck]\n{}{}[[flow]]\n",
            draw.rate(),
            draw.delay(),
        );
        let network = parse(&text).network;
        let mut link = sim::link::Link::new(&network.links[0], 0, Seed(seed), Span::ZERO);
        let (mut now, mut last) = (ackademy::units::Time(0), ackademy::units::Time(0));
        for _ in 0..300 {
            now += Span(draw.below(10_000_000));
            let mut packet = sim::packet::Packet {
                size: 40 + draw.below(1460) as u32,
                ..sim::packet::Packet::default()
            };
            let sim::link::Offer::Arrives { at, loose, .. } =
                link.offer(now, &mut packet, &mut Vec::new())
            else {
                panic!("nothing is lost here");
            };
            assert!(!loose && at >= last && at >= now, "{text}");
            last = at;
        }
    }
}

#[test]
fn extreme_values_do_no_harm() {
    for (rate_mbps, duration_s) in [(1e-6, 1e-6), (1e-6, 2e5), (1e6, 1e-6), (1e6, 2e-5)] {
        for packet in ["packet_bytes = 1, header_bytes = 0", "packet_bytes = 65535"] {
            for delay_ms in [0.0, 1e-6, 1e7] {
                for sender in [
                    "initial_cwnd_packets = 1000",
                    "initial_cwnd_packets = 1, rto_min_ms = 0, rto_tick_ms = 1e-6, rto_initial_ms = 1e-3",
                    "pacing = true, ack_every = 1000, ack_delay_ms = 1e7",
                    "recovery = \"ns2\"",
                    "recovery = \"ns2\", rto_min_ms = 0, rto_tick_ms = 1e-6, rto_initial_ms = 1e-3",
                    "recovery = \"ns2\", rto_tick_ms = 1e7, rto_max_ms = 1e7",
                ] {
                    for queue in [
                        "kind = \"drop_tail\", packets = 20",
                        "kind = \"codel\", packets = 20, target_ms = 1e-3, interval_ms = 1e-3",
                        "kind = \"fq_codel\", packets = 20, queues = 1, quantum_bytes = 64",
                        "kind = \"pie\", packets = 20, update_ms = 10",
                        "kind = \"red\", packets = 20, min_packets = 0, max_packets = 1, weight = 1",
                    ] {
                        let text = format!(
                            "duration_s = {duration_s}\n[dumbbell]\nreverse_delay_ms = {delay_ms}\n\
                             [dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\ndelay_ms = {delay_ms}\n\
                             queue = {{ {queue} }}\n\
                             [[flow]]\nsender = {{ {packet}, {sender} }}\n"
                        );
                        let scenario = parse(&text);
                        eprintln!(
                            "RUN {rate_mbps} {duration_s} {packet} {delay_ms} {sender} {queue}"
                        );
                        let outcome = sim::run(&scenario.network, Seed(1)).expect("built-in");
                        check(&scenario, &outcome);
                        assert!(outcome.events < 1_000_000, "{} events\n{text}", outcome.events);
                    }
                }
            }
        }
    }
}

/// A draw every ten seconds and a packet every quarter of a second: nearly every round trip is twice
/// the one-way delay, which it is not if the two directions draw on their own.
#[test]
fn a_reverse_direction_that_varies_repeats_the_forward_draws() {
    let text = "duration_s = 1000\n[dumbbell]\nreverse_varies = true\n[dumbbell.bottleneck]\n\
                rate_mbps = 100\ndelay_random = { low_ms = 60, high_ms = 160, hz = 0.1 }\n\
                [sender]\nack_every = 1\n[[flow]]\nstop_s = 990\n\
                traffic = { kind = \"app_limited\", rate_mbps = 0.046, write_bytes = 1448 }\n";
    let outcome = sim::run(&parse(text).network, Seed(1)).expect("built-in controllers");
    let flow = &outcome.flows[0];
    assert!((flow.rtt_mean_ms - 2.0 * flow.owd_mean_ms).abs() < 1.0, "{flow:?}");
    assert!((flow.base_rtt_ms - 120.0).abs() < 1.0, "{flow:?}");
    assert!((200.0..240.0).contains(&flow.rtt_mean_ms), "{flow:?}");
    assert!(flow.rtt_p95_ms > 300.0, "{flow:?}");
}
