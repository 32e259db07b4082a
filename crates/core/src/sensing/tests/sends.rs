use super::*;
use crate::units::Span;

const MSS: u64 = 1000;

fn at(millis: f64) -> Time {
    Time::from_secs_f64(millis / 1e3)
}

fn ack(millis: f64, rtt_ms: f64) -> Ack {
    let rtt = Span::from_secs_f64(rtt_ms / 1e3);
    Ack { now: at(millis), rtt, acked: Bytes(MSS), ..Ack::default() }
}

fn send(millis: f64) -> Send {
    Send { now: at(millis), size: Bytes(MSS), order: 1, ..Send::default() }
}

fn retransmission(millis: f64) -> Send {
    Send { retransmission: 1, ..send(millis) }
}

fn control(cwnd: u64, ssthresh: u64) -> Control {
    Control { ssthresh: Bytes(ssthresh), ..Control::window(Bytes(cwnd)) }
}

fn state() -> SendState {
    SendState::new(Bytes(MSS))
}

/// The numbers of the table from `first` on.
fn read<const N: usize>(state: &mut SendState, first: usize) -> [f32; N] {
    let features = state.features(&control(0, 0), &send(0.0));
    std::array::from_fn(|index| features[first + index])
}

fn close<const N: usize>(values: [f32; N], expected: [f32; N]) {
    let near = |(value, expected): (&f32, &f32)| (value - expected).abs() <= 1e-6 * expected.abs();
    assert!(values.iter().zip(&expected).all(near), "{values:?} instead of {expected:?}");
}

#[test]
fn everything_is_0_before_the_first_packet_but_window_and_order() {
    let mut state = state();
    let features = state.features(&control(2500, 0), &Send { order: 2, ..send(0.0) });
    close([features[0], features[1]], [2.5, 2.0]);
    assert!(features[2..].iter().all(|&value| value == 0.0));
}

#[test]
fn number_0_is_the_window_in_packets_with_its_fraction() {
    close([state().features(&control(10_750, 0), &send(0.0))[0]], [10.75]);
}

#[test]
fn number_1_is_the_place_in_the_window() {
    let third = Send { order: 3, ..send(0.0) };
    close([state().features(&control(0, 0), &third)[1]], [3.0]);
}

#[test]
fn number_2_is_the_average_gap_between_acks_with_gain_an_eighth() {
    let mut state = state();
    for millis in [0.0, 8.0, 24.0] {
        state.on_ack(&ack(millis, 0.0));
    }
    close(read(&mut state, 2), [0.009]);
}

#[test]
fn numbers_3_to_10_are_the_last_8_gaps_between_acks_old_to_new() {
    let mut state = state();
    (0..=9).for_each(|n: u32| state.on_ack(&ack(f64::from(n * n), 0.0)));
    close(read(&mut state, 3), [0.003, 0.005, 0.007, 0.009, 0.011, 0.013, 0.015, 0.017]);
}

#[test]
fn number_11_is_the_smallest_gap_between_acks_of_the_connection() {
    let mut state = state();
    state.on_ack(&ack(0.0, 0.0));
    state.on_ack(&ack(2.0, 0.0));
    (1..=20).for_each(|n: u32| state.on_ack(&ack(f64::from(10 * n), 0.0)));
    close(read(&mut state, 11), [0.002]);
}

#[test]
fn number_12_is_the_average_gap_between_packets() {
    let mut state = state();
    for millis in [0.0, 8.0, 24.0] {
        state.on_sent(&send(millis));
    }
    close(read(&mut state, 12), [0.009]);
}

#[test]
fn numbers_13_to_20_are_the_last_8_gaps_between_packets_retransmissions_included() {
    let mut state = state();
    (0..=8).for_each(|n: u32| state.on_sent(&send(f64::from(n * n))));
    state.on_sent(&retransmission(81.0));
    close(read(&mut state, 13), [0.003, 0.005, 0.007, 0.009, 0.011, 0.013, 0.015, 0.017]);
}

#[test]
fn number_21_is_the_smallest_gap_between_packets() {
    let mut state = state();
    for millis in [0.0, 5.0, 6.0, 9.0] {
        state.on_sent(&send(millis));
    }
    close(read(&mut state, 21), [0.001]);
}

#[test]
fn numbers_22_to_30_are_the_last_8_round_trips_and_the_smallest() {
    let mut state = state();
    (0..9).for_each(|n: u32| state.on_ack(&ack(f64::from(n), f64::from(100 + n))));
    close(read(&mut state, 22), [0.101, 0.102, 0.103, 0.104, 0.105, 0.106, 0.107, 0.108, 0.100]);
}

#[test]
fn numbers_31_to_38_are_gaps_between_acks_over_the_smallest() {
    let mut state = state();
    for millis in [0.0, 4.0, 6.0, 12.0] {
        state.on_ack(&ack(millis, 0.0));
    }
    close(read(&mut state, 31), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 3.0]);
}

#[test]
fn numbers_39_to_46_are_gaps_between_packets_over_the_smallest_or_a_microsecond() {
    let mut state = state();
    for millis in [0.0, 0.0, 3.0] {
        state.on_sent(&send(millis));
    }
    close(read(&mut state, 39), [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 3000.0]);
}

#[test]
fn numbers_47_to_54_are_round_trips_over_the_smallest_so_far() {
    let mut state = state();
    for rtt_ms in [200.0, 100.0, 150.0] {
        state.on_ack(&ack(0.0, rtt_ms));
    }
    close(read(&mut state, 47), [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.5]);
}

#[test]
fn a_series_begins_filled_with_its_first_sample() {
    let mut state = state();
    state.on_ack(&ack(0.0, 150.0));
    close(read(&mut state, 22), [0.15; 9]);
    close(read(&mut state, 3), [0.0; 9]);
}

#[test]
fn the_round_trip_of_a_retransmission_is_no_sample() {
    let mut state = state();
    state.on_sent(&send(0.0));
    state.on_sent(&retransmission(10.0));
    state.on_sent(&send(20.0));
    state.on_ack(&ack(110.0, 100.0));
    close(read(&mut state, 22), [0.0; 9]);
    state.on_ack(&ack(120.0, 100.0));
    close(read(&mut state, 22), [0.1; 9]);
}

#[test]
fn a_record_of_several_packets_counts_as_that_many_equal_gaps() {
    let (mut singly, mut batch) = (state(), state());
    for state in [&mut singly, &mut batch] {
        state.on_ack(&ack(0.0, 100.0));
        state.on_ack(&ack(1.0, 100.0));
    }
    for millis in [3.0, 5.0, 7.0] {
        singly.on_ack(&ack(millis, 100.0));
    }
    batch.on_ack(&Ack { acked: Bytes(3 * MSS), ..ack(7.0, 100.0) });
    close::<FEATURES>(read(&mut batch, 0), read(&mut singly, 0));
}

#[test]
fn in_recovery_an_ack_is_one_however_much_it_covers() {
    let mut state = state();
    state.on_ack(&ack(0.0, 0.0));
    state.on_ack(&Ack { acked: Bytes(9 * MSS), recovering: 1, ..ack(9.0, 0.0) });
    close(read(&mut state, 11), [0.009]);
}

#[test]
fn congestion_avoidance_is_neither_slow_start_nor_recovery() {
    let mut state = state();
    assert!(state.in_avoidance(&control(10_000, 10_000)));
    assert!(!state.in_avoidance(&control(9_999, 10_000)));
    state.on_loss(&Loss::default());
    assert!(!state.in_avoidance(&control(10_000, 10_000)));
    state.on_ack(&Ack { recovering: 1, ..ack(0.0, 0.0) });
    assert!(!state.in_avoidance(&control(10_000, 10_000)));
    state.on_ack(&ack(1.0, 0.0));
    assert!(state.in_avoidance(&control(10_000, 10_000)));
}
