//! Link emulator in user space: the simulator's own links, between TUN devices, in real time.
//!
//! ```text
//! namespace A           Fabric: Link ─► Link ─► …             namespace B
//! TUN a ── read ──► inject(now) ─────────────────► pop_due(now) ── write ──► TUN b
//! ```
//!
//! [`fabric`] has no I/O and no clock: it routes packets over `ackademy::sim::link::Link`s and says
//! when each is due. [`emulator`] is the one thread that moves packets between it and the devices of
//! [`tun`].
//!
//! ```no_run
//! # use ackademy::{rng::Seed, scenario::Scenario, units::Span};
//! # use ackademy_net::link::{emulator, fabric, tun};
//! # use std::{net::Ipv4Addr, path::PathBuf, sync::atomic::AtomicBool};
//! # fn main() -> Result<(), ackademy_net::error::Error> {
//! # let (scenario, stop): (Scenario, AtomicBool) = unimplemented!();
//! let (a, b) = (Ipv4Addr::new(10, 77, 0, 1), Ipv4Addr::new(10, 77, 0, 2));
//! let port = |name: &str, address: Ipv4Addr| tun::Plan {
//!     namespace: PathBuf::from(format!("/run/netns/{name}")),
//!     device: "link0".to_owned(),
//!     addresses: vec![(address.into(), 24)],
//!     mtu: 1500,
//! };
//! let mut network = fabric::Fabric::new(&scenario.network.links, Seed(1), Span::from_millis(10));
//! network.add_flow(&fabric::Flow {
//!     hosts: [(0, a.into()), (1, b.into())],
//!     route: scenario.network.connections[0].subflows[0].clone(),
//! })?;
//! let ports = vec![tun::open(&port("A", a))?, tun::open(&port("B", b))?];
//! let emulator = emulator::Emulator::new(ports, network, emulator::Options::default());
//! let report = emulator.run(&stop)?; // in a thread of its own, until `stop` is set
//! # Ok(()) }
//! ```
pub mod cli;
pub mod delays;
pub mod emulator;
pub mod fabric;
pub mod options;
mod packet;
pub mod tun;
