//! Subflows of the kernel's MPTCP under one governor, over two emulated paths. Needs root, BTF, TUN and MPTCP.
mod common;

use ackademy::control::{Ack, Control, Coupled, FlowInfo, Loss, SubflowId};
use ackademy::controllers;
use ackademy::params::Params;
use ackademy::units::Bytes;
use ackademy_net::kernel::{FlowKey, FlowTotals, Group};
use ackademy_net::lab::mptcp_info::Connection;
use common::bench::Bench;
use common::kernel::Served;
use common::machine::{best_of, governs_mptcp, kept};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const PACKET: u64 = 1500;
/// What all subflows together may have in flight.
const BUDGET: u64 = 120;

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// Two paths, 20 ms each.
fn bench(label: &str) -> Bench {
    let queue = "queue = { kind = \"drop_tail\", packets = 200 }";
    let link = format!("rate_mbps = 20\ndelay_ms = 15\n{queue}");
    Bench::two_paths(label, [&link, &link])
}

/// Shares [`BUDGET`] among its subflows in equal parts: a subflow that joins or leaves changes the windows of
/// the others.
struct Shared {
    open: BTreeSet<SubflowId>,
    /// The most that it had at a time.
    most: Arc<AtomicUsize>,
}

impl Coupled for Shared {
    fn subflow_added(&mut self, id: SubflowId, _: &FlowInfo) {
        assert!(self.open.insert(id), "{id:?} is there already");
        self.most.fetch_max(self.open.len(), Ordering::Relaxed);
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        assert!(self.open.remove(&id), "{id:?} is not there");
    }
    fn on_ack(&mut self, id: SubflowId, _: &Ack) {
        assert!(self.open.contains(&id), "{id:?} is not there");
    }
    fn on_loss(&mut self, id: SubflowId, _: &Loss) {
        assert!(self.open.contains(&id), "{id:?} is not there");
    }
    fn control(&self, _: SubflowId) -> Control {
        Control::window(Bytes(BUDGET / self.open.len().max(1) as u64 * PACKET))
    }
}

/// Serves one `Shared` for each group; counts governors, and the most subflows that one had at a time.
fn shared(label: &str, group: Group) -> (Served, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (governors, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (made, shared) = (Arc::clone(&governors), Arc::clone(&most));
    let served = Served::grouped(label, group, move |_, _| {
        made.fetch_add(1, Ordering::Relaxed);
        Some(Box::new(Shared { open: BTreeSet::new(), most: Arc::clone(&shared) }))
    });
    (served, governors, most)
}

/// Windows of the subflows in packets, by number.
fn windows(connection: &Connection) -> Vec<u32> {
    connection.subflows.iter().map(|subflow| subflow.tcp.snd_cwnd).collect()
}

fn tokens(closed: &[(FlowKey, FlowTotals)]) -> BTreeSet<u32> {
    closed.iter().map(|(key, _)| key.token).collect()
}

#[test]
fn subflows_of_a_connection_have_one_governor_and_know_their_token() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("one");
    let (served, governors, most) = shared("on", Group::Connection);
    let mut seen = Vec::new();
    let look = |at: Duration, connection: &Connection| {
        if at > secs(0.5) {
            seen.push((connection.token, windows(connection)));
        }
    };
    bench.transfer_subflows(&served.name, secs(1.5), look).check();
    let (_, closed) = served.finish();
    let token = seen[0].0;
    let half = (BUDGET / 2) as u32;
    assert!(seen.iter().all(|(_, windows)| *windows == [half, half]), "{seen:?}");
    assert_eq!(tokens(&closed), BTreeSet::from([token]), "as the socket says");
    let numbers: BTreeSet<u32> = closed.iter().map(|(key, _)| key.subflow).collect();
    assert_eq!((closed.len(), numbers.len()), (2, 2), "{closed:?}");
    assert_eq!(governors.load(Ordering::Relaxed), 1);
    assert_eq!(most.load(Ordering::Relaxed), 2);
    assert!(closed.iter().all(|(_, totals)| totals.fallbacks == 0), "{closed:?}");
}
