//! What few links do to packets, as flows over them find it.
use super::*;

const ECN: &str = "sender = { ecn = \"classic\" }";

#[test]
fn a_policer_lets_its_rate_through_and_makes_no_queue() {
    let cbr = "traffic = { kind = \"cbr\", rate_mbps = 9, packet_bytes = 1000 }";
    let policed = dumbbell("rate_mbps = 10\npolicer = { rate_mbps = 4, burst_bytes = 50000 }", cbr);
    let outcome = outcome(&policed);
    let (flow, link) = (&outcome.flows[0], &outcome.links[0]);
    let passed = 4e6 / 8.0 * 20.0 + 50_000.0;
    assert!((flow.delivered_bytes as f64 / passed - 1.0).abs() < 0.01, "{flow:?}");
    assert_eq!(link.queue_drops, flow.dropped_packets, "{link:?}");
    assert!(link.wait_mean_ms < 0.01, "{link:?}");
}

#[test]
fn acknowledgements_that_are_released_together_let_data_out_in_bursts() {
    let run = |reverse: &str| {
        outcome(&format!(
            "duration_s = 20\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 20\n\
             [dumbbell.reverse]\n{reverse}\n[[flow]]\n\
             sender = {{ receiver_window_packets = 60 }}\n"
        ))
    };
    // A window below the pipe: without lumps nothing waits.
    let (smooth, lumpy) = (run(""), run("aggregation = { low_ms = 20, high_ms = 20 }"));
    assert!(smooth.links[0].wait_mean_ms < 0.7, "{:?}", smooth.links[0]);
    assert!(lumpy.links[0].wait_mean_ms > 3.0, "{:?}", lumpy.links[0]);
    // Released each 20 ms, acknowledgements arrive at multiples of it: the round trip is 60 ms.
    let rtt = lumpy.flows[0].rtt_mean_ms;
    assert!((45.0..66.0).contains(&rtt), "{rtt}");
}

#[test]
fn retransmissions_of_a_link_delay_packets_in_order_and_lose_few() {
    let cbr = "traffic = { kind = \"cbr\", rate_mbps = 2, packet_bytes = 1000 }";
    let link = "rate_mbps = 10\nretransmit = { ratio = 0.2, delay_ms = 2 }";
    let clean = &outcome(&dumbbell("rate_mbps = 10", cbr)).flows[0];
    let flow = &outcome(&dumbbell(link, cbr)).flows[0];
    assert_eq!(flow.dropped_packets, 0, "{flow:?}");
    // Half a millisecond in the mean, and a little more for those that wait behind.
    let extra = flow.owd_mean_ms - clean.owd_mean_ms;
    assert!((0.5..0.7).contains(&extra), "{extra}");
    let bulk = &outcome(&dumbbell(link, "")).flows[0];
    assert_eq!((bulk.dropped_packets, bulk.recoveries), (0, 0), "{bulk:?}");
    let hopeless = "rate_mbps = 10\nretransmit = { ratio = 0.5, delay_ms = 2, most = 1 }";
    let flow = &outcome(&dumbbell(hopeless, cbr)).flows[0];
    let lost = flow.dropped_packets as f64 / flow.sent_packets as f64;
    assert!((lost - 0.25).abs() < 0.02, "{lost}");
}

#[test]
fn a_sender_behind_a_bleaching_link_gets_no_marks_and_a_queue_behind_it_drops() {
    let codel = "queue = { kind = \"codel\", packets = 1000, ecn = true }";
    let marked = outcome(&dumbbell(&format!("rate_mbps = 5\n{codel}"), ECN));
    assert!(marked.flows[0].ce_marked_bytes > 0 && marked.links[0].queue_drops == 0);
    let bleached = outcome(&dumbbell(&format!("rate_mbps = 5\n{codel}\necn = \"bleach\""), ECN));
    assert!(bleached.links[0].marked_packets > 0, "{:?}", bleached.links[0]);
    assert_eq!(bleached.flows[0].ce_marked_bytes, 0, "{:?}", bleached.flows[0]);
    let before = outcome(&format!(
        "duration_s = 20\n[[link]]\nname = \"bleaches\"\nrate_mbps = 100\necn = \"bleach\"\n\
         [[link]]\nname = \"queues\"\nrate_mbps = 5\ndelay_ms = 20\n{codel}\n\
         [[flow]]\npath = [\"bleaches\", \"queues\"]\n{ECN}\n"
    ));
    let queue = &before.links[1];
    assert!(queue.queue_drops > 0 && queue.marked_packets == 0, "{queue:?}");
}

#[test]
fn forged_marks_slow_a_sender_that_heeds_them_and_no_other() {
    let link = "rate_mbps = 10\nqueue = { kind = \"drop_tail\", packets = 50 }\nforge_ce = 0.05";
    let heeds = outcome(&dumbbell(link, ECN));
    let other = outcome(&dumbbell(link, ""));
    assert!(heeds.flows[0].ce_marked_bytes > 0 && other.flows[0].ce_marked_bytes == 0);
    assert_eq!(heeds.links[0].marked_packets, 0, "marks of the queue are its own");
    let ratio = heeds.flows[0].delivered_bytes as f64 / other.flows[0].delivered_bytes as f64;
    assert!(ratio < 0.8, "{ratio}");
}

#[test]
fn at_a_handover_rate_and_delay_change_together_and_nothing_passes() {
    let network = network(&dumbbell_of(
        "handover = { every_s = 5, low_mbps = 5, high_mbps = 50, low_ms = 10, high_ms = 60, outage_ms = 100 }",
    ));
    let link = &network.links[0];
    let outages: Vec<f64> = link.outages.iter().map(|outage| outage.0.as_secs_f64()).collect();
    assert_eq!(outages, [5.0, 10.0, 15.0]);
    assert_eq!(network.links[1].outages, link.outages, "the way back is interrupted, too");
    let outcome = run(&network, Seed(2)).expect("built-in controllers");
    let flow = &outcome.flows[0];
    assert!(flow.delivered_bytes > 5_000_000, "{flow:?}");
    assert!(flow.rtt_mean_ms > flow.base_rtt_ms + 5.0, "{flow:?}");
}

#[test]
fn between_handovers_rate_and_delay_change_at_the_same_times() {
    let network = network(&dumbbell_of(
        "handover = { every_s = 5, low_mbps = 10, high_mbps = 10, low_ms = 20, high_ms = 20, step_ms = 250, \
         rate_spread = 0.5, delay_spread = 0.25 }",
    ));
    let link = Link::new(&network.links[0], 0, Seed(7), Span::ZERO);
    let at = |step: u64, part: u64| Time(step * 250_000_000 + part);
    let steps = (0..80).map(|step| {
        let rate = link.capacity(at(step, 0), at(step + 1, 0)).0 as f64 * 8.0 / 250_000.0;
        let delay = link.propagation(at(step, 0));
        assert_eq!(delay, link.propagation(at(step, 249_999_999)), "it holds for a step");
        (rate, delay.as_millis_f64())
    });
    let steps: Vec<(f64, f64)> = steps.collect();
    assert!(
        steps.iter().all(|step| (4.99..15.01).contains(&step.0) && (15.0..=25.0).contains(&step.1))
    );
    let differ = |one: f64, other: f64| (one - other).abs() > 1e-6;
    let both = |pair: &[(f64, f64)]| differ(pair[0].0, pair[1].0) && differ(pair[0].1, pair[1].1);
    assert!(steps.windows(2).all(both));
    assert!(steps.iter().any(|step| step.0 > 13.0) && steps.iter().any(|step| step.0 < 7.0));
}

#[test]
fn packets_are_lost_at_handovers_and_at_no_other_time() {
    let cbr = "traffic = { kind = \"cbr\", rate_mbps = 1, packet_bytes = 1000 }";
    let lost = |fields: &str| {
        let handover = "every_s = 5, low_mbps = 10, high_mbps = 20, low_ms = 10, high_ms = 10, outage_ms = 100";
        let link = dumbbell_of(&format!("handover = {{ {handover}{fields} }}"));
        outcome(&format!("{link}{cbr}\n")).links[0].random_losses
    };
    assert_eq!(lost(""), 0);
    // 125 packets a second, three handovers, each of them 0.1 s without and 0.1 s with service.
    assert!(
        (70..=80).contains(&lost(", loss = 1, loss_ms = 100")),
        "{}",
        lost(", loss = 1, loss_ms = 100")
    );
    let half = lost(", loss = 0.5, loss_ms = 100");
    assert!((20..=55).contains(&half), "{half}");
}

/// A dumbbell whose reverse direction varies as its bottleneck.
fn dumbbell_of(bottleneck: &str) -> String {
    format!(
        "duration_s = 20\n[dumbbell]\nreverse_varies = true\n[dumbbell.bottleneck]\n{bottleneck}\n\
         queue = {{ kind = \"drop_tail\", packets = 100 }}\n[[flow]]\n"
    )
}
