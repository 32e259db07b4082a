//! Everything that touches a socket, a clock or the kernel: the congestion-control daemon, the link
//! emulator, and the lab that runs scenario files on real TCP. Linux only.
pub mod bench;
pub mod clock;
pub mod command;
pub mod error;
mod files;
pub mod interrupt;
pub mod kernel;
pub mod lab;
pub mod link;
pub mod namespace;
mod priority;
