//! Ways to end slow start before it overflows the queue: Linux's `HyStart` and `HyStart++` (RFC 9406).
//! Google QUIC's variant is in `quic/hystart.rs`.
use crate::control::Ack;
use crate::units::{Bytes, Span, Time};

/// Smallest window in which round trips are examined, packets (Linux: `hystart_low_window`).
pub const WINDOW_MIN: u64 = 16;
/// Samples of a round before its smallest counts (RFC 9406 section 4.3: `N_RTT_SAMPLE`).
pub const SAMPLES_MIN: u64 = 8;

const THRESHOLD_MIN: Span = Span::from_millis(4);
const THRESHOLD_MAX: Span = Span::from_millis(16);
const THRESHOLD_DIVISOR: u64 = 8;

/// By how much a round trip above `base` shows a queue: an eighth of it, 4 to 16 ms (Ha and Rhee
/// 2011; RFC 9406 section 4.3).
pub fn delay_threshold(base: Span) -> Span {
    (base / THRESHOLD_DIVISOR).clamp(THRESHOLD_MIN, THRESHOLD_MAX)
}

/// Longest gap between ACKs of one train.
const TRAIN_GAP: Span = Span::from_millis(2);
/// Longest time that Linux allows for ACKs held together by offloading.
const OFFLOAD_MAX: Span = Span::from_millis(1);
/// Bytes of four of Linux's largest segments before segmentation.
const OFFLOAD_BYTES: u64 = 4 * 65_536;

/// `HyStart` as in Linux 6 (`net/ipv4/tcp_cubic.c`; Ha and Rhee 2011): slow start ends when the
/// ACKs of a round come as one train for half of the smallest round trip (for all of it where the sender paces, which
/// spreads a window over the round trip by itself), or when the smallest round trip of a round exceeds the smallest of all by [`delay_threshold`].
#[derive(Clone, Debug, Default)]
pub struct Linux {
    /// An ACK of a packet sent at this time or later starts the next round.
    round_start: Time,
    /// Newest ACK of the round's train.
    train_end: Time,
    /// Smallest sample so far; zero for none.
    min_rtt: Span,
    /// Smallest sample of the round; zero for none.
    round_min: Span,
    /// ACKs with a sample in the round.
    acks: f64,
    found: bool,
    /// The sender paces.
    paces: bool,
}

impl Linux {
    /// For a sender that paces or does not.
    pub fn new(paces: bool) -> Self {
        Self { paces, ..Self::default() }
    }

    /// Takes in a sample outside of slow start.
    pub fn sample(&mut self, rtt: Span) {
        if rtt > Span::ZERO {
            self.min_rtt = smaller(self.min_rtt, rtt);
        }
    }

    /// An ACK in slow start, with the window before it: whether slow start ends here. Once it has,
    /// the answer is no until [`Linux::restart`].
    pub fn on_ack(&mut self, ack: &Ack, cwnd: Bytes, packet: Bytes) -> bool {
        self.sample(ack.rtt);
        if self.found || ack.rtt == Span::ZERO {
            return false;
        }
        if ack.sent_at >= self.round_start {
            self.round_start = ack.now;
            self.train_end = ack.now;
            self.round_min = Span::ZERO;
            self.acks = 0.0;
        }
        if cwnd.0 / WINDOW_MIN < packet.0 {
            return false;
        }
        let acks = acks_of(ack, packet);
        self.found = self.train_is_long(ack, cwnd, acks) | self.delay_has_grown(ack.rtt, acks);
        self.found
    }

    /// A record of several ACKs belongs to the train if their mean gap does.
    fn train_is_long(&mut self, ack: &Ack, cwnd: Bytes, acks: f64) -> bool {
        let gap = ack.now.since(self.train_end);
        if gap.0 as f64 > TRAIN_GAP.0 as f64 * acks {
            return false;
        }
        self.train_end = ack.now;
        let longest = self.min_rtt + offload_delay(ack.srtt, cwnd);
        ack.now.since(self.round_start) > if self.paces { longest } else { longest / 2 }
    }

    fn delay_has_grown(&mut self, rtt: Span, acks: f64) -> bool {
        self.round_min = smaller(self.round_min, rtt);
        self.acks += acks;
        self.acks > SAMPLES_MIN as f64
            && self.round_min > self.min_rtt + delay_threshold(self.min_rtt)
    }

    /// After a time-out, Linux forgets what it knew of the path and looks again.
    pub fn restart(&mut self) {
        *self = Self::new(self.paces);
    }
}

/// How many ACKs a record stands for: as many as its newest one, whose size `prior_inflight` tells, goes into it;
/// one for each two packets where that is not known.
fn acks_of(ack: &Ack, packet: Bytes) -> f64 {
    let newest = match ack.prior_inflight.0.saturating_sub(ack.inflight.0) {
        0 => 2 * packet.0,
        newest => newest.max(packet.0),
    };
    (ack.acked.0 as f64 / newest.max(1) as f64).max(1.0)
}

/// The smaller of two samples; zero means no sample.
fn smaller(known: Span, rtt: Span) -> Span {
    if known == Span::ZERO { rtt } else { known.min(rtt) }
}

/// How long segmentation and receive offload may hold ACKs together: four of the largest segments
/// at the rate that Linux books for a flow in slow start, two windows per round trip; at most 1 ms.
fn offload_delay(srtt: Span, cwnd: Bytes) -> Span {
    let time = u128::from(OFFLOAD_BYTES) * u128::from(srtt.0) / u128::from(2 * cwnd.0.max(1));
    Span(u64::try_from(time).unwrap_or(u64::MAX)).min(OFFLOAD_MAX)
}

/// By how much conservative slow start is slower (RFC 9406 section 4.3).
pub const CSS_GROWTH_DIVISOR: f64 = 4.0;
const CSS_ROUNDS: u32 = 5;

/// `HyStart++`: leaves slow start when round trips grow (RFC 9406 section 4.2).
#[derive(Clone, Debug)]
pub struct Plus {
    /// An ACK of a packet sent after this ends the round.
    round_start: Time,
    last_round_min: Span,
    round_min: Span,
    /// Packets acknowledged with a sample in this round.
    samples: f64,
    conservative: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Debug)]
struct Css {
    baseline_min: Span,
    rounds: u32,
}

/// How slow start continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At full speed.
    Full,
    /// Slower by [`CSS_GROWTH_DIVISOR`].
    Conservative,
    /// It ends.
    Exit,
}

impl Default for Plus {
    fn default() -> Self {
        Self {
            round_start: Time(0),
            last_round_min: Span::MAX,
            round_min: Span::MAX,
            samples: 0.0,
            conservative: None,
        }
    }
}

impl Plus {
    /// An ACK in slow start that delivers `acked` packets.
    pub fn on_ack(&mut self, ack: &Ack, acked: f64) -> Pace {
        if ack.sent_at >= self.round_start {
            self.start_round(ack.now);
        }
        if self.conservative.as_ref().is_some_and(|css| css.rounds >= CSS_ROUNDS) {
            return Pace::Exit;
        }
        if ack.rtt > Span::ZERO {
            self.round_min = self.round_min.min(ack.rtt);
            self.samples += acked;
        }
        if self.samples >= SAMPLES_MIN as f64 {
            self.judge();
        }
        if self.conservative.is_some() { Pace::Conservative } else { Pace::Full }
    }

    fn start_round(&mut self, now: Time) {
        self.round_start = now;
        self.last_round_min = self.round_min;
        self.round_min = Span::MAX;
        self.samples = 0.0;
        if let Some(css) = &mut self.conservative {
            css.rounds += 1;
        }
    }

    fn judge(&mut self) {
        if let Some(css) = &self.conservative {
            if self.round_min < css.baseline_min {
                self.conservative = None; // the growth was a spike, not a queue
            }
            return;
        }
        // An unknown last round is `Span::MAX`, which the sum keeps: no sample reaches it.
        let limit = self.last_round_min + delay_threshold(self.last_round_min);
        if self.round_min < Span::MAX && self.round_min >= limit {
            self.conservative = Some(Css { baseline_min: self.round_min, rounds: 0 });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKET: Bytes = Bytes(1000);

    fn at(ms: f64) -> Time {
        Time::from_secs_f64(ms / 1e3)
    }

    fn ack(now_ms: f64, rtt_ms: f64) -> Ack {
        let rtt = Span((rtt_ms * 1e6) as u64);
        Ack {
            now: at(now_ms),
            sent_at: at(now_ms - rtt_ms),
            rtt,
            srtt: rtt,
            acked: Bytes(2000),
            ..Ack::default()
        }
    }

    /// One round of ACKs `gap_ms` apart, of packets sent as one burst, from `start_ms` on: the
    /// times after which slow start ended, in ms from the first ACK.
    fn round(hystart: &mut Linux, start_ms: f64, rtt_ms: f64, gap_ms: f64, acks: u32) -> Vec<f64> {
        let burst = at(start_ms - rtt_ms);
        let ends = |index: &u32| {
            let after = f64::from(*index) * gap_ms;
            let ack = Ack { sent_at: burst, ..ack(start_ms + after, rtt_ms) };
            hystart.on_ack(&ack, PACKET * 40, PACKET).then_some(after)
        };
        (0..acks).collect::<Vec<_>>().iter().filter_map(ends).collect()
    }

    #[test]
    fn a_train_of_acks_longer_than_half_the_round_trip_ends_slow_start() {
        // (100 + 1) / 2 = 50.5 ms; gaps of 2 ms belong to the train.
        assert_eq!(round(&mut Linux::default(), 200.0, 100.0, 2.0, 40), [52.0]);
        assert_eq!(round(&mut Linux::default(), 200.0, 100.0, 2.0, 26), [0.0; 0]);
    }

    #[test]
    fn where_the_sender_paces_a_train_may_last_the_round_trip() {
        // Linux halves the threshold for sockets without pacing only: 101 ms, after a time-out, too.
        let mut hystart = Linux::new(true);
        assert_eq!(round(&mut hystart, 200.0, 100.0, 2.0, 60), [102.0]);
        hystart.restart();
        assert_eq!(round(&mut hystart, 400.0, 100.0, 2.0, 51), [0.0; 0]);
        assert_eq!(round(&mut hystart, 600.0, 100.0, 2.0, 60), [102.0]);
    }

    #[test]
    fn a_gap_of_more_than_two_milliseconds_ends_the_train() {
        assert_eq!(round(&mut Linux::default(), 200.0, 100.0, 2.1, 47), [0.0; 0]);
        let mut hystart = Linux::default();
        assert_eq!(round(&mut hystart, 200.0, 100.0, 1.0, 40), [0.0; 0]);
        // The round goes on, but after 39 ms the train was over.
        for after in [42.0, 43.0, 44.0, 60.0, 61.0] {
            let late = Ack { sent_at: at(100.0), ..ack(200.0 + after, 100.0) };
            assert!(!hystart.on_ack(&late, PACKET * 40, PACKET), "{after}");
        }
    }

    #[test]
    fn a_packet_sent_in_the_round_starts_a_new_train() {
        let mut hystart = Linux::default();
        assert_eq!(round(&mut hystart, 200.0, 100.0, 2.0, 26), [0.0; 0]);
        // Sent when the first ACK came, at 200 ms.
        assert_eq!(round(&mut hystart, 300.0, 100.0, 2.0, 40), [52.0]);
    }

    #[test]
    fn offloading_may_hold_acks_for_up_to_a_millisecond() {
        let millis = Span::from_millis;
        assert_eq!(offload_delay(millis(100), Bytes(40_000)), millis(1));
        // 262 144 bytes at two windows of 10 MB in 10 ms.
        assert_eq!(offload_delay(millis(10), Bytes(10_000_000)), Span(131_072));
    }

    #[test]
    fn more_than_eight_samples_an_eighth_above_the_minimum_end_slow_start() {
        // 60 ms + 7.5 ms; gaps of 3 ms are no train.
        for (rtt_ms, found) in [(67.0, vec![]), (68.0, vec![24.0])] {
            let mut hystart = Linux::default();
            round(&mut hystart, 100.0, 60.0, 3.0, 20);
            assert_eq!(round(&mut hystart, 200.0, rtt_ms, 3.0, 20), found, "{rtt_ms} ms");
        }
    }

    #[test]
    fn one_short_sample_of_the_round_keeps_slow_start() {
        let mut hystart = Linux::default();
        round(&mut hystart, 100.0, 60.0, 3.0, 20);
        assert_eq!(round(&mut hystart, 200.0, 61.0, 3.0, 1), [0.0; 0]);
        let late = |after| Ack { sent_at: at(139.0), ..ack(200.0 + after, 61.0 + after) };
        for index in 1..20 {
            let ack = late(3.0 * f64::from(index));
            assert!(!hystart.on_ack(&ack, PACKET * 40, PACKET), "{index}");
        }
    }

    #[test]
    fn the_delay_threshold_is_an_eighth_within_four_and_sixteen_milliseconds() {
        for (base_ms, expected_ms) in [(8, 4), (32, 4), (80, 10), (128, 16), (400, 16)] {
            let threshold = delay_threshold(Span::from_millis(base_ms));
            assert_eq!(threshold, Span::from_millis(expected_ms), "{base_ms} ms");
        }
    }

    #[test]
    fn below_sixteen_packets_nothing_ends_slow_start() {
        let mut hystart = Linux::default();
        let burst = at(100.0);
        for after in 0..60 {
            let ack = Ack { sent_at: burst, ..ack(200.0 + f64::from(after), 100.0) };
            assert!(!hystart.on_ack(&ack, Bytes(15_999), PACKET));
        }
    }

    #[test]
    fn the_exit_is_found_once_and_again_after_a_time_out() {
        let mut hystart = Linux::default();
        assert_eq!(round(&mut hystart, 200.0, 100.0, 2.0, 40), [52.0]);
        assert_eq!(round(&mut hystart, 400.0, 100.0, 2.0, 40), [0.0; 0]);
        hystart.restart();
        assert_eq!(round(&mut hystart, 600.0, 100.0, 2.0, 40), [52.0]);
    }

    #[test]
    fn a_record_of_many_acks_is_judged_by_their_mean_gap() {
        // Packets of a record every 10 ms, and of its newest ACK, if that is known: in pairs, ten are an ACK every
        // 2 ms and eight are not; acknowledged singly, five are.
        let unknown = [(10, 0, true), (8, 0, false)];
        let known = [(10, 2, true), (8, 2, false), (5, 1, true), (4, 1, false), (10, 10, false)];
        for (packets, newest, found) in unknown.into_iter().chain(known) {
            let mut hystart = Linux::default();
            let mut ends = |after: f64| {
                let record = Ack {
                    acked: PACKET * packets,
                    inflight: PACKET * 20,
                    prior_inflight: PACKET * (20 + newest) * u64::from(newest > 0),
                    sent_at: at(100.0),
                    ..ack(200.0 + after, 100.0)
                };
                hystart.on_ack(&record, PACKET * 40, PACKET)
            };
            let ended = (0..10).any(|index| ends(f64::from(index) * 10.0));
            assert_eq!(ended, found, "{packets} packets, {newest} in the newest ACK");
        }
    }
}
