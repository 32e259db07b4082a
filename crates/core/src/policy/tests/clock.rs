use super::*;
use crate::policy::PolicySpec;

fn at(millis: u64) -> Time {
    Time(0) + Span::from_millis(millis)
}

fn ack(millis: u64, srtt_ms: u64) -> Ack {
    Ack { now: at(millis), srtt: Span::from_millis(srtt_ms), ..Ack::default() }
}

fn clock(decision: &str) -> Clock {
    let text = format!(
        "[observation]\nfeatures = [\"cwnd\"]\n[action]\nmap = \"cwnd_factor\"\n[decision]\n{decision}"
    );
    Clock::new(&PolicySpec::parse(&text).unwrap().decision)
}

/// When intervals end that begin at 100 ms, with acknowledgements every millisecond.
fn length(decision: &str, srtt_ms: u64, min_ms: u64) -> u64 {
    let mut clock = clock(decision);
    assert!(clock.ends(&ack(100, srtt_ms)), "the first acknowledgement ends the first interval");
    clock.restart(&ack(100, srtt_ms), Span::from_millis(min_ms));
    (101..1000).find(|&millis| clock.ends(&ack(millis, srtt_ms))).unwrap() - 100
}

#[test]
fn a_interval_is_round_trips_or_a_time_but_never_below_its_minimum() {
    assert_eq!(length("every = \"srtt\"", 80, 40), 80);
    assert_eq!(length("every = \"srtt\"\ntimes = 2.5", 80, 40), 200);
    assert_eq!(length("every = \"min_rtt\"", 80, 40), 40);
    assert_eq!(length("every = \"srtt\"", 3, 2), 10);
    assert_eq!(length("every = \"time\"\nmin_ms = 25.0", 80, 40), 25);
    assert_eq!(length("every = \"ack\"\nmin_ms = 0.0", 80, 40), 1);
    assert_eq!(length("every = \"ack\"", 80, 40), 10);
}

#[test]
fn no_interval_ends_before_a_round_trip_is_known() {
    assert!(!clock("every = \"ack\"").ends(&ack(100, 0)));
}

#[test]
fn an_expired_interval_ends_with_the_next_acknowledgement() {
    let mut clock = clock("every = \"srtt\"");
    clock.restart(&ack(100, 80), Span::from_millis(40));
    clock.expire();
    assert!(clock.ends(&ack(101, 80)));
}

#[test]
fn the_smallest_of_a_window_is_forgotten_after_ten_seconds() {
    let (mut life, mut window) = (MinRtt::new(false), MinRtt::new(true));
    assert_eq!((life.get(), window.get()), (Span::ZERO, Span::ZERO));
    for (millis, rtt) in [(0, 40), (5000, 60), (9950, 80), (10_000, 80), (15_100, 90), (90_000, 70)]
    {
        let rtt = Span::from_millis(rtt);
        let record = Ack { now: at(millis), rtt, ..Ack::default() };
        life.on_ack(&record);
        window.on_ack(&record);
        let min = match millis {
            0..=9950 => 40,
            10_000 => 60,
            15_100 => 80,
            _ => 70,
        };
        assert_eq!(window.get(), Span::from_millis(min), "at {millis} ms");
        assert_eq!(life.get(), Span::from_millis(40));
    }
}

#[test]
fn a_record_without_a_sample_changes_no_smallest() {
    for mut rtt in [MinRtt::new(false), MinRtt::new(true)] {
        rtt.on_ack(&Ack { rtt: Span::from_millis(5), ..ack(1, 5) });
        rtt.on_ack(&ack(2, 5));
        assert_eq!(rtt.get(), Span::from_millis(5));
    }
}
