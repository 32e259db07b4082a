//! Policies in fixed point: what the kernel computes, against what the engine in floating point does.
mod common;
#[path = "common/recorded.rs"]
mod recorded;

use ackademy::rng::Rng;
use ackademy_net::kernel::compiled::Compiled;
use ackademy_net::kernel::compiled::ask::{Asked, Functions, Room};
use common::machine::governs_flows;
use recorded::{FLAGSHIP, observations, policy};

/// Recorded observations of the comparison.
const OBSERVATIONS: usize = 100_000;

#[test]
fn a_network_in_the_kernel_answers_as_the_engine_does_to_recorded_observations() {
    if !governs_flows() {
        return;
    }
    let policy = policy(1, &FLAGSHIP);
    let compiled = Compiled::network_of(&policy).expect("dense layers");
    let mut room = Room::new();
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let rows = observations(&policy, OBSERVATIONS, 1);
    let mut agent = policy.agent();
    let (mut largest, mut sum) = (0.0_f64, 0.0);
    for row in rows.chunks(compiled.inputs) {
        let own = asked.outputs(row).expect("an answer");
        for (own, exact) in own.iter().zip(agent.outputs(row)) {
            let difference = (own - f64::from(*exact)).abs();
            largest = largest.max(difference);
            sum += difference;
        }
    }
    let mean = sum / (rows.len() / compiled.inputs * 2) as f64;
    println!("outputs differ by {largest:.6} at most, {mean:.6} on average");
    assert!(largest < 2e-3, "{largest}");
}

#[test]
fn functions_in_fixed_point_are_those_of_the_library() {
    if !governs_flows() {
        return;
    }
    let policy = policy(1, &FLAGSHIP);
    let compiled = Compiled::network_of(&policy).expect("dense layers");
    let mut room = Room::new();
    let mut asked = Asked::load(&mut room, &compiled).expect("the verifier accepts it");
    let mut rng = Rng::new(3);
    for _ in 0..20_000 {
        let number = rng.next_u64() >> rng.below(64);
        let Functions { log2, root, .. } = asked.functions(number).expect("an answer");
        let exact = (number.max(1) as f64).log2();
        assert!((log2 as f64 / f64::from(1 << 24) - exact).abs() < 4e-6, "log2 {number}");
        let root = root as u128;
        assert!(root * root <= u128::from(number), "root of {number}");
        assert!((root + 1) * (root + 1) > u128::from(number), "root of {number}");
        let x = rng.uniform_in(-12.0, 12.0);
        let exponent = (x * f64::from(1 << 24)) as i64;
        let exp2 = asked.functions(exponent as u64).expect("an answer").exp2 as f64 / 65536.0;
        assert!((exp2 - x.exp2()).abs() < 1e-5 * x.exp2() + 1e-5, "2^{x} is {exp2}");
        let number = (x * f64::from(1 << 14)) as i64;
        let tanh = asked.functions(number as u64).expect("an answer").tanh as f64 / 16384.0;
        let exact = (number as f64 / 16384.0).tanh();
        assert!((tanh - exact).abs() < 6e-5, "tanh {x} is {tanh}");
    }
}
