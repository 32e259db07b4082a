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
    /// Which power of two has i in the upper six bits of its product with [`DE_BRUIJN`].
    pub bits: [u8; 64],
}

/// Numbers in Q14.
pub type Values = [i32; VALUES_MAX];

/// What the program in `bpf/ask.bpf.c` is asked, and its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Question {
    /// The network's input.
    pub input: Values,
    /// Room for the layers' results.
    pub results: [Values; 2],
    /// The argument of a function.
    pub number: u64,
    /// What was computed.
    pub answer: [i64; 8],
}

const _: () = {
    assert!(size_of::<Head>() == 8 + 24 * LAYERS_MAX);
    assert!(size_of::<Tables>() == 8 * 257 + 2 * (TANH_STEPS + 2) + 64);
    assert!(size_of::<Question>() == 12 * VALUES_MAX + 72);
};

// SAFETY: each is `repr(C)`, of integers, and as long as its members together.
unsafe impl Plain for Head {}
// SAFETY: as above.
unsafe impl Plain for Tables {}
// SAFETY: as above.
unsafe impl Plain for Question {}
