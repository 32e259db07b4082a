//! The simulator.
pub mod packet;
pub mod queues;
