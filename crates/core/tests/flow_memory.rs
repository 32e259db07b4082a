//! What a flow that waits for its start takes, counted by the allocator itself.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::sim::{Sim, builtin};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The system's allocator, with a count of bytes in use.
struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Bytes that a simulation of so many flows takes before it starts, beyond its scenario.
fn bytes(flows: u32) -> usize {
    let text = format!(
        "duration_s = 20\n[dumbbell]\nrtt_ms = 40\n\
         bottleneck = {{ rate_mbps = 1000, queue = {{ kind = \"drop_tail\", packets = 4000 }} }}\n\
         [[flow]]\ncontroller = \"cubic\"\ncount = {flows}\nstart_spread_s = 1\n"
    );
    let scenario = Scenario::parse(&text, "memory").expect("a valid scenario");
    let before = BYTES.load(Ordering::Relaxed);
    let sim = Sim::new(&scenario.network, Seed(1), &mut builtin).expect("a built-in controller");
    let after = BYTES.load(Ordering::Relaxed);
    drop(sim);
    after - before
}

/// One test, so that no other allocates beside it.
#[test]
fn an_idle_flow_takes_at_most_one_and_a_half_kib() {
    let flow = (bytes(12_288) - bytes(4096)) / 8192;
    assert!((500..=1536).contains(&flow), "{flow} bytes per flow");
}
