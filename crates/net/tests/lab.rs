//! The lab: scenarios on this machine's TCP, and on QUIC, one at a time.
mod common;
mod lab_cleanup;
mod lab_quic;
mod lab_run;
