//! One direction of a link: a queue, a transmitter, the wire.
//!
//! Where the queue decides on arrival, a packet's departure is known the moment it arrives: the link
//! keeps a busy-until time and the departures still to come, and needs no event of its own. Where it
//! decides on departure (`CoDel`, FQ-CoDel), the link asks for an event per transmission.
use super::aggregation::Aggregation;
use super::delay::Delay;
use super::exact::Exact;
use super::loss::{Duplicate, Loss, Reorder};
use super::pipe::Pipe;
use super::policer::Policer;
use super::queues::drop_tail::DropTail;
use super::queues::{Admission, Backlog, Fate, Scheduler};
use super::remark::Remark;
use super::retransmit::Retransmit;
use super::service::Service;
use crate::hint::{likely, seldom, unlikely};
use crate::rng::{Rng, Seed};
use crate::sim::plan::{LinkPlan, RatePlan};
use crate::transport::packet::Packet;
use crate::units::{Bytes, Span, Time};
use std::collections::VecDeque;

mod parts;

/// What became of a packet offered to a link. Small enough to be returned in two registers: what goes through
/// memory here in parts is read as a whole, and waits for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It will arrive at this time, after all before it.
    Arrives(Time),
    /// It will arrive at this time. It may be overtaken or overtakes: it needs an event of its own.
    Reordered(Time),
    /// As `Arrives`, and a second copy with it.
    Twice(Time),
    /// As `Reordered`, and a second copy with it.
    Duplicated(Time),
    /// Dropped by the queue.
    Dropped,
    /// Lost on the wire.
    Lost,
    /// Held by a scheduler, which is transmitting.
    Held,
    /// Held by a scheduler with nothing to transmit: the link is to be asked for its next transmission.
    HeldIdle,
}

impl Offer {
    fn arrives(at: Time, reordered: bool, twice: bool) -> Self {
        match (reordered, twice) {
            (false, false) => Self::Arrives(at),
            (true, false) => Self::Reordered(at),
            (false, true) => Self::Twice(at),
            (true, true) => Self::Duplicated(at),
        }
    }

    /// Whether its transmission is known.
    pub fn is_sent(self) -> bool {
        !matches!(self, Self::Dropped | Self::Held | Self::HeldIdle)
    }
}

/// Counters of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// Packets offered.
    pub arrived_packets: u64,
    /// Dropped by the queue, or before it by a policer.
    pub queue_drops: u64,
    /// Lost on the wire.
    pub random_losses: u64,
    /// Marked by the queue.
    pub marked_packets: u64,
    /// Put on the wire and not lost.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Transmissions that begin, if not yet.
    pub transmitted_packets: u64,
    /// Sum of the waits before them, in nanoseconds.
    pub wait_sum: u128,
}

/// A packet that leaves the queue.
#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Time,
    size: u32,
    /// Of [`Exact`]; apart from `at` to keep this at 16 bytes.
    early: u16,
    lost: bool,
}

enum Discipline {
    Unlimited,
    DropTail(DropTail),
    Admission(Box<dyn Admission>),
    Scheduler(Box<dyn Scheduler>),
}

/// What few links do to packets, apart to keep the others small.
#[derive(Default)]
struct Extras {
    policer: Option<Policer>,
    aggregation: Option<Aggregation>,
    retransmit: Option<Retransmit>,
    remark: Option<Remark>,
}

/// One direction of a link.
pub struct Link {
    service: Service,
    delay: Delay,
    keep_order: bool,
    discipline: Discipline,
    rng: Rng,
    loss: Option<Loss>,
    duplicate: Option<Duplicate>,
    reorder: Option<Reorder>,
    extras: Option<Box<Extras>>,
    /// The delay, if nothing else happens to a packet on this wire, and to every packet the same.
    plain_wire: Option<Span>,
    busy_until: Exact,
    /// Departures to come; a link of one rate without limit, loss or samples does not need them.
    departures: VecDeque<Departure>,
    records: bool,
    bytes: u64,
    /// Packets that came into a scheduler with a mark and have not left: the others' are its own.
    ce_held: u64,
    last_arrival: Time,
    /// How long the packet waited whose transmission began last.
    waited: Span,
    /// Packets on the wire, in order of arrival.
    pub pipe: Pipe,
    /// Counters.
    pub stats: LinkStats,
    sample_interval: Span,
    next_sample: Time,
    /// Packets and bytes in the system at each sample.
    pub samples: Vec<(u64, u64)>,
}

impl Link {
    /// A link as planned; `index` separates its random streams from other links'.
    pub fn new(plan: &LinkPlan, index: u64, seed: Seed, sample_interval: Span) -> Self {
        let sub = |label: &str| Seed(seed.derive(label, index));
        let rng = |label: &str| seed.stream(label, index);
        let every = if plan.sampled { sample_interval } else { Span::ZERO };
        let discipline = parts::discipline(plan, || seed.number("hash", index));
        let steady = matches!(plan.rate, RatePlan::Constant(_)) && plan.outages.is_empty();
        let unlimited = matches!(discipline, Discipline::Unlimited);
        let loses = parts::may_lose(plan);
        let delay = parts::delay(plan, Seed(seed.derive("delay", plan.delay_of.unwrap_or(index))));
        let plain_wire = match delay {
            Delay::Constant(span) if parts::has_plain_wire(plan) => Some(span),
            _ => None,
        };
        Self {
            service: parts::service(plan, sub("rate")),
            delay,
            keep_order: plan.keep_order,
            discipline,
            rng: rng("queue"),
            loss: parts::loss(plan, rng("loss")),
            duplicate: (plan.duplicate_ratio > 0.0)
                .then(|| Duplicate { ratio: plan.duplicate_ratio, rng: rng("duplicate") }),
            reorder: plan.reorder.as_ref().map(|spec| Reorder {
                ratio: spec.ratio,
                low: Span::from_secs_f64(spec.low_ms / 1e3),
                high: Span::from_secs_f64(spec.high_ms / 1e3),
                rng: rng("reorder"),
            }),
            extras: parts::extras(plan, &rng),
            plain_wire,
            busy_until: Exact::default(),
            departures: VecDeque::new(),
            records: !unlimited || !steady || loses || every > Span::ZERO,
            bytes: 0,
            ce_held: 0,
            last_arrival: Time(0),
            waited: Span::ZERO,
            pipe: Pipe::default(),
            stats: LinkStats::default(),
            sample_interval: every,
            next_sample: if every > Span::ZERO { Time(0) } else { Time::NEVER },
            samples: Vec::new(),
        }
    }

    /// Whether the fate of a packet is known when it arrives.
    pub fn decides_on_arrival(&self) -> bool {
        !matches!(self.discipline, Discipline::Scheduler(_))
    }

    /// Whether what leaves keeps its order and its number.
    pub fn keeps_order(&self) -> bool {
        self.keep_order && self.duplicate.is_none() && self.reorder.is_none()
    }

    /// How long the packet waited whose transmission began last.
    pub fn waited(&self) -> Span {
        self.waited
    }

    /// When the transmission that was begun last is over.
    pub fn free_at(&self) -> Time {
        self.busy_until.at
    }

    /// Propagation at a time; the mean where every packet's differs.
    pub fn propagation(&self, at: Time) -> Span {
        self.delay.usual(at)
    }

    /// Bytes delivered by `now`, on the way to the other end included.
    pub fn served(&self, now: Time) -> u64 {
        if !self.records {
            return self.stats.delivered_bytes - self.unrecorded(now).1;
        }
        let gone = self.departures.iter().take_while(|departure| departure.at <= now);
        let kept = gone.filter(|departure| !departure.lost);
        self.stats.delivered_bytes + kept.map(|departure| u64::from(departure.size)).sum::<u64>()
    }

    /// What the link could have carried.
    pub fn capacity(&self, from: Time, to: Time) -> Bytes {
        self.service.capacity(from, to)
    }

    /// Ends the counting at `end`: what has not left by then is not delivered. Returns how many
    /// packets that is.
    pub fn close(&mut self, end: Time) -> u64 {
        self.expire(Exact::whole(end));
        if !self.records {
            let (packets, bytes) = self.unrecorded(end);
            self.stats.delivered_bytes -= bytes;
            self.stats.delivered_packets -= packets;
            return packets;
        }
        self.held() + self.departures.iter().filter(|departure| !departure.lost).count() as u64
    }

    /// Packets and bytes that have not left by `end`, where departures were not kept: the server tells
    /// what is left, and a mean packet how many.
    fn unrecorded(&self, end: Time) -> (u64, u64) {
        let LinkStats { delivered_packets, delivered_bytes, .. } = self.stats;
        if self.busy_until.at <= end || delivered_packets == 0 {
            return (0, 0);
        }
        let bytes = self.service.unsent(end).0.min(delivered_bytes);
        let packets = (u128::from(bytes) * u128::from(delivered_packets))
            .div_ceil(u128::from(delivered_bytes)) as u64;
        (packets, bytes)
    }

    /// Packets and bytes in the system at `now`, the packet in transmission included.
    pub fn backlog(&mut self, now: Time) -> (u64, u64) {
        self.expire(Exact::whole(now));
        match &self.discipline {
            Discipline::Scheduler(queue) => {
                let transmitted = self.departures.len() as u64;
                (queue.packets() + transmitted, queue.bytes() + self.bytes)
            }
            _ if self.records => (self.departures.len() as u64, self.bytes),
            _ => self.unrecorded(now),
        }
    }

    /// Packets held by a scheduler.
    pub fn held(&self) -> u64 {
        match &self.discipline {
            Discipline::Scheduler(queue) => queue.packets(),
            _ => 0,
        }
    }

    /// Shows the packets that a scheduler holds.
    pub fn show_held(&self, each: &mut dyn FnMut(&Packet)) {
        if let Discipline::Scheduler(queue) = &self.discipline {
            queue.show(each);
        }
    }

    /// Whether all that it asks of a packet is its size: its queue is a drop-tail or unlimited one, without a policer
    /// before it.
    #[inline]
    pub fn asks_size(&self) -> bool {
        let by_size = matches!(self.discipline, Discipline::Unlimited | Discipline::DropTail(_));
        by_size && self.extras.is_none()
    }

    /// As [`offer`](Self::offer), of a packet of this size to a link that [asks no more](Self::asks_size). So a new packet
    /// is written once, to its place in the pipe: what is written in parts and copied at once, from one place
    /// in memory to another, is waited for.
    #[expect(clippy::inline_always, reason = "called for nearly every packet")]
    #[inline(always)]
    pub fn offer_size(&mut self, now: Time, size: u32, early: u16) -> Offer {
        debug_assert!(self.asks_size(), "its size does not tell what becomes of it");
        if unlikely(now >= self.next_sample) {
            self.sample_until(now);
        }
        self.stats.arrived_packets += 1;
        let arrival = Exact { at: now, early };
        if unlikely(!self.has_place(arrival, size)) {
            self.stats.queue_drops += 1;
            return Offer::Dropped;
        }
        let departs = self.serve(arrival, size);
        self.depart(departs, size)
    }

    /// Whether a packet of this size finds a place in a queue of which no more is asked.
    #[inline]
    fn has_place(&mut self, arrival: Exact, size: u32) -> bool {
        if self.records {
            self.expire(arrival);
        }
        match &self.discipline {
            Discipline::DropTail(queue) => {
                queue.fits(self.departures.len() as u64, self.bytes, size)
            }
            _ => true,
        }
    }

    /// Transmits a packet of this size behind all others: when it leaves.
    #[inline]
    fn serve(&mut self, arrival: Exact, size: u32) -> Exact {
        let start = arrival.max(self.busy_until);
        let departs = self.service.finish(start, size);
        self.busy_until = departs;
        self.waited = start.at.since(arrival.at);
        if likely(departs.at < Time::NEVER) {
            self.stats.transmitted_packets += 1;
            self.stats.wait_sum += u128::from(self.waited.0);
        }
        departs
    }

    /// A packet arrives at the link, whose queue may mark it. Calls must not go back in time. What becomes of its
    /// [`Packet::early`] tells [`early`](Self::early). Packets that a scheduler
    /// drops, this one or others, go to `dropped`.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: &mut Packet, dropped: &mut Vec<Packet>) -> Offer {
        if unlikely(now >= self.next_sample) {
            self.sample_until(now);
        }
        self.stats.arrived_packets += 1;
        if unlikely(!self.is_admitted(now, packet)) {
            self.stats.queue_drops += 1;
            return Offer::Dropped;
        }
        let arrival = Exact { at: now, early: packet.early };
        let fate = match self.discipline {
            Discipline::Unlimited | Discipline::DropTail(_) => {
                if self.has_place(arrival, packet.size) { Fate::Keep } else { Fate::Drop }
            }
            Discipline::Admission(_) => self.admit(arrival, packet),
            Discipline::Scheduler(_) => return self.hold(now, *packet, dropped),
        };
        match fate {
            Fate::Keep => {}
            Fate::Mark => {
                packet.ce = true;
                self.stats.marked_packets += 1;
            }
            Fate::Drop => {
                self.stats.queue_drops += 1;
                return Offer::Dropped;
            }
        }
        let departs = self.serve(arrival, packet.size);
        self.remark(packet);
        self.depart(departs, packet.size)
    }

    /// What rounding to whole nanoseconds added to the time at which the latest packet leaves
    /// ([`Packet::early`]).
    #[inline]
    pub fn early(&self) -> u16 {
        self.busy_until.early
    }

    /// Whether a policer, if there is one, lets a packet in.
    #[inline]
    fn is_admitted(&mut self, now: Time, packet: &Packet) -> bool {
        let Some(extras) = &mut self.extras else { return true };
        seldom();
        extras.policer.as_mut().is_none_or(|policer| policer.passes(now, packet.size))
    }

    #[inline]
    fn remark(&mut self, packet: &mut Packet) {
        let Some(extras) = &mut self.extras else { return };
        seldom();
        if let Some(remark) = &mut extras.remark {
            remark.apply(packet);
        }
    }

    fn count_drops(&mut self, dropped: &[Packet]) {
        self.stats.queue_drops += dropped.len() as u64;
        let marked = dropped.iter().filter(|packet| packet.ce).count() as u64;
        self.ce_held = self.ce_held.saturating_sub(marked);
    }

    /// Books a departure and launches the packet.
    #[allow(clippy::inline_always, reason = "called for every hop of every packet")]
    #[inline(always)]
    fn depart(&mut self, departs: Exact, size: u32) -> Offer {
        let offer = self.launch(departs.at);
        let lost = offer == Offer::Lost;
        if self.records {
            let Exact { at, early } = departs;
            self.departures.push_back(Departure { at, size, early, lost });
            self.bytes += u64::from(size);
        } else {
            self.stats.delivered_packets += 1;
            self.stats.delivered_bytes += u64::from(size);
        }
        offer
    }

    #[inline(never)]
    fn admit(&mut self, arrival: Exact, packet: &Packet) -> Fate {
        let found = self.found_by(arrival);
        match &mut self.discipline {
            Discipline::Admission(queue) => queue.admit(arrival.at, packet, &found, &mut self.rng),
            _ => Fate::Keep,
        }
    }

    /// What an arrival finds in the system.
    #[inline]
    fn found_by(&mut self, arrival: Exact) -> Backlog {
        self.expire(arrival);
        Backlog {
            packets: self.departures.len() as u64,
            bytes: self.bytes,
            wait: self.busy_until.at.since(arrival.at),
        }
    }

    #[inline(never)]
    fn hold(&mut self, now: Time, packet: Packet, dropped: &mut Vec<Packet>) -> Offer {
        self.ce_held += u64::from(packet.ce);
        let before = dropped.len();
        if let Discipline::Scheduler(queue) = &mut self.discipline {
            queue.enqueue(now, packet, &mut self.rng, dropped);
        }
        self.count_drops(&dropped[before..]);
        if now >= self.busy_until.at { Offer::HeldIdle } else { Offer::Held }
    }

    /// The next transmission of a link with a scheduler, which is free at `now`: what becomes of
    /// the packet, the packet, and when the link is free again.
    pub fn transmit(
        &mut self,
        now: Time,
        dropped: &mut Vec<Packet>,
    ) -> Option<(Offer, Packet, Time)> {
        if unlikely(now >= self.next_sample) {
            self.sample_until(now);
        }
        if now < self.busy_until.at {
            return None; // Another event of this instant has begun the next transmission.
        }
        self.expire(Exact::whole(now));
        let Discipline::Scheduler(queue) = &mut self.discipline else { return None };
        let before = dropped.len();
        let packet = queue.dequeue(now, dropped);
        let came = queue.came();
        self.count_drops(&dropped[before..]);
        let mut packet = packet?;
        self.waited = now.since(came);
        self.stats.transmitted_packets += 1;
        self.stats.wait_sum += u128::from(self.waited.0);
        if packet.ce {
            match self.ce_held.checked_sub(1) {
                Some(held) => self.ce_held = held,
                None => self.stats.marked_packets += 1,
            }
        }
        let behind = now == self.busy_until.at;
        let start = if behind { self.busy_until } else { Exact { at: now, early: packet.early } };
        let departs = self.service.finish(start, packet.size);
        self.busy_until = departs;
        self.remark(&mut packet);
        Some((self.depart(departs, packet.size), packet, departs.at))
    }

    /// A packet is on the wire from `departs` on.
    #[allow(clippy::inline_always, reason = "called for every hop of every packet")]
    #[inline(always)]
    fn launch(&mut self, departs: Time) -> Offer {
        if let Some(delay) = self.plain_wire {
            Offer::Arrives(departs + delay)
        } else {
            seldom();
            self.launch_on_wire(departs)
        }
    }

    #[inline(never)]
    fn launch_on_wire(&mut self, departs: Time) -> Offer {
        if let Some(loss) = &mut self.loss
            && loss.lost(departs)
        {
            self.stats.random_losses += 1;
            return Offer::Lost;
        }
        let mut departs = departs;
        if let Some(extras) = &mut self.extras {
            let Some(later) = extras.leave(departs) else {
                self.stats.random_losses += 1;
                return Offer::Lost;
            };
            departs = later;
        }
        let mut at = departs + self.delay.delay(departs);
        let mut reordered = false;
        if let Some(reorder) = &mut self.reorder {
            let extra = reorder.extra();
            reordered = extra > Span::ZERO;
            at += extra;
        }
        if !reordered && at < self.last_arrival {
            if self.keep_order {
                at = self.last_arrival;
            } else {
                reordered = true;
            }
        }
        if !reordered {
            self.last_arrival = at;
        }
        let twice = self.duplicate.as_mut().is_some_and(Duplicate::duplicated);
        Offer::arrives(at, reordered, twice)
    }

    /// What has left by `now` is no longer in the queue; what was not lost is delivered.
    #[inline]
    fn expire(&mut self, now: Exact) {
        while let Some(&Departure { at, early, size, lost }) = self.departures.front()
            && (Exact { at, early }).is_over_at(now)
        {
            self.departures.pop_front();
            self.bytes -= u64::from(size);
            if likely(!lost) {
                self.stats.delivered_packets += 1;
                self.stats.delivered_bytes += u64::from(size);
            }
        }
    }

    /// Takes the samples due up to `now`; whatever arrives later cannot change them.
    #[inline(never)]
    pub fn sample_until(&mut self, now: Time) {
        while self.next_sample <= now {
            let sample = self.backlog(self.next_sample);
            self.samples.push(sample);
            self.next_sample += self.sample_interval;
        }
    }
}

impl Extras {
    /// When a packet is on the wire that has left the queue at `departs`; `None` if it is lost.
    fn leave(&mut self, departs: Time) -> Option<Time> {
        let extra = match &mut self.retransmit {
            Some(retransmit) => retransmit.extra()?,
            None => Span::ZERO,
        };
        let ready = departs + extra;
        Some(self.aggregation.as_mut().map_or(ready, |aggregation| aggregation.release(ready)))
    }
}
