//! One sender: its application, its socket, and what was measured of it.
use super::content::Content;
use super::iperf3;
use super::mptcp_info::Connection;
use super::plan::{Flow, KERNEL, MPTCP_OPTION, Pair, Subflow};
use super::receivers::Arrived;
use super::tcp_info::TcpInfo;
use super::watch::{Packet, Watch};
use crate::link::fabric::Losses;
use crate::namespace::Namespace;
use ackademy::rng::Seed;
use ackademy::sim::plan::TrafficSpec;
use ackademy::sim::record::FlowRow;
use ackademy::sim::traffic::App;
use ackademy::units::{Bytes, Span, Time};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

/// What all senders of a run share.
#[derive(Clone, Copy)]
pub struct Setting<'a> {
    /// Connections.
    pub flows: &'a [Flow],
    /// Sending hosts, by pair.
    pub hosts: &'a [(&'a Pair, &'a Namespace)],
    /// What this project's controllers are registered as.
    pub agent: &'a str,
    /// Bulk flows are somebody else's to send.
    pub foreign: bool,
    /// What they carry.
    pub content: &'a Content,
    /// What has arrived, by flow.
    pub arrived: &'a [Arrived],
    /// What the network has dropped, by flow.
    pub losses: &'a [Losses],
    /// Headers of a data packet.
    pub header: Bytes,
    /// Of the applications' draws.
    pub seed: Seed,
    /// When the run begins, by this machine's clock.
    pub epoch: Time,
    /// When it ends, from then on.
    pub duration: Time,
    /// Distance of samples; zero for none.
    pub sample_interval: Span,
}

impl Setting<'_> {
    /// Whether somebody else sends this flow.
    pub fn is_foreign(&self, flow: &Flow) -> bool {
        self.foreign && iperf3::is_for(flow)
    }

    /// Sizes of a flow's packets: what a host refuses to be small is as large as it may be.
    pub fn packet(&self, flow: &Flow) -> Packet {
        let cbr = matches!(flow.plan.traffic, TrafficSpec::Cbr { .. });
        let mtu = Bytes(u64::from(self.hosts[flow.pair].0.mtu));
        let data = if flow.is_multipath() { MPTCP_OPTION } else { 0 };
        let header = Bytes(self.header.0 + data);
        Packet { bytes: if cbr { flow.plan.sender.packet } else { mtu }, header }
    }
}

/// One connection's sending end.
pub(super) struct Sender {
    pub(super) app: App,
    pub(super) socket: Socket,
    /// One of each subflow.
    pub(super) watches: Vec<Watch>,
    /// Payload that MPTCP has sent again.
    pub(super) reinjected: u64,
    /// First byte offered.
    pub(super) begun: Time,
    /// Payload written.
    pub(super) written: u64,
    /// There was something to send, or to be acknowledged, at the latest reading.
    pub(super) active: bool,
    pub(super) failure: Option<String>,
}

/// Where a connection stands.
pub(super) enum Socket {
    None,
    Connecting(TcpStream),
    Open(TcpStream),
    /// Datagrams of so many bytes of payload at such a distance, the next one then.
    Datagrams(UdpSocket, usize, Span, Time),
}

impl Sender {
    /// Before its start.
    pub(super) fn new(flow: &Flow, setting: &Setting) -> Self {
        let plan = &flow.plan;
        let rng = setting.seed.stream("traffic", flow.stream);
        let paced = plan.sender.pacing
            || !plan.controller.starts_with(KERNEL)
            || plan.controller == "kernel:bbr";
        Self {
            app: App::new(plan.traffic.clone(), flow.start, plan.stop, rng),
            socket: Socket::None,
            watches: vec![Watch::new(setting.packet(flow), paced); flow.subflows.len()],
            reinjected: 0,
            begun: flow.start,
            written: 0,
            active: false,
            failure: None,
        }
    }

    /// Ends it, and remembers why.
    pub(super) fn fail(&mut self, flow: &Flow, error: &impl std::fmt::Display) {
        self.socket = Socket::None;
        self.app.supply.unsent = 0;
        self.failure.get_or_insert_with(|| format!("flow {:?}: {error}", flow.plan.name));
    }

    /// Reads what the kernel measured; `in_order` has arrived.
    pub(super) fn read(&mut self, flow: &Flow, in_order: u64) {
        let Socket::Open(stream) = &self.socket else { return };
        if flow.is_multipath() {
            if let Some(connection) = Connection::read(stream.as_fd()) {
                self.read_subflows(flow, &connection);
            }
        } else if let Some(info) = TcpInfo::read(stream.as_fd()) {
            self.watches[0].read(info, in_order);
        }
    }

    /// In order on a subflow is what its TCP has had acknowledged.
    fn read_subflows(&mut self, flow: &Flow, connection: &Connection) {
        self.reinjected = connection.reinjected;
        if connection.fell_back {
            let why = "fell back to TCP: MPTCP did not reach the receiver";
            self.failure.get_or_insert_with(|| format!("flow {:?}: {why}", flow.plan.name));
        }
        for open in &connection.subflows {
            let known = flow.subflows.iter().position(|subflow| subflow.sender == open.local);
            if let Some(index) = known {
                self.watches[index].read(open.tcp, open.tcp.bytes_acked);
            }
        }
    }

    /// A subflow that should have been there for a while, and was not.
    pub(super) fn unopened(&self, flow: &Flow, now: Time) -> Option<usize> {
        let due = |subflow: &Subflow| subflow.start.max(self.begun) + OPENING;
        let is_open = matches!(self.socket, Socket::Open(_)) && self.active && flow.is_multipath();
        let mut subflows = flow.subflows.iter().zip(&self.watches);
        let missing = |(subflow, watch): (&Subflow, &Watch)| {
            is_open && !watch.was_read() && due(subflow) < subflow.stop.min(now)
        };
        subflows.position(missing)
    }

    /// What is known at the sender's end of a subflow.
    pub(super) fn row(&self, flow: &Flow, index: usize, arrived: &Arrived, now: Time) -> FlowRow {
        let mut row = FlowRow {
            flow: flow.subflows[index].name.clone(),
            controller: flow.plan.controller.clone(),
            start_s: self.begun.as_secs_f64(),
            active_s: self.app.active(now).as_secs_f64(),
            transfers: self.app.transfers,
            offered_writes: u64::from(self.app.writes.offered),
            refused_writes: u64::from(self.app.writes.refused),
            fct_mean_ms: f64::NAN,
            stall_max_ms: f64::NAN,
            owd_mean_ms: f64::NAN,
            ..FlowRow::default()
        };
        if self.app.transfers > 0 {
            row.fct_mean_ms = self.app.transfer_time.as_millis_f64() / self.app.transfers as f64;
        }
        self.watches[index].complete(&mut row);
        if let TrafficSpec::Cbr { packet_bytes, .. } = flow.plan.traffic {
            let size = u64::from(packet_bytes);
            let datagrams = arrived.datagrams.load(Ordering::Relaxed);
            "none".clone_into(&mut row.controller);
            row.sent_packets = self.written;
            row.sent_bytes = self.written * size;
            row.delivered_bytes = datagrams * size;
            row.goodput_bytes = row.delivered_bytes;
        }
        row
    }
}

/// What is left of a datagram without the headers of IP and UDP.
pub(super) fn datagram_payload(flow: &Flow, packet_bytes: u32) -> usize {
    let headers = if flow.sender.is_ipv4() { 20 + 8 } else { 40 + 8 };
    (packet_bytes as usize).saturating_sub(headers)
}

/// Longer than it takes the kernel's path manager to open a subflow over any path of a scenario.
const OPENING: Span = Span::from_millis(3000);
