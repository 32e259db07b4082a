//! An evaluation allocates nothing, whatever the layers: counted by the allocator itself.
use ackademy::policy::nn::{Activation, LayerSpec, Network, Padding, Returns, Shape};
use ackademy::policy::safetensors::Tensors;
use ackademy::rng::Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/forest.rs"]
mod forest;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "support/network.rs"]
mod network;

/// The system's allocator, with a count of calls.
struct Counting;

static CALLS: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Every kind of layer that has weights, one after the other.
fn all_layers() -> (Vec<LayerSpec>, Vec<u8>) {
    let layers = vec![
        LayerSpec::Conv1d {
            filters: 20,
            kernel: 5,
            padding: Padding::Same,
            activation: Activation::Relu,
        },
        LayerSpec::MaxPool { size: 2 },
        LayerSpec::Dense { units: 33, activation: Activation::Tanh },
        LayerSpec::Lstm { units: 17, returns: Returns::All },
        LayerSpec::Gru { units: 9, returns: Returns::All },
        LayerSpec::Flatten {},
        LayerSpec::Dense { units: 5, activation: Activation::Sigmoid },
    ];
    let tensors: [(&str, &[usize]); 13] = [
        ("layers.0.kernel", &[5, 3, 20]),
        ("layers.0.bias", &[20]),
        ("layers.2.kernel", &[20, 33]),
        ("layers.2.bias", &[33]),
        ("layers.3.kernel", &[33, 68]),
        ("layers.3.recurrent", &[17, 68]),
        ("layers.3.bias", &[68]),
        ("layers.4.kernel", &[17, 27]),
        ("layers.4.recurrent", &[9, 27]),
        ("layers.4.bias", &[27]),
        ("layers.4.recurrent_bias", &[9]),
        ("layers.6.kernel", &[9 * 8, 5]),
        ("layers.6.bias", &[5]),
    ];
    let mut rng = Rng::new(1);
    (layers, network::random(&tensors, &mut || rng.uniform()))
}

fn calls_of(layers: &[LayerSpec], file: &[u8]) -> u64 {
    let input = Shape { steps: 16, width: 3 };
    let tensors = Tensors::read(file).expect("a valid file");
    let network = Network::read(layers, input, &tensors).expect("a valid network");
    let mut scratch = network.scratch();
    let observation = vec![0.5; input.size()];
    let before = CALLS.load(Ordering::Relaxed);
    let mut sum = 0.0;
    for _ in 0..100 {
        sum += network.evaluate(&observation, &mut scratch)[0];
    }
    let calls = CALLS.load(Ordering::Relaxed) - before;
    assert!(sum.is_finite());
    calls
}

/// One test, so that no other allocates beside it.
#[test]
fn no_evaluation_allocates() {
    let (layers, file) = all_layers();
    let before = CALLS.load(Ordering::Relaxed);
    assert_eq!(calls_of(&layers, &file), 0);
    assert_ne!(CALLS.load(Ordering::Relaxed), before, "the allocator counts");
    let mut rng = Rng::new(2);
    let trees = forest::Arrays::grow(20, 101, 48, &mut || rng.uniform());
    let layers = [LayerSpec::Trees { outputs: 1, low: 0.0, high: 1.0 }];
    assert_eq!(calls_of(&layers, &trees.to_bytes_of("layers.0.0.", &[])), 0);
}
