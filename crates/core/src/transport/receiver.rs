//! The receiving end of a flow: what arrived, and when to acknowledge it.
use crate::hint::{likely, unlikely};
use crate::transport::few::Few;
use crate::transport::misbehaviour::{Ahead, Misbehaviour};
use crate::transport::packet::{Kind, Packet, SACK_BLOCKS};
use crate::units::{Span, Time};
use ackademy_prefetch::prefetch;

/// Tracks segments and makes acknowledgements.
#[allow(clippy::struct_excessive_bools)] // each is one documented property
#[derive(Clone, Debug)]
pub struct Receiver {
    ack_every: u32,
    ack_delay: Span,
    ack_size: u32,
    selective: bool,
    first_at_once: bool,
    quick: Quick,
    next: u64,
    /// Made when something first waits behind a gap.
    beyond: Option<Box<Beyond>>,
    /// Whether anything waits behind a gap; while nothing does, `beyond` is not looked at.
    waits: bool,
    pending: u32,
    /// Send time to echo, `TS.Recent` (RFC 7323 section 4.3).
    echo: Time,
    /// The cumulative acknowledgement sent last, `Last.ACK.sent`.
    acknowledged: u64,
    /// Marked bytes received so far, modulo 2³² (RFC 9768 section 3.2: the counters only grow).
    ce_bytes: u32,
    /// When a delayed acknowledgement falls due.
    deadline: Time,
    /// Whether `beyond` says how.
    misbehaves: bool,
}

/// What a receiver does that it should not, and how far it has got.
#[derive(Clone, Copy, Debug, Default)]
struct Misbehaving {
    rules: Misbehaviour,
    ahead: Ahead,
}

/// What was received beyond a gap.
#[derive(Clone, Debug)]
#[repr(align(64))]
struct Beyond {
    /// Disjoint, sorted, non-touching [start, end).
    blocks: Few<(u64, u64), 2>,
    /// Segments that started the two blocks reported before the newest (RFC 2018 section 4).
    recent: [u64; SACK_BLOCKS - 1],
    /// Kept here because few receivers do.
    misbehaving: Misbehaving,
}

/// Linux's quick acknowledgements, which help a sender that starts or repairs.
#[derive(Clone, Copy, Debug, Default)]
struct Quick {
    count: u32,
    idle: Span,
    /// Segments with which the window still opens.
    opening: u32,
    left: u32,
    /// Data that arrives at this time or later begins anew.
    idle_from: Time,
}

impl Quick {
    fn on_data(&mut self, now: Time, duplicate: bool) {
        if unlikely(now >= self.idle_from || duplicate) {
            self.left = self.count;
        }
        if unlikely(self.opening > 0) {
            self.opening -= 1;
            self.left |= 1;
        }
        self.idle_from = now + self.idle + Span(1);
    }
}

/// What the arrival of a data packet did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Segments that became deliverable in order, this one included.
    pub delivered: u64,
    /// The segment had arrived before.
    pub duplicate: bool,
    /// Whether the acknowledgement is to be sent now.
    pub ack_now: bool,
    /// In how many parts it is to be sent ([`parts`](super::misbehaviour::parts)).
    pub parts: u32,
}

impl Receiver {
    /// A receiver that acknowledges each `ack_every`-th segment, others after `ack_delay`, and
    /// anything out of order at once (RFC 5681 section 4.2); with SACK blocks if `selective`.
    pub fn new(ack_every: u32, ack_delay: Span, ack_size: u32, selective: bool) -> Self {
        Self {
            ack_every,
            ack_delay,
            ack_size,
            selective,
            first_at_once: false,
            quick: Quick::default(),
            next: 0,
            beyond: None,
            waits: false,
            pending: 0,
            echo: Time(0),
            acknowledged: 0,
            ce_bytes: 0,
            deadline: Time::NEVER,
            misbehaves: false,
        }
    }

    /// Does what `rules` say; with selective acknowledgements.
    pub fn misbehaving(self, rules: Misbehaviour) -> Self {
        if rules == Misbehaviour::default() {
            return self;
        }
        let ahead = Ahead::at_most(rules.optimistic_acks);
        let misbehaving = Misbehaving { rules, ahead };
        let beyond = Beyond { misbehaving, ..Beyond::default() };
        Self { beyond: Some(Box::new(beyond)), misbehaves: true, ..self }
    }

    /// Acknowledges the first segment at once, as a receiver does that has just accepted a connection.
    pub fn acknowledge_first(self) -> Self {
        Self { first_at_once: true, ..self }
    }

    /// Acknowledges at once `count` times when the first segment arrives, when one arrives after
    /// nothing for longer than `idle`, and when one arrives again (source: Linux 6,
    /// `tcp_incr_quickack`, `tcp_event_data_recv`, `tcp_enter_quickack_mode`; `count` is 16 there).
    pub fn quick(self, count: u32, idle: Span) -> Self {
        Self { quick: Quick { count, idle, ..Quick::default() }, ..self }
    }

    /// Acknowledges at once each of the first `segments`, with which the window offered opens; the
    /// `count` of [`quick`](Self::quick) lasts as long and begins to be used up behind them (source:
    /// Linux 6, `tcp_grow_window`, which sets the lowest bit of what is left).
    pub fn opening(self, segments: u32) -> Self {
        Self { quick: Quick { opening: segments, ..self.quick }, ..self }
    }

    /// When `on_deadline` is to be called.
    pub fn deadline(&self) -> Time {
        self.deadline
    }

    /// Whether nothing waits behind a gap.
    pub fn holds_nothing(&self) -> bool {
        !self.waits
    }

    /// Asks for what the next arrival touches outside.
    #[inline]
    pub(crate) fn prefetch_heap(&self) {
        if let Some(beyond) = self.beyond.as_ref().filter(|_| self.waits) {
            prefetch(&**beyond);
        }
    }

    /// The next segment expected.
    pub fn next_expected(&self) -> u64 {
        self.next
    }

    /// A data packet arrived; if it is to be acknowledged now, `ack` becomes the acknowledgement.
    pub fn on_data(&mut self, now: Time, packet: &Packet, ack: &mut Packet) -> Arrival {
        if unlikely(self.misbehaves) {
            return self.misbehave(now, packet, ack);
        }
        self.take(now, packet, ack)
    }

    /// As [`on_data`](Self::on_data), of a receiver that misbehaves. What it hides counts as what was never sent:
    /// it is not waited for, and where it comes late it has come before.
    #[cold]
    fn misbehave(&mut self, now: Time, packet: &Packet, ack: &mut Packet) -> Arrival {
        let rules = self.beyond.get_or_insert_default().misbehaving.rules;
        if rules.hides_losses() && packet.seq > self.next {
            self.next = packet.seq;
            self.acknowledged = packet.seq;
        }
        let packet = Packet { ce: packet.ce && !rules.hide_marks, ..*packet };
        let in_order = packet.seq == self.next;
        let mut arrival = self.take(now, &packet, ack);
        self.beyond.get_or_insert_default().misbehaving.ahead.on_data(arrival.duplicate);
        if in_order && rules.divide_acks > 1 {
            if !arrival.ack_now {
                self.acknowledge(packet.flow, packet.seq, false, ack);
            }
            arrival.ack_now = true;
            arrival.parts = rules.divide_acks.min(packet.size);
        }
        if arrival.ack_now {
            self.move_ahead(ack);
        }
        arrival
    }

    fn move_ahead(&self, ack: &mut Packet) {
        if let Some(beyond) = self.beyond.as_ref().filter(|_| self.misbehaves) {
            beyond.misbehaving.ahead.apply(ack);
        }
    }

    #[allow(clippy::inline_always, reason = "called for every data packet")]
    #[inline(always)]
    fn take(&mut self, now: Time, packet: &Packet, ack: &mut Packet) -> Arrival {
        self.note_timestamp(packet);
        if unlikely(packet.ce) {
            self.ce_bytes = self.ce_bytes.wrapping_add(packet.size);
        }
        let before = self.next;
        let in_order = packet.seq == self.next;
        let duplicate = unlikely(!in_order) && (packet.seq < self.next || self.holds(packet.seq));
        let filled_gap = in_order && self.waits;
        if likely(in_order) {
            self.advance();
        } else if !duplicate {
            self.beyond.get_or_insert_default().keep(packet.seq);
            self.waits = true;
        }
        self.pending += 1;
        self.quick.on_data(now, duplicate);
        let quick = unlikely(self.quick.left > 0) || (self.first_at_once && before == 0);
        let ack_now =
            !in_order || filled_gap || packet.ce || quick || self.pending >= self.ack_every;
        if ack_now {
            self.acknowledge(packet.flow, packet.seq, duplicate, ack);
        } else if self.deadline == Time::NEVER {
            self.deadline = now + self.ack_delay;
        }
        Arrival { delivered: self.next - before, duplicate, ack_now, parts: 1 }
    }

    /// The delayed acknowledgement that fell due.
    pub fn on_deadline(&mut self, flow: u32) -> Packet {
        let mut ack = Packet::default();
        self.acknowledge(flow, u64::MAX, false, &mut ack);
        self.move_ahead(&mut ack);
        ack
    }

    /// RFC 7323 section 4.3: the echo is of the segment that begins where the last acknowledgement
    /// ended, so of the earliest of those that one acknowledgement covers, and not of one beyond a gap.
    /// Without SACK as ns-2's sink: of a segment out of order at once.
    fn note_timestamp(&mut self, packet: &Packet) {
        let echoes = if likely(self.selective) {
            packet.seq == self.acknowledged
        } else {
            self.pending == 0 || packet.seq != self.next
        };
        if echoes {
            self.echo = packet.sent_at;
        }
    }

    #[inline]
    fn advance(&mut self) {
        self.next += 1;
        if unlikely(self.waits) {
            self.pass_what_waited();
        }
    }

    #[inline(never)]
    fn pass_what_waited(&mut self) {
        if let Some(beyond) = &mut self.beyond {
            self.next = beyond.pass(self.next);
            self.waits = !beyond.blocks.is_empty();
        }
    }

    fn holds(&self, seq: u64) -> bool {
        self.waits && self.beyond.as_ref().is_some_and(|beyond| beyond.holds(seq))
    }

    /// Acknowledges what has come, `trigger` last.
    fn acknowledge(&mut self, flow: u32, trigger: u64, duplicate: bool, ack: &mut Packet) {
        *ack = Packet {
            flow,
            size: self.ack_size,
            kind: Kind::Ack,
            seq: self.next,
            sent_at: self.echo,
            ce_bytes: self.ce_bytes,
            repeat: duplicate,
            ..Packet::default()
        };
        if unlikely(duplicate) && self.selective {
            ack.sack[0] = (trigger.wrapping_sub(self.next) as u32, 1);
        }
        if unlikely(self.waits)
            && self.selective
            && let Some(beyond) = &mut self.beyond
        {
            beyond.report(trigger, ack);
        }
        self.quick.left = self.quick.left.saturating_sub(1);
        self.pending = 0;
        self.acknowledged = self.next;
        self.deadline = Time::NEVER;
    }
}

impl Default for Beyond {
    fn default() -> Self {
        Self {
            blocks: Few::default(),
            recent: [u64::MAX; SACK_BLOCKS - 1],
            misbehaving: Misbehaving::default(),
        }
    }
}

impl Beyond {
    /// The next segment expected, if it is `next` but for what waited.
    fn pass(&mut self, next: u64) -> u64 {
        match self.blocks.front() {
            Some(&(start, end)) if start == next => {
                self.blocks.pop_front();
                end
            }
            _ => next,
        }
    }

    fn holds(&self, seq: u64) -> bool {
        let index = self.blocks.first_after(|block| block.1 <= seq);
        self.blocks.get(index).is_some_and(|block| block.0 <= seq)
    }

    fn keep(&mut self, seq: u64) {
        if let Some(last) = self.blocks.back_mut()
            && last.1 == seq
        {
            last.1 += 1;
            return;
        }
        let index = self.blocks.first_after(|block| block.1 < seq);
        let touches_left = self.blocks.get(index).is_some_and(|block| block.1 == seq);
        let right = if touches_left { index + 1 } else { index };
        let above = self.blocks.get(right).filter(|block| block.0 == seq + 1).copied();
        match (self.blocks.get_mut(index), above) {
            (Some(left), Some((_, end))) if touches_left => {
                left.1 = end;
                self.blocks.remove(right);
            }
            (Some(left), None) if touches_left => left.1 = seq + 1,
            (Some(right), Some(_)) => right.0 = seq,
            _ => self.blocks.insert(index, (seq, seq + 1)),
        }
    }

    /// SACK blocks, the one of the newest segment first (RFC 2018 section 4), or after the report of
    /// a duplicate (RFC 2883).
    fn report(&mut self, trigger: u64, ack: &mut Packet) {
        let next = ack.seq;
        let newest = usize::from(ack.repeat);
        let mut used = newest;
        let mut last = 0..0;
        for seq in [trigger, self.recent[0], self.recent[1]] {
            // Mostly one after the other.
            if last.contains(&seq) {
                continue;
            }
            let index = self.blocks.first_after(|block| block.1 <= seq);
            let Some(&(start, end)) = self.blocks.get(index) else { continue };
            let known =
                ack.sack[newest..used].iter().any(|block| next + u64::from(block.0) == start);
            if start > seq || known || used == SACK_BLOCKS {
                continue;
            }
            last = start..end;
            ack.sack[used] = ((start - next) as u32, (end - start) as u32);
            used += 1;
        }
        if trigger != u64::MAX && ack.sack[newest].1 > 0 {
            let same = self.recent[0] != u64::MAX
                && next + u64::from(ack.sack[newest].0) <= self.recent[0]
                && self.recent[0] < next + u64::from(ack.sack[newest].0 + ack.sack[newest].1);
            if !same {
                self.recent[1] = self.recent[0];
            }
            self.recent[0] = trigger;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(ack_every: u32) -> Receiver {
        Receiver::new(ack_every, Span::from_millis(40), 52, true)
    }

    struct Outcome {
        delivered: u64,
        duplicate: bool,
        ack: Option<Packet>,
    }

    fn arrive(receiver: &mut Receiver, seq: u64) -> Outcome {
        let mut ack = Packet::default();
        let packet = Packet { seq, size: 1500, ..Packet::default() };
        let Arrival { delivered, duplicate, ack_now, .. } =
            receiver.on_data(Time(0), &packet, &mut ack);
        Outcome { delivered, duplicate, ack: ack_now.then_some(ack) }
    }

    #[test]
    fn every_second_segment_in_order_is_acknowledged() {
        let mut receiver = receiver(2);
        assert_eq!(arrive(&mut receiver, 0).ack, None);
        assert_eq!(receiver.deadline(), Time(0) + Span::from_millis(40));
        assert_eq!(arrive(&mut receiver, 1).ack.unwrap().seq, 2);
        assert_eq!(receiver.deadline(), Time::NEVER);
    }

    #[test]
    fn marked_bytes_are_counted_from_the_first_on_in_every_acknowledgement() {
        let mut receiver = receiver(1);
        let mut counts = Vec::new();
        for (seq, ce) in [(0, true), (1, false), (2, true)] {
            let mut ack = Packet::default();
            let packet = Packet { seq, ce, size: 1500, ..Packet::default() };
            assert!(receiver.on_data(Time(0), &packet, &mut ack).ack_now);
            counts.push(ack.ce_bytes);
        }
        assert_eq!(counts, [1500, 1500, 3000]);
    }

    #[test]
    fn after_a_handshake_the_first_segment_is_acknowledged_at_once() {
        let mut receiver = receiver(2).acknowledge_first();
        assert_eq!(arrive(&mut receiver, 0).ack.unwrap().seq, 1);
        assert_eq!(arrive(&mut receiver, 1).ack, None);
        assert_eq!(arrive(&mut receiver, 2).ack.unwrap().seq, 3);
    }

    #[test]
    fn a_gap_is_reported_at_once_with_the_newest_block_first() {
        let mut receiver = receiver(2);
        arrive(&mut receiver, 0);
        assert_eq!(arrive(&mut receiver, 2).ack.unwrap().sack[0], (1, 1));
        let ack = arrive(&mut receiver, 5).ack.unwrap();
        assert_eq!((ack.seq, ack.sack[0], ack.sack[1]), (1, (4, 1), (1, 1)));
        let ack = arrive(&mut receiver, 3).ack.unwrap();
        assert_eq!((ack.sack[0], ack.sack[1]), ((1, 2), (4, 1)));
    }

    /// RFC 7323 section 4.3, cases A to C.
    #[test]
    fn the_echo_is_of_the_earliest_segment_in_order_that_an_acknowledgement_covers() {
        let mut receiver = receiver(2);
        let mut echo = |seq: u64, millis: u64| {
            let mut ack = Packet::default();
            let sent_at = Time(0) + Span::from_millis(millis);
            let packet = Packet { seq, sent_at, ..Packet::default() };
            let now = receiver.on_data(sent_at, &packet, &mut ack).ack_now;
            now.then_some(ack.sent_at.0 / 1_000_000)
        };
        assert_eq!((echo(0, 1), echo(1, 2)), (None, Some(1)), "of two, the first");
        assert_eq!(echo(3, 4), Some(1), "beyond a gap, still that");
        assert_eq!(echo(4, 5), Some(1));
        assert_eq!(echo(2, 9), Some(9), "of what fills the gap");
        assert_eq!(echo(1, 11), Some(9), "of what came before, no more");
        assert_eq!((echo(5, 12), echo(6, 13)), (None, Some(12)));
    }

    #[test]
    fn filling_the_gap_delivers_all_that_waited() {
        let mut receiver = receiver(1);
        arrive(&mut receiver, 1);
        arrive(&mut receiver, 2);
        let arrival = arrive(&mut receiver, 0);
        assert_eq!(arrival.delivered, 3);
        assert_eq!(arrival.ack.unwrap().seq, 3);
    }

    #[test]
    fn a_segment_seen_before_is_reported_as_duplicate() {
        let mut receiver = receiver(1);
        arrive(&mut receiver, 0);
        arrive(&mut receiver, 2);
        assert!(arrive(&mut receiver, 0).duplicate);
        let arrival = arrive(&mut receiver, 2);
        assert!(arrival.duplicate && arrival.ack.unwrap().repeat);
    }

    /// RFC 2883 section 4.
    #[test]
    fn a_duplicate_is_the_first_block_and_what_holds_it_the_second() {
        let mut receiver = receiver(1);
        arrive(&mut receiver, 0);
        assert_eq!(arrive(&mut receiver, 2).ack.unwrap().duplicate(), None);
        arrive(&mut receiver, 3);
        let ack = arrive(&mut receiver, 0).ack.unwrap();
        assert_eq!((ack.duplicate(), ack.sack[1]), (Some(0), (1, 2)));
        let ack = arrive(&mut receiver, 3).ack.unwrap();
        assert_eq!((ack.duplicate(), ack.sack[1]), (Some(3), (1, 2)));
        for seq in [5, 7, 9] {
            arrive(&mut receiver, seq);
        }
        let ack = arrive(&mut receiver, 0).ack.unwrap();
        assert_eq!((ack.duplicate(), ack.sack[1], ack.sack[2]), (Some(0), (8, 1), (6, 1)));
    }

    #[test]
    fn quick_acknowledgements_begin_a_connection_and_come_back_after_idling_and_a_duplicate() {
        let mut receiver = receiver(2).quick(3, Span::from_millis(300));
        let mut at_once = |millis: u64, seqs: std::ops::Range<u64>| -> Vec<bool> {
            let now = Time(0) + Span::from_millis(millis);
            let mut ack = Packet::default();
            seqs.map(|seq| {
                receiver.on_data(now, &Packet { seq, ..Packet::default() }, &mut ack).ack_now
            })
            .collect()
        };
        assert_eq!(at_once(0, 0..7), [true, true, true, false, true, false, true]);
        assert_eq!(at_once(300, 7..9), [false, true], "not idle for longer");
        assert_eq!(at_once(601, 9..14), [true, true, true, false, true]);
        assert_eq!(at_once(602, 3..4), [true], "the duplicate, one of three");
        assert_eq!(at_once(603, 14..18), [true, true, false, true]);
    }

    #[test]
    fn segments_with_which_the_window_opens_are_acknowledged_at_once_and_use_up_no_quick_ones() {
        // Linux 6.18 with a receive buffer of 4 MiB: the window opened with 181, and 197 were
        // acknowledged one by one.
        let mut receiver = receiver(2).quick(16, Span::from_millis(300)).opening(181);
        let mut ack = Packet::default();
        let mut at_once = |seq| {
            let packet = Packet { seq, ..Packet::default() };
            receiver.on_data(Time(0), &packet, &mut ack).ack_now
        };
        assert!((0..197).all(&mut at_once));
        assert_eq!([197, 198, 199, 200].map(at_once), [false, true, false, true]);
    }

    #[test]
    fn any_order_of_arrival_ends_with_everything_delivered() {
        let mut rng = crate::rng::Rng::new(1);
        for _ in 0..200 {
            let mut order: Vec<u64> = (0..40).collect();
            for index in (1..order.len()).rev() {
                order.swap(index, rng.below(index as u64 + 1) as usize);
            }
            let mut receiver = receiver(1);
            let total: u64 = order.iter().map(|&seq| arrive(&mut receiver, seq).delivered).sum();
            let waiting = receiver.beyond.as_ref().map_or(0, |beyond| beyond.blocks.len());
            assert_eq!((total, receiver.next_expected(), waiting), (40, 40, 0));
        }
    }
}
