//! Claims about times and rates, judged on a machine that may be late.
use crate::common::machine::judge;
use ackademy::units::Span;

const SOON: Span = Span::from_micros(100);
const LATE: Span = Span::from_millis(5);

/// What is judged of attempts that end so, the last of which repeats; and how many were made.
fn judged(attempts: &[(bool, Span)]) -> (Result<Option<String>, String>, usize) {
    let mut made = 0;
    let verdict = judge(|| {
        let (keeps, delay) = attempts[made.min(attempts.len() - 1)];
        made += 1;
        (if keeps { Ok(()) } else { Err("7 Mb/s".into()) }, delay)
    });
    (verdict, made)
}

#[test]
fn one_attempt_that_keeps_the_claim_is_enough_however_late() {
    assert_eq!(judged(&[(false, SOON), (false, LATE), (true, LATE)]), (Ok(None), 3));
}

#[test]
fn four_attempts_on_time_refute_a_claim_among_any_number_of_late_ones() {
    let refuted = Err("none of 4 attempts: 7 Mb/s; 7 Mb/s; 7 Mb/s; 7 Mb/s".into());
    assert_eq!(judged(&[(false, SOON)]), (refuted.clone(), 4));
    let mut attempts = [(false, LATE); 12];
    attempts[8..].fill((false, SOON));
    assert_eq!(judged(&attempts), (refuted, 12));
}

#[test]
fn a_machine_that_is_always_late_leaves_a_claim_unjudged_and_says_so() {
    let (verdict, made) = judged(&[(false, SOON), (false, LATE)]);
    let said = verdict.expect("no refutation").expect("no proof");
    assert_eq!((said.as_str(), made), ("the machine was late in 11 of 12 attempts. 7 Mb/s", 12));
}
