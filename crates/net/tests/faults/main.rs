//! What may go wrong under live flows, and what must not follow from it: no connection is reset, none
//! hangs, every byte arrives, and nothing is left on the machine.
//!
//! Each test has two network namespaces of its own, a name and a BPF file system to pin in; those of MPTCP
//! have emulated paths in two more. One runs at a time, since they share the machine's processors.
#![allow(clippy::unwrap_used)] // a machine that refuses a namespace is a failure of the test
mod bed;
#[path = "../common/mod.rs"]
mod common;
mod controllers;
mod in_kernel;
mod kills;
mod life;
mod multipath;
#[allow(dead_code)] // the core's tests use more of it
#[path = "../../../core/tests/support/network.rs"]
mod network;
mod policies;
mod slots;
mod start;
mod subflows;
mod traffic;
mod types;
use common::require;
