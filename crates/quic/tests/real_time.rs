//! Our controllers on noq's endpoints, over sockets of this machine: transfers, faults, many connections.
use ackademy::control::{Ack, Control, Controller, FlowInfo, Loss, Spec};
use ackademy::controllers;
use ackademy::params::{ParamValue, Params};
use ackademy::rng::Rng;
use ackademy::scheme::{Entry, Scheme};
use ackademy::units::{Bytes, Rate};
use ackademy_quic::{Factory, tls};
use noq::crypto::rustls::QuicClientConfig;
use noq::{ClientConfig, Connection, ConnectionError, Endpoint, ServerConfig, TransportConfig};
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use transfer::{receive, send, server};

#[path = "../examples/transfer.rs"]
#[allow(dead_code, reason = "its `main` is that of the example")]
mod transfer;

/// Where random points come from.
const SEED: u64 = 43;
const LOCAL: &str = "127.0.0.1:0";
const IDLE: Duration = Duration::from_secs(2);

fn run<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async {
        tokio::time::timeout(Duration::from_secs(60), work).await.expect("it ends in a minute")
    })
}

fn data(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|place| (place / 7) as u8).collect()
}

#[test]
fn the_example_sends_data_under_controllers_of_every_kind() {
    for controller in ["cubic", "bbr3", "vivace", "own_queue"] {
        run(async {
            let (endpoint, pin) = server().expect("a server");
            let address = endpoint.local_addr().expect("it is bound");
            let sent = data(2_000_000);
            let (send, received) =
                tokio::join!(send(address, pin, controller, &sent), receive(endpoint));
            send.expect(controller);
            assert!(received.expect(controller) == sent, "{controller}");
        });
    }
}

/// CUBIC that is counted while it lives.
struct Counted(Box<dyn Controller>);

/// How many live. A test that looks has [`alone`].
static ALIVE: AtomicI64 = AtomicI64::new(0);

fn alone() -> impl Drop {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Counted {
    fn drop(&mut self) {
        ALIVE.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Controller for Counted {
    fn on_ack(&mut self, ack: &Ack) {
        self.0.on_ack(ack);
    }
    fn on_loss(&mut self, loss: &Loss) {
        self.0.on_loss(loss);
    }
    fn control(&self) -> Control {
        self.0.control()
    }
}

static COUNTED: Spec = Spec {
    name: "counted",
    about: "",
    source: "",
    params: &[],
    build: |flow: &FlowInfo, _| {
        ALIVE.fetch_add(1, Ordering::SeqCst);
        Box::new(Counted(controllers::fallback(flow)))
    },
};

fn plain(spec: &'static Spec) -> Scheme {
    Scheme { entry: Entry::Plain(spec), params: Params::defaults(spec.params) }
}

/// A client whose connections this factory governs, and which gives up after some silence.
fn client_of(pin: tls::Pin, factory: Arc<Factory>) -> Endpoint {
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IDLE.try_into().expect("it is short")));
    transport.congestion_controller_factory(factory);
    let crypto = QuicClientConfig::try_from(tls::client(pin).expect("TLS 1.3")).expect("a suite");
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::client(LOCAL.parse().expect("an address")).expect("a socket");
    endpoint.set_default_client_config(config);
    endpoint
}

fn client(pin: tls::Pin, scheme: &Scheme) -> Endpoint {
    client_of(pin, Arc::new(Factory::new(scheme).expect("no hook")))
}

async fn connect(endpoint: &Endpoint, address: SocketAddr) -> Connection {
    endpoint.connect(address, "server").expect("a name").await.expect("a server")
}

/// Writes to a new stream, and waits until the peer has it.
async fn upload(connection: &Connection, data: &[u8]) -> Result<(), String> {
    let mut stream = connection.open_uni().await.map_err(|error| error.to_string())?;
    stream.write_all(data).await.map_err(|error| error.to_string())?;
    stream.finish().map_err(|error| error.to_string())?;
    stream.stopped().await.map(drop).map_err(|error| error.to_string())
}

const FORWARD: u8 = 0;
const CORRUPT: u8 = 1;
const DEAD: u8 = 2;

/// A path to `to`: what it does with datagrams is set while it is used.
async fn relay(to: SocketAddr) -> (SocketAddr, Arc<AtomicU8>) {
    let (mode, rng) = (Arc::new(AtomicU8::new(FORWARD)), Mutex::new(Rng::new(SEED)));
    let socket = tokio::net::UdpSocket::bind(LOCAL).await.expect("a socket");
    let (address, own) = (socket.local_addr().expect("it is bound"), Arc::clone(&mode));
    tokio::spawn(async move {
        let (mut buffer, mut from) = (vec![0; 65_536], to);
        while let Ok((size, sender)) = socket.recv_from(&mut buffer).await {
            let target = if sender == to { from } else { to };
            from = if sender == to { from } else { sender };
            let mode = own.load(Ordering::SeqCst);
            if mode == CORRUPT {
                let mut rng = rng.lock().expect("one thread");
                if rng.chance(0.05) {
                    buffer[rng.below(size as u64) as usize] ^= 1 << rng.below(8);
                }
            }
            if mode != DEAD {
                let _ = socket.send_to(&buffer[..size], target).await;
            }
        }
    });
    (address, mode)
}

#[test]
fn a_connection_whose_peer_vanishes_ends_and_leaves_no_controller() {
    let _alone = alone();
    run(async {
        let (endpoint, pin) = server().expect("a server");
        let (address, mode) = relay(endpoint.local_addr().expect("it is bound")).await;
        let receiving = tokio::spawn(async move { receive(endpoint).await.is_err() });
        let client = client(pin, &plain(&COUNTED));
        let connection = connect(&client, address).await;
        assert_eq!(ALIVE.load(Ordering::SeqCst), 1);
        let die = async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            mode.store(DEAD, Ordering::SeqCst);
        };
        let sent = data(200_000_000);
        let (result, ()) = tokio::join!(upload(&connection, &sent), die);
        assert_eq!(result, Err("connection lost".to_owned()));
        let why = connection.close_reason().expect("it is over");
        assert!(matches!(why, ConnectionError::TimedOut), "{why}");
        drop(connection);
        client.wait_idle().await;
        drop(client);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0, "its controller is freed");
        assert!(receiving.await.expect("no panic"), "the server gives up, too");
    });
}

#[test]
fn random_and_corrupted_datagrams_change_no_byte_and_end_no_connection() {
    run(async {
        let (endpoint, pin) = server().expect("a server");
        let address = endpoint.local_addr().expect("it is bound");
        let (relayed, mode) = relay(address).await;
        let client = client(pin, &Scheme::resolve("cubic", &[]).expect("it is there"));
        let target = client.local_addr().expect("it is bound");
        let receiving = tokio::spawn(async move { receive(endpoint).await.ok() });
        let connection = connect(&client, relayed).await;
        mode.store(CORRUPT, Ordering::SeqCst);
        let attacker = UdpSocket::bind(LOCAL).expect("a socket");
        let attack = async {
            let mut rng = Rng::new(SEED);
            for _ in 0..2000 {
                let size = 1 + rng.below(1400) as usize;
                let noise: Vec<u8> = (0..size).map(|_| rng.next_u64() as u8).collect();
                let to = if rng.chance(0.5) { address } else { target };
                let _ = attacker.send_to(&noise, to);
                tokio::task::yield_now().await;
            }
        };
        let sent = data(3_000_000);
        let (result, ()) = tokio::join!(upload(&connection, &sent), attack);
        assert_eq!(result, Ok(()), "seed {SEED}");
        connection.close(0u8.into(), b"");
        assert!(receiving.await.expect("no panic").expect("it arrives") == sent, "seed {SEED}");
    });
}

#[test]
fn a_sender_whose_receiver_moves_to_another_address_gets_a_fresh_controller_and_goes_on() {
    let _alone = alone();
    run(async {
        let (config, pin) = tls::server([8; 32]).expect("a key");
        let crypto = noq::crypto::rustls::QuicServerConfig::try_from(config).expect("a suite");
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let factory = Arc::new(Factory::new(&plain(&COUNTED)).expect("no hook").observed());
        let mut transport = TransportConfig::default();
        transport.congestion_controller_factory(Arc::clone(&factory) as _);
        config.transport_config(Arc::new(transport));
        let endpoint = Endpoint::server(config, LOCAL.parse().expect("one")).expect("a socket");
        let address = endpoint.local_addr().expect("it is bound");
        let sent = data(40_000_000);
        let expected = sent.clone();
        let sending = tokio::spawn(async move {
            let connection = endpoint.accept().await.expect("a client").await.expect("it shakes");
            upload(&connection, &sent).await
        });
        let client = client(pin, &Scheme::resolve("cubic", &[]).expect("it is there"));
        let connection = connect(&client, address).await;
        let mut stream = connection.accept_uni().await.expect("a stream");
        let mut received = vec![0; expected.len()];
        let (first, rest) = received.split_at_mut(1_000_000);
        stream.read_exact(first).await.expect("it begins");
        client.rebind(UdpSocket::bind(LOCAL).expect("a socket")).expect("it is bound");
        stream.read_exact(rest).await.expect("it goes on");
        assert_eq!(stream.read_to_end(1).await.expect("that is all"), [] as [u8; 0]);
        assert!(received == expected);
        assert_eq!(sending.await.expect("no panic"), Ok(()));
        assert!(factory.handles().len() >= 2, "a controller for each path");
    });
}

/// Answers with the ends of what a number may be, in turn.
struct Wild(u64);

impl Controller for Wild {
    fn on_ack(&mut self, _: &Ack) {
        self.0 += 1;
    }
    fn on_loss(&mut self, _: &Loss) {
        self.0 += 1;
    }
    fn control(&self) -> Control {
        let ends = [0, 1, u64::MAX];
        let [cwnd, rate, ssthresh] = [self.0, self.0 / 3, self.0 / 9].map(|n| ends[n as usize % 3]);
        Control { cwnd: Bytes(cwnd), pacing_rate: Rate(rate), ssthresh: Bytes(ssthresh) }
    }
}

static WILD: Spec =
    Spec { name: "wild", about: "", source: "", params: &[], build: |_, _| Box::new(Wild(0)) };

#[test]
fn answers_that_no_sender_can_obey_end_no_connection() {
    run(async {
        let (endpoint, pin) = server().expect("a server");
        let address = endpoint.local_addr().expect("it is bound");
        let receiving = tokio::spawn(async move { receive(endpoint).await.ok() });
        let client = client(pin, &plain(&WILD));
        let connection = connect(&client, address).await;
        let sent = data(20_000);
        assert_eq!(upload(&connection, &sent).await, Ok(()));
        connection.close(0u8.into(), b"");
        assert!(receiving.await.expect("no panic").expect("it arrives") == sent);
    });
}

/// The shipped policy with weights so large that what they give is not a number.
fn broken_policy() -> Scheme {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/policies/flagship");
    let mut load = |name: &str, _: u64| {
        let mut content = std::fs::read(name).map_err(|error| error.to_string())?;
        if name.ends_with(".safetensors") {
            let header = 8 + u64::from_le_bytes(content[..8].try_into().expect("eight")) as usize;
            for (place, number) in content[header..].chunks_exact_mut(4).enumerate() {
                let huge = if place % 2 == 0 { f32::MAX } else { f32::MIN };
                number.copy_from_slice(&huge.to_le_bytes());
            }
        }
        Ok(content)
    };
    let entry = Entry::find("policy").expect("in the table");
    let given = [("policy".to_owned(), ParamValue::Word(folder.display().to_string()))];
    Scheme::open(entry, &given, &mut load).expect("it is read")
}

#[test]
fn a_policy_whose_answer_is_not_a_number_leaves_its_connection_to_cubic() {
    run(async {
        let (endpoint, pin) = server().expect("a server");
        let address = endpoint.local_addr().expect("it is bound");
        let receiving = tokio::spawn(async move { receive(endpoint).await.ok() });
        let factory = Arc::new(Factory::new(&broken_policy()).expect("no hook").observed());
        let client = client_of(pin, Arc::clone(&factory));
        let connection = connect(&client, address).await;
        let sent = data(20_000_000);
        assert_eq!(upload(&connection, &sent).await, Ok(()));
        assert!(factory.handles()[0].fell_back(), "{:?}", factory.handles()[0].counters());
        connection.close(0u8.into(), b"");
        assert!(receiving.await.expect("no panic").expect("it arrives") == sent);
    });
}

/// 10 000 are those of `make bench-quic`.
#[test]
fn connections_that_open_and_close_leave_no_controller() {
    let _alone = alone();
    run(async {
        let (endpoint, pin) = server().expect("a server");
        let address = endpoint.local_addr().expect("it is bound");
        let receiving = tokio::spawn(async move {
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(async move {
                    let connection = incoming.await.expect("it shakes hands");
                    let mut stream = connection.accept_uni().await.expect("a stream");
                    stream.read_to_end(1000).await.expect("its data");
                    connection.closed().await;
                });
            }
        });
        let client = client(pin, &plain(&COUNTED));
        for number in 0..200 {
            let connection = connect(&client, address).await;
            assert_eq!(upload(&connection, &data(1000)).await, Ok(()), "{number}");
            connection.close(0u8.into(), b"");
        }
        client.wait_idle().await;
        drop(client);
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(ALIVE.load(Ordering::SeqCst), 0);
        receiving.abort();
    });
}
