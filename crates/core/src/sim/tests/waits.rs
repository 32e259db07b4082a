//! What links report of their queues, over every kind of queue.
use super::outcome;

/// Every kind of queue.
const QUEUES: [&str; 9] = [
    "kind = \"drop_tail\", packets = 100",
    "kind = \"step\", packets = 100, mark_packets = 50",
    "kind = \"red\", packets = 100, min_packets = 10, max_packets = 30",
    "kind = \"pie\", packets = 1000",
    "kind = \"codel\", packets = 1000",
    "kind = \"fq_codel\", packets = 1000",
    "kind = \"fq_codel\", packets = 1000, device_packets = 5",
    "kind = \"dualpi2\", packets = 1000",
    "kind = \"drop_tail\", bytes = 100000",
];

/// One link of 10 Mb/s and 5 ms with datagrams of 1 ms; all have left by the end.
fn with_rate(queue: &str, rate_mbps: f64) -> String {
    format!(
        "duration_s = 20\nsample_interval_ms = 1.37\n[[link]]\nname = \"q\"\nrate_mbps = 10\ndelay_ms = 5\n\
         queue = {{ {queue} }}\n[[flow]]\npath = [\"q\"]\nstop_s = 15\n\
         traffic = {{ kind = \"cbr\", rate_mbps = {rate_mbps}, packet_bytes = 1250 }}\n"
    )
}

#[test]
fn a_link_reports_the_mean_wait_of_what_it_transmitted() {
    for queue in QUEUES {
        let outcome = outcome(&with_rate(queue, 15.0));
        let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
        assert!(link.queue_drops > 0, "{queue}");
        let expected = flow.owd_mean_ms - 1.0 - 5.0;
        assert!((link.wait_mean_ms - expected).abs() < 1e-3, "{queue}: {link:?} {expected}");
    }
}

#[test]
fn a_queues_samples_count_the_packet_in_transmission_for_every_kind() {
    for queue in QUEUES {
        let outcome = outcome(&with_rate(queue, 9.9));
        let series = &outcome.link_series;
        let samples: Vec<u64> = series
            .time_s
            .iter()
            .zip(&series.queue_packets)
            .filter(|(at, _)| **at < 15.0)
            .map(|(_, &packets)| packets)
            .collect();
        let mean = samples.iter().sum::<u64>() as f64 / samples.len() as f64;
        assert!((0.97..=1.0).contains(&mean), "{queue}: {mean}");
    }
}
