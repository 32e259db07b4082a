//! Ackademy's core: congestion controllers, the sender that drives them, and a deterministic
//! packet-level simulator. Pure: no I/O, no clock, no threads, no `unsafe`.
#![forbid(unsafe_code)]

pub mod ack_gate;
pub mod control;
pub mod controllers;
pub mod coupled;
pub mod delivery_rate;
pub mod env;
pub mod histogram;
pub mod hystart;
pub mod params;
pub mod policy;
pub mod quic;
pub mod receiver;
pub mod record;
pub mod reno_window;
pub mod rng;
pub mod rtt;
pub mod scenario;
pub mod sender;
pub mod sensing;
pub mod sim;
pub mod units;

/// Hash of this crate's sources; part of every result's name.
pub const CODE_HASH: &str = env!("ACKADEMY_CODE_HASH");
