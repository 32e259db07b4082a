//! Options of a TCP header: RFC 9293, RFC 7323, RFC 2018, RFC 8684.

/// Most bytes of options.
pub const OPTIONS_MAX: usize = 40;
const NOP: u8 = 1;
/// Kind of all options of Multipath TCP.
const MPTCP: u8 = 30;

/// The options of a segment, each on a boundary of four bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options(Vec<u8>);

impl Options {
    /// Those of a SYN: segment size, selective acknowledgements, window scale.
    pub fn of_syn(mss: u16, selective: bool, shift: u8) -> Self {
        let mut options = Self::default();
        options.put(2, &mss.to_be_bytes());
        options.put(3, &[shift]);
        if selective {
            options.put(4, &[]);
        }
        options
    }

    /// Adds timestamps: the own one and the echo.
    pub fn timestamps(&mut self, value: u32, echo: u32) {
        self.put(8, &[value.to_be_bytes(), echo.to_be_bytes()].concat());
    }

    /// Adds an option of Multipath TCP.
    pub fn mptcp(&mut self, value: &[u8]) {
        self.put(MPTCP, value);
    }

    /// Adds as many of the blocks as have room.
    pub fn sack(&mut self, blocks: &[(u32, u32)]) {
        let room = (OPTIONS_MAX - self.0.len()).saturating_sub(4) / 8;
        let kept = blocks.iter().take(room);
        let value: Vec<u8> = kept
            .flat_map(|(start, end)| [start.to_be_bytes(), end.to_be_bytes()].concat())
            .collect();
        if !value.is_empty() {
            self.put(5, &value);
        }
    }

    /// The bytes: a multiple of four.
    pub fn as_slice(&self) -> &[u8] {
        &self.0
    }

    /// Adds an option behind as many NOPs as bring its end to a boundary.
    fn put(&mut self, kind: u8, value: &[u8]) {
        let length = value.len() + 2;
        self.0.resize(self.0.len() + length.next_multiple_of(4) - length, NOP);
        self.0.extend([kind, length as u8]);
        self.0.extend(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_ends_on_a_boundary_of_four_bytes() {
        let mut options = Options::of_syn(1448, true, 7);
        options.timestamps(1, 0);
        assert_eq!(
            options.as_slice(),
            [2, 4, 5, 168, 1, 3, 3, 7, 1, 1, 4, 2, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0]
        );
    }

    #[test]
    fn as_many_blocks_are_kept_as_have_room() {
        let blocks = [(1, 2), (3, 4), (5, 6)];
        let with = |mptcp: &[u8]| {
            let mut options = Options::default();
            options.timestamps(9, 9);
            options.mptcp(mptcp);
            options.sack(&blocks);
            let sack = &options.as_slice()[12 + mptcp.len() + 2..];
            (sack.get(3).map_or(0, |length| (length - 2) / 8), options.as_slice().len())
        };
        assert_eq!(with(&[0; 6]), (2, 40));
        assert_eq!(with(&[0; 18]), (0, 32));
    }
}
