//! Packets of a run as files: [`Pcap`] for Wireshark, [`Qlog`] for qvis. Both are [taps](ackademy::sim::tap)
//! that write as the simulation runs, and keep no more than what is on its way.
#![forbid(unsafe_code)]

pub mod failure;
pub mod flows;
pub mod pcap;
pub mod positions;
pub mod qlog;

pub use failure::{Failure, Output};
pub use flows::Flow;
pub use pcap::Pcap;
pub use qlog::Qlog;
