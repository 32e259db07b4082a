//! What receivers that misbehave gain from NewReno, which counts bytes, and that transfers end all the same.
use super::*;
use crate::controllers;
use crate::sim::record::FlowRow;

/// Two flows of NewReno share a link; `sender` is what the first one's transport does, the honest one acknowledges
/// every packet, too.
fn shared(queue: &str, sender: &str, seed: u64) -> FlowRow {
    let text = format!(
        "duration_s = 30\n[sender]\nack_every = 1\necn = \"classic\"\n[dumbbell]\nrtt_ms = 40\n\
         [dumbbell.bottleneck]\nrate_mbps = 10\nqueue = {{ {queue} }}\n[[flow]]\nstart_spread_s = 1\n\
         sender = {{ receiver_window_packets = 200, {sender} }}\n[[flow]]\nstart_spread_s = 1\n"
    );
    let outcome = run(&network(&text), Seed(seed)).expect("a built-in controller");
    outcome.flows.into_iter().next().expect("two flows")
}

/// Bytes delivered to a receiver that misbehaves over those to an honest one, over four seeds.
fn gain(queue: &str, sender: &str) -> f64 {
    let bytes = |sender: &str| -> f64 {
        (1..=4).map(|seed| shared(queue, sender, seed).delivered_bytes as f64).sum()
    };
    bytes(sender) / bytes("")
}

const DROPS: &str = "kind = \"drop_tail\", bdp = 1";
const MARKS: &str = "kind = \"step\", mark_packets = 30, packets = 1000";

#[test]
fn by_dividing_acknowledgements_nothing_is_gained_from_a_sender_that_counts_bytes() {
    for parts in [2, 20] {
        let gain = gain(DROPS, &format!("divide_acks = {parts}"));
        assert!((0.9..1.1).contains(&gain), "{parts} parts: {gain}");
    }
}

#[test]
fn who_hides_losses_takes_most_of_the_link_and_is_sent_nothing_again() {
    let gain = gain(DROPS, "hide_losses = true");
    assert!(gain > 1.5, "{gain}");
    let flow = shared(DROPS, "hide_losses = true", 1);
    assert!(flow.dropped_packets > 1000 && flow.retransmitted_packets == 0, "{flow:?}");
}

#[test]
fn who_acknowledges_ahead_takes_most_of_the_link_with_round_trips_shorter_than_the_path() {
    let gain = gain(DROPS, "optimistic_acks = 20");
    assert!(gain > 1.5, "{gain}");
    let flow = shared(DROPS, "optimistic_acks = 20", 1);
    assert!(flow.rtt_min_ms < 0.8 * flow.base_rtt_ms, "{flow:?}");
}

#[test]
fn who_hides_marks_takes_most_of_a_link_that_marks() {
    let gain = gain(MARKS, "hide_marks = true");
    assert!(gain > 1.5, "{gain}");
    let marked = |sender| shared(MARKS, sender, 1).ce_marked_bytes;
    assert!(marked("") > 0 && marked("hide_marks = true") == 0);
}

#[test]
fn a_transfer_ends_whatever_its_receiver_does() {
    for sender in [
        "",
        "divide_acks = 3",
        "hide_losses = true",
        "optimistic_acks = 5",
        "optimistic_acks = 1000",
        "optimistic_acks = 1000, divide_acks = 7, hide_losses = true, ack_every = 4",
    ] {
        let outcome = outcome(&dumbbell(
            "rate_mbps = 10\nloss = { kind = \"bernoulli\", ratio = 0.02 }",
            &format!("traffic = {{ kind = \"fixed\", bytes = 300000 }}\nsender = {{ {sender} }}"),
        ));
        let flow = &outcome.flows[0];
        assert_eq!(flow.transfers, 1, "{sender}: {flow:?}");
        let hides = sender.contains("hide") || sender.contains("optimistic");
        assert_eq!(flow.goodput_bytes == 300_000, !hides, "{sender}: {flow:?}");
        // The last acknowledgements are of data that there is not.
        assert_eq!(flow.unsent_acks > 0, sender.contains("optimistic"), "{sender}: {flow:?}");
    }
}

#[test]
fn false_records_are_drawn_by_the_seed_and_stop_no_controller() {
    let text = |name: &str, ratio: f64| {
        dumbbell(
            "rate_mbps = 10\nqueue = { kind = \"drop_tail\", bdp = 1 }",
            &format!(
                "controller = \"{name}\"\n\
                 sender = {{ fuzz_records = {ratio}, receiver_window_packets = 1000 }}"
            ),
        )
    };
    for spec in controllers::ALL.iter().filter(|spec| !spec.params.iter().any(|p| p.kind.is_file()))
    {
        let first = outcome(&text(spec.name, 0.2));
        assert!(first.flows[0].delivered_bytes > 0, "{}: {:?}", spec.name, first.flows[0]);
        let again = outcome(&text(spec.name, 0.2));
        let counts = |outcome: &Outcome| (outcome.events, outcome.flows[0].sent_bytes);
        assert_eq!(counts(&first), counts(&again), "{}", spec.name);
    }
    let events = |ratio| outcome(&text("bbr1", ratio)).events;
    assert_ne!(events(0.0), events(0.2));
}
