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
use ackademy::units::{Rate, Span, Time};
use ackademy::{controllers, coupled};

/// Draws scenarios. Not proptest's strategies, because a text is easier to build than a strategy, and
/// a seed is as good a counterexample as a shrunk one.
pub struct Draw(pub Rng);

impl Draw {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub fn chance(&mut self, ratio: f64) -> bool {
        self.0.chance(ratio)
    }

    fn one<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Log-uniform, three digits.
    pub fn scale(&mut self, low: f64, high: f64) -> f64 {
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
        let body = match self.below(9) {
            0 => return String::new(),
            1 => format!("\"drop_tail\", bytes = {}", 9000 + self.below(100_000)),
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
            7 => format!(
                "\"dualpi2\", packets = {packets}, step_ms = {}, classic_share = {}",
                self.scale(0.1, 10.0),
                self.scale(0.01, 0.9)
            ),
            6 => format!("\"step\", mark_packets = {}, packets = {packets}", self.below(50)),
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
        text + &self.extras()
    }

    /// What few links have.
    fn extras(&mut self) -> String {
        let mut text = String::new();
        if self.chance(0.1) {
            let (rate, burst) = (self.scale(0.2, 30.0), 9000 + self.below(100_000));
            let _ = writeln!(text, "policer = {{ rate_mbps = {rate}, burst_bytes = {burst} }}");
        }
        if self.chance(0.1) {
            let low = self.scale(0.1, 20.0);
            let high = low * self.scale(1.0, 3.0);
            let _ = writeln!(text, "aggregation = {{ low_ms = {low}, high_ms = {high} }}");
        }
        if self.chance(0.1) {
            let (ratio, delay) = (self.scale(1e-3, 0.5), self.scale(0.1, 10.0));
            let most = self.below(8);
            let _ = writeln!(
                text,
                "retransmit = {{ ratio = {ratio}, delay_ms = {delay}, most = {most} }}"
            );
        }
        match self.below(10) {
            0 => text += "ecn = \"bleach\"\n",
            1 => {
                let _ = writeln!(text, "forge_ce = {}", self.scale(1e-3, 0.5));
            }
            _ => {}
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

    /// What a receiver does that it should not. Nothing else bounds a sender that is told of no loss.
    fn misbehaviour(&mut self) -> String {
        let mut text = format!("receiver_window_packets = {}, ", 1 + self.below(300));
        for name in ["hide_marks", "hide_losses"] {
            let _ = write!(text, "{name} = {}, ", self.chance(0.5));
        }
        if self.chance(0.5) {
            let _ = write!(text, "divide_acks = {}, ", 1 + self.below(20));
        }
        if self.chance(0.5) {
            let _ = write!(text, "optimistic_acks = {}, ", self.below(300));
        }
        text
    }

    fn sender(&mut self, has_subflows: bool) -> String {
        let mut text = String::from("sender = { ");
        if self.chance(0.4) {
            text += "recovery = \"ns2\", ";
        } else if !has_subflows && self.chance(0.25) {
            text += &self.misbehaviour();
        }
        for (name, low, high) in [
            ("ack_every", 1.0, 4.9),
            ("quick_acks", 1.0, 1000.0),
            ("initial_cwnd_packets", 1.0, 40.0),
            ("packet_bytes", 80.0, 9000.0),
            ("receiver_window_packets", 1.0, 1000.0),
        ] {
            if !text.contains(name) && self.chance(0.25) {
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
        if self.chance(0.1) {
            let _ = write!(text, "fuzz_records = {}, ", self.scale(1e-3, 1.0));
        }
        if self.chance(0.3) {
            text += "send_hook = \"ack\", ";
        }
        let _ = write!(text, "ecn = \"{}\" }}", self.one(&["off", "classic", "accurate", "l4s"]));
        text + "\n"
    }

    fn controller(&mut self) -> &'static str {
        let names: Vec<&'static str> =
            controllers::ALL.iter().map(|spec| spec.name).chain(coupled_names()).collect();
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
        let mut traffic = self.traffic();
        let has_subflows = route.contains("mptcp") || coupled::find(controller).is_some();
        while has_subflows && traffic.contains("cbr") {
            traffic = self.traffic(); // datagrams have no subflows
        }
        text + &traffic + &self.sender(has_subflows || route.contains("multipath"))
    }

    /// The table of a connection of several subflows, at these places; on both paths if there are none.
    fn mptcp(&mut self, places: &[String]) -> String {
        let scheduler = self.one(&["min_rtt", "round_robin", "redundant"]);
        let mut text = format!("mptcp = {{ scheduler = \"{scheduler}\", ");
        for name in ["receive_buffer_bytes", "send_buffer_bytes"] {
            if self.chance(0.5) {
                let _ = write!(text, "{name} = {}, ", 9000 + self.below(100_000));
            }
        }
        if self.chance(0.3) {
            text += "opportunistic = true, ";
        }
        let mut subflows = Vec::new();
        for place in places {
            let mut subflow = vec![place.clone()];
            let start = self.scale(0.01, 2.0);
            if self.chance(0.3) {
                subflow.push(format!("start_s = {start}"));
            }
            if self.chance(0.3) {
                subflow.push(format!("stop_s = {}", start + self.scale(0.01, 2.0)));
            }
            subflow.retain(|part| !part.is_empty());
            subflows.push(format!("{{ {} }}", subflow.join(", ")));
        }
        if !subflows.is_empty() {
            let _ = write!(text, "subflow = [{}]", subflows.join(", "));
        }
        text.trim_end_matches([',', ' ']).to_owned() + " }\n"
    }

    /// How many subflows a flow has: often one.
    fn subflows(&mut self) -> u64 {
        if self.chance(0.3) { 2 + self.below(3) } else { 1 }
    }

    /// A flow at one of these places, or of several subflows.
    fn placed(&mut self, mut place: impl FnMut(&mut Self) -> Vec<String>) -> String {
        match self.subflows() {
            1 => place(self).join("\n") + "\n",
            count => {
                let places: Vec<String> = (0..count).map(|_| place(self).join(", ")).collect();
                self.mptcp(&places)
            }
        }
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
                for _ in 0..flows {
                    routes.push(self.placed(|_| Vec::new()));
                }
            }
            1 => {
                let hops = 1 + self.below(4);
                let link = self.link(true);
                let _ =
                    write!(text, "[parking_lot]\nhops = {hops}\n[parking_lot.bottleneck]\n{link}");
                for _ in 0..flows {
                    routes.push(self.placed(|draw| {
                        let first = draw.below(hops);
                        let last = first + draw.below(hops - first);
                        vec![format!("route = [{first}, {last}]")]
                    }));
                }
            }
            2 => {
                let (first, second) = (self.link(true), self.link(true));
                let _ = write!(text, "[two_path.first]\n{first}[two_path.second]\n{second}");
                for _ in 0..flows {
                    let mut route =
                        self.placed(|draw| vec![format!("route = [{}]", draw.below(2))]);
                    if self.chance(0.4) {
                        "multipath = true\n".clone_into(&mut route);
                        if self.chance(0.6) {
                            route += &self.mptcp(&[]);
                        }
                    }
                    routes.push(route);
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
                    routes.push(self.placed(|draw| {
                        let (forward, back) = (path(draw, 1), path(draw, 0));
                        vec![format!("path = [{forward}]"), format!("reverse = [{back}]")]
                    }));
                }
            }
        }
        for route in routes {
            text += &self.flow(&route);
        }
        text
    }

    /// Transfers over two damaged paths, by subflows of which the first is always open, and their size.
    pub fn transfers(&mut self) -> (String, u64) {
        let mut text = String::from("duration_s = 900\n");
        for path in ["first", "second"] {
            let (rate, delay) = (self.scale(1.0, 30.0), self.scale(0.1, 60.0));
            let (packets, loss) = (5 + self.below(200), self.scale(1e-4, 0.05));
            let (from, copies) = (self.scale(0.1, 2.0), self.scale(1e-3, 0.1));
            let _ = writeln!(
                text,
                "[two_path.{path}]\nrate_mbps = {rate}\ndelay_ms = {delay}\n\
                 queue = {{ kind = \"drop_tail\", packets = {packets} }}\n\
                 loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n\
                 duplicate_ratio = {copies}\noutages = [[{from}, {}]]",
                from + self.scale(0.1, 5.0)
            );
        }
        let mut names = vec!["new_reno", "cubic", "vegas", "hybla"];
        names.extend(coupled_names());
        let (controller, count) = (self.one(&names), 1 + self.below(3));
        let bytes = self.scale(1.0, 2e6) as u64 + 1;
        let mut places = Vec::new();
        for _ in 0..2 + self.below(3) {
            places.push(format!("route = [{}]", self.below(2)));
        }
        let mptcp = self.mptcp(&places);
        let first = mptcp.find('}').expect("a subflow");
        let start = mptcp.find("[{").expect("subflows") + 2;
        let (before, after) = (&mptcp[..start], &mptcp[first..]);
        let _ = write!(
            text,
            "[[flow]]\ncontroller = \"{controller}\"\ncount = {count}\n\
             traffic = {{ kind = \"fixed\", bytes = {bytes} }}\n\
             {before} {} {after}",
            places[0]
        );
        let ns2 = if self.chance(0.3) { "recovery = \"ns2\", " } else { "" };
        let (handshake, every) = (self.chance(0.5), 1 + self.below(3));
        let _ = writeln!(text, "sender = {{ {ns2}handshake = {handshake}, ack_every = {every} }}");
        (text, bytes)
    }
}

/// The coupled controllers that need no policy: one is for a number of paths.
fn coupled_names() -> impl Iterator<Item = &'static str> {
    let whole = |spec: &&&coupled::Spec| spec.params.iter().all(|own| own.kind.default().is_some());
    coupled::ALL.iter().filter(whole).map(|spec| spec.name)
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
    if !poisson {
        check_connections(scenario, outcome);
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

/// What an application read came in order over its subflows, within the receive buffer.
fn check_connections(scenario: &Scenario, outcome: &Outcome) {
    let (mut flows, mut rows) = (outcome.flows.iter(), outcome.connections.iter());
    for plan in &scenario.network.connections {
        let own: Vec<_> = flows.by_ref().take(plan.subflows.len()).collect();
        let Some(mptcp) = &plan.mptcp else {
            for flow in own {
                let row = rows.next().expect("a row per flow");
                assert_eq!((&row.connection, row.goodput_bytes), (&flow.flow, flow.goodput_bytes));
            }
            continue;
        };
        let row = rows.next().expect("a row per connection");
        assert_eq!((&row.connection, row.subflows), (&plan.name, own.len() as u64));
        assert!(row.reorder_peak_bytes <= mptcp.receive_buffer.0, "{row:?}");
        let delivered: u64 = own.iter().map(|flow| flow.delivered_bytes).sum();
        assert!(row.goodput_bytes + row.duplicate_bytes <= delivered, "{row:?}");
        if let TrafficSpec::Fixed { bytes } = plan.traffic {
            assert!(row.goodput_bytes <= bytes, "{row:?}");
            let is_whole = row.transfers > 0 && plan.stop == Time::NEVER;
            assert!(!is_whole || row.goodput_bytes == bytes, "{row:?}");
        }
    }
    assert!(rows.next().is_none() && flows.next().is_none());
}
