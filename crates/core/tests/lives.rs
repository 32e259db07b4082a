//! What every controller must hold in every life of a flow, over lives drawn at random (`support/life.rs`): for each
//! controller that runs on defaults and each policy that the project ships.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::support::life::{Life, Scheme, parse, schemes};
use crate::support::seeds::{first_seed, fixed_seed, for_any, for_todays};
use crate::support::watch::{Batches, Delivered, Log, Step, Watch, What};
use ackademy::control::{Coupled, LossKind};
use ackademy::params::ParamError;
use ackademy::rng::{Rng, Seed};
use ackademy::sim::plan::NetworkPlan;
use ackademy::sim::{Sim, builtin, false_records::FalseRecords};
use ackademy::transport::rtt::{RtoLimits, RttEstimator};
use ackademy::units::{Rate, Span, Time};

/// What is claimed of a life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Claim {
    /// The window is at most three times the most that was ever delivered in one round trip, and a burst. Slow start
    /// doubles the window in the round trip in which the first loss is still unknown; BBR's gain is 2.885.
    Window,
    /// The smaller of the window and of what the pacing rate lets out in the smallest round trip: as the window.
    Allowed,
    /// Data that waits does not wait longer than the (backed-off) time-out for the next packet to leave.
    Silence,
    /// A time-out that repeats leaves the threshold, and further losses of an episode leave the window.
    Reduction,
    /// From 20 round trips after the last disturbance on, the flow gets half of what a fresh flow gets on that path,
    /// or of 12 packets in a round trip: after several losses, congestion avoidance grows linearly (RFC 5681).
    Recovery,
    /// By then it sends at most three times what arrives, whatever is lost (RFC 9743 section 5.1.1).
    LossEnds,
    /// By then a rate that governs is at most three times the fastest delivery since the last disturbance.
    Forgets,
}

/// Where a claim does not hold for a controller, and the reason of its paper or RFC.
const EXCEPTIONS: &[(&[&str], Claim, &str)] = &[
    (
        &["pcc_allegro", "pcc_quic", "vivace", "aurora_mixed"],
        Claim::Window,
        "the rate governs; the window only bounds what the sender remembers (Dong et al., NSDI 2015, section 2)",
    ),
    (
        &["cubic_ns3"],
        Claim::Window,
        "it is ns-3's CUBIC, whose window grows whether it is used or not",
    ),
    (&["cubic_ns3"], Claim::Allowed, "as above"),
    (
        &["hybla"],
        Claim::Window,
        "slow start grows by a factor of 2^rho in a round trip (Caini and Firrincieli 2004, equation 7)",
    ),
    (&["hybla"], Claim::Allowed, "as above"),
    (
        &["tcp_drinc", "tcp_drinc_delta5"],
        Claim::Reduction,
        "a round trip that loses more than it delivers halves the window once more (RFC 9743 section 5.1.1)",
    ),
];

/// Faults that lives show and that are still to be fixed, with a seed. No exception: an entry goes with its fault.
const OPEN: &[(&[&str], Claim, &str)] = &[
    (&["bbr1", "bbr3", "flagship_evolved", "learningcc"], Claim::Window, "false records: 880, 361"),
    (&["bbr1", "bbr3", "flagship_evolved", "learningcc"], Claim::Allowed, "false records"),
    (&["aurora_mixed"], Claim::Allowed, "an application that pauses: 952, 1232"),
    (
        &["tcp_drinc", "tcp_drinc_delta5", "lp_tcp/L50_K4", "compound", "new_reno"],
        Claim::Window,
        "an application that writes less than the window: 636, 357, 639, 2162, 3172",
    ),
    (
        &["tcp_drinc", "tcp_drinc_delta5", "lp_tcp/L50_K4", "compound", "new_reno"],
        Claim::Allowed,
        "as above",
    ),
    (&["copa"], Claim::Window, "a small buffer after a step of the rate: 523, 1843"),
    (&["copa"], Claim::Allowed, "as above"),
    (
        &["aurora_mixed", "ledbat_plus_plus", "qa_tcp_ca", "rl_tcp", "westwood_plus"],
        Claim::Reduction,
        "further losses lower the window: 352, 3331, 1380, 2783, 1267",
    ),
    (&["hybla", "pcc_allegro", "pcc_quic", "vivace"], Claim::LossEnds, "928, 14, 2095, 26"),
    (&["pcc_allegro", "pcc_quic", "vivace"], Claim::Forgets, "14, 2095, 26"),
    (&["flagship", "flagship_evolved", "flagship_ppo", "own_queue"], Claim::Recovery, "93, 2133"),
    (
        &["learningcc", "q_tcp", "q_tcp_ca", "qa_tcp", "qa_tcp_ca", "rl_tcp", "rl_tcp_no_ca"],
        Claim::Recovery,
        "what was learned in a disturbance stays: 3659, 384",
    ),
    (
        &["aurora_mixed", "pcc_allegro", "vegas", "westwood_plus", "wvegas"],
        Claim::Recovery,
        "2952, 54, 1785, 907, 3951",
    ),
    (&["learningcc", "qa_tcp_ca", "quic_cubic", "quic_reno"], Claim::Silence, "3090, 340, 62"),
    (&["flagship", "own_queue", "olia", "tcp_drinc_delta5"], Claim::Silence, "2953, 1613, 2870"),
    // One to five lives of 380 each, from seeds 20785000000, 20785010000, 20786400000 and 20800000000 on.
    (&["aurora_mixed"], Claim::LossEnds, "20785012352, 20800002672"),
    (&["aurora_mixed"], Claim::Forgets, "20785012352, 20800001632"),
    (
        &["balia", "olia", "own_queue", "qa_tcp", "rl_tcp_no_ca"],
        Claim::Window,
        "20786401188, 20800001510, 20785013213, 20800001619, 20800002584",
    ),
    (&["balia", "olia", "own_queue", "qa_tcp", "rl_tcp_no_ca"], Claim::Allowed, "as above"),
    (&["pcc_allegro", "vivace"], Claim::Allowed, "20800004654, 20800003426"),
    (
        &["bbr3", "learningcc", "q_tcp_ca", "rl_tcp_no_ca"],
        Claim::Reduction,
        "20800000041, 20800002930, 20786401058, 20785011464",
    ),
    (
        &["bbr1", "copa", "pcc_quic", "vivace"],
        Claim::Recovery,
        "20785014240, 20786400283, 20800005855, 20785000906",
    ),
    (
        &["aurora_mixed", "balia", "bbr3", "cubic", "cubic_rfc9438", "illinois"],
        Claim::Silence,
        "20785010032, 20786400668, 20800001441, 20785010004, 20800004806, 20785014129",
    ),
    (
        &["flagship_evolved", "flagship_ppo", "lp_tcp/L50_K4", "pcc_quic", "q_tcp_ca"],
        Claim::Silence,
        "20785000114, 20800001355, 20800001479, 20800003055, 20785013058",
    ),
    (&["tcp_drinc", "vivace"], Claim::Silence, "20785001156, 20800000666"),
];

/// Controllers whose rate governs.
const BY_RATE: [&str; 6] = ["aurora_mixed", "bbr1", "bbr3", "pcc_allegro", "pcc_quic", "vivace"];

fn is_listed(list: &[(&[&str], Claim, &str)], name: &str, claim: Claim) -> bool {
    list.iter().any(|(names, of, _)| *of == claim && names.contains(&name))
}

/// Most of what is allowed, as a multiple of what was delivered.
const FACTOR: f64 = 3.0;
const PACKET: f64 = 1500.0;

fn live(life: &Life, fresh: bool, seed: u64) -> Log {
    watched(&parse(&life.text(fresh)).network, life.batch, life.falsified, seed)
}

/// The log of the only flow of a network.
fn watched(network: &NetworkPlan, batch: u64, falsified: f64, seed: u64) -> Log {
    let mut log: Option<Arc<Mutex<Log>>> = None;
    let mut build = |plan: &_| -> Result<Box<dyn Coupled>, ParamError> {
        let mut governor = builtin(plan)?;
        if falsified > 0.0 {
            governor = Box::new(FalseRecords::new(governor, falsified, Rng::new(seed)));
        }
        if batch > 1 {
            governor = Box::new(Batches::new(governor, batch));
        }
        let (watch, found) = Watch::new(governor);
        log = Some(found);
        Ok(Box::new(watch))
    };
    let mut sim = Sim::new(network, Seed(seed), &mut build).expect("built-in controllers");
    sim.run_until(network.duration);
    drop(sim);
    let log = log.expect("one flow");
    Arc::try_unwrap(log).expect("the run is over").into_inner().expect("no panic")
}

/// The window, and the smaller of window and rate, against what was delivered: the largest ratios and when.
fn bounds(life: &Life, log: &Log) -> [(f64, f64); 2] {
    let mut delivered = Delivered::default();
    let mut worst = [(0.0, 0.0); 2];
    let (mut acks, mut from, mut min_rtt) = (0, Time::NEVER, Span::MAX);
    for step in &log.steps {
        if let What::Ack { acked, rtt } = step.what {
            delivered.add(step.now, acked, rtt);
            acks += 1;
            if rtt > Span::ZERO {
                min_rtt = min_rtt.min(rtt);
                if acks > life.batch && from == Time::NEVER {
                    from = step.now + rtt;
                }
            }
        }
        if step.now < from {
            continue;
        }
        // The first window, what one record and one lump of acknowledgements let out, and what a host sends at once.
        let burst = PACKET * (12.0 + 2.0 * life.batch as f64)
            + 2.0 * delivered.lump as f64
            + delivered.fastest * 0.003 / 8.0;
        let window = (step.after.cwnd.0 as f64 - burst) / delivered.most as f64;
        let rate = step.after.pacing_rate.0 as f64 - burst * 8.0 / min_rtt.as_secs_f64();
        let ratios = [window, window.min(rate / delivered.fastest)];
        for (worst, ratio) in worst.iter_mut().zip(ratios) {
            if ratio > worst.0 {
                *worst = (ratio, step.now.as_secs_f64());
            }
        }
    }
    worst
}

const LIMITS: RtoLimits = RtoLimits {
    min: Span::from_millis(200),
    max: Span::from_millis(60_000),
    initial: Span::from_millis(1000),
    tick: Span::from_millis(1),
};

/// Longest silence beyond what a time-out explains, in seconds, and when it begins. What waited since the last
/// delivery had waited for earlier time-outs, each half as long as the next.
fn silence(life: &Life, log: &Log) -> (f64, f64) {
    let acks = log.steps.iter().filter_map(|step| match step.what {
        What::Ack { rtt, .. } => Some((step.now, rtt)),
        _ => None,
    });
    let mut acks = acks.peekable();
    let (mut rtt_now, mut last, mut round) = (RttEstimator::default(), Time(0), Time(0));
    let (mut worst, mut longest) = ((0.0, 0.0), Span::ZERO);
    let mut sends = log.sends.clone();
    sends.push(Time::from_secs_f64(life.end_s()));
    for pair in sends.windows(2) {
        while let Some((at, rtt)) = acks.next_if(|ack| ack.0 <= pair[0]) {
            if rtt > Span::ZERO {
                rtt_now.sample(rtt, at > round, &LIMITS);
                round = if at > round { at + rtt } else { round };
            }
            (last, longest) = (at, Span::ZERO);
        }
        longest = longest.max(rtt_now.rto(&LIMITS));
        let allowed = pair[0].since(last) + longest * 2 + Span::from_millis(200);
        let gap = pair[1].since(pair[0] + allowed).as_secs_f64();
        if gap > worst.0 {
            worst = (gap, pair[0].as_secs_f64());
        }
    }
    worst
}

/// The first reduction beyond one of an episode.
fn reduced_again(log: &Log) -> Option<String> {
    log.steps.iter().find_map(|step| {
        let What::Loss { kind } = step.what else { return None };
        let (before, after) = match kind {
            LossKind::TimeoutAgain => (step.before.ssthresh.0, step.after.ssthresh.0),
            LossKind::More if step.after.pacing_rate == Rate::UNLIMITED => {
                (step.before.cwnd.0, step.after.cwnd.0)
            }
            _ => return None,
        };
        let at = step.now.as_secs_f64();
        let lower = (after as f64) < 0.99 * before as f64 - 1.0;
        lower.then(|| format!("{before} to {after} by {kind:?} at {at:.3} s"))
    })
}

fn acked_between(log: &Log, from: f64, to: f64) -> f64 {
    let inside = |step: &&Step| (from..to).contains(&step.now.as_secs_f64());
    log.steps
        .iter()
        .filter(inside)
        .map(|step| match step.what {
            What::Ack { acked, .. } => acked as f64,
            _ => 0.0,
        })
        .sum()
}

/// What is wrong with the bounds.
fn beyond(life: &Life, log: &Log) -> Vec<(Claim, String)> {
    let claims = [Claim::Window, Claim::Allowed].into_iter().zip(bounds(life, log));
    claims
        .filter(|(_, (ratio, _))| *ratio > FACTOR)
        .map(|(claim, (ratio, at))| (claim, format!("{ratio:.2} times at {at:.3} s")))
        .collect()
}

/// What is wrong after the disturbances, beside a fresh flow.
fn unsettled(life: &Life, log: &Log, fresh: &Log) -> Vec<(Claim, String)> {
    let mut found = Vec::new();
    let (from, to) = (life.settled_s(), life.end_s());
    let (own, other) = (acked_between(log, from, to), acked_between(fresh, from, to));
    let linear = 12.0 * PACKET * (to - from) / (life.rtt_ms / 1e3);
    if own < 0.5 * other.min(linear) && !life.noisy && !life.policed {
        found.push((Claim::Recovery, format!("{own} bytes, a fresh flow {other}")));
    }
    let sent = log.sends.iter().filter(|at| (from..to).contains(&at.as_secs_f64())).count();
    let sent = sent as f64 * PACKET;
    if sent > 3.0 * own.max(30.0 * PACKET) {
        found.push((Claim::LossEnds, format!("{own} of {sent} bytes arrive")));
    }
    let mut recent = Delivered::default();
    for step in log.steps.iter().filter(|step| step.now.as_secs_f64() > life.quiet_s) {
        if let What::Ack { acked, rtt } = step.what {
            recent.add(step.now, acked, rtt);
        }
    }
    let rate = log.steps.last().map_or(Rate(0), |step| step.after.pacing_rate).0 as f64;
    if rate > FACTOR * recent.fastest.max(1.0) && BY_RATE.contains(&&*life.scheme.name) {
        found.push((Claim::Forgets, format!("{rate} bit/s, delivered {}", recent.fastest)));
    }
    found
}

/// Every claim that a life breaks, and how.
fn faults(life: &Life, seed: u64) -> Vec<(Claim, String)> {
    let log = live(life, false, seed);
    let mut found = beyond(life, &log);
    found.extend(reduced_again(&log).map(|what| (Claim::Reduction, what)));
    if life.bulk && life.falsified == 0.0 {
        let (beyond, at) = silence(life, &log);
        if beyond > 0.0 {
            found.push((Claim::Silence, format!("{beyond:.2} s too long from {at:.3} s on")));
        }
        found.extend(unsettled(life, &log, &live(life, true, seed)));
    }
    let name = &life.scheme.name;
    found.retain(|(claim, _)| !is_listed(EXCEPTIONS, name, *claim));
    found
}

fn is_sound(text: &str, seed: u64) {
    let life = Life::draw(seed);
    let mut found = faults(&life, seed);
    found.retain(|(claim, _)| !is_listed(OPEN, &life.scheme.name, *claim));
    assert!(found.is_empty(), "{}: {found:?}\n{text}", life.scheme.name);
}

fn drawn(seed: u64) -> String {
    Life::draw(seed).text(false)
}

/// Lives of each scheme: a scheme of a seed is that of the seed's remainder.
fn lives(each: u64) -> u64 {
    each * schemes().len() as u64
}

#[test]
fn every_life_is_sound() {
    for_any("lives::every_life_is_sound", fixed_seed(), lives(8), drawn, is_sound);
}

#[test]
fn todays_lives_are_sound() {
    for_todays("lives::todays_lives_are_sound", lives(1), drawn, is_sound);
}

#[test]
#[ignore = "minutes: make test-all"]
fn many_of_todays_lives_are_sound() {
    for_todays("lives::many_of_todays_lives_are_sound", lives(200), drawn, is_sound);
}

#[test]
#[ignore = "a list, not a claim: what `ACKADEMY_LIVES` lives of each scheme from `ACKADEMY_SEED` on break"]
fn list_the_faults_of_many_lives() {
    let each = std::env::var("ACKADEMY_LIVES").map_or(50, |text| text.parse().expect("a number"));
    let mut tally: BTreeMap<(String, Claim), Vec<String>> = BTreeMap::new();
    for seed in first_seed()..first_seed() + lives(each) {
        let life = Life::draw(seed);
        let batch = life.batch;
        for (claim, what) in faults(&life, seed) {
            let entry = tally.entry((life.scheme.name.clone(), claim)).or_default();
            entry.push(format!("[{seed}: records of {batch}, {what}]"));
        }
    }
    for ((name, claim), all) in tally {
        println!("{name} {claim:?} {}: {}", all.len(), all[..all.len().min(4)].join(" "));
    }
}

/// Paths on which batches are compared with single acknowledgements.
const PATHS: [(&str, &str); 3] = [
    (
        "a short path",
        "rate_mbps = 33\ndelay_ms = 8.5\nqueue = { kind = \"drop_tail\", packets = 47 }\n",
    ),
    (
        "a path that marks",
        "rate_mbps = 30\ndelay_ms = 16\nqueue = { kind = \"codel\", packets = 800, ecn = true }\n",
    ),
    (
        "a long path",
        "rate_mbps = 20\ndelay_ms = 60\nqueue = { kind = \"drop_tail\", packets = 100 }\n",
    ),
];

/// What a bulk flow of 15 s does in records of `batch` acknowledgements: delivered and sent bytes, largest window.
fn batched(scheme: &Scheme, link: &str, batch: u64) -> [f64; 3] {
    let text = format!(
        "duration_s = 15\n[dumbbell]\n[dumbbell.bottleneck]\n{link}[[flow]]\n{}sender = {{ ecn = \"classic\" }}\n",
        scheme.lines
    );
    let log = watched(&parse(&text).network, batch, 0.0, 1);
    let largest = log.steps.iter().map(|step| step.after.cwnd.0).max().unwrap_or(0);
    [acked_between(&log, 0.0, 15.0), log.sends.len() as f64 * PACKET, largest as f64]
}

/// Where records of half a round trip differ: controllers that decide once per round trip see every other round trip
/// late. The daemon sends records of at most an eighth of a round trip.
const NEEDS_RECORDS: [&str; 6] =
    ["flagship", "flagship_evolved", "flagship_ppo", "own_queue", "tcp_drinc", "vegas"];

/// Differences that are still to be explained.
const OPEN_IN_RECORDS: [&str; 3] = ["cubic_ns3", "tcp_drinc_delta5", "wvegas"];

/// Start-up, recoveries and steady state, on each of the paths: no more is lost, no less arrives, no larger window.
#[test]
fn records_of_many_acknowledgements_are_answered_as_single_ones_are() {
    let mut wrong = Vec::new();
    let compared = |scheme: &Scheme| !OPEN_IN_RECORDS.contains(&&*scheme.name);
    for scheme in schemes().into_iter().filter(compared) {
        for (path, link) in PATHS {
            let [delivered, sent, largest] = batched(&scheme, link, 1);
            for batch in [2, 10, 25] {
                if batch == 25 && NEEDS_RECORDS.contains(&&*scheme.name) {
                    continue;
                }
                let many = batched(&scheme, link, batch);
                let by_window = !BY_RATE[3..].contains(&&*scheme.name);
                let loses = many[1] - many[0] > 1.5 * (sent - delivered) + 0.05 * many[0];
                let grows = many[2] > 2.0 * largest + 2.0 * batch as f64 * PACKET;
                if loses || many[0] < 0.8 * delivered || (by_window && grows) {
                    let told = [delivered, sent, largest];
                    wrong.push(format!(
                        "{} on {path}, {batch}: {many:?}, single {told:?}",
                        scheme.name
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
