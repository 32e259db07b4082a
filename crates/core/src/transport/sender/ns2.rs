//! NewReno without SACK by the rules of ns-2.35's one-way TCP agent (source: ns-2.35 tcp.cc,
//! tcp-reno.cc, tcp-newreno.cc; the rules are listed in `docs/reference/ns2.md`). Kong 2018 ran this stack.
//!
//! Sequence numbers count packets from 0; -1 means "none yet". The window lives in the controller;
//! what ns-2 adds to it in recovery (`dupwnd_`) lives here.
use super::{
    Allowed, Departure, Governor, Outgoing, SEGMENTS_MAX, SenderStats, Silence, Supply, limits,
};
use crate::control::{Ack, Loss, LossKind};
use crate::transport::config::SenderConfig;
use crate::transport::packet::Packet;
use crate::transport::rtt::TickRtt;
use crate::units::{Bytes, Rate, Span, Time};

/// Duplicate ACKs that mean loss.
const DUPACKS: u32 = 3;
/// New packets per duplicate or partial ACK in recovery.
const RECOVERY_BURST: u32 = 2;
/// A SYN without options (`tcpip_base_hdr_size_`).
const SYN_BYTES: u32 = 40;

/// What last cut the window (`last_cwnd_action_`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    None,
    DupAck,
    Timeout,
    Exited,
}

/// ns-2's NewReno.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // ns-2's own switches and flags
pub struct Ns2Sender {
    packet: u64,
    payload: u64,
    receiver_window: i64,
    timestamps: bool,
    deflation: bool,
    impatient: bool,
    handshake: bool,
    allowed: Allowed,
    has_send_hook: bool,
    pub(super) rtt: TickRtt,
    pub(super) delivery_rate: Rate,
    pub(super) stats: SenderStats,
    min_rtt: u64,
    /// `t_seqno_`: the next to send.
    next: i64,
    /// `maxseq_`: the highest sent.
    highest_sent: i64,
    /// `highest_ack_`.
    acked: i64,
    /// `recover_`.
    recover: i64,
    dupacks: u32,
    dupwnd: i64,
    cut: Cut,
    first_partial: bool,
    /// `rtt_active_`, `rtt_seq_`, `rtt_ts_`: the packet being timed.
    timing: bool,
    timed_seq: i64,
    timed_at: Time,
    deadline: Time,
    /// Sent by an event but not yet collected by `transmit`.
    outbox: std::collections::VecDeque<Outgoing>,
    /// Send times of unacknowledged packets, for `sent_at` in records.
    sent_at: std::collections::VecDeque<Time>,
    /// Packets that the last event still allows (`maxburst` of `send_much()`).
    burst: u32,
    /// Pacing: nothing leaves before; zero when something else than pacing holds packets back.
    pub(super) release: Time,
}

impl Ns2Sender {
    /// Nothing sent yet.
    pub fn new(config: &SenderConfig, governor: &Governor) -> Self {
        Self {
            packet: config.packet.0,
            payload: config.packet.0 - config.header.0,
            receiver_window: config.receiver_window_packets.min(SEGMENTS_MAX) as i64,
            timestamps: config.timestamps,
            deflation: config.deflation,
            impatient: config.impatient,
            handshake: config.handshake,
            allowed: Allowed::read(governor, config.packet.0),
            has_send_hook: governor.coupled.has_send_hook(),
            rtt: TickRtt::new(limits(config), config.timestamps),
            delivery_rate: Rate(0),
            stats: SenderStats::new(),
            min_rtt: u64::MAX,
            next: 0,
            highest_sent: -1,
            acked: -1,
            recover: 0,
            dupacks: 0,
            dupwnd: 0,
            cut: Cut::None,
            first_partial: false,
            timing: false,
            timed_seq: -1,
            timed_at: Time(0),
            deadline: Time::NEVER,
            outbox: std::collections::VecDeque::new(),
            sent_at: std::collections::VecDeque::new(),
            burst: u32::MAX,
            release: Time(0),
        }
    }

    pub(super) fn deadline(&self) -> Time {
        let pacing = if self.release > Time(0) { self.release } else { Time::NEVER };
        self.deadline.min(self.allowed.timer).min(pacing)
    }

    /// Whole packets: the size of a short one is not remembered.
    pub(super) fn unacknowledged_payload(&self) -> u64 {
        (self.highest_sent - self.acked).max(0) as u64 * self.payload
    }

    pub(super) fn first_unacknowledged(&self) -> u64 {
        (self.acked + 1) as u64
    }

    pub(super) fn close(&mut self) {
        self.outbox.clear();
        self.highest_sent = self.acked;
        self.deadline = Time::NEVER;
        self.allowed.timer = Time::NEVER;
        self.release = Time(0);
    }

    pub(super) fn all_acknowledged(&self) -> bool {
        self.acked == self.highest_sent && self.outbox.is_empty()
    }

    /// Without SACK the sender knows only what is cumulatively acknowledged.
    pub(super) fn inflight(&self) -> Bytes {
        Bytes((self.highest_sent - self.acked).max(0) as u64 * self.packet)
    }

    /// `window()`: whole packets, inflated in recovery; one until the SYN is acknowledged.
    fn window(&self) -> i64 {
        if self.handshake && self.acked < 0 {
            return 1;
        }
        ((self.allowed.cwnd / self.packet) as i64 + self.dupwnd).min(self.receiver_window)
    }

    /// `advanceby()`: the application hands over more.
    pub(super) fn on_supply(&mut self) {
        self.burst = u32::MAX;
    }

    /// What leaves next: what an event decided to send, then what the window allows
    /// (`send_much()`). ns-2 has no pacing; a controller that sets a rate is obeyed all the same.
    #[inline(never)]
    pub(super) fn transmit(
        &mut self,
        now: Time,
        governor: &mut Governor,
        supply: &mut Supply,
    ) -> Option<Outgoing> {
        if now < self.release {
            return None;
        }
        if self.outbox.is_empty() && self.burst > 0 && self.next <= self.acked + self.window() {
            self.burst -= 1;
            if !self.emit_next(now, governor, supply) {
                self.burst = if self.dupacks == 0 { u32::MAX } else { 0 };
            }
        }
        let outgoing = self.outbox.pop_front();
        self.release = match outgoing {
            Some(packet) if self.allowed.pacing_rate != Rate::UNLIMITED => {
                now + super::pacing_pause(self.allowed.pacing_rate, u64::from(packet.size))
            }
            _ => Time(0),
        };
        outgoing.inspect(|&packet| self.stats.sent(packet))
    }

    /// Sends `next` and steps on; false if the application has no more or the controller holds.
    fn emit_next(&mut self, now: Time, governor: &mut Governor, supply: &mut Supply) -> bool {
        let fresh = self.next > self.highest_sent;
        if fresh && supply.unsent == 0 {
            return false;
        }
        if !self.may_send(now, self.next, governor) {
            return false;
        }
        if fresh && !self.is_syn(self.next) {
            supply.take(self.payload);
        }
        self.output(now, self.next);
        self.next += 1;
        true
    }

    /// Whether the controller, if it wants to be asked, lets this packet go.
    fn may_send(&mut self, now: Time, seq: i64, governor: &mut Governor) -> bool {
        if !self.has_send_hook {
            return true;
        }
        let departure = Departure {
            now,
            size: self.packet,
            full_size: self.packet,
            inflight: self.inflight(),
            retransmission: seq <= self.highest_sent,
            order: (seq - self.acked) as u64,
        };
        governor.permits(&departure, &mut self.allowed)
    }

    /// Retransmits the first unacknowledged packet. Recovery waits for it, so the send hook is called
    /// but cannot hold it.
    fn repair(&mut self, now: Time, governor: &mut Governor) {
        let _ = self.may_send(now, self.acked + 1, governor);
        self.output(now, self.acked + 1);
    }

    /// Whether this is the SYN, which carries nothing.
    fn is_syn(&self, seq: i64) -> bool {
        self.handshake && seq == 0
    }

    /// `output()`.
    fn output(&mut self, now: Time, seq: i64) {
        let syn = self.is_syn(seq);
        let idle = self.acked == self.highest_sent;
        let outgoing = Outgoing {
            seq: seq as u64,
            size: if syn { SYN_BYTES } else { self.packet as u32 },
            retransmission: seq <= self.highest_sent,
        };
        self.outbox.push_back(outgoing);
        if seq > self.highest_sent {
            self.highest_sent = seq;
            self.sent_at.push_back(now);
            if !self.timing {
                self.timing = true;
                if seq > self.timed_seq {
                    self.timed_seq = seq;
                    self.timed_at = now;
                }
            }
        } else if let Some(sent_at) = self.sent_at.get_mut((seq - self.acked - 1).max(0) as usize) {
            *sent_at = now;
        }
        if self.deadline == Time::NEVER || idle {
            self.deadline = now + self.rtt.rto();
        }
    }

    /// `recv()`.
    #[inline(never)]
    pub(super) fn on_ack(
        &mut self,
        now: Time,
        ack: &Packet,
        governor: &mut Governor,
        supply: &mut Supply,
    ) {
        let number = ack.seq as i64 - 1;
        if number > self.highest_sent {
            return;
        }
        if number > self.acked {
            if number >= self.recover || self.cut != Cut::DupAck {
                if self.dupwnd > 0 {
                    self.dupwnd = 0;
                    if self.cut == Cut::DupAck {
                        self.cut = Cut::Exited;
                    }
                }
                self.first_partial = false;
                let limited = supply.unsent == 0 && supply.silence() == Silence::Application;
                self.new_ack(now, ack, governor, limited);
            } else {
                self.partial_ack(now, number, ack, governor);
            }
        } else if number == self.acked {
            self.duplicate_ack(now, governor, supply);
        }
        self.burst = match self.dupacks {
            0 => u32::MAX,
            DUPACKS.. => RECOVERY_BURST,
            _ => 0,
        };
    }

    /// `newack()` and `opencwnd()`.
    fn new_ack(&mut self, now: Time, ack: &Packet, governor: &mut Governor, app_limited: bool) {
        let number = ack.seq as i64 - 1;
        self.dupacks = 0;
        let syn = self.handshake && self.acked < 0;
        let sent_at = self.advance(number);
        let rtt = now.since(ack.sent_at);
        if self.timestamps {
            self.rtt.sample(rtt, ack.sent_at.0);
        }
        if self.timing && number >= self.timed_seq {
            self.timing = false;
            self.rtt.end_back_off();
            if !self.timestamps {
                self.rtt.sample(now.since(self.timed_at), self.timed_at.0);
            }
        }
        self.deadline = now + self.rtt.rto();
        self.stats.sample(rtt);
        self.min_rtt = self.min_rtt.min(rtt.0);
        // ns-2 counts ACKs, not bytes: one packet of credit each, none for the SYN's.
        let credit = if syn { 0 } else { self.packet };
        let record = self.record(now, sent_at, rtt, credit);
        // It grows a window that the application does not fill, too (`control_increase_` 0).
        governor.coupled.on_ack(
            governor.id,
            &Ack { cwnd_limited: 1, app_limited: u64::from(app_limited), ..record },
        );
        self.allowed = Allowed::read(governor, self.packet);
    }

    /// `partialnewack_helper()` and `partialnewack()`.
    fn partial_ack(&mut self, now: Time, number: i64, ack: &Packet, governor: &mut Governor) {
        if !self.impatient || !self.first_partial {
            self.first_partial = true;
            self.deadline = now + self.rtt.rto();
        }
        let newly = number - self.acked;
        let mut deflate = 0;
        if !self.deflation {
            self.dupwnd = 0;
        } else if self.dupwnd > newly {
            self.dupwnd -= newly - 1;
        } else {
            deflate = newly - self.dupwnd;
            self.dupwnd = 1;
        }
        let sent_at = self.advance(number);
        if self.timing && number >= self.timed_seq {
            self.timing = false;
            self.rtt.end_back_off();
        }
        let rtt = now.since(ack.sent_at);
        let record = self.record(now, sent_at, rtt, newly as u64 * self.packet);
        governor.coupled.on_ack(governor.id, &Ack { recovering: 1, cwnd_limited: 1, ..record });
        if deflate > 0 {
            self.tell_loss(now, LossKind::Deflate, deflate as u64 * self.packet, governor);
        }
        self.repair(now, governor);
        self.tell_loss(now, LossKind::More, self.packet, governor);
    }

    fn duplicate_ack(&mut self, now: Time, governor: &mut Governor, supply: &mut Supply) {
        self.dupacks += 1;
        if self.dupacks == DUPACKS {
            if self.acked > self.recover {
                self.recover = self.highest_sent;
                self.deadline = now + self.rtt.rto();
                self.timing = false;
                self.cut = Cut::DupAck;
                self.stats.recoveries += 1;
                self.tell_loss(now, LossKind::Gap, self.packet, governor);
                self.repair(now, governor);
                self.dupwnd = i64::from(DUPACKS);
            }
        } else if self.dupacks > DUPACKS && self.cut == Cut::DupAck {
            self.dupwnd += 1;
        } else if self.dupacks < DUPACKS {
            self.limited_transmit(now, governor, supply);
        }
    }

    /// `send_one()` (RFC 3042).
    fn limited_transmit(&mut self, now: Time, governor: &mut Governor, supply: &mut Supply) {
        let window = (self.allowed.cwnd / self.packet) as i64 + i64::from(self.dupacks);
        if self.next > self.acked + window.min(self.receiver_window) {
            return;
        }
        let fresh = self.next > self.highest_sent;
        if (fresh && supply.unsent == 0) || !self.may_send(now, self.next, governor) {
            return;
        }
        if fresh {
            supply.take(self.payload);
        }
        self.output(now, self.next);
        self.next += 1;
    }

    /// `highest_ack_` moves up to `number`; returns the send time of the newest packet it covers.
    fn advance(&mut self, number: i64) -> Time {
        let mut sent_at = Time(0);
        for _ in self.acked..number {
            sent_at = self.sent_at.pop_front().unwrap_or_default();
        }
        self.acked = number;
        self.next = self.next.max(number + 1);
        sent_at
    }

    fn record(&self, now: Time, sent_at: Time, rtt: Span, acked: u64) -> Ack {
        Ack {
            now,
            sent_at,
            rtt,
            srtt: self.rtt.srtt(),
            min_rtt: Span(if self.min_rtt == u64::MAX { rtt.0 } else { self.min_rtt }),
            rtt_max: rtt,
            batch_rtt_min: rtt,
            acked: Bytes(acked),
            inflight: self.inflight(),
            prior_inflight: self.inflight() + Bytes(acked),
            delivered: Bytes((self.acked + 1) as u64 * self.packet),
            ..Ack::default()
        }
    }

    fn tell_loss(&mut self, now: Time, kind: LossKind, lost: u64, governor: &mut Governor) {
        if kind != LossKind::Deflate {
            self.stats.declared_lost_bytes += lost;
        }
        let loss = Loss {
            now,
            sent_at: self.sent_at.front().copied().unwrap_or_default(),
            lost: Bytes(lost),
            inflight: self.inflight(),
            kind,
            ..Loss::default()
        };
        governor.coupled.on_loss(governor.id, &loss);
        self.allowed = Allowed::read(governor, self.packet);
    }

    #[inline(never)]
    pub(super) fn on_deadline(&mut self, now: Time, governor: &mut Governor, _supply: &mut Supply) {
        if now >= self.allowed.timer {
            governor.coupled.on_timer(governor.id, now);
            self.allowed = Allowed::read_after_timer(now, governor, self.packet);
        }
        if now >= self.deadline {
            self.timeout(now, governor);
        }
    }

    /// `timeout()`: go back to the first unacknowledged packet. Of a packet that times out again, ns-2 lowers the
    /// threshold again.
    fn timeout(&mut self, now: Time, governor: &mut Governor) {
        self.dupwnd = 0;
        self.dupacks = 0;
        self.recover = self.highest_sent;
        self.cut = Cut::Timeout;
        if self.acked == self.highest_sent {
            // ns-2 never stops this timer, so idling longer than it restarts the window
            // (`restart_bugfix_`: without cutting ssthresh). Once is enough.
            self.deadline = Time::NEVER;
            self.tell_loss(now, LossKind::Idle, 0, governor);
            return;
        }
        self.stats.timeouts += 1;
        let lost = self.inflight().0;
        self.tell_loss(now, LossKind::Timeout, lost, governor);
        self.rtt.back_off();
        self.deadline = now + self.rtt.rto();
        self.next = self.acked + 1;
        self.timing = false;
        self.burst = u32::MAX;
    }
}

#[cfg(test)]
#[path = "tests/ns2.rs"]
mod tests;
