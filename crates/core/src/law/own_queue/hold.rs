//! A held rate: while others want the link, a flow does not yield below half of the rate that it had when they did
//! not. All that it knows of a fair part later are losses and falls of the queue, by CUBIC's formula (RFC 9438).
//! Flows of one kind hold less than the link in sum, so its queue drains and their contention ends.
use crate::sensing::signals::Interval;
use crate::sensing::windowed_max::WindowedMax;
use crate::units::Span;

/// A flow holds this part of its best rate of so long a time without contention.
const PART: f64 = 0.5;
const MEMORY: Span = Span::from_millis(20_000);
/// One that had fewer intervals without a long queue does not know what the link gives: it holds this part of what it has.
const NEW_INTERVALS: u32 = 30;
/// The queue is the flow's own, or all grow, where the window grows by this factor, the round trip by this part of the
/// growth, and the delivery rate by less than this factor ...
const ALONE: (f64, f64, f64) = (1.2, 0.85, 1.03);
/// ... before the flow has this part of the rate that it holds.
const HAS: f64 = 0.8;
/// Part of what is lost, averaged with this gain over intervals, from which on the rate is too large ...
const LOSS_MAX: f64 = 0.02;
const LOSS_GAIN: f64 = 0.125;
/// ... as it is where the delivery rate stays below this part of it for so many intervals.
const BEHIND: (f64, u32) = (0.9, 4);
/// What an interval leaves of a rate that is too large ...
const LESS: f64 = 0.9;
/// ... unless the link has fallen below this part of it: then the delivery rate is held.
const FAR: f64 = 0.6;
/// A queue below this part of the longest since the last event tells of a flow that has reduced its window.
const FALL: f64 = 0.75;
/// Losses and falls within so many intervals are one event.
const EVENT: u32 = 10;
/// Weight of the latest number of packets between events.
const EVENT_GAIN: f64 = 0.25;
/// A rate above that of CUBIC's formula approaches it by this part per second.
const APPROACH_PER_S: f64 = 0.1;
/// With an action that lets it grow by u, a rate below so many times that of the formula approaches that by this part per
/// second, while at least 1 - u of the events are falls without a loss of the flow's own: others reduce their windows.
const GROWTH: (f64, f64) = (3.0, 0.5);
/// With one below 0 it approaches a rate so many powers of two below that of the formula.
const SHRINK_OCTAVES: f64 = 2.0;
/// CUBIC's mean window is the first of these times (RTT/p)^(3/4), RTT in seconds and p events per packet, and at least
/// Reno's, the second times (1/p)^(1/2) (RFC 9438 sections 5.1 and 4.3).
const CUBIC: f64 = 1.054;
const RENO: f64 = 1.225;

/// What an interval says beside its own numbers.
#[derive(Clone, Copy, Debug)]
pub struct Scene {
    /// Smallest queueing delay, and whether it is a long one.
    pub queue: Span,
    pub is_long: bool,
    /// Whether there is contention.
    pub contention: bool,
    /// The window, and the earlier one whose effect the round trips show, packets.
    pub cwnd: f64,
    pub earlier: f64,
}

/// Losses and falls of the queue under contention.
#[derive(Clone, Copy, Debug, Default)]
struct Events {
    count: u32,
    /// Intervals since the latest loss or fall, and packets since the latest event.
    intervals: u32,
    packets: f64,
    /// Mean number of packets between events.
    mean: f64,
    /// Part of the events that are falls without a loss: average with the gain of the mean.
    falls: f64,
    /// Longest queue since a loss or fall, ns.
    longest: f64,
}

/// A rate held.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// 0 where no other flow wants the link.
    pps: f64,
    /// Window, round trip in seconds and delivery rate when the window was last compared, until the flow has its rate.
    start: Option<(f64, f64, f64)>,
    /// The window has been what the rate asks for.
    reached: bool,
    /// Intervals in a row with too small a delivery rate.
    behind: u32,
    events: Events,
}

/// The rate below which a flow does not yield.
#[derive(Clone, Copy, Debug)]
pub struct Hold {
    /// Largest delivery rate without contention.
    calm_max: WindowedMax,
    /// Intervals without a long queue or contention.
    calm: u32,
    /// Average of the lost part.
    loss: f64,
    held: Option<Held>,
    /// What an action lets a held rate grow, in [-1, 1].
    pub growth: f64,
}

impl Default for Hold {
    fn default() -> Self {
        let calm_max = WindowedMax::new(MEMORY.0);
        Self { calm_max, calm: 0, loss: 0.0, held: None, growth: 0.0 }
    }
}

impl Hold {
    /// Takes an interval.
    pub fn on_interval(&mut self, interval: &Interval, scene: &Scene) {
        self.loss += LOSS_GAIN * (interval.loss_ratio - self.loss);
        if !scene.contention {
            self.held = None;
            if !scene.is_long {
                self.calm = self.calm.saturating_add(1);
                self.calm_max.sample(interval.now.0, interval.delivery_pps);
            }
            return;
        }
        let is_new = self.calm < NEW_INTERVALS;
        let known_pps = if is_new { interval.delivery_pps } else { self.calm_max.value() };
        let held = self.held.get_or_insert_with(|| Held {
            pps: PART * known_pps,
            start: Some((scene.cwnd, interval.rtt_min.as_secs_f64(), interval.delivery_pps)),
            reached: false,
            behind: 0,
            events: Events::default(),
        });
        held.check(interval, scene);
        if self.loss > LOSS_MAX {
            held.pps *= LESS;
        }
        held.events.on_interval(interval, scene.queue.0 as f64);
        held.approach(interval, self.growth);
    }

    /// The window that the rate asks for, packets.
    pub fn window(&self, interval: &Interval) -> Option<f64> {
        let held = self.held.filter(|held| held.pps > 0.0)?;
        Some(held.window(interval))
    }
}

impl Held {
    fn window(&self, interval: &Interval) -> f64 {
        self.pps * interval.rtt_min.as_secs_f64()
    }

    /// Gives the rate up where the flow is alone, and less where the path does not give it.
    fn check(&mut self, interval: &Interval, scene: &Scene) {
        let (least, part, more) = ALONE;
        let pps = interval.delivery_pps;
        if let Some((cwnd, rtt, before_pps)) =
            self.start.filter(|now| scene.earlier >= least * now.0)
        {
            let (grown, now) = (scene.earlier / cwnd, interval.rtt_min.as_secs_f64());
            if now >= rtt * (1.0 + part * (grown - 1.0)) && pps <= more * before_pps {
                self.pps = 0.0;
            }
            self.start = Some((scene.earlier, now, pps));
        }
        self.start = self.start.filter(|_| pps < HAS * self.pps);
        let (part, intervals) = BEHIND;
        self.reached |= scene.cwnd >= self.window(interval);
        let behind = self.reached && pps < part * self.pps;
        self.behind = if behind { self.behind + 1 } else { 0 };
        if self.behind >= intervals {
            let less = if pps < FAR * self.pps { pps } else { LESS * self.pps };
            (self.pps, self.behind) = (less, 0);
        }
    }

    /// Approaches the rate of CUBIC's formula from above, and a multiple from below where an action lets it grow.
    fn approach(&mut self, interval: &Interval, growth: f64) {
        let Some(fair) = self.events.fair_pps(interval.srtt.as_secs_f64()) else { return };
        if self.pps <= 0.0 {
            return;
        }
        let seconds = interval.duration.as_secs_f64();
        let (times, per_s) = GROWTH;
        let grows = growth > 0.0 && self.events.falls >= 1.0 - growth;
        let fair = fair * if grows { times } else { libm::exp2(SHRINK_OCTAVES * growth.min(0.0)) };
        let per_s = if self.pps > fair { APPROACH_PER_S } else { per_s };
        let change = (per_s * seconds).min(1.0) * (self.pps - fair);
        self.pps -= if grows { change } else { change.max(0.0) };
    }
}

impl Events {
    fn on_interval(&mut self, interval: &Interval, queue_ns: f64) {
        self.packets += interval.acked_packets + interval.lost_packets;
        self.intervals = self.intervals.saturating_add(1);
        self.longest = self.longest.max(queue_ns);
        if interval.lost_packets <= 0.0 && queue_ns >= FALL * self.longest {
            return;
        }
        if self.intervals > EVENT {
            let gain = if self.count == 0 { 1.0 } else { EVENT_GAIN };
            self.mean += gain * (self.packets - self.mean);
            self.falls += gain * (f64::from(interval.lost_packets <= 0.0) - self.falls);
            (self.count, self.packets) = (self.count.saturating_add(1), 0.0);
        }
        (self.intervals, self.longest) = (0, queue_ns);
    }

    /// What CUBIC would send on a path with these events, after two of them.
    fn fair_pps(&self, rtt_s: f64) -> Option<f64> {
        if self.count < 2 || rtt_s <= 0.0 {
            return None;
        }
        let packets = self.mean.max(self.packets).max(1.0);
        let root = libm::sqrt(rtt_s * packets);
        let cubic = CUBIC * root * libm::sqrt(root);
        Some(cubic.max(RENO * libm::sqrt(packets)) / rtt_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    const RTT_MS: u64 = 100;

    /// A flow whose intervals are 0.1 s long.
    #[derive(Default)]
    struct Flow {
        hold: Hold,
        now_ms: u64,
        loss_ratio: f64,
        lost_packets: f64,
        delivery_pps: f64,
    }

    impl Flow {
        fn new(delivery_pps: f64) -> Self {
            Self { delivery_pps, ..Self::default() }
        }

        fn interval(&mut self, rtt_ms: u64) -> Interval {
            self.now_ms += 100;
            let rtt = Span::from_millis(rtt_ms);
            Interval {
                now: Time(0) + Span::from_millis(self.now_ms),
                duration: Span::from_millis(100),
                rtt_min: rtt,
                srtt: rtt,
                acked_packets: 0.1 * self.delivery_pps,
                lost_packets: self.lost_packets,
                loss_ratio: self.loss_ratio,
                delivery_pps: self.delivery_pps,
                ..Interval::default()
            }
        }

        fn calm(&mut self, intervals: u32) {
            for _ in 0..intervals {
                let interval = self.interval(RTT_MS);
                let scene = Scene {
                    queue: Span::ZERO,
                    is_long: false,
                    contention: false,
                    cwnd: 10.0,
                    earlier: 10.0,
                };
                self.hold.on_interval(&interval, &scene);
            }
        }

        /// The window held after an interval with this window and queue.
        fn contended(&mut self, cwnd: f64, queue_ms: u64) -> Option<f64> {
            let interval = self.interval(RTT_MS + queue_ms);
            let scene = Scene {
                queue: Span::from_millis(queue_ms),
                is_long: true,
                contention: true,
                cwnd,
                earlier: cwnd,
            };
            self.hold.on_interval(&interval, &scene);
            self.hold.window(&interval)
        }

        /// The same with a loss at each fall.
        fn losing_falls(&mut self, falls: u32, apart: u32) -> f64 {
            for _ in 0..falls {
                self.pps(apart - 1, 10.0, 100);
                self.lost_packets = 1.0;
                self.contended(10.0, 50);
                self.lost_packets = 0.0;
            }
            self.hold.held.unwrap().pps
        }

        /// The rate held after so many such intervals.
        fn pps(&mut self, intervals: u32, cwnd: f64, queue_ms: u64) -> f64 {
            for _ in 0..intervals {
                self.contended(cwnd, queue_ms);
            }
            self.hold.held.unwrap().pps
        }

        /// Falls of the queue of 100 ms by a half, so many, that many intervals apart.
        fn falls(&mut self, falls: u32, apart: u32) -> f64 {
            for _ in 0..falls {
                self.pps(apart - 1, 10.0, 100);
                self.contended(10.0, 50);
            }
            self.hold.held.unwrap().pps
        }
    }

    fn is_about(value: f64, expected: f64) {
        assert!(
            (value - expected).abs() < 1e-6 * expected.abs().max(1.0),
            "{value} is not {expected}"
        );
    }

    #[test]
    fn without_contention_nothing_is_held() {
        let mut flow = Flow::new(1000.0);
        flow.calm(50);
        let interval = flow.interval(RTT_MS);
        assert_eq!(flow.hold.window(&interval), None);
    }

    #[test]
    fn half_of_the_best_rate_of_twenty_calm_seconds_is_held_until_contention_ends() {
        let mut flow = Flow::new(2000.0);
        flow.calm(1);
        flow.delivery_pps = 1000.0;
        flow.calm(199);
        flow.delivery_pps = 900.0;
        is_about(flow.contended(10.0, 100).unwrap(), 1000.0 * 0.2);
        flow.calm(2);
        is_about(flow.contended(10.0, 100).unwrap(), 500.0 * 0.2);
    }

    #[test]
    fn a_flow_whose_round_trip_alone_grows_with_its_window_holds_nothing() {
        // Window, queue in ms and delivery rate after 10 packets, 100 ms and 300 packets/s.
        let told = [
            (20.0, 275, 305.0, true),
            (12.5, 150, 305.0, true),
            (20.0, 265, 305.0, false),
            (20.0, 275, 315.0, false),
            (11.0, 400, 305.0, false),
            (20.0, 275, 401.0, false),
        ];
        for (cwnd, queue_ms, pps, alone) in told {
            let mut flow = Flow::new(1000.0);
            flow.calm(100);
            flow.delivery_pps = 300.0;
            flow.contended(10.0, 100);
            flow.delivery_pps = pps;
            assert_eq!(flow.contended(cwnd, queue_ms).is_none(), alone, "{cwnd} {queue_ms} {pps}");
        }
    }

    #[test]
    fn a_flow_is_found_alone_by_a_later_growth_too_but_not_once_it_has_had_its_rate() {
        for (pps, alone) in [(300.0, true), (450.0, false)] {
            let mut flow = Flow::new(1000.0);
            flow.calm(100);
            flow.delivery_pps = 300.0;
            flow.contended(10.0, 100);
            flow.contended(20.0, 100);
            flow.delivery_pps = pps;
            flow.contended(20.0, 100);
            flow.delivery_pps = 300.0;
            assert_eq!(flow.contended(40.0, 300).is_none(), alone, "{pps}");
        }
    }

    #[test]
    fn a_rate_that_loses_more_than_a_fiftieth_shrinks() {
        for (loss_ratio, expected) in [(0.019, 500.0), (1.0, 450.0)] {
            let mut flow = Flow::new(1000.0);
            flow.calm(100);
            flow.loss_ratio = loss_ratio;
            is_about(flow.pps(1, 10.0, 100), expected);
        }
    }

    #[test]
    fn a_rate_that_the_path_does_not_give_shrinks_once_the_window_was_reached() {
        let mut flow = Flow::new(1000.0);
        flow.calm(100);
        flow.delivery_pps = 440.0;
        is_about(flow.pps(8, 99.0, 100), 500.0);
        is_about(flow.pps(3, 101.0, 100), 500.0);
        is_about(flow.pps(1, 101.0, 100), 450.0);
        is_about(flow.pps(8, 101.0, 100), 450.0);
    }

    #[test]
    fn a_link_that_fell_below_six_tenths_of_the_rate_is_held_at_what_it_gives() {
        for (pps, expected) in [(301.0, 450.0), (299.0, 299.0)] {
            let mut flow = Flow::new(1000.0);
            flow.calm(100);
            flow.delivery_pps = pps;
            is_about(flow.pps(4, 101.0, 100), expected);
        }
    }

    #[test]
    fn the_rate_falls_to_that_of_cubics_formula_after_two_events() {
        let mut flow = Flow::new(1000.0);
        flow.calm(100);
        flow.delivery_pps = 500.0;
        is_about(flow.falls(1, 12), 500.0);
        is_about(flow.falls(1, 9), 500.0);
        let after = flow.falls(60, 12);
        // 600 packets between events at the last round trip of 0.15 s, or 0.2 s between them.
        let fair = |rtt: f64| (1.054 * (rtt * 600.0).powf(0.75)).max(1.225 * 600f64.sqrt()) / rtt;
        assert!(after > fair(0.2) && after < fair(0.15), "{after} {} {}", fair(0.2), fair(0.15));
    }

    #[test]
    fn the_rate_never_grows_to_it() {
        let mut flow = Flow::new(20.0);
        flow.calm(100);
        is_about(flow.falls(20, 40), 10.0);
    }

    #[test]
    fn an_action_lets_it_grow_where_others_reduce_their_windows() {
        for (growth, losing, grows) in
            [(0.05, false, true), (1.0, true, true), (0.5, true, false), (0.0, false, false)]
        {
            let mut flow = Flow::new(20.0);
            flow.hold.growth = growth;
            flow.calm(100);
            let held = if losing { flow.losing_falls(60, 12) } else { flow.falls(60, 12) };
            assert_eq!(held > 20.0, grows, "{growth} {losing} {held}");
            assert!(grows || held < 10.1, "{growth} {losing} {held}");
        }
    }

    #[test]
    fn an_action_below_zero_lets_it_fall_below_that() {
        let held = |growth: f64| {
            let mut flow = Flow::new(1000.0);
            flow.hold.growth = growth;
            flow.calm(100);
            flow.delivery_pps = 500.0;
            flow.falls(60, 12)
        };
        assert!(held(-0.5) < 0.6 * held(0.0), "{} {}", held(-0.5), held(0.0));
        assert!(held(-1.0) < 0.6 * held(-0.5), "{} {}", held(-1.0), held(-0.5));
    }

    #[test]
    fn a_new_flow_holds_half_of_what_it_has() {
        for (calm, expected) in [(29, 50.0), (30, 500.0)] {
            let mut flow = Flow::new(1000.0);
            flow.calm(calm);
            flow.delivery_pps = 100.0;
            is_about(flow.pps(1, 10.0, 100), expected);
        }
    }
}
