//! Scenarios drawn at random as text, and the claims that every outcome must hold: every queue, every
//! rate and delay process, every kind of damage on the wire, every traffic, both senders, every
//! controller.
use std::fmt::Write as _;

use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::plan::TrafficSpec;
use ackademy::sim::record::Outcome;
use ackademy::sim::trace::{Cellular, Trace};
use ackademy::units::{Rate, Span};
use ackademy::{controllers, coupled};

/// Draws scenarios. Not proptest's strategies, because a text is easier to build than a strategy, and
/// a seed is as good a counterexample as a shrunk one.
pub struct Draw(pub Rng);

impl Draw {
    pub fn below(&mut self, bound: u64) -> u64 {
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

    pub fn rate(&mut self) -> String {
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

    pub fn delay(&mut self) -> String {
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
            text += "send_hook = \"ack\", ";
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

    pub fn scenario(&mut self) -> String {
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
                    let path = |draw: &mut Self, min: u64| {
                        let hops = min + draw.below(3);
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

pub fn parse(text: &str) -> Scenario {
    let mut load = |name: &str, _| {
        let files: [(&str, &[u8]); 5] = [
            ("lp_tcp", include_bytes!("../files/lp_tcp/policy")),
            ("policy/policy.toml", include_bytes!("../files/policy/policy/policy.toml")),
            (
                "policy/weights.safetensors",
                include_bytes!("../files/policy/policy/weights.safetensors"),
            ),
            ("tcp_drinc/policy.toml", include_bytes!("../files/tcp_drinc/policy/policy.toml")),
            (
                "tcp_drinc/weights.safetensors",
                include_bytes!("../files/tcp_drinc/policy/weights.safetensors"),
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

pub fn run(text: &str, seed: u64) -> Outcome {
    sim::run(&parse(text).network, Seed(seed)).expect("built-in controllers")
}

/// Equal to the last bit; `NaN` equals itself, unlike by `==`.
pub fn same(first: &Outcome, second: &Outcome) -> bool {
    format!("{first:?}") == format!("{second:?}")
}

/// The claims that need nothing but the outcome.
pub fn check(scenario: &Scenario, outcome: &Outcome) {
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
