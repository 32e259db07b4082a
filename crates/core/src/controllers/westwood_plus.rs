//! Westwood+ (Grieco and Mascolo 2004): Reno that after a loss falls to what the path has carried, not
//! to half.
use crate::control::{Ack, Control, Controller, FlowInfo, Loss, LossKind, Spec};
use crate::law::reno_window::Window;
use crate::params::{Param, ParamKind, Params};
use crate::units::{Span, Time};

/// Entry of the controller table.
pub const SPEC: Spec = Spec {
    name: "westwood_plus",
    about: "Reno that falls to the estimated bandwidth times the smallest round trip",
    source: "Grieco and Mascolo 2004; Linux tcp_westwood.c; ns-3 tcp-westwood.cc",
    params: &[Param {
        name: "variant",
        about: "whose rules: `linux` filters twice with 7/8 and takes samples of 50 ms at least, `ns3` \
                filters once with 0.9 and goes by the smoothed round trip, as 3.37 does",
        kind: ParamKind::Choice(&["linux", "ns3"]),
    }],
    build: |flow, params| Box::new(WestwoodPlus::new(flow, params)),
};

/// One estimate of the bandwidth per round trip decides what a loss leaves.
#[derive(Clone, Debug)]
pub struct WestwoodPlus {
    window: Window,
    /// Smallest round trip; `Span::MAX` before the first.
    min_rtt: Span,
    bandwidth: Bandwidth,
    /// What is being counted; `None` before the first ACK with a round trip.
    count: Option<Count>,
    /// Whether the estimate is to be taken again when the present repair ends, as Linux does.
    repairing: bool,
}

/// Packets acknowledged since a time.
#[derive(Clone, Copy, Debug)]
struct Count {
    since: Time,
    packets: f64,
}

/// The filtered bandwidth, packets per second.
#[derive(Clone, Copy, Debug)]
enum Bandwidth {
    /// Both stages; `None` before the first sample.
    Linux(Option<[f64; 2]>),
    /// The estimate and the last sample.
    Ns3([f64; 2]),
}

impl Bandwidth {
    fn sample(&mut self, new: f64) {
        match self {
            Self::Linux(stages) => {
                let [first, second] = stages.get_or_insert([new, new]);
                *first = (7.0 * *first + new) / 8.0;
                *second = (7.0 * *second + *first) / 8.0;
            }
            Self::Ns3([estimate, last]) => {
                *estimate = 0.9 * *estimate + 0.1 * (new + *last) / 2.0;
                *last = new;
            }
        }
    }

    fn packets_per_s(self) -> f64 {
        match self {
            Self::Linux(stages) => stages.map_or(0.0, |[_, second]| second),
            Self::Ns3([estimate, _]) => estimate,
        }
    }
}

impl WestwoodPlus {
    /// Starts in slow start without an estimate.
    pub fn new(flow: &FlowInfo, params: &Params) -> Self {
        let ns3 = params.choice("variant") == "ns3";
        Self {
            window: Window::new(flow),
            min_rtt: Span::MAX,
            bandwidth: if ns3 { Bandwidth::Ns3([0.0; 2]) } else { Bandwidth::Linux(None) },
            count: None,
            repairing: false,
        }
    }

    fn is_ns3(&self) -> bool {
        matches!(self.bandwidth, Bandwidth::Ns3(_))
    }

    /// Counts an ACK, after closing the sample that was due before it.
    fn measure(&mut self, ack: &Ack) {
        let rtt = if self.is_ns3() { ack.srtt } else { ack.rtt };
        let packets = self.window.packets(ack.acked);
        if rtt == Span::ZERO {
            if let Some(count) = &mut self.count {
                count.packets += packets;
            }
            return;
        }
        let smallest = if self.is_ns3() { rtt } else { rtt.min(nonzero(ack.min_rtt)) };
        self.min_rtt = self.min_rtt.min(smallest);
        let shortest = if self.is_ns3() { rtt } else { rtt.max(SAMPLE_MIN) };
        let count = self.count.get_or_insert(Count { since: ack.now, packets: 0.0 });
        let elapsed = ack.now.since(count.since);
        if elapsed > shortest {
            self.bandwidth.sample(count.packets / elapsed.as_secs_f64());
            *count = Count { since: ack.now, packets: 0.0 };
        }
        count.packets += packets;
    }

    /// What the path holds without a queue, packets.
    fn pipe(&self) -> f64 {
        if self.min_rtt == Span::MAX {
            return PIPE_MIN;
        }
        let held = self.bandwidth.packets_per_s() * self.min_rtt.as_secs_f64();
        held.clamp(PIPE_MIN, self.window.cwnd_max())
    }
}

impl Controller for WestwoodPlus {
    fn on_ack(&mut self, ack: &Ack) {
        self.measure(ack);
        if self.repairing && ack.recovering == 0 {
            self.repairing = false;
            self.window.ssthresh = self.pipe();
            self.window.cwnd = self.window.ssthresh;
            return;
        }
        self.window.on_ack(ack);
    }

    fn on_loss(&mut self, loss: &Loss) {
        self.repairing &= loss.kind != LossKind::TimeoutAgain;
        if !matches!(loss.kind, LossKind::Gap | LossKind::Timeout) {
            return self.window.reduce(loss);
        }
        self.window.remember();
        self.window.ssthresh = self.pipe();
        self.window.cwnd = self.window.cwnd.min(self.window.ssthresh);
        self.repairing = !self.is_ns3() && loss.kind == LossKind::Gap;
        if loss.kind == LossKind::Timeout {
            self.window.cwnd = 1.0;
        }
    }

    fn control(&self) -> Control {
        self.window.control()
    }
}

/// A span, or the largest where zero stands for none.
fn nonzero(span: Span) -> Span {
    if span == Span::ZERO { Span::MAX } else { span }
}

/// Shortest sample in Linux (`TCP_WESTWOOD_RTT_MIN`).
const SAMPLE_MIN: Span = Span::from_millis(50);
/// Least that a loss leaves, packets.
const PIPE_MIN: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::Recovery;
    use crate::params::ParamValue;
    use crate::units::Bytes;

    fn westwood(variant: &str) -> WestwoodPlus {
        let flow = FlowInfo {
            mss: Bytes(1000),
            initial_cwnd: Bytes(100_000),
            initial_ssthresh: Bytes(50_000),
            recovery: Recovery::Sack,
            paces: false,
            start: Time(0),
            seed: 1,
        };
        let given = [("variant".to_owned(), ParamValue::Word(variant.to_owned()))];
        WestwoodPlus::new(&flow, &Params::resolve(SPEC.params, &given).unwrap())
    }

    fn ack(now_ms: u64, packets: u64, rtt_ms: u64) -> Ack {
        Ack {
            now: Time(0) + Span::from_millis(now_ms),
            rtt: Span::from_millis(rtt_ms),
            srtt: Span::from_millis(rtt_ms),
            acked: Bytes(packets * 1000),
            cwnd_limited: 1,
            ..Ack::default()
        }
    }

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }

    /// A thousand packets a second for 20 s at 100 ms, from `batch` at a time.
    fn busy(variant: &str, batch: u64) -> WestwoodPlus {
        let mut westwood = westwood(variant);
        (1..=20_000 / batch).for_each(|step| westwood.measure(&ack(step * batch, batch, 100)));
        westwood
    }

    #[test]
    fn a_steady_flow_is_measured_as_it_is() {
        for variant in ["linux", "ns3"] {
            for batch in [1, 8] {
                let measured = busy(variant, batch).bandwidth.packets_per_s();
                assert!((measured - 1000.0).abs() < 5.0, "{variant}, {batch}: {measured}");
            }
        }
    }

    #[test]
    fn linux_filters_twice_with_seven_eighths_and_starts_with_the_first_sample() {
        let mut bandwidth = Bandwidth::Linux(None);
        bandwidth.sample(800.0);
        close(bandwidth.packets_per_s(), 800.0);
        bandwidth.sample(1600.0); // 900, then 7/8·800 + 900/8
        close(bandwidth.packets_per_s(), 812.5);
    }

    #[test]
    fn ns3_filters_the_mean_of_two_samples_with_nine_tenths() {
        let mut bandwidth = Bandwidth::Ns3([0.0; 2]);
        bandwidth.sample(800.0);
        close(bandwidth.packets_per_s(), 40.0);
        bandwidth.sample(1200.0);
        close(bandwidth.packets_per_s(), 36.0 + 0.1 * 1000.0);
    }

    #[test]
    fn a_sample_lasts_a_round_trip_and_in_linux_at_least_50_ms() {
        for (variant, rtt_ms, closed) in
            [("linux", 10, 51), ("linux", 80, 81), ("ns3", 10, 11), ("ns3", 80, 81)]
        {
            let mut westwood = westwood(variant);
            westwood.measure(&ack(0, 1, rtt_ms));
            let open = |westwood: &WestwoodPlus| westwood.count.unwrap().since == Time(0);
            westwood.measure(&ack(closed - 1, 1, rtt_ms));
            assert!(open(&westwood), "{variant}, {rtt_ms} ms");
            westwood.measure(&ack(closed, 1, rtt_ms));
            assert!(!open(&westwood), "{variant}, {rtt_ms} ms");
        }
    }

    #[test]
    fn a_sample_is_what_came_before_the_ack_that_closes_it_over_the_time() {
        let mut westwood = westwood("linux");
        westwood.measure(&ack(0, 3, 100));
        westwood.measure(&ack(60, 5, 100));
        westwood.measure(&ack(125, 7, 100));
        close(westwood.bandwidth.packets_per_s(), 8.0 / 0.125);
        close(westwood.count.unwrap().packets, 7.0);
    }

    #[test]
    fn a_loss_leaves_bandwidth_times_the_smallest_round_trip() {
        for variant in ["linux", "ns3"] {
            let mut westwood = busy(variant, 1);
            westwood.min_rtt = Span::from_millis(60);
            westwood.on_loss(&Loss { inflight: Bytes(100_000), ..Loss::default() });
            let cwnd = westwood.window.cwnd;
            assert!((cwnd - 60.0).abs() < 0.3, "{variant}: {cwnd}");
            close(westwood.window.ssthresh, cwnd);
        }
    }

    #[test]
    fn a_loss_does_not_raise_the_window() {
        let mut westwood = busy("linux", 1);
        westwood.window.cwnd = 70.0;
        westwood.on_loss(&Loss::default());
        close(westwood.window.cwnd, 70.0);
    }

    #[test]
    fn linux_takes_the_estimate_again_when_the_repair_ends() {
        for (variant, after) in [("linux", 80.0), ("ns3", 60.0)] {
            let mut westwood = busy(variant, 1);
            westwood.min_rtt = Span::from_millis(60);
            westwood.on_loss(&Loss { inflight: Bytes(100_000), ..Loss::default() });
            westwood.min_rtt = Span::from_millis(80);
            westwood.on_ack(&Ack { recovering: 1, ..ack(20_001, 1, 100) });
            assert!((westwood.window.cwnd - 60.0).abs() < 0.4, "{variant}");
            westwood.on_ack(&ack(20_002, 1, 100));
            let cwnd = westwood.window.cwnd;
            assert!((cwnd - after).abs() < 0.4, "{variant}: {cwnd}");
        }
    }

    #[test]
    fn a_time_out_leaves_one_packet_and_the_estimate_as_the_threshold() {
        for variant in ["linux", "ns3"] {
            let mut westwood = busy(variant, 1);
            westwood.on_loss(&Loss { kind: LossKind::Timeout, ..Loss::default() });
            close(westwood.window.cwnd, 1.0);
            assert!((westwood.window.ssthresh - 100.0).abs() < 1.0, "{variant}");
        }
    }

    #[test]
    fn at_least_two_packets_are_left() {
        let mut westwood = westwood("ns3");
        westwood.on_loss(&Loss { inflight: Bytes(100_000), ..Loss::default() });
        close(westwood.window.cwnd, 2.0);
    }

    #[test]
    fn it_grows_as_reno() {
        let mut westwood = westwood("linux");
        westwood.on_ack(&ack(1, 1, 100));
        close(westwood.window.cwnd, 100.01);
    }
}
