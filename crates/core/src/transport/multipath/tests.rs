use super::*;
use crate::rng::Rng;
use crate::transport::schedulers;

const CONFIG: DataConfig =
    DataConfig { receive_buffer: 10_000, send_buffer: 10_000, opportunistic: false, payload: 1000 };

fn sender(scheduler: &str, config: DataConfig, subflows: usize) -> DataSender {
    let mut sender =
        DataSender::new(config, schedulers::find(scheduler).expect("a scheduler"), subflows);
    (0..subflows).for_each(|subflow| sender.open(subflow));
    sender
}

/// The subflow sends a segment of what it is offered, and returns its data.
fn send(sender: &mut DataSender, subflow: usize, unsent: u64) -> Option<(u64, u64)> {
    let offer = sender.offer(subflow, unsent)?;
    sender.take(subflow, &offer, offer.len);
    Some((offer.start, offer.len))
}

#[test]
fn segments_map_data_without_gaps_whichever_subflow_sends_them() {
    let mut sender = sender("min_rtt", CONFIG, 2);
    let sent: Vec<_> =
        [0, 1, 1, 0].map(|subflow| send(&mut sender, subflow, 5000).unwrap().0).into();
    assert_eq!(sent, [0, 1000, 2000, 3000]);
    assert_eq!(sender.mapping(1, 1), Mapping { start: 2000, len: 1000 });
    assert_eq!(send(&mut sender, 0, 300), Some((4000, 300)), "the last is short");
}

#[test]
fn nothing_is_sent_beyond_the_data_acknowledgement_and_the_receive_window() {
    for config in [CONFIG, DataConfig { send_buffer: 1 << 20, ..CONFIG }] {
        let mut sender = sender("min_rtt", config, 2);
        (0..10).for_each(|number| assert!(send(&mut sender, number % 2, u64::MAX).is_some()));
        assert_eq!(send(&mut sender, 0, u64::MAX), None);
        assert!(sender.is_starved());
        sender.on_data_ack(500);
        assert_eq!(send(&mut sender, 0, u64::MAX), None, "no short segments of a long transfer");
        sender.on_data_ack(1000);
        assert_eq!(send(&mut sender, 1, u64::MAX), Some((10_000, 1000)));
    }
}

#[test]
fn data_acknowledgements_of_32_bits_count_on_past_four_gigabytes() {
    let mut sender = sender("min_rtt", CONFIG, 2);
    let mut receiver = Reassembly::new(2);
    let before = u32::MAX - 1499;
    sender.next = u64::from(before);
    sender.una = sender.next;
    receiver.on_segment(1, 0, Mapping { start: 0, len: before }, 1);
    for seq in 0..4 {
        send(&mut sender, 0, u64::MAX).expect("within the window");
        let mapping = sender.mapping(0, seq);
        receiver.on_segment(0, seq, mapping, 1);
        sender.on_data_ack(receiver.data_ack());
        sender.on_data_ack(receiver.data_ack().wrapping_sub(1000)); // an old one comes late
        assert_eq!(sender.una(), receiver.next());
    }
    assert_eq!(receiver.next(), (1 << 32) + 2500);
}

#[test]
fn a_stalled_subflows_data_is_offered_to_the_others_once_and_before_new_data() {
    let mut sender = sender("min_rtt", CONFIG, 2);
    for subflow in [0, 0, 1, 0] {
        send(&mut sender, subflow, u64::MAX);
    }
    sender.on_data_ack(1000);
    sender.on_timeout(0);
    sender.on_timeout(0);
    assert_eq!(send(&mut sender, 0, u64::MAX), Some((4000, 1000)), "not to itself");
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((1000, 1000)));
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((3000, 1000)));
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((5000, 1000)));
    assert_eq!(sender.reinjected_bytes(), 2000);
}

#[test]
fn a_closed_subflows_unacknowledged_data_is_sent_by_one_that_opens_later() {
    let spec = schedulers::find("min_rtt").expect("a scheduler");
    let mut sender = DataSender::new(CONFIG, spec, 2);
    sender.open(0);
    for _ in 0..3 {
        send(&mut sender, 0, u64::MAX);
    }
    sender.on_data_ack(1500);
    sender.close(0);
    assert!(sender.is_closed(0) && sender.loses_nothing(&Reassembly::new(2)));
    sender.open(1);
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((1500, 500)), "what is not acknowledged");
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((2000, 1000)));
    sender.open(0);
    assert!(!sender.is_open(0), "a closed subflow stays closed");
}

#[test]
fn redundant_subflows_each_send_every_byte_that_is_not_acknowledged() {
    let mut sender = sender("redundant", CONFIG, 2);
    for _ in 0..3 {
        send(&mut sender, 0, u64::MAX);
    }
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((0, 1000)));
    sender.on_data_ack(2000);
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((2000, 1000)), "acknowledged data is skipped");
    assert_eq!(send(&mut sender, 1, u64::MAX), Some((3000, 1000)));
    assert_eq!(send(&mut sender, 0, u64::MAX), Some((3000, 1000)));
}

#[test]
fn a_subflow_blocked_by_the_window_sends_its_head_once_if_that_is_opportunistic() {
    for opportunistic in [false, true] {
        let config = DataConfig { opportunistic, ..CONFIG };
        let mut sender = sender("min_rtt", config, 2);
        send(&mut sender, 1, u64::MAX);
        while send(&mut sender, 0, 1 << 40).is_some_and(|(start, _)| start > 0) {}
        assert_eq!(sender.reinjected_bytes(), if opportunistic { 1000 } else { 0 });
        assert_eq!(send(&mut sender, 0, u64::MAX), None, "once");
        assert_eq!(send(&mut sender, 1, u64::MAX), None, "its own");
    }
}

#[test]
fn data_behind_a_gap_of_its_own_subflow_is_handed_up_with_the_gap() {
    let mut receiver = Reassembly::new(2);
    receiver.on_segment(0, 1, Mapping { start: 1000, len: 1000 }, 0);
    receiver.on_segment(1, 0, Mapping { start: 0, len: 1000 }, 1);
    assert_eq!(receiver.next(), 1000, "the other copy came, but segment 0 of subflow 0 has not");
    receiver.on_segment(0, 0, Mapping { start: 0, len: 1000 }, 2);
    assert_eq!((receiver.next(), receiver.duplicate_bytes()), (2000, 1000));
}

#[test]
fn any_order_of_overlapping_segments_is_read_once_and_in_order() {
    let mut rng = Rng::new(7);
    for _ in 0..300 {
        let mut receiver = Reassembly::new(1);
        let mut came = [false; 60];
        let mut total = 0;
        for seq in 0..80 {
            let (start, len) = (rng.below(50), 1 + rng.below(10));
            total += len;
            came[start as usize..(start + len) as usize].fill(true);
            receiver.on_segment(0, seq, Mapping { start, len: len as u32 }, 1);
            let next = came.iter().position(|came| !came).unwrap_or(60) as u64;
            let distinct = came.iter().filter(|came| **came).count() as u64;
            assert_eq!((receiver.next(), receiver.held()), (next, distinct - next));
            assert_eq!(receiver.duplicate_bytes(), total - distinct);
            assert!(receiver.ranges().is_sorted() && receiver.held() <= receiver.held_max());
        }
    }
}

#[test]
fn what_is_neither_received_nor_sent_nor_queued_shows_as_lost() {
    let mut sender = sender("min_rtt", CONFIG, 2);
    for subflow in [0, 1, 0] {
        send(&mut sender, subflow, u64::MAX);
    }
    let mut receiver = Reassembly::new(2);
    assert!(sender.loses_nothing(&receiver));
    sender.on_acknowledged(1, 1);
    assert!(!sender.loses_nothing(&receiver), "a segment acknowledged but not received");
    receiver.on_segment(1, 0, Mapping { start: 1000, len: 1000 }, 1);
    assert!(sender.loses_nothing(&receiver));
}

/// A subflow between the two ends: what it sent, and what of it arrived.
#[derive(Default)]
struct Path {
    sent: Vec<(Mapping, bool)>,
    /// The next segment that its receiver expects.
    expected: usize,
}

/// Both ends of a connection, and paths that lose, delay and reorder.
struct Ends {
    sender: DataSender,
    receiver: Reassembly,
    unsent: u64,
    paths: Vec<Path>,
}

impl Ends {
    /// The subflow sends a segment, if it is open and offered one.
    fn send(&mut self, subflow: usize) -> bool {
        let Some(offer) =
            self.sender.is_open(subflow).then(|| self.sender.offer(subflow, self.unsent))
        else {
            return false;
        };
        let Some(offer) = offer else { return false };
        self.sender.take(subflow, &offer, offer.len);
        if offer.is_new {
            self.unsent -= offer.len;
        }
        let mapping = Mapping { start: offer.start, len: offer.len as u32 };
        self.paths[subflow].sent.push((mapping, false));
        true
    }

    /// A segment arrives, if it has not before.
    fn deliver(&mut self, subflow: usize, seq: usize) {
        let path = &mut self.paths[subflow];
        let Some((mapping, arrived @ false)) = path.sent.get_mut(seq) else { return };
        *arrived = true;
        let mapping = *mapping;
        let before = path.expected;
        while path.sent.get(path.expected).is_some_and(|(_, arrived)| *arrived) {
            path.expected += 1;
        }
        let delivered = if seq == before { path.expected - before } else { 0 };
        self.receiver.on_segment(subflow, seq as u64, mapping, delivered as u64);
    }

    fn acknowledge(&mut self, subflow: usize) {
        self.sender.on_data_ack(self.receiver.data_ack());
        if self.sender.is_open(subflow) {
            self.sender.on_acknowledged(subflow, self.paths[subflow].expected as u64);
        }
    }

    /// Something happens to a subflow. The last one never closes.
    fn step(&mut self, rng: &mut Rng) {
        let subflow = rng.below(self.paths.len() as u64) as usize;
        match rng.below(30) {
            0..12 => drop(self.send(subflow)),
            12..22 => {
                let count = self.paths[subflow].sent.len() as u64;
                self.deliver(subflow, count.saturating_sub(1 + rng.below(6)) as usize);
            }
            22..27 => self.acknowledge(subflow),
            27 | 28 if self.sender.is_open(subflow) => self.sender.on_timeout(subflow),
            29 if subflow + 1 < self.paths.len() && rng.chance(0.1) => self.sender.close(subflow),
            _ if rng.chance(0.1) => self.sender.open(subflow),
            _ => {}
        }
    }

    fn check(&self, window: u64, seed: u64) {
        let Self { sender, receiver, .. } = self;
        assert!(sender.loses_nothing(receiver), "seed {seed}");
        assert!(sender.next() - sender.una() <= window, "seed {seed}: beyond the window");
        assert!(receiver.held() <= window, "seed {seed}: beyond the buffer");
        assert!(sender.una() <= receiver.next() && receiver.next() <= sender.next(), "seed {seed}");
    }

    /// From here on nothing is lost on the subflows that are open.
    fn settle(&mut self) {
        for subflow in 0..self.paths.len() {
            self.sender.open(subflow);
            while self.send(subflow) {}
            if self.sender.is_open(subflow) {
                (0..self.paths[subflow].sent.len()).for_each(|seq| self.deliver(subflow, seq));
            }
            self.acknowledge(subflow);
        }
    }
}

/// RFC 8684 section 3.3: losses, late and reordered segments, time-outs, subflows that open late and that
/// close with data in flight, behind a window of three segments.
#[test]
fn every_byte_is_read_in_order_within_the_window_whatever_happens_to_the_subflows() {
    let (mut closed, mut blocked) = (0, 0);
    for seed in 0..600 {
        let mut rng = Rng::new(seed);
        let scheduler = ["min_rtt", "round_robin", "redundant"][seed as usize % 3];
        let opportunistic = rng.chance(0.5);
        let config = DataConfig { receive_buffer: 3000, opportunistic, ..CONFIG };
        let spec = schedulers::find(scheduler).expect("a scheduler");
        let mut ends = Ends {
            sender: DataSender::new(config, spec, 3),
            receiver: Reassembly::new(3),
            unsent: 40_300,
            paths: (0..3).map(|_| Path::default()).collect(),
        };
        ends.sender.open(0);
        for _ in 0..400 {
            ends.step(&mut rng);
            ends.check(3000, seed);
        }
        closed += (0..2).filter(|&subflow| ends.sender.is_closed(subflow)).count();
        blocked += usize::from(ends.receiver.held_max() >= 1000);
        let mut rounds = 0;
        while ends.unsent > 0 || !ends.sender.all_acknowledged() {
            ends.settle();
            ends.check(3000, seed);
            rounds += 1;
            assert!(rounds < 100, "seed {seed}: stuck at {}", ends.receiver.next());
        }
        assert_eq!((ends.receiver.next(), ends.receiver.held()), (40_300, 0), "seed {seed}");
    }
    assert!(closed > 100 && blocked > 100, "{closed} closed, {blocked} blocked");
}
