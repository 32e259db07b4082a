//! Packets that arrive the instant others leave. With a buffer of two packets, whether such a packet
//! finds room decides everything: rounding must not.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;

/// Mb/s of one NewReno flow by ns-2's rules over 100 s, and what it found at the bottleneck.
fn throughput_mbps(buffer: &str, rtt_ms: &str, rate_mbps: &str) -> f64 {
    let text = format!(
        "duration_s = 100\n[dumbbell]\nrtt_ms = {rtt_ms}\naccess_mbps = 100\n\
         [dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\n\
         queue = {{ kind = \"drop_tail\", packets = {buffer} }}\n\
         [sender]\nrecovery = \"ns2\"\n[[flow]]\ncontroller = \"new_reno\"\n"
    );
    let scenario = Scenario::parse(&text, "ties").expect("a scenario");
    let outcome = sim::run(&scenario.network, Seed(1)).expect("built-in controllers");
    outcome.flows[0].delivered_bytes as f64 * 8e-6 / outcome.flows[0].active_s
}

/// ns-2.35 at the rates of `tools/ns_peers/ns2/ties.sh`, which wrote the file: the least and the most over five
/// round trips that differ by up to 10 ns, since ns-2's own ties hang on the rounding of doubles.
#[test]
fn a_short_buffer_carries_what_it_does_in_ns2_whatever_the_rate() {
    let mut cases = 0;
    for line in include_str!("golden/ns2_ties.txt").lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [buffer, rtt_ms, rate_mbps, low, high] = words[..] else {
            panic!("{line}: not five words");
        };
        let bound = |word: &str| word.parse::<f64>().expect("a number");
        let ours = throughput_mbps(buffer, rtt_ms, rate_mbps);
        assert!(
            (0.97 * bound(low)..=1.03 * bound(high)).contains(&ours),
            "{rate_mbps} Mb/s, {rtt_ms} ms, {buffer} packets: {ours} Mb/s, ns-2 {low} to {high}"
        );
        cases += 1;
    }
    assert_eq!(cases, 60);
}

#[test]
fn a_tenth_of_a_megabit_changes_little_however_long_a_packet_takes() {
    // 1260 bytes take 1.26 ms at 8.0 Mb/s and 1.2444... ms at 8.1.
    let (whole, fraction) = (throughput_mbps("2", "77", "8.0"), throughput_mbps("2", "77", "8.1"));
    assert!((1.0..1.03).contains(&(fraction / whole)), "{whole} then {fraction} Mb/s");
}
