//! One end of a connection, whatever stack it is of.
use super::wire::Payload;
use ackademy::control::Control;
use ackademy::units::Span;
use noq_proto::EcnCodepoint;
use std::net::SocketAddr;
use std::time::Instant;

/// Its endpoint, its connection and the streams on it.
pub(crate) trait End: Send {
    /// A datagram arrived on this path. What the endpoint answers without a connection is not sent: both ends know each
    /// other.
    fn receive(&mut self, now: Instant, from: (Payload, usize), answer: &mut Vec<u8>);

    /// When its next timer is due.
    fn next_timer(&mut self) -> Option<Instant>;

    /// Fires the timer that is due.
    fn on_timer(&mut self, now: Instant);

    /// Handles what the connection tells; reads what has arrived.
    fn progress(&mut self, now: Instant) -> Progress;

    /// Lets the application hand over what may leave soon, and no more: what is handed over is sent, also if the
    /// application then stops.
    fn set_send_window(&mut self);

    /// Hands over `bytes` of data; returns how many were taken. Data goes in pieces, a stream each, the earlier ones
    /// first: a receiver of noq closes a connection in one of whose streams 1024 gaps are open.
    fn write(&mut self, bytes: u64) -> u64;

    /// Nothing follows for now.
    fn finish(&mut self);

    /// Whether the peer has acknowledged all that was written and finished.
    fn is_acknowledged(&self) -> bool;

    /// The next datagram to be sent, in `buffer`.
    fn transmit(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Departure>;

    /// What it knows of a path that is open.
    fn path(&mut self, path: usize) -> Option<PathState>;
}

/// The paths of a stack's connection, which is a `C`.
pub(crate) trait Paths<C> {
    fn new() -> Self;

    /// Opens those that are not open, as far as the peer allows it yet; `ends` has a path's own address and the peer's.
    fn open(
        &mut self,
        connection: &mut C,
        at: (Instant, usize),
        ends: fn(usize) -> (SocketAddr, SocketAddr),
    );

    /// What their controllers allow together.
    fn window(&self, connection: &C) -> u64;

    /// See [`End::path`].
    fn state(&self, connection: &mut C, path: usize) -> Option<PathState>;
}

/// What happened to the streams of an end.
#[derive(Clone, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes that have arrived in order, over all streams.
    pub(crate) read: u64,
    /// Which stack closed the connection, and why.
    pub(crate) lost: Option<(&'static str, String)>,
}

/// A datagram that leaves.
pub(crate) struct Departure {
    pub(crate) size: usize,
    pub(crate) ecn: Option<EcnCodepoint>,
    pub(crate) path: usize,
}

/// What an end knows of a path.
pub(crate) struct PathState {
    pub(crate) control: Control,
    pub(crate) srtt: Span,
    /// Declared lost.
    pub(crate) lost: Lost,
}

/// Packets that a sender took for lost.
#[derive(Clone, Copy, Default)]
pub(crate) struct Lost {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
}

/// Connects, and returns both ends: the one that sends the data, and the one that receives.
pub(crate) type Connect = Box<dyn FnOnce(Instant) -> [Box<dyn End>; 2] + Send>;
