//! What every link must hold, over random inputs and in small closed loops: windows that grow by a
//! packet per round trip and halve on a drop or mark, over one queue. The event loop is not used.
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ackademy::rng::{Rng, Seed};
use ackademy::sim::exact::Exact;
use ackademy::sim::loss::{GilbertElliott, Loss, Process};
use ackademy::sim::queues::codel::{self, Codel};
use ackademy::sim::queues::fq_codel::{self, FqCodel};
use ackademy::sim::queues::pie::{self, Pie};
use ackademy::sim::queues::red::{self, Red};
use ackademy::sim::queues::{Admission, Backlog, Fate, Scheduler};
use ackademy::sim::service::{Outages, Service};
use ackademy::sim::steps::Steps;
use ackademy::sim::trace::{Cellular, PACKET, Trace};
use ackademy::transport::packet::{Ect, Packet};
use ackademy::units::{Bytes, Rate, Span, Time};
use proptest::prelude::*;

const MS: fn(u64) -> Span = Span::from_millis;

/// Any rate process and any outages, over some tens of milliseconds.
fn services() -> impl Strategy<Value = Service> {
    let rate = || prop_oneof![Just(0), 1_000_000_u64..2_000_000_000];
    let constant = (1_000_000_u64..10_000_000_000).prop_map(|rate| Service::constant(Rate(rate)));
    let schedule = (prop::collection::vec((1_u64..5_000_000, rate()), 1..6), any::<bool>());
    let schedule = schedule.prop_map(|(pieces, repeat)| {
        let mut begin = 0;
        let mut steps = vec![(Time(0), Rate(50_000_000))];
        for (length, rate) in pieces {
            begin += length;
            steps.push((Time(begin), Rate(rate)));
        }
        Service::schedule(if repeat {
            Steps::repeating(steps, Span(begin + 1_000_000)).expect("steps increase")
        } else {
            steps.push((Time(begin + 1), Rate(10_000_000)));
            Steps::new(steps).expect("steps increase")
        })
    });
    let random = (any::<u64>(), 1_u64..50).prop_map(|(seed, every)| {
        let (low, high) = (Rate(1_000_000), Rate(100_000_000));
        Service::random(low, high, MS(every), Seed(seed)).expect("low is below high")
    });
    let trace = prop::collection::vec(1_u32..30, 1..200).prop_map(|mut millis| {
        millis.sort_unstable();
        Service::trace(Arc::new(trace(&millis)))
    });
    let outages = prop::collection::vec((0_u64..100_000_000, 1_u64..9_000_000), 0..4);
    (prop_oneof![constant, schedule, random, trace], outages).prop_map(|(service, outages)| {
        let periods = outages.iter().map(|&(from, length)| (Time(from), Time(from + length)));
        service.with_outages(Outages::new(periods.collect()).expect("each lasts"))
    })
}

proptest! {
    #[test]
    fn service_finishes_in_order_and_never_carries_more_than_the_capacity(
        mut service in services(),
        packets in prop::collection::vec((0_u64..3_000_000, 1_u32..9000, any::<bool>()), 1..150),
    ) {
        let oracle = service.clone();
        let mut finished = Exact::default();
        for (gap, size, idle) in packets {
            let start = if idle { Exact::whole(finished.at + Span(gap)) } else { finished };
            let done = service.finish(start, size);
            let (start, end) = (start.at, done.at);
            prop_assert!(end >= start && end < Time::NEVER);
            // Rounding an earlier end up to a nanosecond may have left a few bytes' credit.
            let max = oracle.capacity(start, end + Span(1)) + PACKET;
            prop_assert!(u64::from(size) <= max.0, "{size} bytes from {start} to {end}");
            finished = done;
        }
    }

    #[test]
    fn a_backlogged_link_carries_its_capacity_within_a_packet(
        mut service in services(),
        sizes in prop::collection::vec(1_u32..9000, 200..400),
    ) {
        let (mut sent, mut headers, mut end) = (0, 0, Exact::default());
        for &size in &sizes {
            end = service.finish(end, size);
            let time = end.at;
            sent += u64::from(size);
            headers += 4; // of a trace's packet whose last piece is not full
            let before = service.capacity(Time(0), time).0;
            let after = service.capacity(Time(0), time + Span(1)).0 + 1; // it rounds down
            prop_assert!(sent <= after, "{sent} bytes sent where {after} fit");
            prop_assert!(sent + u64::from(size) + 8 + headers >= before, "{sent} of {before}");
        }
    }

    #[test]
    fn capacity_adds_up_over_adjacent_periods(
        service in services(),
        from in 0_u64..50_000_000,
        first in 0_u64..50_000_000,
        second in 0_u64..50_000_000,
    ) {
        let (from, middle) = (Time(from), Time(from + first));
        let to = middle + Span(second);
        let parts = service.capacity(from, middle) + service.capacity(middle, to);
        let whole = service.capacity(from, to);
        prop_assert!(parts <= whole && whole.0 <= parts.0 + 1, "{parts:?} of {whole:?}");
    }

    #[test]
    fn a_trace_carries_a_full_packet_per_line_in_each_round(
        millis in prop::collection::vec(0_u32..1000, 1..100),
        rounds in 1_u64..50,
    ) {
        let mut millis = millis;
        millis.push(1000);
        millis.sort_unstable();
        let trace = trace(&millis);
        let count = trace.millis().len() as u64;
        let period = trace.period();
        let service = Service::trace(Arc::new(trace));
        let start = Time(1);
        let capacity = service.capacity(start, start + period * rounds);
        prop_assert_eq!(capacity, PACKET * (count * rounds));
    }

    #[test]
    fn the_trace_parser_survives_every_input(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_parse(&bytes);
    }

    #[test]
    fn the_trace_parser_survives_inputs_that_are_nearly_right(
        text in "([0-9]{0,12}(\r?\n| |-|\u{e9}|\0)){0,30}",
    ) {
        check_parse(text.as_bytes());
    }

    #[test]
    fn gilbert_elliott_loses_its_stationary_ratio(
        p_good_to_bad in 0.01_f64..0.5,
        p_bad_to_good in 0.05_f64..0.9,
        loss_good in 0.0_f64..0.1,
        loss_bad in 0.1_f64..1.0,
        seed: u64,
    ) {
        let model =
            GilbertElliott { p_good_to_bad, p_bad_to_good, loss_good, loss_bad, bad: false };
        let process = Process::GilbertElliott(model);
        let mut loss = Loss { process, from: Time(0), until: Time::NEVER, rng: Rng::new(seed) };
        let count = (0..100_000).filter(|_| loss.lost(Time(0))).count();
        let (found, expected) = (count as f64 / 1e5, model.loss_ratio());
        prop_assert!((found - expected).abs() < 0.02, "{found} where {expected} was expected");
    }
}

fn trace(millis: &[u32]) -> Trace {
    let lines: Vec<String> = millis.iter().map(u32::to_string).collect();
    Trace::parse(lines.join("\n").as_bytes(), "drawn").expect("the numbers are sorted")
}

/// What parses is sound and survives its own text; what does not is refused in one short line.
fn check_parse(bytes: &[u8]) {
    match Trace::parse(bytes, "input") {
        Ok(trace) => {
            assert!(trace.millis().is_sorted() && trace.period() > Span::ZERO);
            assert_eq!(Trace::parse(trace.to_text().as_bytes(), "again"), Ok(trace));
        }
        Err(error) => {
            let message = error.to_string();
            assert!(message.starts_with("input:") && message.len() < 300, "{message}");
            assert!(!message.contains(|char: char| char.is_control()), "{message}");
        }
    }
}

#[test]
fn a_generated_trace_carries_its_mean_rate() {
    let trace = Trace::generate(&Cellular::default(), Seed(6));
    let (period, mean) = (trace.period(), trace.mean_rate());
    let service = Service::trace(Arc::new(trace));
    let carried = service.capacity(Time(1), Time(1) + period * 10);
    assert!(carried.0.abs_diff(mean.bytes_in(period * 10).0) <= 75); // a bit per second
}

#[test]
fn pie_holds_a_standing_queue_near_its_target() {
    let config = pie::Config::default();
    let waits = closed_loop(Queue::Admits(Box::new(Pie::new(config))), 10, Ect::Not);
    let mean = mean(&waits);
    assert!((MS(8)..MS(22)).contains(&mean), "{mean} where the target is {}", config.target);
}

#[test]
fn pie_holds_it_with_marks_as_well() {
    let config = pie::Config { ecn: true, ..pie::Config::default() };
    let mean = mean(&closed_loop(Queue::Admits(Box::new(Pie::new(config))), 10, Ect::Zero));
    assert!((MS(8)..MS(22)).contains(&mean), "{mean} where the target is {}", config.target);
}

#[test]
fn codel_holds_a_standing_queue_near_its_target() {
    for ecn in [false, true] {
        let config = codel::Config { ecn, ..codel::Config::default() };
        let ect = if ecn { Ect::Zero } else { Ect::Not };
        let waits = closed_loop(Queue::Schedules(Box::new(Codel::new(config))), 10, ect);
        let mean = mean(&waits);
        assert!((MS(3)..MS(15)).contains(&mean), "{mean} where the target is {}", config.target);
    }
}

#[test]
fn red_holds_the_queue_between_its_thresholds() {
    let config = red::Config {
        min_packets: 10,
        max_packets: 40,
        packet_time: Span::from_micros(600),
        ..red::Config::default()
    };
    let mean = mean(&closed_loop(Queue::Admits(Box::new(Red::new(config))), 10, Ect::Not));
    let (low, high) = (config.packet_time * 8, config.packet_time * 42);
    assert!((low..high).contains(&mean), "{mean}, not within {low} and {high}");
}

#[test]
fn fq_codel_isolates_a_sparse_flow_from_heavy_ones() {
    let mut queue = FqCodel::new(fq_codel::Config::default());
    let mut service = Service::constant(Rate(10_000_000));
    let (mut rng, mut dropped, mut waits) = (Rng::new(4), Vec::new(), Vec::new());
    let mut now = Time(0);
    for turn in 0..20_000 {
        // Two flows that answer to nothing, at twice the link's rate; one packet per 20 turns.
        for flow in [1, 2] {
            let size = 1500;
            queue.enqueue(now, Packet { flow, size, ..Packet::default() }, &mut rng, &mut dropped);
        }
        if turn % 20 == 0 {
            let sparse = Packet { flow: 9, size: 200, sent_at: now, ..Packet::default() };
            queue.enqueue(now, sparse, &mut rng, &mut dropped);
        }
        let packet = queue.dequeue(now, &mut dropped).expect("heavy flows never stop");
        if packet.flow == 9 {
            waits.push(now - packet.sent_at);
        }
        now = service.finish(Exact::whole(now), packet.size).at;
    }
    assert!(dropped.iter().all(|packet| packet.flow != 9));
    assert_eq!(waits.len(), 1000);
    let longest = waits.iter().max().unwrap();
    assert!(*longest <= Span::from_micros(4 * 1200), "{longest} behind two turns of two packets");
    let mean = waits.iter().copied().sum::<Span>() / 1000;
    assert!(mean <= Span::from_micros(1200), "{mean} behind one packet");
}

/// A queue of either kind before one link.
enum Queue {
    Admits(Box<dyn Admission>),
    Schedules(Box<dyn Scheduler>),
}

/// A link of 20 Mb/s in front of flows with 60 ms round trips, driven event by event.
struct Path {
    queue: Queue,
    service: Service,
    rng: Rng,
    now: Time,
    /// End of the transmission under way, and of those that an admission has already planned.
    busy: Time,
    planned: VecDeque<Time>,
    /// The packet that a scheduler has handed out.
    sending: Option<Packet>,
    /// Packets that come back to their senders, in order of time and then of number.
    feedback: BTreeMap<(Time, u64), Packet>,
    number: u64,
    windows: Vec<Window>,
    waits: Vec<Span>,
}

#[derive(Clone, Copy, Default)]
struct Window {
    packets: f64,
    inflight: u64,
    /// Congestion reported before this belongs to a reduction already made.
    quiet_until: Time,
}

/// Queueing delays of the packets sent in the last 50 of 60 seconds.
fn closed_loop(queue: Queue, flows: usize, ect: Ect) -> Vec<Span> {
    let window = Window { packets: 10.0, ..Window::default() };
    let mut path = Path {
        queue,
        service: Service::constant(Rate(20_000_000)),
        rng: Rng::new(77),
        now: Time(0),
        busy: Time(0),
        planned: VecDeque::new(),
        sending: None,
        feedback: BTreeMap::new(),
        number: 0,
        windows: vec![window; flows],
        waits: Vec::new(),
    };
    (0..flows).for_each(|flow| path.send(flow, ect));
    let end = Time(0) + MS(60_000);
    while path.now < end {
        path.step(ect);
    }
    path.waits
}

impl Path {
    /// The next event: a transmission's end or a packet's return.
    fn step(&mut self, ect: Ect) {
        let back = self.feedback.first_key_value().map_or(Time::NEVER, |(key, _)| key.0);
        if let Some(packet) = self.sending.take_if(|_| self.busy <= back) {
            self.now = self.busy;
            self.bring_back(packet, self.now + MS(60));
            self.transmit();
            return;
        }
        let ((time, _), packet) = self.feedback.pop_first().expect("some packet is always out");
        self.now = time;
        self.on_feedback(packet);
        self.send(packet.flow as usize, ect);
    }

    /// `again` stands for a packet that was dropped.
    fn on_feedback(&mut self, packet: Packet) {
        let window = &mut self.windows[packet.flow as usize];
        window.inflight -= 1;
        if !packet.ce && !packet.repeat {
            window.packets += 1.0 / window.packets;
        } else if packet.sent_at >= window.quiet_until {
            window.packets = (window.packets / 2.0).max(1.0);
            window.quiet_until = self.now;
        }
    }

    fn send(&mut self, flow: usize, ect: Ect) {
        while (self.windows[flow].inflight as f64) < self.windows[flow].packets {
            self.windows[flow].inflight += 1;
            let packet = Packet {
                flow: flow as u32,
                size: 1500,
                sent_at: self.now,
                ect,
                ..Packet::default()
            };
            self.arrive(packet);
        }
    }

    fn arrive(&mut self, mut packet: Packet) {
        let mut dropped = Vec::new();
        match &mut self.queue {
            Queue::Admits(queue) => {
                while self.planned.front().is_some_and(|&end| end <= self.now) {
                    self.planned.pop_front();
                }
                let packets = self.planned.len() as u64;
                let start = self.busy.max(self.now);
                let backlog = Backlog { packets, bytes: packets * 1500, wait: start - self.now };
                match queue.admit(self.now, &packet, &backlog, &mut self.rng) {
                    Fate::Drop => dropped.push(packet),
                    fate => {
                        packet.ce = fate == Fate::Mark;
                        self.busy = self.service.finish(Exact::whole(start), packet.size).at;
                        self.planned.push_back(self.busy);
                        self.record(backlog.wait);
                        self.bring_back(packet, self.busy + MS(60));
                    }
                }
            }
            Queue::Schedules(queue) => {
                queue.enqueue(self.now, packet, &mut self.rng, &mut dropped);
            }
        }
        self.bring_back_dropped(&dropped);
        self.transmit();
    }

    fn transmit(&mut self) {
        let Queue::Schedules(queue) = &mut self.queue else { return };
        if self.sending.is_some() {
            return;
        }
        let mut dropped = Vec::new();
        self.sending = queue.dequeue(self.now, &mut dropped);
        if let Some(packet) = self.sending {
            self.busy = self.service.finish(Exact::whole(self.now), packet.size).at;
            self.record(self.now - packet.sent_at);
        }
        self.bring_back_dropped(&dropped);
    }

    fn bring_back_dropped(&mut self, dropped: &[Packet]) {
        for &packet in dropped {
            self.bring_back(Packet { repeat: true, ..packet }, self.now + MS(60));
        }
    }

    fn bring_back(&mut self, packet: Packet, time: Time) {
        self.number += 1;
        self.feedback.insert((time, self.number), packet);
    }

    fn record(&mut self, wait: Span) {
        if self.now > Time(0) + MS(10_000) {
            self.waits.push(wait);
        }
    }
}

fn mean(waits: &[Span]) -> Span {
    let carried = Bytes(1500) * waits.len() as u64;
    let used = Rate::of(carried, MS(50_000)).as_mbps() / 20.0;
    assert!(used > 0.9, "the link carried {used} of what it could");
    waits.iter().copied().sum::<Span>() / waits.len() as u64
}
