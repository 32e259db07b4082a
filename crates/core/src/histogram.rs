//! Quantiles of many times in little memory: a histogram whose buckets grow with the value.
use crate::hint::unlikely;
use crate::units::Span;
use ackademy_prefetch::prefetch;

/// Counts of spans in buckets of 1/128 of an octave: a quantile is off by at most 0.8 %. Only the
/// range that was seen is kept, so a flow whose round trips stay within an octave takes half a KiB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanHistogram {
    counts: Vec<u32>,
    /// Buckets of the latest spans, counted when there are many: the counts of many histograms are far away, and
    /// what is added comes to lie side by side here.
    waiting: Vec<u16>,
    /// The latest of them.
    recent: [u16; RECENT],
    held: u8,
    /// The bucket of the first count.
    first: u16,
}

/// Spans that wait in place.
const RECENT: usize = 11;
/// Spans that wait to be counted at most.
const WAITING: usize = RECENT * 24;

impl SpanHistogram {
    /// Counts a span so many times.
    pub fn add(&mut self, span: Span, times: u32) {
        let bucket = bucket_of(span.0);
        if times != 1 {
            return self.count(bucket, times);
        }
        self.recent[usize::from(self.held)] = bucket as u16;
        self.held += 1;
        if unlikely(usize::from(self.held) == RECENT) {
            self.put_aside();
        }
    }

    /// The latest spans join those that wait.
    fn put_aside(&mut self) {
        let held = std::mem::take(&mut self.held);
        if self.waiting.is_empty() {
            self.waiting.reserve_exact(WAITING);
        }
        self.waiting.extend_from_slice(&self.recent[..held.into()]);
        if self.waiting.len() + RECENT > WAITING {
            self.count_waiting();
        }
    }

    /// Counts the spans that wait aside.
    fn count_waiting(&mut self) {
        let mut waiting = std::mem::take(&mut self.waiting);
        for bucket in waiting.drain(..) {
            self.count(bucket.into(), 1);
        }
        self.waiting = waiting;
    }

    /// Asks for what the next span may touch.
    #[inline]
    pub(crate) fn fetch(&self) {
        if usize::from(self.held) + 1 == RECENT
            && let Some(last) = self.waiting.last()
        {
            prefetch(last);
        }
    }

    fn count(&mut self, bucket: usize, times: u32) {
        if unlikely(self.counts.is_empty()) {
            self.first = bucket as u16;
        } else if unlikely(bucket < usize::from(self.first)) {
            let missing = usize::from(self.first) - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, missing));
            self.first = bucket as u16;
        }
        let index = bucket - usize::from(self.first);
        if unlikely(index >= self.counts.len()) {
            self.counts.resize(index + 1, 0);
        }
        self.counts[index] = self.counts[index].saturating_add(times);
    }

    /// How many spans were counted.
    pub fn total(&self) -> u64 {
        let counted: u64 = self.counts.iter().map(|&count| u64::from(count)).sum();
        counted + self.waiting.len() as u64 + u64::from(self.held)
    }

    /// The value that `permille` thousandths of the counted spans do not exceed, spread evenly inside
    /// its bucket; `None` without spans.
    pub fn quantile(&self, permille: u64) -> Option<Span> {
        if self.held > 0 || !self.waiting.is_empty() {
            let mut all = self.clone();
            all.put_aside();
            all.count_waiting();
            return all.quantile(permille);
        }
        let rank = (self.total() * permille).div_ceil(1000).max(1);
        let mut below = 0;
        for (index, &count) in self.counts.iter().enumerate() {
            let count = u64::from(count);
            if below + count >= rank {
                let bucket = usize::from(self.first) + index;
                let (low, high) = (lowest_in(bucket), lowest_in(bucket + 1));
                let inside = u128::from(high - low) * u128::from(2 * (rank - below) - 1);
                return Some(Span(low + (inside / u128::from(2 * count)) as u64));
            }
            below += count;
        }
        None
    }
}

/// Buckets per octave, as a power of two.
const BITS: u32 = 7;

/// Values below `2^BITS` have a bucket each.
fn bucket_of(value: u64) -> usize {
    let octave = value.max(1).ilog2().saturating_sub(BITS);
    ((u64::from(octave) << BITS) + (value >> octave)) as usize
}

/// The smallest value in a bucket.
fn lowest_in(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let octave = (bucket >> BITS).saturating_sub(1);
    (bucket - (octave << BITS)) << octave
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_tile_the_range_without_gaps() {
        for value in (0..5000).chain([1 << 30, (1 << 40) + 12345, u64::from(u32::MAX)]) {
            let bucket = bucket_of(value);
            assert!((lowest_in(bucket)..lowest_in(bucket + 1)).contains(&value), "{value}");
        }
    }

    #[test]
    fn quantiles_are_within_a_bucket_of_the_exact_ones() {
        let mut histogram = SpanHistogram::default();
        for step in (0..10_000_u64).rev() {
            histogram.add(Span::from_micros(40_000 + 7 * step), 1);
        }
        for permille in [10, 500, 950, 1000] {
            let exact = 40e6 + 7e3 * permille as f64 * 10.0;
            let ours = histogram.quantile(permille).unwrap().0 as f64;
            assert!((ours / exact - 1.0).abs() < 1.0 / 128.0, "{permille}: {ours} against {exact}");
        }
    }

    #[test]
    fn a_rare_long_round_trip_is_seen_by_its_quantile_only() {
        let mut histogram = SpanHistogram::default();
        for sample in 0..100 {
            histogram.add(Span::from_micros(if sample == 50 { 900_000 } else { 50_000 }), 1);
        }
        assert!(histogram.quantile(990).unwrap() < Span::from_micros(51_000));
        assert!(histogram.quantile(1000).unwrap() > Span::from_micros(890_000));
    }

    #[test]
    fn no_spans_have_no_quantile() {
        assert_eq!(SpanHistogram::default().quantile(500), None);
        assert_eq!(SpanHistogram::default().total(), 0);
    }

    #[test]
    fn spans_that_wait_to_be_counted_are_in_the_total() {
        let mut histogram = SpanHistogram::default();
        (0..30).for_each(|span| histogram.add(Span(span), 1));
        histogram.add(Span(7), 5);
        assert_eq!(histogram.total(), 35);
    }
}
