//! Worker threads for short calls in quick succession.
//!
//! A step of all environments takes a fraction of a millisecond, about as long as waking a sleeping thread
//! twice. Therefore the calling thread works on the jobs too and never waits for a worker that has not
//! started one, and a worker without jobs polls for new ones for a while before it sleeps. Each thread begins with its
//! largest jobs, so that no thread waits for one of them at the end of a call.
#![allow(clippy::disallowed_methods, reason = "the clock decides who works when, never what")]
use std::cmp::Reverse;
use std::hint::spin_loop;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a thread without jobs stays awake; *proposed*, about what the caller does between two calls.
const AWAKE: Duration = Duration::from_micros(200);
/// Calls after which it is tried again which is faster, the calling thread alone or all: so many at first, twice as
/// many whenever the answer is the same as before, up to the second number; *proposed*.
const PERIODS: (u32, u32) = (64, 1024);
/// Calls of each kind that are compared; *proposed*.
const COMPARED: u32 = 4;
/// How often a caller that waits for other threads is told that it does.
const WAITING: Duration = Duration::from_millis(20);
/// Calls after which jobs are sorted anew by their size; *proposed*.
const SORTED: u32 = 32;

type Panic = Box<dyn std::any::Any + Send>;

/// What the threads have in common.
struct Shared<W> {
    /// Does a job, and tells about how much of a job it was.
    work: W,
    /// Jobs in the order in which they are taken.
    order: Box<[AtomicU32]>,
    /// How much each job was, last.
    sizes: Box<[AtomicU32]>,
    /// For each thread, the caller first: the places in `order` not yet taken, `first << 32 | end`.
    jobs: Box<[AtomicU64]>,
    /// Jobs that are not done.
    left: AtomicUsize,
    /// Calls so far.
    calls: AtomicUsize,
    stops: AtomicBool,
    panic: Mutex<Option<Panic>>,
}

/// Threads for the jobs of one kind.
pub struct Workers<W: Fn(usize) -> u32 + Send + Sync + 'static> {
    shared: Arc<Shared<W>>,
    others: Vec<(Thread, Option<JoinHandle<()>>)>,
    pace: Pace,
    /// Calls since the jobs were sorted.
    unsorted: u32,
    /// The process that the threads are in; a fork of it has none of them.
    process: u32,
}

/// Whether work is shared: for small steps, or where other programs need the processors, one thread
/// alone is faster.
struct Pace {
    /// Calls since the latest comparison began; none before the very first call, which only sets things up.
    calls: Option<u32>,
    /// Time of the compared calls: alone, shared.
    took: [Duration; 2],
    /// Calls from one comparison to the next.
    period: u32,
    /// What the comparison before found.
    was_shared: Option<bool>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { calls: None, took: [Duration::ZERO; 2], period: PERIODS.0, was_shared: None }
    }
}

impl Pace {
    fn is_shared(&self) -> bool {
        match self.calls {
            Some(calls) if calls < COMPARED => false,
            Some(calls) if calls >= 2 * COMPARED => self.took[1] < self.took[0],
            _ => true,
        }
    }

    /// A call is over.
    fn note(&mut self, took: Duration) {
        let Some(calls) = self.calls else {
            self.calls = Some(0);
            return;
        };
        if calls < 2 * COMPARED {
            self.took[usize::from(self.is_shared())] += took;
        }
        self.calls = Some(calls + 1);
        if calls + 1 == self.period {
            let is_shared = Some(self.is_shared());
            let same = self.was_shared == is_shared;
            let period = if same { (2 * self.period).min(PERIODS.1) } else { PERIODS.0 };
            *self = Self { calls: Some(0), period, was_shared: is_shared, ..Self::default() };
        }
    }
}

impl<W: Fn(usize) -> u32 + Send + Sync + 'static> Workers<W> {
    /// `threads` of them, the caller's among them, for `count` jobs; each is `work` with its number, which returns
    /// about how much work it was.
    ///
    /// # Errors
    ///
    /// If the system has no more threads.
    pub fn new(threads: usize, count: u32, work: W) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            work,
            order: (0..count).map(AtomicU32::new).collect(),
            sizes: (0..count).map(|_| AtomicU32::new(0)).collect(),
            jobs: (0..threads.max(1)).map(|_| AtomicU64::new(0)).collect(),
            left: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            stops: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let process = std::process::id();
        let mut own =
            Self { shared, others: Vec::new(), pace: Pace::default(), unsorted: 0, process };
        for place in 1..threads {
            let shared = Arc::clone(&own.shared);
            let builder = thread::Builder::new().name("ackademy".to_owned());
            let handle = builder.spawn(move || shared.serve(place))?;
            own.others.push((handle.thread().clone(), Some(handle)));
        }
        Ok(own)
    }

    /// Does every job once, and returns when all are done. While it has nothing to do but to wait for that, it
    /// calls `waiting` again and again.
    pub fn run(&mut self, waiting: &dyn Fn()) {
        let shared = &*self.shared;
        let (parties, begin) = (shared.jobs.len(), Instant::now());
        let shared_out = parties > 1 && self.pace.is_shared();
        let count = shared.order.len();
        self.unsorted += 1;
        if shared_out && self.unsorted >= SORTED {
            self.unsorted = 0;
            shared.sort();
        }
        // Set before the jobs, since whoever takes one counts it down.
        shared.left.store(count, Ordering::Relaxed);
        for (place, jobs) in shared.jobs.iter().enumerate() {
            let Range { start, end } = shared.part(place);
            let range = match (shared_out, place) {
                (true, _) => (start as u64) << 32 | end as u64,
                (false, 0) => count as u64,
                (false, _) => 0,
            };
            jobs.store(range, Ordering::Release);
        }
        if shared_out {
            shared.calls.fetch_add(1, Ordering::Release);
            self.others.iter().for_each(|(thread, _)| thread.unpark());
        }
        shared.do_jobs(0);
        shared.wait(waiting);
        self.pace.note(begin.elapsed());
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl<W: Fn(usize) -> u32 + Send + Sync + 'static> Drop for Workers<W> {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            // To join a thread that is not there panics.
            return std::mem::forget(std::mem::take(&mut self.others));
        }
        self.shared.stops.store(true, Ordering::Release);
        for (thread, handle) in &mut self.others {
            thread.unpark();
            if let Some(handle) = handle.take() {
                let _ = handle.join(); // Panics of jobs were caught.
            }
        }
    }
}

impl<W: Fn(usize) -> u32> Shared<W> {
    /// Which part of the order is a thread's own.
    fn part(&self, place: usize) -> Range<usize> {
        let (count, parties) = (self.order.len(), self.jobs.len());
        count * place / parties..count * (place + 1) / parties
    }

    /// Puts the smallest of each thread's own jobs last, so that no thread waits for a large one at the end.
    fn sort(&self) {
        let size = |job: u32| self.sizes[job as usize].load(Ordering::Relaxed);
        for place in 0..self.jobs.len() {
            let part = &self.order[self.part(place)];
            let mut jobs: Vec<_> = part.iter().map(|job| job.load(Ordering::Relaxed)).collect();
            jobs.sort_unstable_by_key(|&job| (Reverse(size(job)), job));
            for (cell, job) in part.iter().zip(jobs) {
                cell.store(job, Ordering::Relaxed);
            }
        }
    }

    /// What a worker does until it is stopped.
    fn serve(&self, place: usize) {
        let mut seen = 0;
        while !self.stops.load(Ordering::Acquire) {
            let calls = self.calls.load(Ordering::Acquire);
            if calls == seen {
                self.rest(seen);
            } else {
                seen = calls;
                self.do_jobs(place);
            }
        }
    }

    /// Waits for another call than `seen`: awake for a while, then asleep until woken.
    fn rest(&self, seen: usize) {
        let news = || self.calls.load(Ordering::Relaxed) != seen;
        let begin = Instant::now();
        while begin.elapsed() < AWAKE {
            for _ in 0..32 {
                if news() || self.stops.load(Ordering::Relaxed) {
                    return;
                }
                spin_loop();
            }
        }
        thread::park();
    }

    /// Does this thread's own jobs from the front, which are the same in every call, so that it finds their
    /// memory in its cache; then those of other threads from the back.
    fn do_jobs(&self, place: usize) {
        while let Some(job) = self.take(place, true) {
            self.do_job(job);
        }
        for other in (0..self.jobs.len()).filter(|&other| other != place) {
            while let Some(job) = self.take(other, false) {
                self.do_job(job);
            }
        }
    }

    fn take(&self, place: usize, front: bool) -> Option<usize> {
        let taken = self.jobs[place].fetch_update(Ordering::AcqRel, Ordering::Acquire, |jobs| {
            let (first, end) = (jobs >> 32, jobs & u64::from(u32::MAX));
            (first < end).then(|| if front { (first + 1) << 32 | end } else { jobs - 1 })
        });
        let jobs = taken.ok()?;
        Some(if front { jobs >> 32 } else { (jobs & u64::from(u32::MAX)) - 1 } as usize)
    }

    /// Does the job at this place of the order.
    fn do_job(&self, place: usize) {
        let job = self.order[place].load(Ordering::Relaxed) as usize;
        match catch_unwind(AssertUnwindSafe(|| (self.work)(job))) {
            Ok(size) => self.sizes[job].store(size, Ordering::Relaxed),
            Err(panic) => {
                *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
        }
        self.left.fetch_sub(1, Ordering::Release);
    }

    /// Waits until other threads have finished the job that each may have started.
    fn wait(&self, waiting: &dyn Fn()) {
        let (mut turns, mut told) = (0_u32, None);
        while self.left.load(Ordering::Acquire) > 0 {
            turns = turns.saturating_add(1);
            if turns <= 2000 {
                spin_loop();
                continue;
            }
            if told.get_or_insert_with(Instant::now).elapsed() >= WAITING {
                waiting();
                told = Some(Instant::now());
            }
            thread::yield_now(); // The processor may be needed for just that.
        }
    }
}
