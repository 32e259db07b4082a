//! Flows that announce ECT(1) beside classic flows over `dualpi2`.
use super::*;

fn shared(fields: &str, flows: &str) -> Outcome {
    outcome(&format!(
        "duration_s = 60\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 40\n\
         queue = {{ kind = \"dualpi2\", packets = 2000{fields} }}\n{flows}"
    ))
}

const LOW: &str = "[[flow]]\ncontroller = \"dctcp\"\nsender = { ecn = \"l4s\", pacing = true }\n";

fn queued_ms(flow: &crate::sim::record::FlowRow) -> f64 {
    flow.rtt_mean_ms - flow.base_rtt_ms
}

#[test]
fn low_latency_packets_hardly_wait_while_classic_ones_wait_for_the_target() {
    for (classic, marked) in [("off", false), ("classic", true)] {
        let other =
            format!("[[flow]]\ncontroller = \"new_reno\"\nsender = {{ ecn = \"{classic}\" }}\n");
        let both = shared("", &format!("{LOW}{other}"));
        let [low, other] = &both.flows[..] else { panic!("two flows") };
        assert!(queued_ms(low) < 3.0, "{classic}: {} ms", queued_ms(low));
        assert!((8.0..22.0).contains(&queued_ms(other)), "{classic}: {} ms", queued_ms(other));
        assert_eq!(low.dropped_packets, 0, "{low:?}");
        assert_eq!(other.ce_marked_bytes > 0, marked, "{other:?}");
        assert!(low.ce_marked_bytes > 0, "{low:?}");
    }
}

/// RFC 9332 section 2.1: the square makes up for the root in a classic flow's response.
#[test]
fn the_coupling_gives_a_scalable_and_a_classic_flow_the_same_order_of_rate() {
    let ratio = |fields: &str| {
        let both = shared(fields, &format!("{LOW}[[flow]]\ncontroller = \"new_reno\"\n"));
        let carried = both.links[0].delivered_bytes as f64 / both.links[0].capacity_bytes as f64;
        assert!(carried > 0.9, "{fields}: {carried}");
        both.flows[0].delivered_bytes as f64 / both.flows[1].delivered_bytes as f64
    };
    assert!((0.5..2.0).contains(&ratio("")), "{}", ratio(""));
    let uncoupled = ratio(", coupling = 0.001");
    assert!(uncoupled > 3.0, "{uncoupled}");
}

#[test]
fn datagrams_announce_what_their_flow_says() {
    let waits = |ecn: &str| {
        let cbr = |rate, sender: &str| {
            format!(
                "[[flow]]\n{sender}traffic = {{ kind = \"cbr\", rate_mbps = {rate}, packet_bytes = 1000 }}\n"
            )
        };
        let low = cbr(4, &format!("sender = {{ ecn = \"{ecn}\" }}\n"));
        let both = shared("", &format!("{low}{}", cbr(40, "")));
        (both.flows[0].owd_mean_ms - 20.0, both.links[0].marked_packets)
    };
    let (off, classic, l4s) = (waits("off"), waits("classic"), waits("l4s"));
    assert!(off.0 > 10.0 && off.1 == 0, "{off:?}");
    assert!(classic.0 > 10.0 && classic.1 > 0, "{classic:?}");
    // Apart from the classic queue a packet waits for those in transmission.
    assert!(l4s.0 < 1.0, "{l4s:?}");
}
