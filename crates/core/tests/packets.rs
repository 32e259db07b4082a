//! What a controller that wants to know of each packet is told agrees with its `Ack` and `Loss` records and with the
//! sender's counters, and changes nothing, on networks drawn at random.
use crate::support::draw::{Draw, parse, same};
use crate::support::seeds::{fixed_seed, for_any};
use ackademy::control::{
    Ack, Control, Coupled, FlowInfo, Loss, PacketEvent, PacketEventKind as Kind, SubflowId,
};
use ackademy::params::ParamError;
use ackademy::rng::{Rng, Seed};
use ackademy::scenario::Scenario;
use ackademy::sim::record::Outcome;
use ackademy::sim::{self, Sim};
use ackademy::units::{Bytes, Time};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// What was told of one packet.
#[derive(Debug)]
struct Packet {
    sent_at: Time,
    size: u64,
    acked: u64,
    is_lost: bool,
    is_discarded: bool,
}

/// What a subflow was told.
#[derive(Debug, Default)]
struct Flow {
    packets: Vec<Packet>,
    sent: u64,
    acked: u64,
    lost: u64,
    /// Of the records.
    acked_in_records: u64,
    lost_in_records: u64,
    /// A full packet: so much of what was lost in an episode waits for its end.
    mss: u64,
}

impl Flow {
    fn told(&mut self, event: &PacketEvent) {
        let (size, now) = (event.size.0, event.now);
        if event.kind == Kind::Sent {
            assert_eq!(
                (event.number, event.sent_at),
                (self.packets.len() as u64, now),
                "{event:?}"
            );
            let sent_at = event.sent_at;
            let packet = Packet { sent_at, size, acked: 0, is_lost: false, is_discarded: false };
            self.packets.push(packet);
            self.sent += size;
            return;
        }
        let packet = &mut self.packets[event.number as usize];
        assert!(event.sent_at == packet.sent_at && now >= packet.sent_at, "{event:?} {packet:?}");
        match event.kind {
            Kind::Acked => {
                packet.acked += size;
                self.acked += size;
            }
            Kind::Lost => {
                packet.is_lost = true;
                self.lost += size;
            }
            _ => {
                assert!(!packet.is_discarded && !packet.is_lost, "{event:?} {packet:?}");
                packet.is_discarded = true;
            }
        }
        assert!(packet.acked <= packet.size, "{event:?} {packet:?}");
    }

    /// Sent, and nothing told of it since.
    fn open(&self) -> impl Iterator<Item = &Packet> {
        self.packets
            .iter()
            .filter(|packet| packet.acked < packet.size && !packet.is_lost && !packet.is_discarded)
    }
}

/// Wants packets, whatever the governor under it wants.
struct View {
    inner: Box<dyn Coupled>,
    connection: usize,
    flows: Flows,
}

/// By connection and subflow.
type Flows = Arc<Mutex<BTreeMap<(usize, SubflowId), Flow>>>;

impl View {
    fn with(&self, id: SubflowId, act: impl FnOnce(&mut Flow)) {
        act(self.flows.lock().expect("one thread").entry((self.connection, id)).or_default());
    }
}

impl Coupled for View {
    fn subflow_added(&mut self, id: SubflowId, flow: &FlowInfo) {
        self.with(id, |own| own.mss = flow.mss.0);
        self.inner.subflow_added(id, flow);
    }
    fn subflow_removed(&mut self, id: SubflowId) {
        self.inner.subflow_removed(id);
    }
    fn on_packet(&mut self, id: SubflowId, event: &PacketEvent) {
        self.with(id, |flow| flow.told(event));
    }
    fn wants_packets(&self) -> bool {
        true
    }
    fn on_ack(&mut self, id: SubflowId, ack: &Ack) {
        self.with(id, |flow| {
            flow.acked_in_records += ack.acked.0;
            // Without packets there is nothing to compare, as of the sender of ns-2.
            if !flow.packets.is_empty() {
                assert_eq!((flow.acked, flow.acked_in_records), (ack.delivered.0, flow.acked));
            }
        });
        self.inner.on_ack(id, ack);
    }
    fn on_loss(&mut self, id: SubflowId, loss: &Loss) {
        self.with(id, |flow| {
            flow.lost_in_records += loss.lost.0;
            if !flow.packets.is_empty() {
                let untold = flow.lost.checked_sub(flow.lost_in_records);
                assert!(untold.is_some_and(|untold| untold <= flow.mss), "{loss:?}, {untold:?}");
            }
        });
        self.inner.on_loss(id, loss);
    }
    fn control(&self, id: SubflowId) -> Control {
        self.inner.control(id)
    }
    fn inner(&self) -> Option<&dyn Coupled> {
        Some(&*self.inner)
    }
    fn inner_mut(&mut self) -> Option<&mut dyn Coupled> {
        Some(&mut *self.inner)
    }
}

/// A run, and what its controllers were told of packets if they want to know.
fn run(scenario: &Scenario, seed: u64, flows: Option<&Flows>) -> Outcome {
    let mut connection = 0;
    let mut build = |plan: &_| -> Result<Box<dyn Coupled>, ParamError> {
        let inner = sim::builtin(plan)?;
        connection += 1;
        Ok(match flows {
            None => inner,
            Some(flows) => Box::new(View { inner, connection, flows: Arc::clone(flows) }),
        })
    };
    let mut sim = Sim::new(&scenario.network, Seed(seed), &mut build).expect("built-in");
    sim.run_until(scenario.network.duration);
    sim.finish()
}

fn agrees(scenario: &Scenario, seed: u64) -> usize {
    let flows = Flows::default();
    let outcome = run(scenario, seed, Some(&flows));
    assert!(same(&outcome, &run(scenario, seed, None)), "to be told changes the run");
    let flows = flows.lock().expect("one thread");
    flows.values().filter(|flow| !flow.packets.is_empty()).count()
}

#[test]
fn packets_agree_with_records_on_any_network_and_to_be_told_changes_nothing() {
    let (test, told) = ("packets::packets_agree_with_records_on_any_network", Mutex::new(0));
    let draw = |seed| Draw(Rng::new(seed)).scenario();
    for_any(test, fixed_seed(), 400, draw, |text, seed| {
        let mut scenario = parse(text);
        // Falsified records agree with nothing.
        for plan in &mut scenario.network.connections {
            plan.sender.fuzz_records = 0.0;
        }
        *told.lock().expect("one thread") += agrees(&scenario, seed);
    });
    assert!(told.into_inner().expect("one thread") > 400, "flows are told");
}

/// One flow over a lossy link that reorders and duplicates, with probes and time-outs; `sender`: its settings.
fn lossy(ratio: f64, sender: &str) -> Scenario {
    parse(&format!(
        "duration_s = 40\n[dumbbell]\nrtt_ms = 40\n[dumbbell.bottleneck]\nrate_mbps = 10\n\
         queue = {{ kind = \"drop_tail\", packets = 40 }}\nduplicate_ratio = 0.01\n\
         reorder = {{ ratio = 0.02, low_ms = 20, high_ms = 60 }}\n\
         loss = {{ kind = \"bernoulli\", ratio = {ratio} }}\n[[flow]]\ncontroller = \"cubic\"\n\
         traffic = {{ kind = \"on_off\", mean_bytes = 5e4, mean_off_s = 0.05 }}\n{sender}\n"
    ))
}

#[test]
fn every_packet_has_one_end_and_those_without_one_are_in_flight() {
    let mut rng = Rng::new(SEED);
    for sender in ["", "sender = { tlp = false }", "sender = { rack = false, tlp = false }"] {
        let scenario = lossy(rng.uniform_in(0.001, 0.1), sender);
        let flows = Flows::default();
        let row = run(&scenario, SEED, Some(&flows)).flows.remove(0);
        let flows = flows.lock().expect("one thread");
        let flow = flows.values().next().expect("a flow");
        let place = format!("{sender}, seed {SEED}: {row:?}");
        assert_eq!((flow.packets.len() as u64, flow.sent), (row.sent_packets, row.sent_bytes));
        assert!(row.retransmitted_packets > 100 && row.timeouts > 0, "{place}");
        let late = flow.packets.iter().filter(|packet| packet.is_lost && packet.acked > 0).count();
        assert!(late > 0, "spurious losses: {place}");
        let open: u64 = flow.open().map(|packet| packet.size - packet.acked).sum();
        assert!(open <= 100 * 1500, "{open} bytes in flight at the end: {place}");
        let discarded = flow.packets.iter().filter(|packet| packet.is_discarded).count();
        assert_eq!(discarded > 0, sender.is_empty(), "probes: {place}");
    }
}

/// Where random points come from.
const SEED: u64 = 43;

#[test]
fn sizes_of_events_are_numbers_of_eight_bytes() {
    assert_eq!(size_of::<PacketEvent>(), 5 * size_of::<Bytes>());
}
