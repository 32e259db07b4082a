//! The hosts and the network of a scenario for a person's own programs, until Ctrl-C.
use super::hosts::Hosts;
use super::plan::{Family, KERNEL, Plan};
use super::run;
use crate::clock;
use crate::error::Error;
use crate::interrupt;
use crate::link::emulator::{self, Emulator};
use ackademy::rng::Seed;
use ackademy::sim::plan::NetworkPlan;
use ackademy::units::Span;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// What serves the controllers that `lab up` does not.
pub const NO_CONTROLLER: &str = "`lab up` serves no controller; beside it, `ackademyd kernel --cc NAME` serves one as `ackademy`, which a program asks for";

/// Keeps the hosts of a network up until Ctrl-C, or `ackademyd lab down`.
///
/// # Errors
///
/// If the machine refuses something.
pub fn up(network: &NetworkPlan, seed: Seed, family: Family, spin: Span) -> Result<(), Error> {
    let plan = Plan::new(network, seed, family)?;
    let mut hosts = Hosts::new(&plan)?;
    hosts.owner.ends_on_request()?;
    let ports = std::mem::take(&mut hosts.ports);
    let fabric = run::fabric(network, &plan, seed)?;
    let options = emulator::Options { epoch: Some(clock::now()), spin, realtime: true };
    let emulator = Emulator::new(ports, fabric, options);
    print(&plan, &hosts)?;
    let stop = AtomicBool::new(false);
    let report = thread::scope(|scope| {
        let emulating = scope.spawn(|| emulator.run(&stop));
        while !interrupt::came() && !emulating.is_finished() {
            thread::sleep(LOOK);
        }
        stop.store(true, Ordering::Relaxed);
        emulating.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })?;
    say!(
        "carried {} packets; lateness p50 {}, p99 {}",
        report.lateness.total(),
        report.lateness.quantile(0.5),
        report.lateness.quantile(0.99)
    )
}

/// Who is where, and a first thing to try.
fn print(plan: &Plan, hosts: &Hosts) -> Result<(), Error> {
    for flow in &plan.flows {
        let (sender, receiver) = &hosts.pairs[flow.pair];
        say!(
            "{}: {} ({}) -> {} ({})",
            flow.plan.name,
            flow.sender,
            sender.name(),
            flow.receiver,
            receiver.name()
        )?;
    }
    let served = plan.flows.iter().map(|flow| flow.plan.controller.as_str());
    let served: BTreeSet<&str> = served.filter(|name| !name.starts_with(KERNEL)).collect();
    if !served.is_empty() {
        let names: Vec<&str> = served.into_iter().collect();
        say!("not served: {} of the scenario: {NO_CONTROLLER}", names.join(", "))?;
    }
    let flow = &plan.flows[0];
    let (sender, receiver) = &hosts.pairs[flow.pair];
    say!("\nip netns exec {} iperf3 -s -D", receiver.name())?;
    say!(
        "ip netns exec {} iperf3 -c {} -B {} -C cubic\n\nCtrl-C, or `ackademyd lab down`, ends it",
        sender.name(),
        flow.receiver,
        flow.sender
    )
}

/// How often Ctrl-C is looked for.
const LOOK: Duration = Duration::from_millis(50);
