//! What a sender knows when a packet is about to leave: the 55 numbers of LP-TCP's sensing engine
//! (Kong, Zang and Ma, `NetAI` 2018, section 3.1). Training and use both read them from here, so that
//! a policy sees in use what it was fitted on.
//!
//! The groups and their sizes are the paper's. What it leaves open is proposed: gain 1/8; minima over
//! the whole connection; a ratio is a sample over the smallest so far; series run from old to new
//! and begin filled with their first sample, 0 before it. Times are in seconds.
use super::Ewma;
use crate::control::{Ack, Control, Loss, LossKind, Send};
use crate::units::{Bytes, Time};
use std::collections::VecDeque;

/// How many numbers there are.
pub const FEATURES: usize = 55;

/// Length of each series.
const RECENT: usize = 8;
/// Weight of a new sample in the averages (source: Remy's ns-2 code, which the paper cites for them).
const GAIN: f64 = 1.0 / 8.0;
/// Least divisor of a ratio, in seconds: packets that leave together have no time between them.
const MIN_S: f64 = 1e-6;
/// Most retransmissions remembered.
const RETRANSMISSIONS_MAX: usize = 1024;

/// Where each number lies.
const CWND: usize = 0;
const ORDER: usize = 1;
const ACK_GAP_MEAN: usize = 2;
const ACK_GAPS: Places = Places { recent: 3, min: 11, ratios: 31 };
const SEND_GAP_MEAN: usize = 12;
const SEND_GAPS: Places = Places { recent: 13, min: 21, ratios: 39 };
const RTTS: Places = Places { recent: 22, min: 30, ratios: 47 };

/// Keeps the numbers of one flow up to date.
#[derive(Clone, Debug)]
pub struct SendState {
    values: [f32; FEATURES],
    mss: f64,
    ack_gaps: Series,
    send_gaps: Series,
    rtts: Series,
    ack_gap_mean: Ewma,
    send_gap_mean: Ewma,
    last_ack: Option<Time>,
    last_send: Option<Time>,
    recovering: bool,
    /// When the latest retransmissions left, oldest first.
    retransmissions: VecDeque<Time>,
}

impl SendState {
    /// Of a flow that has sent nothing; `mss` is the size of a full packet.
    pub fn new(mss: Bytes) -> Self {
        Self {
            values: [0.0; FEATURES],
            mss: mss.0.max(1) as f64,
            ack_gaps: Series::new(ACK_GAPS),
            send_gaps: Series::new(SEND_GAPS),
            rtts: Series::new(RTTS),
            ack_gap_mean: Ewma::new(GAIN),
            send_gap_mean: Ewma::new(GAIN),
            last_ack: None,
            last_send: None,
            recovering: false,
            retransmissions: VecDeque::new(),
        }
    }

    /// Something new was acknowledged. A record for several packets counts as that many equal gaps
    /// and round trips, except in recovery, where one acknowledgement covers what waited behind a
    /// hole.
    pub fn on_ack(&mut self, ack: &Ack) {
        let packets = (ack.acked.0 as f64 / self.mss).max(1.0);
        let count = if ack.recovering == 1 { 1.0 } else { packets };
        if let Some(last) = self.last_ack {
            let gap_s = ack.now.since(last).as_secs_f64() / count;
            self.ack_gap_mean.update(gap_s, count);
            self.values[ACK_GAP_MEAN] = self.ack_gap_mean.value() as f32;
            self.ack_gaps.take(&mut self.values, gap_s, count);
        }
        self.last_ack = Some(ack.now);
        if ack.rtt.0 > 0 && !self.was_retransmitted(Time(ack.now.0.saturating_sub(ack.rtt.0))) {
            self.rtts.take(&mut self.values, ack.rtt.as_secs_f64(), count);
        }
        self.recovering = ack.recovering == 1;
    }

    /// Something was lost: recovery lasts until an acknowledgement ends it.
    pub fn on_loss(&mut self, loss: &Loss) {
        let repairs =
            matches!(loss.kind, LossKind::Gap | LossKind::Timeout | LossKind::TimeoutAgain);
        self.recovering |= repairs;
    }

    /// The packet leaves.
    pub fn on_sent(&mut self, send: &Send) {
        if let Some(last) = self.last_send {
            let gap_s = send.now.since(last).as_secs_f64();
            self.send_gap_mean.update(gap_s, 1.0);
            self.values[SEND_GAP_MEAN] = self.send_gap_mean.value() as f32;
            self.send_gaps.take(&mut self.values, gap_s, 1.0);
        }
        self.last_send = Some(send.now);
        if send.retransmission == 1 && self.retransmissions.back() != Some(&send.now) {
            if self.retransmissions.len() == RETRANSMISSIONS_MAX {
                self.retransmissions.pop_front();
            }
            self.retransmissions.push_back(send.now);
        }
    }

    /// The numbers for a packet that is about to leave, before [`on_sent`](Self::on_sent).
    pub fn features(&mut self, control: &Control, send: &Send) -> &[f32; FEATURES] {
        self.values[CWND] = (control.cwnd.0 as f64 / self.mss) as f32;
        self.values[ORDER] = send.order as f32;
        &self.values
    }

    /// Whether the flow is in congestion avoidance: neither in slow start nor repairing a loss.
    pub fn in_avoidance(&self, control: &Control) -> bool {
        !self.recovering && control.cwnd >= control.ssthresh
    }

    /// Whether a retransmission left then: its round trip is no sample. Asked in order of time.
    fn was_retransmitted(&mut self, sent_at: Time) -> bool {
        while self.retransmissions.front().is_some_and(|&left| left < sent_at) {
            self.retransmissions.pop_front();
        }
        self.retransmissions.front() == Some(&sent_at)
    }
}

/// Where the numbers of a series lie.
#[derive(Clone, Copy, Debug)]
struct Places {
    /// Its last samples.
    recent: usize,
    /// Its smallest sample.
    min: usize,
    /// The ratios of the last samples to the smallest before and with each.
    ratios: usize,
}

#[derive(Clone, Debug)]
struct Series {
    places: Places,
    min_s: Option<f64>,
}

impl Series {
    fn new(places: Places) -> Self {
        Self { places, min_s: None }
    }

    /// Takes in `count` equal samples.
    fn take(&mut self, values: &mut [f32; FEATURES], sample_s: f64, count: f64) {
        let Places { recent, min, ratios } = self.places;
        let min_s = self.min_s.map_or(sample_s, |min_s| min_s.min(sample_s));
        let count = if self.min_s.is_none() { RECENT } else { (count as usize).clamp(1, RECENT) };
        self.min_s = Some(min_s);
        values[min] = min_s as f32;
        append(&mut values[recent..recent + RECENT], sample_s as f32, count);
        let ratio = sample_s / min_s.max(MIN_S);
        append(&mut values[ratios..ratios + RECENT], ratio as f32, count);
    }
}

fn append(series: &mut [f32], sample: f32, count: usize) {
    series.copy_within(count.., 0);
    let kept = series.len() - count;
    series[kept..].fill(sample);
}

#[cfg(test)]
#[path = "tests/sends.rs"]
mod tests;
