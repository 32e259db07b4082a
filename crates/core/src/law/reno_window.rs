//! The window of NewReno, shared by the controllers that are NewReno underneath.
use crate::control::{Ack, CWND_MAX, Control, FlowInfo, Loss, LossKind, Recovery};
use crate::units::{Bytes, Rate};

/// [`CWND_MAX`] for sums in floating point.
const BYTES_MAX: f64 = CWND_MAX.0 as f64;

/// Most packets of one record that are counted one by one, so that a record costs a bounded time.
pub const RECORD_PACKETS_MAX: usize = 4096;

/// The window of RFC 5681, shared by the controllers that are NewReno underneath.
#[derive(Clone, Debug)]
pub struct Window {
    mss: f64,
    /// Packets; fractional.
    pub cwnd: f64,
    /// Packets.
    pub ssthresh: f64,
    /// Window after idling (RFC 5681 section 4.1: the initial one; ns-2: one packet).
    restart: f64,
    /// Whether a loss halves the window (ns-2) or FlightSize (RFC 5681).
    pub half_of_window: bool,
    /// Window and threshold before the latest reduction.
    before: Option<(f64, f64)>,
}

impl Window {
    /// Starts in slow start with the flow's initial window.
    pub fn new(flow: &FlowInfo) -> Self {
        let mss = flow.mss.0.max(1) as f64;
        Self {
            mss,
            cwnd: (flow.initial_cwnd.0 as f64 / mss).clamp(1.0, BYTES_MAX / mss),
            ssthresh: flow.initial_ssthresh.0 as f64 / mss,
            restart: match flow.recovery {
                Recovery::Sack => flow.initial_cwnd.0 as f64 / mss,
                Recovery::Ns2 => 1.0,
            },
            half_of_window: flow.recovery == Recovery::Ns2,
            before: None,
        }
    }

    /// Whether the window grows exponentially.
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Largest window, packets.
    pub fn cwnd_max(&self) -> f64 {
        BYTES_MAX / self.mss
    }

    /// Acknowledged bytes in packets.
    pub fn packets(&self, bytes: Bytes) -> f64 {
        bytes.0 as f64 / self.mss
    }

    /// Packets in bytes, rounded down.
    pub fn bytes(&self, packets: f64) -> Bytes {
        Bytes((packets * self.mss) as u64)
    }

    /// Growth by RFC 5681: slow start, then one packet per round trip; none in recovery, nor while
    /// the window is not used.
    pub fn on_ack(&mut self, ack: &Ack) {
        if ack.recovering == 1 || ack.cwnd_limited == 0 {
            return;
        }
        let rest = self.slow_start(self.packets(ack.acked));
        if rest > 0.0 {
            self.avoid(rest, 1.0);
        }
    }

    /// Slow start up to `ssthresh`; what is left of `acked` (packets) is for congestion avoidance.
    pub fn slow_start(&mut self, acked: f64) -> f64 {
        if !self.in_slow_start() {
            return acked;
        }
        // An increment that reaches past ssthresh keeps its whole step, as in RFC 5681 and ns-2,
        // where one ACK is one step; only a batch is cut at the threshold.
        let step = acked.min((self.ssthresh - self.cwnd).max(1.0).ceil());
        self.grow(step);
        acked - step
    }

    /// Congestion avoidance: `per_rtt` packets per round trip, spread over it.
    pub fn avoid(&mut self, acked: f64, per_rtt: f64) {
        self.grow(per_rtt * acked / self.cwnd);
    }

    /// As [`Window::avoid`], packet by packet: where `per_rtt` is not small beside the window, a
    /// record of many packets then gives what as many single ones would.
    pub fn avoid_singly(&mut self, acked: f64, per_rtt: f64) {
        let mut rest = acked;
        for _ in 0..RECORD_PACKETS_MAX {
            let step = rest.min(1.0);
            if step <= 0.0 {
                return;
            }
            self.avoid(step, per_rtt);
            rest -= step;
        }
        if rest > 0.0 {
            self.avoid(rest, per_rtt);
        }
    }

    /// Adds `packets`, which may be negative; at least one packet stays.
    pub fn grow(&mut self, packets: f64) {
        self.cwnd = (self.cwnd + packets).clamp(1.0, BYTES_MAX / self.mss);
    }

    /// Multiplicative decrease, once per loss episode (RFC 5681 section 3.2 step 2; ns-2 halves the
    /// window, keeps its fraction in `cwnd` and drops it in `ssthresh`). FlightSize can exceed the
    /// window after a timeout; `cwnd` does not rise to its half.
    pub fn reduce(&mut self, loss: &Loss) {
        match loss.kind {
            LossKind::More => return,
            LossKind::Deflate => {
                self.cwnd = (self.cwnd - self.packets(loss.lost)).max(1.0);
                return;
            }
            LossKind::Idle => {
                self.cwnd = self.cwnd.min(self.restart);
                return;
            }
            LossKind::Spurious => return self.restore(),
            LossKind::TimeoutAgain => {
                self.cwnd = 1.0;
                return;
            }
            LossKind::Gap | LossKind::Timeout => self.remember(),
        }
        if self.half_of_window {
            let half = self.cwnd / 2.0;
            self.ssthresh = half.floor().max(2.0);
            self.cwnd = half.max(1.0);
        } else {
            self.ssthresh = (self.packets(loss.inflight) / 2.0).max(2.0);
            self.cwnd = self.cwnd.min(self.ssthresh);
        }
        if loss.kind == LossKind::Timeout {
            self.cwnd = 1.0;
        }
    }

    /// A reduction follows: keeps what a spurious one gives back. Of ns-2's time-outs of one packet, the first counts.
    pub fn remember(&mut self) {
        if self.cwnd > 1.0 || self.before.is_none() {
            self.before = Some((self.cwnd, self.ssthresh));
        }
    }

    /// Takes the latest reduction back; what has grown since stays (as Linux; RFC 4015 section 4 sets
    /// the threshold alone).
    fn restore(&mut self) {
        if let Some((cwnd, ssthresh)) = self.before.take() {
            self.cwnd = self.cwnd.max(cwnd);
            self.ssthresh = self.ssthresh.max(ssthresh);
        }
    }

    /// As the transport wants it.
    pub fn control(&self) -> Control {
        Control {
            cwnd: Bytes((self.cwnd * self.mss) as u64),
            pacing_rate: Rate::UNLIMITED,
            ssthresh: Bytes((self.ssthresh * self.mss) as u64),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn window(recovery: Recovery) -> Window {
        Window::new(&FlowInfo {
            mss: Bytes(1000),
            initial_cwnd: Bytes(25_000),
            initial_ssthresh: Bytes(20_000),
            recovery,
            paces: false,
            start: Time(0),
            seed: 1,
        })
    }

    #[test]
    fn a_batch_leaves_slow_start_at_the_threshold_and_hands_on_the_rest() {
        let mut window = window(Recovery::Sack);
        window.cwnd = 17.5;
        assert!((window.slow_start(8.0) - 5.0).abs() < 1e-12);
        assert!((window.cwnd - 20.5).abs() < 1e-12);
    }

    #[test]
    fn ns2_halves_the_window_and_floors_only_the_threshold() {
        let mut window = window(Recovery::Ns2);
        window.reduce(&Loss { inflight: Bytes(90_000), ..Loss::default() });
        assert!((window.cwnd - 12.5).abs() < 1e-12);
        assert!((window.ssthresh - 12.0).abs() < 1e-12);
    }

    #[test]
    fn flight_size_beyond_the_window_does_not_raise_it() {
        let mut window = window(Recovery::Sack);
        window.cwnd = 3.0;
        window.reduce(&Loss { inflight: Bytes(90_000), ..Loss::default() });
        assert!((window.cwnd - 3.0).abs() < 1e-12);
        assert!((window.ssthresh - 45.0).abs() < 1e-12);
    }

    #[test]
    fn further_losses_of_an_episode_change_nothing() {
        let mut window = window(Recovery::Sack);
        let before = window.control();
        window.reduce(&Loss { kind: LossKind::More, ..Loss::default() });
        assert_eq!(window.control(), before);
    }

    #[test]
    fn a_spurious_loss_gives_window_and_threshold_back() {
        for kind in [LossKind::Gap, LossKind::Timeout] {
            let mut window = window(Recovery::Sack);
            let before = window.control();
            let loss = Loss { inflight: Bytes(10_000), kind, ..Loss::default() };
            window.reduce(&loss);
            window.reduce(&Loss { kind: LossKind::More, ..loss });
            if kind == LossKind::Timeout {
                window.reduce(&loss); // of the same packet, which takes no more
            }
            assert!(window.control().cwnd < before.cwnd);
            window.reduce(&Loss { kind: LossKind::Spurious, ..loss });
            assert_eq!(window.control(), before);
            window.cwnd = 40.0;
            window.reduce(&Loss { kind: LossKind::Spurious, ..loss });
            assert!((window.cwnd - 40.0).abs() < 1e-12, "once");
        }
    }

    #[test]
    fn a_record_grows_like_its_packets_one_by_one() {
        let (mut one, mut many) = (window(Recovery::Sack), window(Recovery::Sack));
        (0..30).for_each(|_| one.avoid(1.0, 40.0));
        many.avoid_singly(30.0, 40.0);
        assert!((one.cwnd - many.cwnd).abs() < 1e-9, "{} and {}", one.cwnd, many.cwnd);
        many.avoid_singly(1e9, 1.0);
        assert!(many.cwnd.is_finite());
        // A share that is beyond all numbers, and no packet left after the last that is counted.
        many.avoid_singly(RECORD_PACKETS_MAX as f64, f64::INFINITY);
        assert!(many.cwnd.is_finite());
    }

    #[test]
    fn negative_growth_stops_at_one_packet() {
        let mut window = window(Recovery::Sack);
        window.avoid(1e12, -1.0);
        assert_eq!(window.control().cwnd, Bytes(1000));
    }
}
