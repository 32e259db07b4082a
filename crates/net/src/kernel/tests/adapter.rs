use super::*;
use ackademy::control::{Coupled, Send, SendAction};
use std::sync::{Arc, Mutex};

#[derive(Clone, Debug, PartialEq)]
enum Event {
    Ack(Ack),
    Loss(Loss),
    Timer(Time),
}

struct Listener {
    received: Arc<Mutex<Vec<Event>>>,
    control: Control,
}

impl Coupled for Listener {
    fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
    fn subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, ack: &Ack) {
        self.received.lock().unwrap().push(Event::Ack(*ack));
    }
    fn on_loss(&mut self, _: SubflowId, loss: &Loss) {
        self.received.lock().unwrap().push(Event::Loss(*loss));
    }
    fn on_timer(&mut self, _: SubflowId, now: Time) {
        self.received.lock().unwrap().push(Event::Timer(now));
    }
    fn control(&self, _: SubflowId) -> Control {
        self.control
    }
}

/// A flow and its own governor.
struct Single(Adapter, Governor);

impl Single {
    fn new(flow: &Flow, first: &Record, coupled: Box<dyn Coupled>) -> Self {
        let mut governor = Governor::new(coupled);
        Self(Adapter::new(flow, first, &flow_info(flow), &mut governor), governor)
    }
    fn on_record(&mut self, record: &Record) {
        self.0.on_record(&mut self.1, record);
    }
    fn on_timer(&mut self, now: Time) {
        self.0.on_timer(&mut self.1, now);
    }
    fn allowed(&self) -> Option<Allowed> {
        self.0.allowed(&self.1)
    }
}

/// Packets of 1500 bytes with 1448 of payload, and the calls that its controller receives.
fn adapter(control: Control) -> (Single, Arc<Mutex<Vec<Event>>>) {
    let received = Arc::new(Mutex::new(Vec::new()));
    let listener = Listener { received: Arc::clone(&received), control };
    let flow = Flow { mss: 1448, header: 52, opened_at: 1000, ..Flow::default() };
    (Single::new(&flow, &Record::default(), Box::new(listener)), received)
}

fn window(packets: u64) -> Control {
    Control::window(Bytes(packets * 1500))
}

#[test]
fn a_gap_comes_after_what_grew_and_what_did_not() {
    let (mut adapter, received) = adapter(window(20));
    let record = Record {
        kind: kind::GAP,
        now: 5000,
        rtt_us: 7,
        rtt_max_us: 9,
        rtt_min_us: 5,
        delivered: 10,
        held: 3,
        lost: 2,
        inflight: 12,
        flight: 40,
        ..Record::default()
    };
    adapter.on_record(&record);
    let received = received.lock().unwrap();
    let [Event::Ack(grew), Event::Ack(held), Event::Loss(loss)] = &received[..] else {
        panic!("{received:?}")
    };
    assert_eq!((grew.acked, grew.recovering, grew.rtt), (Bytes(7 * 1500), 0, Span::ZERO));
    assert_eq!((held.acked, held.recovering), (Bytes(3 * 1500), 1));
    assert_eq!((held.rtt, held.rtt_max), (Span::from_micros(7), Span::from_micros(9)));
    let smallest = (grew.batch_rtt_min, held.batch_rtt_min);
    assert_eq!(smallest, (Span::ZERO, Span::from_micros(5)));
    assert_eq!((grew.inflight, held.inflight), (Bytes(15 * 1500), Bytes(12 * 1500)));
    assert_eq!((grew.delivered, held.delivered), (Bytes(7 * 1500), Bytes(10 * 1500)));
    assert_eq!((loss.kind, loss.lost), (LossKind::Gap, Bytes(2 * 1500)));
    assert_eq!(loss.inflight, Bytes(20 * 1500), "FlightSize is at most the window");
}

#[test]
fn what_was_lost_and_in_flight_since_the_newest_packet_left_is_told_from_the_records() {
    let (mut adapter, received) = adapter(window(20));
    let base = Record { rate_delivered: 8, rate_interval_us: 1000, ..Record::default() };
    let lossy = Record { kind: kind::GAP, now: 5000, sent_at: 4000, delivered: 4, lost: 2, ..base };
    adapter.on_record(&lossy);
    let sent_before = Record { now: 6000, sent_at: 5000, delivered: 6, lost: 5, ..base };
    adapter.on_record(&sent_before);
    let sent_between = Record { now: 7000, sent_at: 5500, delivered: 8, lost: 5, ..base };
    adapter.on_record(&sent_between);
    let sent_after = Record { now: 8000, sent_at: 6001, delivered: 9, lost: 5, ..base };
    adapter.on_record(&sent_after);
    let received = received.lock().unwrap();
    let of = |event: &Event| match event {
        Event::Ack(ack) => (ack.lost_since, ack.delivered_since, ack.tx_inflight),
        Event::Loss(loss) => (loss.lost_since, Bytes(8 * 1500), loss.tx_inflight),
        Event::Timer(_) => panic!("{received:?}"),
    };
    let told: Vec<_> = received.iter().map(of).collect();
    let expected = [2, 2, 5, 5, 3, 0]
        .map(|lost| (Bytes(lost * 1500), Bytes(8 * 1500), Bytes((8 + lost) * 1500)));
    assert_eq!(told, expected);
}

#[test]
fn the_flight_before_is_what_the_newest_acknowledgement_found_not_the_batch() {
    let (mut adapter, received) = adapter(window(20));
    let record = Record { delivered: 10, newest: 2, inflight: 18, ..Record::default() };
    adapter.on_record(&record);
    adapter.on_record(&Record { delivered: 11, ..record });
    let received = received.lock().unwrap();
    let found: Vec<_> = received
        .iter()
        .map(|event| match event {
            Event::Ack(ack) => (ack.acked.0 / 1500, ack.prior_inflight.0 / 1500),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [(10, 20), (1, 19)]);
}

/// Holds all above eight packets in flight, and asks for twenty.
struct Holder;

impl Coupled for Holder {
    fn subflow_added(&mut self, _: SubflowId, _: &FlowInfo) {}
    fn subflow_removed(&mut self, _: SubflowId) {}
    fn on_ack(&mut self, _: SubflowId, _: &Ack) {}
    fn on_loss(&mut self, _: SubflowId, _: &Loss) {}
    fn on_send(&mut self, _: SubflowId, send: &Send) -> SendAction {
        if send.inflight.0 < 8 * 1500 { SendAction::Send } else { SendAction::Hold }
    }
    fn has_send_hook(&self) -> bool {
        true
    }
    fn control(&self, _: SubflowId) -> Control {
        window(20)
    }
}

#[test]
fn the_window_of_a_controller_with_a_send_hook_is_what_it_lets_pass() {
    let flow = Flow { mss: 1448, header: 52, ..Flow::default() };
    let mut adapter = Single::new(&flow, &Record::default(), Box::new(Holder));
    assert_eq!(adapter.allowed().expect("possible").cwnd, 8);
    let flags = flag::CWND_LIMITED;
    let one = Record {
        kind: kind::SAMPLE,
        flags,
        delivered: 1,
        inflight: 7,
        now: 1,
        ..Record::default()
    };
    adapter.on_record(&one);
    assert_eq!(adapter.allowed().expect("possible").cwnd, 8);
    let gap = Record { kind: kind::GAP, lost: 1, now: 2, ..one };
    adapter.on_record(&gap);
    assert_eq!(adapter.allowed().expect("possible").cwnd, 20, "recovery has its own rule");
}

/// What is told of records, each of a kind and so many packets lost in all.
fn told_losses(records: &[(u32, u32)], flags: u32) -> Vec<(LossKind, u64)> {
    let (mut adapter, received) = adapter(window(20));
    for &(kind, lost) in records {
        adapter.on_record(&Record { kind, flags, lost, ..Record::default() });
    }
    let received = received.lock().unwrap();
    let told = received.iter().map(|event| match event {
        Event::Loss(loss) => (loss.kind, loss.lost.0 / 1500),
        other => panic!("{other:?}"),
    });
    told.collect()
}

#[test]
fn losses_outside_of_events_have_been_answered_for() {
    let records = [(kind::SAMPLE, 1), (kind::TIMEOUT, 1), (kind::IDLE, 1), (kind::IDLE, 2)];
    let idle = (LossKind::Idle, 0);
    let expected = [(LossKind::More, 1), (LossKind::Timeout, 0), idle, (LossKind::More, 1), idle];
    assert_eq!(told_losses(&records, 0), expected);
}

#[test]
fn a_time_out_of_what_was_answered_is_told_as_one_that_repeats() {
    let records = [(kind::TIMEOUT, 1)];
    assert_eq!(told_losses(&records, flag::ANSWERED), [(LossKind::TimeoutAgain, 1)]);
    assert_eq!(told_losses(&records, 0), [(LossKind::Timeout, 1)]);
}

#[test]
fn an_episode_of_packets_lost_in_the_one_before_is_a_gap_with_a_loss() {
    let records = [(kind::GAP, 1), (kind::SAMPLE, 2), (kind::SAMPLE, 4), (kind::GAP, 4)];
    let (gap, more) = ((LossKind::Gap, 1), (LossKind::More, 2));
    assert_eq!(told_losses(&records, flag::REPAIRING), [gap, more, gap]);
    // Of an episode that was taken back everything has been told.
    let taken_back = [(kind::GAP, 2), (kind::GAP, 2), (kind::SAMPLE, 3), (kind::TIMEOUT, 5)];
    let told = told_losses(&taken_back, flag::REPAIRING);
    assert_eq!(told, [(LossKind::Gap, 2), (LossKind::Timeout, 3)]);
}

/// Linux unmarks what it takes back: what is lost after it is lost anew.
#[test]
fn an_episode_after_one_that_was_spurious_is_a_gap_with_a_loss() {
    let records = [(kind::GAP, 2), (kind::SPURIOUS, 2), (kind::GAP, 2), (kind::SAMPLE, 2)];
    let (gap, spurious) = (LossKind::Gap, LossKind::Spurious);
    assert_eq!(told_losses(&records, 0), [(gap, 2), (spurious, 0), (gap, 1)]);
    let repairing = [(kind::GAP, 1), (kind::SAMPLE, 2), (kind::SPURIOUS, 2), (kind::GAP, 2)];
    let told = told_losses(&repairing, flag::REPAIRING);
    assert_eq!(told, [(gap, 1), (spurious, 0), (gap, 1)]);
}

#[test]
fn what_is_lost_in_a_repair_is_told_at_its_end_at_the_latest() {
    let (mut adapter, received) = adapter(window(20));
    let repairing = Record { lost: 1, flags: flag::REPAIRING, ..Record::default() };
    adapter.on_record(&repairing);
    adapter.on_record(&repairing);
    assert_eq!(*received.lock().unwrap(), []);
    adapter.on_record(&Record { flags: 0, ..repairing });
    let received = received.lock().unwrap();
    let [Event::Loss(loss)] = &received[..] else { panic!("{received:?}") };
    assert_eq!((loss.kind, loss.lost), (LossKind::More, Bytes(1500)));
}

#[test]
fn a_mark_is_a_gap_of_no_bytes_whatever_was_lost_before_it() {
    let mark = (LossKind::Gap, 0);
    assert_eq!(told_losses(&[(kind::MARK, 0)], 0), [mark]);
    assert_eq!(told_losses(&[(kind::MARK, 2)], 0), [(LossKind::More, 2), mark]);
}

#[test]
fn what_no_sender_can_obey_is_refused() {
    let paced = |rate| Control { pacing_rate: rate, ..window(10) };
    let wrong = [window(0), Control::window(Bytes((1 << 40) + 1)), Control::window(Bytes(1 << 63))];
    for control in wrong.into_iter().chain([paced(Rate(0))]) {
        assert_eq!(adapter(control).0.allowed(), None, "{control:?}");
    }
    for control in [Control::window(Bytes(1)), paced(Rate(1)), Control::window(Bytes(1 << 40))] {
        let allowed = adapter(control).0.allowed().expect("possible");
        assert!(allowed.cwnd >= 1 && allowed.pacing >= 1, "{allowed:?}");
    }
}

#[test]
fn pacing_counts_packets_here_and_payload_in_the_kernel() {
    let control = Control { pacing_rate: Rate::from_mbps(12.0), ..window(10) };
    let allowed = adapter(control).0.allowed().expect("possible");
    assert_eq!(allowed.pacing, 1000 * 1448);
    assert_eq!(adapter(window(10)).0.allowed().expect("possible").pacing, PACING_NONE);
    assert_eq!(allowed.ssthresh, SSTHRESH_INFINITE);
}

#[test]
fn a_record_that_a_timer_overtook_is_not_in_the_past() {
    let (mut adapter, received) = adapter(window(20));
    adapter.on_timer(Time(9000));
    adapter.on_record(&Record { now: 8000, delivered: 1, ..Record::default() });
    let received = received.lock().unwrap();
    assert_eq!(received[0], Event::Timer(Time(9000)));
    assert!(matches!(&received[1], Event::Ack(ack) if ack.now == Time(9000)), "{received:?}");
}

#[test]
fn the_smoothed_round_trip_is_of_the_samples_that_controllers_see() {
    let (mut adapter, received) = adapter(window(20));
    let first = Record { delivered: 1, rtt_us: 40_000, srtt_us: 45_000, ..Record::default() };
    adapter.on_record(&first);
    // Four acknowledgements of two packets each.
    adapter.on_record(&Record { delivered: 9, rtt_us: 48_000, ..first });
    adapter.on_record(&Record { delivered: 10, rtt_us: 0, ..first });
    let told: Vec<u64> = received
        .lock()
        .unwrap()
        .iter()
        .map(|event| match event {
            Event::Ack(ack) => ack.srtt.0 / 1000,
            other => panic!("{other:?}"),
        })
        .collect();
    let after_four = (48.0 - 8.0 * f64::powi(7.0 / 8.0, 4)) * 1e3;
    assert_eq!(told, [40_000, after_four as u64, after_four as u64]);
}

#[test]
fn a_delivery_rate_stays_until_the_next_sample() {
    let (mut adapter, received) = adapter(window(20));
    let sampled =
        Record { delivered: 1, rate_delivered: 10, rate_interval_us: 1000, ..Record::default() };
    adapter.on_record(&sampled);
    adapter.on_record(&Record { delivered: 2, ..Record::default() });
    for event in received.lock().unwrap().iter() {
        assert!(
            matches!(event, Event::Ack(ack) if ack.delivery_rate == Rate::from_mbps(120.0)),
            "{event:?}"
        );
    }
}
