//! What several learned controllers share, and nothing else.
pub mod bandit;
pub mod forest;
pub mod kong;
pub mod neural;
pub mod pcc;
pub mod policy;
pub mod tabular;

#[cfg(test)]
#[path = "../../tests/support/forest.rs"]
pub(crate) mod grown;

#[cfg(test)]
#[path = "../../tests/support/network.rs"]
pub(crate) mod written;
