//! Translates the kernel's records of a flow into calls of its controller, and its settings back.
//!
//! A packet counts as payload plus headers, as in a scenario. A record makes up to two [`Ack`]s, of what
//! was delivered while the window may grow and while it may not, and one [`Loss`]. Approximate are:
//!
//! - `Ack::now`: the record's, after the acknowledgements of its batch;
//! - `Ack::rtt`, `Ack::rtt_max`, `Ack::batch_rtt_min`: of the last packet that each acknowledgement covers;
//! - `Ack::srtt`: of these samples, as in the simulator; the kernel's own is of the first packet that
//!   each acknowledgement covers, and so longer by what a delayed one waits for the second;
//! - `Ack::ce_marked`: zero, the kernel answers marks itself and that is a `Gap` of no bytes;
//! - `Ack::delivery_rate`: the newest valid sample of the batch, else the last one before it;
//! - `Ack::tx_inflight`: what was delivered and lost since then, as on a path that keeps the order; the
//!   kernel does not keep what was in flight when a packet left;
//! - `Ack::lost_since`: of the losses that records told since that packet left;
//! - `Loss::lost`: of what is lost during a repair one packet is told later (`tell_losses`);
//! - `Loss::sent_at`, `tx_inflight`, `app_limited`: the newest delivered packet's, since the kernel keeps
//!   no list of what it lost;
//! - `on_send`: asked with each record, for what the window admits then
//!   ([`AckSendHook`](ackademy::transport::send_hook::AckSendHook)).
//!
//! `docs/reference/kernel-records.md` goes through every field.
use super::governor::Governor;
use super::record::{Flow, PACING_NONE, Record, SSTHRESH_INFINITE, flag, kind};
use ackademy::control::{Ack, CWND_MAX, Control, FlowInfo, Loss, LossKind, Recovery, SubflowId};
use ackademy::transport::rtt::{RtoLimits, RttEstimator};
use ackademy::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;

/// Records with losses that are remembered at most.
const LOSSES_MAX: usize = 256;
/// For an estimator whose time-out is not used.
const NO_TIMEOUT: RtoLimits =
    RtoLimits { min: Span::ZERO, max: Span::MAX, initial: Span::MAX, tick: Span::ZERO };
/// After so many equal samples the smoothed round trip is that sample, to 0.02 %.
const SAMPLES_MAX: u32 = 64;

/// What a flow may do, in the kernel's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// In packets.
    pub cwnd: u32,
    /// In packets, or [`SSTHRESH_INFINITE`].
    pub ssthresh: u32,
    /// Payload bytes per second, or [`PACING_NONE`].
    pub pacing: u64,
    /// The window grew by what was delivered: slow start, which the kernel continues by itself
    /// until the next decision.
    pub growing: bool,
    /// Packets delivered for growth when this was decided.
    pub base: u32,
}

/// Counts of the newest record: the next one's differences are what happened since.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    delivered: u32,
    held: u32,
    lost: u32,
}

impl Counts {
    fn of(record: &Record) -> Self {
        Self { delivered: record.delivered, held: record.held, lost: record.lost }
    }
}

/// When packets were declared lost, for what was lost since a packet left.
#[derive(Debug, Default)]
struct Losses {
    /// Time, and packets in all before.
    seen: VecDeque<(Time, u32)>,
}

impl Losses {
    /// A record of `now` tells of a loss, `before` which so many were lost.
    fn add(&mut self, now: Time, before: u32) {
        if self.seen.len() == LOSSES_MAX {
            self.seen.pop_front();
        }
        self.seen.push_back((now, before));
    }

    /// Lost since `sent_at`, of `lost` in all. Packets are told in the order of sending, nearly: what
    /// was lost before is forgotten.
    fn since(&mut self, sent_at: Time, lost: u32) -> u32 {
        while self.seen.front().is_some_and(|&(at, _)| at < sent_at) {
            self.seen.pop_front();
        }
        self.seen.front().map_or(0, |&(_, before)| lost.wrapping_sub(before))
    }
}

/// What was sent with the newest delivered packet.
#[derive(Clone, Copy, Debug, Default)]
struct Newest {
    /// Delivered since it was sent; zero before the first sample.
    delivered: Bytes,
    /// Lost since it was sent.
    lost: Bytes,
    app_limited: u64,
}

impl Newest {
    fn tx_inflight(&self) -> Bytes {
        if self.delivered == Bytes::ZERO { Bytes::ZERO } else { self.delivered + self.lost }
    }
}

/// One flow: what has been told of it to its governor. One that governs several flows is told of each by
/// that flow's adapter.
pub struct Adapter {
    /// The flow's name within its governor.
    id: SubflowId,
    /// A full packet on the wire.
    packet: u64,
    /// Its payload.
    payload: u64,
    seen: Counts,
    /// Since the controller came.
    delivered: Bytes,
    delivery_rate: Rate,
    sent_at: Time,
    rtt: RttEstimator,
    losses: Losses,
    newest: Newest,
    /// Packets lost during a repair that have not been told: at most one.
    kept: u32,
    /// The newest record told that a loss was spurious.
    taken_back: bool,
    growing: bool,
}

/// What the controller of the flow in `flow` is told first.
pub fn flow_info(flow: &Flow) -> FlowInfo {
    let packet = u64::from(flow.mss + u32::from(flow.header));
    FlowInfo {
        mss: Bytes(packet),
        initial_cwnd: Bytes(u64::from(flow.initial_cwnd) * packet),
        initial_ssthresh: match flow.initial_ssthresh {
            SSTHRESH_INFINITE.. => Bytes(u64::MAX),
            packets => Bytes(u64::from(packets) * packet),
        },
        recovery: Recovery::Sack,
        paces: flow.pacing != PACING_NONE,
        start: Time(flow.opened_at),
        seed: flow.opened_at ^ u64::from(flow.generation),
    }
}

impl Adapter {
    /// Puts the flow in `slot` under `governor`, which gets what comes after the record `first`. `info`:
    /// what it is told of the flow, usually [`flow_info`].
    pub fn new(flow: &Flow, first: &Record, info: &FlowInfo, governor: &mut Governor) -> Self {
        Self {
            id: governor.join(first.slot, info, flow.token),
            packet: flow_info(flow).mss.0,
            payload: u64::from(flow.mss),
            seen: Counts::of(first),
            delivered: Bytes::ZERO,
            delivery_rate: Rate(0),
            sent_at: info.start,
            rtt: RttEstimator::default(),
            losses: Losses::default(),
            newest: Newest::default(),
            kept: 0,
            taken_back: false,
            growing: false,
        }
    }

    /// The flow's name within its governor.
    pub fn id(&self) -> SubflowId {
        self.id
    }

    /// Tells the controller what a record tells.
    pub fn on_record(&mut self, governor: &mut Governor, record: &Record) {
        governor.now = governor.now.max(Time(record.now));
        self.sent_at = self.sent_at.max(Time(record.sent_at)).min(governor.now);
        let counts = Counts::of(record);
        let delivered = counts.delivered.wrapping_sub(self.seen.delivered);
        let held = counts.held.wrapping_sub(self.seen.held).min(delivered);
        let lost = counts.lost.wrapping_sub(self.seen.lost);
        if lost > 0 {
            self.losses.add(governor.now, self.seen.lost);
        }
        self.seen = counts;
        self.take_rate(record);
        self.take_rtt(record, delivered);
        let before = governor.coupled.control(self.id).cwnd;
        // Duplicate acknowledgements come before a gap is known, and the end of a recovery after
        // what was delivered in it.
        let parts = [(held, 1), (delivered - held, 0)];
        let begins = matches!(record.kind, kind::GAP | kind::MARK);
        let (first, last) = if begins { (parts[1], parts[0]) } else { (parts[0], parts[1]) };
        if first.0 > 0 {
            let earlier = Record {
                rtt_us: if last.0 > 0 { 0 } else { record.rtt_us },
                rtt_max_us: if last.0 > 0 { 0 } else { record.rtt_max_us },
                rtt_min_us: if last.0 > 0 { 0 } else { record.rtt_min_us },
                inflight: record.inflight.saturating_add(last.0),
                ..*record
            };
            self.tell_ack(governor, &earlier, first.0, first.1);
        }
        if last.0 > 0 {
            self.tell_ack(governor, record, last.0, last.1);
        }
        let grew = governor.coupled.control(self.id).cwnd.saturating_sub(before);
        let fed = u64::from(delivered - held) * self.packet;
        if fed > 0 {
            self.growing = grew.0.abs_diff(fed) * 10 <= fed;
        }
        self.tell_losses(governor, record, lost);
    }

    /// A `Gap` tells the first loss of an episode; one of no bytes is a mark. Behind a repair the kernel begins the
    /// next episode with packets that were lost during it and are still missing, so one of those is told only with
    /// that episode, or when the repair has ended without one. Nothing is told twice, but one packet of an episode that
    /// the kernel begins again with the very acknowledgement that took it back.
    fn tell_losses(&mut self, governor: &mut Governor, record: &Record, lost: u32) {
        let untold = lost.saturating_add(std::mem::take(&mut self.kept));
        let taken_back = std::mem::replace(&mut self.taken_back, record.kind == kind::SPURIOUS);
        let event = match record.kind {
            kind::GAP if untold > 0 || taken_back => Some((untold.max(1), LossKind::Gap)),
            kind::TIMEOUT if record.flags & flag::ANSWERED != 0 => {
                Some((untold, LossKind::TimeoutAgain))
            }
            kind::TIMEOUT => Some((untold, LossKind::Timeout)),
            kind::MARK => Some((0, LossKind::Gap)),
            kind::IDLE => Some((0, LossKind::Idle)),
            kind::GAP => {
                self.growing = false;
                None
            }
            _ => {
                self.kept = u32::from(untold > 0 && record.flags & flag::REPAIRING != 0);
                (record.kind == kind::SPURIOUS).then_some((0, LossKind::Spurious))
            }
        };
        let more = untold.saturating_sub(self.kept + event.map_or(0, |(told, _)| told));
        if more > 0 {
            self.tell_loss(governor, record, more, LossKind::More);
        }
        if let Some((told, kind)) = event {
            self.tell_loss(governor, record, told, kind);
        }
    }

    fn take_rate(&mut self, record: &Record) {
        if record.rate_interval_us > 0 {
            let bytes = Bytes(u64::from(record.rate_delivered) * self.packet);
            let interval = Span::from_micros(u64::from(record.rate_interval_us));
            self.delivery_rate = Rate::of(bytes, interval);
            self.newest.delivered = bytes;
        }
        let lost = self.losses.since(self.sent_at, self.seen.lost);
        self.newest.lost = Bytes(u64::from(lost) * self.packet);
        self.newest.app_limited = u64::from(record.flags & flag::APP_LIMITED != 0);
    }

    /// A record stands for an acknowledgement of each two packets: the newest sample counts for all.
    fn take_rtt(&mut self, record: &Record, delivered: u32) {
        if record.rtt_us > 0 {
            let sample = Span::from_micros(u64::from(record.rtt_us));
            (0..(delivered / 2).clamp(1, SAMPLES_MAX))
                .for_each(|_| self.rtt.sample(sample, false, &NO_TIMEOUT));
        }
    }

    /// The kernel's own value before the first sample.
    fn srtt(&self, record: &Record) -> Span {
        match self.rtt.srtt() {
            Span::ZERO => Span::from_micros(u64::from(record.srtt_us)),
            srtt => srtt,
        }
    }

    fn tell_ack(
        &mut self,
        governor: &mut Governor,
        record: &Record,
        packets: u32,
        recovering: u64,
    ) {
        let micros = |us: u32| Span::from_micros(u64::from(us));
        let acked = Bytes(u64::from(packets) * self.packet);
        let found = record.inflight.saturating_add(record.newest.min(packets));
        self.delivered = Bytes(self.delivered.0 + acked.0);
        let ack = Ack {
            now: governor.now,
            sent_at: self.sent_at,
            rtt: micros(record.rtt_us),
            srtt: self.srtt(record),
            min_rtt: micros(record.min_rtt_us),
            rtt_max: micros(record.rtt_max_us),
            batch_rtt_min: micros(record.rtt_min_us),
            acked,
            ce_marked: Bytes::ZERO,
            inflight: Bytes(u64::from(record.inflight) * self.packet),
            prior_inflight: Bytes(u64::from(found) * self.packet),
            delivered: self.delivered,
            delivery_rate: self.delivery_rate,
            tx_inflight: self.newest.tx_inflight(),
            delivered_since: self.newest.delivered,
            lost_since: self.newest.lost,
            app_limited: self.newest.app_limited,
            recovering,
            cwnd_limited: u64::from(record.flags & flag::CWND_LIMITED != 0),
        };
        governor.coupled.on_ack(self.id, &ack);
    }

    fn tell_loss(&mut self, governor: &mut Governor, record: &Record, lost: u32, kind: LossKind) {
        self.growing = false;
        let outstanding = u64::from(record.flight) * self.packet;
        let loss = Loss {
            now: governor.now,
            sent_at: self.sent_at,
            lost: Bytes(u64::from(lost) * self.packet),
            inflight: Bytes(outstanding).min(governor.coupled.control(self.id).cwnd),
            tx_inflight: self.newest.tx_inflight(),
            lost_since: self.newest.lost,
            app_limited: self.newest.app_limited,
            kind,
        };
        governor.coupled.on_loss(self.id, &loss);
    }

    /// The time has come that the controller asked for.
    pub fn on_timer(&self, governor: &mut Governor, now: Time) {
        governor.now = governor.now.max(now);
        governor.coupled.on_timer(self.id, governor.now);
    }

    /// Whether a decision fell due with the newest record: a controller that asks for a timer at the
    /// very moment of an acknowledgement wants it before anything else happens.
    pub fn is_due(&self, governor: &Governor) -> bool {
        self.next_timer(governor).is_some_and(|at| at <= governor.now)
    }

    /// Makes the decision that is due.
    pub fn decide(&self, governor: &mut Governor) {
        self.on_timer(governor, governor.now);
    }

    /// Whether the controller fell back after an invalid action.
    pub fn fell_back(&self, governor: &Governor) -> bool {
        governor.coupled.fell_back(self.id)
    }

    /// When the controller wants [`Self::on_timer`] next.
    pub fn next_timer(&self, governor: &Governor) -> Option<Time> {
        governor.coupled.next_timer(self.id)
    }

    /// What the controller allows now; `None` if no sender can obey it.
    pub fn allowed(&self, governor: &Governor) -> Option<Allowed> {
        let Control { cwnd, pacing_rate, ssthresh } = governor.coupled.control(self.id);
        if cwnd == Bytes::ZERO || cwnd > CWND_MAX || pacing_rate == Rate(0) {
            return None;
        }
        let packets =
            |bytes: Bytes| (bytes.0 / self.packet).clamp(1, u64::from(SSTHRESH_INFINITE)) as u32;
        let pacing = if pacing_rate == Rate::UNLIMITED {
            PACING_NONE
        } else {
            let wire = u128::from(pacing_rate.0) * u128::from(self.payload);
            (wire / u128::from(8 * self.packet)).max(1) as u64
        };
        Some(Allowed {
            cwnd: packets(cwnd),
            ssthresh: packets(ssthresh),
            pacing,
            growing: self.growing,
            base: self.seen.delivered.wrapping_sub(self.seen.held),
        })
    }
}

#[cfg(test)]
mod tests {
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
        let lossy =
            Record { kind: kind::GAP, now: 5000, sent_at: 4000, delivered: 4, lost: 2, ..base };
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
        let expected =
            [(LossKind::More, 1), (LossKind::Timeout, 0), idle, (LossKind::More, 1), idle];
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
        let wrong =
            [window(0), Control::window(Bytes((1 << 40) + 1)), Control::window(Bytes(1 << 63))];
        for control in wrong.into_iter().chain([paced(Rate(0))]) {
            assert_eq!(adapter(control).0.allowed(), None, "{control:?}");
        }
        for control in [Control::window(Bytes(1)), paced(Rate(1)), Control::window(Bytes(1 << 40))]
        {
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
        let sampled = Record {
            delivered: 1,
            rate_delivered: 10,
            rate_interval_us: 1000,
            ..Record::default()
        };
        adapter.on_record(&sampled);
        adapter.on_record(&Record { delivered: 2, ..Record::default() });
        for event in received.lock().unwrap().iter() {
            assert!(
                matches!(event, Event::Ack(ack) if ack.delivery_rate == Rate::from_mbps(120.0)),
                "{event:?}"
            );
        }
    }
}
