//! Parts that several controllers share.

pub mod bandit;
pub mod bbr;
pub mod delivered;
pub mod hystart;
pub mod kong;
pub mod linux_growth;
pub mod overload;
pub mod own_limit;
pub mod own_queue;
pub mod pcc;
pub mod quic;
pub mod reno_window;
pub mod sensing;
pub mod tabular;
pub mod windowed_max;
pub mod windowed_min;
