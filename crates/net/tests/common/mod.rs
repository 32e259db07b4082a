//! What several test programs share.
#![allow(dead_code)] // each uses a part of it
pub mod bench;
pub mod kernel;
pub mod lab;
pub mod machine;
pub mod require;
