//! What the tests of several controllers, and of what they are part of, share.
use crate::control::{FlowInfo, Recovery};
use crate::rng::Seed;
use crate::scenario::Scenario;
use crate::sim::record::Outcome;
use crate::units::{Bytes, Time};

/// Packet of [`flow`].
pub const MSS: u64 = 1000;

/// A flow with packets of [`MSS`].
pub fn flow() -> FlowInfo {
    flow_of(MSS)
}

/// A flow with an initial window of ten packets of `mss` bytes and no threshold.
pub fn flow_of(mss: u64) -> FlowInfo {
    FlowInfo {
        mss: Bytes(mss),
        initial_cwnd: Bytes(10 * mss),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    }
}

/// What comes of a scenario, and its duration in s.
pub fn run(text: &str, seed: u64) -> (Outcome, f64) {
    let scenario = Scenario::parse(text, "test.toml").expect("a valid scenario");
    let outcome = crate::sim::run(&scenario.network, Seed(seed)).expect("it runs");
    (outcome, scenario.network.duration.as_secs_f64())
}

/// Goodput in Mb/s and mean round trip in ms of each flow of a scenario, with seed 1.
pub fn simulated(text: &str) -> Vec<(f64, f64)> {
    let (outcome, seconds) = run(text, 1);
    let mbps = |bytes: u64| bytes as f64 * 8e-6 / seconds;
    let flows = outcome.flows.iter();
    flows.map(|flow| (mbps(flow.goodput_bytes), flow.rtt_mean_ms)).collect()
}

/// Fails unless both are the same up to a millionth.
pub fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6 * expected.abs().max(1.0), "{value} not {expected}");
}
