//! What s2n-quic's recovery manager does for its controllers.
//!
//! Lost on the way: a record names its newest packet alone, so that of several lost packets the oldest are taken; a
//! time-out, which QUIC has not, is persistent congestion; what turns out to be spurious is not told.
use ackademy::control::{
    Ack, CWND_MAX, Control, Controller, FlowInfo, Loss, LossKind, Send, SendAction,
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
use std::collections::VecDeque;
use std::time::Duration;

/// A packet that is neither delivered nor lost.
struct Sent<Info> {
    number: u64,
    at: Time,
    bytes: u64,
    info: Info,
}

/// A controller of s2n-quic.
pub struct Hosted<C: CongestionController> {
    own: C,
    rtt: RttEstimator,
    random: Random,
    sent: VecDeque<Sent<C::PacketInfo>>,
    /// Of the packet that was acknowledged last, for one that was taken for lost.
    last: Option<C::PacketInfo>,
    number: u64,
    app_limited: bool,
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
            sent: VecDeque::new(),
            last: None,
            number: 0,
            app_limited: false,
            departure: None,
            mss: flow.mss.0,
        }
    }

    /// Of the newest packet that an acknowledgement delivers; it and the oldest others, so many bytes, are done.
    fn take_delivered(&mut self, ack: &Ack) -> Option<C::PacketInfo> {
        let mut left = ack.acked.0;
        if let Some(index) = self.sent.iter().position(|packet| packet.at == ack.sent_at) {
            let newest = self.sent.remove(index)?;
            left = left.saturating_sub(newest.bytes);
            self.last = Some(newest.info);
        }
        while left > 0 && self.sent.front().is_some_and(|packet| packet.at <= ack.sent_at) {
            let packet = self.sent.pop_front()?;
            left = left.saturating_sub(packet.bytes);
        }
        self.last
    }

    /// So many bytes of the oldest packets are lost.
    fn lose(&mut self, loss: &Loss, persistent: bool) {
        let (now, mut left, mut previous) = (stamp(loss.now), loss.lost.0, None);
        while left > 0 && self.sent.front().is_some_and(|packet| packet.at <= loss.sent_at) {
            let Some(packet) = self.sent.pop_front() else { break };
            left = left.saturating_sub(packet.bytes);
            let begins = previous.is_none_or(|number| number + 1 != packet.number);
            previous = Some(packet.number);
            let (bytes, random) = (packet.bytes as u32, &mut self.random);
            let own = &mut self.own;
            own.on_packet_lost(bytes, packet.info, persistent, begins, random, now, &mut Nobody);
        }
    }
}

impl<C: CongestionController> Controller for Hosted<C> {
    fn on_ack(&mut self, ack: &Ack) {
        let (now, sent_at) = (stamp(ack.now), stamp(ack.sent_at));
        self.app_limited = ack.app_limited == 1;
        let Some(info) = self.take_delivered(ack) else { return };
        if ack.rtt.0 > 0 {
            let (sample, space) =
                (Duration::from_nanos(ack.rtt.0), PacketNumberSpace::ApplicationData);
            self.rtt.update_rtt(Duration::ZERO, sample, now, true, space);
            self.own.on_rtt_update(sent_at, now, &self.rtt, &mut Nobody);
        }
        let (bytes, random) = (ack.acked.0 as usize, &mut self.random);
        self.own.on_ack(sent_at, bytes, info, &self.rtt, random, now, &mut Nobody);
        let marked = ack.ce_marked.0.div_ceil(self.mss);
        if marked > 0 {
            self.own.on_explicit_congestion(marked, now, &mut Nobody);
        }
    }

    fn on_loss(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::Gap if loss.lost == Bytes::ZERO => {
                self.own.on_explicit_congestion(1, stamp(loss.now), &mut Nobody);
            }
            LossKind::Gap | LossKind::More => self.lose(loss, false),
            LossKind::Timeout | LossKind::TimeoutAgain => self.lose(loss, true),
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
        let (now, bytes, limited) = (stamp(send.now), send.size.0, Some(self.app_limited));
        let info = self.own.on_packet_sent(now, bytes as usize, limited, &self.rtt, &mut Nobody);
        self.sent.push_back(Sent { number: self.number, at: send.now, bytes, info });
        self.number += 1;
        SendAction::Send
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
