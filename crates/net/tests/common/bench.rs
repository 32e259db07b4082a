//! Two network namespaces with an emulated link between them. All gone when dropped, also by a panic;
//! what a killed test leaves, the next owner of namespaces removes.
use ackademy::rng::Seed;
use ackademy::scenario::Scenario;
use ackademy::units::Span;
use ackademy_net::command::run;
use ackademy_net::error::Error;
use ackademy_net::link::emulator::{self, Emulator, Report};
use ackademy_net::link::fabric::{Fabric, Flow};
use ackademy_net::link::tun;
use ackademy_net::namespace::{Namespace, Owner};
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::{self, JoinHandle};

/// The owner of this process's namespaces, for as long as a test has one.
pub fn owner() -> Arc<Owner> {
    static OWNER: Mutex<Weak<Owner>> = Mutex::new(Weak::new());
    let mut known = OWNER.lock().unwrap_or_else(PoisonError::into_inner);
    known.upgrade().unwrap_or_else(|| {
        let owner = Arc::new(Owner::claim().expect("root"));
        *known = Arc::downgrade(&owner);
        owner
    })
}

/// Namespaces 0 (sends) and 1 (receives) with a link between them.
pub struct Bench {
    /// The namespaces.
    pub sides: [Namespace; 2],
    /// Their addresses.
    pub addresses: [IpAddr; 2],
    /// Ends the emulator.
    pub stop: Arc<AtomicBool>,
    emulator: Option<JoinHandle<Result<Report, Error>>>,
    _owner: Arc<Owner>,
}

impl Bench {
    /// `label` is unique among the tests of a file; `link` are a scenario's fields of the link from
    /// sender to receiver. The way back adds 5 ms and nothing else.
    pub fn new(label: &str, link: &str) -> Self {
        Self::between(label, link, ["10.77.0.1", "10.77.0.2"])
    }

    /// Between other addresses.
    pub fn between(label: &str, link: &str, addresses: [&str; 2]) -> Self {
        let addresses = addresses.map(|address| address.parse().expect("an address"));
        let scenario = format!(
            "duration_s = 1000\n[[link]]\nname = \"there\"\n{link}\n\
             [[link]]\nname = \"back\"\nrate_mbps = 1000\ndelay_ms = 5\n\
             [[flow]]\npath = [\"there\"]\nreverse = [\"back\"]\n"
        );
        let network = Scenario::parse(&scenario, "test").expect("a scenario").network;
        let mut fabric = Fabric::new(&network.links, Seed(1), Span::ZERO);
        let hosts = [(0, addresses[0]), (1, addresses[1])];
        let route = network.connections[0].subflows[0].clone();
        fabric.add_flow(&Flow { hosts, route }).expect("one flow");
        let owner = owner();
        let sides = ["l", "r"].map(|side| owner.create(&format!("{label}-{side}")).expect("root"));
        let port = |side: usize| {
            let bits = if addresses[side].is_ipv4() { 24 } else { 64 };
            let plan = tun::Plan {
                namespace: sides[side].path(),
                device: "link0".to_owned(),
                addresses: vec![(addresses[side], bits)],
                mtu: 1500,
            };
            tun::open(&plan).expect("TUN")
        };
        let emulator = Emulator::new(vec![port(0), port(1)], fabric, emulator::Options::default());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let emulator = Some(thread::spawn(move || emulator.run(&flag)));
        Self { sides, addresses, stop, emulator, _owner: owner }
    }

    /// Does some work in a namespace.
    pub fn within<T: Send>(
        &self,
        side: usize,
        work: impl FnOnce() -> std::io::Result<T> + Send,
    ) -> T {
        let work = || work().map_err(|error| Error::System(error.to_string()));
        self.sides[side].inside(work).expect("the namespace is there")
    }

    /// Runs `ip` in a namespace.
    pub fn ip(&self, side: usize, arguments: &[&str]) {
        let all = [&["-n", self.sides[side].name()], arguments].concat();
        run("ip", &all).expect("ip");
    }

    /// Ends the emulator; what it counted.
    pub fn finish(mut self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        let emulator = self.emulator.take().expect("not yet finished");
        emulator.join().expect("no panic").expect("no error")
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(emulator) = self.emulator.take() {
            let _ = emulator.join();
        }
    }
}
