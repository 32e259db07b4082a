//! More flows than slots: who gets one.
use crate::bed::{Bed, SECOND, SOON, wait_for};
use crate::traffic::{Pattern, STEADY, Traffic};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::time::Duration;

const NOBODY: u32 = 65_534;
/// Some bytes, and nothing more for the life of the test.
const IDLE: Pattern = Pattern { chunk: 100, pause: Duration::from_secs(8) };

/// Lets the flows that are open now seem to have told nothing for as long as the machine runs.
fn age(bed: &Bed) {
    const UPDATED_AT: std::ops::Range<usize> = 16..24;
    let flows = MapHandle::from_pinned_path(bed.pins().join("flows")).unwrap();
    for slot in 0..flows.max_entries() {
        let mut value = flows.lookup(&slot.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        value[UPDATED_AT].fill(0);
        flows.update(&slot.to_ne_bytes(), &value, MapFlags::ANY).unwrap();
    }
}

/// How many flows of a user the agent governs.
fn governed(bed: &Bed, user: u32) -> usize {
    let flows = bed.status().flows;
    flows.iter().filter(|flow| flow.user == user && flow.state == "agent").count()
}

#[test]
fn idle_flows_give_their_slots_to_flows_that_send() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&["--slots", "4"]);
    let idle = Traffic::start(&bed, 4, IDLE);
    bed.wait_until_all(4, "agent");
    let busy = Traffic::of_user(0, &bed, 3, STEADY);
    wait_for("flows without a slot", SOON, || bed.status().counts.without_slot == 3);
    age(&bed);
    wait_for("their slots are taken", SOON, || bed.status().counts.reassigned == 3);
    wait_for("busy flows decide", SOON, || {
        bed.status().flows.iter().filter(|flow| flow.samples > 20 && flow.state == "agent").count()
            >= 3
    });
    let status = bed.status();
    assert_eq!((status.flows.len(), status.counts.opened - status.counts.closed), (4, 4));
    let text = status.to_string();
    assert!(text.contains("scarce: 3 went to flows"), "{text}");
    let said = daemon.said();
    assert_eq!(said.matches("all 4 slots are taken").count(), 1, "once a minute: {said}");
    assert!(busy.finish() < SECOND);
    idle.finish();
    wait_for("closed flows leave the table", SOON, || bed.status().flows.is_empty());
    daemon.stop();
    bed.finish();
}

#[test]
fn users_share_the_slots_however_many_flows_each_has() {
    let Some(bed) = Bed::new() else { return };
    let daemon = bed.daemon(&["--slots", "8"]);
    share_eight(&bed);
    daemon.stop();
    bed.finish();
}

#[test]
fn users_share_the_slots_of_what_decides_in_the_kernel() {
    let Some(bed) = Bed::new() else { return };
    let law = ["--in-kernel", "--cc", "own-queue", "--slots", "8"];
    assert!(bed.output(&law).status.success());
    share_eight(&bed);
    bed.finish();
}

fn share_eight(bed: &Bed) {
    let many = Traffic::of_user(NOBODY, bed, 20, STEADY);
    wait_for("all slots are of one user", SOON, || governed(bed, NOBODY) == 8);
    let few = Traffic::start(bed, 6, STEADY);
    wait_for("equal shares", SOON, || governed(bed, NOBODY) == 4 && governed(bed, 0) == 4);
    assert_eq!(bed.status().counts.reassigned, 4, "a share that is reached is kept");
    assert!(few.finish() < SECOND);
    wait_for("what is free is used", SOON, || governed(bed, NOBODY) == 8);
    assert!(many.finish() < SECOND);
    wait_for("closed flows leave the table", SOON, || bed.status().flows.is_empty());
    let counts = bed.status().counts;
    assert_eq!(counts.opened, counts.closed);
}
