//! The border: what happened ([`Ack`], [`Loss`], [`Send`]) and what is allowed ([`Control`]).
//!
//! Records are flat, of eight-byte fields, so that one layout is the Rust argument, the C argument,
//! the BPF record and the numpy row. There is no other protocol between transport and controller.
use crate::decision::AgentState;
use crate::params::{Param, ParamError, Params};
use crate::units::{Bytes, Rate, Span, Time};
use ackademy_prefetch::prefetch;
use std::ops::RangeInclusive;

/// Largest window that a transport obeys: a terabyte, more than any path holds.
pub const CWND_MAX: Bytes = Bytes(1 << 40);

/// One or more acknowledgements that delivered something new.
///
/// A call may stand for a batch: a controller is a function of bytes and time, never of the number
/// of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Ack {
    /// When the acknowledgement arrived at the sender.
    pub now: Time,
    /// When the newest packet it delivers was sent.
    pub sent_at: Time,
    /// Round-trip sample of that packet; zero when there is none (RFC 6298 section 3, Karn).
    pub rtt: Span,
    /// Smoothed round-trip time (RFC 6298).
    pub srtt: Span,
    /// Smallest sample of the flow so far.
    pub min_rtt: Span,
    /// Largest sample of the batch; an acknowledgement of several packets counts with the first of them, in `rtt`
    /// with the last.
    pub rtt_max: Span,
    /// Smallest sample of the batch; zero when there is none. It equals `rtt` for a single acknowledgement.
    pub batch_rtt_min: Span,
    /// Newly delivered. A sender that counts ACKs instead of bytes credits one packet per ACK.
    pub acked: Bytes,
    /// Part of `acked` that carried a congestion mark, for controllers that weigh marks; zero when
    /// the sender answers marks itself with one [`LossKind::Gap`] per round trip (RFC 3168).
    pub ce_marked: Bytes,
    /// Sent, neither delivered nor declared lost, after this acknowledgement.
    pub inflight: Bytes,
    /// What the newest of the acknowledgements found in flight: `inflight` and what it delivered.
    /// Of a single one that is `inflight + acked`; of a batch it is less, for between its
    /// acknowledgements packets left.
    pub prior_inflight: Bytes,
    /// Delivered since the connection began.
    pub delivered: Bytes,
    /// Delivery-rate sample (draft-cheng-iccrg-delivery-rate-estimation); zero when there is none.
    pub delivery_rate: Rate,
    /// In flight just after the newest packet it delivers was sent, with that packet; zero when the
    /// sender does not know.
    pub tx_inflight: Bytes,
    /// Delivered since that packet was sent, with this acknowledgement; zero when the sender does not know.
    pub delivered_since: Bytes,
    /// Declared lost since that packet was sent, with what this acknowledgement shows to be lost.
    pub lost_since: Bytes,
    /// 1 when the application, which had nothing unsent, limited what the sample measures; else 0. Neither a full
    /// window of the controller nor one of the receiver counts.
    pub app_limited: u64,
    /// 1 while the sender repairs a loss or suspects one; window-based controllers do not grow then.
    /// Else 0.
    pub recovering: u64,
    /// 1 when the sender filled its window before this acknowledgement; else 0 (RFC 9438
    /// section 5.8: a window that was not used must not grow).
    pub cwnd_limited: u64,
}

impl Ack {
    /// Smallest sample of the batch, also of a record that names the newest alone; zero when there is none.
    pub fn smallest_rtt(&self) -> Span {
        if self.batch_rtt_min == Span::ZERO { self.rtt } else { self.batch_rtt_min }
    }
}

/// Packets were declared lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Loss {
    /// When the loss was declared.
    pub now: Time,
    /// When the newest of the lost packets was sent.
    pub sent_at: Time,
    /// Newly declared lost.
    pub lost: Bytes,
    /// FlightSize (RFC 5681) when the loss was declared: sent and not cumulatively acknowledged, at
    /// most the window.
    pub inflight: Bytes,
    /// In flight just after the newest of the lost packets was sent, with that packet; zero when the
    /// sender does not know.
    pub tx_inflight: Bytes,
    /// Declared lost since that packet was sent, `lost` included; zero when the sender does not know.
    pub lost_since: Bytes,
    /// 1 when the application limited what was in flight with that packet; else 0.
    pub app_limited: u64,
    /// What kind of event the sender takes it for.
    pub kind: LossKind,
}

/// What kind of loss event this is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum LossKind {
    /// First loss of an episode, seen from later deliveries: reduce once.
    #[default]
    Gap = 0,
    /// Further losses of the same episode: no further reduction.
    More = 1,
    /// The retransmission timer expired: start over.
    Timeout = 2,
    /// A partial acknowledgement without SACK: the window shrinks by `lost`, not below one packet
    /// (RFC 6582 section 3.2 step 3). Nothing more was lost.
    Deflate = 3,
    /// The flow idled longer than its time-out: the window restarts, the threshold stays (RFC 5681
    /// section 4.1). Nothing was lost.
    Idle = 4,
    /// The latest `Gap` or `Timeout` was spurious: the packets arrived late, and the retransmissions
    /// arrived too (RFC 3522, RFC 3708). The reduction is to be undone (RFC 4015, RFC 9438
    /// section 4.9). Nothing was lost.
    Spurious = 5,
    /// The retransmission timer expired for what was answered before: for a packet that it retransmitted already
    /// (RFC 5681 section 3.1), or within a reduction (Linux: `tcp_enter_loss`). The window starts over, the
    /// threshold stays. ns-2's sender does not tell these apart from `Timeout`.
    TimeoutAgain = 6,
}

/// A packet is about to leave. Only controllers with a send hook get it ([`Controller::has_send_hook`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Send {
    /// When it would leave.
    pub now: Time,
    /// Its size.
    pub size: Bytes,
    /// Sent, neither delivered nor declared lost, before this packet.
    pub inflight: Bytes,
    /// 1 for a retransmission, else 0.
    pub retransmission: u64,
    /// Its place among the packets not cumulatively acknowledged: 1 for the first of them.
    pub order: u64,
}

/// The answer to [`Send`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SendAction {
    /// Let it go.
    #[default]
    Send,
    /// Keep it until the next acknowledgement or timer.
    Hold,
}

/// Something became of one packet. Only controllers that want it are told ([`Controller::wants_packets`]).
///
/// Every packet is told as sent, also one that repeats another, under a number of its own. Then it is acknowledged,
/// lost or discarded. One that was lost may be acknowledged later, as its loss was spurious; one that a probe repeats is
/// discarded, and lost if the probe turns out to have repaired a loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct PacketEvent {
    /// When that was known.
    pub now: Time,
    /// The packet's number: packets of a flow are counted from 0 as they are sent.
    pub number: u64,
    /// When it was sent.
    pub sent_at: Time,
    /// How much of it: all, unless a receiver acknowledges it in parts.
    pub size: Bytes,
    /// What.
    pub kind: PacketEventKind,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u64)]
pub enum PacketEventKind {
    /// It leaves.
    #[default]
    Sent = 0,
    /// It is delivered. Told before the [`Ack`] that counts it. Of a packet and its copies, the latest is.
    Acked = 1,
    /// It is declared lost. Told before the [`Loss`] that counts it, and after the [`Ack`] of the same acknowledgement.
    Lost = 2,
    /// It no longer counts as in flight, neither delivered nor lost: another repeats it, or the keys that it was sent
    /// under are gone.
    Discarded = 3,
}

/// What a controller allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Control {
    /// Most bytes in flight.
    pub cwnd: Bytes,
    /// Fastest sending rate; `Rate::UNLIMITED` leaves pacing off.
    pub pacing_rate: Rate,
    /// Slow-start threshold, for records and for what a sender prints; `Bytes(u64::MAX)` if the
    /// controller has none or has not set it.
    pub ssthresh: Bytes,
}

impl Control {
    /// A window and nothing else.
    pub fn window(cwnd: Bytes) -> Self {
        Self { cwnd, pacing_rate: Rate::UNLIMITED, ssthresh: Bytes(u64::MAX) }
    }
}

/// Decides for one flow. `control` is read after every call.
///
/// A wrapper implements the required methods, [`inner`](Self::inner) and
/// [`inner_mut`](Self::inner_mut); every other method forwards to the wrapped controller by default.
pub trait Controller: std::marker::Send {
    /// Something was delivered.
    fn on_ack(&mut self, ack: &Ack);
    /// Something was lost.
    fn on_loss(&mut self, loss: &Loss);
    /// What is allowed now.
    fn control(&self) -> Control;
    /// The controller that this one wraps, if it is a wrapper.
    fn inner(&self) -> Option<&dyn Controller> {
        None
    }
    /// As [`inner`](Self::inner), to be called.
    fn inner_mut(&mut self) -> Option<&mut dyn Controller> {
        None
    }
    /// Calls `on_ack`, then `control` and `next_timer`: one call through a table of methods instead of three, for every
    /// acknowledgement. Not meant to be implemented.
    fn answer(&mut self, ack: &Ack) -> (Control, Option<Time>) {
        self.on_ack(ack);
        (self.control(), self.next_timer())
    }
    /// A packet is about to leave; called only if [`Controller::has_send_hook`].
    fn on_send(&mut self, send: &Send) -> SendAction {
        self.inner_mut().map_or(SendAction::Send, |inner| inner.on_send(send))
    }
    /// Whether the controller implements the send hook `on_send`. Constant over the life of the flow.
    fn has_send_hook(&self) -> bool {
        self.inner().is_some_and(Controller::has_send_hook)
    }
    /// Something became of a packet; called only if [`Controller::wants_packets`]. What it changes is allowed from the
    /// next other call on.
    fn on_packet(&mut self, event: &PacketEvent) {
        if let Some(inner) = self.inner_mut() {
            inner.on_packet(event);
        }
    }
    /// Whether the controller wants to know of each packet. Constant over the life of the flow. Linux and the sender of
    /// ns-2 do not tell.
    fn wants_packets(&self) -> bool {
        self.inner().is_some_and(Controller::wants_packets)
    }
    /// Whether the controller decides once per round trip, at the first acknowledgement that ends one: told
    /// of acknowledgements late, it decides late.
    fn judges_rounds(&self) -> bool {
        self.inner().is_some_and(Controller::judges_rounds)
    }
    /// The time asked for by `next_timer` has come.
    fn on_timer(&mut self, now: Time) {
        if let Some(inner) = self.inner_mut() {
            inner.on_timer(now);
        }
    }
    /// When `on_timer` is to be called next.
    fn next_timer(&self) -> Option<Time> {
        self.inner().and_then(Controller::next_timer)
    }
    /// The flow has nothing to send for the rest of the run, or the run is over; it may be called for
    /// both. For controllers that report to an agent. Not every transport calls it.
    fn on_end(&mut self, now: Time) {
        if let Some(inner) = self.inner_mut() {
            inner.on_end(now);
        }
    }
    /// Where an agent outside of the controller finds the decision that is due and sets its action;
    /// `None` for a controller without one. Constant over the life of the flow. A decision that is due
    /// asks for a timer at once, and is made when that timer fires.
    fn agent_state(&mut self) -> Option<&mut AgentState> {
        self.inner_mut().and_then(Controller::agent_state)
    }
    /// Whether the controller gave up after an invalid action and a fallback controls the flow.
    fn fell_back(&self) -> bool {
        self.inner().is_some_and(Controller::fell_back)
    }
    /// Events worth counting, by name (fallbacks, learning steps, ...), read at the end of a run.
    fn counters(&self) -> Vec<(&'static str, f64)> {
        self.inner().map_or_else(Vec::new, Controller::counters)
    }
}

impl Controller for Box<dyn Controller> {
    fn on_ack(&mut self, ack: &Ack) {
        (**self).on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        (**self).on_loss(loss);
    }
    fn control(&self) -> Control {
        (**self).control()
    }
    fn answer(&mut self, ack: &Ack) -> (Control, Option<Time>) {
        (**self).answer(ack)
    }
    fn inner(&self) -> Option<&dyn Controller> {
        Some(&**self)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Controller> {
        Some(&mut **self)
    }
}

/// Names one of the subflows that a [`Coupled`] governs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct SubflowId(pub u32);

/// Decides for a set of subflows: one connection's, or all of a host's. Transports speak to this
/// trait only; a plain [`Controller`] comes in through [`PerFlow`].
///
/// Wrappers work as those of [`Controller`] do.
pub trait Coupled: std::marker::Send {
    /// A subflow joined. Called before any other call that names it.
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo);
    /// Which connection a subflow belongs to, by a number that is unique on the host. Called right after
    /// [`subflow_added`](Self::subflow_added), for controllers that govern several connections.
    fn subflow_of(&mut self, id: SubflowId, connection: u32) {
        if let Some(inner) = self.inner_mut() {
            inner.subflow_of(id, connection);
        }
    }
    /// A subflow left.
    fn subflow_removed(&mut self, id: SubflowId);
    /// See [`Controller::on_ack`].
    fn on_ack(&mut self, id: SubflowId, ack: &Ack);
    /// See [`Controller::on_loss`].
    fn on_loss(&mut self, id: SubflowId, loss: &Loss);
    /// See [`Controller::control`].
    fn control(&self, id: SubflowId) -> Control;
    /// See [`Controller::answer`].
    fn answer(&mut self, id: SubflowId, ack: &Ack) -> (Control, Option<Time>) {
        self.on_ack(id, ack);
        (self.control(id), self.next_timer(id))
    }
    /// See [`Controller::inner`].
    fn inner(&self) -> Option<&dyn Coupled> {
        None
    }
    /// See [`Controller::inner_mut`].
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        None
    }
    /// See [`Controller::on_send`].
    fn on_send(&mut self, id: SubflowId, send: &Send) -> SendAction {
        self.inner_mut().map_or(SendAction::Send, |inner| inner.on_send(id, send))
    }
    /// See [`Controller::has_send_hook`].
    fn has_send_hook(&self) -> bool {
        self.inner().is_some_and(Coupled::has_send_hook)
    }
    /// See [`Controller::on_packet`].
    fn on_packet(&mut self, id: SubflowId, event: &PacketEvent) {
        if let Some(inner) = self.inner_mut() {
            inner.on_packet(id, event);
        }
    }
    /// See [`Controller::wants_packets`].
    fn wants_packets(&self) -> bool {
        self.inner().is_some_and(Coupled::wants_packets)
    }
    /// See [`Controller::judges_rounds`].
    fn judges_rounds(&self) -> bool {
        self.inner().is_some_and(Coupled::judges_rounds)
    }
    /// See [`Controller::on_timer`].
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        if let Some(inner) = self.inner_mut() {
            inner.on_timer(id, now);
        }
    }
    /// See [`Controller::next_timer`].
    fn next_timer(&self, id: SubflowId) -> Option<Time> {
        self.inner().and_then(|inner| inner.next_timer(id))
    }
    /// See [`Controller::on_end`].
    fn on_end(&mut self, id: SubflowId, now: Time) {
        if let Some(inner) = self.inner_mut() {
            inner.on_end(id, now);
        }
    }
    /// See [`Controller::agent_state`].
    fn agent_state(&mut self, id: SubflowId) -> Option<&mut AgentState> {
        self.inner_mut().and_then(|inner| inner.agent_state(id))
    }
    /// See [`Controller::fell_back`].
    fn fell_back(&self, id: SubflowId) -> bool {
        self.inner().is_some_and(|inner| inner.fell_back(id))
    }
    /// A subflow's controller will soon be needed: a transport that keeps it elsewhere may ask the processor to
    /// bring it. Changes nothing.
    fn fetch(&self, id: SubflowId) {
        if let Some(inner) = self.inner() {
            inner.fetch(id);
        }
    }
    /// How many subflows a connection must have, if not any number will do; one of plain TCP always does.
    fn paths(&self) -> Option<usize> {
        self.inner().and_then(Coupled::paths)
    }
    /// See [`Controller::counters`].
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        self.inner().map_or_else(Vec::new, |inner| inner.counters(id))
    }
}

type BuildController = Box<dyn Fn(&FlowInfo) -> Box<dyn Controller> + std::marker::Send>;

/// Gives every subflow a separate controller.
pub struct PerFlow {
    build: BuildController,
    /// The first controller, the only one of most connections; a field saves a look-up per ACK.
    first: Option<Box<dyn Controller>>,
    others: Option<Box<Others>>,
}

/// Those of a connection's further subflows, apart because most have none.
#[derive(Default)]
struct Others(Vec<Option<Box<dyn Controller>>>);

impl PerFlow {
    /// Calls `build` for each subflow that joins.
    pub fn new(
        build: impl Fn(&FlowInfo) -> Box<dyn Controller> + std::marker::Send + 'static,
    ) -> Self {
        Self { build: Box::new(build), first: None, others: None }
    }

    #[inline]
    fn entry(&self, id: SubflowId) -> Option<&dyn Controller> {
        match id.0 {
            0 => self.first.as_deref(),
            index => self.others.as_ref()?.0[index as usize - 1].as_deref(),
        }
    }

    #[inline]
    fn get(&self, id: SubflowId) -> &dyn Controller {
        self.entry(id).expect("the subflow was added and not removed")
    }

    fn entry_mut(&mut self, id: SubflowId) -> &mut Option<Box<dyn Controller>> {
        match id.0 {
            0 => &mut self.first,
            index => &mut self.others.get_or_insert_default().0[index as usize - 1],
        }
    }

    fn all(&self) -> impl Iterator<Item = &dyn Controller> {
        let others = self.others.iter().flat_map(|others| &others.0);
        self.first.iter().chain(others.flatten()).map(AsRef::as_ref)
    }

    fn get_mut(&mut self, id: SubflowId) -> &mut Box<dyn Controller> {
        self.entry_mut(id).as_mut().expect("the subflow was added and not removed")
    }
}

impl Coupled for PerFlow {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        let controller = (self.build)(flow);
        if id.0 > 0 {
            let others = &mut self.others.get_or_insert_default().0;
            others.resize_with(others.len().max(id.0 as usize), || None);
        }
        *self.entry_mut(id) = Some(controller);
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        *self.entry_mut(id) = None;
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.get_mut(id).on_ack(ack);
    }
    fn answer(&mut self, id: SubflowId, ack: &Ack) -> (Control, Option<Time>) {
        self.get_mut(id).answer(ack)
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.get_mut(id).on_loss(loss);
    }
    fn on_send(&mut self, id: SubflowId, send: &Send) -> SendAction {
        self.get_mut(id).on_send(send)
    }
    fn has_send_hook(&self) -> bool {
        self.all().any(Controller::has_send_hook)
    }
    fn on_packet(&mut self, id: SubflowId, event: &PacketEvent) {
        self.get_mut(id).on_packet(event);
    }
    fn wants_packets(&self) -> bool {
        self.all().any(Controller::wants_packets)
    }
    fn judges_rounds(&self) -> bool {
        self.all().any(Controller::judges_rounds)
    }
    fn on_timer(&mut self, id: SubflowId, now: Time) {
        self.get_mut(id).on_timer(now);
    }
    fn next_timer(&self, id: SubflowId) -> Option<Time> {
        self.get(id).next_timer()
    }
    fn control(&self, id: SubflowId) -> Control {
        self.get(id).control()
    }
    fn on_end(&mut self, id: SubflowId, now: Time) {
        self.get_mut(id).on_end(now);
    }
    fn fetch(&self, id: SubflowId) {
        // An acknowledgement may be on its way to a subflow that has left.
        if let Some(controller) = self.entry(id) {
            prefetch(controller);
        }
    }
    fn agent_state(&mut self, id: SubflowId) -> Option<&mut AgentState> {
        self.get_mut(id).agent_state()
    }
    fn fell_back(&self, id: SubflowId) -> bool {
        self.get(id).fell_back()
    }
    fn counters(&self, id: SubflowId) -> Vec<(&'static str, f64)> {
        self.get(id).counters()
    }
}

/// What a controller knows about its flow before the first packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowInfo {
    /// Size of a full packet as the sender counts it (with headers where the scenario counts them).
    pub mss: Bytes,
    /// Window to start with (RFC 6928).
    pub initial_cwnd: Bytes,
    /// Initial slow-start threshold; `Bytes(u64::MAX)` for none.
    pub initial_ssthresh: Bytes,
    /// How the sender recovers from loss, for controllers whose published rules differ by it.
    pub recovery: Recovery,
    /// Whether the sender paces by itself where the controller sets no rate.
    pub paces: bool,
    /// When the flow starts.
    pub start: Time,
    /// Seed of the controller's own randomness.
    pub seed: u64,
}

impl FlowInfo {
    /// Sizes of a full packet that a host may name.
    pub const MSS: RangeInclusive<u64> = 64..=65_535;
    /// Largest initial window that a host may name: a gigabyte.
    pub const INITIAL_CWND_MAX: Bytes = Bytes(1 << 30);

    /// The flow, if every controller can be built for it. For hosts whose numbers are not their own: others are
    /// in range as they are made.
    ///
    /// # Errors
    ///
    /// If the size of a packet or a window is out of range, or the flow starts later than any run lasts.
    pub fn checked(self) -> Result<Self, ParamError> {
        let (mss, start_max) = (self.mss.0, u64::MAX / 4);
        let fields = [
            ("mss", mss, Self::MSS),
            ("initial_cwnd", self.initial_cwnd.0, mss..=Self::INITIAL_CWND_MAX.0),
            ("initial_ssthresh", self.initial_ssthresh.0, mss..=u64::MAX),
            ("start", self.start.0, 0..=start_max),
        ];
        match fields.into_iter().find(|(_, value, allowed)| !allowed.contains(value)) {
            None => Ok(self),
            Some((name, value, allowed)) => Err(ParamError {
                name: name.to_owned(),
                value: value.to_string(),
                allowed: format!("{} to {}", allowed.start(), allowed.end()),
            }),
        }
    }
}

/// How a sender finds and repairs losses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recovery {
    /// Selective acknowledgements: RFC 6675, RFC 8985, RFC 9937.
    #[default]
    Sack,
    /// NewReno without SACK by the rules of ns-2.35.
    Ns2,
}

/// Entry of the controller table: one `SPEC` per file in `controllers/`.
#[derive(Debug)]
pub struct Spec {
    /// Name in scenario files and on the command line; equals the file's name.
    pub name: &'static str,
    /// One line for `ackademy list`.
    pub about: &'static str,
    /// RFC or paper, with section or equation.
    pub source: &'static str,
    /// What a scenario may set, with default and range.
    pub params: &'static [Param],
    /// Makes one for a flow. `Params` are complete and in range.
    pub build: fn(&FlowInfo, &Params) -> Box<dyn Controller>,
}

impl Spec {
    /// Whether a scenario may leave out all its settings.
    pub fn runs_on_defaults(&self) -> bool {
        self.params.iter().all(|param| param.kind.default().is_some())
    }
}
