//! What several learned controllers share, and nothing else.
pub mod forest;
pub mod kong;
pub mod tabular;
