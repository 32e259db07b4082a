#![allow(clippy::float_cmp)] // exact: whole numbers, bounds and untouched values
use super::*;
use crate::controllers::test_support::flow_of;
use crate::units::Bytes;
use proptest::prelude::*;
use std::sync::Mutex;

const MSS: u64 = 1250;

/// The observations and reports of an agent, and the action that it returns.
#[derive(Clone)]
struct Notes(Arc<Mutex<Inner>>);

struct Inner {
    action: Result<Action, InvalidAction>,
    asked: Vec<Vec<f32>>,
    /// Decision, whether it is due, and the interval whose account is closed.
    told: Vec<(u64, bool, Option<u64>)>,
}

impl Notes {
    fn new(action: Result<Action, InvalidAction>) -> Self {
        let (asked, told) = (Vec::new(), Vec::new());
        Self(Arc::new(Mutex::new(Inner { action, asked, told })))
    }

    fn asked(&self) -> usize {
        self.0.lock().unwrap().asked.len()
    }

    fn told(&self) -> Vec<(u64, bool, Option<u64>)> {
        self.0.lock().unwrap().told.clone()
    }
}

impl Agent for Notes {
    fn act(&mut self, observation: &[f32]) -> Result<Action, InvalidAction> {
        let mut inner = self.0.lock().unwrap();
        inner.asked.push(observation.to_vec());
        inner.action
    }
    fn wants_reports(&self) -> bool {
        true
    }
    fn observe(&mut self, report: &Report) {
        let credit = report.credit.map(|credit| credit.decision);
        self.0.lock().unwrap().told.push((report.decision, report.due, credit));
    }
}

fn spec(rest: &str) -> Arc<PolicySpec> {
    let text = format!(
        "[observation]\nfeatures = [\"cwnd\", \"rtt_mean\"]\nhistory = 4\n\
         [decision]\nevery = \"srtt\"\n{rest}"
    );
    Arc::new(PolicySpec::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}")))
}

/// A flow that starts with ten packets.
fn controller(spec: &Arc<PolicySpec>, notes: &Notes) -> LearnedController {
    let flow = flow_of(MSS);
    LearnedController::new(&flow, spec, Box::new(notes.clone()), crate::controllers::fallback)
}

fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

/// An acknowledgement of one packet after this round trip; the smallest is 40 ms.
fn ack(millis: u64, rtt_ms: u64) -> Ack {
    let rtt = Span::from_millis(rtt_ms);
    Ack {
        now: at(millis),
        sent_at: Time(at(millis).0.saturating_sub(rtt.0)),
        rtt,
        srtt: rtt,
        min_rtt: Span::from_millis(40.min(rtt_ms)),
        rtt_max: rtt,
        acked: Bytes(MSS),
        inflight: Bytes(9 * MSS),
        delivered: Bytes(MSS * millis),
        cwnd_limited: 1,
        ..Ack::default()
    }
}

fn loss(millis: u64, kind: LossKind) -> Loss {
    Loss { now: at(millis), lost: Bytes(MSS), inflight: Bytes(10 * MSS), kind, ..Loss::default() }
}

/// Handles an acknowledgement, and the timer that it may set.
fn deliver(controller: &mut LearnedController, ack: &Ack) -> bool {
    controller.on_ack(ack);
    let due = controller.next_timer();
    if let Some(at) = due {
        assert_eq!(at, ack.now, "a decision is made at the moment it falls due");
        controller.on_timer(at);
        assert_eq!(controller.next_timer(), None);
    }
    due.is_some()
}

fn packets(controller: &LearnedController) -> f64 {
    controller.control().cwnd.0 as f64 / MSS as f64
}

fn counter(controller: &LearnedController, name: &str) -> f64 {
    controller.counters().iter().find(|(known, _)| *known == name).unwrap().1
}

const KEEP: Result<Action, InvalidAction> = Ok(Action::Choice(2));
const STEPS: &str = "[action]\nmap = \"cwnd_steps\"\n";

#[test]
fn slow_start_doubles_the_window_without_asking() {
    let notes = Notes::new(KEEP);
    let mut controller = controller(&spec(STEPS), &notes);
    (40..50).for_each(|millis| assert!(!deliver(&mut controller, &ack(millis, 40))));
    assert_eq!(packets(&controller), 20.0);
    assert_eq!(notes.asked(), 0);
    assert!(controller.control().ssthresh > controller.control().cwnd);
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    let mut controller = controller(&spec(STEPS), &Notes::new(KEEP));
    deliver(&mut controller, &Ack { cwnd_limited: 0, ..ack(40, 40) });
    deliver(&mut controller, &Ack { recovering: 1, ..ack(41, 40) });
    assert_eq!(packets(&controller), 10.0);
}

#[test]
fn slow_start_ends_above_five_quarters_of_the_smallest_round_trip() {
    let notes = Notes::new(KEEP);
    let mut controller = controller(&spec(STEPS), &notes);
    assert!(!deliver(&mut controller, &ack(40, 40)));
    assert!(!deliver(&mut controller, &ack(41, 50)), "exactly 1.25 is not above");
    assert!(deliver(&mut controller, &ack(42, 51)), "the agent decides at once");
    assert_eq!((notes.asked(), packets(&controller)), (1, 12.0));
    assert!(controller.control().ssthresh <= controller.control().cwnd);
}

#[test]
fn the_first_loss_ends_slow_start_and_the_guard_halves_the_window() {
    for (guard, window) in [(true, 6.0), (false, 12.0)] {
        let notes = Notes::new(KEEP);
        let start = format!("{STEPS}[start]\nloss_guard = {guard}\n");
        let mut controller = controller(&spec(&start), &notes);
        (40..42).for_each(|millis| _ = deliver(&mut controller, &ack(millis, 40)));
        controller.on_loss(&loss(42, LossKind::Gap));
        assert_eq!((notes.asked(), packets(&controller)), (0, window));
        assert!(deliver(&mut controller, &ack(43, 40)));
    }
}

#[test]
fn the_guard_halves_once_per_window_and_the_agent_goes_on() {
    let notes = Notes::new(KEEP);
    let mut controller =
        controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
    assert!(
        deliver(&mut controller, &ack(40, 40)),
        "without slow start the agent decides from the first"
    );
    controller.on_loss(&loss(41, LossKind::Gap));
    controller.on_loss(&loss(41, LossKind::More));
    controller.on_loss(&loss(42, LossKind::More));
    assert_eq!(packets(&controller), 5.0);
    assert!(deliver(&mut controller, &ack(80, 40)));
    assert_eq!(notes.asked(), 2);
}

#[test]
fn a_time_out_leaves_two_packets_and_slow_start_to_half_before_the_agent_goes_on() {
    let notes = Notes::new(KEEP);
    let mut controller =
        controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
    deliver(&mut controller, &ack(40, 40));
    controller.on_loss(&loss(300, LossKind::Timeout));
    assert_eq!(packets(&controller), 2.0);
    assert_eq!(controller.control().ssthresh, Bytes(5 * MSS));
    assert!(
        !deliver(&mut controller, &ack(400, 90)),
        "a long round trip does not end this slow start"
    );
    assert!(!deliver(&mut controller, &ack(401, 90)));
    assert!(deliver(&mut controller, &ack(402, 90)));
    assert_eq!((notes.asked(), packets(&controller)), (2, 5.0));
}

#[test]
fn a_time_out_that_is_not_guarded_is_left_to_the_agent() {
    let notes = Notes::new(KEEP);
    let start = "[start]\nslow_start = false\nloss_guard = false\n";
    let mut controller = controller(&spec(&format!("{STEPS}{start}")), &notes);
    deliver(&mut controller, &ack(40, 40));
    controller.on_loss(&loss(300, LossKind::Timeout));
    assert_eq!(packets(&controller), 10.0);
    assert!(deliver(&mut controller, &ack(400, 40)));
}

#[test]
fn a_decision_is_made_once_per_interval_however_many_records_come() {
    let notes = Notes::new(Ok(Action::Choice(3)));
    let mut controller =
        controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
    for millis in 40..240 {
        deliver(&mut controller, &ack(millis, 40));
    }
    assert_eq!(notes.asked(), 5);
    assert_eq!(packets(&controller), 15.0);
    assert_eq!(counter(&controller, "decisions"), 5.0);
}

#[test]
fn an_observation_is_that_of_the_moment_when_the_decision_fell_due() {
    let notes = Notes::new(KEEP);
    let mut controller =
        controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
    controller.on_ack(&ack(40, 40));
    controller.on_ack(&ack(40, 400)); // another record of the same moment
    assert_eq!(controller.next_timer(), Some(at(40)));
    controller.on_timer(at(40));
    let inner = notes.0.lock().unwrap();
    assert_eq!(inner.asked[0][..6], [0.0; 6]);
    assert!((inner.asked[0][7] - 0.4).abs() < 1e-6);
}

#[test]
fn an_invalid_action_hands_the_flow_to_cubic_for_good_from_its_present_window() {
    let cases = [
        (Err(InvalidAction::NotFinite), "not_finite"),
        (Err(InvalidAction::OutOfRange), "out_of_range"),
        (Ok(Action::Choice(5)), "out_of_range"),
        (Ok(Action::Values([0.0, 0.0])), "out_of_range"),
    ];
    for (action, name) in cases {
        let notes = Notes::new(action);
        let mut controller =
            controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
        deliver(&mut controller, &ack(40, 40));
        assert_eq!(packets(&controller), 10.0);
        for millis in 41..2000 {
            assert!(!deliver(&mut controller, &ack(millis, 40)));
        }
        assert_eq!(notes.asked(), 1, "for good");
        assert!(packets(&controller) > 10.0, "it grows as CUBIC does");
        controller.on_loss(&loss(2000, LossKind::Gap));
        assert_eq!(controller.control().cwnd, Bytes(7 * MSS), "0.7 of what was in flight");
        assert_eq!(counter(&controller, name), 1.0);
        assert_eq!(counter(&controller, "fallbacks"), 1.0);
        assert_eq!(counter(&controller, "decisions"), 0.0);
    }
}

#[test]
fn an_observation_that_is_not_finite_is_not_put_to_the_agent() {
    let notes = Notes::new(KEEP);
    let mut controller =
        controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
    controller.history.push([f32::NAN, 0.0].into_iter());
    deliver(&mut controller, &ack(40, 40));
    assert_eq!((notes.asked(), counter(&controller, "not_finite")), (0, 1.0));
}

#[test]
fn every_decision_gets_its_account_in_order() {
    let notes = Notes::new(KEEP);
    let mut controller =
        controller(&spec(&format!("{STEPS}[start]\nslow_start = false\n")), &notes);
    (40..1000).for_each(|millis| _ = deliver(&mut controller, &ack(millis, 40)));
    controller.on_end(at(1000));
    let told = notes.told();
    let (last, due) = told.split_last().unwrap();
    assert!(!last.1, "the end is no decision");
    assert!(due.iter().enumerate().all(|(index, told)| (told.0, told.1) == (index as u64, true)));
    let credits: Vec<u64> = told.iter().filter_map(|told| told.2).collect();
    assert!(credits.len() >= told.len() - 3, "{told:?}");
    assert!(credits.iter().enumerate().all(|(index, &decision)| decision == index as u64));
}

#[test]
fn a_rate_is_a_window_per_round_trip_when_the_agent_takes_over() {
    let action = "[action]\nmap = \"rate_change\"\n[start]\nslow_start = false\n";
    let notes = Notes::new(Ok(Action::Values([0.0, 0.0])));
    let mut controller = controller(&spec(action), &notes);
    assert_eq!(controller.control().pacing_rate, Rate::UNLIMITED);
    deliver(&mut controller, &ack(40, 40));
    assert_eq!(controller.control().pacing_rate, Rate::of(Bytes(10 * MSS), Span::from_millis(40)));
}

#[test]
fn an_observation_has_the_signals_that_the_law_sees_and_the_latest_action() {
    let text = "[observation]\nfeatures = [\"queue\", \"rtt_spread\", \"since_loss\", \"action_0\"]\n\
                history = 1\n[decision]\nevery = \"srtt\"\n[start]\nslow_start = false\n";
    let spec = Arc::new(PolicySpec::parse(&format!("{text}{STEPS}")).unwrap());
    let notes = Notes::new(Ok(Action::Choice(3)));
    let mut controller = controller(&spec, &notes);
    let mut signals = Signals::new(Bytes(MSS), Time(0));
    let mut expected = Vec::new();
    for millis in 40..1000 {
        let ack = ack(millis, 40 + millis % 7 + millis / 100);
        signals.on_ack(&ack);
        if millis % 300 == 0 {
            let lost = loss(millis, LossKind::More);
            signals.on_loss(&lost);
            controller.on_loss(&lost);
        }
        if deliver(&mut controller, &ack) {
            let signals = signals.end(ack.now);
            let action = if expected.is_empty() { 0.0 } else { 0.5 }; // the fourth of five choices
            let moment = Moment { signals, action: [action, 0.0], ..Moment::default() };
            let row: Vec<_> = spec.features().unwrap().iter().map(|f| f.value(&moment)).collect();
            expected.push(row);
        }
    }
    let asked = notes.0.lock().unwrap().asked.clone();
    assert_eq!(asked, expected);
    assert!(asked.iter().any(|row| row[0] > 0.1 && row[1] > 0.01 && row[2] < 0.2), "{asked:?}");
}

#[test]
fn signals_are_measured_only_where_a_feature_uses_them() {
    let measures = |feature: &str| {
        let text = format!(
            "[observation]\nfeatures = [\"cwnd\", {feature:?}]\n[decision]\nevery = \"srtt\"\n{STEPS}"
        );
        let spec = Arc::new(PolicySpec::parse(&text).unwrap());
        controller(&spec, &Notes::new(KEEP)).signals.is_some()
    };
    assert!(measures("drain"));
    assert!(!measures("rtt_mean") && !measures("action_0"));
}

/// Feeds 10 s of a path of 80 to 90 ms with a packet per millisecond, `batch` to a record, and a
/// loss every 20 ms; the last vectors.
fn vectors(batch: u64) -> Vec<f32> {
    let names: Vec<_> = FEATURES.iter().map(|feature| feature.name).collect();
    let text = format!(
        "[observation]\nfeatures = {names:?}\nhistory = 8\n[decision]\nevery = \"time\"\n\
         min_ms = 100.0\n{STEPS}[start]\nslow_start = false\n"
    );
    let spec = Arc::new(PolicySpec::parse(&text).unwrap());
    let notes = Notes::new(KEEP);
    let mut controller = controller(&spec, &notes);
    let rtt_ms = |millis: u64| 80 + (millis / 100) % 10;
    for millis in (80..10_080).step_by(batch as usize) {
        let now = millis + batch - 1;
        let all = (millis..=now).map(rtt_ms).max().unwrap_or_default();
        let least = (millis..=now).map(rtt_ms).min().unwrap_or_default();
        let record = Ack {
            acked: Bytes(batch * MSS),
            rtt_max: Span::from_millis(all),
            batch_rtt_min: Span::from_millis(least),
            min_rtt: Span::from_millis(80),
            srtt: Span::from_millis(85),
            delivery_rate: Rate::of(Bytes(MSS), Span::from_millis(1)),
            ..ack(now, rtt_ms(now))
        };
        deliver(&mut controller, &record);
        for _ in (millis..=now).filter(|millis| millis % 20 == 0) {
            controller.on_loss(&Loss { sent_at: record.sent_at, ..loss(now, LossKind::More) });
        }
    }
    notes.0.lock().unwrap().asked.last().unwrap().clone()
}

#[test]
fn a_record_of_many_acknowledgements_gives_nearly_the_same_features() {
    let single = vectors(1);
    for batch in [2, 5, 10] {
        for (index, (one, many)) in single.iter().zip(vectors(batch)).enumerate() {
            let feature = &FEATURES[index % FEATURES.len()];
            let (low, high) = feature.range();
            let tolerance = match feature.name {
                // One loss of five to an interval falls on the other side of its end.
                "loss_ratio" => 0.011,
                // A sample is as old as its record: up to 9 ms, at a smoothed round trip of 85 ms.
                "base_age" => 9.0 / 85.0 / 8.0,
                _ => (0.05 * one.abs()).max(0.002 * (high - low)),
            };
            assert!(
                (one - many).abs() <= tolerance,
                "{} in batches of {batch}: {many} instead of {one}",
                feature.name
            );
        }
    }
}

proptest! {
    #[test]
    fn whatever_happens_and_is_answered_the_window_stays_finite_and_bounded(
        map in prop::sample::select(vec!["cwnd_steps", "cwnd_factor", "rate_change", "rate_and_cwnd"]),
        clock in prop::sample::select(vec!["srtt", "min_rtt", "time", "ack"]),
        slow_start in any::<bool>(),
        events in prop::collection::vec((0_u8..10, 1_u64..400, -12.0_f32..12.0, 0_usize..6), 1..300),
    ) {
        let rest = format!("[action]\nmap = \"{map}\"\nscale = 2.0\n[start]\nslow_start = {slow_start}\n");
        let spec = spec(&rest).as_ref().clone();
        let every = PolicySpec::parse(&format!(
            "[observation]\nfeatures = [\"cwnd\"]\n[decision]\nevery = \"{clock}\"\n{rest}"
        )).unwrap().decision;
        let spec = Arc::new(PolicySpec { decision: every, ..spec });
        let notes = Notes::new(KEEP);
        let mut controller = controller(&spec, &notes);
        let mut millis = 1;
        for (kind, rtt_ms, value, choice) in events {
            millis += rtt_ms / 4;
            notes.0.lock().unwrap().action = match map {
                "cwnd_steps" => Ok(Action::Choice(choice)),
                _ => Ok(Action::Values([value, -value])),
            };
            match kind {
                0 => controller.on_loss(&loss(millis, LossKind::Gap)),
                1 => controller.on_loss(&loss(millis, LossKind::Timeout)),
                2 => controller.on_loss(&loss(millis, LossKind::Deflate)),
                3 => controller.on_loss(&loss(millis, LossKind::Idle)),
                _ => _ = deliver(&mut controller, &ack(millis, rtt_ms)),
            }
            let cwnd = controller.control().cwnd.0;
            let fell_back = counter(&controller, "fallbacks") > 0.0;
            let min = if fell_back { MSS } else { 2 * MSS };
            prop_assert!(cwnd >= min && (fell_back || cwnd <= 2000 * MSS), "{cwnd}");
            prop_assert!(controller.control().pacing_rate > Rate(0));
        }
        let finite = notes.0.lock().unwrap().asked.iter().flatten().all(|value| value.is_finite());
        prop_assert!(finite);
    }
}
