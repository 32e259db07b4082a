//! Random lives of one flow over one link: what disturbs it ends at a given time, and what is of the path's or of the
//! application's kind stays.
use super::draw::Draw;
use ackademy::rng::Rng;
use ackademy::scenario::Scenario;
use ackademy::{controllers, coupled};
use std::fmt::Write as _;

/// The project's policies for one flow, beside the controllers that run on defaults: folder, controller, file. Of `data/`,
/// which is shipped, or of `research/`.
const POLICIES: [(&str, &str, &str); 8] = [
    ("aurora_mixed", "policy", ""),
    ("flagship", "policy", ""),
    ("flagship_evolved", "policy", ""),
    ("flagship_ppo", "policy", ""),
    ("tcp_drinc", "tcp_drinc", ""),
    ("tcp_drinc_delta5", "tcp_drinc", ""),
    ("lp_tcp/L50_K1", "lp_tcp", "/forest.safetensors"),
    ("lp_tcp/L50_K4", "lp_tcp", "/forest.safetensors"),
];

/// What a flow runs under: the lines of its table, and a name.
#[derive(Clone, Debug)]
pub struct Scheme {
    pub name: String,
    pub lines: String,
}

/// Every controller that runs on defaults, and every shipped policy for one flow.
pub fn schemes() -> Vec<Scheme> {
    let plain = controllers::ALL.iter().filter(|spec| spec.runs_on_defaults()).map(|one| one.name);
    let whole = |own: &&&coupled::Spec| own.params.iter().all(|one| one.kind.default().is_some());
    let names = plain.chain(coupled::ALL.iter().filter(whole).map(|spec| spec.name));
    let lines = |name| format!("controller = \"{name}\"\n");
    let mut schemes: Vec<_> =
        names.map(|name| Scheme { name: name.to_owned(), lines: lines(name) }).collect();
    for (folder, controller, file) in POLICIES {
        let policy = format!("params = {{ policy = \"policies/{folder}{file}\" }}\n");
        schemes.push(Scheme { name: folder.to_owned(), lines: lines(controller) + &policy });
    }
    schemes
}

/// A scenario that may name the project's policies.
pub fn parse(text: &str) -> Scenario {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let mut load = |name: &str, _| {
        let places = ["data", "research"].map(|place| format!("{root}/{place}/{name}"));
        places.iter().find_map(|path| std::fs::read(path).ok()).ok_or(format!("{name}: missing"))
    };
    Scenario::parse_with(text, "life", &[], &mut load)
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// One flow's life.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each says of another property whether it holds")]
pub struct Life {
    pub scheme: Scheme,
    /// Of the path after the disturbances.
    pub rate_mbps: f64,
    pub rtt_ms: f64,
    /// Longest that a packet waits in the queue then.
    pub wait_ms: f64,
    /// Packets that the path holds then, and those that the queue does.
    pub bdp: f64,
    pub queue: f64,
    /// When the last disturbance ends, and the longest silence of the path before.
    pub quiet_s: f64,
    pub outage_s: f64,
    /// Whether the smallest round trip is larger after the disturbances: for ten seconds, a filter of the smallest
    /// shows the one before (BBR draft section 4.5.4, Copa section 2.2).
    pub longer: bool,
    /// Whether the path carries more than twice as much after the disturbances as just before their end.
    pub faster: bool,
    /// Whether the receiver waits for more than two packets, which RFC 5681 section 4.2 advises against: below that, a
    /// window waits for the receiver's timer, and its round trips tell no queue.
    pub waits: bool,
    /// Acknowledgements of one record.
    pub batch: u64,
    /// Part of false records.
    pub falsified: f64,
    /// Whether the application always has data.
    pub bulk: bool,
    /// Whether packets are lost or late at random for all of the life.
    pub noisy: bool,
    /// Whether a policer drops.
    pub policed: bool,
    link: String,
    flow: String,
}

impl Life {
    /// Of this seed.
    pub fn draw(seed: u64) -> Self {
        let schemes = schemes();
        let scheme = schemes[(seed % schemes.len() as u64) as usize].clone();
        Self::with(&scheme, seed)
    }

    /// Of this seed, under this scheme.
    pub fn with(scheme: &Scheme, seed: u64) -> Self {
        let mut draw = Draw(Rng::new(seed));
        let (rate, rtt) = (draw.scale(1.0, 40.0), draw.scale(8.0, 150.0));
        let bdp = rate * rtt / 12.0;
        let queue = match draw.below(10) {
            0 => 1.0 + draw.below(3) as f64,
            1 => 50.0 * bdp.ceil(),
            _ => (bdp * draw.scale(0.2, 6.0)).max(4.0).ceil(),
        };
        let mut life = Self {
            scheme: scheme.clone(),
            rate_mbps: rate,
            rtt_ms: rtt,
            wait_ms: queue * 12.0 / rate,
            bdp,
            queue,
            quiet_s: 4.0,
            outage_s: 0.0,
            longer: false,
            faster: false,
            waits: false,
            batch: [1, 1, 2, 10, 25][draw.below(5) as usize],
            falsified: 0.0,
            bulk: true,
            noisy: false,
            policed: false,
            link: String::new(),
            flow: scheme.lines.clone(),
        };
        life.disturb(&mut draw);
        life.keep(&mut draw);
        life.offer(&mut draw);
        life.send(&mut draw);
        life
    }

    /// What ends: steps of rate and delay, an outage, losses.
    fn disturb(&mut self, draw: &mut Draw) {
        let quiet = 3.0 + draw.below(4) as f64;
        self.quiet_s = quiet;
        let (rate, one_way) = (self.rate_mbps, self.rtt_ms / 2.0);
        let early = draw.scale(0.5, 2.5);
        let link = &mut self.link;
        if draw.chance(0.5) {
            let (first, second) = (rate * draw.scale(0.1, 10.0), rate * draw.scale(0.1, 4.0));
            self.faster = second < rate / 2.0;
            let _ = writeln!(
                link,
                "rate_schedule = [[0, {first:.3}], [{early}, {second:.3}], [{quiet}, {rate}]]"
            );
        } else if draw.chance(0.25) {
            let (from, lasts) = (quiet * 0.4, draw.scale(0.3, quiet * 0.6));
            self.outage_s = lasts;
            let until = from + lasts;
            let _ = writeln!(link, "rate_schedule = [[0, {rate}], [{from}, 0], [{until}, {rate}]]");
        } else {
            let _ = writeln!(link, "rate_mbps = {rate}");
        }
        if draw.chance(0.25) {
            let first = one_way * draw.scale(0.2, 4.0);
            self.longer = first < one_way;
            let _ = writeln!(link, "delay_schedule = [[0, {first:.3}], [{quiet}, {one_way}]]");
        } else {
            let _ = writeln!(link, "delay_ms = {one_way}");
        }
        if draw.chance(0.4) {
            let ratio = [0.001, 0.01, 0.1, 1.0][draw.below(4) as usize];
            let lasts = if ratio < 0.5 { quiet - early } else { draw.scale(0.01, 1.5) };
            let until = (early + lasts).min(quiet);
            if ratio > 0.5 {
                self.outage_s = self.outage_s.max(until - early);
            }
            let _ = writeln!(
                link,
                "loss = {{ kind = \"bernoulli\", ratio = {ratio}, from_s = {early}, until_s = {until} }}"
            );
        }
    }

    /// What stays: the queue, a policer, aggregation, reordering, copies, false marks.
    fn keep(&mut self, draw: &mut Draw) {
        let packets = self.queue;
        let body = match draw.below(8) {
            0 => format!("\"codel\", packets = {packets}"),
            1 => format!("\"codel\", packets = {packets}, ecn = true"),
            2 => {
                format!("\"step\", mark_packets = {}, packets = {packets}", (packets / 4.0).ceil())
            }
            _ => format!("\"drop_tail\", packets = {packets}"),
        };
        let link = &mut self.link;
        let _ = writeln!(link, "queue = {{ kind = {body} }}");
        if draw.chance(0.12) {
            self.policed = true;
            let (rate, burst) = (self.rate_mbps * draw.scale(0.1, 0.9), draw.scale(5e3, 2e5));
            let _ =
                writeln!(link, "policer = {{ rate_mbps = {rate:.3}, burst_bytes = {burst:.0} }}");
        }
        if draw.chance(0.15) {
            let low = draw.scale(1.0, 15.0);
            let _ = writeln!(link, "aggregation = {{ low_ms = {low}, high_ms = {} }}", low * 1.5);
            self.rtt_ms += 2.0 * low;
        }
        if draw.chance(0.1) {
            let (ratio, high) = (draw.scale(1e-3, 0.1), draw.scale(1.0, 10.0));
            let _ =
                writeln!(link, "reorder = {{ ratio = {ratio}, low_ms = 0.5, high_ms = {high} }}");
            self.noisy = true;
        }
        if draw.chance(0.05) {
            let _ = writeln!(link, "forge_ce = {}", draw.scale(1e-3, 0.05));
            self.noisy = true;
        }
        if draw.chance(0.05) {
            let _ = writeln!(link, "duplicate_ratio = {}", draw.scale(1e-3, 0.05));
            self.noisy = true;
        }
    }

    /// What the application does.
    fn offer(&mut self, draw: &mut Draw) {
        let rate = self.rate_mbps;
        let body = match draw.below(8) {
            0 | 1 => {
                let (bytes, off) = (draw.scale(1e4, 1e6) as u64, draw.scale(0.05, 3.0));
                format!("\"on_off\", mean_bytes = {bytes}, mean_off_s = {off}")
            }
            2 => format!(
                "\"app_limited\", rate_mbps = {:.4}, write_bytes = {}",
                rate * draw.scale(0.02, 0.9),
                1 + draw.below(100_000)
            ),
            3 => format!(
                "\"writes\", count = {}, write_bytes = {}, interval_ms = {}, send_buffer_bytes = 2000000",
                20 + draw.below(2000),
                1000 + draw.below(60_000),
                draw.scale(1.0, 1000.0)
            ),
            _ => return,
        };
        self.bulk = false;
        let _ = writeln!(self.flow, "traffic = {{ kind = {body} }}");
    }

    /// Sender and receiver.
    fn send(&mut self, draw: &mut Draw) {
        let mut text = String::new();
        let ecn = ["off", "off", "classic", "accurate"][draw.below(4) as usize];
        let _ = write!(text, "ecn = \"{ecn}\", ");
        if draw.chance(0.2) {
            let packets = (self.bdp * draw.scale(0.5, 3.0)).ceil().max(2.0);
            let _ = write!(text, "receiver_window_packets = {packets}, ");
        }
        for name in ["pacing", "idle_restart", "tlp", "rack", "handshake"] {
            if draw.chance(0.15) {
                let _ = write!(text, "{name} = {}, ", draw.chance(0.5));
            }
        }
        if draw.chance(0.3) {
            let ack_every = 1 + draw.below(8);
            self.waits = ack_every > 2;
            let _ = write!(text, "ack_every = {ack_every}, ");
        }
        if draw.chance(0.2) {
            let _ = write!(text, "quick_acks = 16, opening_acks = {}, ", draw.below(300));
        }
        if draw.chance(0.08) {
            self.falsified = [0.01, 0.1, 1.0][draw.below(3) as usize];
        }
        let _ = writeln!(self.flow, "sender = {{ {} }}", text.trim_end_matches(", "));
    }

    /// From when on a flow must have recovered: 20 round trips, and the rest of a time-out, after the last disturbance,
    /// and the memory of the round trip.
    pub fn settled_s(&self) -> f64 {
        let memory_s = if self.longer { 12.0 } else { 0.0 };
        self.quiet_s
            + memory_s
            + 1.0
            + 2.0 * self.outage_s
            + 20.0 * (self.rtt_ms + self.wait_ms) / 1e3
    }

    pub fn end_s(&self) -> f64 {
        self.settled_s() + 3.0f64.max(20.0 * (self.rtt_ms + self.wait_ms) / 1e3)
    }

    /// As a scenario, of the flow or of one that starts when the disturbances are over.
    pub fn text(&self, fresh: bool) -> String {
        let start = if fresh { format!("start_s = {}\n", self.quiet_s) } else { String::new() };
        format!(
            "# {}: quiet from {} s, settled from {:.2} s, records of {}, {} falsified\n\
             duration_s = {:.3}\n[dumbbell]\n[dumbbell.bottleneck]\n{}[[flow]]\n{}{start}",
            self.scheme.name,
            self.quiet_s,
            self.settled_s(),
            self.batch,
            self.falsified,
            self.end_s(),
            self.link,
            self.flow,
        )
    }
}
