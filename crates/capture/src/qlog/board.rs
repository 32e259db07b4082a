//! Which packets a sender takes for acknowledged and lost. Its records say how many; this works out which, by the same
//! rules.
use ackademy::control::{Loss, LossKind, Recovery};
use ackademy::transport::packet::Packet;
use ackademy::units::Time;
use std::collections::VecDeque;

/// Most transmissions that are remembered beside the latest of each segment.
const REPLACED_MAX: usize = 64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// In flight.
    Open,
    Acked,
    Lost,
}

/// The latest transmission of a segment.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    at: Time,
    size: u32,
    fate: Fate,
}

/// The segments of a flow from the first unacknowledged one on.
#[derive(Clone, Debug, Default)]
pub struct Board {
    una: u64,
    sent: VecDeque<Sent>,
    /// Those that a retransmission replaced before they were told to be lost: a probe of them, or a loss that is
    /// told late.
    replaced: VecDeque<Sent>,
    /// Whether the sender goes back to what is not acknowledged (ns-2).
    goes_back: bool,
}

impl Board {
    /// Nothing sent.
    pub fn new(recovery: Recovery) -> Self {
        Self { goes_back: recovery == Recovery::Ns2, ..Self::default() }
    }

    /// A data packet leaves.
    pub fn sent(&mut self, at: Time, packet: &Packet) {
        let Packet { seq, size, transmission, .. } = *packet;
        let sent = Sent { number: u64::from(transmission), at, size, fate: Fate::Open };
        let Some(index) = seq.checked_sub(self.una) else { return };
        let Some(known) = self.sent.get_mut(index as usize) else {
            return self.sent.push_back(sent);
        };
        let before = std::mem::replace(known, sent);
        if before.fate == Fate::Open {
            self.replaced.truncate(REPLACED_MAX - 1);
            self.replaced.push_front(before);
        }
    }

    /// An acknowledgement arrives: the packets that it newly acknowledges, as ranges with both ends.
    pub fn acked(&mut self, ack: &Packet) -> Vec<[u64; 2]> {
        let mut found = Vec::new();
        while self.una < ack.seq
            && let Some(sent) = self.sent.pop_front()
        {
            self.una += 1;
            if sent.fate != Fate::Acked {
                found.push(sent.number);
            }
        }
        let duplicates = usize::from(ack.duplicate().is_some());
        for &(offset, length) in &ack.sack[duplicates..] {
            let Some(first) = (ack.seq + u64::from(offset)).checked_sub(self.una) else { continue };
            let first = (first as usize).min(self.sent.len());
            let end = first.saturating_add(length as usize).min(self.sent.len());
            for sent in self.sent.range_mut(first..end) {
                if sent.fate != Fate::Acked {
                    sent.fate = Fate::Acked;
                    found.push(sent.number);
                }
            }
        }
        ranges(found)
    }

    /// The packets that a loss is about: those that left first, up to the newest that it names, as many as it
    /// says. If there are not as many, some were told late.
    pub fn lost(&mut self, loss: &Loss) -> Vec<u64> {
        if self.goes_back && loss.kind != LossKind::Deflate {
            return self.first(loss.lost.0);
        }
        if loss.kind == LossKind::Spurious {
            for sent in self.sent.iter_mut().filter(|sent| sent.fate == Fate::Lost) {
                sent.fate = Fate::Open;
            }
        }
        if loss.lost.0 == 0 || loss.kind == LossKind::Deflate {
            return Vec::new();
        }
        // After a time-out the first segment is lost, however late it left.
        let is_timeout = matches!(loss.kind, LossKind::Timeout | LossKind::TimeoutAgain);
        let is_open =
            |(_, sent): &(usize, &mut Sent)| sent.fate == Fate::Open && sent.at <= loss.sent_at;
        let mut open: Vec<(usize, &mut Sent)> =
            self.sent.iter_mut().enumerate().filter(is_open).collect();
        open.sort_by_key(|(index, sent)| (!(is_timeout && *index == 0), sent.number));
        let mut left = loss.lost.0;
        let mut found = Vec::new();
        for (_, sent) in open {
            if left == 0 {
                break;
            }
            left = left.saturating_sub(u64::from(sent.size));
            sent.fate = Fate::Lost;
            found.push(sent.number);
        }
        while left > 0
            && let Some(sent) = self.replaced.pop_front()
        {
            left = left.saturating_sub(u64::from(sent.size));
            found.push(sent.number);
        }
        found
    }

    /// The first so many bytes: what a sender without selective acknowledgements takes for lost, again and again.
    fn first(&self, bytes: u64) -> Vec<u64> {
        let mut left = bytes;
        let mut is_lost = |sent: &&Sent| {
            let is_lost = left > 0;
            left = left.saturating_sub(u64::from(sent.size));
            is_lost
        };
        self.sent.iter().take_while(|sent| is_lost(sent)).map(|sent| sent.number).collect()
    }
}

/// Numbers as ascending ranges with both ends.
pub(super) fn ranges(mut numbers: Vec<u64>) -> Vec<[u64; 2]> {
    numbers.sort_unstable();
    let mut ranges: Vec<[u64; 2]> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some([_, end]) if *end + 1 == number => *end = number,
            _ => ranges.push([number, number]),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackademy::units::Bytes;

    fn board(packets: u32) -> Board {
        let mut board = Board::default();
        for number in 0..packets {
            let packet = data(u64::from(number), number);
            board.sent(Time(u64::from(number)), &packet);
        }
        board
    }

    fn data(seq: u64, transmission: u32) -> Packet {
        Packet { seq, transmission, size: 1500, ..Packet::default() }
    }

    fn loss(packets: u64, sent_at: u64, kind: LossKind) -> Loss {
        let lost = Bytes(packets * 1500);
        Loss { lost, sent_at: Time(sent_at), kind, ..Loss::default() }
    }

    #[test]
    fn packets_are_acknowledged_once() {
        let mut board = board(10);
        let mut ack = Packet { seq: 2, ..Packet::default() };
        ack.sack[0] = (2, 2);
        assert_eq!(board.acked(&ack), [[0, 1], [4, 5]]);
        assert_eq!(board.acked(&ack), Vec::<[u64; 2]>::new());
        ack.seq = 7;
        ack.sack[0] = (0, 0);
        assert_eq!(board.acked(&ack), [[2, 3], [6, 6]]);
    }

    #[test]
    fn the_report_of_a_duplicate_acknowledges_nothing() {
        let mut board = board(10);
        let mut ack = Packet { seq: 2, repeat: true, ..Packet::default() };
        ack.sack[0] = (3, 1);
        assert_eq!(board.acked(&ack), [[0, 1]]);
    }

    #[test]
    fn a_retransmission_is_lost_after_what_left_before() {
        let mut board = board(6);
        assert_eq!(board.lost(&loss(1, 0, LossKind::Gap)), [0]);
        board.sent(Time(10), &data(0, 6));
        assert_eq!(board.lost(&loss(2, 4, LossKind::More)), [1, 2]);
        assert_eq!(board.lost(&loss(1, 10, LossKind::TimeoutAgain)), [6]);
        assert_eq!(board.lost(&loss(9, 5, LossKind::More)), [3, 4, 5]);
    }

    #[test]
    fn a_loss_that_is_told_after_its_repair_left_is_of_the_packet_that_was_repaired() {
        let mut board = board(4);
        board.sent(Time(10), &data(3, 4));
        assert_eq!(board.lost(&loss(2, 0, LossKind::More)), [0, 3]);
    }

    #[test]
    fn what_was_lost_for_nothing_is_in_flight_again() {
        let mut board = board(3);
        assert_eq!(board.lost(&loss(2, 1, LossKind::Gap)), [0, 1]);
        assert_eq!(board.lost(&loss(0, 0, LossKind::Spurious)), Vec::<u64>::new());
        assert_eq!(board.lost(&loss(3, 2, LossKind::Gap)), [0, 1, 2]);
    }
}
