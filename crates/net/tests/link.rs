//! The emulator of links on TUN devices, in this process and as a program.
mod common;
mod link_cli;
mod link_tun;
