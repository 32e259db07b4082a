use crate::controllers::test_support::simulated;

fn alone(rate_mbps: f64, rtt_ms: f64, buffer_bdp: f64, loss: f64) -> (f64, f64) {
    let text = format!(
        "duration_s = 30\n[dumbbell]\nrtt_ms = {rtt_ms}\n[dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\n\
         queue = {{ kind = \"drop_tail\", bdp = {buffer_bdp} }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {loss} }}\n[[flow]]\ncontroller = \"own_queue\"\n"
    );
    simulated(&text)[0]
}

#[test]
fn a_flow_alone_fills_the_link_and_not_the_buffer() {
    let (mbps, rtt_ms) = alone(10.0, 40.0, 4.0, 0.0);
    assert!(mbps > 9.3, "{mbps}"); // payload: 9.7 at most
    assert!(rtt_ms < 48.0, "{rtt_ms}");
}

#[test]
fn random_loss_of_five_percent_leaves_most_of_the_link() {
    let (mbps, _) = alone(20.0, 40.0, 4.0, 0.05);
    assert!(mbps > 0.9 * 20.0 * 0.95 * 0.97, "{mbps}");
}

#[test]
fn a_flow_that_comes_late_gets_its_half() {
    let text = "duration_s = 60\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 20\n\
                queue = { kind = \"drop_tail\", bdp = 2 }\n[[flow]]\ncontroller = \"own_queue\"\n\
                [[flow]]\ncontroller = \"own_queue\"\nstart_s = 20\n";
    let flows = simulated(text);
    // 20 s alone and 40 s of a half, or 40 s of a half.
    let expected = [(20.0 + 20.0) / 60.0, 20.0 / 60.0].map(|part| part * 20.0 * 0.97);
    for (flow, expected) in flows.iter().zip(expected) {
        assert!((flow.0 / expected - 1.0).abs() < 0.1, "{} not {expected}", flow.0);
    }
}
