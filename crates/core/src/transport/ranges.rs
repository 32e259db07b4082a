//! Search in sorted, disjoint ranges of segments, most of which is near the newest: what arrives and what is
//! reported belongs there, unless a hole far back is repaired.
use std::collections::VecDeque;

/// A range `start..end` of segments.
pub type Range = (u64, u64);

/// How many ranges are looked at from the end before the rest is halved.
const NEAR: usize = 4;

/// The index of the first range that is not `before`, or how many there are; those that are come first.
pub fn first_after(ranges: &VecDeque<Range>, before: impl Fn(&Range) -> bool) -> usize {
    for index in (0..ranges.len()).rev().take(NEAR) {
        if before(&ranges[index]) {
            return index + 1;
        }
    }
    if ranges.len() <= NEAR { 0 } else { ranges.partition_point(before) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Rng;

    #[test]
    fn what_is_found_is_where_a_binary_search_finds_it() {
        let mut rng = Rng::new(3);
        for count in (0..12).chain([40]) {
            let mut next = 0;
            let ranges: VecDeque<Range> = (0..count)
                .map(|_| {
                    let start = next + 1 + rng.below(4);
                    next = start + 1 + rng.below(4);
                    (start, next)
                })
                .collect();
            for seq in 0..next + 3 {
                let before = |range: &Range| range.1 <= seq;
                assert_eq!(first_after(&ranges, before), ranges.partition_point(before), "{seq}");
            }
        }
    }
}
