//! A path's packets as noq reports them, and the core's records made of that.
use crate::factory::nanos;
use ackademy::control::{
    Ack, Control, Controller, FlowInfo, Loss, LossKind, PacketEvent, PacketEventKind,
};
use ackademy::transport::delivery_rate::{DeliveryRate, SentState};
use ackademy::transport::rtt::{RtoLimits, RttEstimator};
use ackademy::units::{Bytes, Rate, Span, Time};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// A controller and the packets that it governs.
///
/// Packet numbers restart in each of QUIC's three packet number spaces, and noq does not say which one a call is
/// about. So an acknowledged packet is found by the time it was sent, its number and its size, and the order of packets
/// is that of the bytes sent before them.
pub(crate) struct Flow {
    core: Box<dyn Controller>,
    /// What other paths tell changes what it allows here.
    is_coupled: bool,
    control: Control,
    timer: Option<Time>,
    mtu: u16,
    origin: Instant,
    now: Time,
    /// In the order of sending; the first is not acknowledged.
    sent: VecDeque<Sent>,
    /// How many were sent before the first of them.
    first: u64,
    sent_bytes: u64,
    /// Of those not acknowledged.
    inflight: u64,
    lost_bytes: u64,
    rate: DeliveryRate,
    delivery_rate: Rate,
    rtt: RttEstimator,
    /// The window was full since the last acknowledgement.
    window_was_full: bool,
    acked: Acked,
    lost: Option<Lost>,
    /// Packets with fewer bytes sent before them were sent before the latest loss episode was noticed: if they are
    /// lost, it is of that episode, also when the recovery is over.
    episode: u64,
    /// None sent after that is acknowledged yet.
    recovering: bool,
    /// Bytes sent before the newest packet of the latest acknowledgement.
    newest_acked: u64,
}

#[derive(Clone, Copy)]
struct Sent {
    number: u64,
    at: Time,
    size: u64,
    /// Bytes sent before it.
    before: u64,
    state: SentState,
    open: bool,
}

impl Sent {
    /// Whether it is the one in flight that noq means: what leaves in one datagram may be of two spaces.
    fn is(&self, number: Option<u64>, size: u64) -> bool {
        self.open && self.size == size && number.is_none_or(|number| self.number == number)
    }
}

/// What one acknowledgement delivers.
#[derive(Clone, Copy, Default)]
struct Acked {
    bytes: u64,
    rtt_max: Span,
    rtt_min: Span,
    newest: Option<Sent>,
    /// In flight before it.
    prior_inflight: u64,
}

/// Packets declared lost at once.
#[derive(Clone, Copy)]
struct Lost {
    bytes: u64,
    first: Sent,
    newest: Sent,
}

impl fmt::Debug for Flow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Flow").field("control", &self.control).finish_non_exhaustive()
    }
}

impl Flow {
    pub(crate) fn new(
        core: Box<dyn Controller>,
        info: &FlowInfo,
        (origin, is_coupled): (Instant, bool),
    ) -> Self {
        Self {
            is_coupled,
            control: core.control(),
            timer: core.next_timer(),
            core,
            mtu: info.mss.0 as u16,
            origin,
            now: info.start,
            sent: VecDeque::new(),
            first: 0,
            sent_bytes: 0,
            inflight: 0,
            lost_bytes: 0,
            rate: DeliveryRate::default(),
            delivery_rate: Rate(0),
            rtt: RttEstimator::default(),
            window_was_full: false,
            acked: Acked::default(),
            lost: None,
            episode: 0,
            recovering: false,
            newest_acked: 0,
        }
    }

    pub(crate) fn core(&self) -> &dyn Controller {
        &*self.core
    }

    pub(crate) fn control(&self) -> Control {
        if self.is_coupled { self.core.control() } else { self.control }
    }

    pub(crate) fn timer(&mut self) -> Option<Time> {
        if self.is_coupled {
            self.read();
        }
        self.timer
    }

    pub(crate) fn delivery_rate(&self) -> Rate {
        self.delivery_rate
    }

    pub(crate) fn mtu(&self) -> u16 {
        self.mtu
    }

    pub(crate) fn origin(&self) -> Instant {
        self.origin
    }

    /// When noq called last.
    pub(crate) fn latest_call(&self) -> Instant {
        self.origin + Duration::from_nanos(self.now.0)
    }

    pub(crate) fn sent(&mut self, now: Instant, size: u64, number: u64) {
        let at = self.reach(now);
        let state = self.rate.on_sent(at, self.inflight, size, self.lost_bytes);
        let before = self.sent_bytes;
        self.sent.push_back(Sent { number, at, size, before, state, open: true });
        self.sent_bytes += size;
        self.inflight += size;
        self.tell_packet(self.sent.len() - 1, PacketEventKind::Sent);
        self.fire_due();
    }

    pub(crate) fn window_is_full(&mut self) {
        self.window_was_full = true;
    }

    pub(crate) fn acked(&mut self, now: Instant, sent: Instant, bytes: u64, number: Option<u64>) {
        let now = self.reach(now);
        let sent_at = Time(nanos(sent, self.origin));
        self.rate.on_delivered(now, bytes);
        let sample = now.since(sent_at);
        let acked = &mut self.acked;
        acked.bytes += bytes;
        acked.rtt_max = acked.rtt_max.max(sample);
        acked.rtt_min =
            if acked.rtt_min == Span::ZERO { sample } else { acked.rtt_min.min(sample) };
        let from = self.sent.partition_point(|packet| packet.at < sent_at);
        let of_then = self.sent.range(from..).take_while(|packet| packet.at == sent_at);
        let found = (from..).zip(of_then).find(|(_, packet)| packet.is(number, bytes));
        if let Some((place, &packet)) = found {
            self.close(place, PacketEventKind::Acked);
            let newest = &mut self.acked.newest;
            *newest = newest.filter(|other| other.before > packet.before).or(Some(packet));
        }
    }

    pub(crate) fn end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool) {
        let now = self.reach(now);
        let acked = std::mem::take(&mut self.acked);
        self.forget_discarded(in_flight);
        if let Some(newest) = acked.newest {
            self.tell_ack(now, &acked, newest, app_limited);
        }
        self.acked.prior_inflight = self.inflight + acked.bytes;
        if app_limited {
            self.rate.on_app_limited(self.inflight);
        }
    }

    fn tell_ack(&mut self, now: Time, acked: &Acked, newest: Sent, app_limited: bool) {
        let rtt = now.since(newest.at);
        self.rtt.sample(rtt, false, &NO_TIMEOUT);
        let min_rtt = self.rtt.min_rtt().min(acked.rtt_min);
        let delivery_rate = self.rate.sample(newest.at, &newest.state, min_rtt);
        if delivery_rate > Rate(0) {
            self.delivery_rate = delivery_rate;
        }
        self.newest_acked = newest.before;
        self.recovering &= newest.before < self.episode;
        // noq does not tell when its pacer alone holds packets back, which counts as use of the window where it is
        // noq that paces (RFC 9002 section 7.8).
        let is_held = self.control.pacing_rate == Rate::UNLIMITED && !app_limited;
        let ack = Ack {
            now,
            sent_at: newest.at,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt,
            rtt_max: acked.rtt_max,
            batch_rtt_min: acked.rtt_min,
            acked: Bytes(acked.bytes),
            ce_marked: Bytes(0),
            inflight: Bytes(self.inflight),
            prior_inflight: Bytes(self.inflight + acked.bytes),
            delivered: self.rate.delivered(),
            delivery_rate,
            tx_inflight: newest.state.inflight(),
            delivered_since: self.rate.delivered_since(&newest.state),
            lost_since: newest.state.lost_since(self.lost_bytes),
            app_limited: u64::from(newest.state.app_limited()),
            recovering: u64::from(self.recovering),
            cwnd_limited: u64::from(self.window_was_full || is_held),
        };
        self.window_was_full = false;
        (self.control, self.timer) = self.core.answer(&ack);
        self.fire_due();
    }

    pub(crate) fn lost(&mut self, size: u64, number: u64) {
        self.lost_bytes += size;
        let found = self.sent.iter().position(|packet| packet.is(Some(number), size));
        let Some(place) = found else { return };
        let packet = self.sent[place];
        self.close(place, PacketEventKind::Lost);
        let lost = self.lost.get_or_insert(Lost { bytes: 0, first: packet, newest: packet });
        lost.bytes += size;
        if packet.before < lost.first.before {
            lost.first = packet;
        }
        if packet.before > lost.newest.before {
            lost.newest = packet;
        }
    }

    /// So many bytes are lost, of packets sent at `sent` or before, from a host that does not say which: the oldest.
    pub(crate) fn lost_until(&mut self, sent: Instant, bytes: u64) {
        let (sent_at, until) = (Time(nanos(sent, self.origin)), self.lost_bytes + bytes);
        let found = |packet: &&Sent| packet.open && packet.at <= sent_at;
        while self.lost_bytes < until
            && let Some(&Sent { size, number, .. }) = self.sent.iter().find(found)
        {
            self.lost(size, number);
        }
        self.lost_bytes = until;
    }

    pub(crate) fn congestion(&mut self, now: Instant, is_persistent: bool, is_ecn: bool) {
        let now = self.reach(now);
        let lost = self.lost.take();
        let newest = lost.map_or(self.newest_acked, |lost| lost.newest.before);
        let is_known = newest < self.episode;
        if is_ecn && is_known {
            return;
        }
        if !is_known {
            (self.episode, self.recovering) = (self.sent_bytes, true);
        }
        let flight = match lost {
            // FlightSize counts from the first gap on, as cumulative acknowledgements would have it.
            Some(lost) => self.sent_bytes - lost.first.before,
            None => self.acked.prior_inflight,
        };
        let mut loss = Loss {
            now,
            inflight: Bytes(flight).min(self.control().cwnd),
            kind: match (is_persistent, is_known) {
                (true, true) => LossKind::TimeoutAgain,
                (true, false) => LossKind::Timeout,
                (false, true) => LossKind::More,
                (false, false) => LossKind::Gap,
            },
            ..Loss::default()
        };
        if let Some(Lost { bytes, newest, .. }) = lost {
            loss.lost = Bytes(bytes);
            loss.sent_at = newest.at;
            loss.tx_inflight = newest.state.inflight();
            loss.lost_since = newest.state.lost_since(self.lost_bytes);
            loss.app_limited = u64::from(newest.state.app_limited());
        }
        self.tell_loss(&loss);
        self.fire_due();
    }

    pub(crate) fn spurious(&mut self) {
        self.recovering = false;
        let inflight = Bytes(self.inflight);
        let now = self.now;
        self.tell_loss(&Loss { now, inflight, kind: LossKind::Spurious, ..Loss::default() });
    }

    pub(crate) fn fire(&mut self, now: Instant) {
        self.reach(now);
        self.fire_due();
    }

    pub(crate) fn end(&mut self, now: Instant) {
        let now = self.reach(now);
        self.core.on_end(now);
    }

    fn tell_loss(&mut self, loss: &Loss) {
        self.core.on_loss(loss);
        self.read();
    }

    fn read(&mut self) {
        self.control = self.core.control();
        self.timer = self.core.next_timer();
    }

    /// Fires what is due; a controller that asks for the present again and again waits for the next call.
    fn fire_due(&mut self) {
        for _ in 0..TIMERS_AT_ONCE {
            if self.timer().is_none_or(|due| due > self.now) {
                return;
            }
            self.core.on_timer(self.now);
            self.read();
        }
    }

    fn reach(&mut self, now: Instant) -> Time {
        self.now = self.now.max(Time(nanos(now, self.origin)));
        self.now
    }

    /// The packet at this place is no longer in flight.
    fn close(&mut self, place: usize, kind: PacketEventKind) {
        self.tell_packet(place, kind);
        let packet = &mut self.sent[place];
        packet.open = false;
        self.inflight -= packet.size;
        while self.sent.front().is_some_and(|packet| !packet.open) {
            self.sent.pop_front();
            self.first += 1;
        }
    }

    /// Something became of the packet at this place.
    fn tell_packet(&mut self, place: usize, kind: PacketEventKind) {
        if self.core.wants_packets() {
            let Sent { at: sent_at, size, .. } = self.sent[place];
            let (number, size) = (self.first + place as u64, Bytes(size));
            self.core.on_packet(&PacketEvent { now: self.now, number, sent_at, size, kind });
        }
    }

    /// With the keys of a handshake noq discards what it sent under them, and tells nobody: then less is in flight
    /// than is known here, and the oldest are gone.
    fn forget_discarded(&mut self, in_flight: u64) {
        while self.inflight > in_flight && !self.sent.is_empty() {
            self.close(0, PacketEventKind::Discarded);
        }
    }
}

/// noq has time-outs of its own.
const NO_TIMEOUT: RtoLimits =
    RtoLimits { min: Span::ZERO, max: Span::ZERO, initial: Span::ZERO, tick: Span::ZERO };

/// Most timers of one call.
const TIMERS_AT_ONCE: usize = 4;
