//! Everything that touches a socket, a clock or the kernel: the congestion-control daemon, the link
//! emulator, the lab that runs scenario files on real TCP and QUIC, and files over QUIC. Linux only.
// They panic where what they print cannot be written; `say!` and `note!` do not.
#![warn(clippy::print_stdout, clippy::print_stderr)]

/// A line on standard output, with the arguments of `format!`; a `Result`.
macro_rules! say {
    ($($words:tt)*) => {
        $crate::output::line(format_args!($($words)*))
    };
}

/// A line on standard error, with the arguments of `format!`; lost where it cannot be written.
#[macro_export]
macro_rules! note {
    ($($words:tt)*) => {
        $crate::output::note(format_args!($($words)*))
    };
}

pub mod bench;
pub mod clock;
pub mod command;
pub mod error;
mod files;
pub mod interrupt;
pub mod kernel;
pub mod lab;
pub mod licenses;
pub mod link;
pub mod manual;
pub mod namespace;
pub mod output;
mod paths;
mod priority;
pub mod quic;
#[cfg(test)]
#[path = "../tests/common/require.rs"]
mod require;
