//! Names for content: equal digests mean equal bytes, except by a chance of 2⁻⁶⁴. The build script uses
//! this file, too.

/// FNV-1a's digest of nothing, with which it begins.
pub const EMPTY: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, 64 bits, over what `digest` stands for and then `bytes`.
pub fn fnv1a(digest: u64, bytes: &[u8]) -> u64 {
    let step = |digest: u64, &byte: &u8| (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(digest, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the function's authors (draft-eastlake-fnv, appendix C).
    #[test]
    fn the_digests_are_those_of_the_authors_vectors() {
        assert_eq!(fnv1a(EMPTY, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(EMPTY, b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a(fnv1a(EMPTY, b"foo"), b"bar"), fnv1a(EMPTY, b"foobar"));
    }
}
