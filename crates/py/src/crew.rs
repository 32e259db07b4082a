//! Threads that share the jobs of one call with the thread that calls, again and again and at once.
//!
//! A step of all environments takes a fraction of a millisecond: about as long as it takes to wake a
//! sleeping thread twice. So nobody is waited for who has not begun: the caller works too, and finishes
//! what is left; a thread that has run out of jobs looks for new ones for a while before it sleeps.
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long a thread without jobs stays awake; *proposed*, about what the caller does between two calls.
const AWAKE: Duration = Duration::from_micros(200);
/// Work for which it does not pay to wake others; *measured*.
const WORTH: Duration = Duration::from_micros(60);

type Panic = Box<dyn std::any::Any + Send>;

/// What the threads have in common.
struct Shared<W> {
    work: W,
    /// For each thread, the caller first: the jobs not yet taken, `first << 32 | end`.
    jobs: Box<[AtomicU64]>,
    /// Jobs not yet done.
    left: AtomicUsize,
    /// Calls so far.
    calls: AtomicUsize,
    stops: AtomicBool,
    panic: Mutex<Option<Panic>>,
}

/// Threads for the jobs of one kind.
pub struct Crew<W: Fn(usize) + Send + Sync + 'static> {
    shared: Arc<Shared<W>>,
    helpers: Vec<(Thread, Option<JoinHandle<()>>)>,
    /// Work of a call, as the latest calls had it.
    usual: Duration,
}

impl<W: Fn(usize) + Send + Sync + 'static> Crew<W> {
    /// `threads` of them, the caller's among them; each job is `work` with its number.
    ///
    /// # Errors
    ///
    /// If the system has no more threads.
    pub fn new(threads: usize, work: W) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            work,
            jobs: (0..threads.max(1)).map(|_| AtomicU64::new(0)).collect(),
            left: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            stops: AtomicBool::new(false),
            panic: Mutex::new(None),
        });
        let mut crew = Self { shared, helpers: Vec::new(), usual: Duration::MAX };
        for place in 1..threads {
            let shared = Arc::clone(&crew.shared);
            let builder = thread::Builder::new().name("ackademy".to_owned());
            let handle = builder.spawn(move || shared.help(place))?;
            crew.helpers.push((handle.thread().clone(), Some(handle)));
        }
        Ok(crew)
    }

    /// Does jobs 0 to `count` − 1, each once, and returns when all are done.
    pub fn run(&mut self, count: usize) {
        let shared = &*self.shared;
        let (parties, begin) = (shared.jobs.len(), Instant::now());
        let helped = parties > 1 && self.usual > WORTH;
        // Before the jobs: who takes one counts it down.
        shared.left.store(count, Ordering::Relaxed);
        for (place, jobs) in shared.jobs.iter().enumerate() {
            let bound = |place: usize| (count * place / parties) as u64;
            let range = match (helped, place) {
                (true, _) => bound(place) << 32 | bound(place + 1),
                (false, 0) => count as u64,
                (false, _) => 0,
            };
            jobs.store(range, Ordering::Release);
        }
        if helped {
            shared.calls.fetch_add(1, Ordering::Release);
            self.helpers.iter().for_each(|(thread, _)| thread.unpark());
        }
        shared.do_jobs(0);
        shared.wait();
        let took = begin.elapsed() * if helped { parties as u32 } else { 1 };
        self.usual = if self.usual == Duration::MAX { took } else { (self.usual * 7 + took) / 8 };
        let panic = shared.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl<W: Fn(usize) + Send + Sync + 'static> Drop for Crew<W> {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Release);
        for (thread, handle) in &mut self.helpers {
            thread.unpark();
            if let Some(handle) = handle.take() {
                let _ = handle.join(); // Its panics were caught.
            }
        }
    }
}

impl<W: Fn(usize)> Shared<W> {
    /// The life of a thread.
    fn help(&self, place: usize) {
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

    /// Until there has been another call than `seen`, or a while has passed and somebody has woken us.
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

    /// Own jobs from the front, so that each thread has the same ones in every call and finds their
    /// memory in its cache; then those of others from the back.
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

    fn do_job(&self, job: usize) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.work)(job))) {
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
        }
        self.left.fetch_sub(1, Ordering::Release);
    }

    /// Others finish what they have begun: at most one job each.
    fn wait(&self) {
        let mut turns = 0_u32;
        while self.left.load(Ordering::Acquire) > 0 {
            turns = turns.saturating_add(1);
            if turns > 2000 {
                thread::yield_now(); // The processor may be needed for just that.
            } else {
                spin_loop();
            }
        }
    }
}
