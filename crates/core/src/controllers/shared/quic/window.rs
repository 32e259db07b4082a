//! A congestion window in bytes by the rules of Google's QUIC stack.
use crate::control::{Ack, FlowInfo, Loss, LossKind};
use crate::params::Params;
use crate::units::{Bytes, Time};

/// The experiments of the papers that ran this stack cap the window here.
const PACKETS_MAX: u64 = 2000;
/// A window counts as used with at most this much of it free.
const BURST_PACKETS: u64 = 3;

/// Grows by counted packets; reduced at most once per round trip, by rate reduction.
#[derive(Clone, Debug)]
pub struct Window {
    /// Unit of the arithmetic.
    mss: u64,
    /// Size of a full packet.
    packet: u64,
    cwnd: u64,
    cwnd_min: u64,
    ssthresh: u64,
    /// Acknowledged since the last growth or reduction.
    credit: u64,
    /// When the newest acknowledged packet was sent.
    newest_acked: Time,
    /// In flight before the latest acknowledgement.
    prior_inflight: u64,
    cutback: Option<Cutback>,
}

/// The latest reduction.
#[derive(Clone, Debug)]
struct Cutback {
    at: Time,
    inflight: u64,
    delivered: u64,
}

impl Window {
    /// The flow's initial window, never below `cwnd_min` packets. `params` holds [`super::MSS`].
    pub fn new(flow: &FlowInfo, params: &Params, cwnd_min: u64) -> Self {
        let packet = flow.mss.0.max(1);
        let mss = match params.number(super::MSS.name) as u64 {
            0 => packet,
            mss => mss,
        };
        let cwnd_min = cwnd_min * mss;
        let initial = flow.initial_cwnd.0 / packet;
        let scaled = u128::from(flow.initial_ssthresh.0) * u128::from(mss) / u128::from(packet);
        Self {
            mss,
            packet,
            cwnd: initial.saturating_mul(mss).clamp(cwnd_min, PACKETS_MAX * mss),
            cwnd_min,
            ssthresh: match flow.initial_ssthresh.0 {
                u64::MAX => u64::MAX,
                _ => u64::try_from(scaled).unwrap_or(u64::MAX),
            },
            credit: 0,
            newest_acked: Time(0),
            prior_inflight: 0,
            cutback: None,
        }
    }

    /// The window.
    pub fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd)
    }

    /// The window in whole packets of the arithmetic.
    pub fn packets(&self) -> u64 {
        self.cwnd / self.mss
    }

    /// What the arithmetic takes for a packet.
    pub fn mss(&self) -> u64 {
        self.mss
    }

    /// Size of a full packet of the flow.
    pub fn packet(&self) -> u64 {
        self.packet
    }

    /// The slow-start threshold.
    pub fn ssthresh(&self) -> Bytes {
        Bytes(self.ssthresh)
    }

    /// Whether the window grows exponentially.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Ends slow start where the window is.
    pub fn leave_slow_start(&mut self) {
        self.ssthresh = self.cwnd;
    }

    /// Takes in what an acknowledgement says of flight and recovery; before anything else.
    pub fn note(&mut self, ack: &Ack) {
        self.prior_inflight = ack.prior_inflight.0;
        self.newest_acked = self.newest_acked.max(ack.sent_at);
        if let Some(cutback) = &mut self.cutback {
            cutback.delivered = cutback.delivered.saturating_add(ack.acked.0);
        }
    }

    /// Whether nothing sent since the latest reduction has been acknowledged.
    pub fn in_recovery(&self) -> bool {
        self.cutback.as_ref().is_some_and(|cutback| self.newest_acked < cutback.at)
    }

    /// Whether a packet sent at `sent_at` left after the latest reduction, so that its fate calls
    /// for another.
    pub fn answers(&self, sent_at: Time) -> bool {
        self.cutback.as_ref().is_none_or(|cutback| sent_at >= cutback.at)
    }

    /// Whether a loss calls for a reduction. A congestion mark that the sender reports as a loss of
    /// nothing is already one per round trip.
    pub fn answers_loss(&self, loss: &Loss) -> bool {
        loss.lost == Bytes::ZERO || self.answers(loss.sent_at)
    }

    /// Sets window and threshold to `cwnd`, which may be more than it was.
    pub fn cut_to(&mut self, now: Time, cwnd: u64) {
        let inflight = self.prior_inflight.min(self.cwnd);
        self.set(cwnd);
        self.ssthresh = self.cwnd;
        self.cutback = Some(Cutback { at: now, inflight, delivered: 0 });
    }

    /// Answers a time-out: half the window becomes the threshold, the window closes. The stack lowers the threshold
    /// at each; here it stays where the loss was answered before, as RFC 5681 section 3.1 has it.
    pub fn restart(&mut self, loss: &Loss) {
        if loss.kind != LossKind::TimeoutAgain {
            self.ssthresh = self.cwnd / 2;
        }
        self.set(0);
        self.cutback = None;
    }

    /// Sets the window within its bounds, without a recovery.
    pub fn set(&mut self, cwnd: u64) {
        self.cwnd = cwnd.clamp(self.cwnd_min, PACKETS_MAX * self.mss);
        self.credit = 0;
    }

    /// Whether at most three packets of the window were free before the latest acknowledgement, in
    /// slow start half of it.
    pub fn is_limited(&self) -> bool {
        let free = self.cwnd.saturating_sub(self.prior_inflight);
        let half_used = self.in_slow_start() && self.prior_inflight > self.cwnd / 2;
        half_used || free <= BURST_PACKETS * self.mss
    }

    /// One packet more per packet acknowledged, up to the first that reaches the threshold: a record
    /// of many acknowledgements goes no further than they would one by one.
    pub fn grow_exponentially(&mut self, acked: Bytes) {
        let grown = u128::from(acked.0) * u128::from(self.mss) / u128::from(self.packet);
        let packets = self.ssthresh.saturating_sub(self.cwnd).div_ceil(self.mss);
        let grown = grown.min(u128::from(packets.saturating_mul(self.mss)));
        let cwnd_max = PACKETS_MAX * self.mss;
        self.cwnd = self.cwnd.saturating_add(grown.min(u128::from(cwnd_max)) as u64).min(cwnd_max);
    }

    /// One packet more per window / `alpha` packets acknowledged, both divisions rounded as the
    /// stack rounds them. With `when_limited` only while the window is used.
    pub fn grow_additively(&mut self, acked: Bytes, alpha: u64, when_limited: bool) {
        let grows = |window: &Self| !when_limited || window.is_limited();
        if !grows(self) {
            return;
        }
        self.credit = self.credit.saturating_add(acked.0);
        while self.packets() < PACKETS_MAX && grows(self) {
            let needed = self.packets().div_ceil(alpha) * self.packet;
            if self.credit < needed {
                return;
            }
            self.credit -= needed;
            self.cwnd += self.mss;
        }
        self.credit = 0;
    }

    /// What may be in flight. The stack sends while less than its window is in flight, so that the
    /// last packet may exceed it; a sender of ours asks whether the packet fits. Nearly a packet more
    /// says the same, and at ten packets it is the difference between 9 and 10.
    pub fn allowed(&self) -> Bytes {
        Bytes(self.target() + self.packet - 1)
    }

    /// In recovery the stack's rate reduction (a form of RFC 6937) lets ssthresh / inflight bytes out
    /// for each one delivered, or two packets for one if there is room: the flight moves from what it
    /// was to the window while one flight is delivered. Stating it as a window makes it hold for
    /// reductions that no loss called for, of which a sender knows nothing.
    fn target(&self) -> u64 {
        let Some(cutback) = self.cutback.as_ref().filter(|_| self.in_recovery()) else {
            return self.cwnd;
        };
        let Cutback { inflight, delivered, .. } = *cutback;
        if inflight <= self.cwnd {
            return inflight.saturating_add(delivered).clamp(self.cwnd_min, self.cwnd);
        }
        let excess = u128::from(inflight - self.cwnd);
        let shed = excess * u128::from(delivered.min(inflight)) / u128::from(inflight);
        self.cwnd + (excess - shed) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;

    const MSS: u64 = 1000;

    fn window(packets: u64, ssthresh: u64) -> Window {
        with_mss(packets, ssthresh, 0)
    }

    fn with_mss(packets: u64, ssthresh: u64, mss: u64) -> Window {
        of(&flow(packets, ssthresh), mss)
    }

    fn flow(packets: u64, ssthresh: u64) -> FlowInfo {
        FlowInfo {
            mss: Bytes(MSS),
            initial_cwnd: Bytes(packets * MSS),
            initial_ssthresh: Bytes(ssthresh * MSS),
            recovery: Recovery::Sack,
            paces: false,
            start: Time(0),
            seed: 1,
        }
    }

    fn of(flow: &FlowInfo, mss: u64) -> Window {
        let given = [("mss_bytes".to_owned(), ParamValue::Number(mss as f64))];
        Window::new(flow, &Params::resolve(&[super::super::MSS], &given).unwrap(), 2)
    }

    /// Acknowledges one packet sent at `sent_at`, with `inflight` packets before it.
    fn ack(sent_at: u64, inflight: u64) -> Ack {
        let prior_inflight = Bytes(inflight * MSS);
        Ack { sent_at: Time(sent_at), acked: Bytes(MSS), prior_inflight, ..Ack::default() }
    }

    #[test]
    fn alpha_packets_are_gained_per_round_trip() {
        let mut window = window(20, 20);
        for _ in 0..20 {
            window.grow_additively(Bytes(MSS), 5, false);
        }
        // 4 acknowledgements for the first packet (20 / 5), then 5 each (21 / 5 to 23 / 5, rounded).
        assert_eq!(window.packets(), 24);
    }

    #[test]
    fn a_batch_grows_as_its_packets_would() {
        let (mut single, mut batch) = (window(10, 10), window(10, 10));
        (0..64).for_each(|_| single.grow_additively(Bytes(MSS), 3, false));
        batch.grow_additively(Bytes(64 * MSS), 3, false);
        assert_eq!(single.cwnd(), batch.cwnd());
    }

    #[test]
    fn more_than_three_free_packets_stop_growth_and_keep_the_count() {
        let mut window = window(10, 10);
        window.note(&ack(0, 6));
        window.grow_additively(Bytes(100 * MSS), 1, true);
        assert_eq!((window.packets(), window.credit), (10, 0));
        window.note(&ack(0, 7));
        window.grow_additively(Bytes(10 * MSS), 1, true);
        assert_eq!(window.packets(), 11);
    }

    #[test]
    fn a_reduction_is_answered_once_for_what_was_sent_before_it() {
        let mut window = window(20, 20);
        window.cut_to(Time(50), 10 * MSS);
        assert!(!window.answers(Time(49)));
        assert!(window.answers(Time(50)));
        window.note(&ack(49, 20));
        assert!(window.in_recovery());
        window.note(&ack(50, 20));
        assert!(!window.in_recovery());
    }

    #[test]
    fn in_recovery_the_flight_shrinks_in_proportion_to_what_is_delivered() {
        let mut window = window(20, 20);
        window.note(&ack(0, 20));
        window.cut_to(Time(50), 10 * MSS);
        assert_eq!(window.target(), 20 * MSS);
        (0..10).for_each(|_| window.note(&ack(1, 20)));
        assert_eq!(window.target(), 15 * MSS);
        (0..10).for_each(|_| window.note(&ack(1, 20)));
        assert_eq!(window.target(), 10 * MSS);
    }

    #[test]
    fn a_cutback_that_raises_the_window_lets_two_out_for_each_delivered() {
        let mut window = window(5, 5);
        window.note(&ack(0, 5));
        window.cut_to(Time(50), 10 * MSS);
        (0..3).for_each(|_| window.note(&ack(1, 5)));
        assert_eq!(window.target(), 8 * MSS);
        assert_eq!(window.cwnd(), Bytes(10 * MSS));
    }

    #[test]
    fn a_packet_may_leave_while_less_than_the_window_is_in_flight() {
        let window = window(20, 20);
        let inflight = 20 * MSS - 1;
        assert!(inflight + MSS <= window.allowed().0);
        assert!(inflight + 1 + MSS > window.allowed().0);
    }

    #[test]
    fn packets_are_counted_and_windows_grow_by_the_set_unit() {
        let mut window = with_mss(10, 20, 1100);
        assert_eq!(window.cwnd(), Bytes(11_000));
        window.grow_additively(Bytes(10 * MSS), 1, false);
        assert_eq!(window.cwnd(), Bytes(12_100));
        window.grow_exponentially(Bytes(MSS));
        assert_eq!(window.cwnd(), Bytes(13_200));
    }

    #[test]
    fn an_initial_threshold_is_counted_in_packets_of_the_set_unit() {
        assert_eq!(with_mss(10, 20, 1460).ssthresh(), Bytes(20 * 1460));
        assert_eq!(with_mss(20, 20, 500).ssthresh(), Bytes(20 * 500));
        assert!(!with_mss(20, 20, 1460).in_slow_start());
        let none = FlowInfo { initial_ssthresh: Bytes(u64::MAX), ..flow(10, 1) };
        assert_eq!(of(&none, 500).ssthresh(), Bytes(u64::MAX), "no threshold stays none");
    }

    #[test]
    fn the_window_stays_within_its_bounds() {
        let mut window = window(20, 2 * PACKETS_MAX);
        window.grow_exponentially(Bytes(u64::MAX));
        assert_eq!(window.packets(), PACKETS_MAX);
        window.cut_to(Time(1), 0);
        assert_eq!(window.packets(), 2);
    }

    #[test]
    fn exponential_growth_ends_with_the_packet_that_reaches_the_threshold() {
        let mut window = with_mss(10, 20, 1100);
        window.grow_exponentially(Bytes(1000 * MSS));
        assert_eq!(window.packets(), 20);
        assert!(!window.in_slow_start());
    }
}
