//! Random flows and random records through the C functions: no panic, no window of zero, in every controller.
use ackademy::control::{Ack, Send};
use ackademy::params::Param;
use ackademy::rng::{Rng, Seed};
use ackademy::transport::delivery_rate::{DeliveryRate, SentState};
use ackademy::transport::prr::Prr;
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy::{controllers, coupled};
use ackademy_ffi::{
    Answer, BAD_ARGUMENT, Flow, Governor, HOLD, LossRecord, OK, ackademy_again, ackademy_control,
    ackademy_fell_back, ackademy_free, ackademy_join, ackademy_leave, ackademy_new,
    ackademy_on_ack, ackademy_on_loss, ackademy_on_send, ackademy_on_timer, ackademy_prr_acked,
    ackademy_prr_enter, ackademy_prr_sent, ackademy_rate_app_limited, ackademy_rate_delivered,
    ackademy_rate_sample, ackademy_rate_sent,
};
use std::ffi::CString;
use std::ptr::{null, null_mut};

const FLOWS: u64 = 12;
const CALLS: u64 = 200;

/// `ACKADEMY_SEED`, so that a failure can be repeated, else 0.
fn first_seed() -> u64 {
    let seed = std::env::var("ACKADEMY_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0);
    println!("from ACKADEMY_SEED={seed} on");
    seed
}

/// Numbers of every length in bits, and the largest.
fn number(rng: &mut Rng) -> u64 {
    if rng.chance(0.02) { u64::MAX } else { rng.next_u64() >> rng.below(64) }
}

/// The fields of a record: eight-byte numbers all.
fn numbers<const N: usize>(rng: &mut Rng) -> [u64; N] {
    std::array::from_fn(|_| number(rng))
}

fn flow(rng: &mut Rng) -> Flow {
    let [any_mss, cwnd, ssthresh, start, seed] = numbers(rng);
    let mss = if rng.chance(0.9) { 64 + rng.below(65_472) } else { any_mss };
    let initial_cwnd = if rng.chance(0.9) { mss.saturating_add(cwnd >> 35) } else { cwnd };
    let initial_ssthresh = if rng.chance(0.9) { mss.saturating_add(ssthresh) } else { ssthresh };
    Flow { mss, initial_cwnd, initial_ssthresh, paces: rng.below(3), start: start >> 2, seed }
}

fn ack(rng: &mut Rng) -> Ack {
    let [now, sent_at, rtt, srtt, min_rtt, rtt_max, batch_rtt_min] = numbers(rng);
    let [acked, ce_marked, inflight, prior_inflight, delivered, delivery_rate] = numbers(rng);
    let [tx_inflight, delivered_since, lost_since] = numbers(rng);
    Ack {
        now: Time(now),
        sent_at: Time(sent_at),
        rtt: Span(rtt),
        srtt: Span(srtt),
        min_rtt: Span(min_rtt),
        rtt_max: Span(rtt_max),
        batch_rtt_min: Span(batch_rtt_min),
        acked: Bytes(acked),
        ce_marked: Bytes(ce_marked),
        inflight: Bytes(inflight),
        prior_inflight: Bytes(prior_inflight),
        delivered: Bytes(delivered),
        delivery_rate: Rate(delivery_rate),
        tx_inflight: Bytes(tx_inflight),
        delivered_since: Bytes(delivered_since),
        lost_since: Bytes(lost_since),
        app_limited: rng.below(3),
        recovering: rng.below(3),
        cwnd_limited: rng.below(3),
    }
}

fn loss(rng: &mut Rng) -> LossRecord {
    let [now, sent_at, lost, inflight, tx_inflight, lost_since, kind] = numbers(rng);
    let kind = if rng.chance(0.9) { kind % 7 } else { kind };
    let app_limited = rng.below(3);
    LossRecord { now, sent_at, lost, inflight, tx_inflight, lost_since, app_limited, kind }
}

fn send(rng: &mut Rng) -> Send {
    let [now, size, inflight, order] = numbers(rng);
    let retransmission = rng.below(3);
    let (now, size, inflight) = (Time(now), Bytes(size), Bytes(inflight));
    Send { now, size, inflight, retransmission, order }
}

/// Every controller, with settings that name its files.
fn all() -> Vec<(&'static str, CString, CString)> {
    let plain = controllers::ALL.iter().map(|spec| (spec.name, spec.params));
    let coupled = coupled::ALL.iter().map(|spec| (spec.name, spec.params));
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/../core/tests/files");
    let files = |name: &str, params: &[Param]| -> String {
        let of = params.iter().filter(|param| param.kind.is_file());
        of.map(|param| format!("{0}={tests}/{name}/{0}", param.name)).collect::<Vec<_>>().join(",")
    };
    let text = |text: &str| CString::new(text).expect("no NUL");
    plain
        .chain(coupled)
        .map(|(name, params)| (name, text(name), text(&files(name, params))))
        .collect()
}

/// One random call; its code and answer.
fn call(own: *mut Governor, rng: &mut Rng, answer: &mut Answer) -> i32 {
    let subflow = if rng.chance(0.9) { rng.below(3) as u32 } else { number(rng) as u32 };
    // SAFETY: `own` is of `ackademy_new`, the records live.
    unsafe {
        match rng.below(20) {
            0 => ackademy_join(own, subflow % 64, number(rng) as u32, &flow(rng)),
            1 => ackademy_leave(own, subflow),
            2..5 => ackademy_on_loss(own, subflow, &loss(rng), answer),
            5..7 => ackademy_on_timer(own, subflow, number(rng), answer),
            7..9 => ackademy_on_send(own, subflow, &send(rng), answer),
            9 => ackademy_control(own, subflow, answer),
            _ => ackademy_on_ack(own, subflow, &ack(rng), answer),
        }
    }
}

#[test]
fn no_flow_and_no_record_makes_a_controller_panic_or_stop() {
    let first = first_seed();
    for (name, c_name, settings) in all() {
        let mut made = 0;
        for seed in first..first + FLOWS {
            println!("{name}, seed {seed}");
            let mut rng = Seed(seed).stream(name, 0);
            let flow = flow(&mut rng);
            let mut err = [0; 200];
            // SAFETY: texts end in NUL, the records live, `err` has room for its length.
            let own = unsafe {
                ackademy_new(
                    c_name.as_ptr(),
                    settings.as_ptr(),
                    &raw const flow,
                    err.as_mut_ptr(),
                    200,
                )
            };
            if own.is_null() {
                let line: Vec<u8> = err.iter().map(|&c| c as u8).take_while(|&c| c > 0).collect();
                let line = String::from_utf8_lossy(&line);
                assert!(line.starts_with("flow: `"), "{name}: {flow:?}: {line}");
                continue;
            }
            made += 1;
            for _ in 0..CALLS {
                let mut answer = Answer { cwnd: 1, pacing_rate: 1, ..Answer::default() };
                let code = call(own, &mut rng, &mut answer);
                assert!([OK, HOLD, BAD_ARGUMENT].contains(&code), "{name}: {code}");
                assert!(answer.cwnd > 0 && answer.pacing_rate > 0, "{name}: {answer:?}");
            }
            // SAFETY: as above; both are freed once.
            unsafe {
                ackademy_free(ackademy_again(own, &raw const flow));
                ackademy_free(own);
            }
        }
        assert!(made > FLOWS / 3, "{name}: {made} of {FLOWS} flows are allowed");
    }
}

#[test]
fn null_is_answered_by_a_code() {
    let (mut ack, mut rate) = (Ack::default(), DeliveryRate::default());
    // SAFETY: NULL is allowed everywhere.
    unsafe {
        let none: *mut Governor = null_mut();
        assert!(ackademy_new(null(), null(), null(), null_mut(), 10).is_null());
        assert!(ackademy_new(c"cubic".as_ptr(), null(), null(), null_mut(), 0).is_null());
        assert!(ackademy_again(none, null()).is_null());
        let codes = [
            ackademy_join(none, 1, 0, null()),
            ackademy_leave(none, 0),
            ackademy_on_ack(none, 0, null(), null_mut()),
            ackademy_on_ack(none, 0, &raw const ack, null_mut()),
            ackademy_on_loss(none, 0, null(), null_mut()),
            ackademy_on_send(none, 0, null(), null_mut()),
            ackademy_on_timer(none, 0, 0, null_mut()),
            ackademy_control(none, 0, null_mut()),
            ackademy_fell_back(none, 0),
            ackademy_rate_sent(null_mut(), 0, 0, 0, 0, null_mut()),
            ackademy_rate_sent(&raw mut rate, 0, 0, 0, 0, null_mut()),
            ackademy_rate_delivered(null_mut(), 0, 0),
            ackademy_rate_app_limited(null_mut(), 0),
            ackademy_rate_sample(null_mut(), null(), 0, &raw mut ack),
            ackademy_rate_sample(&raw mut rate, null(), 0, null_mut()),
            ackademy_prr_enter(null_mut(), 0),
            ackademy_prr_acked(null_mut(), 0, 0, 0, 0),
            ackademy_prr_sent(null_mut(), 0),
        ];
        assert_eq!(codes, [BAD_ARGUMENT; 18]);
        ackademy_free(none);
    }
}

#[test]
fn a_subflow_must_be_there_and_an_answer_may_be_left_out() {
    let mut rng = Seed(first_seed()).stream("subflows", 0);
    let flow = Flow {
        mss: 1500,
        initial_cwnd: 15_000,
        initial_ssthresh: u64::MAX,
        paces: 0,
        start: 0,
        seed: 1,
    };
    let none = null_mut();
    for name in [c"cubic", c"lia"] {
        // SAFETY: texts end in NUL, the records live.
        unsafe {
            let own = ackademy_new(name.as_ptr(), null(), &raw const flow, null_mut(), 0);
            assert_eq!(ackademy_on_ack(own, 0, &ack(&mut rng), none), OK);
            assert_eq!(ackademy_control(own, 1, none), BAD_ARGUMENT);
            assert_eq!(ackademy_join(own, 0, 0, &raw const flow), BAD_ARGUMENT);
            assert_eq!(ackademy_join(own, 1 << 16, 0, &raw const flow), BAD_ARGUMENT);
            assert_eq!(ackademy_join(own, 1, 0, &raw const flow), OK);
            assert_eq!(ackademy_control(own, 1, none), OK);
            assert_eq!(ackademy_leave(own, 1), OK);
            assert_eq!(ackademy_leave(own, 1), BAD_ARGUMENT);
            assert_eq!(ackademy_fell_back(own, 1), BAD_ARGUMENT);
            assert_eq!(ackademy_fell_back(own, 0), 0);
            ackademy_free(own);
        }
    }
}

#[test]
fn a_sampler_measures_the_rate_of_a_steady_stream_and_survives_any_number() {
    let (mut rate, mut sent) = (DeliveryRate::default(), [SentState::default(); 20]);
    let mut rng = Seed(first_seed()).stream("rate", 0);
    // SAFETY: the records live.
    unsafe {
        for (index, sent) in sent.iter_mut().enumerate() {
            let (now, inflight) = (index as u64 * 1_000_000, index as u64 * 1000);
            assert_eq!(ackademy_rate_sent(&raw mut rate, now, inflight, 1000, 0, sent), OK);
        }
        let mut ack = Ack::default();
        for (index, sent) in sent.iter().enumerate() {
            let sent_at = index as u64 * 1_000_000;
            ackademy_rate_delivered(&raw mut rate, 20_000_000 + sent_at, 1000);
            (ack.sent_at, ack.min_rtt) = (Time(sent_at), Span(20_000_000));
            assert_eq!(ackademy_rate_sample(&raw mut rate, sent, 0, &raw mut ack), OK);
        }
        // A packet of 1000 bytes every millisecond.
        assert_eq!((ack.delivered, ack.delivered_since), (Bytes(20_000), Bytes(20_000)));
        assert!(
            ack.delivery_rate > Rate(4_000_000) && ack.delivery_rate <= Rate(8_000_000),
            "{ack:?}"
        );
        for _ in 0..10_000 {
            let [now, inflight, size, lost] = numbers(&mut rng);
            let at = rng.below(20) as usize;
            ackademy_rate_sent(&raw mut rate, now, inflight, size, lost, &raw mut sent[at]);
            ackademy_rate_delivered(&raw mut rate, number(&mut rng), number(&mut rng));
            ackademy_rate_app_limited(&raw mut rate, number(&mut rng));
            let sent = &sent[rng.below(20) as usize];
            ackademy_rate_sample(&raw mut rate, sent, number(&mut rng), &raw mut ack);
        }
    }
}

#[test]
fn a_reduction_through_c_is_the_core_s_and_takes_any_number() {
    let mut rng = Seed(first_seed()).stream("prr", 0);
    let (mut own, mut core) = (Prr::default(), Prr::default());
    for _ in 0..10_000 {
        let [flight, delivered, inflight, ssthresh, extra, size] = numbers(&mut rng);
        // SAFETY: the record lives.
        let codes = unsafe {
            if rng.chance(0.1) {
                core = Prr::enter(flight);
                ackademy_prr_enter(&raw mut own, flight);
            }
            [
                ackademy_prr_acked(&raw mut own, delivered, inflight, ssthresh, extra),
                ackademy_prr_sent(&raw mut own, size),
            ]
        };
        core.acked(delivered, inflight, ssthresh, extra);
        core.sent(size);
        assert_eq!((codes, own), ([OK; 2], core));
    }
}
