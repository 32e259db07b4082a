use super::*;
use crate::params::ParamError;
use crate::scenario::Scenario;
use crate::sensing::sends::FEATURES;
use crate::sim::{self, builtin};
use crate::units::Time;

/// Two NewReno flows behind a short buffer.
const CONTENTION: &str = "duration_s = 60\n\
    [dumbbell]\nrtt_ms = 50\n\
    bottleneck = { rate_mbps = 5, queue = { kind = \"drop_tail\", packets = 15 } }\n\
    [sender]\nrecovery = \"ns2\"\n\
    [[flow]]\ncount = 2\nstart_step_s = 0.1\n";

fn network(text: &str) -> NetworkPlan {
    Scenario::parse(text, "test").unwrap().network
}

fn collected(text: &str, keep_one_in: u64) -> Sends {
    let sampling = Sampling { seed: Seed(1), keep_one_in };
    let mut drive = |sim: &mut Sim| -> Result<(), ParamError> {
        sim.run_until(Time::NEVER);
        Ok(())
    };
    collect(&network(text), sampling, &mut builtin, &mut drive).unwrap()
}

/// Rows of a flow.
fn rows(sends: &Sends, flow: u32) -> impl Iterator<Item = usize> {
    (0..sends.flow.len()).filter(move |&row| sends.flow[row] == flow)
}

#[test]
fn every_transmission_and_every_drop_of_every_flow_is_there_under_both_recoveries() {
    for text in [CONTENTION, &CONTENTION.replace("ns2", "sack")] {
        let sends = collected(text, 1);
        let outcome = sim::run(&network(text), Seed(1)).unwrap();
        for (index, flow) in outcome.flows.iter().enumerate() {
            let rows: Vec<usize> = rows(&sends, index as u32).collect();
            assert_eq!(rows.len() as u64, flow.sent_packets);
            let dropped = rows.iter().filter(|&&row| sends.dropped[row]).count();
            assert_eq!(dropped as u64, flow.queue_drops);
            assert!(dropped > 10);
        }
        assert_eq!(sends.sends, sends.flow.len() as u64);
        assert_eq!(sends.features.len(), sends.flow.len() * FEATURES);
    }
}

#[test]
fn a_flow_alone_loses_only_packets_that_find_the_buffer_full() {
    let alone = CONTENTION.replace("count = 2", "count = 1");
    let sends = collected(&alone, 1);
    // 15 packets in the system at 5 Mb/s, 1260 bytes each: what follows them waits at least for 14.
    let full_s = 0.050 + 14.0 * 1260.0 * 8.0 / 5e6;
    let rtt = |row: usize| f64::from(sends.features[row * FEATURES + 29]);
    let mut drops = 0;
    for row in (0..sends.flow.len()).filter(|&row| sends.dropped[row] && sends.phase[row] == 1) {
        drops += 1;
        assert!(rtt(row) > full_s - 0.003, "row {row}: {}", rtt(row));
    }
    assert!(drops > 5, "{drops}");
}

#[test]
fn a_thinned_set_keeps_every_drop_and_a_share_of_the_rest() {
    let (all, thin) = (collected(CONTENTION, 1), collected(CONTENTION, 20));
    let drops = |sends: &Sends| sends.dropped.iter().filter(|&&dropped| dropped).count();
    assert_eq!(drops(&thin), drops(&all));
    assert_eq!((thin.sends, thin.drops), (all.sends, all.drops));
    let share = (thin.flow.len() - drops(&thin)) as f64 / (all.flow.len() - drops(&all)) as f64;
    assert!((0.04..0.06).contains(&share), "{share}");
    assert_eq!(collected(CONTENTION, 20), thin);
}

#[test]
fn the_order_of_a_packet_lies_within_the_window() {
    let sends = collected(CONTENTION, 1);
    for row in (0..sends.flow.len()).filter(|&row| sends.phase[row] == 1) {
        let (cwnd, order) = (sends.features[row * FEATURES], sends.features[row * FEATURES + 1]);
        // Limited transmit sends two beyond it (RFC 3042).
        assert!(order >= 1.0 && order <= cwnd.floor() + 2.0, "{order} of {cwnd}");
    }
}

#[test]
fn a_send_hook_per_acknowledgement_does_not_change_what_is_recorded() {
    let per_ack =
        CONTENTION.replace("recovery = \"ns2\"", "recovery = \"ns2\"\nsend_hook = \"ack\"");
    assert_ne!(per_ack, CONTENTION);
    assert_eq!(collected(&per_ack, 20), collected(CONTENTION, 20));
}

#[test]
fn packets_that_a_link_doubles_are_labelled_once_and_to_the_end() {
    let text = "duration_s = 60\n\
        [[link]]\nname = \"a\"\nrate_mbps = 20\ndelay_ms = 10\nduplicate_ratio = 0.02\n\
        [[link]]\nname = \"b\"\nrate_mbps = 5\ndelay_ms = 10\n\
        queue = { kind = \"drop_tail\", packets = 10 }\n\
        [[link]]\nname = \"back\"\nrate_mbps = 100\ndelay_ms = 10\n\
        [[flow]]\npath = [\"a\", \"b\"]\nreverse = [\"back\"]\n";
    let sends = collected(text, 1);
    let flow = &sim::run(&network(text), Seed(1)).unwrap().flows[0];
    assert_eq!(sends.sends, flow.sent_packets);
    assert!(sends.drops <= flow.queue_drops && sends.drops * 10 > flow.queue_drops * 8);
    let last = (0..sends.flow.len()).rfind(|&row| sends.dropped[row]).unwrap();
    assert!(sends.time_s[last] > 50.0, "{}", sends.time_s[last]);
}

/// Counts the ends that it is told of.
struct Ended(Arc<Mutex<u32>>);

impl Coupled for Ended {
    fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
    fn subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, _: &Ack) {}
    fn on_loss(&mut self, _: SubflowId, _: &Loss) {}
    fn control(&self, _: SubflowId) -> Control {
        Control::window(crate::units::Bytes(15_000))
    }
    fn on_end(&mut self, _: SubflowId, _: Time) {
        *self.0.lock().unwrap() += 1;
    }
}

#[test]
fn a_controller_whose_sends_are_collected_is_told_of_the_end_of_its_transfer() {
    let text = CONTENTION
        .replace("count = 2", "traffic = { kind = \"fixed\", bytes = 20000 }")
        .replace("start_step_s = 0.1\n", "");
    let ends = Arc::new(Mutex::new(0));
    let mut build = |_: &ConnectionPlan| -> Result<Box<dyn Coupled>, ParamError> {
        Ok(Box::new(Ended(Arc::clone(&ends))))
    };
    let mut drive = |sim: &mut Sim| -> Result<(), ParamError> {
        sim.run_until(Time::NEVER);
        Ok(())
    };
    let sampling = Sampling { seed: Seed(1), keep_one_in: 1 };
    collect(&network(&text), sampling, &mut build, &mut drive).unwrap();
    assert_eq!(*ends.lock().unwrap(), 2, "once in each of the two passes");
}
