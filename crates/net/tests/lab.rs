//! The lab: scenarios on this machine's TCP, one at a time.
mod common;
mod lab_cleanup;
mod lab_run;
