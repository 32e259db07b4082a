//! Packet-delivery traces in mahimahi's text format (Netravali et al. 2015): one integer per line,
//! the millisecond at which the link can deliver a packet of 1500 bytes; and a generator of cellular-like ones.
use std::fmt;

use crate::digest::{EMPTY, fnv1a};
use crate::rng::{Rng, Seed};
use crate::units::{Bytes, Rate, Span};

/// Delivery opportunities, repeated after the last of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Non-decreasing, never empty.
    millis: Vec<u32>,
    /// The last of them, above zero.
    period: u32,
}

/// What [`Trace::generate`] imitates: a link whose rate wanders like a bounded Brownian motion and
/// sometimes sticks at zero, as in Sprout's model (Winstein, Sivaraman and Balakrishnan 2013,
/// section 3.1), with a pull towards the mean added so that long traces keep it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cellular {
    /// Length of the trace, after which it repeats; at most [`MAX_MILLIS`].
    pub duration: Span,
    /// Mean rate over the whole trace, outages included, in opportunities of [`OPPORTUNITY`] bytes.
    pub mean: Rate,
    /// Standard deviation that the rate gains in a second, relative to the mean.
    pub volatility: f64,
    /// How fast the rate is pulled back to its mean, per second.
    pub reversion: f64,
    /// Outages that begin per second.
    pub outages_per_second: f64,
    /// Mean length of an outage.
    pub outage: Span,
}

/// Why bytes are no trace. Its text is one line that names the file, the line, what stands there
/// and what may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// Name of the input, as the caller gave it.
    pub origin: String,
    /// Line, counted from one.
    pub line: usize,
    /// What stands there, escaped and cut at 40 characters.
    pub found: String,
    /// What is wrong with it.
    pub fault: Fault,
}

/// What is wrong with a line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not one or more decimal digits.
    NotANumber,
    /// Above [`MAX_MILLIS`].
    TooLarge,
    /// Smaller than the line before, which this was.
    Decreasing(u32),
    /// More than [`MAX_LINES`].
    TooManyLines,
    /// No line at all.
    Empty,
    /// The last timestamp is zero, so the trace would repeat without time passing.
    NoDuration,
    /// Not this, which is allowed.
    Not(String),
}

impl Trace {
    /// Reads mahimahi's format. Both line endings are accepted, and a last line without one.
    ///
    /// # Errors
    ///
    /// On the first line that breaks a rule; `origin` names the input in the message.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self, TraceError> {
        let fail = |line: usize, text: &[u8], fault| TraceError {
            origin: escape(origin.as_bytes(), MAX_ORIGIN),
            line,
            found: escape(text, MAX_FOUND),
            fault,
        };
        let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        if bytes.is_empty() {
            return Err(fail(1, b"", Fault::Empty));
        }
        let mut millis = Vec::new();
        let mut previous = 0;
        for (index, text) in bytes.split(|&byte| byte == b'\n').enumerate() {
            let text = text.strip_suffix(b"\r").unwrap_or(text);
            if index >= MAX_LINES {
                return Err(fail(index + 1, text, Fault::TooManyLines));
            }
            previous = read_line(text, previous).map_err(|fault| fail(index + 1, text, fault))?;
            millis.push(previous);
        }
        if previous == 0 {
            return Err(fail(millis.len(), b"0", Fault::NoDuration));
        }
        millis.shrink_to_fit();
        Ok(Self { millis, period: previous })
    }

    /// A trace like that of a cellular link; the same for the same arguments on every machine.
    /// Its last opportunity stands at `duration`, so that it repeats after exactly that.
    pub fn generate(model: &Cellular, seed: Seed) -> Self {
        let end = (model.duration.0 / NANOS_PER_MILLI).clamp(1, u64::from(MAX_MILLIS)) as u32;
        let path = relative_rates(model, end, seed);
        let level = path.iter().sum::<f64>() / path.len() as f64;
        let per_tick = model.mean.bytes_in(Span::from_millis(TICK_MILLIS.into())).0 as f64
            / OPPORTUNITY.0 as f64;
        let mut rng = seed.stream("trace arrivals", 0);
        let mut millis = Vec::new();
        let mut gap = rng.exponential(1.0);
        for (tick, relative) in path.iter().enumerate() {
            let expected = if level > 0.0 { per_tick * relative / level } else { 0.0 };
            let mut passed = 0.0;
            while passed + gap < expected && millis.len() < MAX_LINES - 1 {
                passed += gap;
                gap = rng.exponential(1.0);
                let within = (passed / expected * f64::from(TICK_MILLIS)) as u32;
                millis.push((tick as u32 * TICK_MILLIS + within).min(end));
            }
            gap = (gap - (expected - passed)).max(0.0);
        }
        millis.push(end);
        Self { millis, period: end }
    }

    /// With these opportunities, sorted, the last of them above zero.
    pub(super) fn of_millis(millis: Vec<u32>) -> Self {
        let period = millis.last().copied().unwrap_or(1).max(1);
        Self { millis, period }
    }

    /// In mahimahi's format.
    pub fn to_text(&self) -> String {
        use fmt::Write as _;
        let mut text = String::with_capacity(self.millis.len() * 7);
        for milli in &self.millis {
            let _ = writeln!(text, "{milli}");
        }
        text
    }

    /// Names the content: FNV-1a over the timestamps.
    pub fn digest(&self) -> u64 {
        self.millis.iter().fold(EMPTY, |digest, millis| fnv1a(digest, &millis.to_le_bytes()))
    }

    /// Milliseconds of all delivery opportunities, non-decreasing.
    pub fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// How long until the trace repeats: its last timestamp, above zero.
    pub fn period(&self) -> Span {
        Span::from_millis(u64::from(self.period))
    }

    /// The same trace, begun at its last opportunity up to this time in its period.
    #[must_use]
    pub fn begun_at(&self, place: Span) -> Self {
        let place = (place.0 / NANOS_PER_MILLI % u64::from(self.period)) as u32;
        let next = self.millis.partition_point(|&milli| milli <= place);
        let Some(begin) = next.checked_sub(1).map(|last| self.millis[last]) else {
            return self.clone();
        };
        let (before, after) = self.millis.split_at(next);
        let after = after.iter().map(|milli| milli - begin);
        let before = before.iter().map(|milli| milli + (self.period - begin));
        Self { millis: after.chain(before).collect(), period: self.period }
    }

    /// The rate at which a link with this trace can carry packets in the long run.
    pub fn mean_rate(&self) -> Rate {
        Rate::of(PACKET * self.millis.len() as u64, self.period())
    }
}

/// The timestamp on a line that follows the timestamp `previous`.
fn read_line(text: &[u8], previous: u32) -> Result<u32, Fault> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return Err(Fault::NotANumber);
    }
    let milli = text.iter().fold(0_u64, |value, digit| {
        value.saturating_mul(10).saturating_add(u64::from(digit - b'0'))
    });
    match u32::try_from(milli) {
        Ok(milli) if milli > MAX_MILLIS => Err(Fault::TooLarge),
        Ok(milli) if milli < previous => Err(Fault::Decreasing(previous)),
        Ok(milli) => Ok(milli),
        Err(_) => Err(Fault::TooLarge),
    }
}

/// At most `length` characters of `bytes`, on one line whatever they hold.
pub(super) fn escape(bytes: &[u8], length: usize) -> String {
    let cut = &bytes[..bytes.len().min(length)];
    let text: String = String::from_utf8_lossy(cut).escape_debug().collect();
    if bytes.len() <= length && text.chars().count() <= length {
        return text;
    }
    text.chars().take(length - 3).collect::<String>() + "..."
}

/// The rate in each tick of `end` milliseconds, in units that the caller scales.
fn relative_rates(model: &Cellular, end: u32, seed: Seed) -> Vec<f64> {
    let tick = f64::from(TICK_MILLIS) / 1000.0;
    let noise = finite(model.volatility) * libm::sqrt(tick);
    let pull = (finite(model.reversion) * tick).min(1.0);
    let begin = (finite(model.outages_per_second) * tick).min(1.0);
    let recover = (tick / model.outage.as_secs_f64().max(tick)).min(1.0);
    let mut rng: Rng = seed.stream("trace rate", 0);
    let mut rate = 1.0_f64;
    let mut down = false;
    (0..end.div_ceil(TICK_MILLIS))
        .map(|_| {
            rate = (rate + pull * (1.0 - rate) + noise * rng.normal()).abs().min(MAX_RELATIVE);
            down = if down { !rng.chance(recover) } else { rng.chance(begin) };
            if down { 0.0 } else { rate }
        })
        .collect()
}

/// The value, zero where it is negative or no number.
fn finite(value: f64) -> f64 {
    if value.is_finite() { value.max(0.0) } else { 0.0 }
}

impl Default for Cellular {
    /// A minute of an LTE-like downlink: 10 Mb/s, as restless as Sprout's default model, with an
    /// outage every twenty seconds.
    fn default() -> Self {
        Self {
            duration: Span::from_millis(60_000),
            mean: Rate(10_000_000),
            volatility: 0.5,
            reversion: 0.5,
            outages_per_second: 0.05,
            outage: Span::from_millis(500),
        }
    }
}

impl fmt::Display for TraceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, line, found, fault } = self;
        write!(out, "{origin}:{line}: found \"{found}\"; ")?;
        match fault {
            Fault::NotANumber => {
                write!(out, "allowed: one whole number of milliseconds per line, digits only")
            }
            Fault::TooLarge => write!(out, "allowed: at most {MAX_MILLIS} milliseconds"),
            Fault::Decreasing(previous) => {
                write!(out, "allowed: at least {previous}, the line before")
            }
            Fault::TooManyLines => write!(out, "allowed: at most {MAX_LINES} lines"),
            Fault::Empty => write!(out, "allowed: at least one line"),
            Fault::NoDuration => write!(out, "allowed: a last timestamp above 0"),
            Fault::Not(allowed) => write!(out, "allowed: {allowed}"),
        }
    }
}

impl std::error::Error for TraceError {}

/// What one delivery opportunity carries: a packet of [`PACKET`] bytes and the 4 bytes that a
/// tunnel device puts before each (mahimahi's `PACKET_SIZE`).
pub const OPPORTUNITY: Bytes = Bytes(1504);

/// Largest packet that fits an opportunity.
pub const PACKET: Bytes = Bytes(1500);

/// Largest file of a trace, in bytes: [`MAX_LINES`] lines with room to spare.
pub const MAX_BYTES: u64 = 1 << 30;

/// Most lines in a trace: an hour at 167 Mb/s, in 200 MB of memory.
pub const MAX_LINES: usize = 50_000_000;

/// Latest timestamp of a trace: a year would not fit 32 bits, thirty days do.
pub const MAX_MILLIS: u32 = 30 * 24 * 3600 * 1000;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// How often the generator's rate moves (Sprout's tick).
const TICK_MILLIS: u32 = 20;

/// The generator's rate never exceeds this many times the level it is pulled to.
const MAX_RELATIVE: f64 = 10.0;

/// Longest quotation of a bad line in an error.
pub(super) const MAX_FOUND: usize = 40;

/// Longest quotation of an input's name in an error.
pub(super) const MAX_ORIGIN: usize = 4096;

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(text: &[u8]) -> (usize, Fault) {
        let error = Trace::parse(text, "t").unwrap_err();
        (error.line, error.fault)
    }

    #[test]
    fn timestamps_are_read_with_either_line_ending_and_without_the_last() {
        for text in ["0\n5\n5\n9\n", "0\r\n5\r\n5\r\n9\r\n", "0\n5\n5\n9"] {
            assert_eq!(Trace::parse(text.as_bytes(), "t").unwrap().millis(), [0, 5, 5, 9]);
        }
    }

    #[test]
    fn every_kind_of_bad_line_is_named_by_its_number() {
        assert_eq!(fault(b""), (1, Fault::Empty));
        assert_eq!(fault(b"\n"), (1, Fault::Empty));
        assert_eq!(fault(b"1\n\n2\n"), (2, Fault::NotANumber));
        assert_eq!(fault(b"1\n2\n\n"), (3, Fault::NotANumber));
        assert_eq!(fault(b"1\n-2\n"), (2, Fault::NotANumber));
        assert_eq!(fault(b"1\n+2\n"), (2, Fault::NotANumber));
        assert_eq!(fault(b"1\n 2\n"), (2, Fault::NotANumber));
        assert_eq!(fault(b"1\n2.5\n"), (2, Fault::NotANumber));
        assert_eq!(fault(b"\x7fELF\x00\xff\xfe"), (1, Fault::NotANumber));
        assert_eq!(fault(b"100\n10"), (2, Fault::Decreasing(100)));
        assert_eq!(fault(b"2592000001\n"), (1, Fault::TooLarge));
        assert_eq!(fault(b"99999999999999999999999999\n"), (1, Fault::TooLarge));
        assert_eq!(fault(b"0\n0\n0\n"), (3, Fault::NoDuration));
    }

    #[test]
    fn an_error_is_one_short_line_whatever_the_input_holds() {
        let mut text = b"1\n".to_vec();
        text.extend((0..=255).filter(|&byte| byte != b'\n').cycle().take(100_000));
        let error = Trace::parse(&text, "dir/a\ntrace").unwrap_err();
        let message = error.to_string();
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(error.found.chars().count() <= 40 && error.found.ends_with("..."), "{message}");
        let error = Trace::parse(b"4\nx3\n", "lte.down").unwrap_err();
        assert_eq!(
            error.to_string(),
            "lte.down:2: found \"x3\"; \
             allowed: one whole number of milliseconds per line, digits only"
        );
    }

    #[test]
    fn a_trace_begun_later_has_its_opportunities_earlier() {
        let trace = Trace::parse(b"2\n5\n5\n9\n10\n", "t").unwrap();
        for (place, millis) in [
            (0, [2, 5, 5, 9, 10]),
            (1, [2, 5, 5, 9, 10]),
            (2, [3, 3, 7, 8, 10]),
            (8, [4, 5, 7, 10, 10]),
        ] {
            let begun = trace.begun_at(Span::from_millis(place));
            assert_eq!((begun.millis(), begun.period()), (millis.as_slice(), trace.period()));
            assert_eq!(begun, trace.begun_at(Span::from_millis(place + 10)));
        }
    }

    #[test]
    fn a_generated_trace_survives_its_own_text() {
        let trace = Trace::generate(&Cellular::default(), Seed(1));
        assert_eq!(Trace::parse(trace.to_text().as_bytes(), "t"), Ok(trace));
    }

    #[test]
    fn a_generated_trace_has_the_asked_mean_and_repeats_after_its_duration() {
        for seed in 0..5 {
            let trace = Trace::generate(&Cellular::default(), Seed(seed));
            assert_eq!(trace.period(), Span::from_millis(60_000));
            let mean = trace.mean_rate().as_mbps();
            assert!((9.8..10.2).contains(&mean), "seed {seed}: {mean} Mb/s");
        }
    }

    #[test]
    fn volatility_and_outages_leave_seconds_without_and_with_much_capacity() {
        let model = Cellular { outages_per_second: 0.2, ..Cellular::default() };
        let trace = Trace::generate(&model, Seed(2));
        let mut tenths = vec![0; 601];
        trace.millis().iter().for_each(|milli| tenths[*milli as usize / 100] += 1);
        assert!(tenths[..600].contains(&0));
        assert!(tenths.iter().any(|&count| count > 120), "83 is the mean");
    }

    #[test]
    fn a_generator_asked_for_nothing_still_makes_a_trace() {
        let model = Cellular {
            duration: Span::ZERO,
            mean: Rate(0),
            volatility: f64::NAN,
            reversion: f64::INFINITY,
            outages_per_second: 1e300,
            outage: Span::MAX,
        };
        assert_eq!(Trace::generate(&model, Seed(0)).millis(), [1]);
    }
}
