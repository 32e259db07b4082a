//! The sending end of a flow, without I/O: packets, loss recovery, timers, pacing. Used by the
//! simulator and by every transport of our own; it drives a [`Coupled`] and obeys its [`Control`].
use crate::control::{CWND_MAX, Control, Coupled, FlowInfo, Recovery, Send, SendAction, SubflowId};
use crate::hint::{likely, seldom, unlikely};
use crate::histogram::SpanHistogram;
use crate::transport::config::SenderConfig;
use crate::transport::packet::{Ect, Packet};
use crate::transport::rtt::RtoLimits;
use crate::units::{Bytes, Rate, Span, Time};
use std::sync::Arc;

mod ns2;
mod reordering;
mod sack;
mod scoreboard;
mod undo;

pub use ns2::Ns2Sender;
pub use sack::SackSender;

/// Slowest pacing rate of a controller; the pause after a packet has its own bound.
const PACING_MIN: Rate = Rate(1000);
/// Longest time for which a packet's pacing holds the next one back: the rate may rise before it is over, and the time
/// follows from the rate at which the packet left (source: Linux 6, `fq_dequeue` of `sch_fq.c`).
const PACING_PAUSE_MAX: Span = Span::from_millis(1000);
/// Most segments in flight, whatever window a scenario or controller asks for: they cost memory,
/// and SACK blocks count them in 32 bits. 100 Gb/s over 250 ms fit, in some 150 MB.
const SEGMENTS_MAX: u64 = 1 << 21;

/// What the application has handed over and the sender has not yet sent, shared by the subflows of
/// a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Supply {
    /// Bytes left; `u64::MAX` for no end.
    pub unsent: u64,
    /// Nothing is left for this subflow because the receive window that it shares is full.
    pub receiver_full: bool,
}

/// Why no packet leaves though pacing allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// The application has handed over no more.
    Application,
    /// The receiver takes no more: a limit of the path, like a full link (draft-ietf-ccwg-bbr).
    Receiver,
    /// The controller's window is full, or its send hook holds the packet.
    Controller,
}

impl Supply {
    /// Takes up to `max` bytes; 0 if there are none.
    pub fn take(&mut self, max: u64) -> u64 {
        if likely(self.unsent == u64::MAX) {
            return max;
        }
        let taken = self.unsent.min(max);
        self.unsent -= taken;
        taken
    }

    /// Why there is nothing left.
    fn silence(self) -> Silence {
        if self.receiver_full { Silence::Receiver } else { Silence::Application }
    }
}

/// A packet to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Segment number.
    pub seq: u64,
    /// Bytes on the wire.
    pub size: u32,
    /// Whether it was sent before.
    pub retransmission: bool,
}

/// Counters of a sender.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderStats {
    /// Packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Packets sent again.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Loss episodes answered without a time-out.
    pub recoveries: u64,
    /// Answers to loss that were taken back.
    pub spurious: u64,
    /// Bytes declared lost, rightly or not.
    pub declared_lost_bytes: u64,
    /// Bytes acknowledged as carrying a congestion mark.
    pub ce_marked_bytes: u64,
    /// Round-trip samples.
    pub rtt_samples: u64,
    /// Their sum, in nanoseconds.
    pub rtt_sum: u128,
    /// The smallest; `u64::MAX` if there is none.
    pub rtt_min: u64,
    /// The largest.
    pub rtt_max: u64,
    /// How they are distributed.
    pub rtt_histogram: SpanHistogram,
}

impl SenderStats {
    fn new() -> Self {
        Self { rtt_min: u64::MAX, ..Self::default() }
    }

    fn sample(&mut self, rtt: Span) {
        self.rtt_samples += 1;
        self.rtt_sum += u128::from(rtt.0);
        self.rtt_min = self.rtt_min.min(rtt.0);
        self.rtt_max = self.rtt_max.max(rtt.0);
        self.rtt_histogram.add(rtt, 1);
    }

    fn sent(&mut self, packet: Outgoing) {
        self.sent_packets += 1;
        self.sent_bytes += u64::from(packet.size);
        self.retransmitted_packets += u64::from(packet.retransmission);
    }
}

/// A subflow's place among those its controller governs.
pub struct Governor<'a> {
    /// The controller.
    pub coupled: &'a mut dyn Coupled,
    /// Which of its subflows.
    pub id: SubflowId,
}

impl Governor<'_> {
    /// Whether `packet` may leave: the controller's send hook is called if it has one, and `allowed` becomes what it
    /// allows from then on.
    #[inline(never)]
    fn permits(&mut self, packet: &Departure, allowed: &mut Allowed) -> bool {
        let send = Send {
            now: packet.now,
            size: Bytes(packet.size),
            inflight: packet.inflight,
            retransmission: u64::from(packet.retransmission),
            order: packet.order,
        };
        let action = self.coupled.on_send(self.id, &send);
        *allowed = Allowed::read(self, packet.full_size);
        action == SendAction::Send
    }
}

/// A packet that would leave now.
struct Departure {
    now: Time,
    size: u64,
    /// Of a full packet.
    full_size: u64,
    inflight: Bytes,
    retransmission: bool,
    /// Its place among the packets not cumulatively acknowledged, from 1.
    order: u64,
}

/// The controller's latest word, bounded to what a sender can obey.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    cwnd: u64,
    ssthresh: u64,
    pacing_rate: Rate,
    timer: Time,
}

impl Allowed {
    fn read(governor: &Governor, packet: u64) -> Self {
        let Governor { coupled, id } = governor;
        Self::bounded(coupled.control(*id), coupled.next_timer(*id), packet)
    }

    #[inline]
    fn bounded(control: Control, timer: Option<Time>, packet: u64) -> Self {
        Self {
            cwnd: control.cwnd.0.clamp(packet, CWND_MAX.0),
            ssthresh: control.ssthresh.0,
            pacing_rate: control.pacing_rate.max(PACING_MIN),
            timer: timer.unwrap_or(Time::NEVER),
        }
    }
}

/// A sender of either kind.
#[allow(
    clippy::large_enum_variant,
    reason = "a modern sender lies inside its flow, to spare a look-up"
)]
pub enum Sender {
    /// RFC 6675, RFC 8985, RFC 9937.
    Sack(SackSender),
    /// NewReno without SACK by ns-2.35's rules.
    Ns2(Box<Ns2Sender>),
}

macro_rules! either {
    ($self:ident, $sender:ident => $call:expr) => {
        match $self {
            Sender::Sack($sender) => $call,
            Sender::Ns2($sender) => {
                seldom();
                $call
            }
        }
    };
}

impl Sender {
    /// A sender of the kind that `config` names. The subflow must have joined the controller.
    pub fn new(config: &SenderConfig, governor: &Governor) -> Self {
        Self::sharing(&Arc::new(*config), governor)
    }

    /// As [`new`](Self::new), beside other flows with this configuration.
    pub fn sharing(config: &Arc<SenderConfig>, governor: &Governor) -> Self {
        match config.recovery {
            Recovery::Sack => Self::Sack(SackSender::sharing(config, governor)),
            Recovery::Ns2 => Self::Ns2(Box::new(Ns2Sender::new(config, governor))),
        }
    }

    /// What the controller is told when the subflow joins.
    pub fn flow_info(config: &SenderConfig, start: Time, seed: u64) -> FlowInfo {
        FlowInfo {
            mss: config.packet,
            initial_cwnd: config.initial_cwnd,
            initial_ssthresh: config.initial_ssthresh,
            recovery: config.recovery,
            paces: config.pacing && config.recovery == Recovery::Sack,
            start,
            seed,
        }
    }

    /// An acknowledgement arrived.
    pub fn on_ack(
        &mut self,
        now: Time,
        ack: &Packet,
        governor: &mut Governor,
        supply: &mut Supply,
    ) {
        if let Self::Sack(sender) = self
            && unlikely(sender.ignores(ack))
        {
            return;
        }
        either!(self, sender => sender.on_ack(now, ack, governor, supply));
    }

    /// The application handed over more.
    pub fn on_supply(&mut self) {
        if let Self::Ns2(sender) = self {
            sender.on_supply();
        }
    }

    /// The next packet that may leave now.
    #[expect(clippy::inline_always, reason = "in two loops: see `Sim::send_packet`")]
    #[inline(always)]
    pub fn transmit(
        &mut self,
        now: Time,
        governor: &mut Governor,
        supply: &mut Supply,
    ) -> Option<Outgoing> {
        either!(self, sender => sender.transmit(now, governor, supply))
    }

    /// When pacing lets the next packet out; zero if it holds none back.
    #[inline]
    pub fn release(&self) -> Time {
        either!(self, sender => sender.release)
    }

    /// Spares the wake-up at [`release`](Self::release) if the window will be full then. Only for a sender to which
    /// `supply` belongs alone, after [`transmit`](Self::transmit) has had its last packet of this instant.
    #[inline]
    pub fn hold_while_full(&mut self, supply: Supply) {
        if let Self::Sack(sender) = self {
            sender.hold_while_full(supply);
        }
    }

    /// When `on_deadline` is to be called; [`Time::NEVER`] for not at all.
    pub fn deadline(&self) -> Time {
        either!(self, sender => sender.deadline())
    }

    /// A deadline has come: expires what is due.
    #[inline]
    pub fn on_deadline(&mut self, now: Time, governor: &mut Governor, supply: &mut Supply) {
        // Mostly it is pacing's, for which nothing expires.
        if let Self::Sack(sender) = self
            && likely(now < sender.expiry())
        {
            return;
        }
        either!(self, sender => sender.on_deadline(now, governor, supply));
    }

    /// Payload sent and not cumulatively acknowledged: what a send buffer keeps besides the unsent.
    pub fn unacknowledged_payload(&self) -> u64 {
        either!(self, sender => sender.unacknowledged_payload())
    }

    /// Holds everything back until the connection stands, `rtt` after `start`: the first round trip
    /// that is measured (RFC 6298 section 2).
    pub fn wait_for_handshake(&mut self, start: Time, rtt: Span) {
        if let Self::Sack(sender) = self {
            sender.wait_for_handshake(start, rtt);
        }
    }

    /// Whether everything sent is acknowledged.
    pub fn all_acknowledged(&self) -> bool {
        either!(self, sender => sender.all_acknowledged())
    }

    /// The first segment that is not cumulatively acknowledged.
    pub fn first_unacknowledged(&self) -> u64 {
        either!(self, sender => sender.first_unacknowledged())
    }

    /// The flow ends where it is: nothing is due any more. Its counters remain.
    pub fn close(&mut self) {
        either!(self, sender => sender.close());
    }

    /// What a packet announces of ECN; `retransmission` says whether it was sent before.
    pub fn ect(&self, retransmission: bool) -> Ect {
        match self {
            Self::Sack(sender) => sender.ect(retransmission),
            Self::Ns2(_) => {
                seldom();
                Ect::Not
            }
        }
    }

    /// Counters.
    pub fn stats(&self) -> &SenderStats {
        either!(self, sender => &sender.stats)
    }

    /// Acknowledgements of what was never sent, which were ignored.
    pub fn unsent_acks(&self) -> u64 {
        if let Self::Sack(sender) = self { sender.unsent_acks() } else { 0 }
    }

    /// Sent, neither delivered nor declared lost.
    pub fn inflight(&self) -> Bytes {
        either!(self, sender => sender.inflight())
    }

    /// The latest round-trip sample as the sender's clock sees it; zero before the first.
    pub fn latest_rtt(&self) -> Span {
        either!(self, sender => sender.rtt.latest())
    }

    /// Prefetches the sender's memory on the heap.
    #[inline]
    pub(crate) fn prefetch_heap(&self, all: bool) {
        if let Self::Sack(sender) = self {
            sender.prefetch_heap(all);
        }
    }

    /// Smoothed round-trip time; zero before the first sample.
    pub fn srtt(&self) -> Span {
        either!(self, sender => sender.rtt.srtt())
    }

    /// The latest delivery-rate sample; zero before the first.
    pub fn delivery_rate(&self) -> Rate {
        either!(self, sender => sender.delivery_rate)
    }
}

/// How long a packet of `size` bytes that leaves at `rate` holds the next one back.
#[inline]
fn pacing_pause(rate: Rate, size: u64) -> Span {
    rate.time_for(Bytes(size)).min(PACING_PAUSE_MAX)
}

impl Allowed {
    /// After `on_timer`: a controller that asks for a time already past is not called again and
    /// again at one instant.
    fn read_after_timer(now: Time, governor: &Governor, packet: u64) -> Self {
        let allowed = Self::read(governor, packet);
        let timer = if allowed.timer <= now { Time::NEVER } else { allowed.timer };
        Self { timer, ..allowed }
    }
}

fn limits(config: &SenderConfig) -> RtoLimits {
    RtoLimits {
        min: config.rto_min,
        max: config.rto_max,
        initial: config.rto_initial,
        tick: config.rto_tick,
    }
}

#[cfg(test)]
#[path = "tests/pacing.rs"]
mod pacing;
#[cfg(test)]
mod tests;
