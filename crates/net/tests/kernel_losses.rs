//! What is a loss and what is a mark, for controllers of user space and in the kernel. Needs root, BTF and TUN.
use crate::common::bench::Bench;
use crate::common::kernel::{Fixed, Log, Served, TcpInfo};
use crate::common::machine::{best_of, governs_flows, kept};
use ackademy::control::{Control, Controller, Loss, LossKind};
use ackademy::controllers;
use ackademy::law::own_queue::Settings;
use ackademy::params::Params;
use ackademy::units::Bytes;
use ackademy_net::kernel::compiled::Compiled;
use ackademy_net::kernel::{Options, Registered};
use std::sync::Arc;
use std::time::Duration;

const PACKET: u64 = 1500;

/// Gaps without a loss, which controllers take for marks.
fn marks(log: &Log) -> usize {
    let is_mark = |loss: &&Loss| loss.kind == LossKind::Gap && loss.lost == Bytes::ZERO;
    log.losses.iter().filter(is_mark).count()
}

/// Packets told lost.
fn lost(log: &Log) -> u64 {
    log.losses.iter().map(|loss| loss.lost.0 / PACKET).sum()
}

/// Loss episodes that the sender's TCP counts.
fn episodes(bench: &Bench) -> u64 {
    ["TCPSackRecovery", "TCPRenoRecovery", "TCPLossProbeRecovery"]
        .map(|name| bench.counter(name))
        .iter()
        .sum()
}

#[test]
fn no_loss_of_a_lossy_path_is_told_as_a_mark_and_each_is_told_once() {
    if !governs_flows() {
        return;
    }
    // Several packets of each round trip are lost, so that repairs follow each other.
    let loss = "loss = { kind = \"bernoulli\", ratio = 0.03 }";
    best_of(|| {
        let bench = Bench::new("lossy", &format!("rate_mbps = 40\ndelay_ms = 35\n{loss}"));
        let window = Control::window(Bytes(100 * PACKET));
        let (served, log) = Served::logged("ly", move |_| Box::new(Fixed(window)));
        bench.transfer(&served.name, Duration::from_secs(4), |_, _| {}).check();
        let (_, closed) = served.finish();
        let episodes = episodes(&bench);
        let random_losses = bench.finish().network.links[0].random_losses;
        let log = log.lock().expect("no panic");
        assert_eq!(marks(&log), 0, "no mark is on this path");
        let (gaps, told) = (log.count(LossKind::Gap), lost(&log));
        assert!(gaps > 10 && log.count(LossKind::More) > 10, "{gaps} gaps");
        // The kernel begins an episode again that it took back; its packets are told once. What is late on a busy
        // machine it declares lost, and of what carries no data the sender does not know.
        let near = |one: u64, other: u64| one.abs_diff(other) <= 2 + other / 50;
        let answered = closed[0].1.refused == 0;
        kept(answered && near(gaps, episodes) && near(told, random_losses), || {
            format!("{gaps} gaps of {episodes} episodes, {told} lost of {random_losses}")
        })
    });
}

#[test]
fn a_loss_that_a_probe_repairs_is_a_gap_of_one_packet() {
    if !governs_flows() {
        return;
    }
    let loss = "loss = { kind = \"bernoulli\", ratio = 0.2 }";
    let bench = Bench::new("tail", &format!("rate_mbps = 20\ndelay_ms = 5\n{loss}"));
    let build = |info: &_| -> Box<dyn Controller> {
        let spec = controllers::find("new_reno").expect("in the table");
        (spec.build)(info, &Params::defaults(spec.params))
    };
    let (served, log) = Served::logged("tl", build);
    // A probe of a single packet leaves after 200 ms, and the acknowledgement of the next burst shows what it repaired.
    bench.bursts(&served.name, 40, 2000, Duration::from_millis(250)).check();
    served.finish();
    let probed = bench.counter("TCPLossProbeRecovery");
    let log = log.lock().expect("no panic");
    assert!(probed > 0, "{probed} losses repaired by a probe");
    assert_eq!(marks(&log), 0, "{:?}", log.losses);
    assert_eq!(log.count(LossKind::Gap), episodes(&bench), "{:?}", log.losses);
}

/// Registers `own_queue`, decided in the kernel, under a name of this process and `label`.
fn in_kernel(label: &str) -> (String, Registered) {
    let name = format!("ak{label}{}", std::process::id());
    let options = Options {
        name: name.clone(),
        pins: None,
        slots: 16,
        in_kernel: Some(Arc::new(Compiled::law(&Settings::default()))),
        ..Options::default()
    };
    (name, Registered::start(&options).expect("a congestion control"))
}

#[test]
fn a_flow_that_is_decided_in_the_kernel_answers_marks() {
    if !governs_flows() {
        return;
    }
    let queue = "queue = { kind = \"codel\", packets = 1000, ecn = true, target_ms = 1 }";
    let marked = |label: &str, name: &str, end: &mut dyn FnMut()| {
        let bench = Bench::new(label, &format!("rate_mbps = 10\ndelay_ms = 15\n{queue}"));
        for side in [0, 1] {
            bench.within(side, || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"));
        }
        bench.transfer(name, Duration::from_secs(6), |_, _| {}).check();
        end();
        let link = bench.finish().network.links.swap_remove(0);
        (link.marked_packets, link.delivered_packets)
    };
    best_of(|| {
        let served = Served::controller("em", "own_queue");
        let own = served.name.clone();
        let mut served = Some(served);
        let outside = marked("marks-out", &own, &mut || {
            served.take().expect("ends once").finish();
        });
        let (name, registered) = in_kernel("mark");
        let inside = marked("marks-in", &name, &mut || {});
        assert_eq!(registered.totals().counts.fallbacks, 0);
        println!("marked: {outside:?} packets through user space, {inside:?} in the kernel");
        // Without an answer every sixth packet is marked.
        let claim = outside.0 > 0 && inside.0 > 0 && inside.0 * 40 < inside.1;
        kept(claim, || format!("{outside:?}, {inside:?}"))
    });
}

/// Answers to losses that the sender's TCP took back.
fn taken_back(bench: &Bench) -> u64 {
    ["TCPFullUndo", "TCPPartialUndo", "TCPDSACKUndo", "TCPLossUndo"]
        .map(|name| bench.counter(name))
        .iter()
        .sum()
}

/// Linux's `tcp_undo_cwnd_reduction` asks for the window once for each answer that it takes back.
#[test]
fn what_the_kernel_takes_back_is_told_as_spurious_once_each() {
    if !governs_flows() {
        return;
    }
    let pause = "rate_mbps = 20\ndelay_ms = 15\noutages = [[1, 2.5]]";
    let reordered =
        "rate_mbps = 20\ndelay_ms = 15\nreorder = { ratio = 0.02, low_ms = 30, high_ms = 60 }";
    for (label, link, latest) in
        [("pause", pause, LossKind::Timeout), ("reordered", reordered, LossKind::Gap)]
    {
        let bench = Bench::new(label, link);
        let window = Control::window(Bytes(60 * PACKET));
        let (served, log) = Served::logged("sp", move |_| Box::new(Fixed(window)));
        bench.transfer(&served.name, Duration::from_secs(4), |_, _| {}).check();
        served.finish();
        let log = log.lock().expect("no panic");
        let (told, undone) = (log.count(LossKind::Spurious), taken_back(&bench));
        assert!(told > 0, "{label}: none of {undone}");
        assert_eq!(told, undone, "{label}: {:?}", log.losses);
        let before = log.losses.iter().zip(&log.losses[1..]);
        let before = before.filter(|(_, loss)| loss.kind == LossKind::Spurious);
        let reduced = |loss: &Loss| {
            [LossKind::Gap, LossKind::Timeout, LossKind::TimeoutAgain].contains(&loss.kind)
        };
        assert!(log.count(latest) > 0 && before.clone().count() as u64 == told, "{label}");
        // A loss of the same episode may stand between.
        assert!(before.filter(|(first, _)| reduced(first)).count() > 0, "{:?}", log.losses);
    }
}

/// Mb/s from 0.2 to 2 s after a link of 20 Mb/s served nothing for 1.5 s and lost nothing.
fn after_a_pause(label: &str, name: &str) -> f64 {
    let queue = "queue = { kind = \"drop_tail\", packets = 400 }";
    let link = format!("rate_mbps = 20\ndelay_ms = 15\noutages = [[2.5, 4]]\n{queue}");
    let bench = Bench::new(label, &link);
    let mut acked = Vec::new();
    let look = |at: Duration, info: &TcpInfo| acked.push((at.as_secs_f64(), info.acked));
    bench.transfer(name, Duration::from_secs_f64(6.2), look).check();
    let at = |time_s: f64| acked.iter().find(|(at_s, _)| *at_s >= time_s).expect("long enough");
    let ((from_s, first), (to_s, last)) = (at(4.2), at(6.0));
    (last - first) as f64 * 8e-6 / (to_s - from_s)
}

/// kernel:cubic has its whole window back with the acknowledgement that shows that nothing was lost.
#[test]
fn after_a_pause_of_the_link_in_which_nothing_is_lost_a_flow_goes_on_as_cubic_of_the_kernel_does() {
    if !governs_flows() {
        return;
    }
    let cubic = after_a_pause("back-cubic", "cubic");
    for name in ["own_queue", "new_reno"] {
        best_of(|| {
            let served = Served::controller("bk", name);
            let own = after_a_pause(&format!("back-{name}"), &served.name);
            println!("{name}: {own:.1} Mb/s, kernel:cubic {cubic:.1}");
            kept(own > 0.7 * cubic, || format!("{name}: {own} Mb/s, cubic {cubic}"))
        });
    }
    best_of(|| {
        let (name, _registered) = in_kernel("back");
        let own = after_a_pause("back-inside", &name);
        println!("own_queue in the kernel: {own:.1} Mb/s, kernel:cubic {cubic:.1}");
        kept(own > 0.7 * cubic, || format!("in the kernel: {own} Mb/s, cubic {cubic}"))
    });
}
