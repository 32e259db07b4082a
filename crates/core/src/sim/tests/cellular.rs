//! Flows behind long queues on cellular traces: what they lose, and what they send for nothing.
use super::*;
use crate::sim::trace::{Cellular, Trace};

/// What a flow does in `seconds` behind `packets` of buffer on the trace of
/// `ackademy trace --mbps MBPS --seconds 120 --seed SEED`.
fn on_a_trace(mbps: f64, seed: u64, packets: u32, seconds: u64, flow: &str) -> Outcome {
    let text = format!(
        "duration_s = {seconds}\n[dumbbell]\nrtt_ms = 60\n[dumbbell.bottleneck]\ntrace = \"t\"\n\
         queue = {{ kind = \"drop_tail\", packets = {packets} }}\n[[flow]]\n{flow}\n"
    );
    let mut load = |_: &str, _| {
        let model = Cellular {
            duration: Span::from_millis(120_000),
            mean: crate::units::Rate::from_mbps(mbps),
            ..Cellular::default()
        };
        Ok(Trace::generate(&model, Seed(seed)).to_text().into_bytes())
    };
    let scenario = Scenario::parse_with(&text, "test", &[], &mut load).expect("valid");
    run(&scenario.network, Seed(1)).expect("built-in controllers")
}

#[test]
fn a_long_queue_on_a_cellular_trace_is_no_storm_of_retransmissions() {
    for controller in ["cubic", "new_reno"] {
        let flow = format!("controller = \"{controller}\"");
        let outcome = on_a_trace(0.7, 5, 1000, 120, &flow);
        let flow = &outcome.flows[0];
        assert!(flow.queue_drops < flow.sent_packets / 4, "{flow:?}");
    }
}
