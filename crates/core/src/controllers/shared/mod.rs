//! What several controllers share.
pub mod bandit;
pub mod kong;
pub mod pcc;
pub mod tabular;
