//! What links count when they make copies of packets, and what they can carry.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim;
use ackademy::sim::record::Outcome;

fn run(text: &str) -> Outcome {
    let scenario = Scenario::parse(text, "copies").expect("a scenario");
    sim::run(&scenario.network, Seed(1)).expect("built-in controllers")
}

/// Every packet arrives twice at a link of a tenth of the rate with room for two.
fn doubled(traffic: &str) -> Outcome {
    run(&format!(
        "duration_s = 20\n\
         [[link]]\nname = \"first\"\nrate_mbps = 10\ndelay_ms = 5\nduplicate_ratio = 1\n\
         [[link]]\nname = \"second\"\nrate_mbps = 1\ndelay_ms = 5\n\
         queue = {{ kind = \"drop_tail\", packets = 2 }}\n\
         [[flow]]\ncontroller = \"new_reno\"\npath = [\"first\", \"second\"]\n{traffic}"
    ))
}

#[test]
fn a_copy_that_is_dropped_is_not_a_loss_of_what_was_sent() {
    let datagrams = "traffic = { kind = \"cbr\", rate_mbps = 9, packet_bytes = 1000 }";
    for traffic in ["", datagrams] {
        let outcome = doubled(traffic);
        let (flow, second) = (&outcome.flows[0], &outcome.links[1]);
        // A copy comes right behind its packet: the link drops more copies than packets.
        assert!(second.queue_drops > flow.dropped_packets, "{flow:?} {second:?}");
        assert!(flow.dropped_packets <= flow.sent_packets, "{flow:?}");
        assert!(flow.dropped_packets <= flow.sent_packets - flow.received_packets / 2, "{flow:?}");
    }
}

#[test]
fn no_link_delivers_more_than_its_capacity_however_the_run_ends() {
    for nanos in 10..90 {
        let outcome = run(&format!(
            "duration_s = 0.10000{nanos}7\n[dumbbell]\nrtt_ms = 10\naccess_mbps = 97.3\n\
             [dumbbell.bottleneck]\nrate_mbps = 7.77\n\
             queue = {{ kind = \"drop_tail\", packets = 50 }}\n\
             [[flow]]\ncontroller = \"new_reno\"\n"
        ));
        for link in &outcome.links {
            assert!(link.delivered_bytes <= link.capacity_bytes, "{link:?}");
        }
    }
}
