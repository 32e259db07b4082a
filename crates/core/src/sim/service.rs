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

use super::exact::{Exact, UNITS};
use super::steps::{Redraws, Steps, StepsError};
use super::trace::{OPPORTUNITY, PACKET, Trace};
use crate::hint::{seldom, unlikely};
use crate::rng::Seed;
use crate::units::{Bytes, Rate, Span, Time};

/// A link's server.
#[derive(Clone, Debug)]
pub struct Service {
    server: Server,
    outages: Outages,
    /// End of the last transmission.
    finished: Exact,
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
    /// 2⁹⁶ over the rate: what turns credit into a fraction without a division.
    inverse: u128,
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
        Ok(if high.0 == 0 { Self::constant(high) } else { Self::drawn(draws) })
    }

    /// Serves at a rate drawn so, in bits per second, of which some are above zero.
    pub fn drawn(draws: Redraws) -> Self {
        Self::fluid(Source::Random(draws))
    }

    /// Serves at the delivery opportunities of a trace. A full packet and its tunnel header fill one;
    /// several small packets share one, a packet larger than what is left of one continues in the
    /// next, and unused opportunities are lost.
    pub fn trace(trace: Arc<Trace>) -> Self {
        let start = Discrete { trace, base: 0, next: 0, now: Time(0), left: 0 };
        Self {
            server: Server::Discrete(start),
            outages: Outages::default(),
            finished: Exact::default(),
        }
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
    #[allow(clippy::inline_always, reason = "called for every hop of every packet")]
    #[inline(always)]
    pub fn finish(&mut self, start: Exact, size: u32) -> Exact {
        debug_assert!(start.at >= self.finished.at, "{start:?} is before {:?}", self.finished);
        debug_assert!((1..=MAX_SIZE).contains(&size), "a packet of {size} bytes");
        let end = match &mut self.server {
            Server::Fluid(fluid) => {
                if start != self.finished {
                    fluid.begin(start);
                }
                let at = match fluid.finish_at_rate(start.at, size) {
                    Some(end) => end,
                    None => fluid.finish_across_rates(start.at, size, &self.outages),
                };
                Exact { at, early: fluid.early() }
            }
            Server::Discrete(discrete) => {
                seldom();
                Exact::whole(discrete.finish(start.at, size, &self.outages))
            }
        };
        self.finished = end;
        end
    }

    /// What the link can carry from `from` until just before `to`, rounded down. Exact: a random
    /// rate's draws are those that [`Service::finish`] meets. Of a trace, an opportunity counts as the
    /// full packet that it can carry.
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

    /// Bytes of what has been accepted that are not yet sent at `now`, rounded up.
    pub fn unsent(&self, now: Time) -> Bytes {
        let Server::Fluid(fluid) = &self.server else { return Bytes::ZERO };
        if now >= self.finished.at {
            return Bytes::ZERO;
        }
        let work = fluid.source.work(now, self.finished.at) - u128::from(fluid.credit);
        Bytes(work.div_ceil(u128::from(NANO_BITS)).min(u128::from(u64::MAX)) as u64)
    }

    fn fluid(source: Source) -> Self {
        let last = Quotient { size: 0, nanos: 0, remainder: 0 };
        let (rate, until) = (Rate(0), Time(0));
        let mut fluid = Fluid { source, rate, until, credit: 0, inverse: 0, last };
        fluid.enter(Time(0), &Outages::default());
        Self {
            server: Server::Fluid(fluid),
            outages: Outages::default(),
            finished: Exact::default(),
        }
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
    /// An idle link starts again: what rounding added to `start` is work done ahead. A rate that
    /// changed since starts at its own whole nanosecond.
    #[inline]
    fn begin(&mut self, start: Exact) {
        self.credit = if start.early > 0 && start.at < self.until {
            (u128::from(start.early) * u128::from(self.rate.0) / u128::from(UNITS)) as u64
        } else {
            0
        };
    }

    /// How long before its end, in 2⁻¹⁶ ns, the last transmission was over.
    #[inline]
    fn early(&self) -> u16 {
        if self.credit == 0 { 0 } else { ((u128::from(self.credit) * self.inverse) >> 80) as u16 }
    }

    /// The end of a transmission within the current rate's time; nothing changes if there is none.
    #[inline]
    fn finish_at_rate(&mut self, start: Time, size: u32) -> Option<Time> {
        if unlikely(self.last.size != size) {
            self.last = Quotient::of(size, self.rate);
        }
        let Quotient { nanos, remainder, .. } = self.last;
        let (nanos, credit) = if remainder <= self.credit {
            (nanos, self.credit - remainder)
        } else {
            (nanos.checked_add(1)?, self.rate.0 - (remainder - self.credit))
        };
        if unlikely(nanos > self.until.0.checked_sub(start.0)?) {
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
        self.inverse = (1_u128 << 96).checked_div(u128::from(self.rate.0)).unwrap_or(0);
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
    #[inline(never)]
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

/// Bytes that a packet takes of opportunities: larger ones travel in pieces with a header each, so
/// that no size passes faster than [`PACKET`].
fn on_tunnel(size: u32) -> u64 {
    let size = u64::from(size);
    size + (OPPORTUNITY.0 - PACKET.0) * size.div_ceil(PACKET.0)
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
#[path = "tests/service.rs"]
mod tests;
