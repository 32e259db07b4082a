//! The generators of cellular-like traces.
use ackademy::rng::Seed;
use ackademy::sim::grants::{FITTED, Grants};
use ackademy::sim::trace::{Cellular, Trace};
use ackademy::units::{Rate, Span};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::collections::BTreeMap;

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

/// A trace in scheduler grants as mahimahi text, like a recorded one but for the values given.
#[pyfunction]
pub fn generate_grants(
    seconds: f64,
    like: &str,
    values: BTreeMap<String, f64>,
    seed: u64,
) -> PyResult<String> {
    let refused = |what: String| Err(PyValueError::new_err(what));
    let Some((_, mean_mbps, own)) = FITTED.iter().find(|fitted| fitted.0 == like) else {
        return refused(format!("like = {like:?}: allowed: {}", fitted_traces().join(", ")));
    };
    let (mut mean_mbps, mut own) = (*mean_mbps, *own);
    for (name, value) in values {
        let place = Grants::FIELDS.iter().position(|field| field.0 == name);
        let (target, low, high) = match place {
            Some(place) => (&mut own[place], Grants::FIELDS[place].1, Grants::FIELDS[place].2),
            None if name == "mean_mbps" => (&mut mean_mbps, 1e-3, 1e4),
            None => return refused(format!("{name}: allowed: mean_mbps or a parameter of grants")),
        };
        if !(low..=high).contains(&value) {
            return refused(format!("{name} = {value}: allowed: a number in [{low}, {high}]"));
        }
        *target = value;
    }
    let model = Grants::of(Span::from_secs_f64(seconds), Rate::from_mbps(mean_mbps), &own);
    Ok(model.generate(Seed(seed)).to_text())
}

/// The names of recorded traces to which the generator in grants is fitted.
#[pyfunction]
pub fn fitted_traces() -> Vec<&'static str> {
    FITTED.iter().map(|fitted| fitted.0).collect()
}
