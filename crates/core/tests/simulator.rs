//! What every simulation must hold, on scenarios chosen for it; `swarm.rs` has those drawn at random.
use crate::support::draw::{Draw, check, parse, run, same};
use ackademy::controllers;
use ackademy::rng::{Rng, Seed};
use ackademy::sim;
use ackademy::sim::record::Outcome;
use ackademy::units::Span;

#[test]
fn the_draws_reach_everything_there_is() {
    let outcomes: Vec<Outcome> =
        (0..800).map(|seed| run(&Draw(Rng::new(seed)).scenario(), seed)).collect();
    let links = || outcomes.iter().flat_map(|outcome| &outcome.links);
    let flows = || outcomes.iter().flat_map(|outcome| &outcome.flows);
    assert!(links().map(|link| link.queue_drops).sum::<u64>() > 10_000);
    assert!(links().map(|link| link.random_losses).sum::<u64>() > 1000);
    assert!(links().map(|link| link.marked_packets).sum::<u64>() > 300);
    assert!(flows().map(|flow| flow.timeouts).sum::<u64>() > 100);
    assert!(flows().map(|flow| flow.recoveries).sum::<u64>() > 1000);
    assert!(flows().map(|flow| flow.transfers).sum::<u64>() > 1000);
    assert!(flows().map(|flow| flow.received_packets).sum::<u64>() > 300_000);
    let held =
        |counters: &[(&str, f64)]| counters.iter().any(|&(name, n)| name == "held" && n > 0.0);
    assert!(flows().any(|flow| held(&flow.counters)));
    assert!(flows().map(|flow| flow.refused_writes).sum::<u64>() > 100);
    for spec in controllers::ALL {
        assert!(flows().any(|flow| flow.controller == spec.name && flow.received_packets > 100));
    }
}

/// The reordering timer may find losses after a time-out, when no reduction has begun.
#[test]
fn losses_found_by_the_timer_after_a_time_out_need_no_reduction() {
    let text = r#"
        duration_s = 20
        [dumbbell]
        rtt_ms = 10
        bottleneck = { rate_mbps = 10, queue = { kind = "drop_tail", bdp = 0.5 } }
        [[flow]]
        count = 100
        start_spread_s = 1
        controller = "bbr1"
    "#;
    let outcomes: Vec<Outcome> = (1..4).map(|seed| run(text, seed)).collect();
    assert!(outcomes.iter().all(|own| own.flows.iter().any(|flow| flow.timeouts > 0)));
}

#[test]
fn threads_change_nothing() {
    let texts: Vec<String> = (0..32).map(|seed| Draw(Rng::new(1000 + seed)).scenario()).collect();
    let all = |threads: usize| -> Vec<String> {
        let mut outcomes = vec![String::new(); texts.len()];
        let share = texts.len().div_ceil(threads);
        std::thread::scope(|scope| {
            for (texts, outcomes) in texts.chunks(share).zip(outcomes.chunks_mut(share)) {
                // Backwards, so that another number of threads is another order, too.
                scope.spawn(move || {
                    for (text, outcome) in texts.iter().zip(outcomes).rev() {
                        *outcome = format!("{:?}", run(text, 7));
                    }
                });
            }
        });
        outcomes
    };
    let alone = all(1);
    assert!(alone == all(2) && alone == all(8));
}

#[test]
fn stopping_on_the_way_changes_nothing() {
    for seed in 0..40 {
        let scenario = parse(&Draw(Rng::new(2000 + seed)).scenario());
        let network = &scenario.network;
        let make = || sim::Sim::new(network, Seed(seed), &mut sim::builtin).expect("built-in");
        let mut whole = make();
        whole.run_until(network.duration);
        let mut parts = make();
        let mut rng = Rng::new(seed);
        while parts.now() < network.duration {
            parts.run_until(parts.now() + Span(rng.below(50_000_000)));
        }
        assert!(same(&whole.finish(), &parts.finish()));
    }
}

const BYTES: u64 = 300_000;

/// A fixed transfer over a path as `link` says, long enough to drain.
fn transfer(link: &str, sender: &str, controller: &str) -> String {
    format!(
        "duration_s = 3000\n[dumbbell]\nreverse_delay_ms = 10\n[dumbbell.bottleneck]\n{link}\n\
         [[flow]]\ncontroller = \"{controller}\"\ntraffic = {{ kind = \"fixed\", bytes = {BYTES} }}\n\
         sender = {{ {sender} }}\n"
    )
}

const SENDERS: &[&str] = &[
    "",
    "rack = false, tlp = false, prr = false",
    "rack = false",
    "tlp = false",
    "prr = false",
    "pacing = true, idle_restart = true, ecn = \"classic\"",
    "ack_every = 4, ack_delay_ms = 200",
    "initial_cwnd_packets = 1, receiver_window_packets = 1",
    "recovery = \"ns2\"",
    "recovery = \"ns2\", handshake = false, deflation = false, impatient = false",
    "recovery = \"ns2\", timestamps = false, rto_tick_ms = 10, ack_every = 2",
];

const LIVING: &[&str] = &[
    "rate_mbps = 5\nqueue = { kind = \"drop_tail\", packets = 1 }",
    "rate_mbps = 5\ndelay_ms = 20\nqueue = { kind = \"drop_tail\", packets = 20 }",
    "rate_mbps = 5\ndelay_ms = 20\nloss = { kind = \"bernoulli\", ratio = 0.2 }",
    "rate_mbps = 5\ndelay_ms = 20\nloss = { kind = \"gilbert_elliott\", good_to_bad = 0.05, bad_to_good = 0.2 }",
    "rate_mbps = 5\ndelay_ms = 20\nduplicate_ratio = 1",
    "rate_mbps = 5\ndelay_ms = 20\nreorder = { ratio = 0.5, low_ms = 1, high_ms = 100 }",
    "rate_mbps = 5\ndelay_ms = 20\njitter_ms = 20\nkeep_order = false",
    "rate_mbps = 5\ndelay_ms = 1\nqueue = { kind = \"codel\", packets = 100, ecn = true }",
    "rate_mbps = 0.05\ndelay_ms = 2000\nqueue = { kind = \"fq_codel\", packets = 10, ecn = true }",
    "rate_mbps = 5\ndelay_ms = 20\nqueue = { kind = \"dualpi2\", packets = 20 }",
    "rate_mbps = 5\ndelay_ms = 20\npolicer = { rate_mbps = 2, burst_bytes = 6000 }",
    "rate_mbps = 5\ndelay_ms = 20\naggregation = { low_ms = 2, high_ms = 30 }",
    "rate_mbps = 5\ndelay_ms = 20\nretransmit = { ratio = 0.5, delay_ms = 5, most = 3 }",
    "handover = { every_s = 0.5, low_mbps = 1, high_mbps = 9, low_ms = 5, high_ms = 50, outage_ms = 80 }",
    "rate_mbps = 5\ndelay_ms = 20\noutages = [[0.1, 0.3], [0.5, 5]]",
    "trace = \"3\"\nqueue = { kind = \"pie\", packets = 10 }",
    "rate_schedule = [[0, 5], [0.2, 0], [1, 0.1]]\nqueue = { kind = \"drop_tail\", bytes = 6000 }",
];

#[test]
fn every_transfer_over_a_living_path_ends_and_the_books_balance() {
    for link in LIVING {
        for sender in SENDERS {
            for controller in ["new_reno", "cubic", "rl_tcp"] {
                let text = transfer(link, sender, controller);
                let outcome = run(&text, 3);
                let flow = &outcome.flows[0];
                assert_eq!(flow.transfers, 1, "{text}\n{flow:?}");
                assert!(flow.goodput_bytes >= BYTES, "{text}\n{flow:?}");
                if !link.contains("duplicate") {
                    let ended = flow.received_packets + flow.dropped_packets;
                    assert_eq!(flow.sent_packets, ended, "{text}\n{flow:?}");
                }
                assert!(outcome.events < 3_000_000, "{text}\n{} events", outcome.events);
            }
        }
    }
}

#[test]
fn every_controller_brings_a_transfer_over_a_bad_path() {
    let link = "rate_mbps = 5\ndelay_ms = 20\nqueue = { kind = \"drop_tail\", packets = 20 }\n\
                loss = { kind = \"bernoulli\", ratio = 0.05 }";
    for spec in controllers::ALL.iter().filter(|spec| spec.runs_on_defaults()) {
        for sender in SENDERS {
            let flow = &run(&transfer(link, sender, spec.name), 4).flows[0];
            assert_eq!(flow.transfers, 1, "{} {sender} {flow:?}", spec.name);
        }
    }
}

#[test]
fn a_dead_link_ends_the_run_in_few_events() {
    for link in [
        "rate_mbps = 5\nloss = { kind = \"bernoulli\", ratio = 1 }",
        "rate_mbps = 5\noutages = [[0, 100000]]",
        "rate_mbps = 5\noutages = [[0.05, 100000]]\nqueue = { kind = \"codel\", packets = 5 }",
        "rate_schedule = [[0, 5], [0.05, 0]]",
        "rate_schedule = [[0, 5], [0.05, 0]]\nqueue = { kind = \"pie\", packets = 5 }",
    ] {
        for sender in SENDERS {
            let outcome = run(&transfer(link, sender, "cubic"), 5);
            assert_eq!(outcome.flows[0].transfers, 0);
            assert!(outcome.flows[0].timeouts > 10, "{link} {sender} {:?}", outcome.flows[0]);
            assert!(outcome.events < 2000, "{link} {sender}: {} events", outcome.events);
        }
    }
}

#[test]
fn a_flow_recovers_from_an_outage_of_ten_seconds() {
    for sender in SENDERS {
        for controller in ["new_reno", "cubic"] {
            let run = |outages: &str| {
                let text = format!(
                    "duration_s = 100\n[dumbbell]\nrtt_ms = 50\n[dumbbell.bottleneck]\nrate_mbps = 5\n\
                     queue = {{ kind = \"drop_tail\", packets = 50 }}\n{outages}\n\
                     [[flow]]\ncontroller = \"{controller}\"\nsender = {{ {sender} }}\n"
                );
                run(&text, 6).flows[0].clone()
            };
            let (smooth, cut) = (run(""), run("outages = [[20, 30]]"));
            assert!(cut.timeouts >= 1, "{sender} {cut:?}");
            // Ten seconds, and the wait for the backed-off timer at their end.
            let part = cut.delivered_bytes as f64 / smooth.delivered_bytes as f64;
            assert!(part > 0.75, "{controller} {sender}: {part}");
        }
    }
}

#[test]
fn a_link_that_keeps_order_does() {
    for seed in 0..300 {
        let mut draw = Draw(Rng::new(3000 + seed));
        let text = format!(
            "duration_s = 3\n[dumbbell]\n[dumbbell.bottleneck]\n{}{}[[flow]]\n",
            draw.rate(),
            draw.delay(),
        );
        let network = parse(&text).network;
        let mut link = sim::link::Link::new(&network.links[0], 0, Seed(seed), Span::ZERO);
        let (mut now, mut last) = (ackademy::units::Time(0), ackademy::units::Time(0));
        for _ in 0..300 {
            now += Span(draw.below(10_000_000));
            let mut packet = ackademy::transport::packet::Packet {
                size: 40 + draw.below(1460) as u32,
                ..ackademy::transport::packet::Packet::default()
            };
            let sim::link::Offer::Arrives(at) = link.offer(now, &mut packet, &mut Vec::new())
            else {
                panic!("nothing is lost or overtaken here");
            };
            assert!(at >= last && at >= now, "{text}");
            last = at;
        }
    }
}

#[test]
fn extreme_values_do_no_harm() {
    for (rate_mbps, duration_s) in [(1e-6, 1e-6), (1e-6, 2e5), (1e6, 1e-6), (1e6, 2e-5)] {
        for packet in ["packet_bytes = 1, header_bytes = 0", "packet_bytes = 65535"] {
            for delay_ms in [0.0, 1e-6, 1e7] {
                for sender in [
                    "initial_cwnd_packets = 1000",
                    "initial_cwnd_packets = 1, rto_min_ms = 0, rto_tick_ms = 1e-6, rto_initial_ms = 1e-3",
                    "pacing = true, ack_every = 1000, ack_delay_ms = 1e7",
                    "recovery = \"ns2\"",
                    "recovery = \"ns2\", rto_min_ms = 0, rto_tick_ms = 1e-6, rto_initial_ms = 1e-3",
                    "recovery = \"ns2\", rto_tick_ms = 1e7, rto_max_ms = 1e7",
                ] {
                    for queue in [
                        "kind = \"drop_tail\", packets = 20",
                        "kind = \"codel\", packets = 20, target_ms = 1e-3, interval_ms = 1e-3",
                        "kind = \"fq_codel\", packets = 20, queues = 1, quantum_bytes = 64",
                        "kind = \"pie\", packets = 20, update_ms = 10",
                        "kind = \"red\", packets = 20, min_packets = 0, max_packets = 1, weight = 1",
                    ] {
                        let text = format!(
                            "duration_s = {duration_s}\n[dumbbell]\nreverse_delay_ms = {delay_ms}\n\
                             [dumbbell.bottleneck]\nrate_mbps = {rate_mbps}\ndelay_ms = {delay_ms}\n\
                             queue = {{ {queue} }}\n\
                             [[flow]]\nsender = {{ {packet}, {sender} }}\n"
                        );
                        let scenario = parse(&text);
                        eprintln!(
                            "RUN {rate_mbps} {duration_s} {packet} {delay_ms} {sender} {queue}"
                        );
                        let outcome = sim::run(&scenario.network, Seed(1)).expect("built-in");
                        check(&scenario, &outcome);
                        assert!(outcome.events < 1_000_000, "{} events\n{text}", outcome.events);
                    }
                }
            }
        }
    }
}

/// A draw every ten seconds and a packet every quarter of a second: nearly every round trip is twice
/// the one-way delay, which it is not if the two directions draw on their own.
#[test]
fn a_reverse_direction_that_varies_repeats_the_forward_draws() {
    let text = "duration_s = 1000\n[dumbbell]\nreverse_varies = true\n[dumbbell.bottleneck]\n\
                rate_mbps = 100\ndelay_random = { low_ms = 60, high_ms = 160, hz = 0.1 }\n\
                [sender]\nack_every = 1\n[[flow]]\nstop_s = 990\n\
                traffic = { kind = \"app_limited\", rate_mbps = 0.046, write_bytes = 1448 }\n";
    let outcome = sim::run(&parse(text).network, Seed(1)).expect("built-in controllers");
    let flow = &outcome.flows[0];
    assert!((flow.rtt_mean_ms - 2.0 * flow.owd_mean_ms).abs() < 1.0, "{flow:?}");
    assert!((flow.base_rtt_ms - 120.0).abs() < 1.0, "{flow:?}");
    assert!((200.0..240.0).contains(&flow.rtt_mean_ms), "{flow:?}");
    assert!(flow.rtt_p95_ms > 300.0, "{flow:?}");
}
