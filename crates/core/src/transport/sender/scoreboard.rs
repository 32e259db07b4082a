//! What a SACK sender knows of every packet it has in flight.
use self::packets::Packets;
use super::undo::Retransmitted;
use crate::hint::unlikely;
use crate::transport::delivery_rate::SentState;
use crate::transport::few::Few;
use crate::units::{Span, Time};
use ackademy_prefetch::prefetch;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

mod delivery;
mod missing;
mod packets;

/// Selectively acknowledged.
const SACKED: u8 = 1;
/// Declared lost and not sent again since.
const LOST: u8 = 2;
/// Sent more than once.
const RETRANSMITTED: u8 = 4;
/// Counted in `inflight`.
const IN_PIPE: u8 = 8;
/// Sent again without having been declared lost: the second copy counts in `inflight`, too, until it is
/// cumulatively acknowledged, as in ns-3's `BytesInFlight`.
const TWICE: u8 = 16;
/// Duplicate acknowledgements that mean loss (RFC 6675 `DupThresh`).
pub const DUP_THRESH: u64 = 3;
/// Segments that an acknowledgement is likely about.
const FETCHED: usize = 2;

#[derive(Clone, Copy, Debug)]
struct Segment {
    sent_at: Time,
    sent: SentState,
    size: u32,
    flags: u8,
}

/// What an acknowledgement newly delivered.
#[derive(Clone, Copy, Debug, Default)]
pub struct Delivered {
    /// Bytes.
    pub bytes: u64,
    /// Send time and sequence number of the packet sent last.
    pub newest: (Time, u64),
    /// Its state at sending.
    pub sent: SentState,
    /// As `newest`, without retransmissions whose delivery may be an earlier copy's (RFC 8985
    /// section 6.2 step 2).
    pub certain: Option<(Time, u64)>,
    /// Send time of the packet sent last among those sent once; `Time::NEVER` if none.
    pub timed: Time,
    /// Send time of the packet sent first among those sent once.
    pub timed_first: Time,
    /// A packet sent more than once was cumulatively acknowledged, and not selectively before.
    pub repaired: bool,
    /// A packet sent once, or the first copy of one, arrived after one sent later (RFC 8985
    /// section 6.2 step 3).
    pub reordered: bool,
    /// The highest segment delivered before.
    pub fack: u64,
    /// Retransmissions that left later are not what was delivered.
    pub credible: Time,
    /// More is cumulatively acknowledged, if only a part of a packet.
    pub advanced: bool,
}

impl Delivered {
    #[inline]
    fn add_certain(&mut self, packet: (Time, u64)) {
        if self.certain.is_none_or(|newest| newest < packet) {
            self.certain = Some(packet);
        }
    }

    /// Packets sent once, the first and the last of them at these times.
    #[inline]
    fn add_timed(&mut self, first: Time, last: Time) {
        if self.timed == Time::NEVER {
            (self.timed_first, self.timed) = (first, last);
        } else {
            self.timed_first = self.timed_first.min(first);
            self.timed = self.timed.max(last);
        }
    }
}

/// What a pass of loss detection found.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lost {
    /// Bytes newly declared lost.
    pub bytes: u64,
    /// Send time of the newest of them.
    pub newest: Time,
    /// Its state at sending.
    pub sent: SentState,
    /// The highest of them.
    pub last: u64,
    /// Among them is what was sent again.
    pub again: bool,
}

/// RACK's view of the packet delivered that was sent last (RFC 8985 section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Rack {
    /// Send time and number of that packet.
    pub newest: (Time, u64),
    /// Its round trip.
    pub rtt: Span,
    /// How long a packet may be overtaken.
    pub window: Span,
}

/// Segments `una..nxt`.
#[derive(Clone, Debug, Default)]
pub struct Scoreboard {
    segments: VecDeque<Segment>,
    una: u64,
    sacked_count: u64,
    highest_delivered: u64,
    /// Below this, every packet sent once was judged by loss detection.
    judged: u64,
    inflight: u64,
    outstanding: u64,
    /// Made when something is first lost, overtaken or sent again: most flows are without at most times.
    gaps: Option<Box<Gaps>>,
    /// Whether a list of `gaps` may hold anything; while none does, they are not looked at.
    open: bool,
}

/// What is out of order.
#[derive(Clone, Debug, Default)]
#[repr(align(64))]
struct Gaps {
    /// Selectively acknowledged, as disjoint, sorted, non-touching [start, end).
    sacked: Few<(u64, u64), 2>,
    /// To be sent again for the first time, in ascending order.
    lost: Few<u64, 4>,
    /// To be sent again once more: what comes first, be it here or in `lost`, is sent first.
    again: BinaryHeap<Reverse<u64>>,
    /// Sent again and not yet judged, in sending order.
    retransmissions: Few<(u64, Time), 3>,
    /// Below this, no packet is left that `peek_rescue` would offer.
    rescued: u64,
    /// Of what was cumulatively acknowledged; kept when the lists are empty.
    retransmitted: Retransmitted,
    /// Acknowledgements of what was never sent; kept likewise.
    unsent_acks: u64,
    /// Declared lost, and not told yet.
    kept: Lost,
    /// Of a flow whose controller wants to know of each; its lists are always looked at.
    packets: Option<Box<Packets>>,
}

impl Gaps {
    fn is_open(&self) -> bool {
        let is_empty = self.sacked.is_empty()
            && self.first_lost().is_none()
            && self.retransmissions.is_empty();
        !is_empty || self.packets.is_some()
    }

    /// The first that waits to be sent again. Behind a full queue only what leaves first may get through, and only the first
    /// hole's repair brings the acknowledgement forward: as in Linux, it leaves first (`tcp_xmit_retransmit_queue`).
    fn first_lost(&self) -> Option<u64> {
        match (self.lost.front().copied(), self.again.peek()) {
            (Some(lost), Some(&Reverse(again))) => Some(lost.min(again)),
            (lost, again) => lost.or(again.map(|&Reverse(again)| again)),
        }
    }

    fn pop_lost(&mut self) -> Option<u64> {
        let first = self.first_lost()?;
        if self.again.peek() == Some(&Reverse(first)) {
            self.again.pop();
        } else {
            self.lost.pop_front();
        }
        Some(first)
    }

    fn forget_lost(&mut self) {
        self.lost.clear();
        self.again.clear();
    }

    /// Everything before `una` is acknowledged: how many segments are no longer counted for it.
    fn forget_sacked(&mut self, una: u64) -> u64 {
        let mut forgotten = 0;
        while let Some(&(start, end)) = self.sacked.front()
            && start < una
        {
            forgotten += una.min(end) - start;
            match self.sacked.get_mut(0) {
                Some(first) if end > una => first.0 = una,
                _ => drop(self.sacked.pop_front()),
            }
        }
        forgotten
    }
}

impl Scoreboard {
    /// The lists, if any of them may hold anything.
    #[inline]
    fn open_gaps(&self) -> Option<&Gaps> {
        if unlikely(self.open) { self.gaps.as_deref() } else { None }
    }

    /// The lists, to add to one of them.
    fn gaps_mut(&mut self) -> &mut Gaps {
        self.open = true;
        self.gaps.get_or_insert_default()
    }

    /// The first that waits to be sent again.
    #[inline]
    fn first_lost(&self) -> Option<u64> {
        self.open_gaps()?.first_lost()
    }

    /// The first that was sent again and is not yet judged.
    fn first_retransmission(&self) -> Option<(u64, Time)> {
        self.open_gaps()?.retransmissions.front().copied()
    }

    /// An acknowledgement of what was never sent came.
    #[cold]
    pub fn note_unsent(&mut self) {
        self.gaps.get_or_insert_default().unsent_acks += 1;
    }

    /// How many such acknowledgements came.
    pub fn unsent_acks(&self) -> u64 {
        self.gaps.as_ref().map_or(0, |gaps| gaps.unsent_acks)
    }

    /// First segment not cumulatively acknowledged.
    pub fn una(&self) -> u64 {
        self.una
    }

    /// The next new segment.
    pub fn nxt(&self) -> u64 {
        self.una + self.segments.len() as u64
    }

    /// Bytes sent, neither delivered nor declared lost (RFC 6675 `pipe`).
    pub fn inflight(&self) -> u64 {
        self.inflight
    }

    /// Bytes sent and not cumulatively acknowledged (RFC 5681 `FlightSize`).
    pub fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Segments selectively acknowledged.
    pub fn sacked_count(&self) -> u64 {
        self.sacked_count
    }

    /// Asks for the segments that the next acknowledgement is likely about.
    #[inline]
    pub fn fetch_first(&self) {
        let (segments, _) = self.segments.as_slices();
        if let Some(likely) = segments.first_chunk::<FETCHED>() {
            prefetch(likely);
        } else if let Some(last) = segments.first() {
            prefetch(last);
        }
    }

    /// Asks for what is out of order.
    #[inline]
    pub fn fetch_gaps(&self) {
        if let Some(gaps) = self.open_gaps() {
            prefetch(gaps);
        }
    }

    /// Whether loss detection has anything to look at.
    pub fn has_gaps(&self) -> bool {
        self.sacked_count > 0 || self.first_retransmission().is_some()
    }

    /// A new segment leaves.
    pub fn send_new(&mut self, now: Time, size: u32, sent: SentState) -> u64 {
        let seq = self.nxt();
        self.segments.push_back(Segment { sent_at: now, sent, size, flags: IN_PIPE });
        self.inflight += u64::from(size);
        self.outstanding += u64::from(size);
        seq
    }

    /// Size of the first segment to be sent again.
    #[inline]
    pub fn peek_lost(&mut self) -> Option<u32> {
        if unlikely(self.first_lost().is_some()) { self.peek_lost_of_many() } else { None }
    }

    #[inline(never)]
    fn peek_lost_of_many(&mut self) -> Option<u32> {
        while let Some(seq) = self.first_lost() {
            if let Some(segment) = self.get(seq)
                && segment.flags & LOST != 0
            {
                return Some(segment.size);
            }
            self.gaps_mut().pop_lost();
        }
        None
    }

    /// The segment that leaves next: what `peek_lost` announced, or the next new one.
    pub fn next_to_leave(&self) -> u64 {
        self.first_lost().unwrap_or_else(|| self.nxt())
    }

    /// The segment that `peek_lost` announced leaves again.
    #[expect(clippy::inline_always, reason = "in two loops: see `Sim::send_packet`")]
    #[inline(always)]
    pub fn send_lost(&mut self, now: Time, sent: SentState) -> Option<(u64, u32)> {
        let seq = self.gaps.as_mut()?.pop_lost()?;
        Some((seq, self.resend(seq, now, sent)?))
    }

    /// Size of the first segment that nothing is known of and that was sent once (RFC 6675 `NextSeg`
    /// rule 3, without its bound by the highest segment acknowledged, as ns-3 has it).
    pub fn peek_rescue(&mut self) -> Option<u32> {
        let mut next = self.rescued().max(self.una);
        let mut size = None;
        while let Some(segment) = self.get(next) {
            if segment.flags & (SACKED | LOST | RETRANSMITTED) == 0 {
                size = Some(segment.size);
                break;
            }
            next += 1;
        }
        self.gaps_mut().rescued = next;
        size
    }

    /// The segment that `peek_rescue` announced.
    pub fn rescued(&self) -> u64 {
        self.gaps.as_ref().map_or(0, |gaps| gaps.rescued)
    }

    /// The segment that `peek_rescue` announced leaves again, beside its first copy.
    pub fn send_rescue(&mut self, now: Time, sent: SentState) -> Option<(u64, u32)> {
        let size = self.peek_rescue()?;
        let seq = self.rescued();
        let segment = &mut self.segments[(seq - self.una) as usize];
        segment.flags |= RETRANSMITTED | TWICE;
        segment.sent_at = now;
        segment.sent = sent;
        self.inflight += u64::from(size);
        Some((seq, size))
    }

    /// Queues the last segment not delivered to leave again as a probe (RFC 8985 section 7.3). It
    /// changes places in `inflight` with its first copy.
    pub fn declare_last_for_probe(&mut self) {
        let last = (self.una..self.nxt())
            .rev()
            .find(|&seq| self.get(seq).is_some_and(|segment| segment.flags & (SACKED | LOST) == 0));
        if let Some(seq) = last {
            let segment = &mut self.segments[(seq - self.una) as usize];
            if segment.flags & IN_PIPE != 0 {
                self.inflight -= u64::from(segment.size);
            }
            segment.flags = (segment.flags & !IN_PIPE) | LOST;
            let gaps = self.gaps_mut();
            gaps.lost.push_back(seq);
            if let Some(packets) = &mut gaps.packets {
                packets.probe(seq);
            }
        }
    }

    #[inline]
    fn resend(&mut self, seq: u64, now: Time, sent: SentState) -> Option<u32> {
        let index = seq.checked_sub(self.una)? as usize;
        let segment = self.segments.get_mut(index)?;
        if segment.flags & IN_PIPE == 0 {
            self.inflight += u64::from(segment.size);
        }
        segment.flags = (segment.flags & !LOST) | IN_PIPE | RETRANSMITTED;
        segment.sent_at = now;
        segment.sent = sent;
        let size = segment.size;
        self.gaps_mut().retransmissions.push_back((seq, now));
        Some(size)
    }

    /// RFC 6675 `IsLost`: packets sent once with `DUP_THRESH` delivered above them.
    pub fn detect_by_count(&mut self) -> Lost {
        let mut lost = Lost::default();
        let Some(gaps) = &mut self.gaps else { return lost };
        gaps.retransmissions.clear(); // Only RACK finds losses among them.
        if self.sacked_count < DUP_THRESH {
            return lost;
        }
        let mut above = 0;
        let mut threshold = 0;
        for &(start, end) in gaps.sacked.iter().rev() {
            if above + (end - start) >= DUP_THRESH {
                threshold = end - (DUP_THRESH - above);
                break;
            }
            above += end - start;
        }
        self.judged = self.judged.max(self.una);
        while self.judged < threshold {
            self.judge(self.judged, &mut lost);
            self.judged += 1;
        }
        lost
    }

    /// RFC 8985 section 6.2 step 5: what was sent before the newest delivered packet, and long
    /// enough ago, is lost. Returns also when the next packet may become so.
    pub fn detect_by_time(&mut self, now: Time, rack: &Rack) -> (Lost, Time) {
        let mut lost = Lost::default();
        let mut next = Time::NEVER;
        self.judged = self.judged.max(self.una);
        while let Some(segment) = self.get(self.judged) {
            if segment.flags & (SACKED | LOST | RETRANSMITTED) == 0 {
                if (segment.sent_at, self.judged) >= rack.newest {
                    break;
                }
                let due = segment.sent_at + rack.rtt + rack.window;
                if now < due {
                    next = due;
                    break;
                }
                self.judge(self.judged, &mut lost);
            }
            self.judged += 1;
        }
        while let Some((seq, sent_at)) = self.first_retransmission() {
            if let Some(segment) = self.get(seq)
                && segment.flags & (SACKED | LOST) == 0
                && segment.sent_at == sent_at
            {
                if (sent_at, seq) >= rack.newest {
                    break;
                }
                let due = sent_at + rack.rtt + rack.window;
                if now < due {
                    next = next.min(due);
                    break;
                }
                self.declare(seq, &mut lost);
                lost.again = true;
                self.gaps_mut().again.push(Reverse(seq));
            }
            self.gaps_mut().retransmissions.pop_front();
        }
        (lost, next)
    }

    /// Whether segment `seq` was ever retransmitted; `None` if that is forgotten.
    pub fn was_retransmitted(&self, seq: u64) -> Option<bool> {
        match self.get(seq) {
            Some(segment) => Some(segment.flags & RETRANSMITTED != 0),
            None => self.gaps.as_ref().map_or(Some(false), |gaps| gaps.retransmitted.get(seq)),
        }
    }

    /// Whether anything sent again is in flight.
    pub fn awaits_repairs(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| segment.flags & (RETRANSMITTED | IN_PIPE) == RETRANSMITTED | IN_PIPE)
    }

    /// Nothing that was declared lost is: it is in flight again, for loss detection to judge anew.
    pub fn withdraw_losses(&mut self) {
        self.judged = self.una;
        let mut sent = Vec::new();
        for (index, segment) in self.segments.iter_mut().enumerate() {
            if segment.flags & LOST != 0 {
                segment.flags = (segment.flags & !LOST) | IN_PIPE;
                self.inflight += u64::from(segment.size);
            }
            if segment.flags & (RETRANSMITTED | IN_PIPE) == RETRANSMITTED | IN_PIPE {
                sent.push((self.una + index as u64, segment.sent_at));
            }
        }
        sent.sort_unstable_by_key(|&(seq, sent_at)| (sent_at, seq));
        let gaps = self.gaps_mut();
        gaps.forget_lost();
        gaps.retransmissions = sent.into_iter().collect();
    }

    fn judge(&mut self, seq: u64, lost: &mut Lost) {
        if self.get(seq).is_some_and(|segment| segment.flags & (SACKED | LOST | RETRANSMITTED) == 0)
        {
            self.declare(seq, lost);
            self.gaps_mut().lost.push_back(seq);
        }
    }

    fn declare(&mut self, seq: u64, lost: &mut Lost) {
        let segment = &mut self.segments[(seq - self.una) as usize];
        self.inflight -= times_in_flight(segment) * u64::from(segment.size);
        segment.flags = (segment.flags & !(IN_PIPE | TWICE)) | LOST;
        lost.bytes += u64::from(segment.size);
        lost.last = lost.last.max(seq);
        if segment.sent_at >= lost.newest {
            lost.newest = segment.sent_at;
            lost.sent = segment.sent;
        }
        if let Some(packets) = self.packets() {
            packets.lose(seq);
        }
    }

    /// After a time-out: the first packet and, of the others, those sent at `sent_before` or earlier
    /// are lost (RFC 8985 section 6.3).
    pub fn declare_after_timeout(&mut self, sent_before: Time) -> Lost {
        let mut lost = Lost::default();
        self.gaps_mut().forget_lost();
        for seq in self.una..self.nxt() {
            let segment = self.segments[(seq - self.una) as usize];
            if segment.flags & SACKED != 0 {
                self.forget_second_copy(seq);
                continue;
            }
            if segment.flags & LOST == 0 && (seq == self.una || segment.sent_at <= sent_before) {
                self.declare(seq, &mut lost);
            }
            if self.segments[(seq - self.una) as usize].flags & LOST != 0 {
                self.gaps_mut().lost.push_back(seq);
            }
        }
        self.judged = self.una;
        lost
    }

    /// A copy beside a delivered one is no longer taken to be in flight.
    fn forget_second_copy(&mut self, seq: u64) {
        let segment = &mut self.segments[(seq - self.una) as usize];
        if segment.flags & TWICE != 0 {
            segment.flags &= !TWICE;
            self.inflight -= u64::from(segment.size);
        }
    }

    fn get(&self, seq: u64) -> Option<&Segment> {
        self.segments.get(seq.checked_sub(self.una)? as usize)
    }
}

/// How often a segment counts in `inflight`.
fn times_in_flight(segment: &Segment) -> u64 {
    u64::from(segment.flags & IN_PIPE != 0) + u64::from(segment.flags & TWICE != 0)
}

#[cfg(test)]
#[path = "tests/scoreboard.rs"]
mod tests;
