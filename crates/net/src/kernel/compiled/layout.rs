//! Layouts of compiled policies; `bpf/compiled.h` holds the same.
use super::Plain;

/// Layers at most.
pub const LAYERS_MAX: usize = 4;
/// Numbers between two layers at most.
pub const VALUES_MAX: usize = 128;
/// Words of weights and biases at most.
pub const WORDS_MAX: usize = 6656;
/// Steps of 1/64 of the table of the hyperbolic tangent.
pub const TANH_STEPS: usize = 512;

/// A sequence of bits of which six neighbours are never alike.
pub const DE_BRUIJN: u64 = 0x03f7_9d71_b4cb_0a89;

/// Values of [`Layer::activation`].
#[derive(Clone, Copy, Debug)]
pub struct Activations;

impl Activations {
    /// Nothing.
    pub const LINEAR: u32 = 0;
    /// max(x, 0).
    pub const RELU: u32 = 1;
    /// Hyperbolic tangent.
    pub const TANH: u32 = 2;
}

/// A layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Layer {
    /// Numbers that it takes, a multiple of 4.
    pub inputs: u32,
    /// Numbers that it gives, a multiple of 8.
    pub units: u32,
    /// Its first word.
    pub first: u32,
    /// Bits behind the point of its weights.
    pub shift: u32,
    /// One of [`Activations`].
    pub activation: u32,
    /// Zero.
    pub reserved: u32,
}

/// What stands before the words of a network.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Head {
    /// How many layers it has; 0: there is no network.
    pub count: u32,
    /// Zero.
    pub reserved: u32,
    /// Its layers.
    pub layers: [Layer; LAYERS_MAX],
}

/// Tables of functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Tables {
    /// log2(1 + i / 256) in Q24.
    pub log2: [u32; 257],
    /// 2^(i / 256) in Q30.
    pub exp2: [u32; 257],
    /// tanh(i / 64) in Q15.
    pub tanh: [u16; TANH_STEPS + 2],
    /// (7 / 8)^i in Q30.
    pub decay: [u32; 65],
    /// Zero.
    pub reserved: u32,
    /// Which power of two has i in the upper six bits of its product with [`DE_BRUIJN`].
    pub bits: [u8; 64],
}

/// Features of a vector at most.
pub const FEATURES_MAX: usize = 16;

/// Numbers of the law, and what the network takes: `struct policy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Rules {
    /// Own packets in the queue at 10 Mb/s, Q16.
    pub target: u64,
    /// Loss beyond that of the path itself that is not answered, Q20.
    pub loss_limit: u32,
    /// Features of a vector; 0: the law alone.
    pub width: u32,
    /// Vectors of an observation.
    pub rows: u32,
    /// Largest valid output, Q14.
    pub limit: i32,
    /// 1: `low` and `high` hold.
    pub guarded: u32,
    /// 1: a rate is held, and actions apply, under contention.
    pub contended: u32,
    /// Which features: their places in [`super::FEATURES`].
    pub features: [u32; FEATURES_MAX],
    /// Smallest value of each in training, Q14.
    pub low: [i32; FEATURES_MAX],
    /// Largest value of each in training, Q14.
    pub high: [i32; FEATURES_MAX],
}

/// What an acknowledgement tells: times in ns, counts in packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Delivery {
    /// When it came.
    pub now: u64,
    /// When the newest packet delivered left.
    pub sent_at: u64,
    /// Round trip; 0: no sample.
    pub rtt: u64,
    /// Written by the kernel.
    pub srtt: u64,
    /// Smallest round trip of the flow so far.
    pub min_rtt: u64,
    /// Delivery-rate sample, packets per second, Q16; 0: none.
    pub rate: u64,
    /// Newly delivered.
    pub acked: u32,
    /// In flight before.
    pub found: u32,
    /// 1: the application limited the newest sample.
    pub app_limited: u32,
    /// 1: the window is full, and no recovery is on.
    pub growing: u32,
}

/// Words of what is kept of a flow.
pub const GOVERNED: usize = 589;
/// Of them, the first of the law: its window.
pub const WINDOW_AT: usize = 367;
/// The smoothed round trip.
pub const SRTT_AT: usize = 583;

/// What the program in `bpf/ask.bpf.c` is asked, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Question {
    /// What is kept of a flow; it begins with the network's input.
    pub governed: [u64; GOVERNED],
    /// An acknowledgement, or what else happens to the flow.
    pub delivery: Delivery,
    /// The argument of a function.
    pub number: u64,
    /// What was computed.
    pub answer: [i64; 16],
}

const _: () = {
    assert!(size_of::<Head>() == 8 + 24 * LAYERS_MAX);
    assert!(size_of::<Tables>() == 8 * 257 + 2 * (TANH_STEPS + 2) + 4 * 66 + 64);
    assert!(size_of::<Rules>() == 32 + 12 * FEATURES_MAX);
    assert!(size_of::<Delivery>() == 64);
    assert!(size_of::<Question>() == 8 * GOVERNED + 64 + 8 + 128);
};

// SAFETY: each is `repr(C)`, of integers, and as long as its members together.
unsafe impl Plain for Head {}
// SAFETY: as above.
unsafe impl Plain for Tables {}
// SAFETY: as above.
unsafe impl Plain for Question {}
// SAFETY: as above.
unsafe impl Plain for Rules {}
// SAFETY: as above.
unsafe impl Plain for Delivery {}
