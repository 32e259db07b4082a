//! Why a run is not what its scenario says.
use super::governors::{Closed, is_governed};
use super::plan::Flow;
use super::senders::Sent;
use crate::kernel::record::Totals;
use crate::link::delays::Delays;
use crate::link::emulator;
use ackademy::units::Span;

/// Of the emulated network: it was late, or lost what no link decided to.
pub fn network_faults(lateness_max: Span, emulated: &emulator::Report) -> Vec<String> {
    let mut faults = Vec::new();
    let late = emulated.lateness.quantile(0.99);
    if late > lateness_max {
        faults.push(format!("p99 lateness {late} exceeds {lateness_max}"));
    }
    if emulated.missed > 0 {
        faults.push(format!("{} packets were not read in time", emulated.missed));
    }
    if emulated.network.refused > 0 {
        faults.push(format!("{} packets found no memory", emulated.network.refused));
    }
    faults
}

/// Of the daemon: controllers that answer late decide for a network that has changed, on a busy machine alone. They may
/// take some of the time that a packet may be late, since a policy is evaluated meanwhile.
pub fn answer_faults(lateness_max: Span, answers: &Delays) -> Vec<String> {
    let (late, most) = (answers.quantile(0.99), Span(lateness_max.0 * ANSWER_PER_LATENESS));
    let is_late = late > most;
    is_late
        .then(|| format!("p99 of the controllers' answers {late} exceeds {most}"))
        .into_iter()
        .collect()
}

/// How much later than a packet a controller's answer may be.
const ANSWER_PER_LATENESS: u64 = 5;

/// Of this project's controllers: a flow that sent was not under its own, all the time.
pub fn control_faults(
    flows: &[Flow],
    sent: &Sent,
    closed: &Closed,
    served: Option<&Totals>,
) -> Vec<String> {
    let mut faults = Vec::new();
    let subflows = flows.iter().flat_map(|flow| flow.subflows.iter().map(move |it| (flow, it)));
    for (index, ((flow, subflow), row)) in subflows.zip(&sent.rows).enumerate() {
        if !is_governed(flow) || row.sent_packets == 0 {
            continue;
        }
        match closed.served.get(&index) {
            // A thread that panicked reports nothing.
            None => faults.push(format!("flow {:?} lost its controller", subflow.name)),
            Some(served) if served.invalid > 0 => faults.push(format!(
                "flow {:?}: {} decisions that no sender can obey",
                subflow.name, served.invalid
            )),
            Some(served) if served.fallbacks > 0 => faults.push(format!(
                "flow {:?} fell back to CUBIC {} times for want of an answer",
                subflow.name, served.fallbacks
            )),
            Some(_) => {}
        }
    }
    let without_slot = served.map_or(0, |totals| totals.counts.without_slot);
    if without_slot > 0 {
        faults.push(format!("{without_slot} connections found no place for a controller"));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::record::{Counts, LATENCY_BUCKETS};
    use crate::lab::plan::{Family, Plan};
    use crate::lab::result::AgentFlow;
    use ackademy::rng::Seed;
    use ackademy::scenario::Scenario;
    use ackademy::sim::record::{FlowRow, FlowSeries};

    fn totals(without_slot: u64) -> Totals {
        let counts = Counts { opened: 2, closed: 2, without_slot, ..Counts::default() };
        Totals { counts, latency: [0; LATENCY_BUCKETS] }
    }

    /// Two flows under controllers, one under the kernel's, and a governed one that never began.
    fn flows() -> (Vec<Flow>, Sent) {
        let text = "duration_s = 9\n[dumbbell]\nrtt_ms = 20\nbottleneck = { rate_mbps = 8 }\n\
                    [[flow]]\nname = \"a\"\n[[flow]]\nname = \"b\"\n\
                    [[flow]]\nname = \"c\"\ncontroller = \"kernel:cubic\"\n\
                    [[flow]]\nname = \"d\"\nstart_s = 8\n";
        let network = Scenario::parse(text, "test").expect("a scenario").network;
        let plan = Plan::new(&network, Seed(1), Family::V4).expect("a plan");
        let row = |sent_packets| FlowRow { sent_packets, ..FlowRow::default() };
        let rows = [9, 9, 9, 0].map(row).into();
        let sent = Sent {
            rows,
            connections: Vec::new(),
            series: FlowSeries::default(),
            failures: Vec::new(),
        };
        (plan.flows, sent)
    }

    fn closed(invalid: [Option<u64>; 2]) -> Closed {
        let mut closed = Closed::default();
        for (index, invalid) in invalid.into_iter().enumerate() {
            let Some(invalid) = invalid else { continue };
            let flow = AgentFlow {
                flow: String::new(),
                samples: 9,
                decisions: 9,
                fallbacks: 0,
                refused: 0,
                invalid,
            };
            closed.served.insert(index, flow);
        }
        closed
    }

    #[test]
    fn flows_that_kept_their_controllers_are_no_fault() {
        let (flows, sent) = flows();
        let faults = control_faults(&flows, &sent, &closed([Some(0); 2]), Some(&totals(0)));
        assert_eq!(faults, Vec::<String>::new());
    }

    #[test]
    fn a_flow_that_lost_its_controller_is_named() {
        let (flows, sent) = flows();
        let faults = control_faults(&flows, &sent, &closed([Some(0), None]), Some(&totals(0)));
        assert_eq!(faults, ["flow \"b\" lost its controller"]);
    }

    #[test]
    fn decisions_that_no_sender_can_obey_are_a_fault() {
        let (flows, sent) = flows();
        let faults = control_faults(&flows, &sent, &closed([Some(3), Some(0)]), Some(&totals(0)));
        assert_eq!(faults, ["flow \"a\": 3 decisions that no sender can obey"]);
    }

    #[test]
    fn a_flow_that_was_under_cubic_for_a_while_is_a_fault() {
        let (flows, sent) = flows();
        let mut closed = closed([Some(0); 2]);
        closed.served.get_mut(&1).expect("given").fallbacks = 2;
        let faults = control_faults(&flows, &sent, &closed, Some(&totals(0)));
        assert_eq!(faults, ["flow \"b\" fell back to CUBIC 2 times for want of an answer"]);
    }

    #[test]
    fn controllers_that_answer_late_are_a_fault() {
        let answers = |late: usize| {
            let mut answers = Delays::default();
            (0..100 - late).for_each(|_| answers.record(Span::from_millis(1)));
            (0..late).for_each(|_| answers.record(Span::from_millis(40)));
            answer_faults(Span::from_millis(2), &answers)
        };
        assert_eq!(answers(1), Vec::<String>::new());
        let faults = answers(5);
        assert!(faults.len() == 1 && faults[0].ends_with("exceeds 10.000 ms"), "{faults:?}");
        assert_eq!(answer_faults(Span::ZERO, &Delays::default()), Vec::<String>::new());
    }

    #[test]
    fn connections_without_a_slot_are_a_fault() {
        let (flows, sent) = flows();
        let served = totals(2);
        let faults = control_faults(&flows, &sent, &closed([Some(0); 2]), Some(&served));
        assert_eq!(faults, ["2 connections found no place for a controller"]);
    }
}
