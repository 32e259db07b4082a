//! The generator of cellular-like traces.
use ackademy::rng::Seed;
use ackademy::sim::trace::{Cellular, Trace};
use ackademy::units::{Rate, Span};
use pyo3::prelude::*;

/// A cellular-like trace as mahimahi text.
#[pyfunction]
pub fn generate_trace(seconds: f64, mean_mbps: f64, volatility: f64, seed: u64) -> String {
    let model = Cellular {
        duration: Span::from_secs_f64(seconds),
        mean: Rate::from_mbps(mean_mbps),
        volatility,
        ..Cellular::default()
    };
    Trace::generate(&model, Seed(seed)).to_text()
}
