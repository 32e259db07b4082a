//! Recorded values over time, a rate or a delay: a value per line at equal intervals, or columns of a table.
use super::steps::Steps;
use super::trace::{Fault, MAX_FOUND, MAX_ORIGIN, Trace, TraceError, escape};
use crate::digest::{EMPTY, fnv1a};
use crate::units::{Rate, Span, Time};
use std::fmt::Write as _;
use std::sync::Arc;

/// What a file of a link holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Recorded {
    /// Delivery opportunities.
    Opportunities(Arc<Trace>),
    /// Rates.
    Rates(Steps<Rate>),
    /// Propagation delays, one way.
    Delays(Steps<Span>),
}

/// How a text holds values.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// When each value begins.
    pub times: Times<'a>,
    /// Column of the values: a name in the first line, or a number from 1. Without it, a line is a value.
    pub column: Option<&'a str>,
    /// Factor that makes Mb/s or milliseconds of the values.
    pub scale: f64,
    /// Largest value, in Mb/s or milliseconds.
    pub max: f64,
}

/// When each value of a text begins.
#[derive(Clone, Copy, Debug)]
pub enum Times<'a> {
    /// At equal intervals.
    Every(Span),
    /// At the seconds in this column, counted from the first; the last value holds as long as the one before.
    Column(&'a str),
}

/// Columns of a text, by their places.
struct Columns {
    separator: Option<char>,
    time: Option<usize>,
    value: Option<usize>,
    has_names: bool,
}

/// What a line says: the second, as text and number, if there is a column of times.
struct Row<'t> {
    time: Option<(&'t str, f64)>,
    value: f64,
}

/// What stands in a line, and what is wrong with it.
type Refused<'t> = (&'t str, Fault);

impl Recorded {
    /// Names the content: FNV-1a over times and values.
    pub fn digest(&self) -> u64 {
        let pair = |digest, at: Time, value: u64| {
            fnv1a(fnv1a(digest, &at.0.to_le_bytes()), &value.to_le_bytes())
        };
        match self {
            Self::Opportunities(trace) => trace.digest(),
            Self::Rates(steps) => {
                steps.steps().iter().fold(EMPTY, |digest, step| pair(digest, step.0, step.1.0))
            }
            Self::Delays(steps) => {
                steps.steps().iter().fold(EMPTY, |digest, step| pair(digest, step.0, step.1.0))
            }
        }
    }

    /// As a text: mahimahi's format, or lines of a second and a value in Mb/s or milliseconds.
    pub fn to_text(&self) -> String {
        match self {
            Self::Opportunities(trace) => trace.to_text(),
            Self::Rates(steps) => lines(steps.steps().iter().map(|&(at, rate)| (at, rate.0))),
            Self::Delays(steps) => lines(steps.steps().iter().map(|&(at, span)| (at, span.0))),
        }
    }
}

/// A rate in bits per second is Mb/s with six decimals, and a delay in nanoseconds is milliseconds with six.
fn lines(steps: impl Iterator<Item = (Time, u64)>) -> String {
    let mut text = String::new();
    for (at, value) in steps {
        let (secs, nanos) = (at.0 / 1_000_000_000, at.0 % 1_000_000_000);
        let (whole, parts) = (value / 1_000_000, value % 1_000_000);
        let _ = writeln!(text, "{secs}.{nanos:09} {whole}.{parts:06}");
    }
    text
}

/// Reads values, each of which `make` makes of its millionths, and repeats them without end.
///
/// # Errors
///
/// On the first line that breaks a rule; `origin` names the input in the message.
pub fn parse<T: Copy>(
    bytes: &[u8],
    origin: &str,
    layout: &Layout,
    make: impl Fn(u64) -> T,
) -> Result<Steps<T>, TraceError> {
    let fail = |line: usize, text: &[u8], fault| TraceError {
        origin: escape(origin.as_bytes(), MAX_ORIGIN),
        line,
        found: escape(text, MAX_FOUND),
        fault,
    };
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\n").unwrap_or(bytes);
    let first = bytes.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let columns = Columns::of(first, layout).map_err(|fault| fail(1, first, fault))?;
    let mut steps: Vec<(Time, T)> = Vec::new();
    let mut begin = 0.0;
    let lines = bytes.split(|&byte| byte == b'\n').enumerate().skip(usize::from(columns.has_names));
    for (index, text) in lines {
        let here = |(found, fault): (&str, Fault)| fail(index + 1, found.as_bytes(), fault);
        let text = std::str::from_utf8(text)
            .map_err(|_| fail(index + 1, text, Fault::Not("UTF-8 text".to_owned())))?;
        if steps.len() >= MAX_VALUES {
            let allowed = format!("at most {MAX_VALUES} values");
            return Err(here((text, Fault::Not(allowed))));
        }
        let Row { time, value } = columns.read(text, layout).map_err(here)?;
        let at = match (layout.times, time) {
            (Times::Every(every), _) => Time(every.0.saturating_mul(steps.len() as u64)),
            (Times::Column(_), None) => Time(0),
            (Times::Column(_), Some((found, secs))) => {
                if steps.is_empty() {
                    begin = secs;
                }
                let at = Time::from_secs_f64(secs - begin);
                let late = steps.last().is_none_or(|last| last.0 < at);
                if !late || at > LATEST {
                    let allowed =
                        "a second above that of the line before, at most 100000000 after the first";
                    return Err(here((found, Fault::Not(allowed.to_owned()))));
                }
                at
            }
        };
        steps.push((at, make((value * 1e6 + 0.5) as u64)));
    }
    let period = match (layout.times, steps.as_slice()) {
        (_, []) => return Err(fail(1, b"", Fault::Empty)),
        (Times::Every(every), _) => Span(every.0.saturating_mul(steps.len() as u64)),
        (_, [.., before, last]) => Span(last.0.0 + (last.0.0 - before.0.0)),
        (_, [_]) => Span::from_millis(1000),
    };
    Ok(Steps::repeating(steps, period).expect("times increase from zero and end before the period"))
}

impl Columns {
    fn of(first: &[u8], layout: &Layout) -> Result<Self, Fault> {
        let first = String::from_utf8_lossy(first);
        let separator = [',', ';', '\t'].into_iter().find(|&one| first.contains(one));
        let names = fields(&first, separator);
        let mut has_names = false;
        let mut place = |column: &str| {
            if let Some(place) = names.iter().position(|name| *name == column) {
                has_names = true;
                return Ok(place);
            }
            let number = column.parse::<usize>().ok().filter(|&number| number > 0);
            number.map(|number| number - 1).ok_or_else(|| {
                Fault::Not(format!(
                    "a first line that names the column {}",
                    escape(column.as_bytes(), MAX_FOUND)
                ))
            })
        };
        let value = layout.column.map(&mut place).transpose()?;
        let time = match layout.times {
            Times::Column(column) => Some(place(column)?),
            Times::Every(_) => None,
        };
        Ok(Self { separator, time, value, has_names })
    }

    /// What a line says.
    fn read<'t>(&self, text: &'t str, layout: &Layout) -> Result<Row<'t>, Refused<'t>> {
        let (scale, max) = (layout.scale, layout.max);
        let value = |found: &'t str| match found.trim().parse::<f64>() {
            Ok(value) if (0.0..=max).contains(&(value * scale)) => Ok(value * scale),
            _ => Err((found, Fault::Not(format!("a number in [0, {}]", max / scale)))),
        };
        let Some(column) = self.value else { return Ok(Row { time: None, value: value(text)? }) };
        let found = fields(text, self.separator);
        let field = |place: usize| {
            let fault = || Fault::Not(format!("a line of {} fields or more", place + 1));
            found.get(place).copied().ok_or_else(|| (text, fault()))
        };
        let time = self.time.map(|place| {
            let found = field(place)?;
            let secs = found.parse::<f64>().ok().filter(|secs| secs.is_finite());
            let secs = secs.ok_or((found, Fault::Not("a number of seconds".to_owned())))?;
            Ok((found, secs))
        });
        Ok(Row { time: time.transpose()?, value: value(field(column)?)? })
    }
}

/// The fields of a line; without a separator, what blanks separate. Quotes enclose a field.
fn fields(line: &str, separator: Option<char>) -> Vec<&str> {
    let Some(separator) = separator else { return line.split_whitespace().collect() };
    let mut quoted = false;
    let fields = line.split(|found: char| {
        quoted ^= found == '"';
        !quoted && found == separator
    });
    fields.map(|field| field.trim().trim_matches('"')).collect()
}

/// Largest file of values, in bytes.
pub const MAX_BYTES: u64 = 1 << 28;

/// Most values of a file: eleven hours in steps of 10 ms, in 64 MB of memory.
pub const MAX_VALUES: usize = 4_000_000;

/// Latest time of a value: that of a scenario.
const LATEST: Time = Time(100_000_000 * 1_000_000_000);

#[cfg(test)]
#[path = "tests/series.rs"]
mod tests;
