//! What a run leaves behind: one row per flow and link, and time series in columns.
use crate::units::Span;

/// Counters and means of one flow (subflow).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowRow {
    /// Name; a subflow's ends in `.N`.
    pub flow: String,
    /// Controller.
    pub controller: String,
    /// First byte offered, in seconds.
    pub start_s: f64,
    /// Time with something to send or to be acknowledged.
    pub active_s: f64,
    /// Full packet on the wire.
    pub mss_bytes: u64,
    /// Packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Bytes sent, retransmissions included.
    pub sent_bytes: u64,
    /// Packets sent again.
    pub retransmitted_packets: u64,
    /// Data packets that did not survive the network.
    pub dropped_packets: u64,
    /// Of these, dropped by queues.
    pub queue_drops: u64,
    /// Of these, lost on the wire.
    pub random_losses: u64,
    /// Data packets that arrived, duplicates included.
    pub received_packets: u64,
    /// Bytes delivered in order, as counted on the wire.
    pub delivered_bytes: u64,
    /// Payload delivered in order.
    pub goodput_bytes: u64,
    /// Bytes acknowledged as carrying a congestion mark.
    pub ce_marked_bytes: u64,
    /// Bytes the sender declared lost, rightly or not.
    pub declared_lost_bytes: u64,
    /// Round-trip samples.
    pub rtt_samples: u64,
    /// Their mean; NaN without samples, as the next three.
    pub rtt_mean_ms: f64,
    /// The smallest.
    pub rtt_min_ms: f64,
    /// The largest.
    pub rtt_max_ms: f64,
    /// Mean over in-order deliveries of the sender's latest sample: how Kong 2018's numbers were
    /// taken (proposed: fits the published ones).
    pub rtt_at_delivery_ms: f64,
    /// Propagation there and back.
    pub base_rtt_ms: f64,
    /// Mean time from sender to receiver; NaN if nothing arrived.
    pub owd_mean_ms: f64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Loss episodes without time-out.
    pub recoveries: u64,
    /// Transfers of the connection that were fully acknowledged.
    pub transfers: u64,
    /// Their mean duration; NaN if there is none.
    pub fct_mean_ms: f64,
    /// Counters of the controller.
    pub counters: Vec<(&'static str, f64)>,
}

/// Counters and means of one link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkRow {
    /// Name.
    pub link: String,
    /// Packets offered.
    pub arrived_packets: u64,
    /// Dropped by the queue.
    pub queue_drops: u64,
    /// Lost on the wire.
    pub random_losses: u64,
    /// Marked by the queue.
    pub marked_packets: u64,
    /// Put on the wire by the end of the run, and not lost.
    pub delivered_packets: u64,
    /// Their bytes.
    pub delivered_bytes: u64,
    /// Still in the queue, or in transmission, at the end of the run.
    pub queued_packets: u64,
    /// Mean wait before transmission; NaN if there was none.
    pub wait_mean_ms: f64,
    /// What it could have carried in the run.
    pub capacity_bytes: u64,
}

/// Samples of flows, one column per quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowSeries {
    /// Time.
    pub time_s: Vec<f64>,
    /// Index into the flow rows.
    pub flow: Vec<u32>,
    /// Window.
    pub cwnd_packets: Vec<f64>,
    /// Threshold; NaN for none.
    pub ssthresh_packets: Vec<f64>,
    /// In flight.
    pub inflight_bytes: Vec<u64>,
    /// Smoothed round trip; NaN before the first sample.
    pub srtt_ms: Vec<f64>,
    /// Latest round trip; NaN before the first sample.
    pub rtt_ms: Vec<f64>,
    /// Delivered in order so far.
    pub delivered_bytes: Vec<u64>,
    /// Latest delivery-rate sample.
    pub delivery_rate_mbps: Vec<f64>,
    /// Pacing rate; NaN for none.
    pub pacing_mbps: Vec<f64>,
    /// Data packets dropped so far.
    pub lost_packets: Vec<u64>,
}

/// Samples of links, one column per quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSeries {
    /// Time.
    pub time_s: Vec<f64>,
    /// Index into the link rows.
    pub link: Vec<u32>,
    /// Packets in the system.
    pub queue_packets: Vec<u64>,
    /// Bytes in the system.
    pub queue_bytes: Vec<u64>,
}

impl LinkSeries {
    /// Adds a link's samples of (packets, bytes), `interval` apart from time 0 on.
    pub fn append(&mut self, link: u32, interval: Span, samples: &[(u64, u64)]) {
        for (step, &(packets, bytes)) in samples.iter().enumerate() {
            self.time_s.push((interval * step as u64).as_secs_f64());
            self.link.push(link);
            self.queue_packets.push(packets);
            self.queue_bytes.push(bytes);
        }
    }
}

/// Everything a run leaves behind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// One row per flow.
    pub flows: Vec<FlowRow>,
    /// One row per link.
    pub links: Vec<LinkRow>,
    /// Samples of flows.
    pub flow_series: FlowSeries,
    /// Samples of links.
    pub link_series: LinkSeries,
    /// Events handled, for benchmarks.
    pub events: u64,
}

/// Mean of nanoseconds, in milliseconds; NaN of nothing.
pub fn mean_ms(sum_ns: u128, count: u64) -> f64 {
    if count == 0 { f64::NAN } else { sum_ns as f64 / count as f64 / 1e6 }
}
