//! Rates that a controller asks for, on flows of the kernel's TCP. Needs root, BTF and TUN.
use crate::common::bench::Bench;
use crate::common::kernel::{Fixed, Served, TcpInfo};
use crate::common::machine::{best_of, governs_flows, kept};
use crate::common::require::has;
use ackademy::control::{Ack, Control, Controller, Loss};
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy_net::kernel::Options;
use nix::sys::socket::{setsockopt, sockopt};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

const PACKET: u64 = 1500;
const PAYLOAD: u64 = 1448;
const WINDOW: Bytes = Bytes(2000 * PACKET);

fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// Megabits of whole packets per second between two moments of a transfer.
fn mbps(acked: &[(f64, u64)], from_s: f64, to_s: f64) -> f64 {
    let at = |time_s: f64| acked.iter().find(|(at_s, _)| *at_s >= time_s).expect("long enough");
    let ((first_s, first), (last_s, last)) = (at(from_s), at(to_s));
    (last - first) as f64 * 8e-6 / (last_s - first_s) * PACKET as f64 / PAYLOAD as f64
}

/// Moves data under controllers that `served` serves; bytes acknowledged by when.
fn transfer(bench: &Bench, served: &Served, duration_s: f64) -> Vec<(f64, u64)> {
    let mut acked = Vec::new();
    let look = |at: Duration, info: &TcpInfo| acked.push((at.as_secs_f64(), info.acked));
    bench.transfer(&served.name, secs(duration_s), look).check();
    acked
}

#[test]
fn slow_and_fast_rates_are_kept_to_within_five_percent() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("rates", "rate_mbps = 200\ndelay_ms = 15");
    for rate_mbps in [1.0, 5.0, 50.0] {
        let pacing_rate = Rate::from_mbps(rate_mbps);
        let control = Control { pacing_rate, ..Control::window(WINDOW) };
        best_of(|| {
            let (served, _) = Served::logged("rt", move |_| Box::new(Fixed(control)));
            let measured = mbps(&transfer(&bench, &served, 3.0), 1.0, 2.8);
            kept((measured / rate_mbps - 1.0).abs() < 0.05, || {
                format!("{measured} Mb/s where {rate_mbps} were asked for")
            })
        });
    }
}

#[test]
fn paced_packets_leave_one_by_one() {
    if !governs_flows() {
        return;
    }
    // 15 and 5 ms of delay and 1.2 ms of transmission. In pairs, as the kernel would have them, the
    // second packet, which the acknowledgement is timed by, waits another 1.2 ms.
    let bench = Bench::new("singly", "rate_mbps = 10\ndelay_ms = 15");
    let control = Control { pacing_rate: Rate::from_mbps(5.0), ..Control::window(WINDOW) };
    best_of(|| {
        let (served, log) = Served::logged("si", move |_| Box::new(Fixed(control)));
        transfer(&bench, &served, 3.0);
        served.finish();
        let log = log.lock().expect("no panic");
        let timed = log.acks.iter().map(|ack| ack.rtt).filter(|&rtt| rtt > Span::ZERO);
        let mut rtts: Vec<Span> = timed.collect();
        rtts.sort();
        // A busy machine delays packets; not three of four.
        let quartile = rtts[rtts.len() / 4];
        kept(rtts.len() > 100 && quartile < Span::from_micros(21_800), || quartile.to_string())
    });
}

#[test]
fn no_round_trip_is_shorter_than_the_path_when_packets_are_repaired() {
    if !governs_flows() {
        return;
    }
    // 15.4 and 5 ms of delay and 1.2 ms of transmission. The kernel times repairs in whole ones.
    let loss = "loss = { kind = \"bernoulli\", ratio = 0.02 }";
    let bench = Bench::new("repairs", &format!("rate_mbps = 10\ndelay_ms = 15.4\n{loss}"));
    let control = Control { pacing_rate: Rate::from_mbps(5.0), ..Control::window(WINDOW) };
    let (served, log) = Served::logged("re", move |_| Box::new(Fixed(control)));
    transfer(&bench, &served, 3.0);
    served.finish();
    let log = log.lock().expect("no panic");
    assert!(log.losses.len() > 5, "{} losses", log.losses.len());
    let timed = log.acks.iter().filter(|ack| ack.rtt > Span::ZERO);
    let shortest = timed.map(|ack| ack.rtt.min(ack.min_rtt)).min().expect("round trips");
    assert!(shortest >= Span::from_micros(21_600), "{shortest}");
}

/// Asks for one rate after the other, by its own timer.
#[derive(Clone)]
struct Stairs {
    start: Time,
    steps: Vec<Rate>,
    step: usize,
}

const STEP: Span = Span::from_millis(1500);

impl Controller for Stairs {
    fn on_ack(&mut self, _: &Ack) {}
    fn on_loss(&mut self, _: &Loss) {}
    fn on_timer(&mut self, _: Time) {
        self.step += 1;
    }
    fn next_timer(&self) -> Option<Time> {
        let next = self.step + 1;
        (next < self.steps.len()).then(|| self.start + STEP * next as u64)
    }
    fn control(&self) -> Control {
        Control { pacing_rate: self.steps[self.step], ..Control::window(WINDOW) }
    }
}

#[test]
fn a_rate_that_changes_by_the_controllers_timer_is_followed() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("stairs", "rate_mbps = 100\ndelay_ms = 15");
    let rates_mbps = [4.0, 20.0, 8.0];
    let steps: Vec<Rate> = rates_mbps.map(Rate::from_mbps).to_vec();
    best_of(|| {
        let steps = steps.clone();
        let (served, _) = Served::logged("st", move |info| {
            Box::new(Stairs { start: info.start, steps: steps.clone(), step: 0 })
        });
        let acked = transfer(&bench, &served, 4.5);
        let measured: Vec<f64> = (0..rates_mbps.len())
            .map(|step| {
                // The first part of a step still acknowledges what was sent before.
                let begin_s = 1.5 * step as f64;
                mbps(&acked, begin_s + 0.3, begin_s + 1.3)
            })
            .collect();
        let near = |(own, asked): (&f64, f64)| (own / asked - 1.0).abs() < 0.08;
        kept(measured.iter().zip(rates_mbps).all(near), || {
            format!("{measured:.2?} Mb/s instead of {rates_mbps:?}")
        })
    });
}

/// Limits the rate of a socket, in bytes per second, as applications do (socket(7)).
fn limit(stream: &TcpStream, rate: u64) {
    // SAFETY: eight bytes, which outlive the call.
    let done = unsafe {
        let value = (&raw const rate).cast();
        libc::setsockopt(stream.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, value, 8)
    };
    assert_eq!(done, 0, "setsockopt(SO_MAX_PACING_RATE)");
}

/// Mb/s of payload; a controller's rates are of packets.
const LARGEST: f64 = 8.0;

#[test]
fn an_applications_largest_rate_outlives_the_controller_s() {
    if !governs_flows() {
        return;
    }
    let bench = Bench::new("largest", "rate_mbps = 100\ndelay_ms = 15");
    let control = Control { pacing_rate: Rate::from_mbps(50.0), ..Control::window(WINDOW) };
    for falls_back in [true, false] {
        let (served, _) = Served::logged("lr", move |_| Box::new(Fixed(control)));
        let name = served.name.clone();
        let mut served = Some(served);
        let (mut limited, mut acked) = (false, Vec::new());
        let look = |at: Duration, stream: &TcpStream| {
            acked.push((at.as_secs_f64(), TcpInfo::of(stream).acked));
            if at > secs(0.3) && !limited {
                limit(stream, (LARGEST * 1e6 / 8.0) as u64);
                limited = true;
            }
            if at > secs(1.0) && falls_back {
                served = None; // nobody answers: CUBIC
            } else if at > secs(1.0) {
                let cubic = "cubic".into();
                setsockopt(stream, sockopt::TcpCongestion, &cubic).expect("it");
            }
        };
        bench.transfer_watched(&name, secs(4.0), look).check();
        let fastest = mbps(&acked, 2.0, 3.8) * PAYLOAD as f64 / PACKET as f64;
        assert!(fastest < 1.1 * LARGEST, "{fastest} Mb/s, falls back: {falls_back}");
    }
}

#[test]
fn rate_based_controllers_use_a_link_of_the_kernels() {
    if !governs_flows() {
        return;
    }
    let queue = "queue = { kind = \"drop_tail\", packets = 60 }";
    let bench = Bench::new("pcc", &format!("rate_mbps = 20\ndelay_ms = 15\n{queue}"));
    for name in ["vivace", "pcc_allegro", "pcc_quic"] {
        // A machine that stalls for some milliseconds looks like a queue to Vivace, which then leaves
        // its start at half the rate: what the link allows shows in the best of a few flows.
        best_of(|| {
            let served = Served::controller("rb", name);
            let acked = transfer(&bench, &served, 6.0);
            let (_, closed) = served.finish();
            assert_eq!((closed[0].1.fallbacks, closed[0].1.invalid), (0, 0), "{name}");
            let share = mbps(&acked, 3.0, 5.8) / 20.0;
            println!("{name}: {share:.3} of the link");
            kept(share > 0.5, || format!("{name} uses {share:.3} of the link"))
        });
    }
}

/// The most that a flow has as window, in packets, and rate, in Mb/s, from `from_s` to 3 s. `name` is what the
/// kernel calls its congestion control.
fn extremes(bench: &Bench, name: &str, from_s: f64) -> (u32, f64) {
    let (mut cwnd, mut pacing) = (0, 0);
    let look = |at: Duration, info: &TcpInfo| {
        if at > secs(from_s) {
            (cwnd, pacing) = (cwnd.max(info.cwnd), pacing.max(info.pacing));
        }
    };
    bench.transfer(name, secs(3.0), look).check();
    (cwnd, pacing as f64 * 8e-6 * PACKET as f64 / PAYLOAD as f64)
}

/// 17 ms at 33 Mb/s are 47 packets, and the buffer holds as many. A Copa that acts once per record, as if all
/// acknowledgements of it had one round trip, ends its doubling at thirty times the rate.
#[test]
fn records_of_any_interval_leave_copa_within_thrice_what_the_link_holds() {
    if !governs_flows() {
        return;
    }
    let queue = "queue = { kind = \"drop_tail\", packets = 47 }";
    let bench = Bench::new("copa", &format!("rate_mbps = 33\ndelay_ms = 12\n{queue}"));
    for interval in [Options::default().interval, Span::from_millis(2), Span::from_micros(10)] {
        best_of(|| {
            let served = Served::controller_every("ex", "copa", interval);
            let (cwnd, mbps) = extremes(&bench, &served.name, 1.0);
            let (_, closed) = served.finish();
            assert_eq!((closed[0].1.fallbacks, closed[0].1.invalid), (0, 0));
            println!("records of {interval}: at most {cwnd} packets, {mbps:.0} Mb/s");
            kept(cwnd <= 3 * 47 && mbps < 3.0 * 33.0, || format!("{cwnd} packets, {mbps} Mb/s"))
        });
    }
}

/// Losses that CoDel spreads over many round trips raise the window of neither while they last.
#[test]
fn bbr1_reaches_no_larger_window_behind_codel_than_the_kernels_bbr() {
    if !governs_flows() || !has("kernel", &lacking("bbr")) {
        return;
    }
    let queue = "queue = { kind = \"codel\", packets = 800 }";
    let bench = Bench::new("conserve", &format!("rate_mbps = 30\ndelay_ms = 27\n{queue}"));
    best_of(|| {
        let (own, _) = extremes(&bench, "bbr", 0.0);
        let served = Served::controller("co", "bbr1");
        let (cwnd, _) = extremes(&bench, &served.name, 0.0);
        println!("bbr1: at most {cwnd} packets, kernel:bbr {own}");
        kept(cwnd <= own + own / 5, || format!("{cwnd} packets, kernel:bbr {own}"))
    });
}

/// What the kernel lacks, if it has no congestion control of this name.
fn lacking(name: &str) -> Vec<String> {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let set = setsockopt(&socket, sockopt::TcpCongestion, &name.into());
    set.err().map(|error| format!("congestion control {name}: {error}")).into_iter().collect()
}
