//! What happens to acknowledgements on their way, and data beside them.
use super::*;

fn over(reverse: &str, flows: &str) -> Outcome {
    outcome(&format!(
        "duration_s = 30\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         queue = {{ kind = \"drop_tail\", packets = 100 }}\n[dumbbell.reverse]\n{reverse}\n{flows}"
    ))
}

#[test]
fn while_all_acknowledgements_are_lost_a_sender_times_out_and_then_it_goes_on() {
    let whole = over("", "[[flow]]\n");
    let flow = &whole.flows[0];
    assert_eq!((flow.timeouts, whole.links[1].random_losses), (0, 0), "{flow:?}");
    for (seconds, timeouts) in [(1, 2), (5, 4), (15, 6)] {
        let loss = format!(
            "loss = {{ kind = \"bernoulli\", ratio = 1, from_s = 10, until_s = {} }}",
            10 + seconds
        );
        let blind = over(&loss, "[[flow]]\n");
        let flow = &blind.flows[0];
        assert!(blind.links[1].random_losses > 0, "{:?}", blind.links[1]);
        // Each time-out is twice the one before.
        assert!(flow.timeouts.abs_diff(timeouts) <= 1, "{seconds} s: {flow:?}");
        // Beyond a window nothing is sent meanwhile, and after the next time-out as much as before.
        let lost_s = (whole.flows[0].delivered_bytes - flow.delivered_bytes) as f64 * 8e-7;
        let seconds = f64::from(seconds);
        assert!((0.6 * seconds..2.2 * seconds + 1.0).contains(&lost_s), "{seconds} s: {lost_s}");
    }
}

#[test]
fn a_narrow_reverse_direction_sets_the_pace_of_the_data() {
    // One acknowledgement of 52 bytes for two packets: 100 kb/s of them stand for 5.77 Mb/s.
    let narrow = over("rate_mbps = 0.1", "[[flow]]\n");
    let mbps = narrow.flows[0].delivered_bytes as f64 * 8e-6 / 30.0;
    assert!((mbps / (0.1 * 3000.0 / 52.0) - 1.0).abs() < 0.05, "{mbps} Mb/s");
}

#[test]
fn acknowledgements_wait_behind_the_data_of_flows_in_the_other_direction() {
    let queue = "queue = { kind = \"drop_tail\", packets = 100 }";
    let alone = over(queue, "[[flow]]\n");
    let both = over(queue, "[[flow]]\n[[flow]]\nbackward = true\n");
    assert!(alone.links[1].wait_mean_ms < 0.1, "{:?}", alone.links[1]);
    let waits = both.links[0].wait_mean_ms + both.links[1].wait_mean_ms;
    assert!(both.links[1].wait_mean_ms > 10.0, "{:?}", both.links[1]);
    for flow in &both.flows {
        let queued = flow.rtt_mean_ms - flow.base_rtt_ms;
        assert!((queued / waits - 1.0).abs() < 0.2, "{queued} of {waits} ms: {flow:?}");
    }
    assert!(both.flows[1].delivered_bytes > 20_000_000, "{:?}", both.flows[1]);
}
