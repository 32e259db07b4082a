//! Control laws that controllers and policies share: they turn what is sensed into a window.
pub mod cubic;
pub mod hystart;
pub mod linux_growth;
pub mod own_queue;
pub mod reno_window;
