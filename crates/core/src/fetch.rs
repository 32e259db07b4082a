//! Asks for values before they are needed: a hint to the processor that changes no result.
use prefetch_index::prefetch_index;

/// Bytes of a line of the cache.
const LINE: usize = 64;

/// Asks for all lines of a value.
#[inline]
pub(crate) fn all<T: ?Sized>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>().addr();
    let end = start + size_of_val(value).max(1);
    for line in (start / LINE..end.div_ceil(LINE)).map(|line| line * LINE) {
        let known: &[u8] = &[];
        prefetch_index(known, line.wrapping_sub(known.as_ptr().addr()));
    }
}
