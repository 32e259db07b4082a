//! Flows of the kernel's TCP, governed from user space and in the kernel. The lab's, the link's and the
//! faults' tests are programs of their own, which run one after another, so that none of them disturbs
//! the times and rates that are measured here.
mod common;
mod kernel_compiled;
mod kernel_flows;
mod kernel_law;
mod kernel_losses;
mod kernel_mptcp;
mod kernel_pacing;
#[path = "common/recorded.rs"]
mod recorded;
#[path = "../../core/tests/support/seeds.rs"]
#[allow(dead_code, reason = "the core's tests use all of it")]
mod seeds;
