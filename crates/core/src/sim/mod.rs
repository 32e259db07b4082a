//! The simulator.
pub mod delay;
pub mod loss;
pub mod packet;
pub mod queues;
pub mod service;
pub mod steps;
pub mod trace;
