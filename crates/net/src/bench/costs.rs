//! What the BPF programs of a congestion control cost, as the kernel counts it.
use crate::error::Error;
use libbpf_rs::libbpf_sys;
use libbpf_rs::query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo};
use std::collections::BTreeSet;
use std::os::fd::{FromRawFd, OwnedFd};

/// The programs of one daemon, by id.
#[derive(Debug)]
pub(super) struct Programs(BTreeSet<u32>);

/// One program, called so often, for so long.
struct Cost {
    name: String,
    calls: u64,
    time_ns: u64,
}

impl Programs {
    /// Those that `start` loads, and what it returns.
    pub fn of<T>(start: impl FnOnce() -> Result<T, Error>) -> Result<(Self, T), Error> {
        let before = loaded();
        let started = start()?;
        Ok((Self(&loaded() - &before), started))
    }

    /// Mean time of a call of the program of this name, ns.
    pub fn time_ns(&self, name: &str) -> f64 {
        let named = |program: &ProgramInfo| {
            self.0.contains(&program.id) && program.name.to_string_lossy().starts_with(name)
        };
        let found = infos().find(named);
        found.map_or(f64::NAN, |program| per(program.run_time_ns, program.run_cnt))
    }

    /// Prints time per acknowledgement: of all, and of each that was called.
    pub fn print(&self) -> Result<(), Error> {
        let mut costs: Vec<Cost> = infos()
            .filter(|program| self.0.contains(&program.id) && program.run_cnt > 0)
            .map(|program| Cost {
                name: program.name.to_string_lossy().into_owned(),
                calls: program.run_cnt,
                time_ns: program.run_time_ns,
            })
            .collect();
        costs.sort_by_key(|cost| std::cmp::Reverse(cost.time_ns));
        let acks = costs.iter().find(|cost| cost.name.starts_with("cong_control"));
        let acks = acks.map_or(0, |cost| cost.calls);
        let all = costs.iter().map(|cost| cost.time_ns).sum();
        say!("  BPF, per ACK            {:7.0} ns in all, over {acks} ACKs", per(all, acks))?;
        for Cost { name, calls, time_ns } in costs {
            let (share, each) = (per(time_ns, acks), per(time_ns, calls));
            let rate = per(calls, acks);
            say!("    {name:<21} {share:7.0} ns      {rate:.3} calls of {each:.0} ns")?;
        }
        Ok(())
    }
}

/// Has the kernel count calls and time of BPF programs until the descriptor is closed.
pub(super) fn count_time() -> Result<OwnedFd, Error> {
    // SAFETY: a system call without pointers; the descriptor is ours.
    let descriptor = unsafe { libbpf_sys::bpf_enable_stats(libbpf_sys::BPF_STATS_RUN_TIME) };
    if descriptor < 0 {
        let error = std::io::Error::from_raw_os_error(-descriptor);
        return Err(super::failed("have the kernel time BPF programs", error));
    }
    // SAFETY: just opened and not shared.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

pub(super) fn per(total: u64, count: u64) -> f64 {
    if count == 0 { f64::NAN } else { total as f64 / count as f64 }
}

fn loaded() -> BTreeSet<u32> {
    infos().map(|program| program.id).collect()
}

fn infos() -> impl Iterator<Item = ProgramInfo> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default())
}
