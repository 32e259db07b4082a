//! How a link serves: when a transmission that may start at a given time ends.
//!
//! Rates are fluid and exact: what a rate carries in a time is counted in bits times nanoseconds per
//! second, an integer, and what the rounding of an end to whole nanoseconds leaves over is credited
//! to the next packet, so that a busy link neither drifts nor finishes early. A packet takes the
//! fraction of a nanosecond along ([`Exact`]), and an idle link starts it that much earlier, so that
//! a chain of links has no rounding of its own either. A trace serves in mahimahi's way, 1504 bytes
//! at a time, of which each packet takes 4 more than its own (`mahimahi/src/frontend/link_queue.cc`,
//! behind a tunnel device).
use std::fmt;
use std::sync::Arc;

use super::steps::{Redraws, Steps, StepsError};
use super::trace::{OPPORTUNITY, PACKET, Trace};
use crate::rng::Seed;
use crate::units::{Bytes, Rate, Span, Time};

/// A link's server.
#[derive(Clone, Debug)]
pub struct Service {
    server: Server,
    outages: Outages,
    /// End of the last transmission.
    finished: Time,
}

/// Periods, sorted and disjoint, in which nothing is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outages(Vec<(Time, Time)>);

/// An outage that does not end after it begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutageError {
    /// When it begins.
    pub from: Time,
    /// When it ends.
    pub to: Time,
}

#[derive(Clone, Debug)]
enum Server {
    Fluid(Fluid),
    Discrete(Discrete),
}

/// Serves at a rate that holds for a while.
#[derive(Clone, Debug)]
struct Fluid {
    source: Source,
    /// The rate now, and until when.
    rate: Rate,
    until: Time,
    /// Work done ahead of the packets, in bits times nanoseconds per second.
    credit: u64,
    /// Time that packets of the last size take at `rate`, kept to spare a division per packet.
    last: Quotient,
}

/// `work / rate` for packets of one size.
#[derive(Clone, Copy, Debug)]
struct Quotient {
    size: u32,
    nanos: u64,
    remainder: u64,
}

#[derive(Clone, Debug)]
enum Source {
    Constant(Rate),
    /// With the work done in a period, if it repeats.
    Schedule(Steps<Rate>, Option<(Span, u128)>),
    Random(Redraws),
}

/// Serves at instants, [`OPPORTUNITY`] bytes each, tunnel headers included.
#[derive(Clone, Debug)]
struct Discrete {
    trace: Arc<Trace>,
    /// The opportunity after the current one: repetitions of the trace before it, in milliseconds,
    /// and its index.
    base: u64,
    next: usize,
    /// The current opportunity and the bytes that it can still carry.
    now: Time,
    left: u64,
}

impl Service {
    /// Serves at one rate; a rate of zero serves nothing, ever.
    pub fn constant(rate: Rate) -> Self {
        Self::fluid(Source::Constant(rate))
    }

    /// Serves at rates that change at known times; a rate of zero is an outage.
    pub fn schedule(rates: Steps<Rate>) -> Self {
        if rates.values().all(|rate| rate.0 == 0) {
            return Self::constant(Rate(0));
        }
        let work = |period: Span| (period, work(|time| rates.at(time), Time(0), Time(period.0)));
        let cycle = rates.period().map(work);
        Self::fluid(Source::Schedule(rates, cycle))
    }

    /// Serves at a rate drawn from `low..=high` every `every`, as the links of Xiao et al. 2019 and
    /// others do. An interval of a millisecond or more keeps long transmissions cheap.
    ///
    /// # Errors
    ///
    /// If `low > high` or `every` is zero.
    pub fn random(low: Rate, high: Rate, every: Span, seed: Seed) -> Result<Self, StepsError> {
        let draws = Redraws::new(low.0, high.0, every, seed)?;
        Ok(if high.0 == 0 { Self::constant(high) } else { Self::fluid(Source::Random(draws)) })
    }

    /// Serves at the delivery opportunities of a trace. A full packet and its tunnel header fill one;
    /// several small packets share one, a packet larger than what is left of one continues in the
    /// next, and what nobody uses is lost.
    pub fn trace(trace: Arc<Trace>) -> Self {
        let start = Discrete { trace, base: 0, next: 0, now: Time(0), left: 0 };
        Self { server: Server::Discrete(start), outages: Outages::default(), finished: Time(0) }
    }

    /// The same service with nothing served during `outages`; what is being served pauses.
    pub fn with_outages(self, outages: Outages) -> Self {
        let mut service = Self { outages, ..self };
        if let Server::Fluid(fluid) = &mut service.server {
            fluid.enter(Time(0), &service.outages);
        }
        service
    }

    /// When `size` bytes that may start at `start` have been sent. Starts must not decrease, nor
    /// lie before the last finish; one after it means that the link was idle. `Time::NEVER` if
    /// nothing is served from `start` on, or not before the clock ends.
    pub fn finish(&mut self, start: Time, size: u32) -> Time {
        debug_assert!(start >= self.finished, "{start} lies before {}", self.finished);
        debug_assert!((1..=MAX_SIZE).contains(&size), "a packet of {size} bytes");
        let end = match &mut self.server {
            Server::Fluid(fluid) => {
                if start > self.finished {
                    fluid.credit = 0;
                }
                match fluid.finish_at_rate(start, size) {
                    Some(end) => end,
                    None => fluid.finish_across_rates(start, size, &self.outages),
                }
            }
            Server::Discrete(discrete) => discrete.finish(start, size, &self.outages),
        };
        self.finished = end;
        end
    }

    /// What the link can carry from `from` until just before `to`, rounded down. Exact: a random
    /// rate's draws are those that [`Service::finish`] meets.
    pub fn capacity(&self, from: Time, to: Time) -> Bytes {
        let work = |from, to| match &self.server {
            Server::Fluid(fluid) => fluid.source.work(from, to),
            Server::Discrete(discrete) => {
                let count = count_before(&discrete.trace, to) - count_before(&discrete.trace, from);
                count * u128::from(PACKET.0) * u128::from(NANO_BITS)
            }
        };
        if from >= to {
            return Bytes::ZERO;
        }
        let lost: u128 = self.outages.within(from, to).map(|(from, to)| work(from, to)).sum();
        let bytes = (work(from, to) - lost) / u128::from(NANO_BITS);
        Bytes(bytes.min(u128::from(u64::MAX)) as u64)
    }

    fn fluid(source: Source) -> Self {
        let last = Quotient { size: 0, nanos: 0, remainder: 0 };
        let mut fluid = Fluid { source, rate: Rate(0), until: Time(0), credit: 0, last };
        fluid.enter(Time(0), &Outages::default());
        Self { server: Server::Fluid(fluid), outages: Outages::default(), finished: Time(0) }
    }
}

impl Outages {
    /// From (begin, end) pairs in any order; those that touch or overlap become one.
    ///
    /// # Errors
    ///
    /// If one does not end after it begins.
    pub fn new(mut periods: Vec<(Time, Time)>) -> Result<Self, OutageError> {
        if let Some(&(from, to)) = periods.iter().find(|(from, to)| from >= to) {
            return Err(OutageError { from, to });
        }
        periods.sort_unstable();
        periods.dedup_by(|later, earlier| {
            let joined = later.0 <= earlier.1;
            if joined {
                earlier.1 = earlier.1.max(later.1);
            }
            joined
        });
        Ok(Self(periods))
    }

    /// The first outage that ends after `time`.
    fn next(&self, time: Time) -> Option<(Time, Time)> {
        if self.0.is_empty() {
            return None;
        }
        self.0.get(self.0.partition_point(|&(_, to)| to <= time)).copied()
    }

    /// The outages of a period, cut to it.
    fn within(&self, from: Time, to: Time) -> impl Iterator<Item = (Time, Time)> {
        let first = self.0.partition_point(|&(_, end)| end <= from);
        let overlapping = self.0[first..].iter().take_while(move |&&(begin, _)| begin < to);
        overlapping.map(move |&(begin, end)| (begin.max(from), end.min(to)))
    }
}

impl Fluid {
    /// The end of a transmission within the current rate's time; nothing changes if there is none.
    #[inline]
    fn finish_at_rate(&mut self, start: Time, size: u32) -> Option<Time> {
        if self.last.size != size {
            self.last = Quotient::of(size, self.rate);
        }
        let Quotient { nanos, remainder, .. } = self.last;
        let (nanos, credit) = if remainder <= self.credit {
            (nanos, self.credit - remainder)
        } else {
            (nanos.checked_add(1)?, self.rate.0 - (remainder - self.credit))
        };
        if nanos > self.until.0.checked_sub(start.0)? {
            return None;
        }
        self.credit = credit;
        Some(Time(start.0 + nanos))
    }

    #[cold]
    fn finish_across_rates(&mut self, start: Time, size: u32, outages: &Outages) -> Time {
        let work = u64::from(size) * NANO_BITS;
        if work <= self.credit {
            self.credit -= work;
            return start;
        }
        let mut need = work - self.credit;
        let mut time = start;
        loop {
            time = self.skip_cycles(time, &mut need, outages);
            self.enter(time, outages);
            if self.rate.0 > 0 {
                let nanos = need.div_ceil(self.rate.0);
                let span = self.until.0 - time.0;
                if nanos <= span {
                    // Less than one nanosecond's work, so it fits; `need` is positive.
                    self.credit = (self.rate.0 - 1) - (need - 1) % self.rate.0;
                    return Time(time.0 + nanos);
                }
                need -= span * self.rate.0; // below `need`, since more than `span` is needed
            }
            if self.until == Time::NEVER {
                self.credit = 0;
                return Time::NEVER;
            }
            time = self.until;
        }
    }

    /// Passes over whole periods of a schedule that cannot hold the end of a transmission, so that
    /// a slow link with a short period does not take for ever.
    fn skip_cycles(&self, time: Time, need: &mut u64, outages: &Outages) -> Time {
        let Source::Schedule(_, Some((period, work))) = self.source else {
            return time;
        };
        let clear = match outages.next(time) {
            Some((from, _)) => from.since(time).0,
            None => Time::NEVER.0 - time.0,
        };
        let cycles = (u128::from(*need - 1) / work).min(u128::from(clear / period.0)) as u64;
        *need -= (u128::from(cycles) * work) as u64; // at most `need - 1`
        Time(time.0 + cycles * period.0)
    }

    /// Takes up the rate that holds at `time`.
    fn enter(&mut self, time: Time, outages: &Outages) {
        let (rate, until) = self.source.at(time);
        (self.rate, self.until) = match outages.next(time) {
            Some((from, to)) if from <= time => (Rate(0), to),
            Some((from, _)) => (rate, until.min(from)),
            None => (rate, until),
        };
        self.last = Quotient::of(self.last.size, self.rate);
    }
}

impl Quotient {
    /// A rate of zero takes longer than every time.
    fn of(size: u32, rate: Rate) -> Self {
        let work = u64::from(size) * NANO_BITS;
        match work.checked_div(rate.0) {
            Some(nanos) => Self { size, nanos, remainder: work % rate.0 },
            None => Self { size, nanos: u64::MAX, remainder: 0 },
        }
    }
}

impl Source {
    fn at(&self, time: Time) -> (Rate, Time) {
        match self {
            Self::Constant(rate) => (*rate, Time::NEVER),
            Self::Schedule(steps, _) => steps.at(time),
            Self::Random(draws) => {
                let (rate, until) = draws.at(time);
                (Rate(rate), until)
            }
        }
    }

    /// Bits times nanoseconds per second that could be served in a period.
    fn work(&self, from: Time, to: Time) -> u128 {
        let (mut time, mut whole) = (from, 0);
        if let Self::Schedule(_, Some((period, cycle))) = self {
            let cycles = (to.0 - from.0) / period.0;
            whole = u128::from(cycles) * cycle;
            time = Time(time.0 + cycles * period.0);
        }
        whole + work(|time| self.at(time), time, to)
    }
}

impl Discrete {
    fn finish(&mut self, start: Time, size: u32, outages: &Outages) -> Time {
        if start > self.now {
            self.left = 0;
            self.seek(start);
        }
        let mut need = on_tunnel(size);
        while need > self.left {
            need -= self.left;
            if !self.advance(outages) {
                return Time::NEVER;
            }
        }
        self.left -= need;
        self.now
    }

    /// Moves to the next opportunity outside every outage; false if there is none.
    fn advance(&mut self, outages: &Outages) -> bool {
        loop {
            let time = self.time_of_next();
            match outages.next(time) {
                Some((from, to)) if from <= time => self.seek(to),
                _ => {
                    self.next += 1;
                    if self.next == self.trace.millis().len() {
                        self.next = 0;
                        self.base += self.trace.period().0 / NANOS_PER_MILLI;
                    }
                    self.now = time;
                    self.left = OPPORTUNITY.0;
                    return time < Time::NEVER;
                }
            }
            if self.time_of_next() == Time::NEVER {
                self.now = Time::NEVER;
                return false;
            }
        }
    }

    /// Passes over the opportunities before `start`.
    fn seek(&mut self, start: Time) {
        if self.time_of_next() >= start {
            return;
        }
        let period = self.trace.period().0 / NANOS_PER_MILLI;
        let target = start.0.div_ceil(NANOS_PER_MILLI); // above zero: some opportunity lies before
        self.base = (target - 1) / period * period;
        let within = target - self.base; // 1..=period, so the last opportunity is late enough
        self.next = self.trace.millis().partition_point(|&milli| u64::from(milli) < within);
    }

    fn time_of_next(&self) -> Time {
        let milli = self.base + u64::from(self.trace.millis()[self.next]);
        Time(milli.saturating_mul(NANOS_PER_MILLI))
    }
}

/// Bits times nanoseconds per second of a rate that changes.
fn work(at: impl Fn(Time) -> (Rate, Time), from: Time, to: Time) -> u128 {
    let mut time = from;
    let mut work = 0;
    while time < to {
        let (rate, until) = at(time);
        let end = until.min(to);
        work += u128::from(rate.0) * u128::from(end.0 - time.0);
        time = end;
    }
    work
}

/// Opportunities of a repeated trace before `time`.
fn count_before(trace: &Trace, time: Time) -> u128 {
    let Some(last) = time.0.div_ceil(NANOS_PER_MILLI).checked_sub(1) else {
        return 0;
    };
    let period = trace.period().0 / NANOS_PER_MILLI;
    let within = trace.millis().partition_point(|&milli| u64::from(milli) <= last % period);
    u128::from(last / period) * trace.millis().len() as u128 + within as u128
}

impl fmt::Display for OutageError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "an outage from {} to {} must end after it begins", self.from, self.to)
    }
}

impl std::error::Error for OutageError {}

/// Largest packet: what keeps its work below 64 bits.
const MAX_SIZE: u32 = i32::MAX as u32;

/// Bits in a byte times nanoseconds in a second.
const NANO_BITS: u64 = 8 * 1_000_000_000;

const NANOS_PER_MILLI: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_millis(1000);

/// Bytes that a packet takes of opportunities: larger ones travel in pieces with a header each, so
/// that no size passes faster than [`PACKET`].
fn on_tunnel(size: u32) -> u64 {
    let size = u64::from(size);
    size + (OPPORTUNITY.0 - PACKET.0) * size.div_ceil(PACKET.0)
}

    fn at(millis: u64) -> Time {
        Time(millis * NANOS_PER_MILLI)
    }

    fn mbps(rate: u64) -> Rate {
        Rate(rate * 1_000_000)
    }

    fn trace(text: &str) -> Service {
        Service::trace(Arc::new(Trace::parse(text.as_bytes(), "test").unwrap()))
    }

    /// Ends of `count` packets that queue at `start`.
    fn backlogged(service: &mut Service, start: Time, size: u32, count: usize) -> Vec<Time> {
        let mut time = start;
        (0..count)
            .map(|_| {
                time = service.finish(time, size);
                time
            })
            .collect()
    }

    #[test]
    fn a_busy_link_never_drifts_and_never_finishes_early() {
        let mut service = Service::constant(Rate(7_000_003));
        let ends = backlogged(&mut service, Time(0), 1500, 10_000);
        for (index, end) in ends.iter().enumerate() {
            let bytes = Bytes(1500 * (index as u64 + 1));
            assert_eq!(end.0, Rate(7_000_003).time_for(bytes).0, "packet {index}");
        }
    }

    #[test]
    fn what_rounding_left_over_is_forgotten_when_the_link_idles() {
        let rate = Rate(3_000_000_000);
        let mut service = Service::constant(rate);
        assert_eq!(service.finish(Time(0), 1), Time(3)); // 2.67 ns
        assert_eq!(service.finish(Time(3), 1), Time(6)); // 5.33 ns
        assert_eq!(service.finish(Time(6), 1), Time(8)); // 8 ns
        assert_eq!(service.finish(Time(10), 1), Time(13));
        assert_eq!(service.finish(Time(14), 1), Time(17));
    }

    #[test]
    fn sizes_and_rates_of_every_magnitude_are_served_exactly() {
        for rate in [1, 999, 10_000_000_000, u64::MAX - 1, u64::MAX] {
            let mut service = Service::constant(Rate(rate));
            let (mut time, mut sent) = (Time(0), 0);
            for size in [1, 1500, 64, 1500, 1500, 9000, 1] {
                sent += u64::from(size);
                time = service.finish(time, size);
                assert_eq!(time.0, Rate(rate).time_for(Bytes(sent)).0, "{rate} bit/s");
            }
        }
    }

    #[test]
    fn a_rate_of_zero_never_finishes() {
        let mut service = Service::constant(Rate(0));
        assert_eq!(service.finish(at(5), 1), Time::NEVER);
        let zeros = Steps::repeating(vec![(Time(0), Rate(0))], SECOND).unwrap();
        assert_eq!(Service::schedule(zeros).finish(Time(0), 1500), Time::NEVER);
        let none = Service::random(Rate(0), Rate(0), SECOND, Seed(1)).unwrap();
        assert_eq!(none.capacity(Time(0), Time::NEVER), Bytes(0));
    }

    #[test]
    fn a_packet_that_meets_a_new_rate_is_sent_at_both() {
        let steps = Steps::new(vec![(at(0), mbps(8)), (at(1), mbps(4))]).unwrap();
        let mut service = Service::schedule(steps);
        // 1000 bytes in the first millisecond, the other 500 in one more.
        assert_eq!(service.finish(Time(0), 1500), at(2));
        assert_eq!(service.finish(at(2), 500), at(3));
    }

    #[test]
    fn a_schedule_with_a_rate_of_zero_pauses_and_one_that_ends_in_it_never_finishes() {
        let steps = vec![(at(0), mbps(8)), (at(1), Rate(0)), (at(9), mbps(8)), (at(11), Rate(0))];
        let mut service = Service::schedule(Steps::new(steps).unwrap());
        assert_eq!(service.finish(Time(0), 1000), at(1));
        assert_eq!(service.finish(at(1), 1500), Time(10_500_000));
        assert_eq!(service.finish(Time(10_500_000), 501), Time::NEVER);
        assert_eq!(service.finish(Time::NEVER, 1), Time::NEVER);
    }

    #[test]
    fn a_repeating_schedule_finishes_a_slow_packet_after_many_periods() {
        let steps = vec![(Time(0), Rate(8)), (Time(2), Rate(0))];
        let steps = Steps::repeating(steps, Span(4)).unwrap();
        let mut service = Service::schedule(steps.clone());
        // A byte per second of service, half the time.
        assert_eq!(service.finish(Time(0), 1500), Time(3000 * SECOND.0 - 2));
        let outage = Outages::new(vec![(Time(SECOND.0), Time(2 * SECOND.0))]).unwrap();
        let mut service = Service::schedule(steps).with_outages(outage);
        assert_eq!(service.finish(Time(0), 1500), Time(3001 * SECOND.0 - 2));
    }

    #[test]
    fn an_outage_delays_what_is_being_sent_and_what_waits() {
        let outages = Outages::new(vec![(at(7), at(9)), (at(1), at(3)), (at(2), at(4))]).unwrap();
        let mut service = Service::constant(mbps(8)).with_outages(outages);
        assert_eq!(service.finish(Time(500_000), 1000), Time(4_500_000));
        assert_eq!(service.finish(Time(4_500_000), 2500), at(7));
        assert_eq!(service.finish(at(8), 1000), at(10));
        assert_eq!(service.capacity(at(0), at(10)), Bytes(5000));
    }

    #[test]
    fn an_outage_without_end_stops_every_kind_of_service() {
        let down = Outages::new(vec![(at(1), Time::NEVER)]).unwrap();
        let steps = Steps::repeating(vec![(at(0), mbps(8))], SECOND).unwrap();
        for service in [
            Service::constant(mbps(8)),
            Service::schedule(steps),
            Service::random(mbps(8), mbps(8), SECOND, Seed(0)).unwrap(),
            trace("0\n1\n"),
        ] {
            let mut service = service.with_outages(down.clone());
            assert!(service.finish(Time(0), 1000) <= at(1));
            assert_eq!(service.finish(at(1), 1500), Time::NEVER);
        }
    }

    #[test]
    fn an_outage_that_ends_before_it_begins_is_refused() {
        let error = Outages::new(vec![(at(2), at(2))]).unwrap_err();
        assert_eq!(error, OutageError { from: at(2), to: at(2) });
    }

    #[test]
    fn an_outage_at_zero_holds_from_the_first_packet() {
        let down = Outages::new(vec![(at(0), at(5))]).unwrap();
        let mut service = Service::constant(mbps(8)).with_outages(down);
        assert_eq!(service.finish(Time(0), 1000), at(6));
    }

    #[test]
    fn random_rates_serve_what_their_draws_allow() {
        let random =
            || Service::random(mbps(5), mbps(15), Span::from_millis(100), Seed(9)).unwrap();
        let mut service = random();
        let ends = backlogged(&mut service, Time(0), 1500, 10_000);
        let end = *ends.last().unwrap();
        assert_eq!(random().capacity(Time(0), end), Bytes(15_000_000));
        let mean = Rate::of(Bytes(15_000_000), Span(end.0)).as_mbps();
        assert!((9.0..11.0).contains(&mean), "{mean} Mb/s");
    }

    #[test]
    fn an_opportunity_carries_1504_bytes_shared_by_small_packets() {
        let mut service = trace("1\n2\n3\n");
        assert_eq!(service.finish(Time(0), 700), at(1));
        assert_eq!(service.finish(at(1), 804), at(1));
        assert_eq!(service.finish(at(1), 1), at(2));
    }

    #[test]
    fn a_large_packet_spans_opportunities_and_repetitions() {
        let mut service = trace("1\n1\n4\n");
        assert_eq!(service.finish(Time(0), 3000), at(1));
        assert_eq!(service.finish(at(1), 9 + 1504), at(5));
        assert_eq!(service.finish(at(5), 1503 + 1504), at(5));
        assert_eq!(service.finish(at(5), 1505), at(9));
    }

    #[test]
    fn unused_opportunities_and_leftovers_are_lost() {
        let mut service = trace("1\n2\n3\n10\n");
        assert_eq!(service.finish(Time(1), 100), at(1));
        assert_eq!(service.finish(Time(1_000_001), 1500), at(2));
        assert_eq!(service.finish(at(4), 1500), at(10));
        assert_eq!(service.finish(at(100) + Span(1), 1500), at(101));
    }

    #[test]
    fn an_opportunity_serves_a_packet_that_arrives_at_its_very_instant() {
        let mut service = trace("0\n5\n");
        assert_eq!(service.finish(Time(0), 1504), at(0));
        assert_eq!(service.finish(at(5), 1504), at(5)); // the last of the first round
        assert_eq!(service.finish(at(5), 1504), at(5)); // the first of the second
        assert_eq!(service.finish(at(5), 1504), at(10));
    }

    #[test]
    fn a_trace_has_the_capacity_of_its_lines() {
        let service = trace("0\n5\n5\n9\n");
        assert_eq!(service.capacity(Time(0), at(9)), OPPORTUNITY * 3);
        assert_eq!(service.capacity(Time(0), at(9) + Span(1)), OPPORTUNITY * 5);
        assert_eq!(service.capacity(at(5), at(5) + Span(1)), OPPORTUNITY * 2);
        assert_eq!(service.capacity(at(9), at(9 * 1001)), OPPORTUNITY * 4000);
        assert_eq!(service.capacity(at(9), at(3)), Bytes(0));
    }

    #[test]
    fn opportunities_within_an_outage_are_lost() {
        let outages = Outages::new(vec![(at(2), at(13))]).unwrap();
        let mut service = trace("1\n2\n10\n").with_outages(outages);
        assert_eq!(service.finish(Time(0), 1504), at(1));
        assert_eq!(service.finish(at(1), 1), at(20));
        assert_eq!(service.capacity(Time(0), at(22)), OPPORTUNITY * 3);
    }
}
