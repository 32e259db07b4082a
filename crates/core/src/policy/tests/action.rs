use super::*;
use crate::control::Recovery;
use crate::policy::PolicySpec;
use crate::units::{Span, Time};
use proptest::prelude::*;

/// A map and a flow of 20 packets, at 100 ms.
fn at_twenty(action: &str) -> (ActionMap, Hold) {
    let text = format!(
        "[observation]\nfeatures = [\"cwnd\"]\n[decision]\nevery = \"srtt\"\n[action]\n{action}"
    );
    let spec = PolicySpec::parse(&text).unwrap();
    let map = ActionMap::new(&spec.action).unwrap();
    let flow = FlowInfo {
        mss: Bytes(1250),
        initial_cwnd: Bytes(25_000),
        initial_ssthresh: Bytes(u64::MAX),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    };
    let mut hold = Hold::new(&flow, &spec.bounds, &map);
    hold.srtt_s = 0.1;
    hold.delivered_bps = 1e9;
    if map.paces() {
        hold.pace();
    }
    (map, hold)
}

fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-9 * expected.abs().max(1.0), "{value}, not {expected}");
}

fn values(first: f32) -> Action {
    Action::Values([first, 0.0])
}

#[test]
fn choices_are_steps_of_the_window() {
    let steps = "map = \"cwnd_steps\"\nsteps = [\"*0.5\", \"-1\", \"+0\", \"+1\", \"*2\"]";
    for (choice, expected) in [(0, 10.0), (1, 19.0), (2, 20.0), (3, 21.0), (4, 40.0)] {
        let (map, mut hold) = at_twenty(steps);
        map.apply(Action::Choice(choice), &mut hold).unwrap();
        close(hold.cwnd(), expected);
    }
}

#[test]
fn a_value_scales_the_window_by_a_power_of_two() {
    let (map, mut hold) = at_twenty("map = \"cwnd_factor\"\nscale = 0.5");
    map.apply(values(1.0), &mut hold).unwrap();
    close(hold.cwnd(), 20.0 * 2.0_f64.sqrt());
    map.apply(values(-1.0), &mut hold).unwrap();
    close(hold.cwnd(), 20.0);
}

#[test]
fn a_rate_moves_by_auroras_rule_and_the_window_leaves_it_room() {
    let (map, mut hold) = at_twenty("map = \"rate_change\"\nscale = 0.025");
    let rate = |hold: &Hold| hold.control(false).pacing_rate.as_mbps();
    close(rate(&hold), 2.0);
    map.apply(values(1.0), &mut hold).unwrap();
    assert!((rate(&hold) - 2.05).abs() < 1e-6);
    map.apply(values(-1.0), &mut hold).unwrap();
    assert!((rate(&hold) - 2.0).abs() < 1e-6, "the way back is the same");
    // 20 packets in a round trip: twice that, and ten.
    close(hold.cwnd(), 50.0);
    close(hold.pipe(), 20.0);
}

#[test]
fn rate_and_window_move_apart() {
    let (map, mut hold) = at_twenty("map = \"rate_and_cwnd\"\nscale = 1.0");
    map.apply(Action::Values([1.0, -1.0]), &mut hold).unwrap();
    close(hold.control(false).pacing_rate.as_mbps(), 4.0);
    close(hold.cwnd(), 10.0);
}

#[test]
fn a_window_that_was_not_full_since_the_decision_before_shrinks_but_does_not_grow() {
    for (action, up, down) in [
        ("map = \"cwnd_steps\"\nsteps = [\"-1\", \"+1\"]", Action::Choice(1), Action::Choice(0)),
        ("map = \"cwnd_factor\"\nscale = 0.5", values(1.0), values(-1.0)),
    ] {
        let (map, mut hold) = at_twenty(action);
        let ack = |cwnd_limited| Ack { cwnd_limited, ..Ack::default() };
        hold.decided();
        hold.on_ack(&ack(0));
        map.apply(up, &mut hold).unwrap();
        close(hold.cwnd(), 20.0);
        map.apply(down, &mut hold).unwrap();
        assert!(hold.cwnd() < 20.0, "{action}");
        let before = hold.cwnd();
        hold.on_ack(&ack(1));
        hold.on_ack(&ack(0));
        map.apply(up, &mut hold).unwrap();
        assert!(hold.cwnd() > before, "{action}");
    }
}

#[test]
fn no_action_takes_the_rate_beyond_twice_what_was_delivered_and_a_burst() {
    for map in ["rate_change", "rate_and_cwnd"] {
        let (map, mut hold) = at_twenty(&format!("map = \"{map}\"\nscale = 1.0"));
        hold.delivered_bps = 0.0;
        // 50 packets in 0.2 s are 2.5 Mb/s; a burst is the first window, 20 packets in a round trip, 2 Mb/s.
        let srtt = Span::from_millis(100);
        let ack = |now_ms, packets: u64| Ack {
            now: Time(0) + Span::from_millis(now_ms),
            srtt,
            acked: Bytes(1250 * packets),
            ..Ack::default()
        };
        hold.on_ack(&ack(90, 20));
        hold.on_ack(&ack(200, 30));
        for _ in 0..20 {
            map.apply(values(1.0), &mut hold).unwrap();
        }
        assert!((hold.control(false).pacing_rate.as_mbps() - 7.0).abs() < 1e-3);
    }
}

#[test]
fn values_are_cut_to_one_and_refused_beyond_the_limit() {
    let (map, mut hold) = at_twenty("map = \"cwnd_factor\"\nscale = 1.0\nlimit = 3.0");
    map.apply(values(2.9), &mut hold).unwrap();
    close(hold.cwnd(), 40.0);
    for (value, invalid) in [
        (3.1, InvalidAction::OutOfRange),
        (-3.1, InvalidAction::OutOfRange),
        (f32::NAN, InvalidAction::NotFinite),
        (f32::INFINITY, InvalidAction::NotFinite),
    ] {
        assert_eq!(map.apply(values(value), &mut hold), Err(invalid), "{value}");
    }
    assert_eq!(map.apply(Action::Choice(0), &mut hold), Err(InvalidAction::OutOfRange));
    close(hold.cwnd(), 40.0);
}

#[test]
fn a_choice_that_does_not_exist_and_a_value_for_a_choice_are_refused() {
    let (map, mut hold) = at_twenty("map = \"cwnd_steps\"");
    assert_eq!(map.apply(Action::Choice(5), &mut hold), Err(InvalidAction::OutOfRange));
    assert_eq!(map.apply(values(0.0), &mut hold), Err(InvalidAction::OutOfRange));
}

#[test]
fn a_refused_second_value_changes_nothing() {
    let (map, mut hold) = at_twenty("map = \"rate_and_cwnd\"\nscale = 1.0");
    let before = hold.control(false);
    assert!(map.apply(Action::Values([1.0, f32::NAN]), &mut hold).is_err());
    assert_eq!(hold.control(false), before);
}

#[test]
fn a_loss_halves_window_and_rate_once_and_a_time_out_leaves_two_packets() {
    let (_, mut hold) = at_twenty("map = \"rate_and_cwnd\"");
    let loss = |kind| Loss { kind, lost: Bytes(1250), ..Loss::default() };
    hold.guard(&loss(LossKind::Gap));
    close(hold.cwnd(), 10.0);
    close(hold.control(false).pacing_rate.as_mbps(), 1.0);
    hold.guard(&loss(LossKind::More));
    close(hold.cwnd(), 10.0);
    hold.after_timeout(LossKind::Timeout);
    close(hold.cwnd(), 2.0);
    let control = hold.control(true);
    assert_eq!(control.pacing_rate, Rate::UNLIMITED);
    assert_eq!(control.ssthresh, Bytes(5 * 1250));
}

#[test]
fn a_rate_alone_is_halved_too_and_remembered_by_a_time_out() {
    let (_, mut hold) = at_twenty("map = \"rate_change\"");
    hold.guard(&Loss { kind: LossKind::Gap, ..Loss::default() });
    close(hold.control(false).pacing_rate.as_mbps(), 1.0);
    hold.after_timeout(LossKind::Timeout);
    assert_eq!(hold.control(true).ssthresh, Bytes(5 * 1250));
}

fn any_action() -> impl Strategy<Value = Action> {
    prop_oneof![
        (0_usize..7).prop_map(Action::Choice),
        (any::<f32>(), any::<f32>()).prop_map(|(a, b)| Action::Values([a, b])),
        (-2.0_f32..2.0, -2.0_f32..2.0).prop_map(|(a, b)| Action::Values([a, b])),
    ]
}

proptest! {
    #[test]
    fn whatever_is_answered_stays_finite_and_within_bounds(
        map in prop::sample::select(vec!["cwnd_steps", "cwnd_factor", "rate_change", "rate_and_cwnd"]),
        scale in 0.001_f64..10.0,
        actions in prop::collection::vec((any_action(), 0.0_f64..20.0, 0_u8..8), 1..200),
    ) {
        let (map, mut hold) = at_twenty(&format!("map = \"{map}\"\nscale = {scale}"));
        for (action, srtt_s, event) in actions {
            hold.srtt_s = srtt_s;
            match event {
                0 => hold.guard(&Loss { kind: LossKind::Gap, ..Loss::default() }),
                1 => hold.guard(&Loss { kind: LossKind::Idle, ..Loss::default() }),
                2 => { hold.after_timeout(LossKind::Timeout); hold.pace(); }
                _ => { let _ = map.apply(action, &mut hold); }
            }
            let control = hold.control(false);
            prop_assert!(hold.cwnd().is_finite());
            prop_assert!((2500..=2_500_000).contains(&control.cwnd.0), "{control:?}");
            prop_assert!(control.pacing_rate > Rate(0));
        }
    }
}
