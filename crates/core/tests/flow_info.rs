//! A host may name any flow: one that no controller can be built for is refused by name, and every other one is
//! survived by all of them.
use ackademy::control::{Ack, Coupled, FlowInfo, Loss, Recovery, SubflowId};
use ackademy::params::Params;
use ackademy::rng::{Rng, Seed};
use ackademy::units::{Bytes, Rate, Span, Time};
use ackademy::{controllers, coupled};

use crate::support::{seeds, table};

const ID: SubflowId = SubflowId(0);
const FLOWS: u64 = 300;

/// Numbers of every length in bits.
fn any_number(rng: &mut Rng) -> u64 {
    rng.next_u64() >> rng.below(64)
}

fn any_flow(seed: u64) -> FlowInfo {
    let mut rng = Seed(seed).stream("flow", 0);
    let ours = rng.chance(0.7).then(|| rng.below(65_536 - 64) + 64);
    let mss = ours.unwrap_or_else(|| any_number(&mut rng));
    let window = |rng: &mut Rng| {
        let own = any_number(rng);
        if rng.chance(0.7) { own.saturating_add(mss) } else { own }
    };
    FlowInfo {
        mss: Bytes(mss),
        initial_cwnd: Bytes(window(&mut rng)),
        initial_ssthresh: Bytes(window(&mut rng)),
        recovery: if rng.chance(0.5) { Recovery::Ns2 } else { Recovery::Sack },
        paces: rng.chance(0.5),
        start: Time(any_number(&mut rng)),
        seed,
    }
}

/// Every controller of both tables, at its defaults.
fn all() -> impl Iterator<Item = (&'static str, Box<dyn Coupled>)> {
    fn boxed(governor: impl Coupled + 'static) -> Box<dyn Coupled> {
        Box::new(governor)
    }
    let defaults = |name, params| -> Params { table::defaults(name, params) };
    let plain = controllers::ALL.iter().map(move |&spec| {
        (spec.name, boxed(controllers::per_flow(spec, defaults(spec.name, spec.params))))
    });
    let coupled = coupled::ALL.iter();
    plain.chain(coupled.map(move |s| (s.name, (s.build)(&defaults(s.name, s.params)))))
}

/// Tells of round trips of 20 ms, of which some lose a packet.
fn tell(governor: &mut dyn Coupled, flow: &FlowInfo) {
    let (rtt, mss) = (Span::from_millis(20), flow.mss);
    let samples =
        Ack { rtt, srtt: rtt, min_rtt: rtt, rtt_max: rtt, batch_rtt_min: rtt, ..Ack::default() };
    for round in 1..30_u64 {
        let sent_at = flow.start + rtt * round;
        let now = sent_at + rtt;
        if governor.next_timer(ID).is_some_and(|due| due <= now) {
            governor.on_timer(ID, now);
        }
        let delivered = mss * round;
        let rate = Rate::of(mss, rtt);
        governor.on_ack(
            ID,
            &Ack {
                now,
                sent_at,
                acked: mss,
                delivered,
                delivery_rate: rate,
                cwnd_limited: 1,
                ..samples
            },
        );
        if round % 7 == 0 {
            governor
                .on_loss(ID, &Loss { now, sent_at, lost: mss, inflight: mss, ..Loss::default() });
        }
    }
}

#[test]
fn a_flow_is_refused_by_name_or_survived_by_every_controller() {
    let (mut refused, mut survived) = (0, 0);
    let first = seeds::fixed_seed();
    println!("flows from {}={first} on", seeds::VARIABLE);
    for seed in first..first + FLOWS {
        let flow = any_flow(seed);
        if let Err(error) = flow.checked() {
            let named = ["mss", "initial_cwnd", "initial_ssthresh", "start"];
            assert!(named.contains(&error.name.as_str()), "{error}");
            refused += 1;
            continue;
        }
        survived += 1;
        for (name, mut governor) in all() {
            println!("{name}: {flow:?}");
            governor.subflow_added(ID, &flow);
            governor.subflow_of(ID, 0);
            tell(&mut *governor, &flow);
            let control = governor.control(ID);
            assert!(control.cwnd >= flow.mss && control.pacing_rate > Rate(0), "{control:?}");
        }
    }
    assert!(
        refused > FLOWS / 10 && survived > FLOWS / 10,
        "{refused} refused, {survived} survived"
    );
}

#[test]
fn the_ends_of_a_flow_s_ranges_are_allowed_and_what_is_beyond_is_not() {
    let flow = table::ordinary_flow();
    let said = |flow: FlowInfo| flow.checked().map_err(|error| error.to_string());
    assert_eq!(said(flow), Ok(flow));
    for (mss, is_allowed) in
        [(0, false), (63, false), (64, true), (15_000, true), (15_001, false), (u64::MAX, false)]
    {
        assert_eq!(said(FlowInfo { mss: Bytes(mss), ..flow }).is_ok(), is_allowed, "{mss}");
    }
    let refused = said(FlowInfo { initial_cwnd: Bytes(1499), ..flow });
    assert_eq!(refused, Err("`initial_cwnd` = 1499: allowed is 1500 to 1073741824".to_owned()));
    assert!(said(FlowInfo { initial_ssthresh: Bytes(0), ..flow }).is_err());
}
