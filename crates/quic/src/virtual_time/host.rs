//! An end of a connection, by the API that quinn and its fork noq share. This file is compiled twice, in `super::noq` and
//! in `super::quinn`: what differs is there.
use super::proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use super::proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, ReadError, ServerConfig, StreamEvent, StreamId, TransportConfig,
    ValidationTokenConfig, VarInt,
};
use super::{Factory, NAME, ONE, Paths};
use crate::tls::Keys;
use crate::virtual_time::end::{Connect, Departure, End, PathState, Paths as _, Progress};
use crate::virtual_time::plan::HEADER_BYTES;
use crate::virtual_time::watched::{Seen, WatchedFactory};
use crate::virtual_time::wire::Payload;
use ackademy::sim::plan::ConnectionPlan;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A connection of this stack, whose endpoints' random numbers come from `seed`; `seen` has what each of its paths
/// counts.
pub(crate) fn connect(
    plan: &ConnectionPlan,
    (keys, seed): (&Keys, [u8; 32]),
    controllers: Factory,
    seen: Vec<Arc<Mutex<Seen>>>,
) -> Connect {
    let endpoint = endpoint_config(plan, seed);
    let mut transport = transport(plan);
    let server = server_config(plan, keys);
    let watched = WatchedFactory::new(controllers, seen);
    transport.congestion_controller_factory(Arc::new(watched));
    let client = QuicClientConfig::try_from(Arc::clone(&keys.client)).expect(SUITE);
    let mut client = ClientConfig::new(Arc::new(client));
    client.transport_config(Arc::new(transport));
    let paths = plan.subflows.len();
    Box::new(move |now| {
        let mut sender = Host::new(&endpoint, None, paths);
        sender.connect(now, client).expect("the address and the name are valid");
        [Box::new(sender), Box::new(Host::new(&endpoint, Some(server), paths))]
    })
}

/// How both ends send what this connection asks for.
fn transport(plan: &ConnectionPlan) -> TransportConfig {
    let mtu = (plan.sender.packet.0 - HEADER_BYTES) as u16;
    let window = match &plan.mptcp {
        Some(mptcp) => mptcp.receive_buffer.0,
        None => plan.sender.receiver_window_packets.saturating_mul(plan.sender.packet.0),
    };
    let window = VarInt::from_u64(window).unwrap_or(VarInt::MAX);
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(mtu)
        .min_mtu(mtu)
        .mtu_discovery_config(None)
        .max_idle_timeout(None)
        .stream_receive_window(window)
        .receive_window(window)
        .max_concurrent_uni_streams(VarInt::from_u32(STREAMS_MAX))
        .enable_segmentation_offload(false);
    super::allow_paths(&mut transport, plan.subflows.len());
    transport
}

fn server_config(plan: &ConnectionPlan, keys: &Keys) -> Arc<ServerConfig> {
    let crypto = QuicServerConfig::try_from(Arc::clone(&keys.server)).expect(SUITE);
    let mut server = ServerConfig::with_crypto(Arc::new(crypto));
    let mut tokens = ValidationTokenConfig::default();
    tokens.sent(0); // for later connections, of which there is none
    server.validation_token_config(tokens).transport_config(Arc::new(transport(plan)));
    Arc::new(server)
}

fn endpoint_config(plan: &ConnectionPlan, seed: [u8; 32]) -> Arc<EndpointConfig> {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &seed);
    let mut config = EndpointConfig::new(Arc::new(key));
    config.rng_seed(Some(seed)).grease_quic_bit(false);
    let mtu = (plan.sender.packet.0 - HEADER_BYTES) as u16;
    config.max_udp_payload_size(mtu).expect("`check` has seen the size");
    Arc::new(config)
}

struct Host {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    paths: Paths,
    path_count: usize,
    is_server: bool,
    pieces: Pieces,
    /// Streams of the peer that are not read to their end, in order, and what was read of them and not told: a stream
    /// comes after those before it.
    readable: Vec<(StreamId, u64)>,
}

/// The streams that an end writes.
#[derive(Default)]
struct Pieces {
    /// The one that is written, and how much more goes there.
    open: Option<(StreamId, u64)>,
    opened: i32,
    unacknowledged: u64,
}

impl Pieces {
    fn current(&mut self, connection: &mut Connection) -> Option<(StreamId, u64)> {
        if self.open.is_none() {
            let id = connection.streams().open(Dir::Uni)?;
            self.open = Some((id, PIECE_BYTES));
            self.opened += 1;
            self.unacknowledged += 1;
            // It fails for a stream that is closed only.
            let _ = connection.send_stream(id).set_priority(-self.opened);
        }
        self.open
    }

    fn took(&mut self, bytes: u64) {
        if let Some((_, room)) = &mut self.open {
            *room -= bytes;
        }
    }

    fn finish(&mut self, connection: &mut Connection) {
        if let Some((id, _)) = self.open.take() {
            // It fails for a stream that the peer has stopped only.
            let _ = connection.send_stream(id).finish();
        }
    }
}

impl Host {
    fn new(
        config: &Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        path_count: usize,
    ) -> Self {
        Self {
            is_server: server.is_some(),
            endpoint: super::endpoint(Arc::clone(config), server),
            connection: None,
            paths: Paths::new(),
            path_count,
            pieces: Pieces::default(),
            readable: Vec::new(),
        }
    }

    fn connect(&mut self, now: Instant, config: ClientConfig) -> Result<(), ConnectError> {
        let server = address(0, SERVER);
        self.connection = Some(self.endpoint.connect(now, config, server, "server")?);
        Ok(())
    }

    fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    fn open_paths(&mut self, now: Instant) {
        let Self { connection: Some((_, connection)), paths, .. } = self else { return };
        if !self.is_server {
            paths.open(connection, (now, self.path_count), of_client);
        }
    }
}

impl End for Host {
    fn receive(&mut self, now: Instant, (payload, path): (Payload, usize), answer: &mut Vec<u8>) {
        let Payload { bytes, ecn } = payload;
        let (client, server) = of_client(path);
        let way = if self.is_server { (client, server) } else { (server, client) };
        match super::handle(&mut self.endpoint, now, way, (bytes, ecn), answer) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some(connection) = self.connection() {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) if self.connection.is_none() => {
                self.connection = self.endpoint.accept(incoming, now, answer, None).ok();
            }
            _ => {}
        }
    }

    fn next_timer(&mut self) -> Option<Instant> {
        self.connection()?.poll_timeout()
    }

    fn on_timer(&mut self, now: Instant) {
        if let Some(connection) = self.connection()
            && connection.poll_timeout().is_some_and(|due| due <= now)
        {
            connection.handle_timeout(now);
        }
    }

    fn progress(&mut self, now: Instant) -> Progress {
        let mut found = Progress::default();
        self.open_paths(now);
        let Some((handle, connection)) = &mut self.connection else { return found };
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        self.readable.push((id, 0));
                    }
                }
                Event::Stream(StreamEvent::Finished { .. }) => {
                    self.pieces.unacknowledged -= 1;
                }
                Event::ConnectionLost { reason } => found.lost = Some((NAME, reason.to_string())),
                _ => {}
            }
        }
        let mut is_next = true;
        self.readable.retain_mut(|(id, waiting)| {
            let (bytes, is_open) = read(connection, *id);
            *waiting += bytes;
            if is_next {
                found.read += std::mem::take(waiting);
            }
            is_next &= !is_open;
            is_open || *waiting > 0
        });
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(answer);
            }
        }
        found
    }

    fn set_send_window(&mut self) {
        let Self { connection: Some((_, connection)), paths, .. } = self else { return };
        connection.set_send_window(2 * paths.window(connection) + AHEAD_BYTES);
    }

    fn write(&mut self, bytes: u64) -> u64 {
        let Self { connection: Some((_, connection)), pieces, .. } = self else { return 0 };
        let mut written = 0;
        while written < bytes && !connection.is_handshaking() {
            let Some((id, room)) = pieces.current(connection) else { break };
            let chunk = (bytes - written).min(room).min(CHUNK.len() as u64) as usize;
            let took = super::write(connection.send_stream(id), &CHUNK[..chunk]);
            if took == 0 {
                break;
            }
            written += took;
            pieces.took(took);
            if took == room {
                pieces.finish(connection);
            }
        }
        written
    }

    fn finish(&mut self) {
        if let Some((_, connection)) = &mut self.connection {
            self.pieces.finish(connection);
        }
    }

    fn is_acknowledged(&self) -> bool {
        self.pieces.unacknowledged == 0
    }

    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Departure> {
        buffer.clear();
        let sent = self.connection()?.poll_transmit(now, ONE, buffer)?;
        let path = match sent.destination {
            SocketAddr::V4(address) => usize::from(address.ip().octets()[2]),
            SocketAddr::V6(_) => 0,
        };
        Some(Departure { size: sent.size, ecn: super::ecn(sent.ecn), path })
    }

    fn path(&mut self, path: usize) -> Option<PathState> {
        let Self { connection: Some((_, connection)), paths, .. } = self else { return None };
        paths.state(connection, path)
    }
}

/// Reads a stream; returns how many bytes, and whether there may be more.
fn read(connection: &mut Connection, id: StreamId) -> (u64, bool) {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return (0, false) };
    let mut bytes = 0;
    let is_open = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => bytes += chunk.bytes.len() as u64,
            Ok(None) => break false,
            Err(error) => break matches!(error, ReadError::Blocked),
        }
    };
    // What flow control allows now leaves with the next transmission, which follows at once.
    let _ = chunks.finalize();
    (bytes, is_open)
}

fn address(path: usize, last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, path as u8, last], PORT))
}

/// The client's address on a path, and the server's.
fn of_client(path: usize) -> (SocketAddr, SocketAddr) {
    (address(path, CLIENT), address(path, SERVER))
}

/// Of a piece: fewer packets than a receiver allows gaps.
const PIECE_BYTES: u64 = 1 << 20;
/// How much more than two windows is handed over in advance.
const AHEAD_BYTES: u64 = 1 << 14;
/// Most streams that a receiver allows, each a piece of the data: more than a window has.
const STREAMS_MAX: u32 = 1 << 16;
/// Why a configuration of rustls does.
const SUITE: &str = "the provider has QUIC's initial cipher suite";
/// Last bytes of the ends' addresses, and their port.
const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const PORT: u16 = 443;
/// What applications send.
static CHUNK: [u8; 1 << 16] = [0; 1 << 16];
