//! Ackademy's core: congestion controllers, the sender that drives them, and a deterministic
//! packet-level simulator. Pure: no I/O, no clock, no threads, no `unsafe`.
//!
//! ```
//! use ackademy::{rng::Seed, scenario::Scenario, sim};
//!
//! let text = "
//! duration_s = 5
//! [dumbbell]
//! rtt_ms = 40
//! bottleneck = { rate_mbps = 10, queue = { kind = \"drop_tail\", bdp = 1 } }
//! [[flow]]
//! controller = \"cubic\"
//! ";
//! let scenario = Scenario::parse(text, "example.toml").expect("a scenario");
//! let outcome = sim::run(&scenario.network, Seed(1)).expect("a known controller");
//! let flow = &outcome.flows[0];
//! let mbps = flow.delivered_bytes as f64 * 8e-6 / flow.active_s;
//! assert!((8.0..10.0).contains(&mbps));
//! ```
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

pub mod scheme;

pub mod sim;

pub mod scenario;

pub mod live;

pub mod env;

/// Hash of this crate's sources; part of every result's name.
pub const CODE_HASH: &str = env!("ACKADEMY_CODE_HASH");
