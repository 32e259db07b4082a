//! Controllers that misbehave.
use crate::bed::{Bed, SECOND, SOON, wait_for};
use crate::traffic::{STEADY, Traffic};
use ackademy::control::{Ack, Control, Controller, Coupled, FlowInfo, Loss, PerFlow};
use ackademy::units::{Bytes, Rate};
use ackademy_net::kernel::{Agent, Assign, FlowKey, Options};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Fifty packets, except for what `on_ack` does and `allow` allows.
#[derive(Clone, Copy)]
struct Faulty {
    on_ack: fn(),
    allow: Control,
}

const FINE: Control =
    Control { cwnd: Bytes(75_000), pacing_rate: Rate::UNLIMITED, ssthresh: Bytes(u64::MAX) };

impl Controller for Faulty {
    fn on_ack(&mut self, _ack: &Ack) {
        (self.on_ack)();
    }
    fn on_loss(&mut self, _loss: &Loss) {}
    fn control(&self) -> Control {
        self.allow
    }
}

/// Gives the controllers to the flows in turn.
struct Turns(Vec<Faulty>);

impl Assign for Turns {
    fn governor(&mut self, _key: &FlowKey, _info: &FlowInfo) -> Option<Box<dyn Coupled>> {
        let controller = self.0[0];
        self.0.rotate_left(1);
        Some(Box::new(PerFlow::new(move |_| Box::new(controller))))
    }
}

/// Serves `controllers` while `test` runs.
fn serve(bed: &Bed, controllers: Vec<Faulty>, test: impl FnOnce()) {
    let options = Options { name: bed.name.clone(), pins: Some(bed.pins()), ..Options::default() };
    let mut agent = Agent::start(&options, Box::new(Turns(controllers))).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    let serving = thread::spawn(move || agent.run(&stopping));
    test();
    stop.store(true, Ordering::Relaxed);
    wait_for("the agent ends", SOON, || serving.is_finished());
    serving.join().unwrap().unwrap();
}

#[test]
fn a_controller_that_sleeps_costs_fallbacks_and_no_stall() {
    let Some(bed) = Bed::new() else { return };
    let slow = Faulty { on_ack: || thread::sleep(Duration::from_secs(1)), allow: FINE };
    let traffic = {
        let bed = &bed;
        let mut traffic = None;
        serve(bed, vec![slow], || {
            let flows = Traffic::start(bed, 3, STEADY);
            wait_for("every flow falls back", SOON, || {
                let flows = bed.status().flows;
                flows.len() == 3 && flows.iter().all(|flow| flow.fallbacks > 0)
            });
            let before = flows.received();
            wait_for("the flows go on", SOON, || flows.received() > before + 5_000_000);
            traffic = Some(flows);
        });
        traffic.unwrap()
    };
    assert!(traffic.finish() < SECOND);
    bed.finish();
}

#[test]
fn a_window_or_rate_that_no_sender_can_obey_is_counted_and_cubic_goes_on() {
    let window = |cwnd| Control { cwnd, ..FINE };
    let not_a_number = (-1.0_f64).sqrt() as u64;
    for allow in [
        window(Bytes(not_a_number)),
        window(Bytes(1 << 63)),
        Control { pacing_rate: Rate(0), ..FINE },
    ] {
        let Some(bed) = Bed::new() else { return };
        serve(&bed, vec![Faulty { on_ack: || (), allow }], || {
            let traffic = Traffic::start(&bed, 2, STEADY);
            wait_for("it is counted", SOON, || bed.status().counts.invalid > 2);
            bed.wait_until_all(2, "cubic");
            let before = traffic.received();
            wait_for("the flows go on", SOON, || traffic.received() > before + 5_000_000);
            assert!(traffic.finish() < SECOND);
        });
        bed.finish();
    }
}

#[test]
fn a_panic_abandons_its_flow_alone() {
    let Some(bed) = Bed::new() else { return };
    let panicking = Faulty { on_ack: || panic!("a controller's panic, on purpose"), allow: FINE };
    let fine = Faulty { on_ack: || (), allow: FINE };
    serve(&bed, vec![panicking, fine], || {
        let traffic = Traffic::start(&bed, 4, STEADY);
        let count = |state| bed.status().flows.iter().filter(|flow| flow.state == state).count();
        wait_for("half are abandoned, half obey", SOON, || {
            count("abandoned") == 2 && count("agent") == 2
        });
        let before = traffic.received();
        wait_for("all flows go on", SOON, || traffic.received() > before + 5_000_000);
        assert!(traffic.finish() < SECOND);
    });
    bed.finish();
}
