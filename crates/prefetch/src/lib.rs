//! Asks the processor for values before they are needed: a hint, which changes no result.
//!
//! A crate of its own, because the instruction is `unsafe` in the standard library and the simulator's
//! crate forbids `unsafe`. On processors other than x86-64 nothing is asked for.

/// Bytes of a line of the cache.
#[cfg(target_arch = "x86_64")]
const LINE: usize = 64;

/// Asks for all lines of a value.
#[inline]
pub fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let start = std::ptr::from_ref(value).cast::<i8>();
        for offset in (0..size_of_val(value)).step_by(LINE) {
            // SAFETY: the hint reads no memory that the program could see and cannot fault, whatever
            // the address (Intel SDM volume 2, PREFETCHh); SSE is part of x86-64.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(offset)) };
        }
        // A value that does not begin with a line ends in one more.
        let last = start.wrapping_add(size_of_val(value).saturating_sub(1));
        // SAFETY: as above.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(last) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = value;
}

#[cfg(test)]
mod tests {
    use super::prefetch;

    #[test]
    fn values_of_any_size_are_asked_for_and_stay_what_they_are() {
        let (empty, bytes): ([u8; 0], Vec<u8>) = ([], (0..=255).collect());
        prefetch(&empty);
        prefetch(&bytes[3..200]);
        prefetch::<[u64]>(&[]);
        prefetch("text");
        assert!(bytes.iter().enumerate().all(|(index, &byte)| index == usize::from(byte)));
    }
}
