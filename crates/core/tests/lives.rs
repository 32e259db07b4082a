//! What every controller must hold in every life of a flow, over lives drawn at random (`support/life.rs`): for each
//! controller that runs on defaults and each policy that the project ships.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::support::life::{Life, Scheme, parse, schemes};
use crate::support::seeds::{first_seed, fixed_seed, for_any, for_todays};
use crate::support::watch::{Batches, Delivered, Log, Record, Step, Told, Watch, What};
use ackademy::checked::Checked;
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
    /// The same where the path carries more than twice as much as just before.
    Faster,
    /// The same where the smallest round trip is longer than before.
    Longer,
    /// By then it sends at most three times what arrives, whatever is lost (RFC 9743 section 5.1.1), or at its floor.
    LossEnds,
    /// By then a rate that governs is at most three times the fastest delivery since the last disturbance, and a burst.
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
    (
        &["vegas", "wvegas"],
        Claim::Longer,
        "the base is the smallest round trip of the connection (Brakmo and Peterson 1995, section 3.2)",
    ),
    (
        &["ledbat_plus_plus"],
        Claim::Longer,
        "the base is that of ten minutes (RFC 6817 section 2.5)",
    ),
    (
        &["bbr1"],
        Claim::Faster,
        "a probe finds a quarter more in eight round trips (Cardwell et al. 2016): twice as much takes 25",
    ),
    (
        &["pcc_allegro", "pcc_quic", "vivace"],
        Claim::Faster,
        "a decision moves the rate by a few percent (NSDI 2015, section 3.1; NSDI 2018, section 3.3)",
    ),
    (
        &["learningcc", "q_tcp", "q_tcp_ca", "qa_tcp", "qa_tcp_ca", "rl_tcp", "rl_tcp_no_ca"],
        Claim::Recovery,
        "they learn while they send: what a disturbance taught is unlearned in episodes (Kong et al. 2018, section 3.2)",
    ),
    (&["qa_tcp_ca", "rl_tcp", "rl_tcp_no_ca"], Claim::Faster, "as above"),
    (&["learningcc", "rl_tcp"], Claim::Longer, "as above"),
];

/// What lives break seldom, in fewer than one of 500 of a controller but where it says more; each with a seed. No exception:
/// an entry goes with its fault. Of most that recover late, the cause is known: after a time-out a repair was lost, which
/// is a second sign of congestion (RFC 5681 section 4.3; Linux: `FLAG_LOST_RETRANS`), and hundreds of packets are then
/// repaired one or two in a round trip; or repairs give no round-trip samples, and those of an outage set the pacing.
const OPEN: &[(&[&str], Claim, &str)] = &[
    (
        &["aurora_mixed"],
        Claim::Longer,
        "one of 55: the network was trained with one round trip: 50000000952",
    ),
    (&["aurora_mixed"], Claim::Faster, "one of 105: 50000006912"),
    (&["aurora_mixed"], Claim::Recovery, "one of 110: 50000003752"),
    (&["aurora_mixed"], Claim::Silence, "50000002352"),
    (&["pcc_quic"], Claim::Recovery, "one of 250: 50000005255"),
    (&["vivace"], Claim::Recovery, "one of 400: 50000007186"),
    (&["pcc_quic", "qa_tcp_ca", "vivace"], Claim::Longer, "50000002615, 90000006740, 30000002426"),
    (
        &["bbr1", "bbr3", "pcc_allegro", "vivace"],
        Claim::Forgets,
        "8880, 60000005401, 60000002134, 1000000030026",
    ),
    (&["bbr1", "learningcc", "vivace"], Claim::Window, "60000001000, 20790007050, 90000004106"),
    (&["vivace"], Claim::Allowed, "90000004106"),
    (&["bbr1", "q_tcp_ca"], Claim::LossEnds, "30000009280, 20785011258"),
    (
        &[
            "compound",
            "copa",
            "cubic_ns3",
            "dctcp",
            "flagship_ppo",
            "hybla",
            "illinois",
            "lia",
            "lp_tcp/L50_K4",
            "olia",
            "own_queue",
            "pcc_allegro",
            "prague",
            "tcp_drinc_delta5",
            "westwood_plus",
            "wvegas",
        ],
        Claim::Recovery,
        "1000000018962, 20790023923, 60000005965, 1000000001527, 20787009555, 20790002848, 20790033969, 20785003749, \
         1000000022159, 20788004270, 20790006413, 90000013574, 20785003576, 60000002517, 20790010467, 70000001951",
    ),
    (
        &[
            "cubic_ns3",
            "dctcp",
            "flagship_evolved",
            "hybla",
            "illinois",
            "ledbat_plus_plus",
            "lia",
            "lp_tcp/L50_K1",
            "new_reno",
            "own_queue",
            "prague",
            "q_tcp_ca",
            "qa_tcp",
            "tcp_drinc_delta5",
            "westwood_plus",
            "wvegas",
        ],
        Claim::Faster,
        "20790026925, 1000000007447, 20788009314, 60000004128, 5089, 20788014851, 20800010709, 5118, 60000006132, \
         20788000453, 50000001056, 70000011178, 90000031979, 20788000317, 50000001107, 60000004791",
    ),
    (
        &["flagship_evolved", "hybla", "q_tcp", "q_tcp_ca", "rl_tcp_no_ca", "westwood_plus"],
        Claim::Longer,
        "70000000434, 20790014648, 1000000020577, 90000002578, 20787006904, 3747",
    ),
    (
        &[
            "copa",
            "cubic_ns3",
            "cubic_rfc9438",
            "hybla",
            "learningcc",
            "new_reno",
            "olia",
            "pcc_allegro",
            "pcc_quic",
            "prague",
            "q_tcp",
            "qa_tcp",
            "qa_tcp_ca",
            "tcp_drinc",
            "vivace",
        ],
        Claim::Silence,
        "20788003363, 20790020765, 1000000021766, 20785007408, 1000000000970, 90000013972, 90000034830, 20788009654, \
         20787006855, 20790021376, 20790030537, 90000009499, 90000019260, 20785011996, 60000005066",
    ),
];

/// Where the window is more than [`FACTOR`] times what was delivered for a round trip: how many times at most, and why.
const FACTORS: &[(&[&str], f64, &str)] = &[
    (
        &["copa"],
        100.0,
        "a round trip adds v/δ, and 1/δ grows by one in each without loss (Arun and Balakrishnan 2018, section 2.2)",
    ),
    (
        &["bbr1", "bbr3"],
        6.0,
        "a start adds the first ten deliveries to the first window, whatever the application uses (Linux, tcp_bbr.c)",
    ),
    (&["q_tcp", "q_tcp_ca"], 4.0, "an action adds twenty packets (Kong et al. 2018, section 3.2)"),
    (
        &["flagship", "flagship_evolved", "flagship_ppo", "own_queue"],
        5.0,
        "twice what was in flight, and ten packets: more was in flight than arrived where packets were lost",
    ),
    (
        &["cubic_rfc9438", "lia", "prague"],
        3.5,
        "records of 25: the round trip that the slow start learns from has grown meanwhile",
    ),
];

/// What a false rate or flight may be (`Checked`): these controllers set the window by it.
const FACTOR_BY_RECORDS: f64 = 1000.0;
const BY_RECORDS: [&str; 7] =
    ["bbr1", "bbr3", "flagship", "flagship_evolved", "flagship_ppo", "learningcc", "own_queue"];

/// Controllers whose rate governs.
const BY_RATE: [&str; 6] = ["aurora_mixed", "bbr1", "bbr3", "pcc_allegro", "pcc_quic", "vivace"];

/// Floor of a window, and of a rate, packets in a round trip: RFC 5681 section 3.1; QUIC's PCC (`pcc_quic`) with its
/// largest probe.
const FLOOR_PACKETS: [f64; 2] = [2.0, 4.5];

/// First window of RFC 6928.
const BURST_PACKETS: f64 = 10.0;

fn is_listed(list: &[(&[&str], Claim, &str)], name: &str, claim: Claim) -> bool {
    list.iter().any(|(names, of, _)| *of == claim && names.contains(&name))
}

/// Most of what is allowed, as a multiple of what was delivered, and that where records are false: what they say may
/// be four times as much (`Checked`), of which a controller's gain makes more.
const FACTOR: f64 = 3.0;
const FACTOR_FALSE: f64 = 16.0;
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
            let checked = Box::new(Checked::new(governor));
            governor = Box::new(FalseRecords::new(checked, falsified, Rng::new(seed)));
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
        if let What::Ack { acked, rtt, .. } = step.what {
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

/// Longest silence beyond what a time-out explains, in seconds, and when it begins. It begins with a packet that left,
/// or with an acknowledgement that found the window full. What waited since the last round-trip sample had waited for earlier
/// time-outs, each half as long as the next: only a sample ends the back-off (RFC 6298 section 5.7), and a timer that was
/// set before it expires as it was set.
fn silence(life: &Life, log: &Log) -> (f64, f64) {
    let (mut rtt_now, mut last, mut round) = (RttEstimator::default(), Time(0), Time(0));
    let (mut worst, mut due, mut from, mut longest) = ((0.0, 0.0), Time(0), Time(0), Span::ZERO);
    let end = Time::from_secs_f64(life.end_s());
    let mut sends = log.sends.iter().copied().chain([end]).peekable();
    let mut look = |now: Time, from: Time, last: Time, longest: Span| {
        let allowed = from.since(last) + longest * 2 + Span::from_millis(200);
        due = due.max(from + allowed);
        let gap = now.since(due).as_secs_f64();
        if gap > worst.0 {
            worst = (gap, from.as_secs_f64());
        }
    };
    for step in &log.steps {
        let What::Ack { rtt, inflight, .. } = step.what else { continue };
        while let Some(at) = sends.next_if(|at| *at < step.now) {
            longest = longest.max(rtt_now.rto(&LIMITS));
            look(at, from, last, longest);
            from = at;
        }
        if rtt > Span::ZERO {
            rtt_now.sample(rtt, step.now > round, &LIMITS);
            round = if step.now > round { step.now + rtt } else { round };
            (last, longest) = (step.now, rtt_now.rto(&LIMITS));
        }
        if inflight + 1500 > step.after.cwnd.0 {
            look(step.now, from, last, longest);
            from = step.now;
        }
    }
    for at in sends {
        look(at, from, last, longest);
        from = at;
    }
    worst
}

/// The first reduction beyond one of an episode.
/// A batch that is told together with a loss moves the window, too: lives of single records tell.
fn reduced_again(life: &Life, log: &Log) -> Option<String> {
    let compared = if life.batch == 1 { &*log.steps } else { &[] };
    compared.iter().find_map(|step| {
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

fn smallest_rtt_s(log: &Log) -> f64 {
    let rtts = log.steps.iter().filter_map(|step| match step.what {
        What::Ack { rtt, .. } if rtt > Span::ZERO => Some(rtt),
        _ => None,
    });
    rtts.min().unwrap_or(Span::MAX).as_secs_f64()
}

/// What is wrong with the bounds.
fn beyond(life: &Life, log: &Log) -> Vec<(Claim, String)> {
    let claims = [Claim::Window, Claim::Allowed].into_iter().zip(bounds(life, log));
    let name = &*life.scheme.name;
    let most = match life.falsified > 0.0 {
        true if BY_RECORDS.contains(&name) => FACTOR_BY_RECORDS,
        true => FACTOR_FALSE,
        false => {
            FACTORS.iter().find(|(names, ..)| names.contains(&name)).map_or(FACTOR, |one| one.1)
        }
    };
    claims
        .filter(|(_, (ratio, _))| *ratio > most)
        .map(|(claim, (ratio, at))| (claim, format!("{ratio:.2} times at {at:.3} s")))
        .collect()
}

/// What is wrong after the disturbances, beside a fresh flow.
fn unsettled(life: &Life, log: &Log, fresh: &Log) -> Vec<(Claim, String)> {
    let mut found = Vec::new();
    let (from, to) = (life.settled_s(), life.end_s());
    let (own, other) = (acked_between(log, from, to), acked_between(fresh, from, to));
    let linear = 12.0 * PACKET * (to - from) / (life.rtt_ms / 1e3);
    if own < 0.5 * other.min(linear) && !life.noisy && !life.policed && !life.waits {
        let claim = match (life.longer, life.faster) {
            (true, _) => Claim::Longer,
            (false, true) => Claim::Faster,
            (false, false) => Claim::Recovery,
        };
        found.push((claim, format!("{own} bytes, a fresh flow {other}")));
    }
    let sent = log.sends.iter().filter(|at| (from..to).contains(&at.as_secs_f64())).count();
    let sent = sent as f64 * PACKET;
    let by_rate = BY_RATE.contains(&&*life.scheme.name);
    let floor = FLOOR_PACKETS[usize::from(by_rate)] * PACKET / smallest_rtt_s(log);
    if sent > (3.0 * own.max(30.0 * PACKET)).max(floor * (to - from)) {
        found.push((Claim::LossEnds, format!("{own} of {sent} bytes arrive")));
    }
    let mut recent = Delivered::default();
    for step in log.steps.iter().filter(|step| step.now.as_secs_f64() > life.quiet_s) {
        if let What::Ack { acked, rtt, .. } = step.what {
            recent.add(step.now, acked, rtt);
        }
    }
    let rate = log.steps.last().map_or(Rate(0), |step| step.after.pacing_rate);
    // Without a rate the window governs.
    let rate = if rate == Rate::UNLIMITED { 0.0 } else { rate.0 as f64 };
    if by_rate
        && rate > FACTOR * recent.fastest + 8.0 * BURST_PACKETS * PACKET / smallest_rtt_s(log)
    {
        found.push((Claim::Forgets, format!("{rate} bit/s, delivered {}", recent.fastest)));
    }
    found
}

/// Every claim that a life breaks, and how.
fn faults(life: &Life, seed: u64) -> Vec<(Claim, String)> {
    let log = live(life, false, seed);
    let mut found = beyond(life, &log);
    found.extend(reduced_again(life, &log).map(|what| (Claim::Reduction, what)));
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

/// The first record that is checked into another one.
fn first_changed(life: &Life, seed: u64) -> Option<(Record, Record)> {
    let [outside, inside] = [(); 2].map(|()| Arc::new(Mutex::new(Vec::new())));
    let mut build = |plan: &_| -> Result<Box<dyn Coupled>, ParamError> {
        let told = Box::new(Told::new(builtin(plan)?, &inside));
        let checked = Told::new(Box::new(Checked::new(told)), &outside);
        Ok(match life.batch {
            1 => Box::new(checked),
            batch => Box::new(Batches::new(Box::new(checked), batch)),
        })
    };
    let network = parse(&life.text(false)).network;
    let mut sim = Sim::new(&network, Seed(seed), &mut build).expect("built-in controllers");
    sim.run_until(network.duration);
    let (outside, inside) = (outside.lock().expect("over"), inside.lock().expect("over"));
    assert_eq!(outside.len(), inside.len());
    outside.iter().copied().zip(inside.iter().copied()).find(|(before, after)| before != after)
}

#[test]
fn no_right_record_is_changed_by_the_check() {
    let is_unchanged = |text: &str, seed: u64| {
        let changed = first_changed(&Life::draw(seed), seed);
        assert_eq!(changed, None, "before and after\n{text}");
    };
    for_any(
        "lives::no_right_record_is_changed_by_the_check",
        fixed_seed(),
        lives(8),
        drawn,
        is_unchanged,
    );
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

/// What answers records of several acknowledgements otherwise, and why.
const BY_ACKNOWLEDGEMENT: [(&str, &str); 2] = [
    (
        "cubic_ns3",
        "it is ns-3's CUBIC, whose window grows whether it is used or not: also by a lump after a mark",
    ),
    (
        "tcp_drinc_delta5",
        "the time between acknowledgements is one of its five inputs (Xiao et al. 2019)",
    ),
];

/// Start-up, recoveries and steady state, on each of the paths: no more is lost, no less arrives, no larger window.
#[test]
fn records_of_many_acknowledgements_are_answered_as_single_ones_are() {
    let mut wrong = Vec::new();
    let compared =
        |scheme: &Scheme| BY_ACKNOWLEDGEMENT.iter().all(|(name, _)| *name != scheme.name);
    for scheme in schemes().into_iter().filter(compared) {
        for (path, link) in PATHS {
            let [delivered, sent, largest] = batched(&scheme, link, 1);
            for batch in [2, 10, 25] {
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
