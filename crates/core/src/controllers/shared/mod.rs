//! Parts that several controllers share.

pub mod bandit;
pub mod bbr;
pub mod kong;
pub mod own_limit;
pub mod pcc;
pub mod quic;
pub mod tabular;
