//! Link emulator in user space: the simulator's own links, between TUN devices, in real time.
pub mod cli;
