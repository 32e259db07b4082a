//! CoDel (RFC 8289) with ECN marking.
use std::collections::VecDeque;

use super::Scheduler;
use super::drop_tail::DropTail;
use crate::rng::Rng;
use crate::transport::packet::Packet;
use crate::units::{Span, Time};

/// Settings of [`Codel`] and of each queue of [`super::fq_codel::FqCodel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Standing queueing delay to tolerate (RFC 8289 section 4).
    pub target: Span,
    /// How long the delay must stand before it counts: about the longest round trip (section 4).
    pub interval: Span,
    /// No more than this many bytes are no standing queue: the largest packet.
    pub mtu_bytes: u64,
    /// Whether the root in the control law is approached by one step of Newton's method per drop, as
    /// Linux and ns-3 compute it: the second pause between drops is half an interval instead of 0.71.
    pub newton: bool,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Hard bound of the queue; the packet in transmission has left it.
    pub limit: DropTail,
}

/// One queue that drops at its head while packets stay in it too long.
#[derive(Clone, Debug)]
pub struct Codel {
    config: Config,
    queue: Fifo,
    state: State,
}

/// Packets and when they came.
#[derive(Clone, Debug, Default)]
pub(super) struct Fifo {
    entries: VecDeque<(Time, Packet)>,
    bytes: u64,
    /// When the packet came that was taken last.
    came: Time,
}

/// What CoDel remembers of a queue (RFC 8289 section 5.2).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// When the delay will have stood above the target for an interval; none while it is below.
    first_above: Option<Time>,
    drop_next: Time,
    /// Drops since the dropping state was entered, and what `count` began with then.
    count: u64,
    last_count: u64,
    /// 1 / sqrt(count), or what Newton's method has of it.
    inverse_root: f64,
    dropping: bool,
}

impl Codel {
    /// Starts with an empty queue.
    pub fn new(config: Config) -> Self {
        Self { config, queue: Fifo::default(), state: State::default() }
    }
}

impl Fifo {
    pub(super) fn push(&mut self, now: Time, packet: Packet) {
        self.bytes += u64::from(packet.size);
        self.entries.push_back((now, packet));
    }

    pub(super) fn pop(&mut self) -> Option<(Time, Packet)> {
        let (came, packet) = self.entries.pop_front()?;
        self.bytes -= u64::from(packet.size);
        self.came = came;
        Some((came, packet))
    }

    /// When the packet came that was taken last.
    pub(super) fn came(&self) -> Time {
        self.came
    }

    /// When its first packet came.
    pub(super) fn head_came(&self) -> Option<Time> {
        self.entries.front().map(|entry| entry.0)
    }

    pub(super) fn packets(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn show(&self, each: &mut dyn FnMut(&Packet)) {
        self.entries.iter().for_each(|(_, packet)| each(packet));
    }
}

impl State {
    /// The next packet to send; RFC 8289 section 5.5, with marks in place of drops where ECN allows.
    pub(super) fn dequeue(
        &mut self,
        now: Time,
        config: &Config,
        queue: &mut Fifo,
        dropped: &mut Vec<Packet>,
    ) -> Option<Packet> {
        let Some((mut packet, too_long)) = self.head(now, config, queue) else {
            self.dropping = false;
            return None;
        };
        if too_long && !self.dropping {
            self.enter_dropping(now, config);
            if !mark(&mut packet, config) {
                dropped.push(packet);
                (packet, _) = self.head(now, config, queue)?;
            }
            return Some(packet);
        }
        self.dropping = too_long;
        while self.dropping && now >= self.drop_next {
            self.count += 1;
            self.update_root(config);
            let after = self.control_law(self.drop_next, config);
            if mark(&mut packet, config) {
                self.drop_next = after;
                break;
            }
            dropped.push(packet);
            let Some(next) = self.head(now, config, queue) else {
                self.dropping = false;
                return None;
            };
            (packet, self.dropping) = next;
            if self.dropping {
                self.drop_next = after;
            }
        }
        Some(packet)
    }

    /// Resumes close to the drop rate that last worked, if that was not long ago.
    fn enter_dropping(&mut self, now: Time, config: &Config) {
        self.dropping = true;
        let recent = now.since(self.drop_next) < config.interval * 16;
        let delta = self.count.saturating_sub(self.last_count);
        let resumes = recent && delta > 1;
        self.count = if resumes { delta } else { 1 };
        if resumes {
            self.update_root(config);
        } else {
            self.inverse_root = 1.0;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(now, config);
    }

    fn update_root(&mut self, config: &Config) {
        let count = self.count as f64;
        self.inverse_root = if config.newton {
            self.inverse_root * (1.5 - 0.5 * count * self.inverse_root * self.inverse_root)
        } else {
            1.0 / count.sqrt()
        };
    }

    /// Drops come closer together with the root of their number, which lowers a flow's rate linearly
    /// (RFC 8289 section 5.6).
    fn control_law(&self, time: Time, config: &Config) -> Time {
        time + Span((config.interval.0 as f64 * self.inverse_root) as u64)
    }

    /// Takes the packet at the head, and tells whether packets have stayed too long for an interval
    /// (RFC 8289 section 5.6).
    fn head(&mut self, now: Time, config: &Config, queue: &mut Fifo) -> Option<(Packet, bool)> {
        let Some((came, packet)) = queue.pop() else {
            self.first_above = None;
            return None;
        };
        if now.since(came) < config.target || queue.bytes <= config.mtu_bytes {
            self.first_above = None;
            return Some((packet, false));
        }
        let due = *self.first_above.get_or_insert(now + config.interval);
        Some((packet, now >= due))
    }
}

/// Marks the packet if it may be marked.
fn mark(packet: &mut Packet, config: &Config) -> bool {
    let mark = config.ecn && packet.ect.is_capable();
    packet.ce |= mark;
    mark
}

impl Default for Config {
    /// 5 ms and 100 ms (RFC 8289 section 4), Ethernet frames.
    fn default() -> Self {
        Self {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            mtu_bytes: 1514,
            newton: false,
            ecn: false,
            limit: DropTail::default(),
        }
    }
}

impl Scheduler for Codel {
    fn enqueue(&mut self, now: Time, packet: Packet, _rng: &mut Rng, dropped: &mut Vec<Packet>) {
        if self.config.limit.fits(self.queue.packets(), self.queue.bytes(), packet.size) {
            self.queue.push(now, packet);
        } else {
            dropped.push(packet);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Vec<Packet>) -> Option<Packet> {
        self.state.dequeue(now, &self.config, &mut self.queue, dropped)
    }

    fn came(&self) -> Time {
        self.queue.came()
    }

    fn packets(&self) -> u64 {
        self.queue.packets()
    }

    fn bytes(&self) -> u64 {
        self.queue.bytes()
    }

    fn show(&self, each: &mut dyn FnMut(&Packet)) {
        self.queue.show(each);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::packet::Ect;

    fn at(millis: u64) -> Time {
        Time(millis * 1_000_000)
    }

    fn packet(seq: u64) -> Packet {
        Packet { size: 1500, seq, ect: Ect::Zero, ..Packet::default() }
    }

    /// Keeps `backlog` packets queued and sends one per millisecond until `end` ms; returns what was
    /// sent and, for each drop, when.
    fn overload(codel: &mut Codel, backlog: u64, end: u64) -> (Vec<Packet>, Vec<u64>) {
        let (mut sent, mut times, mut dropped) = (Vec::new(), Vec::new(), Vec::new());
        let mut rng = Rng::new(0);
        for millis in 0..end {
            while codel.packets() < backlog {
                codel.enqueue(at(millis), packet(0), &mut rng, &mut dropped);
            }
            sent.extend(codel.dequeue(at(millis), &mut dropped));
            times.extend(dropped.drain(..).map(|_| millis));
        }
        (sent, times)
    }

    #[test]
    fn a_queue_below_its_target_drops_nothing() {
        let mut codel = Codel::new(Config::default());
        assert!(overload(&mut codel, 4, 2000).1.is_empty());
    }

    #[test]
    fn the_first_drop_comes_an_interval_after_the_delay_passed_the_target() {
        let mut codel = Codel::new(Config::default());
        // Twenty packets at one per millisecond: the sixth is the first that waited 5 ms.
        assert_eq!(overload(&mut codel, 20, 106).1, [105]);
    }

    #[test]
    fn drops_come_closer_together_with_the_root_of_their_number() {
        let mut codel = Codel::new(Config::default());
        let times = overload(&mut codel, 20, 400).1;
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps[..3], [100, 71, 58], "{times:?}"); // 100 / sqrt(1, 2, 3)
    }

    #[test]
    fn newtons_method_takes_one_step_per_drop() {
        let mut codel = Codel::new(Config { newton: true, ..Config::default() });
        let times = overload(&mut codel, 20, 420).1;
        let gaps: Vec<u64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(gaps[..4], [100, 50, 57, 49], "{times:?}"); // 1, 0.5, 0.5625, 0.4878
    }

    #[test]
    fn dropping_ends_once_a_packet_waited_less_than_the_target() {
        let mut codel = Codel::new(Config::default());
        overload(&mut codel, 20, 300);
        assert!(codel.state.dropping);
        let mut dropped = Vec::new();
        while codel.dequeue(at(300), &mut dropped).is_some() {}
        codel.enqueue(at(301), packet(0), &mut Rng::new(0), &mut dropped);
        codel.dequeue(at(302), &mut dropped);
        assert!(!codel.state.dropping && codel.state.first_above.is_none());
    }

    #[test]
    fn dropping_resumes_near_the_rate_that_worked_if_it_ended_lately() {
        let resumed_at = |pause: u64| {
            let mut state = State { count: 10, last_count: 1, ..State::default() };
            state.drop_next = at(1000);
            state.enter_dropping(at(1000 + pause), &Config::default());
            state.count
        };
        assert_eq!(resumed_at(100), 9);
        assert_eq!(resumed_at(1600), 1);
    }

    #[test]
    fn ecn_marks_where_it_would_have_dropped() {
        let mut codel = Codel::new(Config { ecn: true, ..Config::default() });
        let (sent, drops) = overload(&mut codel, 20, 400);
        assert!(drops.is_empty(), "{drops:?}");
        let marks: Vec<usize> = (0..400).filter(|&index| sent[index].ce).collect();
        assert_eq!(marks[..4], [105, 205, 276, 334]);
    }

    #[test]
    fn packets_leave_in_order_and_none_vanishes() {
        let mut codel = Codel::new(Config::default());
        let (mut sent, mut dropped, mut rng) = (Vec::new(), Vec::new(), Rng::new(0));
        (0..900).for_each(|seq| codel.enqueue(at(0), packet(seq), &mut rng, &mut dropped));
        for millis in 0.. {
            match codel.dequeue(at(millis), &mut dropped) {
                Some(packet) => sent.push(packet.seq),
                None => break,
            }
        }
        assert!(sent.is_sorted() && !dropped.is_empty());
        assert_eq!(sent.len() + dropped.len(), 900);
        assert_eq!((codel.packets(), codel.bytes()), (0, 0));
    }

    #[test]
    fn a_full_queue_drops_the_arrival() {
        let limit = DropTail { packets: 2, bytes: u64::MAX };
        let mut codel = Codel::new(Config { limit, ..Config::default() });
        let mut dropped = Vec::new();
        (0..3).for_each(|seq| codel.enqueue(at(0), packet(seq), &mut Rng::new(0), &mut dropped));
        assert_eq!(dropped, [packet(2)]);
    }
}
