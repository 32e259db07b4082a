use super::*;
use crate::controllers::test_support::{MSS, close, flow, simulated};
use crate::units::Bytes;

/// `NewReno`'s window of 100 packets and a delay window of 60, in congestion avoidance.
fn compound() -> Compound {
    let mut compound = Compound::new(&flow(), &Params::defaults(SPEC.params));
    (compound.window.cwnd, compound.window.ssthresh, compound.dwnd) = (100.0, 50.0, 60.0);
    compound.round = Round::starting(at(0), 100.0);
    compound
}

fn at(ms: u64) -> Time {
    Time(0) + Span::from_millis(ms)
}

/// An acknowledgement at `now_ms` of packets that left a round trip of `rtt_ms` ago; the empty path has 100.
fn ack(now_ms: u64, rtt_ms: u64, packets: u64) -> Ack {
    Ack {
        now: at(now_ms),
        sent_at: at(now_ms.saturating_sub(rtt_ms)),
        rtt: Span::from_millis(rtt_ms),
        srtt: Span::from_millis(rtt_ms),
        min_rtt: Span::from_millis(100),
        acked: Bytes(packets * MSS),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

/// A round trip with 160 packets in four acknowledgements, from the time `from_ms`.
fn round(compound: &mut Compound, from_ms: u64, rtt_ms: u64) {
    compound.round = Round::starting(at(from_ms), compound.window.cwnd);
    for part in 1..=4 {
        compound.on_ack(&ack(from_ms + rtt_ms * part / 4, rtt_ms, 40));
    }
}

fn loss(kind: LossKind) -> Loss {
    Loss { now: at(1000), inflight: Bytes(160 * MSS), kind, ..Loss::default() }
}

#[test]
fn what_is_allowed_is_the_sum_of_both_windows() {
    assert_eq!(compound().control().cwnd, Bytes(160 * MSS));
}

#[test]
fn renos_window_grows_by_one_packet_per_round_trip_of_the_sum() {
    let mut compound = compound();
    compound.on_ack(&ack(50, 100, 16));
    close(compound.window.cwnd, 100.1);
}

#[test]
fn the_delay_window_grows_by_a_power_of_the_window_while_little_is_queued() {
    let mut compound = compound();
    round(&mut compound, 1000, 100);
    close(compound.dwnd, 60.0 + 160.0_f64.powf(0.75) / 8.0 - 1.0);
}

#[test]
fn below_sixteen_packets_it_is_new_reno() {
    let mut compound = compound();
    (compound.window.cwnd, compound.dwnd) = (15.0, 0.0);
    for from in 0..3 {
        compound.round = Round::starting(at(100 * from), 15.0);
        for part in 1..=3 {
            compound.on_ack(&ack(100 * from + 34 * part, 100, 5));
        }
    }
    close(compound.dwnd, 0.0);
}

#[test]
fn the_delay_window_shrinks_by_what_is_queued_beyond_gamma() {
    let mut compound = compound();
    round(&mut compound, 1000, 125); // a fifth of 160 packets queue: 32 of at most 30
    close(compound.dwnd, 60.0 - 32.0);
    round(&mut compound, 2000, 200); // 80
    close(compound.dwnd, 0.0);
}

#[test]
fn just_below_gamma_it_still_grows() {
    let mut compound = compound();
    round(&mut compound, 1000, 122); // 28.9 packets
    assert!(compound.dwnd > 60.0);
}

#[test]
fn two_samples_of_a_round_trip_are_too_few() {
    let mut compound = compound();
    compound.on_ack(&ack(60, 100, 80));
    compound.on_ack(&ack(110, 100, 80));
    close(compound.dwnd, 60.0);
}

#[test]
fn slow_start_has_no_delay_window() {
    let mut compound = compound();
    (compound.window.ssthresh, compound.dwnd) = (f64::INFINITY, 0.0);
    round(&mut compound, 1000, 100);
    close(compound.dwnd, 0.0);
    close(compound.window.cwnd, 260.0);
}

#[test]
fn a_loss_halves_renos_window_and_the_sum() {
    let mut compound = compound();
    compound.on_loss(&loss(LossKind::Gap));
    close(compound.window.cwnd, 50.0);
    close(compound.dwnd, 30.0);
    assert!(!compound.window.in_slow_start());
    compound.on_loss(&loss(LossKind::More));
    close(compound.whole(), 80.0);
}

#[test]
fn a_time_out_leaves_one_packet_and_no_delay_window() {
    let mut compound = compound();
    compound.on_loss(&loss(LossKind::Timeout));
    assert_eq!(compound.control().cwnd, Bytes(MSS));
}

#[test]
fn a_spurious_loss_gives_both_windows_back() {
    for kind in [LossKind::Gap, LossKind::Timeout] {
        let mut compound = compound();
        compound.on_loss(&loss(kind));
        compound.on_loss(&loss(LossKind::Spurious));
        assert_eq!(compound.control().cwnd, Bytes(160 * MSS), "{kind:?}");
    }
}

#[test]
fn gamma_follows_three_quarters_of_what_renos_window_queued_before_a_loss() {
    let mut compound = compound();
    round(&mut compound, 1000, 110); // a packet in eleven of 100
    compound.on_loss(&loss(LossKind::Gap));
    let sample = 0.75 * 100.0 / 11.0;
    close(compound.gamma, 30.0 + (sample - 30.0) / 2.0);
    let once = compound.gamma;
    compound.on_loss(&loss(LossKind::Gap)); // no new measurement
    close(compound.gamma, once);
}

#[test]
fn gamma_stays_between_five_and_thirty_packets() {
    let mut compound = compound();
    for (rtt, limit) in [(100, 5.0), (1000, 30.0)] {
        for _ in 0..20 {
            (compound.window.cwnd, compound.window.ssthresh) = (100.0, 50.0);
            round(&mut compound, 1000, rtt);
            compound.on_loss(&loss(LossKind::Gap));
        }
        close(compound.gamma, limit);
    }
}

#[test]
fn on_a_long_fast_path_it_carries_more_than_new_reno_and_beside_it_leaves_it_its_share() {
    let run = |controllers: &str| {
        simulated(&format!(
            "duration_s = 100\n[sender]\nack_every = 1\n[dumbbell]\nrtt_ms = 100\n[dumbbell.bottleneck]\nrate_mbps = 200\n\
             queue = {{ kind = \"drop_tail\", bdp = 0.3 }}\nloss = {{ kind = \"bernoulli\", ratio = 0.0001 }}\n{controllers}"
        ))
    };
    let alone = |name: &str| run(&format!("[[flow]]\ncontroller = \"{name}\"\n"))[0].0;
    let (compound, reno) = (alone("compound"), alone("new_reno"));
    assert!(compound > 1.3 * reno, "{compound} and {reno} Mb/s");
    let beside = run("[[flow]]\ncontroller = \"compound\"\n[[flow]]\ncontroller = \"new_reno\"\n");
    assert!(beside[1].0 > 0.7 * reno, "{beside:?}, alone {reno} Mb/s");
}
