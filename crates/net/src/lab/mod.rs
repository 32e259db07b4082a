//! Scenario files on real TCP, or on QUIC: network namespaces, hosts in them, applications, records.
//!
//! ```text
//! scenario ─► Plan ─► hosts in namespaces ── TUN ──► Emulator (one thread)
//!              │        │ senders (one thread) ── TCP_INFO ─► Watch ─┐
//!              │        │ receivers (one thread) ── bytes, content ──┼─► Outcome ─► JSON
//!              └─► Agent: this project's controllers (one thread) ───┘
//! ```
pub mod cli;
pub mod content;
pub mod governors;
pub mod hosts;
pub mod iperf3;
pub mod mptcp_info;
pub mod plan;
mod quic;
pub mod receivers;
pub mod result;
pub mod run;
pub mod scenario;
pub mod sender;
pub mod senders;
mod sockets;
mod subflows;
pub mod tcp_info;
pub mod up;
mod validity;
pub mod watch;
