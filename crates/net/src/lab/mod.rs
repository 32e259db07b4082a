//! Scenario files on real TCP: network namespaces, hosts in them, applications, records.
pub mod cli;
