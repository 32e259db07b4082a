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

/// The sender's addresses on two paths.
const FIRST: &str = "10.77.0.1";
const SECOND: &str = "10.77.0.3";

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
    /// Connections are MPTCP's.
    pub mptcp: bool,
    /// Ends the emulator.
    pub stop: Arc<AtomicBool>,
    emulator: Option<JoinHandle<Result<Report, Error>>>,
    _owner: Arc<Owner>,
}

impl Bench {
    /// `label` is unique among the tests of a program; `link` are a scenario's fields of the link from
    /// sender to receiver. The way back adds 5 ms and nothing else.
    pub fn new(label: &str, link: &str) -> Self {
        Self::between(label, link, ["10.77.0.1", "10.77.0.2"])
    }

    /// Between other addresses.
    pub fn between(label: &str, link: &str, [from, to]: [&str; 2]) -> Self {
        Self::with_paths(label, &[(link, from)], to, false)
    }

    /// Two paths to the receiver, of MPTCP: the address of each at the sender.
    pub fn two_paths(label: &str, links: [&str; 2]) -> Self {
        Self::multipath(label, links, false)
    }

    /// The same, each path from an interface of its own at the sender, `link0` and `link1`: the second path
    /// is reached by no other.
    pub fn two_interfaces(label: &str, links: [&str; 2]) -> Self {
        let bench = Self::multipath(label, links, true);
        bench.ip(0, &["rule", "add", "from", SECOND, "table", "3"]);
        bench.ip(0, &["route", "add", "unreachable", "default", "table", "3", "metric", "1000"]);
        bench.route_second();
        bench
    }

    /// The second interface is up: packets from its address leave by it.
    pub fn route_second(&self) {
        self.ip(0, &["route", "add", "default", "dev", "link1", "table", "3"]);
    }

    fn multipath(label: &str, links: [&str; 2], apart: bool) -> Self {
        let paths: Vec<(&str, &str)> = links.into_iter().zip([FIRST, SECOND]).collect();
        let mut bench = Self::with_paths(label, &paths, "10.77.0.2", apart);
        bench.mptcp = true;
        for side in [0, 1] {
            bench.ip(side, &["mptcp", "limits", "set", "subflow", "8", "add_addr_accepted", "8"]);
        }
        bench.open_second();
        bench
    }

    /// The second path may be used from now on.
    pub fn open_second(&self) {
        self.ip(0, &["mptcp", "endpoint", "add", SECOND, "id", "2", "subflow"]);
    }

    /// The second path may not be used any more.
    pub fn close_second(&self) {
        self.ip(0, &["mptcp", "endpoint", "delete", "id", "2"]);
    }

    /// `apart`: with an interface of the sender for each path.
    fn with_paths(label: &str, paths: &[(&str, &str)], to: &str, apart: bool) -> Self {
        let path = |(path, (link, _)): (usize, &(&str, &str))| {
            format!(
                "[[link]]\nname = \"there{path}\"\n{link}\n\
                 [[link]]\nname = \"back{path}\"\nrate_mbps = 1000\ndelay_ms = 5\n\
                 [[flow]]\nname = \"{path}\"\npath = [\"there{path}\"]\nreverse = [\"back{path}\"]\n"
            )
        };
        let each: Vec<String> = paths.iter().enumerate().map(path).collect();
        let scenario = format!("duration_s = 1000\n{}", each.concat());
        let network = Scenario::parse(&scenario, "test").expect("a scenario").network;
        let mut fabric = Fabric::new(&network.links, Seed(1), Span::ZERO);
        let address = |text: &str| -> IpAddr { text.parse().expect("an address") };
        let receiver = if apart { paths.len() } else { 1 };
        for (path, ((_, from), connection)) in paths.iter().zip(&network.connections).enumerate() {
            let hosts = [(path.min(receiver - 1), address(from)), (receiver, address(to))];
            let route = connection.subflows[0].clone();
            fabric.add_flow(&Flow { hosts, route }).expect("addresses of its own");
        }
        let owner = owner();
        let sides = ["l", "r"].map(|side| owner.create(&format!("{label}-{side}")).expect("root"));
        let senders: Vec<IpAddr> = paths.iter().map(|(_, from)| address(from)).collect();
        let port = |side: usize, device: usize, addresses: &[IpAddr]| {
            let with_bits = |own: &IpAddr| (*own, if own.is_ipv4() { 24 } else { 64 });
            let plan = tun::Plan {
                namespace: sides[side].path(),
                device: format!("link{device}"),
                addresses: addresses.iter().map(with_bits).collect(),
                mtu: 1500,
            };
            tun::open(&plan).expect("TUN")
        };
        let each = senders.chunks(if apart { 1 } else { senders.len() }).enumerate();
        let mut ports: Vec<_> = each.map(|(device, own)| port(0, device, own)).collect();
        ports.push(port(1, 0, &[address(to)]));
        let emulator = Emulator::new(ports, fabric, emulator::Options::default());
        let stop = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&stop);
        let emulator = Some(thread::spawn(move || emulator.run(&flag)));
        let addresses = [senders[0], address(to)];
        Self { sides, addresses, mptcp: false, stop, emulator, _owner: owner }
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
