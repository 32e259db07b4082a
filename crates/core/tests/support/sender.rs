//! A sender of the tests' own, which fills the windows of a connection's subflows, each over a link with a queue.
use super::table::MSS;
use ackademy::control::{Ack, Coupled, Loss, LossKind, Send, SendAction, SubflowId};
use ackademy::rng::Rng;
use ackademy::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// Most packets of a subflow in flight, so that a large window costs no memory.
const INFLIGHT_MAX: usize = 2000;

/// The link of a subflow, and how its sender reports.
#[derive(Clone)]
pub struct Path {
    pub rate: Rate,
    pub base_rtt: Span,
    /// Packets.
    pub buffer: u64,
    pub loss_ratio: f64,
    /// Deliveries in one record.
    pub batch: usize,
    /// Whether round trips are measured at all.
    pub samples: bool,
    pub duration: Span,
}

pub const PATH: Path = Path {
    rate: Rate(10_000_000),
    base_rtt: Span::from_millis(50),
    buffer: 50,
    loss_ratio: 0.0,
    batch: 1,
    samples: true,
    duration: Span::from_millis(10_000),
};

/// Calls the timer of a subflow if it is due.
pub fn tell_timer(controller: &mut dyn Coupled, id: SubflowId, now: Time) {
    if controller.next_timer(id).is_some_and(|timer| timer <= now) {
        controller.on_timer(id, now);
    }
}

/// Sends on every subflow from `start` on; the bytes that each delivers.
pub fn send(
    path: &Path,
    controller: &mut dyn Coupled,
    ids: &[SubflowId],
    start: Time,
) -> Vec<Bytes> {
    let end = start + path.duration;
    let mut all: Vec<_> = ids.iter().map(|&id| Sender::new(path, id, start)).collect();
    for sender in &mut all {
        sender.plan(controller);
    }
    let next = |all: &mut Vec<Sender>| -> Option<usize> {
        let running = (0..all.len()).filter(|&index| all[index].now < end);
        running.min_by_key(|&index| all[index].next.1)
    };
    while let Some(index) = next(&mut all) {
        all[index].proceed(controller);
        if all[index].now < end {
            all[index].plan(controller);
        }
    }
    all.iter().map(|sender| sender.delivered).collect()
}

struct Packet {
    sent_at: Time,
    /// `None` if it is lost.
    acked_at: Option<Time>,
}

/// What a sender waits for.
#[derive(Clone, Copy)]
enum Event {
    Delivery,
    Pace,
    Timeout,
}

/// That of one subflow.
struct Sender<'a> {
    path: &'a Path,
    id: SubflowId,
    rng: Rng,
    now: Time,
    next: (Event, Time),
    link_free: Time,
    may_send: Time,
    flight: VecDeque<Packet>,
    /// Rtt of the latest delivery, smoothed, and smallest so far.
    rtt: [Span; 3],
    delivered: Bytes,
    /// Losses of packets sent before this belong to an episode already told.
    recovery_start: Option<Time>,
}

impl<'a> Sender<'a> {
    fn new(path: &'a Path, id: SubflowId, start: Time) -> Self {
        Self {
            path,
            id,
            rng: Rng::new(1 + u64::from(id.0)),
            now: start,
            next: (Event::Timeout, start),
            link_free: start,
            may_send: start,
            flight: VecDeque::new(),
            rtt: [Span::ZERO, Span::ZERO, Span::MAX],
            delivered: Bytes(0),
            recovery_start: None,
        }
    }

    /// Sends what may be sent, and finds what it then waits for.
    fn plan(&mut self, controller: &mut dyn Coupled) {
        tell_timer(controller, self.id, self.now);
        let paced = self.send_all(controller);
        let delivery = self.flight.iter().find_map(|packet| packet.acked_at);
        self.next = match delivery {
            Some(at) if !paced || at <= self.may_send => (Event::Delivery, at),
            _ if paced => (Event::Pace, self.may_send),
            _ => (Event::Timeout, self.now + Span::from_millis(1000).max(self.rtt[1] * 2)),
        };
    }

    fn proceed(&mut self, controller: &mut dyn Coupled) {
        match self.next {
            (Event::Delivery, _) => self.deliver(controller),
            (Event::Pace, at) => self.now = at,
            (Event::Timeout, at) => self.time_out(controller, at),
        }
    }

    fn window(&self, controller: &dyn Coupled) -> usize {
        ((controller.control(self.id).cwnd.0 / MSS) as usize).min(INFLIGHT_MAX)
    }

    /// Sends what may be sent; whether only the pace keeps the next packet back.
    fn send_all(&mut self, controller: &mut dyn Coupled) -> bool {
        while self.flight.len() < self.window(controller) {
            if self.now < self.may_send {
                return true;
            }
            let send = Send { now: self.now, size: Bytes(MSS), ..Send::default() };
            if controller.has_send_hook() && controller.on_send(self.id, &send) == SendAction::Hold
            {
                return false;
            }
            let packet = self.packet();
            self.flight.push_back(packet);
            let control = controller.control(self.id);
            if control.pacing_rate != Rate::UNLIMITED {
                self.may_send = self.now + control.pacing_rate.time_for(Bytes(MSS)).max(Span(1));
            }
        }
        false
    }

    fn packet(&mut self) -> Packet {
        let time_on_link = self.path.rate.time_for(Bytes(MSS));
        let queue_full = self.link_free.since(self.now) > time_on_link * self.path.buffer;
        if queue_full || self.rng.chance(self.path.loss_ratio) {
            return Packet { sent_at: self.now, acked_at: None };
        }
        self.link_free = self.link_free.max(self.now) + time_on_link;
        Packet { sent_at: self.now, acked_at: Some(self.link_free + self.path.base_rtt) }
    }

    /// Declares what is missing before the first deliveries lost, then tells of these.
    fn deliver(&mut self, controller: &mut dyn Coupled) {
        let flight_size = Bytes(self.flight.len() as u64 * MSS);
        let mut lost = Vec::new();
        let mut got: Vec<Packet> = Vec::new();
        while got.len() < self.path.batch {
            match self.flight.pop_front() {
                Some(packet) if packet.acked_at.is_some() => got.push(packet),
                Some(packet) if got.is_empty() => lost.push(packet.sent_at),
                Some(packet) => {
                    self.flight.push_front(packet);
                    break;
                }
                None => break,
            }
        }
        let last = got.last().expect("something was delivered");
        self.now = last.acked_at.expect("it was").max(self.now);
        self.sample(self.now.since(last.sent_at));
        if let Some(&sent_at) = lost.last() {
            self.lose(controller, sent_at, lost.len() as u64, flight_size);
        }
        self.acknowledge(controller, last.sent_at, got.len() as u64);
    }

    fn sample(&mut self, rtt: Span) {
        if self.path.samples {
            let [_, smoothed, smallest] = self.rtt;
            let smoothed = if smoothed == Span::ZERO { rtt } else { (smoothed * 7 + rtt) / 8 };
            self.rtt = [rtt, smoothed, smallest.min(rtt)];
        }
    }

    fn lose(
        &mut self,
        controller: &mut dyn Coupled,
        sent_at: Time,
        packets: u64,
        flight_size: Bytes,
    ) {
        let told = self.recovery_start.is_some_and(|start| sent_at <= start);
        let loss = Loss {
            now: self.now,
            sent_at,
            lost: Bytes(packets * MSS),
            inflight: flight_size,
            kind: if told { LossKind::More } else { LossKind::Gap },
            ..Loss::default()
        };
        controller.on_loss(self.id, &loss);
        if !told {
            self.recovery_start = Some(self.now);
        }
    }

    fn acknowledge(&mut self, controller: &mut dyn Coupled, sent_at: Time, packets: u64) {
        let [rtt, srtt, min_rtt] = self.rtt;
        self.delivered += Bytes(packets * MSS);
        let inflight = Bytes(self.flight.len() as u64 * MSS);
        let ack = Ack {
            now: self.now,
            sent_at,
            rtt,
            srtt,
            min_rtt: if self.path.samples { min_rtt } else { Span::ZERO },
            rtt_max: rtt,
            batch_rtt_min: rtt,
            acked: Bytes(packets * MSS),
            ce_marked: Bytes(0),
            inflight,
            prior_inflight: inflight + Bytes(packets * MSS),
            delivered: self.delivered,
            delivery_rate: Rate::of(inflight + Bytes(packets * MSS), rtt.max(Span(1))),
            recovering: u64::from(self.recovery_start.is_some_and(|start| sent_at <= start)),
            cwnd_limited: 1,
            ..Ack::default()
        };
        controller.on_ack(self.id, &ack);
    }

    fn time_out(&mut self, controller: &mut dyn Coupled, now: Time) {
        let lost = Bytes(self.flight.len() as u64 * MSS);
        let (sent_at, kind) = (self.now, LossKind::Timeout);
        self.now = now;
        self.flight.clear();
        self.recovery_start = None;
        let loss = Loss { now, sent_at, lost, inflight: lost, kind, ..Loss::default() };
        controller.on_loss(self.id, &loss);
    }
}
