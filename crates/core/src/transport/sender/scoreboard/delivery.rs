//! What an acknowledgement says of segments.
use super::{Delivered, IN_PIPE, LOST, RETRANSMITTED, SACKED, Scoreboard, Segment, TWICE};
use crate::hint::{likely, unlikely};
use crate::transport::packet::Packet;
use crate::units::Time;

impl Scoreboard {
    /// Takes an acknowledgement; one that is not of this flow's making changes nothing. A
    /// retransmission counts as delivered only if it left at `credible` or before; otherwise what
    /// arrived was an earlier copy.
    pub fn on_ack(&mut self, ack: &Packet, credible: Time) -> Delivered {
        let mut delivered = Delivered {
            timed: Time::NEVER,
            credible,
            fack: self.highest_delivered,
            ..Delivered::default()
        };
        if unlikely(ack.seq > self.nxt()) {
            return delivered;
        }
        delivered.advanced = ack.seq > self.una;
        if delivered.advanced {
            self.acknowledge_plain(ack.seq, &mut delivered);
            if unlikely(self.una < ack.seq) {
                self.acknowledge_others(ack.seq, credible, &mut delivered);
            }
        }
        if unlikely(ack.left() > 0) && self.una == ack.seq {
            self.shorten_first(ack.left(), &mut delivered);
        }
        if unlikely(self.segments.is_empty()) {
            // The next segment reuses the memory of the first.
            self.segments.clear();
        }
        // The next acknowledgement is about these; until then the state of many other flows is touched.
        self.fetch_first();
        if unlikely(self.open)
            && let Some(gaps) = &mut self.gaps
        {
            self.sacked_count -= gaps.forget_sacked(self.una);
            if let Some(packets) = &mut gaps.packets {
                packets.ack_all(self.una);
            }
            self.open = gaps.is_open();
        }
        if unlikely(ack.sack[usize::from(ack.repeat)].1 > 0) {
            self.acknowledge_blocks(ack, &mut delivered);
        }
        delivered
    }

    /// Takes the first segments off, up to `end`, whatever became of each.
    #[inline(never)]
    fn acknowledge_others(&mut self, end: u64, credible: Time, delivered: &mut Delivered) {
        while self.una < end {
            let Some(segment) = self.segments.pop_front() else { break };
            self.outstanding -= u64::from(segment.size);
            if segment.flags & SACKED == 0 {
                let overtaken = self.una < delivered.fack;
                self.count(&segment, self.una, delivered);
                if segment.flags & RETRANSMITTED != 0 {
                    delivered.repaired = true;
                    // It was not the retransmission that filled the gap.
                    delivered.reordered |= overtaken && segment.sent_at > credible;
                }
            }
            if segment.flags & RETRANSMITTED != 0 {
                let una = self.una;
                self.gaps_mut().retransmitted.push(una);
            }
            if segment.flags & TWICE != 0 {
                self.inflight -= u64::from(segment.size);
            }
            self.una += 1;
            self.acknowledge_plain(end, delivered);
        }
    }

    /// What an acknowledgement reports beyond the first gap. A block that reaches beyond what was sent is of a receiver
    /// that guesses: it is ignored, as such an acknowledgement is (source: Linux 6, `tcp_is_sackblock_valid`).
    #[inline(never)]
    fn acknowledge_blocks(&mut self, ack: &Packet, delivered: &mut Delivered) {
        let blocks = &ack.sack[usize::from(ack.repeat)..];
        for &(offset, length) in blocks.iter().take_while(|&&(_, length)| length > 0) {
            let start = (ack.seq + u64::from(offset)).max(self.una);
            let end = ack.seq + u64::from(offset) + u64::from(length);
            if likely(end <= self.nxt()) {
                self.sack(start, end, delivered);
            }
        }
    }

    /// Takes the first segments off, up to `end`, of which nothing is known but that they were sent, once: most are
    /// such. They left in this order, so the last of them is the newest.
    #[allow(clippy::inline_always, reason = "called for every acknowledgement")]
    #[inline(always)]
    fn acknowledge_plain(&mut self, end: u64, delivered: &mut Delivered) {
        let (segments, _) = self.segments.as_slices();
        let most = segments.len().min((end - self.una) as usize);
        let plain = segments[..most].iter().take_while(|segment| segment.flags == IN_PIPE);
        let (mut count, mut bytes) = (0, 0);
        for segment in plain {
            count += 1;
            bytes += u64::from(segment.size);
        }
        let &[Segment { sent_at: first, .. }, ..] = &segments[..count] else { return };
        let Segment { sent_at: last, sent, .. } = segments[count - 1];
        let newest = (last, self.una + count as u64 - 1);
        if newest >= delivered.newest {
            delivered.newest = newest;
            delivered.sent = sent;
        }
        delivered.add_certain(newest);
        delivered.add_timed(first, last);
        delivered.bytes += bytes;
        delivered.reordered |= self.una < delivered.fack;
        self.highest_delivered = self.highest_delivered.max(newest.1);
        self.inflight -= bytes;
        self.outstanding -= bytes;
        self.una += count as u64;
        for _ in 0..count {
            self.segments.pop_front();
        }
    }

    /// All but `left` bytes of the first segment are acknowledged: only these count, and leave again, from now on.
    #[cold]
    fn shorten_first(&mut self, left: u32, delivered: &mut Delivered) {
        let Some(first) = self.segments.front_mut() else { return };
        if first.flags & SACKED != 0 || left >= first.size {
            return;
        }
        let part = Segment { size: first.size - left, ..*first };
        first.size = left;
        self.outstanding -= u64::from(part.size);
        if part.flags & TWICE != 0 {
            self.inflight -= u64::from(part.size);
        }
        self.count(&part, self.una, delivered);
        delivered.advanced = true;
        let una = self.una;
        if let Some(packets) = self.packets() {
            packets.ack(una, part.size);
        }
    }

    fn sack(&mut self, start: u64, end: u64, delivered: &mut Delivered) {
        if start >= end {
            return;
        }
        let mut gaps = self.gaps.take().unwrap_or_default();
        let sacked = &mut gaps.sacked;
        let first = sacked.first_after(|block| block.1 < start);
        // Most blocks of a report were known before.
        if let Some(&(block_start, block_end)) = sacked.get(first)
            && block_start <= start
            && end <= block_end
        {
            self.gaps = Some(gaps);
            return;
        }
        if unlikely(gaps.packets.is_some()) {
            self.note_sacked(start..end, &mut gaps.packets);
        }
        let sacked = &mut gaps.sacked;
        let mut merged = (start, end);
        let mut fresh_from = start;
        let mut last = first;
        while let Some(&(block_start, block_end)) = sacked.get(last)
            && block_start <= end
        {
            self.deliver_range(fresh_from, block_start.min(end), delivered);
            fresh_from = fresh_from.max(block_end);
            merged = (merged.0.min(block_start), merged.1.max(block_end));
            last += 1;
        }
        self.deliver_range(fresh_from, end, delivered);
        match sacked.get_mut(first) {
            Some(block) if last > first => {
                *block = merged;
                sacked.remove_range(first + 1, last);
            }
            _ => sacked.insert(first, merged),
        }
        self.gaps = Some(gaps);
        self.open = true;
    }

    fn deliver_range(&mut self, start: u64, end: u64, delivered: &mut Delivered) {
        for seq in start..end {
            let index = (seq - self.una) as usize;
            let segment = self.segments[index];
            self.count(&segment, seq, delivered);
            let flags = &mut self.segments[index].flags;
            *flags = (*flags | SACKED) & !(IN_PIPE | LOST);
            self.sacked_count += 1;
        }
    }

    #[allow(
        clippy::inline_always,
        reason = "called for every segment, in a loop whose state must stay in registers"
    )]
    #[inline(always)]
    fn count(&mut self, segment: &Segment, seq: u64, delivered: &mut Delivered) {
        if segment.flags & IN_PIPE != 0 {
            self.inflight -= u64::from(segment.size);
        }
        delivered.bytes += u64::from(segment.size);
        let retransmitted = segment.flags & RETRANSMITTED != 0;
        if (segment.sent_at, seq) >= delivered.newest {
            delivered.newest = (segment.sent_at, seq);
            delivered.sent = segment.sent;
        }
        if !retransmitted || segment.sent_at <= delivered.credible {
            delivered.add_certain((segment.sent_at, seq));
        }
        if !retransmitted {
            delivered.add_timed(segment.sent_at, segment.sent_at);
            delivered.reordered |= seq < delivered.fack;
        }
        self.highest_delivered = self.highest_delivered.max(seq);
    }
}
