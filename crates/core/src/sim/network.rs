//! Links, the packets on them, and what happens next: the event loop that simulator and emulator share.
//!
//! A [`Network`] takes packets from link to link along their paths. Who sends and receives them, and
//! what a lost packet means, is known to its [`Ends`].
//!
//! A link's arrivals are in order, so only the next one is among the events to come: one entry per busy link
//! (`heads`), not one per packet. What ends wait for lies beside them, where what is far away costs
//! nothing (`timers`).
use super::heads::Heads;
use super::link::{Link, Offer};
use super::pipe::{InPipe, Pipe};
use super::plan::LinkPlan;
use super::record::{LinkRow, LinkSeries};
use super::tap::Point;
use super::timers::{Due, Timer, Timers};
use crate::hint::{likely, seldom, unlikely};
use crate::rng::Seed;
use crate::transport::packet::{HOP_END, HOP_END_WATCHED, Packet};
use crate::units::{Span, Time};

/// What is at the ends of paths.
pub trait Ends {
    /// What it schedules beside packets, such as timers.
    type Event: Copy;

    /// The path of a packet.
    fn path(&self, packet: &Packet) -> Path;

    /// A queue dropped this packet.
    fn dropped(&mut self, packet: &Packet);

    /// A link has begun to send this packet, which waited so long in its queue; told only if it was asked for
    /// ([`Network::watch`]), and before the packet's `hop` counts the link.
    fn waited(&mut self, _packet: &Packet, _wait: Span) {}

    /// A packet is at this point; told if it was asked for ([`Network::watch`]). Of one link the times do not go
    /// back, but may be later than the present.
    fn seen(&mut self, _at: Time, _point: Point, _packet: &Packet) {}

    /// This packet was lost on the wire.
    fn lost(&mut self, packet: &Packet);

    /// A link made a copy of a packet. It is handed over before it travels on.
    fn copied(&mut self, copy: &mut Packet);

    /// The packets that arrive next over one link, in order: a chance to fetch what they will touch.
    fn fetch_for_packets(&self, pipe: &Pipe);

    /// An event's time comes near: a chance to fetch what it will touch.
    fn fetch_for_event(&self, event: Self::Event);
}

/// A sequence of links.
#[derive(Clone, Copy, Debug, Default)]
pub struct Path {
    /// Its place in the list of all paths' links.
    start: u32,
    hops: u32,
}

/// What the network needs to know of a packet that comes to it.
#[derive(Clone, Copy, Debug)]
pub struct NewPacket {
    /// [`Packet::size`].
    pub size: u32,
    /// [`Packet::early`].
    pub early: u16,
    /// Which way it takes.
    pub path: Path,
}

/// A packet inside the network.
#[derive(Clone, Copy, Debug)]
pub struct Inside<'a> {
    /// The link whose queue or wire it is in.
    pub link: u32,
    /// When it arrives at the other end; `None` for a packet that a scheduler holds.
    pub arrives: Option<Time>,
    /// The packet.
    pub packet: &'a Packet,
}

/// What the ends have to handle.
#[derive(Clone, Copy, Debug)]
pub enum Next<E> {
    /// A packet has reached the end of its path.
    Packet,
    /// An event that the ends scheduled is due.
    Event(E),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum LinkEvent {
    /// The first packet of this link's pipe arrives.
    Pipe(u32),
    /// This link's transmitter is free.
    Free(u32),
}

#[derive(Clone, Copy, Debug)]
enum TimerEvent<E> {
    /// The packet in this place arrives.
    Reordered(u32),
    /// Scheduled by the ends.
    OfEnds(E),
}

/// Links and the packets on them; `E` is what the ends schedule.
pub struct Network<E> {
    now: Time,
    /// Nothing happens later; packets that arrive later need not.
    end: Time,
    /// First arrivals of pipes, ends of transmissions.
    heads: Heads<LinkEvent>,
    timers: Timers<TimerEvent<E>>,
    order: u64,
    links: Vec<Link>,
    names: Vec<String>,
    sample_interval: Span,
    /// The links of all paths; equal paths that were added one after the other share them.
    paths: Vec<u32>,
    /// The paths added last.
    recent: [Path; 2],
    /// Whether a packet that leaves for this link may be handed on without an event.
    passes: Vec<bool>,
    /// Whether ends are told what comes next.
    fetches: bool,
    /// Whether ends are told where packets are, and how long they waited.
    watched: bool,
    /// [`Packet::hop`] of packets on their last link, which says whether the ends are told of their arrival.
    hop_end: u8,
    /// With when they arrive.
    reordered: Vec<Option<(Time, Packet)>>,
    reordered_free: Vec<u32>,
    dropped: Vec<Packet>,
    events: u64,
}

impl<E: Copy> Network<E> {
    /// Links as planned, at time 0, with the random streams of this seed; a sample of each queue every
    /// `sample_interval`, none for zero.
    pub fn new(plans: &[LinkPlan], seed: Seed, sample_interval: Span) -> Self {
        let link = |(index, plan)| Link::new(plan, index as u64, seed, sample_interval);
        Self {
            now: Time(0),
            end: Time::NEVER,
            heads: Heads::new(),
            timers: Timers::new(),
            order: 0,
            links: plans.iter().enumerate().map(link).collect(),
            names: plans.iter().map(|plan| plan.name.clone()).collect(),
            sample_interval,
            paths: Vec::new(),
            recent: [Path::default(); 2],
            passes: vec![false; plans.len()],
            fetches: false,
            watched: false,
            hop_end: HOP_END,
            reordered: Vec::new(),
            reordered_free: Vec::new(),
            dropped: Vec::new(),
            events: 0,
        }
    }

    /// The time reached.
    #[inline]
    pub fn now(&self) -> Time {
        self.now
    }

    /// Events so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// A link.
    pub fn link(&mut self, index: usize) -> &mut Link {
        &mut self.links[index]
    }

    /// The path over these links.
    pub fn add_path(&mut self, links: &[u32]) -> Path {
        if let Some(&known) = self.recent.iter().find(|path| self.links_of(**path) == links) {
            return known;
        }
        let path = Path { start: self.paths.len() as u32, hops: links.len() as u32 };
        self.paths.extend_from_slice(links);
        self.recent = [self.recent[1], path];
        path
    }

    /// The links of a path, in order.
    pub fn links_of(&self, path: Path) -> &[u32] {
        &self.paths[path.start as usize..(path.start + path.hops) as usize]
    }

    /// Tells the ends which packets and events come next, for ends with more state than a core's own
    /// cache holds.
    pub fn fetch_ahead(&mut self) {
        self.fetches = true;
    }

    /// Tells the ends where each packet is, and how long it waited in each queue.
    pub fn watch(&mut self) {
        self.watched = true;
        self.hop_end = HOP_END_WATCHED;
    }

    /// Packets pass links without an event where that changes nothing until `end`, when the run is
    /// over. These are all paths; counters of links may then be ahead of the time.
    ///
    /// A link may be passed if everything that enters it comes from one other link, in order, and its
    /// fate is known on arrival: then arrivals at it are as ordered as at that link.
    pub fn pass_links(&mut self, paths: impl Iterator<Item = Path>, end: Time) {
        const NO_FEEDER: u32 = u32::MAX;
        const SENDERS: u32 = u32::MAX - 1;
        const SEVERAL: u32 = u32::MAX - 2;
        let mut feeder = vec![NO_FEEDER; self.links.len()];
        for path in paths {
            let mut before = SENDERS;
            for &link in self.links_of(path) {
                let known = &mut feeder[link as usize];
                *known = if *known == NO_FEEDER || *known == before { before } else { SEVERAL };
                before = link;
            }
        }
        let passed = |(&feeder, link): (&u32, &Link)| {
            feeder < SEVERAL
                && link.decides_on_arrival()
                && self.links[feeder as usize].keeps_order()
        };
        self.passes = feeder.iter().zip(&self.links).map(passed).collect();
        self.end = end;
    }

    /// Puts an event of the ends among those to come.
    #[inline]
    pub fn schedule(&mut self, at: Time, event: E) {
        self.push_timer(at, TimerEvent::OfEnds(event));
    }

    #[inline]
    fn push_timer(&mut self, at: Time, event: TimerEvent<E>) {
        self.order += 1;
        self.timers.push(Timer { due: Due::new(at, self.order), event });
    }

    /// When something happens next, if ever.
    pub fn next_due(&mut self) -> Option<Time> {
        let link = self.heads.first_due();
        let timer = self.timers.first(link.at(), |_| ());
        Some(link.at().min(timer.at())).filter(|&due| due < Time::NEVER)
    }

    /// How many events are to come.
    #[cfg(test)]
    pub(super) fn pending(&self) -> usize {
        self.heads.len() + self.timers.len()
    }

    /// Packets on the wire, and packets that schedulers hold.
    pub(super) fn inside(&self) -> (impl Iterator<Item = &Packet>, u64) {
        let pipes =
            self.links.iter().flat_map(|link| link.pipe.iter()).map(|in_pipe| &in_pipe.packet);
        let reordered = self.reordered.iter().flatten().map(|(_, packet)| packet);
        (pipes.chain(reordered), self.links.iter().map(Link::held).sum())
    }

    /// See [`Sim::show_packets`](super::Sim::show_packets); `path` tells the path of a packet.
    pub(super) fn show(&self, path: impl Fn(&Packet) -> Path, each: &mut dyn FnMut(Inside<'_>)) {
        for (link, own) in (0..).zip(&self.links) {
            for InPipe { at, packet, .. } in own.pipe.iter() {
                each(Inside { link, arrives: Some(*at), packet });
            }
            own.show_held(&mut |packet| each(Inside { link, arrives: None, packet }));
        }
        for (at, packet) in self.reordered.iter().flatten() {
            let path = path(packet);
            let hops = u32::from(packet.hop).min(path.hops); // more at the end of a path
            if let Some(&link) = self.links_of(path).get(hops.wrapping_sub(1) as usize) {
                each(Inside { link, arrives: Some(*at), packet });
            }
        }
    }

    /// Ends the counting at `end`: a row per link, and the samples of all.
    pub fn finish(&mut self, end: Time) -> (Vec<LinkRow>, LinkSeries) {
        let mut series = LinkSeries::default();
        let mut rows = Vec::with_capacity(self.links.len());
        for (index, link) in self.links.iter_mut().enumerate() {
            let name = std::mem::take(&mut self.names[index]);
            rows.push(link.finish(name, end));
            series.append(index as u32, self.sample_interval, &link.samples);
        }
        (rows, series)
    }

    /// Moves packets on up to and including `until`, until the ends have something to handle; a packet
    /// that has arrived goes to `packet`. None if `until` is reached. (Packets are handed on by
    /// reference: moved through enums, their small fields stall on store forwarding, which cost a third
    /// of a run.)
    #[inline]
    pub fn next<X: Ends<Event = E>>(
        &mut self,
        until: Time,
        packet: &mut Packet,
        ends: &mut X,
    ) -> Option<Next<E>> {
        loop {
            let first = self.heads.first_due();
            let timer = if first.at() >= self.timers.soonest() {
                self.next_timer(first, until, ends)
            } else {
                None
            };
            match timer {
                Some(TimerEvent::OfEnds(event)) => return Some(Next::Event(event)),
                Some(TimerEvent::Reordered(place)) => {
                    (_, *packet) = self.reordered[place as usize].take().expect("a filled place");
                    self.reordered_free.push(place);
                }
                None if unlikely(first.at() > until) => {
                    self.now = self.now.max(until);
                    return None;
                }
                None => match self.next_of_links(first, packet, ends) {
                    LinkEvent::Pipe(_) => {}
                    LinkEvent::Free(link) => {
                        self.transmit(link, ends);
                        continue;
                    }
                },
            }
            if likely(packet.hop == HOP_END) {
                return Some(Next::Packet);
            }
            if packet.hop == HOP_END_WATCHED {
                packet.hop = HOP_END;
                ends.seen(self.now, Point::Received, packet);
                return Some(Next::Packet);
            }
            self.forward(packet, self.now, ends);
        }
    }

    /// Takes the first event of the links, and the packet if one arrives.
    #[inline]
    fn next_of_links<X: Ends<Event = E>>(
        &mut self,
        due: Due,
        packet: &mut Packet,
        ends: &X,
    ) -> LinkEvent {
        let event = self.heads.first().expect("there is an event");
        debug_assert!(due.at() >= self.now, "the clock ran back from {} to {due:?}", self.now);
        self.now = due.at();
        self.events += 1;
        let LinkEvent::Pipe(index) = event else {
            self.heads.drop_first();
            return event;
        };
        let pipe = &mut self.links[index as usize].pipe;
        let arrival = pipe.front().expect("a scheduled pipe is not empty");
        *packet = Packet { early: arrival.early, hop: arrival.hop, ..arrival.packet };
        pipe.drop_front();
        // The next arrival takes this one's place among the links.
        match pipe.front() {
            Some(next) => self.heads.delay_first(Due::new(next.at, next.order)),
            None => self.heads.drop_first(),
        }
        if unlikely(self.fetches) {
            ends.fetch_for_packets(&self.links[index as usize].pipe);
        }
        event
    }

    /// The next timer, if it is due up to `until` and before `first`.
    #[inline(never)]
    fn next_timer<X: Ends<Event = E>>(
        &mut self,
        first: Due,
        until: Time,
        ends: &X,
    ) -> Option<TimerEvent<E>> {
        let fetches = self.fetches;
        let timer = self.timers.take(first.at().min(until), first, |event| {
            if fetches && let TimerEvent::OfEnds(event) = event {
                ends.fetch_for_event(event);
            }
        })?;
        let due = timer.due;
        debug_assert!(due.at() >= self.now, "the clock ran back from {} to {due:?}", self.now);
        self.now = due.at();
        self.events += 1;
        Some(timer.event)
    }

    /// A new packet enters its path: mostly one link that asks no more of it than its size. `packet` makes it
    /// where it is to lie, which costs less than to copy it from where it has just been written.
    #[expect(clippy::inline_always, reason = "see `Link::offer_size`")]
    #[inline(always)]
    pub fn send<X: Ends<Event = E>>(
        &mut self,
        NewPacket { size, early, path }: NewPacket,
        packet: impl Fn() -> Packet,
        ends: &mut X,
    ) {
        if likely(path.hops > 0 && !self.watched) {
            let index = self.paths[path.start as usize];
            let link = &mut self.links[index as usize];
            if likely(link.asks_size()) {
                return match link.offer_size(self.now, size, early) {
                    Offer::Arrives(there) if likely(path.hops == 1) => {
                        self.put_in_pipe(index, there, packet(), HOP_END);
                    }
                    offer => self.send_to(index, offer, packet(), ends),
                };
            }
        }
        self.enter(packet(), ends);
    }

    /// What becomes of a packet that its first link has answered so.
    #[inline(never)]
    fn send_to<X: Ends<Event = E>>(
        &mut self,
        link: u32,
        offer: Offer,
        mut packet: Packet,
        ends: &mut X,
    ) {
        let path = ends.path(&packet);
        let Offer::Arrives(there) = offer else {
            return self.finish_offer(link, offer, &mut packet, ends);
        };
        if there <= self.end && self.passes_next(path, 0) {
            packet.hop = 1;
            packet.early = self.links[link as usize].early();
            self.forward(&mut packet, there, ends);
        } else {
            self.put_in_pipe(link, there, packet, 1);
        }
    }

    /// As [`send`](Self::send), of a packet that must lie in memory for its first link.
    #[inline(never)]
    pub fn enter<X: Ends<Event = E>>(&mut self, mut packet: Packet, ends: &mut X) {
        if unlikely(self.watched) {
            ends.seen(self.now, Point::Sent, &packet);
        }
        self.forward(&mut packet, self.now, ends);
    }

    /// Takes a packet over its next link, and over those behind it that need no event.
    #[inline(never)]
    pub fn forward<X: Ends<Event = E>>(&mut self, packet: &mut Packet, mut at: Time, ends: &mut X) {
        let path = ends.path(packet);
        loop {
            let hop = u32::from(packet.hop);
            if unlikely(hop >= path.hops) {
                // A path without links: the packet is there.
                packet.hop = self.hop_end;
                self.put_reordered(at, *packet);
                return;
            }
            let index = self.paths[(path.start + hop) as usize];
            let last = hop + 1 == path.hops;
            if unlikely(self.watched) {
                ends.seen(at, Point::Enters(index), packet);
            }
            let offer = self.links[index as usize].offer(at, packet, &mut self.dropped);
            if unlikely(self.watched) {
                self.tell_offer((index, offer), at, packet, ends);
            }
            match offer {
                Offer::Arrives(there) => {
                    if !last && there <= self.end && self.passes_next(path, hop) {
                        packet.hop += 1;
                        packet.early = self.links[index as usize].early();
                        at = there;
                        continue;
                    }
                    let hop = if last { self.hop_end } else { packet.hop + 1 };
                    self.put_in_pipe(index, there, *packet, hop);
                }
                Offer::Held => {
                    seldom();
                    self.report_drops(index, ends);
                }
                Offer::HeldIdle => {
                    seldom();
                    self.report_drops(index, ends);
                    self.transmit(index, ends);
                }
                other => self.finish_offer(index, other, packet, ends),
            }
            return;
        }
    }

    /// Whether the link behind this hop takes a packet without an event.
    fn passes_next(&self, path: Path, hop: u32) -> bool {
        self.passes[self.paths[(path.start + hop + 1) as usize] as usize]
    }

    /// The less common ends of an offer.
    #[cold]
    fn finish_offer<X: Ends>(
        &mut self,
        link: u32,
        offer: Offer,
        packet: &mut Packet,
        ends: &mut X,
    ) {
        let (at, reordered, twice) = match offer {
            Offer::Dropped => return ends.dropped(packet),
            Offer::Lost => return ends.lost(packet),
            Offer::Held | Offer::HeldIdle => return,
            Offer::Arrives(at) => (at, false, false),
            Offer::Reordered(at) => (at, true, false),
            Offer::Twice(at) => (at, false, true),
            Offer::Duplicated(at) => (at, true, true),
        };
        let is_last = u32::from(packet.hop) + 1 >= ends.path(packet).hops;
        packet.hop = if is_last { self.hop_end } else { packet.hop + 1 };
        self.put_on_wire(link, at, reordered, packet);
        if twice {
            packet.copy = true;
            ends.copied(packet);
            self.put_on_wire(link, at, reordered, packet);
        }
    }

    fn put_on_wire(&mut self, link: u32, at: Time, reordered: bool, packet: &Packet) {
        if reordered {
            let early = self.links[link as usize].early();
            self.put_reordered(at, Packet { early, ..*packet });
        } else {
            self.put_in_pipe(link, at, *packet, packet.hop);
        }
    }

    /// Puts the packet that this link has just sent on its wire.
    #[allow(
        clippy::inline_always,
        reason = "called for every hop of every packet, which must not be copied for the call"
    )]
    #[inline(always)]
    fn put_in_pipe(&mut self, link: u32, at: Time, packet: Packet, hop: u8) {
        self.order += 1;
        let order = self.order;
        let sender = &mut self.links[link as usize];
        let early = sender.early();
        let pipe = &mut sender.pipe;
        debug_assert!(pipe.back().is_none_or(|last| last.at <= at), "FIFO broken");
        pipe.push_back(InPipe { at, order, early, hop, packet });
        if unlikely(pipe.len() == 1) {
            self.heads.push(Due::new(at, order), LinkEvent::Pipe(link));
        }
    }

    #[inline(never)]
    fn put_reordered(&mut self, at: Time, packet: Packet) {
        let place = self.reordered_free.pop().unwrap_or_else(|| {
            self.reordered.push(None);
            self.reordered.len() as u32 - 1
        });
        self.reordered[place as usize] = Some((at, packet));
        self.push_timer(at, TimerEvent::Reordered(place));
    }

    /// A scheduler's link starts its next transmission.
    #[inline(never)]
    fn transmit<X: Ends>(&mut self, index: u32, ends: &mut X) {
        let next = self.links[index as usize].transmit(self.now, &mut self.dropped);
        self.report_drops(index, ends);
        let Some((offer, mut packet, free_at)) = next else { return };
        if self.watched {
            self.tell_offer((index, offer), self.now, &packet, ends);
        }
        if free_at < Time::NEVER {
            self.order += 1;
            self.heads.push(Due::new(free_at, self.order), LinkEvent::Free(index));
        }
        self.finish_offer(index, offer, &mut packet, ends);
    }

    #[inline(never)]
    fn report_drops<X: Ends>(&mut self, link: u32, ends: &mut X) {
        for packet in self.dropped.drain(..) {
            if self.watched {
                ends.seen(self.now, Point::Dropped(link), &packet);
            }
            ends.dropped(&packet);
        }
    }

    /// Tells the ends what a link answered to a packet at `at`.
    #[cold]
    fn tell_offer<X: Ends>(
        &self,
        (index, offer): (u32, Offer),
        at: Time,
        packet: &Packet,
        ends: &mut X,
    ) {
        if offer == Offer::Dropped {
            return ends.seen(at, Point::Dropped(index), packet);
        }
        if !offer.is_sent() {
            return;
        }
        let link = &self.links[index as usize];
        ends.waited(packet, link.waited());
        ends.seen(link.free_at(), Point::Leaves(index), packet);
        if offer == Offer::Lost {
            ends.seen(link.free_at(), Point::Lost(index), packet);
        }
    }
}
