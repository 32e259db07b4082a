//! Our controllers in quinn: both of its ends in virtual time, over a path of fixed rate and delay that loses packets.
use ackademy::rng::Rng;
use ackademy::scheme::Scheme;
use ackademy::units::Bytes;
use ackademy_quic::{Factory, tls};
use bytes::BytesMut;
use quinn_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, EndpointConfig,
    Event, ServerConfig, StreamEvent, StreamId, TransportConfig,
};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Where random points come from.
const SEED: u64 = 43;
const BYTES: usize = 4_000_000;

/// One end.
struct End {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    address: SocketAddr,
    /// When the path is free again.
    free: Instant,
}

impl End {
    fn new(port: u16, server: Option<Arc<ServerConfig>>, now: Instant) -> Self {
        let endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), server, false, None);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        Self { endpoint, connection: None, address, free: now }
    }

    fn receive(&mut self, now: Instant, from: SocketAddr, data: BytesMut) {
        let mut answer = Vec::new();
        match self.endpoint.handle(now, from, None, None, data, &mut answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                self.connection.as_mut().expect("it is open").1.handle_event(event);
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.connection = self.endpoint.accept(incoming, now, &mut answer, None).ok();
            }
            _ => {}
        }
    }

    fn exchange(&mut self) {
        let Some((handle, connection)) = &mut self.connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
    }
}

fn configs(factory: &Arc<Factory>) -> (ClientConfig, Arc<ServerConfig>) {
    let (server, pin) = tls::server([7; 32]).expect("a key");
    let server = QuicServerConfig::try_from(server).expect("a suite");
    let client = QuicClientConfig::try_from(tls::client(pin).expect("TLS 1.3")).expect("a suite");
    let mut transport = TransportConfig::default();
    transport.congestion_controller_factory(Arc::clone(factory) as _).mtu_discovery_config(None);
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::new(transport));
    (client, Arc::new(ServerConfig::with_crypto(Arc::new(server))))
}

/// Sends [`BYTES`] over 20 Mb/s and 40 ms, of which `ratio` is lost; how long it takes, in seconds.
fn transfer(factory: &Arc<Factory>, ratio: f64) -> f64 {
    #[expect(clippy::disallowed_methods, reason = "an origin: only distances from it are used")]
    let began = Instant::now();
    let (config, server) = configs(factory);
    let mut ends = [End::new(1, None, began), End::new(2, Some(server), began)];
    let to = ends[1].address;
    ends[0].connection = ends[0].endpoint.connect(began, config, to, "server").ok();
    let (mut now, mut rng, mut number) = (began, Rng::new(SEED), 0);
    let mut wire: BTreeMap<(Instant, u64), (usize, BytesMut)> = BTreeMap::new();
    let (mut stream, mut written, mut read) = (None, 0, 0);
    while read < BYTES {
        write(&mut ends[0], &mut stream, &mut written);
        read += drain(&mut ends[1]);
        for (from, end) in ends.iter_mut().enumerate() {
            end.exchange();
            let Some((_, connection)) = &mut end.connection else { continue };
            let mut buffer = Vec::new();
            while let Some(transmit) = connection.poll_transmit(now, 1, &mut buffer) {
                let wait = Duration::from_nanos(transmit.size as u64 * 400);
                end.free = end.free.max(now) + wait;
                number += 1;
                let is_full = end.free > now + Duration::from_millis(60);
                if !(is_full || from == 0 && rng.chance(ratio)) {
                    let arrives = end.free + Duration::from_millis(20);
                    wire.insert((arrives, number), (1 - from, BytesMut::from(&buffer[..])));
                }
                buffer.clear();
            }
        }
        let next = wire.first_key_value().map(|(&(at, _), _)| at);
        let timers = ends.iter_mut().filter_map(|end| end.connection.as_mut()?.1.poll_timeout());
        now = timers.chain(next).min().expect("something is due").max(now);
        assert!(now < began + Duration::from_secs(120), "{read} bytes in two minutes");
        for end in &mut ends {
            if let Some((_, connection)) = &mut end.connection {
                connection.handle_timeout(now);
            }
        }
        while let Some(entry) = wire.first_entry().filter(|entry| entry.key().0 <= now) {
            let (to, data) = entry.remove();
            let from = ends[1 - to].address;
            ends[to].receive(now, from, data);
        }
    }
    now.duration_since(began).as_secs_f64()
}

fn write(end: &mut End, stream: &mut Option<StreamId>, written: &mut usize) {
    let Some((_, connection)) = &mut end.connection else { return };
    while connection.poll().is_some() {}
    *stream = stream.or_else(|| connection.streams().open(Dir::Uni));
    let Some(id) = *stream else { return };
    let block = [1; 8192];
    while *written < BYTES {
        let most = block.len().min(BYTES - *written);
        let Ok(took) = connection.send_stream(id).write(&block[..most]) else { return };
        *written += took;
    }
}

fn drain(end: &mut End) -> usize {
    let Some((_, connection)) = &mut end.connection else { return 0 };
    let mut read = 0;
    while let Some(event) = connection.poll() {
        if let Event::Stream(StreamEvent::Opened { .. }) = event {
            let _ = connection.streams().accept(Dir::Uni);
        }
    }
    let id = StreamId::new(quinn_proto::Side::Client, Dir::Uni, 0);
    let mut stream = connection.recv_stream(id);
    if let Ok(mut chunks) = stream.read(true) {
        while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
            read += chunk.bytes.len();
        }
        let _ = chunks.finalize();
    }
    read
}

#[test]
fn our_controllers_govern_a_connection_of_quinn() {
    let mut rng = Rng::new(SEED);
    for name in ["cubic", "new_reno", "bbr3", "own_queue"] {
        let ratio = rng.uniform_in(0.001, 0.01);
        let scheme = Scheme::resolve(name, &[]).expect("in the table");
        let factory = Arc::new(Factory::new(&scheme).expect("no hook").observed());
        let took = transfer(&factory, ratio);
        // 1.6 s at the rate of the link.
        let place = format!("{name}, {ratio} lost, seed {SEED}: {took} s");
        assert!(took > 1.6 && took < 30.0, "{place}");
        let handle = &factory.handles()[0];
        assert!(handle.delivery_rate().0 > 500_000, "{place}: {handle:?}");
        assert!(handle.control().cwnd > Bytes(2400) && !handle.fell_back(), "{place}");
    }
}
