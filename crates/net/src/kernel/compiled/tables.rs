//! The tables between whose entries the kernel interpolates.
use super::layout::{DE_BRUIJN, TANH_STEPS, Tables};
use std::array::from_fn;

/// All of them.
pub(super) fn tables() -> Tables {
    let scaled = |value: f64, bits: u32| (value * f64::from(1_u32 << bits)).round() as u32;
    let part = |index: usize| index as f64 / 256.0;
    let mut bits = [0; 64];
    for bit in 0..64 {
        bits[(DE_BRUIJN << bit >> 58) as usize] = bit;
    }
    Tables {
        log2: from_fn(|index| scaled((1.0 + part(index)).log2(), 24)),
        exp2: from_fn(|index| scaled(part(index).exp2(), 30)),
        tanh: from_fn(|index| scaled((index.min(TANH_STEPS) as f64 / 64.0).tanh(), 15) as u16),
        decay: from_fn(|times| scaled(0.875_f64.powi(times as i32), 30)),
        reserved: 0,
        bits,
    }
}
