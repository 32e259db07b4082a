//! Subflows in congestion avoidance for the tests of the rules, and tests of what the rules share.
use super::*;
use crate::control::{Controller, Recovery};
use crate::controllers;
use crate::coupled::{self, Spec};
use crate::params::ParamValue;
use crate::units::{Span, Time};

/// Bytes of a packet.
pub const MSS: u64 = 1000;

fn flow(window: f64) -> FlowInfo {
    FlowInfo {
        mss: Bytes(MSS),
        initial_cwnd: Bytes((window * MSS as f64) as u64),
        // Above slow start in either way of counting.
        initial_ssthresh: Bytes(((window - 1.0) * MSS as f64) as u64),
        recovery: Recovery::Sack,
        paces: false,
        start: Time(0),
        seed: 1,
    }
}

fn params(spec: &Spec, settings: &[(&str, &str)]) -> Params {
    let given: Vec<_> = settings
        .iter()
        .map(|&(name, word)| (name.to_owned(), ParamValue::Word(word.to_owned())))
        .collect();
    Params::resolve(spec.params, &given).expect("known settings")
}

/// A coupled controller with subflows in congestion avoidance.
pub struct Bench {
    governor: Box<dyn Coupled>,
    /// Window in packets and round trip in seconds.
    paths: Vec<(f64, f64)>,
}

impl Bench {
    /// Subflows of these windows, packets, and round trips, seconds.
    pub fn new(spec: &Spec, settings: &[(&str, &str)], paths: &[(f64, f64)]) -> Self {
        let mut governor = (spec.build)(&params(spec, settings));
        for (at, &(window, srtt)) in paths.iter().enumerate() {
            let id = SubflowId(at as u32);
            governor.subflow_added(id, &flow(window));
            governor.on_ack(id, &Ack { cwnd_limited: 0, ..Self::ack_of(srtt, 0, 0) });
        }
        Self { governor, paths: paths.to_vec() }
    }

    /// How a controller counts under these settings.
    pub fn counting(spec: &Spec, settings: &[(&str, &str)]) -> Counting {
        Counting::new(&params(spec, settings))
    }

    /// An acknowledgement of `packets`, not in a repair.
    pub fn ack_of(srtt: f64, packets: u64, now: u64) -> Ack {
        let rtt = Span::from_secs_f64(srtt);
        let acked = Bytes(packets * MSS);
        Ack { now: Time(now), rtt, srtt: rtt, acked, cwnd_limited: 1, ..Ack::default() }
    }

    /// A loss with so many packets in flight.
    pub fn loss_of(packets: u64, kind: LossKind) -> Loss {
        Loss { inflight: Bytes(packets * MSS), lost: Bytes(MSS), kind, ..Loss::default() }
    }

    /// A subflow's `packets` are acknowledged.
    pub fn ack(&mut self, at: u32, packets: u64) {
        let ack = Self::ack_of(self.paths[at as usize].1, packets, 0);
        self.governor.on_ack(SubflowId(at), &ack);
    }

    /// A subflow loses a packet with its whole window in flight.
    pub fn lose(&mut self, at: u32, kind: LossKind) {
        let packets = self.paths[at as usize].0 as u64;
        self.governor.on_loss(SubflowId(at), &Self::loss_of(packets, kind));
    }

    /// A subflow's window, packets.
    pub fn window(&self, at: u32) -> f64 {
        self.governor.control(SubflowId(at)).cwnd.0 as f64 / MSS as f64
    }

    /// The subflows as a rule sees them, with nothing remembered.
    pub fn subflows<M: Default>(&self) -> Vec<Subflow<M>> {
        self.subflows_with(|_| M::default())
    }

    /// The subflows as a rule sees them, with what is remembered of the one at each index.
    pub fn subflows_with<M: Default>(&self, memory: impl Fn(usize) -> M) -> Vec<Subflow<M>> {
        let counting = Counting { kernel: false, abc: true, half_of_window: None };
        let one = |(at, &(window, srtt)): (usize, &(f64, f64))| {
            let mut subflow = Subflow::new(SubflowId(at as u32), &flow(window), counting);
            (subflow.srtt, subflow.memory) = (srtt, memory(at));
            subflow
        };
        self.paths.iter().enumerate().map(one).collect()
    }
}

/// The classics: the controllers of RFC 5681's window. A controller that is not one is not tested here.
fn classics() -> impl Iterator<Item = &'static Spec> {
    coupled::ALL.iter().copied().filter(|spec| spec.params.iter().any(|param| param.name == "abc"))
}

/// Acknowledgements and losses as a flow of one path has them.
fn lifetime() -> Vec<Result<Ack, Loss>> {
    let mut rng = crate::rng::Rng::new(3);
    let mut repair = 0;
    (0..5000_u64)
        .map(|number| {
            repair -= i32::from(repair > 0);
            if number > 60 && rng.chance(0.01) && repair == 0 {
                repair = 12;
                let kind = if rng.chance(0.1) { LossKind::Timeout } else { LossKind::Gap };
                return Err(Bench::loss_of(10 + rng.below(40), kind));
            }
            let recovering = u64::from(repair > 0);
            let ack =
                Bench::ack_of(0.08 + 0.04 * rng.uniform(), 1 + rng.below(2), number * 1_000_000);
            Ok(Ack { recovering, cwnd_limited: u64::from(rng.chance(0.9)), ..ack })
        })
        .collect()
}

#[test]
fn a_single_subflow_of_lia_olia_and_balia_is_new_reno_to_the_byte() {
    let info = FlowInfo { initial_ssthresh: Bytes(u64::MAX), ..flow(10.0) };
    for spec in classics().filter(|spec| spec.single == "new_reno") {
        let reno = controllers::find("new_reno").expect("in the table");
        let mut reno: Box<dyn Controller> =
            (reno.build)(&info, &Params::resolve(reno.params, &[]).expect("defaults"));
        let mut alone = (spec.build)(&params(spec, &[]));
        alone.subflow_added(SubflowId(0), &info);
        for event in lifetime() {
            match event {
                Ok(ack) => {
                    reno.on_ack(&ack);
                    alone.on_ack(SubflowId(0), &ack);
                }
                Err(loss) => {
                    reno.on_loss(&loss);
                    alone.on_loss(SubflowId(0), &loss);
                }
            }
            assert_eq!(alone.control(SubflowId(0)), reno.control(), "{}", spec.name);
        }
    }
}

#[test]
fn slow_start_is_each_subflows_own() {
    for spec in classics() {
        for settings in [&[][..], &[("kernel", "on")]] {
            let mut group = (spec.build)(&params(spec, settings));
            let info = FlowInfo { initial_ssthresh: Bytes(u64::MAX), ..flow(10.0) };
            for at in 0..2 {
                group.subflow_added(SubflowId(at), &info);
            }
            let ack = Bench::ack_of(0.1, 1, 0);
            // Packets sent before the first round's end, so that no round of wVegas is judged.
            group.on_ack(SubflowId(1), &ack);
            group.on_ack(SubflowId(0), &ack);
            for _ in 0..5 {
                group.on_ack(SubflowId(0), &Ack { now: Time(9), ..ack });
            }
            let name = spec.name;
            assert_eq!(group.control(SubflowId(0)).cwnd, Bytes(16 * MSS), "{name} {settings:?}");
            assert_eq!(group.control(SubflowId(1)).cwnd, Bytes(11 * MSS), "{name} {settings:?}");
        }
    }
}

#[test]
fn nothing_grows_in_a_repair_or_while_the_window_is_not_used() {
    for spec in classics() {
        let mut bench = Bench::new(spec, &[], &[(20.0, 0.1), (20.0, 0.1)]);
        let ack = Bench::ack_of(0.1, 1, 0);
        for idle in [Ack { recovering: 1, ..ack }, Ack { cwnd_limited: 0, ..ack }] {
            for _ in 0..3 {
                bench.governor.on_ack(SubflowId(0), &idle);
                assert!((bench.window(0) - 20.0).abs() < 1e-9, "{}", spec.name);
            }
        }
    }
}

#[test]
fn a_time_out_leaves_one_packet_and_a_spurious_one_gives_the_window_back() {
    for spec in classics() {
        let mut bench = Bench::new(spec, &[], &[(20.0, 0.1), (30.0, 0.1)]);
        bench.lose(0, LossKind::Timeout);
        assert!((bench.window(0) - 1.0).abs() < 1e-9, "{}", spec.name);
        assert!((bench.window(1) - 30.0).abs() < 1e-9, "{}", spec.name);
        bench.lose(0, LossKind::Spurious);
        assert!((bench.window(0) - 20.0).abs() < 1e-9, "{}", spec.name);
    }
}

#[test]
fn further_losses_of_an_episode_change_nothing() {
    for spec in classics() {
        let mut bench = Bench::new(spec, &[], &[(20.0, 0.1), (30.0, 0.1)]);
        bench.lose(0, LossKind::Gap);
        let once = bench.window(0);
        bench.lose(0, LossKind::More);
        assert!((bench.window(0) - once).abs() < 1e-9, "{}", spec.name);
    }
}

#[test]
fn delayed_acknowledgements_halve_the_increase_unless_packets_count() {
    for spec in classics().filter(|spec| spec.single == "new_reno") {
        let grown = |abc| {
            let mut bench = Bench::new(spec, &[("abc", abc)], &[(20.0, 0.1), (20.0, 0.1)]);
            (0..10).for_each(|_| bench.ack(0, 2));
            bench.window(0) - 20.0
        };
        let ratio = grown("on") / grown("off");
        assert!((ratio - 2.0).abs() < 0.1, "{}: {ratio}", spec.name);
    }
}

#[test]
fn a_subflow_that_leaves_no_longer_counts() {
    for spec in classics().filter(|spec| spec.single == "new_reno") {
        let mut bench = Bench::new(spec, &[], &[(20.0, 0.1), (20.0, 0.1)]);
        bench.governor.subflow_removed(SubflowId(1));
        bench.ack(0, 1);
        assert!((bench.window(0) - 20.05).abs() < 2.0 / MSS as f64, "{}", spec.name);
    }
}

#[test]
fn a_subflow_without_a_round_trip_does_not_count() {
    for spec in classics().filter(|spec| spec.single == "new_reno") {
        let mut bench = Bench::new(spec, &[], &[(20.0, 0.1)]);
        bench.governor.subflow_added(SubflowId(1), &flow(20.0));
        bench.ack(0, 1);
        assert!((bench.window(0) - 20.05).abs() < 2.0 / MSS as f64, "{}", spec.name);
    }
}

#[test]
fn calls_that_name_no_subflow_change_nothing() {
    for spec in classics() {
        let mut bench = Bench::new(spec, &[], &[(20.0, 0.1)]);
        let stranger = SubflowId(7);
        bench.governor.on_ack(stranger, &Bench::ack_of(0.1, 1, 0));
        bench.governor.on_loss(stranger, &Bench::loss_of(5, LossKind::Gap));
        bench.governor.subflow_removed(stranger);
        assert_eq!(bench.governor.control(stranger).cwnd, Bytes(MSS));
        assert!((bench.window(0) - 20.0).abs() < 1e-9);
    }
}
