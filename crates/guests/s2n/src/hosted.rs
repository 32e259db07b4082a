//! What s2n-quic's recovery manager does for its controllers.
//!
//! Lost on the way: a time-out, which QUIC has not, is persistent congestion; what turns out to be spurious is not told.
use ackademy::control::{
    Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, PacketEvent, PacketEventKind,
    Send, SendAction,
};
use ackademy::rng::Rng;
use ackademy::units::{Bytes, Rate, Time};
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::path::Config;
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher,
};
use s2n_quic_core::recovery::{DEFAULT_INITIAL_RTT, RttEstimator};
use s2n_quic_core::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// Number, size and what the controller remembers of a packet that is lost.
type Lost<Info> = (u64, u64, Info);

/// A controller of s2n-quic.
pub struct Hosted<C: CongestionController> {
    own: C,
    rtt: RttEstimator,
    random: Random,
    /// Packets that are neither delivered nor lost, by their numbers.
    sent: BTreeMap<u64, (Timestamp, C::PacketInfo)>,
    /// Of the newest packet that was acknowledged last.
    newest: Option<(Timestamp, C::PacketInfo)>,
    /// Until the record that counts them.
    lost: Vec<Lost<C::PacketInfo>>,
    app_limited: bool,
    /// Its clock does not run back.
    now: Time,
    /// When the packet that is held may leave.
    departure: Option<Time>,
    mss: u64,
}

impl<C: CongestionController> Hosted<C> {
    pub fn new(mut endpoint: impl Endpoint<CongestionController = C>, flow: &FlowInfo) -> Self {
        let address = SocketAddress::default();
        let mut path = PathInfo::new(&Config::default(), &address);
        path.max_datagram_size = flow.mss.0 as u16;
        Self {
            own: endpoint.new_congestion_controller(path),
            rtt: RttEstimator::new(DEFAULT_INITIAL_RTT),
            random: Random(Rng::new(flow.seed)),
            sent: BTreeMap::new(),
            newest: None,
            lost: Vec::new(),
            app_limited: false,
            now: flow.start,
            departure: None,
            mss: flow.mss.0,
        }
    }

    fn at(&mut self, now: Time) -> Timestamp {
        self.now = self.now.max(now);
        stamp(self.now)
    }

    fn lose(&mut self, now: Time, persistent: bool) {
        let (now, mut previous) = (self.at(now), None);
        for (number, bytes, info) in std::mem::take(&mut self.lost) {
            let begins = previous.is_none_or(|previous| previous + 1 != number);
            previous = Some(number);
            let (own, random) = (&mut self.own, &mut self.random);
            own.on_packet_lost(bytes as u32, info, persistent, begins, random, now, &mut Nobody);
        }
    }
}

impl<C: CongestionController> Controller for Hosted<C> {
    fn on_ack(&mut self, ack: &Ack) {
        let now = self.at(ack.now);
        self.app_limited = ack.app_limited == 1;
        let Some((sent_at, info)) = self.newest else { return };
        if ack.rtt.0 > 0 {
            let (sample, space) =
                (Duration::from_nanos(ack.rtt.0), PacketNumberSpace::ApplicationData);
            self.rtt.update_rtt(Duration::ZERO, sample, now, true, space);
            self.own.on_rtt_update(sent_at, now, &self.rtt, &mut Nobody);
        }
        let (bytes, random) = (counted(ack.acked), &mut self.random);
        self.own.on_ack(sent_at, bytes, info, &self.rtt, random, now, &mut Nobody);
        let marked = ack.ce_marked.0.div_ceil(self.mss);
        if marked > 0 {
            self.own.on_explicit_congestion(marked, now, &mut Nobody);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap if loss.lost == Bytes::ZERO => {
                let now = self.at(loss.now);
                self.own.on_explicit_congestion(1, now, &mut Nobody);
            }
            LossKind::Gap | LossKind::More => self.lose(loss.now, false),
            LossKind::Timeout | LossKind::TimeoutAgain => self.lose(loss.now, true),
            LossKind::Deflate | LossKind::Idle | LossKind::Spurious => {}
        }
    }

    fn control(&self) -> Control {
        let cwnd = u64::from(self.own.congestion_window());
        let (cwnd, ssthresh) = (Bytes(cwnd.clamp(self.mss, CWND_MAX.0)), Bytes(u64::MAX));
        Control { cwnd, pacing_rate: Rate::UNLIMITED, ssthresh }
    }

    /// Its pacer names the time at which the next packet may leave.
    fn on_send(&mut self, send: &Send) -> SendAction {
        let earliest = self.own.earliest_departure_time().map(time);
        self.departure = earliest.filter(|&at| at > send.now);
        if self.departure.is_some() {
            return SendAction::Hold;
        }
        SendAction::Send
    }

    fn on_packet(&mut self, event: &PacketEvent) {
        let (now, bytes) = (self.at(event.now), counted(event.size));
        if event.kind == PacketEventKind::Sent {
            let limited = Some(self.app_limited);
            let info = self.own.on_packet_sent(now, bytes, limited, &self.rtt, &mut Nobody);
            self.sent.insert(event.number, (now, info));
            return;
        }
        // One that was taken for lost is not there.
        let Some((at, info)) = self.sent.remove(&event.number) else { return };
        match event.kind {
            PacketEventKind::Acked => {
                if self.newest.is_none_or(|(newest, _)| newest <= at) {
                    self.newest = Some((at, info));
                }
            }
            PacketEventKind::Lost => self.lost.push((event.number, event.size.0, info)),
            PacketEventKind::Discarded => self.own.on_packet_discarded(bytes, &mut Nobody),
            PacketEventKind::Sent => {}
        }
    }

    fn wants_packets(&self) -> bool {
        true
    }

    fn has_send_hook(&self) -> bool {
        true
    }

    /// The sender asks again after it.
    fn on_timer(&mut self, _: Time) {
        self.departure = None;
    }

    fn next_timer(&self) -> Option<Time> {
        self.departure
    }
}

/// It counts in 32 bits.
fn counted(bytes: Bytes) -> usize {
    bytes.0.min(u64::from(u32::MAX)) as usize
}

/// The core's time; zero is no time there.
fn stamp(time: Time) -> Timestamp {
    let since = EPOCH.saturating_add(Duration::from_nanos(time.0));
    // SAFETY: this is the time source.
    unsafe { Timestamp::from_duration(since) }
}

fn time(stamp: Timestamp) -> Time {
    // SAFETY: as above.
    Time(unsafe { stamp.as_duration() }.saturating_sub(EPOCH).as_nanos() as u64)
}

const EPOCH: Duration = Duration::from_secs(1);

struct Random(Rng);

impl Generator for Random {
    fn public_random_fill(&mut self, to: &mut [u8]) {
        to.fill_with(|| self.0.next_u64() as u8);
    }
    fn private_random_fill(&mut self, to: &mut [u8]) {
        self.public_random_fill(to);
    }
}

/// Its events, which nobody reads.
struct Nobody;

impl Publisher for Nobody {
    fn on_slow_start_exited(&mut self, _: SlowStartExitCause, _: u32) {}
    fn on_delivery_rate_sampled(&mut self, _: RateSample) {}
    fn on_pacing_rate_updated(&mut self, _: Bandwidth, _: u32, _: num_rational::Ratio<u64>) {}
    fn on_bbr_state_changed(&mut self, _: BbrState) {}
}
