//! Ackademy's controllers in QUIC.
//!
//! [`Factory`] makes a controller of the core govern the connections of noq:
//!
//! ```
//! use ackademy::scheme::Scheme;
//! use noq_proto::TransportConfig;
//! use std::sync::Arc;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let factory = ackademy_quic::Factory::new(&Scheme::resolve("cubic", &[])?)?;
//! let mut transport = TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(factory));
//! # Ok(())
//! # }
//! ```
//!
//! A [`Factory`] also governs connections of quinn, whose trait takes no pacing rate: quinn paces
//! at 5/4 of a window per round trip, whatever the controller asks for. It names neither the packets that are lost nor
//! those of one acknowledgement, so that the oldest count.
//!
//! [`virtual_time`] runs both ends of noq, or of quinn, over the links of a scenario, without sockets and without a clock.
#![forbid(unsafe_code)]

mod adapter;
mod coupled;
mod factory;
mod flow;
mod quinn;
pub mod tls;
pub mod virtual_time;
mod watching;

pub use factory::{Factory, Handle, Refused, Start};
pub use watching::Watch;

/// Hash of this crate's sources and of the versions of noq and quinn; part of every result's name.
pub const CODE_HASH: &str = env!("ACKADEMY_QUIC_HASH");
