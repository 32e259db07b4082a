//! Flows of the kernel's TCP under controllers of user space, over an emulated link. Needs root, BTF
//! and TUN.
use crate::common::bench::Bench;
use crate::common::kernel::{Fixed, Log, Served, TcpInfo};
use crate::common::machine::{best_of, governs_flows, kept};
use ackademy::control::{Control, FlowInfo, LossKind};
use ackademy::controllers;
use ackademy::params::Params;
use ackademy::units::{Bytes, Rate, Span};
use std::time::Duration;

const PACKET: u64 = 1500;

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

fn new_reno(info: &FlowInfo) -> Box<dyn ackademy::control::Controller> {
    let spec = controllers::find("new_reno").expect("in the table");
    (spec.build)(info, &Params::defaults(spec.params))
}

#[test]
fn flows_move_their_data_under_controllers_of_user_space() {
    if !governs_flows() {
        return;
    }
    let queue = "queue = { kind = \"drop_tail\", packets = 40 }";
    let bench = Bench::new("move", &format!("rate_mbps = 30\ndelay_ms = 10\n{queue}"));
    for name in ["new_reno", "cubic", "rl_tcp"] {
        best_of(|| {
            let kernel = bench.transfer("cubic", secs(2.0), |_, _| {}).received;
            let served = Served::controller("mv", name);
            let transfer = bench.transfer(&served.name, secs(2.0), |_, _| {});
            transfer.check();
            let (totals, closed) = served.finish();
            let (key, flow) = closed[0];
            let (opened, ended) = (totals.counts.opened, totals.counts.closed);
            assert_eq!((opened, ended, closed.len()), (1, 1, 1), "{name}");
            assert_eq!((flow.refused, flow.invalid), (0, 0), "{name}");
            assert_eq!(key.remote.ip().to_string(), "10.77.0.2");
            let share = transfer.received as f64 / kernel as f64;
            let serves = flow.samples > 100 && flow.decisions > 100 && flow.fallbacks == 0;
            kept(serves && share > 0.4, || {
                format!("{name}: {share:.2} of what the kernel's CUBIC moves, {flow:?}")
            })
        });
    }
}

#[test]
fn ipv6_flows_are_known_by_their_addresses() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::between("v6", "rate_mbps = 30\ndelay_ms = 10", ["fd77::1", "fd77::2"]);
    let (served, log) = Served::logged("v6", new_reno);
    bench.transfer(&served.name, secs(0.5), |_, _| {}).check();
    let (_, closed) = served.finish();
    assert_eq!(closed[0].0.local.ip().to_string(), "fd77::1");
    assert_eq!(closed[0].0.remote.ip().to_string(), "fd77::2");
    let log = log.lock().expect("no panic");
    let acked = log.acks.last().expect("acknowledgements").acked;
    assert_eq!(acked.0 % PACKET, 0, "packets of the link's size: {acked:?}");
}

#[test]
fn a_window_of_fifty_packets_is_kept_to() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("fixed", "rate_mbps = 100\ndelay_ms = 15");
    let window = Control::window(Bytes(50 * PACKET));
    let (served, log) = Served::logged("fx", move |_| Box::new(Fixed(window)));
    let mut windows = Vec::new();
    let look = |at: Duration, info: &TcpInfo| {
        if at > secs(0.3) {
            windows.push(info.cwnd);
        }
    };
    bench.transfer(&served.name, secs(1.5), look).check();
    assert!(windows.len() > 20 && windows.iter().all(|cwnd| *cwnd == 50), "{windows:?}");
    let log = log.lock().expect("no panic");
    let max = log.acks.iter().map(|ack| ack.inflight.0 / PACKET).max();
    assert!(max.is_some_and(|max| (40..=50).contains(&max)), "{max:?} in flight");
}

#[test]
fn slow_start_opens_the_window_by_what_is_acknowledged_without_waiting_for_decisions() {
    if !governs_flows() {
        return;
    }
    // The first windows are acknowledged in bunches shorter than a sample's interval: decisions
    // alone lag by a round trip, and the median is 0.85.
    let bench = Bench::new("slow", "rate_mbps = 50\ndelay_ms = 35");
    best_of(|| {
        let (served, _) = Served::logged("ss", new_reno);
        let mut ratios = Vec::new();
        let look = |_, info: &TcpInfo| {
            let acked = info.acked / 1448;
            if (5..300).contains(&acked) {
                ratios.push(f64::from(info.cwnd) / (10 + acked) as f64);
            }
        };
        bench.transfer(&served.name, secs(0.4), look).check();
        ratios.sort_by(f64::total_cmp);
        let median = ratios.get(ratios.len() / 2);
        kept(median.is_some_and(|median| (0.9..1.01).contains(median)), || format!("{ratios:.2?}"))
    });
}

#[test]
fn a_pacing_rate_is_the_socket_s_and_what_is_sent() {
    if !governs_flows() {
        return;
    }
    let rate = Rate::from_mbps(20.0);
    let control = Control { pacing_rate: rate, ..Control::window(Bytes(1000 * PACKET)) };
    let bench = Bench::new("pace", "rate_mbps = 100\ndelay_ms = 15");
    best_of(|| {
        let (served, _) = Served::logged("pc", move |_| Box::new(Fixed(control)));
        let (mut acked, mut paced) = (Vec::new(), 0);
        let look = |at: Duration, info: &TcpInfo| {
            acked.push((at.as_secs_f64(), info.acked));
            paced = info.pacing.saturating_mul(8); // all ones before there is a rate
        };
        bench.transfer(&served.name, secs(3.0), look).check();
        let (first, last) = (acked[acked.len() / 3], acked[acked.len() - 1]);
        let payload = (last.1 - first.1) as f64 * 8.0 / (last.0 - first.0);
        // The kernel counts payload, a link the packets.
        let [said, sent] =
            [paced as f64, payload].map(|rate_of| rate_of * 1500.0 / 1448.0 / rate.0 as f64);
        // The timer of a busy machine is late at each packet, and what is late is not caught up; it is never early.
        kept((said - 1.0).abs() < 0.01 && (0.8..1.05).contains(&sent), || {
            format!("{said} of {rate:?} at the socket, {sent} sent")
        })
    });
}

#[test]
fn an_episode_of_losses_is_one_gap() {
    if !governs_flows() {
        return;
    }
    let queue = "queue = { kind = \"drop_tail\", packets = 20 }";
    let loss = "loss = { kind = \"bernoulli\", ratio = 0.002 }";
    let bench = Bench::new("gap", &format!("rate_mbps = 20\ndelay_ms = 15\n{queue}\n{loss}"));
    let (served, log) = Served::logged("gp", new_reno);
    bench.transfer(&served.name, secs(6.0), |_, _| {}).check();
    served.finish();
    let episodes: u64 = ["TCPSackRecovery", "TCPRenoRecovery", "TCPLossProbeRecovery"]
        .map(|name| bench.counter(name))
        .iter()
        .sum();
    let log = log.lock().expect("no panic");
    let gaps = log.count(LossKind::Gap);
    assert!(gaps > 3, "{gaps} gaps");
    assert_eq!(gaps, episodes, "{log:?}", log = summary(&log));
    let timeouts = log.count(LossKind::Timeout) + log.count(LossKind::TimeoutAgain);
    assert_eq!(timeouts, bench.counter("TCPTimeouts"));
}

#[test]
fn a_congestion_mark_is_a_gap_without_a_loss() {
    if !governs_flows() {
        return;
    }
    let queue = "queue = { kind = \"codel\", packets = 1000, ecn = true }";
    let bench = Bench::new("ecn", &format!("rate_mbps = 20\ndelay_ms = 15\n{queue}"));
    for side in [0, 1] {
        bench.within(side, || std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1"));
    }
    let (served, log) = Served::logged("ec", new_reno);
    bench.transfer(&served.name, secs(4.0), |_, _| {}).check();
    assert_eq!(bench.counter("TCPSackRecovery"), 0, "CoDel marks and drops nothing");
    let log = log.lock().expect("no panic");
    let gaps: Vec<_> = log.losses.iter().filter(|loss| loss.kind == LossKind::Gap).collect();
    assert!(gaps.len() > 1, "{:?}", summary(&log));
    assert!(gaps.iter().all(|gap| gap.lost == Bytes::ZERO), "{:?}", summary(&log));
    let apart = |pair: &[&ackademy::control::Loss]| pair[1].now.since(pair[0].now);
    assert!(gaps.windows(2).all(|pair| apart(pair) > Span::from_millis(20)), "once a round trip");
}

#[test]
fn an_outage_is_a_timeout_and_the_flow_goes_on_after_it() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new(
        "out",
        "rate_mbps = 20\ndelay_ms = 15\nqueue = { kind = \"drop_tail\", packets = 60 }",
    );
    let (served, log) = Served::logged("ot", new_reno);
    let route = |word: &str| bench.ip(1, &["route", word, "blackhole", "10.77.0.1/32"]);
    let (mut is_cut, mut cut_at, mut ended) = (false, None, false);
    let mut acked = Vec::new();
    let look = |at: Duration, info: &TcpInfo| {
        if is_cut {
            // The first look after it: a busy machine takes its time to cut.
            cut_at.get_or_insert(at);
        } else if at > secs(1.0) {
            route("add");
            is_cut = true;
        }
        if cut_at.is_some_and(|cut_at| at > cut_at + secs(1.0)) && !ended {
            route("del");
            ended = true;
        }
        acked.push((at, info.acked));
    };
    bench.transfer(&served.name, secs(5.0), look).check();
    let log = log.lock().expect("no panic");
    // Linux reduces the threshold with the first of them alone (tcp_enter_loss).
    let timeouts = log.count(LossKind::Timeout);
    let all = timeouts + log.count(LossKind::TimeoutAgain);
    assert!(timeouts >= 1 && (2..=6).contains(&all), "{timeouts} of {all} time-outs");
    assert_eq!(all, bench.counter("TCPTimeouts"));
    assert!(timeouts < all, "none repeats: {:?}", log.losses);
    let restored = acked.iter().find(|(at, _)| *at > secs(4.0)).expect("a look").1;
    assert!(acked[acked.len() - 1].1 > restored + 500_000, "the flow goes on");
}

#[test]
fn an_idle_flow_is_told_if_windows_restart_and_never_falls_back() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("idle", "rate_mbps = 20\ndelay_ms = 15");
    for (restart, told) in [("1", 1), ("0", 0)] {
        let setting = "/proc/sys/net/ipv4/tcp_slow_start_after_idle";
        bench.within(0, || std::fs::write(setting, restart));
        let (served, log) = Served::logged("id", new_reno);
        bench.pause(&served.name, secs(1.0)).check();
        let (_, closed) = served.finish();
        assert_eq!(closed[0].1.fallbacks, 0, "{:?}", closed[0].1);
        let log = log.lock().expect("no panic");
        assert_eq!(log.count(LossKind::Idle), told, "{setting} is {restart}");
    }
}

#[test]
fn a_controller_that_panics_leaves_its_flow_to_cubic_and_the_others_alone() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("panic", "rate_mbps = 20\ndelay_ms = 15");
    let mut first = true;
    let served = Served::with("pn", move |_, _| {
        let panics = std::mem::take(&mut first);
        let build = move |info: &FlowInfo| -> Box<dyn ackademy::control::Controller> {
            if panics { Box::new(Panics) } else { new_reno(info) }
        };
        Some(Box::new(ackademy::control::PerFlow::new(build)))
    });
    for _ in 0..2 {
        bench.transfer(&served.name, secs(1.0), |_, _| {}).check();
    }
    let (totals, closed) = served.finish_without(1);
    assert_eq!(totals.counts.invalid, 1, "one decision to abandon");
    assert_eq!(closed.len(), 1, "the panicked controller is gone");
    assert_eq!(closed[0].1.fallbacks, 0);
}

struct Panics;

impl ackademy::control::Controller for Panics {
    fn on_ack(&mut self, _ack: &ackademy::control::Ack) {
        panic!("as the test wants it");
    }
    fn on_loss(&mut self, _loss: &ackademy::control::Loss) {}
    fn control(&self) -> Control {
        Control::window(Bytes(10 * PACKET))
    }
}

#[test]
fn signals_are_those_of_the_path() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("sig", "rate_mbps = 20\ndelay_ms = 15");
    let window = Control::window(Bytes(60 * PACKET));
    best_of(|| {
        let (served, log) = Served::logged("sg", move |_| Box::new(Fixed(window)));
        bench.transfer(&served.name, secs(2.0), |_, _| {}).check();
        let log = log.lock().expect("no panic");
        let acked: u64 = log.acks.iter().map(|ack| ack.acked.0).sum();
        assert_eq!(acked, log.acks[log.acks.len() - 1].delivered.0);
        assert!(log.acks.is_sorted_by_key(|ack| ack.now), "time runs back");
        let last = log.acks[log.acks.len() - 20];
        // 60 packets at 20 Mb/s are 36 ms: 20 ms of path and 16 ms of queue.
        let near = |span: Span, ms: f64| (span.as_millis_f64() - ms).abs() < 5.0;
        let flight = last.now.since(last.sent_at);
        let timed = near(last.min_rtt, 20.6) && near(last.srtt, 36.0) && near(flight, 36.0);
        let rate = last.delivery_rate.as_mbps();
        kept(timed && (rate - 20.0).abs() < 2.0, || format!("{last:?}, sent {flight} before"))
    });
}

/// What rules per round trip and per acknowledgement stand (`kernel_batching.rs`).
#[test]
fn a_record_stands_for_an_eighth_of_a_round_trip() {
    if !governs_flows() {
        return;
    }
    // 15 and 5 ms of delay, and 0.3 ms for a packet: an eighth is 2.6 ms.
    let bench = Bench::new("eighth", "rate_mbps = 40\ndelay_ms = 15");
    best_of(|| {
        let control = Control { ssthresh: Bytes(PACKET), ..Control::window(Bytes(60 * PACKET)) };
        let (served, log) = Served::logged("ei", move |_| Box::new(Fixed(control)));
        bench.transfer(&served.name, secs(2.0), |_, _| {}).check();
        let log = log.lock().expect("no panic");
        let apart = log.acks.windows(2).map(|pair| pair[1].now.since(pair[0].now));
        let mut apart: Vec<Span> = apart.filter(|&time| time > Span::ZERO).collect();
        apart.sort();
        let median = apart.get(apart.len() / 2).copied().unwrap_or_default();
        let fits = median > Span::from_millis(2) && median < Span::from_millis(4);
        kept(fits, || format!("records are {median} apart"))
    });
}

/// What a failure wants to know.
fn summary(log: &Log) -> Vec<(LossKind, u64, u64)> {
    log.losses
        .iter()
        .map(|loss| (loss.kind, loss.now.0 / 1_000_000, loss.lost.0 / PACKET))
        .collect()
}
