//! Whether an answer to loss was for nothing: by timestamps (Eifel, RFC 3522) or by reports of
//! duplicates (RFC 3708), with Linux's rules for when to take it back.
use crate::units::Time;

/// The latest answer to loss, and what is known of its retransmissions.
#[derive(Clone, Copy, Debug)]
pub struct Undo {
    /// There is an answer that can still be taken back.
    armed: bool,
    /// Retransmissions of segments from here on count.
    from: u64,
    /// When the first retransmission left.
    first: Time,
    retransmitted: u64,
    /// Of them, reported to have come twice.
    duplicates: u64,
}

impl Undo {
    /// Nothing to take back.
    pub const NONE: Self =
        Self { armed: false, from: 0, first: Time::NEVER, retransmitted: 0, duplicates: 0 };

    /// The controller was told of a loss while `una` was the first segment not acknowledged.
    pub fn arm(una: u64) -> Self {
        Self { armed: true, from: una, ..Self::NONE }
    }

    /// Something leaves again.
    pub fn on_retransmission(&mut self, now: Time) {
        self.first = self.first.min(now);
        self.retransmitted += 1;
    }

    /// Segment `seq` was received twice.
    pub fn on_duplicate(&mut self, seq: u64) {
        self.duplicates += u64::from(self.armed && seq >= self.from);
    }

    /// An acknowledgement advanced that echoes `echo`: whether what it acknowledges left before the
    /// first retransmission.
    pub fn is_outrun(&self, echo: Time) -> bool {
        self.armed && echo < self.first
    }

    /// Whether everything sent again came twice.
    pub fn is_all_duplicates(&self) -> bool {
        self.armed && self.retransmitted > 0 && self.duplicates >= self.retransmitted
    }
}
