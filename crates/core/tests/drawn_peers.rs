//! Ours against ns-2 and ns-3 on points that a seed drew (docs/results/peers.md). The peers' intervals are in
//! `golden/drawn_peers.txt`, written by `python -m ns_peers --random 24 --seed 1 --record FILE`.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;

/// A scheme on a point, and the least and the most that its peers gave.
struct Row<'a> {
    scheme: &'a str,
    rate_bps: f64,
    rtt_s: f64,
    buffer: u64,
    loss: f64,
    flows: u32,
    step_s: f64,
    duration_s: f64,
    /// Throughput in Mb/s, wait in ms, share of packets dropped by the queue.
    peers: [(f64, f64); 3],
}

fn rows(text: &str) -> Vec<Row<'_>> {
    let row = |line| {
        let words: Vec<&str> = str::split(line, '|').collect();
        let number = |index: usize| words[index].parse::<f64>().expect("a number");
        let span = |index: usize| (number(index), number(index + 1));
        Row {
            scheme: words[0],
            rate_bps: number(1),
            rtt_s: number(2),
            buffer: number(3) as u64,
            loss: number(4),
            flows: number(5) as u32,
            step_s: number(6),
            duration_s: number(7),
            peers: [span(8), span(10), span(12)],
        }
    };
    text.lines().filter(|line| !line.starts_with('#')).map(row).collect()
}

impl Row<'_> {
    /// As `python/ackademy/peers.py` writes it.
    fn scenario(&self) -> String {
        let sack = "recovery = \"sack\"\npacket_bytes = 1250\nack_bytes = 40\nack_every = 1\n\
                    initial_cwnd_packets = 2\nhandshake = true\n";
        // An ACK without timestamps has 42 bytes in ns-3.
        let unstamped = sack.replace("ack_bytes = 40", "ack_bytes = 42");
        let plain = format!("{unstamped}rack = false\ntlp = false\nrescue = true\n");
        let ns2 = "recovery = \"ns2\"\npacket_bytes = 1250\nheader_bytes = 40\n\
                   timestamps = false\nrto_tick_ms = 10\n";
        let (sender, controller) = match self.scheme {
            "NewReno as ns-2" | "NewReno as ns-2, RED" => (ns2, "\"new_reno\""),
            "NewReno+SACK" => (sack, "\"new_reno\""),
            "CUBIC" => (sack, "\"cubic_rfc9438\"\nparams = { rules = \"linux\" }"),
            "Vegas as ns-3" => (plain.as_str(), "\"vegas\"\nparams = { variant = \"ns3\" }"),
            other => panic!("a scheme without a scenario: {other}"),
        };
        let low = (self.buffer / 5).max(2);
        let queue = if self.scheme.ends_with("RED") {
            format!(
                "kind = \"red\", min_packets = {low}, max_packets = {}, max_ratio = 0.1, \
                 weight = 0.002, packets = {}",
                3 * low,
                self.buffer
            )
        } else {
            format!("kind = \"drop_tail\", packets = {}", self.buffer)
        };
        format!(
            "duration_s = {}\n[dumbbell]\nrtt_ms = {}\naccess_mbps = 1000\n\
             [dumbbell.bottleneck]\nrate_mbps = {}\nqueue = {{ {queue} }}\n\
             loss = {{ kind = \"bernoulli\", ratio = {} }}\n\
             [sender]\n{sender}[[flow]]\ncount = {}\ncontroller = {controller}\nstart_step_s = {}\n",
            self.duration_s,
            1e3 * self.rtt_s,
            1e-6 * self.rate_bps,
            self.loss,
            self.flows,
            self.step_s
        )
    }

    /// Ours in the order of `peers`, averaged over six seeds where something is random.
    fn ours(&self) -> [f64; 3] {
        let network = Scenario::parse(&self.scenario(), "drawn").expect("a scenario").network;
        let random = self.loss > 0.0 || self.scheme.ends_with("RED");
        let seeds = if random { 6 } else { 1 };
        let mut sums = [0.0; 3];
        for seed in 1..=seeds {
            let outcome = sim::run(&network, Seed(seed)).expect("built-in controllers");
            let flows = &outcome.flows;
            let rate = |flow: &ackademy::sim::record::FlowRow| {
                flow.delivered_bytes as f64 * 8e-6 / flow.active_s
            };
            sums[0] += flows.iter().map(rate).sum::<f64>() / flows.len() as f64;
            sums[1] += outcome.links[0].wait_mean_ms;
            sums[2] += flows.iter().map(|flow| flow.queue_drops).sum::<u64>() as f64
                / flows.iter().map(|flow| flow.sent_packets).sum::<u64>() as f64;
        }
        sums.map(|sum| sum / seeds as f64)
    }

    /// Whether each of ours lies in the peers' interval, widened by 3 % (throughput), 10 % or half a
    /// packet's time (wait), 15 % or 2e-4 (p).
    fn inside(&self, ours: [f64; 3]) -> [bool; 3] {
        let packet_ms = 8e3 * 1250.0 / self.rate_bps;
        let tolerances = [(0.03, 0.0), (0.1, 0.5 * packet_ms), (0.15, 2e-4)];
        std::array::from_fn(|index| {
            let ((low, high), (share, floor)) = (self.peers[index], tolerances[index]);
            let (below, above) = (f64::max(share * low, floor), f64::max(share * high, floor));
            (low - below..=high + above).contains(&ours[index])
        })
    }
}

/// How many of 24 points lie inside in throughput, wait and p, by scheme; docs/results/peers.md lists the
/// others.
const AGREE: [(&str, [usize; 3]); 5] = [
    ("NewReno as ns-2", [24, 22, 24]),
    ("NewReno+SACK", [24, 22, 18]),
    ("CUBIC", [22, 20, 21]),
    ("Vegas as ns-3", [23, 19, 19]),
    ("NewReno as ns-2, RED", [23, 23, 23]),
];

#[test]
fn ours_agrees_with_the_peers_on_points_that_nobody_picked() {
    let rows = rows(include_str!("golden/drawn_peers.txt"));
    for (scheme, min) in AGREE {
        let mut counts = [0; 3];
        let own = rows.iter().filter(|row| row.scheme == scheme);
        assert_eq!(own.clone().count(), 24, "{scheme}");
        for row in own {
            let ours = row.ours();
            let inside = row.inside(ours);
            counts = std::array::from_fn(|index| counts[index] + usize::from(inside[index]));
            println!(
                "{scheme}: {:.2} Mb/s {:.1} ms {} packets {} flows loss {}: {ours:.4?} in {:.4?}: \
                 {inside:?}",
                1e-6 * row.rate_bps,
                1e3 * row.rtt_s,
                row.buffer,
                row.flows,
                row.loss,
                row.peers
            );
        }
        println!("{scheme}: {counts:?}");
        assert!((0..3).all(|index| counts[index] >= min[index]), "{scheme}: {counts:?}");
    }
}
