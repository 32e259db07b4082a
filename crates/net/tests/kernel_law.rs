//! The law in fixed point, told of acknowledgements and losses by hand, against the law in floating point.
use crate::common::bench::Bench;
use crate::common::kernel::TcpInfo;
use crate::common::machine::{best_of, governs_flows, kept};
use crate::kernel_compiled::in_kernels_units;
use ackademy::control::{Ack, FlowInfo, Loss, LossKind, Recovery};
use ackademy::law::own_queue::{Law, Settings};
use ackademy::sensing::signals::Signals;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_net::kernel::compiled::Compiled;
use ackademy_net::kernel::compiled::ask::{Asked, Room};
use ackademy_net::kernel::{Options, Registered};
use std::sync::Arc;
use std::time::Duration;

/// A flow under the law alone, in the kernel and in floating point, compared after each acknowledgement and loss; as in
/// `kernel_compiled` a decision begins with the same window for both.
struct Both<'asked, 'room> {
    asked: &'asked mut Asked<'room>,
    law: Law,
    signals: Signals,
    flow: FlowInfo,
    /// Decisions so far.
    decided: u32,
    /// Largest difference of the windows so far, as a part.
    differs: f64,
}

/// Of [`Both`]: a path of 40 ms.
const PATH: Span = Span::from_millis(40);

impl<'asked, 'room> Both<'asked, 'room> {
    fn open(asked: &'asked mut Asked<'room>) -> Self {
        let mss = Bytes(1500);
        let flow = FlowInfo {
            mss,
            initial_cwnd: Bytes(15_000),
            initial_ssthresh: Bytes(u64::MAX),
            recovery: Recovery::Sack,
            paces: false,
            start: Time::from_secs_f64(1.0),
            seed: 1,
        };
        asked.start(flow.start, 10, u32::MAX, flow.seed).expect("started");
        let (law, signals) = (Law::new(&flow, &Settings::default()), Signals::new(mss, flow.start));
        Self { asked, law, signals, flow, decided: 0, differs: 0.0 }
    }

    /// After so many seconds a packet is acknowledged that took so many ms and found so many in flight; the
    /// delivery rate is in packets per second. Gives the window.
    fn ack(&mut self, after_s: f64, rtt_ms: f64, found: u64, rate_pps: u64) -> f64 {
        let now = self.flow.start + Span::from_secs_f64(after_s);
        let rtt = Span::from_secs_f64(rtt_ms / 1e3);
        let packet = self.flow.mss.0;
        let ack = Ack {
            now,
            sent_at: Time(now.0.saturating_sub(rtt.0)),
            rtt,
            min_rtt: PATH,
            acked: self.flow.mss,
            inflight: Bytes(found * packet),
            delivery_rate: Rate(rate_pps * packet * 8),
            cwnd_limited: 1,
            ..Ack::default()
        };
        let (ack, delivery) = in_kernels_units(&ack, packet);
        let decided = self.asked.on_delivery(delivery).expect("an answer");
        let ack = Ack { srtt: self.asked.srtt(), ..ack };
        self.signals.on_ack(&ack);
        self.law.on_ack(&ack);
        if decided {
            self.decided += 1;
            self.signals.end(now);
            self.law.update_contention(self.signals.last());
            self.law.on_interval(self.signals.last(), [0.0; 2]);
        }
        let exact = self.compare();
        if decided {
            self.asked.follow(exact);
        }
        exact
    }

    fn lose(&mut self, after_s: f64, packets: u32) -> f64 {
        let (now, lost) =
            (self.flow.start + Span::from_secs_f64(after_s), u64::from(packets) * self.flow.mss.0);
        let loss = Loss { now, lost: Bytes(lost), kind: LossKind::More, ..Loss::default() };
        self.signals.on_loss(&loss);
        self.law.on_loss(&loss);
        self.asked.on_loss(now, packets, loss.kind).expect("an answer");
        self.compare()
    }

    fn compare(&mut self) -> f64 {
        let (own, exact) = (self.asked.allowed().0, self.law.cwnd_packets());
        let differs = (own / exact - 1.0).abs();
        assert!(differs < 2e-3, "{own} packets, not {exact}");
        self.differs = self.differs.max(differs);
        exact
    }

    fn counted(&self, name: &str) -> f64 {
        self.law.counters().iter().find(|one| one.0 == name).expect("a counter").1
    }

    /// 88 packets of the start, one a millisecond, without a queue: the window is then 98 packets.
    fn start(&mut self) {
        for packet in 1..=88_u64 {
            self.ack(packet as f64 / 1e3, 40.0, 10 + packet, 1000);
        }
    }
}

/// Runs what is told to both, where the kernel can, and prints how far the windows differ.
fn both(label: &str, told: impl FnOnce(&mut Both<'_, '_>)) {
    if !governs_flows() {
        return;
    }
    let mut room = Room::new();
    let compiled = Compiled::law(&Settings::default());
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let mut both = Both::open(&mut asked);
    told(&mut both);
    let (decided, differs) = (both.decided, 100.0 * both.differs);
    println!("{label}: windows differ by {differs:.4} % at most, {decided} decisions");
}

#[test]
fn the_last_packets_of_a_start_raise_the_window_in_the_kernel_up_to_its_peak() {
    both("end of the start", |both| {
        both.start();
        // A queue of 20 ms in eight packets, delivered at half of the path's rate.
        let window = |both: &mut Both<'_, '_>, part: u64, rtt_ms, rate_pps| {
            both.ack(0.088 + part as f64 / 1e4, rtt_ms, 100, rate_pps)
        };
        let ended = (1..=8).map(|part| window(both, part, 60.0, 1000)).last().expect("eight");
        assert!(!both.law.is_starting() && (40.0..50.0).contains(&ended), "{ended}");
        let decided = both.decided;
        let raised = window(both, 9, 60.0, 2000);
        assert!((80.0..90.0).contains(&raised), "{raised}");
        assert!(window(both, 10, 60.0, 1500) >= raised, "a smaller rate takes nothing");
        let peak = window(both, 11, 60.0, 9000);
        assert!((105.0..110.0).contains(&peak), "{peak}");
        assert_eq!(both.decided, decided, "between decisions");
        // Later packets tell nothing of this: no rate raises the window between decisions.
        let mut last = (both.decided, peak);
        for part in 12..4000 {
            let now = window(both, part, if part < 650 { 60.0 } else { 45.0 }, 9000);
            assert!(part < 800 || both.decided > last.0 || now <= last.1, "{now} at {part}");
            last = (both.decided, now);
        }
    });
}

#[test]
fn losses_of_a_start_are_answered_once_in_the_kernel() {
    both("losses of the start", |both| {
        both.start();
        let peak = both.law.cwnd_packets();
        let halved = both.lose(0.0881, 30);
        assert!(!both.law.is_starting() && (halved - peak / 2.0).abs() < 1.0, "{halved}");
        let first = both.decided;
        let mut cuts = Vec::new();
        for packet in 1..400_u64 {
            let at_s = 0.088 + packet as f64 / 1e3;
            both.ack(at_s, 41.0, 40, 1000);
            if packet % 4 == 0 {
                both.lose(at_s, 1);
            }
            cuts.resize((both.decided - first + 1) as usize, 0.0);
            *cuts.last_mut().expect("not empty") = both.counted("cuts");
        }
        assert_eq!(cuts[..4], [0.0, 0.0, 0.0, 1.0], "two intervals are not judged");
    });
}

#[test]
fn what_the_path_delivered_before_several_cuts_bounds_the_window_in_the_kernel() {
    both("several cuts", |both| {
        both.start();
        both.lose(0.0881, 30);
        let mut at_s = 0.09;
        // An eighth is lost in a queue of 20 ms, which stays after a cut though half as much is delivered.
        for (spacing_s, cuts) in [(0.001, 1.0), (0.002, 2.0)] {
            let lossy = (0..2000).find(|packet| {
                at_s += spacing_s;
                both.ack(at_s, 60.0, 200, 1000);
                if packet % 8 == 0 {
                    both.lose(at_s, 1);
                }
                both.counted("cuts") >= cuts
            });
            assert!(lossy.is_some(), "{cuts} cuts");
        }
        let cut = both.law.cwnd_packets();
        // A round trip delivered 60 packets before the cuts, and 30 between them.
        let windows = (0..500).map(|_| {
            at_s += 0.002;
            both.ack(at_s, 41.0, 200, 1000)
        });
        let widest = windows.fold(0.0, f64::max);
        assert!(widest > 1.5 * cut && (31.0..0.92 * 60.0).contains(&widest), "{cut}, {widest}");
    });
}

#[test]
fn a_drain_ends_in_the_kernel_when_its_window_is_reached() {
    both("drain", |both| {
        both.start();
        let mut packet = 88_u64;
        let mut next = |both: &mut Both<'_, '_>, rtt_ms: f64, found: f64| {
            packet += 1;
            let before = both.counted("drains");
            let window = both.ack(packet as f64 / 1e3, rtt_ms, found as u64, 1000);
            (both.counted("drains") > before, window)
        };
        // A queue of 6 to 10 ms stays, whatever the window: after 1.25 s it is drained. A longer one would be a sign of
        // contention, under which there are no drains.
        let mut before = both.law.cwnd_packets();
        let begun = (0..20_000_u64).find_map(|packets| {
            let (begins, window) = next(both, 46.0 + (packets / 100 % 5) as f64, 200.0);
            if !begins {
                before = window;
            }
            begins.then_some(window)
        });
        let drained = begun.expect("a drain");
        assert!(drained < 0.8 * before, "{before} and then {drained}");
        // More than that is in flight for a while, and then no more.
        for _ in 0..50 {
            assert!(next(both, 60.0, drained + 2.0).1 < 0.8 * before);
        }
        let reached = next(both, 60.0, drained).1;
        assert!(reached > drained / 0.8, "the window is as before: {reached}");
        // It rests until a packet sent from then on has come back, and an interval more: not from the beginning on.
        let rests = (0..74).all(|_| next(both, 75.0, reached).1.total_cmp(&reached).is_eq());
        assert!(rests, "a packet sent in the drain has not come back");
        (0..200).for_each(|_| assert!(next(both, 75.0, reached).1 <= reached));
        let later = (0..400).map(|_| next(both, 41.0, 200.0).1).last().expect("some");
        assert!(later > 2.0 * reached, "{later} is steered again");
        assert!((both.counted("drains") - 1.0).abs() < 0.5);
    });
}

/// Acknowledgements at even distances, from `from_s` until `until_s`; gives the last window.
fn evenly(both: &mut Both<'_, '_>, from_s: f64, until_s: f64, rtt_ms: f64, rate_pps: f64) -> f64 {
    let mut at_s = from_s;
    loop {
        at_s += 1.0 / rate_pps;
        let cwnd = both.ack(at_s, rtt_ms, 60, rate_pps as u64);
        if at_s > until_s {
            return cwnd;
        }
    }
}

/// A calm flow of 1000 packets/s finds a queue that stays: 250 packets/s, and a round trip of 180 ms. Then that, or the
/// delivery rate, grows with the window until 14 s. Gives the window when a rate is held, and the widest.
fn held(both: &mut Both<'_, '_>, round_trip_grows: bool) -> (f64, f64) {
    both.start();
    evenly(both, 0.088, 10.0, 40.0, 1000.0);
    let mut at_s = 10.0;
    while both.counted("intervals_held") < 1.0 {
        assert!(at_s < 20.0, "no sign of contention");
        at_s += 0.02;
        evenly(both, at_s - 0.02, at_s - 0.001, 180.0, 250.0);
    }
    let first = both.law.cwnd_packets();
    let (mut cwnd, mut widest) = (first, first);
    while at_s < 14.0 {
        let grown = cwnd / first;
        let (rtt_ms, rate_pps) = if round_trip_grows {
            (180.0 * (0.12 + 0.88 * grown), 250.0)
        } else {
            (180.0, 250.0 * grown.min(2.0))
        };
        at_s += 0.02;
        cwnd = evenly(both, at_s - 0.02, at_s - 0.001, rtt_ms, rate_pps);
        widest = cwnd.max(widest);
    }
    (first, widest)
}

#[test]
fn a_flow_whose_round_trip_alone_grows_gives_its_rate_up_in_the_kernel() {
    both("alone", |both| {
        let (first, widest) = held(both, true);
        assert!((1.2 * first..2.0 * first).contains(&widest), "{first}, {widest}");
    });
}

#[test]
fn a_rate_is_held_in_the_kernel_while_there_are_losses() {
    both("held rate", |both| {
        // Half of 1000 packets/s, at 180 ms.
        let (_, widest) = held(both, false);
        assert!((89.0..91.0).contains(&widest), "{widest}");
        both.lose(14.0, 1);
        // The queue is gone for a packet every two seconds, so that the round trip of the empty path stays known.
        let stays = |both: &mut Both<'_, '_>, from_s: u32, until_s: u32| {
            let before = both.counted("intervals_held");
            for at_s in (from_s..until_s).step_by(2).map(f64::from) {
                both.ack(at_s + 0.001, 40.0, 60, 500);
                evenly(both, at_s + 0.001, at_s + 1.99, 180.0, 500.0);
            }
            (both.counted("intervals_held") - before, both.law.cwnd_packets())
        };
        let (held, cwnd) = stays(both, 14, 32);
        assert!(held > 50.0 && cwnd > 60.0, "{held}, {cwnd}");
        // 20 s after the latest loss the sign lapses.
        stays(both, 32, 36);
        let (held, cwnd) = stays(both, 36, 46);
        assert!(held < 0.5 && cwnd < 45.0, "{held}, {cwnd}");
        both.lose(46.0, 1);
        assert!(stays(both, 46, 52).0 > 2.0);
    });
}

#[test]
fn own_queue_in_the_kernel_fills_a_link_and_keeps_the_queue_short() {
    if !governs_flows() {
        return;
    }
    // 83 packets in flight fill it; the buffer holds as many four times.
    let bench = Bench::new(
        "inside",
        "rate_mbps = 50\ndelay_ms = 15\nqueue = { kind = \"drop_tail\", packets = 333 }",
    );
    best_of(|| {
        let name = format!("aklaw{}", std::process::id());
        let compiled = Arc::new(Compiled::law(&Settings::default()));
        let options = Options {
            name: name.clone(),
            pins: None,
            slots: 16,
            in_kernel: Some(compiled),
            ..Options::default()
        };
        let registered = Registered::start(&options).expect("a congestion control");
        let mut seen = Vec::new();
        let look = |at: Duration, info: &TcpInfo| seen.push((at.as_secs_f64(), *info));
        bench.transfer(&name, Duration::from_secs(4), look).check();
        let totals = registered.totals().counts;
        assert_eq!((totals.opened, totals.fallbacks, totals.without_slot), (1, 0, 0), "{totals:?}");
        assert!(totals.decisions > 50, "{totals:?}");
        let late: Vec<_> = seen.iter().filter(|(at_s, _)| (1.5..3.9).contains(at_s)).collect();
        let ((from_s, from), (to_s, to)) = (late[0], late[late.len() - 1]);
        let mbps = (to.acked - from.acked) as f64 * 8e-6 / (to_s - from_s) * 1500.0 / 1448.0;
        let widest = late.iter().map(|(_, info)| info.cwnd).max().expect("some");
        kept(mbps > 42.0 && widest < 160, || format!("{mbps} Mb/s, up to {widest} packets"))
    });
}
