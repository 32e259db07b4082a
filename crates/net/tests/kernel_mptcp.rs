//! Subflows of the kernel's MPTCP under one governor, over two emulated paths. Needs root, BTF, TUN and MPTCP.
use crate::common::bench::Bench;
use crate::common::kernel::Served;
use crate::common::machine::{best_of, governs_mptcp, kept};
use ackademy::control::{Ack, Control, Coupled, FlowInfo, Loss, SubflowId};
use ackademy::coupled::{self, Scope};
use ackademy::params::{self, ParamValue, Params};
use ackademy::units::Bytes;
use ackademy_net::kernel::{FlowKey, FlowTotals, Group};
use ackademy_net::lab::mptcp_info::{Connection, Subflow};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

const PACKET: u64 = 1500;
/// What all subflows together may have in flight.
const BUDGET: u64 = 120;
/// Bytes that only a living path brings: several times what both paths have in flight.
const BEYOND: u64 = 5 * BUDGET * PACKET;

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// One path of two.
fn link() -> String {
    let queue = "queue = { kind = \"drop_tail\", packets = 200 }";
    format!("rate_mbps = 20\ndelay_ms = 15\n{queue}")
}

/// Two paths, 20 ms each.
fn bench(label: &str) -> Bench {
    let link = link();
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

/// A path that carries nothing for a while.
struct Outage<F> {
    /// Whether it begins.
    from: F,
    /// It ends when the other path has brought [`BEYOND`], or at this time.
    patience: Duration,
}

impl<F: FnMut(Duration, &Connection) -> bool + Send> Outage<F> {
    /// Transfers across it, and half a second longer; every byte arrives.
    fn other_path_goes_on(
        mut self,
        bench: &Bench,
        served: &Served,
        mut begin: impl FnMut() + Send,
        mut end: impl FnMut() + Send,
    ) {
        // What was acknowledged when it began, and when and with how much it ended.
        let mut began: Option<u64> = None;
        let mut ended: Option<(Duration, u64)> = None;
        let over = AtomicBool::new(false);
        let look = |at: Duration, connection: &Connection| match (began, ended) {
            (None, _) if (self.from)(at, connection) => {
                begin();
                began = Some(connection.acked);
            }
            (Some(acked), None) if connection.acked > acked + BEYOND || at > self.patience => {
                end();
                ended = Some((at, connection.acked));
            }
            (_, Some((since, _))) => over.store(at > since + secs(0.5), Ordering::Relaxed),
            _ => {}
        };
        let last = self.patience + secs(1.0);
        let more = |at| at < last && !over.load(Ordering::Relaxed);
        bench.transfer_subflows_while(&served.name, more, look).check();
        let (began, (at, acked)) = (began.expect("it begins"), ended.expect("it ends"));
        assert!(
            acked > began + BEYOND,
            "the other path goes on: {began} bytes, then {acked} at {at:?}"
        );
    }
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
    let half = (BUDGET / 2) as u32;
    let mut seen = Vec::new();
    let look = |_, connection: &Connection| {
        // From the moment when both are open and have what they are to have.
        let windows = windows(connection);
        if !seen.is_empty() || windows == [half, half] {
            seen.push((connection.token, windows));
        }
    };
    bench.transfer_subflows(&served.name, secs(1.5), look).check();
    let (_, closed) = served.finish();
    assert!(seen.len() > 3, "both have half of the budget: {seen:?}");
    let token = seen[0].0;
    assert!(seen.iter().all(|(_, windows)| *windows == [half, half]), "{seen:?}");
    assert_eq!(tokens(&closed), BTreeSet::from([token]), "as the socket says");
    let numbers: BTreeSet<u32> = closed.iter().map(|(key, _)| key.subflow).collect();
    assert_eq!((closed.len(), numbers.len()), (2, 2), "{closed:?}");
    assert_eq!(governors.load(Ordering::Relaxed), 1);
    assert_eq!(most.load(Ordering::Relaxed), 2);
    assert!(closed.iter().all(|(_, totals)| totals.fallbacks == 0), "{closed:?}");
}

#[test]
fn connections_have_governors_of_their_own_unless_one_governs_the_host() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("two");
    for (group, governed, subflows) in [(Group::Connection, 2, 2), (Group::Number(7), 1, 4)] {
        let (served, governors, most) = shared("tw", group);
        std::thread::scope(|scope| {
            let both = [0, 1].map(|_| {
                scope.spawn(|| bench.transfer_subflows(&served.name, secs(1.5), |_, _| {}))
            });
            for one in both {
                one.join().expect("no panic").check();
            }
        });
        let (_, closed) = served.finish();
        assert_eq!((closed.len(), tokens(&closed).len()), (4, 2), "{closed:?}");
        assert_eq!(governors.load(Ordering::Relaxed), governed, "{group:?}");
        assert_eq!(most.load(Ordering::Relaxed), subflows, "{group:?}");
    }
}

#[test]
fn a_subflow_that_is_removed_leaves_its_share_to_the_other_and_may_come_back() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("rem");
    let (served, governors, most) = shared("rm", Group::Connection);
    let (all, half) = (BUDGET as u32, (BUDGET / 2) as u32);
    let mut steps = Vec::new();
    let mut since = Duration::ZERO;
    let ended = AtomicBool::new(false);
    let look = |at: Duration, connection: &Connection| {
        let seen = windows(connection);
        let wanted = [vec![half, half], vec![all], vec![half, half]];
        if wanted.get(steps.len()) == Some(&seen) && at > since + secs(0.2) {
            match steps.len() {
                0 => bench.close_second(),
                1 => bench.open_second(),
                _ => {}
            }
            steps.push((at, seen));
            since = at;
        }
        ended.store(steps.len() == 3 && at > since + secs(0.3), Ordering::Relaxed);
    };
    let more = |at| at < secs(10.0) && !ended.load(Ordering::Relaxed);
    bench.transfer_subflows_while(&served.name, more, look).check();
    let (_, closed) = served.finish();
    assert_eq!(steps.len(), 3, "removed and added: {steps:?}");
    assert_eq!((closed.len(), tokens(&closed).len()), (3, 1), "{closed:?}");
    assert_eq!(governors.load(Ordering::Relaxed), 1);
    assert_eq!(most.load(Ordering::Relaxed), 2, "the number is used again");
}

#[test]
fn a_path_that_goes_away_leaves_the_connection_alive_and_its_bytes_whole() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("down");
    let (served, _, _) = shared("dn", Group::Connection);
    let late = |at: Duration, _: &Connection| at > secs(0.7);
    // The kernel calls a path stale after some time-outs of the connection, each of at least 200 ms.
    let outage = Outage { from: late, patience: secs(10.0) };
    let route = |verb| bench.ip(1, &["route", verb, "blackhole", "10.77.0.3/32"]);
    outage.other_path_goes_on(&bench, &served, || route("add"), || route("del"));
    served.finish();
}

#[test]
fn an_interface_that_goes_down_leaves_the_connection_alive_and_its_bytes_whole() {
    if !governs_mptcp() {
        return;
    }
    let link = link();
    let bench = Bench::two_interfaces("ifdown", [&link, &link]);
    let (served, _, most) = shared("if", Group::Connection);
    let carry = |_: Duration, connection: &Connection| {
        let carried = |one: &&Subflow| one.tcp.bytes_acked > 300_000;
        connection.subflows.iter().filter(carried).count() == 2
    };
    let outage = Outage { from: carry, patience: secs(20.0) };
    let set = |state| bench.ip(0, &["link", "set", "link1", state]);
    let up = || {
        set("up");
        bench.route_second();
    };
    outage.other_path_goes_on(&bench, &served, || set("down"), up);
    served.finish();
    assert_eq!(most.load(Ordering::Relaxed), 2);
}

#[test]
fn plain_tcp_under_a_coupled_name_is_alone() {
    if !governs_mptcp() {
        return;
    }
    let bench = Bench::new("alone", "rate_mbps = 20\ndelay_ms = 15");
    let (served, governors, most) = shared("al", Group::Connection);
    for _ in 0..2 {
        bench.transfer(&served.name, secs(0.4), |_, _| {}).check();
    }
    let (_, closed) = served.finish();
    assert_eq!(tokens(&closed), BTreeSet::from([0]));
    assert_eq!(governors.load(Ordering::Relaxed), 2);
    assert_eq!(most.load(Ordering::Relaxed), 1);
}

#[test]
fn the_kernel_s_own_controllers_run_uncoupled_over_both_paths() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("own");
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    let known = known.expect("every Linux has this file");
    for name in ["cubic", "reno", "bbr"] {
        if !known.split_whitespace().any(|own| own == name) {
            continue;
        }
        best_of(|| {
            let mut last = None;
            let look = |_, connection: &Connection| last = Some(connection.clone());
            let transfer = bench.transfer_subflows(name, secs(2.0), look);
            transfer.check();
            let last = last.expect("a look");
            let both = last.subflows.iter().filter(|one| one.tcp.bytes_acked > 500_000).count();
            let mbps = transfer.received as f64 * 8e-6 / 2.0;
            kept(both == 2 && mbps > 20.0, || format!("{name}: {mbps:.1} Mb/s, {last:?}"))
        });
    }
}

#[test]
fn every_coupled_controller_of_a_connection_governs_live_subflows_on_both_paths() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("cc");
    let ours = coupled::ALL.iter().filter(|spec| matches!(spec.scope, Scope::Connection));
    for (index, &spec) in ours.enumerate() {
        best_of(|| {
            let made = Arc::new(AtomicUsize::new(0));
            let governors = Arc::clone(&made);
            let served = Served::grouped(&format!("c{index}"), Group::Connection, move |_, _| {
                governors.fetch_add(1, Ordering::Relaxed);
                Some((spec.build)(&Params::defaults(spec.params)))
            });
            let mut seen: [BTreeSet<u32>; 2] = Default::default();
            let mut acked = vec![0; 2];
            let look = |_, connection: &Connection| {
                for (at, one) in connection.subflows.iter().enumerate().take(2) {
                    seen[at].insert(one.tcp.snd_cwnd);
                    acked[at] = one.tcp.bytes_acked;
                }
            };
            let transfer = bench.transfer_subflows(&served.name, secs(2.0), look);
            transfer.check();
            let (_, closed) = served.finish();
            assert_eq!((closed.len(), tokens(&closed).len()), (2, 1), "{}: {closed:?}", spec.name);
            assert_eq!(made.load(Ordering::Relaxed), 1, "{}: one governor", spec.name);
            let mbps = transfer.received as f64 * 8e-6 / 2.0;
            let followed = seen.iter().all(|windows| windows.len() >= 3);
            let obeyed = closed.iter().all(|(_, totals)| {
                totals.decisions > 10 && totals.fallbacks == 0 && totals.invalid == 0
            });
            let both = acked.iter().all(|&bytes| bytes > 300_000);
            kept(followed && obeyed && both, || {
                format!("{}: {mbps:.1} Mb/s, {acked:?}, {seen:?}, {closed:?}", spec.name)
            })
        });
    }
}

/// The settings of a DRL-CC agent of this repository.
fn agent_of(name: &str) -> Params {
    let spec = coupled::find("drl_cc").expect("a coupled controller");
    let folder = format!("{}/../../research/policies/drl_cc/{name}", env!("CARGO_MANIFEST_DIR"));
    let given = [("policy".to_owned(), ParamValue::Word(folder))];
    let mut load = |path: &str, _| std::fs::read(path).map_err(|error| format!("{path}: {error}"));
    let opened = params::open(spec.params, &given, &mut load).expect("a shipped policy");
    Params::resolve(spec.params, &opened).expect("its settings")
}

#[test]
fn one_drl_cc_agent_governs_the_live_subflows_of_all_connections_of_a_host() {
    if !governs_mptcp() {
        return;
    }
    let bench = bench("drl");
    let spec = coupled::find("drl_cc").expect("a coupled controller");
    assert_eq!(spec.scope, Scope::Host);
    let params = agent_of("rtt20");
    best_of(|| {
        let made = Arc::new(AtomicUsize::new(0));
        let (governors, params) = (Arc::clone(&made), params.clone());
        let served = Served::grouped("dr", Group::Number(0), move |_, _| {
            governors.fetch_add(1, Ordering::Relaxed);
            Some((spec.build)(&params))
        });
        let transfer = || {
            let mut seen: [BTreeSet<u32>; 2] = Default::default();
            let mut acked = [0; 2];
            let look = |_, connection: &Connection| {
                for (at, one) in connection.subflows.iter().enumerate().take(2) {
                    seen[at].insert(one.tcp.snd_cwnd);
                    acked[at] = one.tcp.bytes_acked;
                }
            };
            bench.transfer_subflows(&served.name, secs(3.0), look).check();
            (seen, acked)
        };
        let both = std::thread::scope(|scope| {
            [0, 1].map(|_| scope.spawn(transfer)).map(|one| one.join().expect("no panic"))
        });
        let (_, closed) = served.finish();
        assert_eq!((closed.len(), tokens(&closed).len()), (4, 2), "{closed:?}");
        assert_eq!(made.load(Ordering::Relaxed), 1, "one agent for the host");
        let followed = both.iter().flat_map(|(seen, _)| seen).all(|windows| windows.len() >= 3);
        let carried = both.iter().flat_map(|(_, acked)| acked).all(|&bytes| bytes > 100_000);
        let obeyed = closed.iter().all(|(_, totals)| {
            totals.decisions > 10 && totals.fallbacks == 0 && totals.invalid == 0
        });
        kept(followed && carried && obeyed, || format!("{both:?}, {closed:?}"))
    });
}
