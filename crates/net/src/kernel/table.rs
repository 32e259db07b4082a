//! An array map of the kernel in this process's memory: reading and writing need no system call.
use super::record::{Decision, Plain};
use crate::error::Error;
use libbpf_rs::{MapCore, MapHandle};
use nix::errno::Errno;
use std::marker::PhantomData;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The map's entries. Others write them meanwhile.
pub(super) struct Table<T> {
    entries: NonNull<T>,
    len: u32,
    bytes: usize,
    values: PhantomData<T>,
}

// SAFETY: the memory is shared with the kernel anyway; access is volatile and asks for no thread.
unsafe impl<T: Send> Send for Table<T> {}

impl<T: Plain> Table<T> {
    /// Maps it for reading and writing.
    pub fn map(map: &MapHandle) -> Result<Self, Error> {
        let len = map.max_entries();
        let bytes = len as usize * size_of::<T>();
        if map.value_size() as usize != size_of::<T>() {
            return Err(Error::System(format!(
                "the map `{}` has entries of {} bytes, not {}",
                map.name().display(),
                map.value_size(),
                size_of::<T>()
            )));
        }
        // SAFETY: a new mapping of a descriptor that we hold.
        let at = unsafe {
            let access = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(null_mut(), bytes, access, libc::MAP_SHARED, map.as_fd().as_raw_fd(), 0)
        };
        match NonNull::new(at.cast()) {
            Some(entries) if at != libc::MAP_FAILED => {
                Ok(Self { entries, len, bytes, values: PhantomData })
            }
            _ => Err(Error::System(format!(
                "cannot map `{}` into memory: {}",
                map.name().display(),
                Errno::last()
            ))),
        }
    }

    /// How many entries there are.
    pub fn len(&self) -> u32 {
        self.len
    }

    fn entry(&self, index: u32) -> *mut T {
        assert!(index < self.len, "slot {index} of {}", self.len);
        // SAFETY: inside the mapping.
        unsafe { self.entries.as_ptr().add(index as usize) }
    }

    /// A copy of an entry; its members may be of different moments.
    pub fn read(&self, index: u32) -> T {
        // SAFETY: inside the mapping, and every pattern of bits is a value.
        unsafe { self.entry(index).read_volatile() }
    }
}

impl<T: Plain> Table<T> {
    /// Sets an entry that no other is writing or reading meanwhile.
    pub fn put(&self, index: u32, value: &T) {
        // SAFETY: inside the mapping, and aligned.
        unsafe { self.entry(index).write_volatile(*value) }
    }
}

impl Table<Decision> {
    /// Publishes a decision: a reader that finds an even sequence before and the same after has read all
    /// of it.
    pub fn write(&self, index: u32, decision: &Decision) {
        let entry = self.entry(index);
        // SAFETY: inside the mapping and aligned; the kernel only reads these members.
        unsafe {
            let sequence = AtomicU64::from_ptr(&raw mut (*entry).sequence);
            let before = sequence.load(Ordering::Relaxed) & !1;
            sequence.store(before + 1, Ordering::Relaxed);
            fence(Ordering::Release);
            (&raw mut (*entry).generation).write_volatile(decision.generation);
            (&raw mut (*entry).verdict).write_volatile(decision.verdict);
            (&raw mut (*entry).flags).write_volatile(decision.flags);
            (&raw mut (*entry).number).write_volatile(decision.number);
            (&raw mut (*entry).sampled_at).write_volatile(decision.sampled_at);
            (&raw mut (*entry).written_at).write_volatile(decision.written_at);
            (&raw mut (*entry).pacing).write_volatile(decision.pacing);
            (&raw mut (*entry).cwnd).write_volatile(decision.cwnd);
            (&raw mut (*entry).ssthresh).write_volatile(decision.ssthresh);
            (&raw mut (*entry).base).write_volatile(decision.base);
            sequence.store(before + 2, Ordering::Release);
        }
    }
}

impl<T> Drop for Table<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by us; nothing borrows from it.
        unsafe { libc::munmap(self.entries.as_ptr().cast(), self.bytes) };
    }
}
