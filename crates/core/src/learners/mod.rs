//! What several learned controllers share, and nothing else.
pub mod bandit;
pub mod kong;
pub mod pcc;
pub mod tabular;
