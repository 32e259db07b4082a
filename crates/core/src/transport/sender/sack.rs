//! A modern sender: selective acknowledgements with RFC 6675's accounting, RACK-TLP loss detection
//! (RFC 8985), proportional rate reduction (RFC 9937), pacing and delivery-rate samples.
use self::episode::Episode;
use self::packets::Hooks;
use self::probe::Probe;
use super::reordering::Reordering;
use super::scoreboard::{DUP_THRESH, Delivered, Lost, Rack, Scoreboard};
use super::undo::{Duplicates, Undo};
use super::{
    Allowed, Departure, Governor, Outgoing, SEGMENTS_MAX, SenderStats, Silence, Supply, limits,
};
use crate::control::{Ack, LossKind};
use crate::hint::{likely, unlikely};
use crate::transport::config::SenderConfig;
use crate::transport::delivery_rate::{DeliveryRate, SentState};
use crate::transport::packet::Packet;
use crate::transport::prr::Prr;
use crate::transport::rtt::RttEstimator;
use crate::units::{Bytes, Rate, Span, Time};
use std::sync::Arc;

mod episode;
mod marks;
mod pacing;
mod packets;
mod probe;
mod reduction;
mod report;
mod unsent;

/// What an acknowledgement changed.
#[derive(Debug)]
struct Progress<'a> {
    delivered: &'a Delivered,
    /// The sample, and the largest of the batch.
    rtt: (Span, Span),
    una_before: u64,
    inflight_before: u64,
    ce_bytes: u32,
}

/// A sender with selective acknowledgements.
#[derive(Debug)]
pub struct SackSender {
    /// One for all flows of its kind.
    config: Arc<SenderConfig>,
    packet: u64,
    allowed: Allowed,
    hooks: Hooks,
    board: Scoreboard,
    pub(super) rtt: RttEstimator,
    /// The round trip of the samples ends when this segment is acknowledged.
    sampled_until: u64,
    rate: DeliveryRate,
    pub(super) delivery_rate: Rate,
    pub(super) stats: SenderStats,
    episode: Episode,
    /// `FlightSize` of the last loss that was to be answered.
    flight: u64,
    prr: Prr,
    rack: Rack,
    reordering: Reordering,
    undo: Undo,
    duplicates: Duplicates,
    probe: Option<Probe>,
    rto_deadline: Time,
    /// The segment for which it expired last; `u64::MAX` before.
    timed_out: u64,
    probe_deadline: Time,
    reorder_deadline: Time,
    /// Pacing: nothing leaves before; zero when something else than pacing holds packets back.
    pub(super) release: Time,
    /// At `release` nothing will leave either, since the window is full until an acknowledgement or a
    /// deadline: no wake-up is needed, which spares a paced sender every second one.
    held: bool,
    last_sent: Time,
    /// The window was full when this was the next segment.
    blocked_at: u64,
    /// RFC 3168: no second reduction for marks before this segment, the first that was sent after
    /// the last one, is acknowledged.
    marked_until: u64,
    /// The receiver's count of marked bytes, as far as the controller knows.
    ce_known: u32,
}

impl SackSender {
    /// Nothing sent yet.
    pub fn new(config: &SenderConfig, governor: &Governor) -> Self {
        Self::sharing(&Arc::new(*config), governor)
    }

    /// As [`new`](Self::new), beside other flows with this configuration.
    pub fn sharing(config: &Arc<SenderConfig>, governor: &Governor) -> Self {
        let hooks = Hooks::of(governor);
        let mut board = Scoreboard::default();
        if hooks.has(Hooks::PACKETS) {
            board.keep_packets();
        }
        Self {
            config: Arc::clone(config),
            packet: config.packet.0,
            allowed: Allowed::read(governor, config.packet.0),
            hooks,
            board,
            rtt: RttEstimator::default(),
            sampled_until: 0,
            rate: DeliveryRate::default(),
            delivery_rate: Rate(0),
            stats: SenderStats::new(),
            episode: Episode::None,
            flight: 0,
            prr: Prr::default(),
            rack: Rack::default(),
            reordering: Reordering::NONE,
            undo: Undo::NONE,
            duplicates: Duplicates::default(),
            probe: None,
            rto_deadline: Time::NEVER,
            timed_out: u64::MAX,
            probe_deadline: Time::NEVER,
            reorder_deadline: Time::NEVER,
            release: Time(0),
            held: false,
            last_sent: Time(0),
            blocked_at: 0,
            marked_until: 0,
            ce_known: 0,
        }
    }

    #[inline]
    pub(super) fn prefetch_heap(&self, all: bool) {
        self.board.fetch_first();
        if all {
            self.board.fetch_gaps();
            self.stats.rtt_histogram.fetch();
        }
    }

    pub(super) fn deadline(&self) -> Time {
        let waits = self.release > Time(0) && !self.held;
        self.expiry().min(if waits { self.release } else { Time::NEVER })
    }

    /// When `on_deadline` has something to do.
    #[inline]
    pub(super) fn expiry(&self) -> Time {
        self.rto_deadline
            .min(self.probe_deadline)
            .min(self.reorder_deadline)
            .min(self.allowed.timer)
    }

    pub(super) fn unacknowledged_payload(&self) -> u64 {
        let segments = self.board.nxt() - self.board.una();
        self.board.outstanding().saturating_sub(segments * self.config.header.0)
    }

    pub(super) fn wait_for_handshake(&mut self, start: Time, rtt: Span) {
        self.release = start + rtt;
        self.rtt.sample(rtt, true, &limits(&self.config));
    }

    fn rto(&self) -> Span {
        self.rtt.rto(&limits(&self.config))
    }

    pub(super) fn first_unacknowledged(&self) -> u64 {
        self.board.una()
    }

    pub(super) fn close(&mut self) {
        self.board = Scoreboard::default();
        self.rto_deadline = Time::NEVER;
        self.probe_deadline = Time::NEVER;
        self.reorder_deadline = Time::NEVER;
        self.allowed.timer = Time::NEVER;
        self.release = Time(0);
    }

    pub(super) fn all_acknowledged(&self) -> bool {
        self.board.outstanding() == 0
    }

    pub(super) fn inflight(&self) -> Bytes {
        Bytes(self.board.inflight())
    }

    /// The next packet that pacing, the window and the data at hand allow.
    #[expect(clippy::inline_always, reason = "in two loops: see `Sim::send_packet`")]
    #[inline(always)]
    pub(super) fn transmit(
        &mut self,
        now: Time,
        governor: &mut Governor,
        supply: &mut Supply,
    ) -> Option<Outgoing> {
        if unlikely(now < self.release) {
            return None;
        }
        self.held = false;
        let repair = self.board.peek_lost();
        let rescue = if repair.is_none() { self.peek_rescue(*supply) } else { None };
        let retransmitted = repair.or(rescue);
        let size = match retransmitted {
            Some(size) => u64::from(size),
            None if unlikely(supply.unsent == 0) => return self.stay_silent(supply.silence()),
            None => self.next_size(*supply),
        };
        if unlikely(self.board.outstanding() == 0)
            && retransmitted.is_none()
            && self.config.idle_restart
        {
            self.restart_if_idle(now, governor);
        }
        if !self.window_allows(size) {
            return self.stay_silent(Silence::Controller);
        }
        if unlikely(self.receiver_full()) && retransmitted.is_none() {
            return self.stay_silent(Silence::Receiver);
        }
        if unlikely(self.hooks != Hooks::NONE) {
            let departure = self.departure(now, size, retransmitted.is_some(), rescue.is_some());
            if !self.permits(&departure, governor) {
                return self.stay_silent(Silence::Controller);
            }
        }
        let outgoing = if unlikely(retransmitted.is_some()) {
            self.send_again(now, size)?
        } else {
            supply.take(size - self.config.header.0);
            let sent = self.sent_state(now, size);
            let seq = self.board.send_new(now, size as u32, sent);
            Outgoing { seq, size: size as u32, retransmission: false }
        };
        self.on_sent(now, outgoing);
        Some(outgoing)
    }

    /// Nothing leaves now, and why: only the application makes samples application-limited, and only the controller
    /// counts as a window that is used (as in Linux: `tcp_rate_check_app_limited`, `tcp_write_xmit`). Once both the
    /// window and the receiver are full, it is the window.
    #[inline]
    fn stay_silent(&mut self, why: Silence) -> Option<Outgoing> {
        match why {
            Silence::Application if self.board.inflight() < self.allowed.cwnd => {
                self.rate.on_app_limited(self.board.inflight());
            }
            Silence::Application | Silence::Receiver => {}
            Silence::Controller => self.blocked_at = self.board.nxt(),
        }
        self.release = Time(0);
        None
    }

    /// What a packet of `size` that leaves now remembers. Whoever stores it asks for it in the same place: a copy of
    /// what has just been written would wait for the stores.
    #[allow(clippy::inline_always, reason = "as above")]
    #[inline(always)]
    fn sent_state(&mut self, now: Time, size: u64) -> SentState {
        self.rate.on_sent(now, self.board.inflight(), size, self.stats.declared_lost_bytes)
    }

    #[inline(never)]
    fn send_again(&mut self, now: Time, size: u64) -> Option<Outgoing> {
        let sent = self.sent_state(now, size);
        let (seq, size) = if let Some(lost) = self.board.send_lost(now, sent) {
            lost
        } else {
            let sent = self.sent_state(now, size);
            self.board.send_rescue(now, sent)?
        };
        Some(Outgoing { seq, size, retransmission: true })
    }

    /// Of the next packet of new data, if there is any.
    fn next_size(&self, supply: Supply) -> u64 {
        self.packet.min(supply.unsent.saturating_add(self.config.header.0))
    }

    /// In fast recovery, with nothing new to send: what may be sent again on suspicion.
    fn peek_rescue(&mut self, supply: Supply) -> Option<u32> {
        let idle = unlikely(supply.unsent == 0) && matches!(self.episode, Episode::Fast(_));
        if idle && self.config.rescue { self.board.peek_rescue() } else { None }
    }

    fn receiver_full(&self) -> bool {
        let window = self.config.receiver_window_packets.min(SEGMENTS_MAX);
        self.board.nxt() - self.board.una() >= window
    }

    fn window_allows(&self, size: u64) -> bool {
        if unlikely(self.episode.reduces()) && self.is_proportional() {
            return self.prr.budget >= size;
        }
        let inflight = self.board.inflight();
        inflight + size <= self.allowed.cwnd || inflight == 0
    }

    #[inline(never)]
    fn departure(&self, now: Time, size: u64, retransmission: bool, rescue: bool) -> Departure {
        let seq = if rescue { self.board.rescued() } else { self.board.next_to_leave() };
        let order = seq - self.board.una() + 1;
        let inflight = self.inflight();
        Departure { now, size, full_size: self.packet, inflight, retransmission, order }
    }

    /// RFC 5681 section 4.1.
    #[inline(never)]
    fn restart_if_idle(&mut self, now: Time, governor: &mut Governor) {
        if self.stats.sent_packets > 0 && now.since(self.last_sent) > self.rto() {
            self.tell_loss(now, LossKind::Idle, Lost::default(), governor);
            self.last_sent = now;
        }
    }

    #[expect(clippy::inline_always, reason = "in two loops: see `Sim::send_packet`")]
    #[inline(always)]
    fn on_sent(&mut self, now: Time, outgoing: Outgoing) {
        let size = u64::from(outgoing.size);
        self.stats.sent(outgoing);
        self.prr.sent(size);
        self.last_sent = now;
        let rate = self.pacing_rate();
        if rate != Rate::UNLIMITED {
            self.release = self.release.max(now) + super::pacing_pause(rate, size);
        }
        // The first hole's repair has a time-out of its own, as in Linux (`tcp_xmit_retransmit_queue`):
        // else a recovery behind a growing queue ends in a spurious one.
        let head_retransmitted = outgoing.retransmission && outgoing.seq == self.board.una();
        if unlikely(self.rto_deadline == Time::NEVER || head_retransmitted) {
            self.rto_deadline = now + self.rto();
        }
        if unlikely(outgoing.retransmission) {
            self.undo.on_retransmission(now);
        } else {
            self.arm_probe(now);
        }
    }

    /// An acknowledgement arrived.
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &Packet,
        governor: &mut Governor,
        _supply: &mut Supply,
    ) {
        self.catch_up(now);
        let una_before = self.board.una();
        let inflight_before = self.board.inflight();
        let delivered = self.board.on_ack(ack, self.credible(now, ack));
        let advanced = delivered.advanced;
        if likely(delivered.bytes > 0) {
            self.rate.on_delivered(now, delivered.bytes);
        }
        let rtt = self.take_samples(now, &delivered);
        if unlikely(delivered.timed == Time::NEVER) && advanced {
            self.sample_echo(now, self.echo(ack));
        }
        // Without a report, only an answer that is under way can turn out to have been for nothing.
        let answers = matches!(self.episode, Episode::Fast(_) | Episode::Timeout(_));
        let checks = ack.repeat || (answers && self.undo.is_armed());
        if unlikely(checks || self.reordering.is_in_round()) {
            self.note_duplicate(ack);
            if self.is_spurious(self.echo(ack), advanced) {
                self.undo_reduction(now, governor);
            }
        }
        if likely(advanced) {
            let done = self.board.outstanding() == 0;
            self.rto_deadline = if done { Time::NEVER } else { now + self.rto() };
        }
        let ended = advanced && self.close_episode();
        let lost = self.detect(now, governor);
        self.stats.declared_lost_bytes += lost.bytes;
        let opened = unlikely(lost.bytes > 0 || ended) && self.open_episode(lost, ended);
        let marked = self.open_marked(ack);
        if likely(delivered.bytes > 0) {
            let ce_bytes = self.new_marks(ack);
            let progress =
                Progress { delivered: &delivered, rtt, una_before, inflight_before, ce_bytes };
            self.tell_ack(now, &progress, governor);
        }
        if unlikely(lost.bytes > 0 || ended) {
            self.report_losses(now, lost, opened, governor);
        }
        if unlikely(marked) {
            // Nothing was lost; the mark came with the newest packet delivered.
            let none = Lost { newest: delivered.newest.0, sent: delivered.sent, ..Lost::default() };
            self.tell_loss(now, LossKind::Gap, none, governor);
        }
        self.finish_probe(now, ack, governor);
        if unlikely(self.episode.reduces()) {
            self.reduce(&delivered, lost.bytes > 0, opened || marked);
        }
        if likely(advanced) {
            self.arm_probe(now);
        } else if self.board.sacked_count() > 0 {
            self.probe_deadline = Time::NEVER;
        }
    }

    /// The timestamp that an acknowledgement echoes, if there is one.
    fn echo(&self, ack: &Packet) -> Option<Time> {
        (self.config.timestamps && ack.sent_at > Time(0)).then_some(ack.sent_at)
    }

    /// When a retransmission left at the latest if this acknowledgement is its own and not an earlier
    /// copy's: it echoes no older timestamp and takes no less than the smallest round trip (RFC 8985
    /// section 6.2 step 2).
    fn credible(&self, now: Time, ack: &Packet) -> Time {
        let by_rtt = Time(now.0.saturating_sub(self.rtt.min_rtt().0));
        self.echo(ack).map_or(by_rtt, |echo| by_rtt.min(echo))
    }

    /// Round trip, delivery rate, RACK; returns the sample and the largest of the batch.
    fn take_samples(&mut self, now: Time, delivered: &Delivered) -> (Span, Span) {
        let mut sample = (Span::ZERO, Span::ZERO);
        if unlikely(delivered.bytes == 0) {
            return sample;
        }
        if likely(delivered.timed != Time::NEVER) {
            sample = (now.since(delivered.timed), now.since(delivered.timed_first));
            self.sample_rtt(sample.0);
            self.stats.sample(sample.0);
        }
        let min_rtt = self.rtt.min_rtt();
        self.delivery_rate = match self.rate.sample(delivered.newest.0, &delivered.sent, min_rtt) {
            Rate(0) => self.delivery_rate,
            rate => rate,
        };
        if let Some(newest) = delivered.certain {
            self.rack.rtt = now.since(newest.0);
            self.rack.newest = self.rack.newest.max(newest);
        }
        if unlikely(delivered.reordered) {
            self.reordering.on_reordering();
        }
        sample
    }

    /// A round trip passes until what is in flight now is acknowledged.
    #[inline]
    fn sample_rtt(&mut self, rtt: Span) {
        let round = self.board.una() > self.sampled_until;
        self.rtt.sample(rtt, round, &limits(&self.config));
        if round {
            self.sampled_until = self.board.nxt();
        }
    }

    /// Only what was sent again was acknowledged, of which the echo alone tells the round trip
    /// (RFC 7323 section 4.1); it ends the back-off. Controllers are not told, as on the kernel.
    #[inline(never)]
    fn sample_echo(&mut self, now: Time, echo: Option<Time>) {
        if let Some(echo) = echo {
            self.sample_rtt(now.since(echo));
        }
    }

    /// A duplicate of what was never retransmitted is of the network's making. On such a network, one of
    /// what was retransmitted may be so, too: none takes a recovery back any more (RFC 3708 section 3).
    #[inline(never)]
    fn note_duplicate(&mut self, ack: &Packet) {
        let explained = ack.repeat && self.explains_duplicate(ack.duplicate());
        self.reordering.on_ack(self.board.una(), self.board.nxt(), explained);
        if explained && !self.duplicates.by_network() {
            self.undo.on_duplicate(ack.duplicate().unwrap_or(self.board.una()));
        }
    }

    /// Whether a retransmission may have caused the duplicate of `seq` that is reported.
    fn explains_duplicate(&mut self, seq: Option<u64>) -> bool {
        let retransmitted = seq.and_then(|seq| self.board.was_retransmitted(seq));
        self.duplicates.on_report(retransmitted, self.stats.retransmitted_packets)
    }

    /// Whether the latest loss turns out to be none. In fast recovery the original of a gap may come
    /// while later ones are truly lost: that shows when no retransmission is out, or at the end.
    #[inline(never)]
    fn is_spurious(&self, echo: Option<Time>, advanced: bool) -> bool {
        let outrun = advanced && echo.is_some_and(|echo| self.undo.is_outrun(echo));
        let by_echo = match self.episode {
            Episode::Fast(end) => {
                outrun && (self.board.una() >= end || !self.board.awaits_repairs())
            }
            Episode::Timeout(_) => outrun,
            Episode::None | Episode::Marked(_) => false,
        };
        by_echo || self.undo.is_all_duplicates()
    }

    /// The reduction was for nothing: what counts as lost is in flight, and the window is as before.
    #[inline(never)]
    fn undo_reduction(&mut self, now: Time, governor: &mut Governor) {
        self.undo = Undo::NONE;
        // It was the reduced window that was full.
        self.blocked_at = 0;
        self.board.withdraw_losses();
        self.episode = Episode::None;
        self.report_losses(now, Lost::default(), false, governor);
        self.stats.spurious += 1;
        self.tell_loss(now, LossKind::Spurious, Lost::default(), governor);
    }

    fn detect(&mut self, now: Time, governor: &mut Governor) -> Lost {
        if likely(!self.board.is_open() && self.reorder_deadline == Time::NEVER) {
            return Lost::default();
        }
        self.tell_packets(now, governor);
        self.detect_among_gaps(now)
    }

    #[inline(never)]
    fn detect_among_gaps(&mut self, now: Time) -> Lost {
        if !self.board.has_gaps() && self.reorder_deadline == Time::NEVER {
            return Lost::default();
        }
        if !self.config.rack {
            return self.board.detect_by_count();
        }
        let certain = self.episode != Episode::None || self.board.sacked_count() >= DUP_THRESH;
        self.rack.window = self.reordering.window(&self.rtt, certain);
        let (lost, next) = self.board.detect_by_time(now, &self.rack);
        self.reorder_deadline = next;
        lost
    }

    #[inline]
    fn tell_ack(&mut self, now: Time, progress: &Progress, governor: &mut Governor) {
        let Progress { delivered, rtt: (rtt, rtt_max), una_before, inflight_before, ce_bytes } =
            *progress;
        // The window counts as used for a round trip after it was full; in slow start also if more
        // than half of it was in flight (as in Linux).
        let slow_start = self.allowed.cwnd < self.allowed.ssthresh;
        let limited =
            una_before < self.blocked_at || (slow_start && self.allowed.cwnd < 2 * inflight_before);
        // A duplicate ACK may be the first sign of loss: the window waits (RFC 5681 section 3.2).
        let in_disorder = !delivered.advanced;
        self.ce_known = self.ce_known.wrapping_add(ce_bytes);
        let ce_marked = Bytes(u64::from(ce_bytes).min(delivered.bytes));
        self.stats.ce_marked_bytes += ce_marked.0;
        let record = Ack {
            now,
            sent_at: delivered.newest.0,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: self.rtt.min_rtt(),
            rtt_max,
            batch_rtt_min: rtt,
            acked: Bytes(delivered.bytes),
            ce_marked: if self.config.ecn.is_accurate() { ce_marked } else { Bytes::ZERO },
            inflight: self.inflight(),
            prior_inflight: self.inflight() + Bytes(delivered.bytes),
            delivered: self.rate.delivered(),
            delivery_rate: self.delivery_rate,
            tx_inflight: delivered.sent.inflight(),
            delivered_since: self.rate.delivered_since(&delivered.sent),
            lost_since: delivered.sent.lost_since(self.stats.declared_lost_bytes),
            app_limited: u64::from(delivered.sent.app_limited()),
            recovering: u64::from(self.episode.reduces() || in_disorder),
            cwnd_limited: u64::from(limited),
        };
        let (control, timer) = governor.coupled.answer(governor.id, &record);
        self.allowed = Allowed::bounded(control, timer, self.packet);
    }

    /// Expires what is due.
    #[inline(never)]
    pub(super) fn on_deadline(&mut self, now: Time, governor: &mut Governor, supply: &mut Supply) {
        self.catch_up(now);
        if now >= self.allowed.timer {
            governor.coupled.on_timer(governor.id, now);
            self.allowed = Allowed::read_after_timer(now, governor, self.packet);
        }
        if now >= self.probe_deadline {
            self.probe(now, supply);
        } else if now >= self.rto_deadline {
            self.timeout(now, governor);
        }
        if now >= self.reorder_deadline {
            self.reorder_deadline = Time::NEVER;
            let lost = self.detect_due(now);
            if lost.bytes > 0 {
                let opened = self.open_episode(lost, false);
                self.report_losses(now, lost, opened, governor);
                if self.episode.reduces() {
                    self.reduce(&Delivered::default(), true, opened);
                }
            }
        }
    }

    fn detect_due(&mut self, now: Time) -> Lost {
        let (lost, next) = self.board.detect_by_time(now, &self.rack);
        self.reorder_deadline = next;
        self.stats.declared_lost_bytes += lost.bytes;
        lost
    }

    /// RFC 6298 sections 5.4 to 5.7, RFC 8985 section 6.3.
    fn timeout(&mut self, now: Time, governor: &mut Governor) {
        self.stats.timeouts += 1;
        let again = self.timed_out == self.board.una();
        self.timed_out = self.board.una();
        let answered = again || self.episode.reduces();
        let kind = if answered { LossKind::TimeoutAgain } else { LossKind::Timeout };
        // One within fast recovery, or of the same packet again, goes on with what is known.
        if !matches!(self.episode, Episode::Fast(_)) && !again {
            self.undo = match self.episode {
                Episode::Marked(_) => Undo::NONE,
                _ => Undo::arm(self.board.una()),
            };
            self.count_probe();
        }
        self.rtt.back_off();
        let patience = self.rack.rtt + self.rack.window;
        let sent_before =
            if self.config.rack { Time(now.0.saturating_sub(patience.0)) } else { now };
        let lost = self.board.declare_after_timeout(sent_before);
        self.stats.declared_lost_bytes += lost.bytes;
        self.marked_until = self.board.nxt();
        self.probe = None;
        self.probe_deadline = Time::NEVER;
        self.reorder_deadline = Time::NEVER;
        self.release = Time(0);
        self.rto_deadline = now + self.rto();
        let lost = lost.and(self.board.take_kept());
        self.tell_loss(now, kind, lost, governor);
        self.episode = Episode::Timeout(self.board.nxt());
        // The earliest segment leaves now (RFC 6298 section 5.4), even where RACK leaves more than a
        // window of later ones in flight.
        self.allow_one();
    }
}

#[cfg(test)]
#[path = "tests/sack.rs"]
mod tests;
