//! A run: hosts, emulator, agent, receivers and senders, each in its thread, and what they leave.
use super::content::Content;
use super::governors::{Closed, Governors, is_governed};
use super::hosts::Hosts;
use super::iperf3;
use super::plan::{Family, Flow, KERNEL, Over, Pair, Plan};
use super::quic;
use super::receivers::{Arrived, Receivers};
use super::result::{
    AgentReport, Decision, EmulatorReport, KernelReport, Lateness, Report, Tables,
};
use super::sender::Setting;
use super::senders::{ConnectionCounts, Senders, Sent};
use super::subflows::{self, Change};
use super::validity::{answer_faults, control_faults, network_faults};
use crate::clock;
use crate::error::Error;
use crate::interrupt;
use crate::kernel::record::Totals;
use crate::kernel::{self, Agent};
use crate::link::delays;
use crate::link::emulator::{self, Emulator};
use crate::link::fabric::{self, Fabric, FlowCounts};
use crate::namespace::Namespace;
use crate::output::hint;
use crate::priority;
use ackademy::coupled;
use ackademy::rng::Seed;
use ackademy::sim;
use ackademy::sim::plan::NetworkPlan;
use ackademy::sim::record::{ConnectionRow, FlowRow, LinkRow, Outcome, mean_ms};
use ackademy::units::{Span, Time};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io::IsTerminal;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::Duration;

/// How to run a scenario.
#[derive(Clone, Debug)]
pub struct Options {
    /// Of everything that is drawn.
    pub seed: Seed,
    /// Version of the internet protocol.
    pub family: Family,
    /// Longest time between samples of a flow for this project's controllers; `None`: the usual
    /// ([`kernel::usual_interval`]).
    pub interval: Option<Span>,
    /// The emulator watches for so long before a packet is due, instead of sleeping.
    pub spin: Span,
    /// A run whose 99th percentile of lateness exceeds it is not valid.
    pub lateness_max: Span,
    /// What sends bulk flows.
    pub client: Client,
    /// What carries the data.
    pub over: Over,
}

/// What sends bulk flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    /// This program.
    Own,
    /// The program of that name.
    Iperf3,
}

/// Runs a network over what carries its data, in real time.
///
/// # Errors
///
/// If that cannot do what the scenario asks, the machine refuses something, or Ctrl-C.
pub fn run(network: &NetworkPlan, options: &Options) -> Result<Report, Error> {
    match options.over {
        Over::Tcp => over_tcp(network, options),
        Over::Quic => over_quic(network, options),
    }
}

/// Both ends of every connection are noq, in one thread of this process.
fn over_quic(network: &NetworkPlan, options: &Options) -> Result<Report, Error> {
    let quic = quic::ends(network, options)?;
    let mut plan = Plan::over(Over::Quic, network, options.seed, options.family)?;
    allow_files();
    let mut hosts = Hosts::new(&plan)?;
    plan.assumptions.append(&mut hosts.notes);
    let ports = std::mem::take(&mut hosts.ports);
    let fabric = fabric(network, &plan, options.seed)?;
    let losses = fabric.losses();
    let epoch = clock::now() + LEAD;
    let ends = quic::Ends::new(quic, &plan, &hosts.pairs, (losses, epoch, network.duration))?;
    let emulated = emulator::Options { epoch: Some(epoch), spin: options.spin, realtime: true };
    let emulator = Emulator::new(ports, fabric, emulated);
    let stop = &AtomicBool::new(false);
    let (sent, emulated) = thread::scope(|scope| {
        let emulator = guarded(scope, "emulator", stop, || emulator.run(stop));
        let ends = guarded(scope, "ends", stop, || {
            priority::realtime(priority::HOSTS);
            ends.run(stop, options.lateness_max)
        });
        wait(stop, network.duration);
        (joined(ends), joined(emulator))
    });
    interrupt::check()?;
    let counted = Counted { sent: sent?, emulated: emulated?, served: None };
    Ok(report(network, options, plan, counted, Closed::default()))
}

/// The kernel's TCP, under this project's controllers or its own.
fn over_tcp(network: &NetworkPlan, options: &Options) -> Result<Report, Error> {
    let mut plan = Plan::new(network, options.seed, options.family)?;
    check_kernel_controllers(&plan)?;
    if options.client == Client::Iperf3 {
        iperf3::check("--client iperf3")?;
    }
    allow_files();
    let mut hosts = Hosts::new(&plan)?;
    plan.assumptions.append(&mut hosts.notes);
    let ports = std::mem::take(&mut hosts.ports);
    let fabric = fabric(network, &plan, options.seed)?;
    let losses = fabric.losses();
    let closed = Arc::new(Mutex::new(Closed::default()));
    let name = format!("ack{}", std::process::id());
    let agent = agent(&plan, options, &name, &closed)?;
    let content = Content::new(options.seed.derive("content", 0));
    let arrived: Vec<Arrived> = plan.flows.iter().map(|_| Arrived::default()).collect();
    let paired = |side: fn(&(Namespace, Namespace)) -> &Namespace| {
        plan.pairs.iter().zip(hosts.pairs.iter().map(side)).collect::<Vec<(&Pair, &Namespace)>>()
    };
    let (near, far) = (paired(|pair| &pair.0), paired(|pair| &pair.1));
    let receivers = Receivers::listen(&far, &plan.flows, &content, &arrived)?;
    let epoch = clock::now() + LEAD;
    let emulated = emulator::Options { epoch: Some(epoch), spin: options.spin, realtime: true };
    let setting = Setting {
        flows: &plan.flows,
        hosts: &near,
        agent: &name,
        foreign: options.client == Client::Iperf3,
        content: &content,
        arrived: &arrived,
        losses: &losses,
        header: plan.header,
        seed: options.seed,
        epoch,
        duration: network.duration,
        sample_interval: network.sample_interval,
    };
    let threads = Threads {
        emulator: Emulator::new(ports, fabric, emulated),
        agent,
        receivers,
        senders: Senders::new(setting)?,
        foreign: iperf3::clients(setting, &hosts.pairs),
        changes: {
            let mut changes = subflows::of_plan(&plan);
            changes.retain(|change| change.at > Time(0));
            changes
        },
        hosts: hosts.pairs.iter().map(|pair| &pair.0).collect(),
        epoch,
    };
    let counted = threads.run(network.duration)?;
    let closed = std::mem::take(&mut *closed.lock().expect("the agent has ended"));
    Ok(report(network, options, plan, counted, closed))
}

/// Kernel modules that flows name, against those that the kernel has.
fn check_kernel_controllers(plan: &Plan) -> Result<(), Error> {
    let list = "/proc/sys/net/ipv4/tcp_available_congestion_control";
    let available = std::fs::read_to_string(list).unwrap_or_default();
    let known: Vec<&str> = available.split_whitespace().collect();
    for flow in &plan.flows {
        let Some(name) = flow.plan.controller.strip_prefix(KERNEL) else { continue };
        if !known.contains(&name) {
            let allowed: Vec<String> = known.iter().map(|name| format!("{KERNEL}{name}")).collect();
            return Err(Error::Input(format!(
                "flow {:?}: controller = {:?}: this kernel has {}",
                flow.plan.name,
                flow.plan.controller,
                allowed.join(", ")
            )));
        }
    }
    Ok(())
}

/// The emulated network of a plan; the hosts of pair `n` are its ports `2 n` and `2 n + 1`.
pub(super) fn fabric(network: &NetworkPlan, plan: &Plan, seed: Seed) -> Result<Fabric, Error> {
    let mut fabric = Fabric::new(&network.links, seed, network.sample_interval);
    for flow in &plan.flows {
        let near = 2 * flow.pair;
        for subflow in &flow.subflows {
            fabric.add_flow(&fabric::Flow {
                hosts: [(near, subflow.sender), (near + 1, flow.receiver)],
                route: subflow.route.clone(),
            })?;
        }
    }
    Ok(fabric)
}

/// Serves this project's controllers under a name of this run's own, if a flow needs them.
fn agent(
    plan: &Plan,
    options: &Options,
    name: &str,
    closed: &Arc<Mutex<Closed>>,
) -> Result<Option<Agent>, Error> {
    let governed = || plan.flows.iter().filter(|flow| is_governed(flow));
    if governed().count() == 0 {
        return Ok(None);
    }
    // iperf3 asks for the controller at both ends of its connection.
    let foreign = |flow: &&Flow| options.client == Client::Iperf3 && iperf3::is_for(flow);
    let subflows = governed().map(|flow| flow.subflows.len()).sum::<usize>();
    let slots = subflows + governed().filter(foreign).count();
    let served = kernel::Options {
        name: name.to_owned(),
        pins: None,
        interval: interval(plan, options),
        slots: slots as u32,
        paced: governed().any(may_pace),
        ..kernel::Options::default()
    };
    let governors = Governors::new(&plan.flows, options.seed, Arc::clone(closed));
    Agent::start(&served, Box::new(governors)).map(Some)
}

/// Whether the controller of a flow may set a rate.
fn may_pace(flow: &Flow) -> bool {
    let known = coupled::settings(&flow.plan.controller).zip(sim::builtin(&flow.plan).ok());
    known.is_none_or(|(params, governor)| kernel::may_pace(params, governor))
}

/// Between the samples of a flow: one interval for all, so that of the controller that needs most.
fn interval(plan: &Plan, options: &Options) -> Span {
    let usual = |flow: &Flow| {
        let params = coupled::settings(&flow.plan.controller)?;
        Some(kernel::usual_interval(params, sim::builtin(&flow.plan).ok()?))
    };
    let governed = plan.flows.iter().filter(|flow| is_governed(flow));
    let shortest = || governed.filter_map(usual).min().unwrap_or(kernel::INTERVAL);
    options.interval.unwrap_or_else(shortest)
}

/// What the threads counted.
struct Counted {
    sent: Sent,
    emulated: emulator::Report,
    served: Option<Served>,
}

/// What the agent counted.
struct Served {
    /// Whether its thread had real-time priority.
    realtime: bool,
    totals: Totals,
    /// From the making of a record to the writing of its answer.
    response_times: delays::Delays,
    /// The same, of records with which a policy's decision fell due.
    policy_response_times: delays::Delays,
    /// Processor time of those decisions.
    inference_times: delays::Delays,
}

/// What runs at the same time.
struct Threads<'a> {
    emulator: Emulator,
    agent: Option<Agent>,
    receivers: Receivers<'a>,
    senders: Senders<'a>,
    foreign: Vec<iperf3::Client<'a>>,
    /// Of subflows, during the run, at the sending hosts.
    changes: Vec<Change>,
    hosts: Vec<&'a Namespace>,
    epoch: Time,
}

impl Threads<'_> {
    /// Runs until the senders end, somebody fails, or Ctrl-C; then stops the others, the agent last,
    /// so that it gets the end of every flow.
    fn run(self, duration: Time) -> Result<Counted, Error> {
        let (stop, stop_agent) = (&AtomicBool::new(false), &AtomicBool::new(false));
        let Self { emulator, agent, receivers, senders, foreign, changes, hosts, epoch } = self;
        thread::scope(|scope| {
            let emulator = guarded(scope, "emulator", stop, || emulator.run(stop));
            let receivers = guarded(scope, "receivers", stop, || {
                priority::realtime(priority::HOSTS);
                receivers.run(stop)
            });
            let senders = guarded(scope, "senders", stop, move || {
                let run = |client: iperf3::Client<'_>| (client.flow.first_row, client.run(stop));
                let others = foreign.into_iter().map(|client| scope.spawn(move || run(client)));
                let others: Vec<_> = others.collect();
                priority::realtime(priority::HOSTS); // not before: iperf3 would inherit it
                let mut sent = senders.run(stop)?;
                for other in others {
                    let (index, said) = other.join().unwrap_or_else(|panic| resume_unwind(panic));
                    sent.adopt(index, said);
                }
                Ok(sent)
            });
            let changes = (!changes.is_empty())
                .then(|| scope.spawn(move || subflows::follow(changes, &hosts, epoch, stop)));
            let agent = agent.map(|mut agent| {
                guarded(scope, "agent", stop, move || {
                    let realtime = priority::realtime(priority::AGENT);
                    agent.run(stop_agent)?;
                    Ok(Served {
                        realtime,
                        totals: agent.totals(),
                        response_times: agent.response_times().clone(),
                        policy_response_times: agent.policy_response_times().clone(),
                        inference_times: agent.inference_times().clone(),
                    })
                })
            });
            wait(stop, duration);
            let (sent, emulated, received) = (joined(senders), joined(emulator), joined(receivers));
            thread::sleep(CLOSING);
            stop_agent.store(true, Ordering::Relaxed);
            let served = agent.map(joined).transpose();
            let changed = changes.map_or(Ok(()), |thread| {
                thread.join().unwrap_or_else(|panic| resume_unwind(panic))
            });
            interrupt::check()?;
            received?;
            changed?;
            Ok(Counted { sent: sent?, emulated: emulated?, served: served? })
        })
    }
}

/// Spawns a thread; when it ends or panics, the run ends.
fn guarded<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    stop: &'scope AtomicBool,
    work: impl FnOnce() -> Result<T, Error> + Send + 'scope,
) -> ScopedJoinHandle<'scope, Result<T, Error>> {
    struct Stop<'a>(&'a AtomicBool);
    impl Drop for Stop<'_> {
        fn drop(&mut self) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let thread = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, || {
        let _stop = Stop(stop);
        work()
    });
    thread.expect("the system has a few threads left")
}

fn joined<T>(thread: ScopedJoinHandle<Result<T, Error>>) -> Result<T, Error> {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}

/// Until somebody sets `stop`; sets it when interrupted. Shows how far the run is.
fn wait(stop: &AtomicBool, duration: Time) {
    let begun = clock::now();
    let shows = std::io::stderr().is_terminal();
    while !stop.load(Ordering::Relaxed) {
        if interrupt::came() {
            stop.store(true, Ordering::Relaxed);
        }
        if shows {
            let elapsed = clock::now().since(begun).as_secs_f64().min(duration.as_secs_f64());
            hint(format_args!("\r{elapsed:.0} of {} s", duration.as_secs_f64()));
        }
        thread::sleep(LOOK);
    }
    if shows {
        hint(format_args!("\r\x1b[K"));
    }
}

/// Puts together what the ends, the network and the agent counted.
fn report(
    network: &NetworkPlan,
    options: &Options,
    plan: Plan,
    counted: Counted,
    closed: Closed,
) -> Report {
    let Counted { mut sent, emulated, served } = counted;
    let interval = interval(&plan, options);
    let subflows = plan.flows.iter().flat_map(|flow| &flow.subflows);
    for ((index, row), subflow) in sent.rows.iter_mut().enumerate().zip(subflows) {
        let route = &subflow.route;
        let links = route.forward.iter().chain(&route.reverse);
        let base: Span = links.map(|&link| network.links[link as usize].delay.minimum()).sum();
        row.base_rtt_ms = base.as_millis_f64();
        add_counts(row, &emulated.network.flows[index]);
        if let Some(counters) = closed.counters.get(&index) {
            row.counters.clone_from(counters);
        }
    }
    let mut faults = std::mem::take(&mut sent.failures);
    faults.extend(network_faults(options.lateness_max, &emulated));
    let answers = served.as_ref().map(|served| &served.response_times);
    faults.extend(answers.into_iter().flat_map(|it| answer_faults(options.lateness_max, it)));
    if plan.over == Over::Tcp {
        let totals = served.as_ref().map(|served| &served.totals);
        faults.extend(control_faults(&plan.flows, &sent, &closed, totals));
    }
    let outcome = Outcome {
        links: with_goodput(emulated.network.links, &plan, &sent.rows),
        connections: connections(&plan, &sent),
        flows: sent.rows,
        flow_series: sent.series,
        link_series: emulated.network.link_series,
        events: 0,
    };
    let micros = |span: Span| span.0 as f64 / 1e3;
    let late = |ratio| micros(emulated.lateness.quantile(ratio));
    Report {
        tables: Tables::new(outcome),
        emulator: EmulatorReport {
            lateness_us: Lateness {
                p50: late(0.5),
                p99: late(0.99),
                p99_9: late(0.999),
                max: micros(emulated.lateness.max()),
            },
            scheduler: if emulated.realtime { "fifo" } else { "other" },
            spin_us: micros(options.spin),
            tun_drops: emulated.missed,
            packets: emulated.lateness.total(),
        },
        agent: served.map(|served| AgentReport {
            scheduler: if served.realtime { "fifo" } else { "other" },
            interval_ms: interval.as_millis_f64(),
            answer_us: Decision::of(&served.response_times).unwrap_or(Decision::NONE),
            decision_us: Decision::new(&served.totals),
            policy_decisions: served.inference_times.total(),
            policy_answer_us: Decision::of(&served.policy_response_times),
            policy_cpu_us: Decision::of(&served.inference_times),
            policy_fallbacks: served.totals.counts.policy_fallbacks,
            flows: closed.served.into_values().collect(),
        }),
        kernel: KernelReport { release: release() },
        assumptions: plan.assumptions,
        valid: faults.is_empty(),
        why_invalid: faults.join("; "),
    }
}

/// One row per connection: that of its flow, or what MPTCP says of several.
fn connections(plan: &Plan, sent: &Sent) -> Vec<ConnectionRow> {
    let counted = plan.flows.iter().zip(&sent.connections);
    let row = |(flow, counts): (&Flow, &ConnectionCounts)| {
        let first = ConnectionRow::of_flow(&sent.rows[flow.first_row]);
        if !flow.is_multipath() {
            return first;
        }
        ConnectionRow {
            connection: flow.plan.name.clone(),
            subflows: flow.subflows.len() as u64,
            scheduler: if plan.over == Over::Tcp { "kernel" } else { "noq" }.to_owned(),
            goodput_bytes: counts.goodput_bytes,
            reinjected_bytes: counts.reinjected_bytes,
            ..first
        }
    };
    counted.map(row).collect()
}

/// What flows delivered, booked with the links on their way.
fn with_goodput(mut links: Vec<LinkRow>, plan: &Plan, rows: &[FlowRow]) -> Vec<LinkRow> {
    for (subflow, row) in plan.flows.iter().flat_map(|flow| &flow.subflows).zip(rows) {
        for &link in &subflow.route.forward {
            links[link as usize].goodput_bytes += row.goodput_bytes;
        }
    }
    links
}

/// What only the network knows of a flow.
fn add_counts(row: &mut FlowRow, counts: &FlowCounts) {
    row.sent_packets = counts.sent_packets;
    row.sent_bytes = counts.sent_bytes;
    row.queue_drops = counts.queue_drops;
    row.random_losses = counts.random_losses;
    row.dropped_packets = counts.queue_drops + counts.random_losses;
    row.received_packets = counts.received_packets;
    row.owd_mean_ms = mean_ms(counts.owd_sum, counts.received_packets);
}

/// Two sockets per connection and a device per host are more files than a process may open at first.
fn allow_files() {
    if let Ok((_, max)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Refused, the sockets that do not fit fail, and say so.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, max, max);
    }
}

fn release() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().to_owned()
}

/// From making the threads to the run's time 0.
const LEAD: Span = Span::from_millis(50);
/// The kernel tells the agent of a closed connection at once; this long for the agent to process it.
const CLOSING: Duration = Duration::from_millis(20);
/// How often the waiting thread looks around.
const LOOK: Duration = Duration::from_millis(50);
