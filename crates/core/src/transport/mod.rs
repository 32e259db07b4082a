//! The end point of a connection, without I/O and clock: packets, sender, receiver, and what they
//! measure. The simulator drives it today; anything that moves packets can.

pub mod config;
pub mod delivery_rate;
mod few;
pub mod misbehaviour;
pub mod multipath;
pub mod packet;
pub mod prr;
pub mod receiver;
pub mod rtt;
pub mod schedulers;
pub mod send_hook;
pub mod sender;
