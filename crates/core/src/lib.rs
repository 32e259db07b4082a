//! Ackademy's core: congestion controllers, the sender that drives them, and a deterministic
//! packet-level simulator. Pure: no I/O, no clock, no threads, no `unsafe`.
//!
//! Each module uses only modules below it, in the order that `tests/layers.rs` lists and holds.
#![forbid(unsafe_code)]

pub mod digest;
mod hint;
pub mod histogram;
pub mod ranges;
pub mod rng;
pub(crate) mod toml_error;
pub mod units;

pub mod checked;
pub mod control;
pub mod decision;
pub mod params;

pub mod transport;

pub mod law;
pub mod sensing;

pub mod controllers;
pub mod coupled;
pub mod policy;

pub mod sim;

pub mod scenario;

pub mod live;

pub mod env;

/// Hash of this crate's sources; part of every result's name.
pub const CODE_HASH: &str = env!("ACKADEMY_CODE_HASH");
