//! One end of a connection: noq's endpoint and what runs on it.
use super::wire::Payload;
use ackademy::units::Time;
use bytes::Bytes;
use noq_proto::congestion::Controller;
use noq_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, FourTuple, PathId, PathStats, PathStatus, ServerConfig, StreamEvent,
    StreamId, Transmit,
};
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

pub(crate) struct Host {
    endpoint: Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Of each path, what noq calls it, as far as it is open.
    pub(crate) paths: Vec<PathId>,
    path_count: usize,
    is_server: bool,
    /// Its earliest wake-up that is scheduled.
    pub(crate) wake: Time,
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

/// What happened to the streams of an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes that have arrived in order, over all streams.
    pub(crate) read: u64,
    /// Why the connection was closed.
    pub(crate) lost: Option<String>,
}

impl Host {
    pub(crate) fn new(
        config: &Arc<EndpointConfig>,
        server: Option<Arc<ServerConfig>>,
        path_count: usize,
    ) -> Self {
        Self {
            is_server: server.is_some(),
            endpoint: Endpoint::new(Arc::clone(config), server, false),
            connection: None,
            paths: vec![PathId::ZERO],
            path_count,
            wake: Time::NEVER,
            pieces: Pieces::default(),
            readable: Vec::new(),
        }
    }

    pub(crate) fn connect(
        &mut self,
        now: Instant,
        config: ClientConfig,
    ) -> Result<(), ConnectError> {
        let server = address(0, SERVER);
        self.connection = Some(self.endpoint.connect(now, config, server, "server")?);
        Ok(())
    }

    pub(crate) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut().map(|(_, connection)| connection)
    }

    /// A datagram arrived. What the endpoint answers without a connection is not sent: both ends know each other.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        (payload, path): (Payload, usize),
        answer: &mut Vec<u8>,
    ) {
        let Payload { bytes, ecn } = payload;
        let tuple = four_tuple(path, self.is_server);
        match self.endpoint.handle(now, tuple, ecn, bytes, answer) {
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

    /// Fires the timer that is due.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        if let Some(connection) = self.connection()
            && connection.poll_timeout().is_some_and(|due| due <= now)
        {
            connection.handle_timeout(now);
        }
    }

    /// Handles what the connection tells; reads what has arrived.
    pub(crate) fn progress(&mut self, now: Instant) -> Progress {
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
                Event::ConnectionLost { reason } => found.lost = Some(reason.to_string()),
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

    /// Opens the paths that are not open, as far as the peer allows it yet.
    fn open_paths(&mut self, now: Instant) {
        let Some((_, connection)) = &mut self.connection else { return };
        while !self.is_server && self.paths.len() < self.path_count && !connection.is_handshaking()
        {
            let tuple = four_tuple(self.paths.len(), false);
            match connection.open_path(tuple, PathStatus::Available, now) {
                Ok(id) => self.paths.push(id),
                Err(_) => return,
            }
        }
    }

    /// What noq counted of a path.
    pub(crate) fn stats(&mut self, path: usize) -> PathStats {
        let id = self.paths.get(path).copied();
        let stats = id.and_then(|id| self.connection()?.path_stats(id));
        stats.unwrap_or_default()
    }

    /// Lets the application hand over what may leave soon, and no more: what is handed over is sent, also if the
    /// application then stops.
    pub(crate) fn set_send_window(&mut self) {
        let Self { connection: Some((_, connection)), paths, .. } = self else { return };
        let windows = paths.iter().filter_map(|&id| connection.congestion_state(id));
        let window: u64 = windows.map(Controller::window).sum();
        connection.set_send_window(2 * window + AHEAD_BYTES);
    }

    /// Hands over `bytes` of data; returns how many were taken. Data goes in pieces, a stream each, the earlier ones
    /// first: noq's receiver closes a connection in one of whose streams 1024 gaps are open.
    pub(crate) fn write(&mut self, bytes: u64) -> u64 {
        let Self { connection: Some((_, connection)), pieces, .. } = self else { return 0 };
        let mut written = 0;
        while written < bytes && !connection.is_handshaking() {
            let Some((id, room)) = pieces.current(connection) else { break };
            let chunk = (bytes - written).min(room).min(CHUNK.len() as u64) as usize;
            let mut chunks = [Bytes::from_static(&CHUNK[..chunk])];
            let took = connection.send_stream(id).write_chunks(&mut &mut chunks[..]).unwrap_or(0);
            if took == 0 {
                break;
            }
            written += took as u64;
            pieces.took(took as u64);
            if took as u64 == room {
                pieces.finish(connection);
            }
        }
        written
    }

    /// Nothing follows for now.
    pub(crate) fn finish(&mut self) {
        if let Some((_, connection)) = &mut self.connection {
            self.pieces.finish(connection);
        }
    }

    /// Whether the peer has acknowledged all that was written and finished.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.pieces.unacknowledged == 0
    }

    /// The next datagram to be sent, in `buffer`.
    pub(crate) fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Transmit> {
        buffer.clear();
        self.connection()?.poll_transmit(now, NonZeroUsize::MIN, buffer)
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
            Err(error) => break matches!(error, noq_proto::ReadError::Blocked),
        }
    };
    // What flow control allows now leaves with the next transmission, which follows at once.
    let _ = chunks.finalize();
    (bytes, is_open)
}

/// Which path a datagram takes.
pub(crate) fn path_of(transmit: &Transmit) -> usize {
    match transmit.destination {
        SocketAddr::V4(address) => usize::from(address.ip().octets()[2]),
        SocketAddr::V6(_) => 0,
    }
}

fn address(path: usize, last: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, path as u8, last], PORT))
}

fn four_tuple(path: usize, is_server: bool) -> FourTuple {
    let (own, peer) = if is_server { (SERVER, CLIENT) } else { (CLIENT, SERVER) };
    FourTuple::new(address(path, peer), Some(address(path, own).ip()))
}

/// Of a piece: fewer packets than noq allows gaps.
const PIECE_BYTES: u64 = 1 << 20;
/// How much more than two windows is handed over in advance.
const AHEAD_BYTES: u64 = 1 << 14;
/// Last bytes of the ends' addresses, and their port.
const CLIENT: u8 = 1;
const SERVER: u8 = 2;
const PORT: u16 = 443;
/// What applications send.
static CHUNK: [u8; 1 << 16] = [0; 1 << 16];
