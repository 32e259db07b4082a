//! What a run leaves behind: one row per flow and link, and time series in columns.
use crate::histogram::SpanHistogram;
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
    /// Data packets that did not survive the network; copies that links made are not counted.
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
    /// Longest time, with something to send or to be acknowledged, in which nothing was delivered in
    /// order; NaN for a flow that was never active, and where it was not measured.
    pub stall_max_ms: f64,
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
    /// The median, to 0.8 %; NaN where it was not taken.
    pub rtt_p50_ms: f64,
    /// The 95th percentile, likewise.
    pub rtt_p95_ms: f64,
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
    /// Acknowledgements of data never sent, which the sender ignored; zero on the kernel, which counts none.
    pub unsent_acks: u64,
    /// Writes that the application offered to a bounded send buffer; zero with other traffic.
    pub offered_writes: u64,
    /// Of these, refused because the buffer was full.
    pub refused_writes: u64,
    /// Transfers of the connection that were fully acknowledged.
    pub transfers: u64,
    /// Their mean duration; NaN if there is none.
    pub fct_mean_ms: f64,
    /// Counters of the controller.
    pub counters: Vec<(&'static str, f64)>,
}

/// Counters and means of one connection.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConnectionRow {
    /// Name, also that of its flow if it has only one.
    pub connection: String,
    /// Controller.
    pub controller: String,
    /// How many subflows it has, open or not.
    pub subflows: u64,
    /// How it distributes data over them; empty with one.
    pub scheduler: String,
    /// First byte offered, in seconds.
    pub start_s: f64,
    /// Time with something to send or to be acknowledged.
    pub active_s: f64,
    /// Payload that the receiving application read, in order.
    pub goodput_bytes: u64,
    /// Payload that one subflow sent in place of another that had stalled or closed, or that blocked the
    /// window.
    pub reinjected_bytes: u64,
    /// Payload that came by more than one subflow.
    pub duplicate_bytes: u64,
    /// Most payload that waited at the receiver for earlier payload of another subflow.
    pub reorder_peak_bytes: u64,
    /// Transfers that were fully acknowledged.
    pub transfers: u64,
    /// Their mean duration; NaN if there is none.
    pub fct_mean_ms: f64,
}

impl ConnectionRow {
    /// Of a connection with one flow.
    pub fn of_flow(row: &FlowRow) -> Self {
        Self {
            connection: row.flow.clone(),
            controller: row.controller.clone(),
            subflows: 1,
            start_s: row.start_s,
            active_s: row.active_s,
            goodput_bytes: row.goodput_bytes,
            transfers: row.transfers,
            fct_mean_ms: row.fct_mean_ms,
            ..Self::default()
        }
    }
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
    /// Payload that flows over this link delivered in order.
    pub goodput_bytes: u64,
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
    /// Arrived so far, each byte once, in order or not.
    pub arrived_bytes: Vec<u64>,
    /// Latest delivery-rate sample.
    pub delivery_rate_mbps: Vec<f64>,
    /// Pacing rate; NaN for none.
    pub pacing_mbps: Vec<f64>,
    /// Data packets dropped so far.
    pub lost_packets: Vec<u64>,
}

impl FlowSeries {
    /// Adds the rows of another part of the same run.
    pub fn append(&mut self, mut other: Self) {
        self.time_s.append(&mut other.time_s);
        self.flow.append(&mut other.flow);
        self.cwnd_packets.append(&mut other.cwnd_packets);
        self.ssthresh_packets.append(&mut other.ssthresh_packets);
        self.inflight_bytes.append(&mut other.inflight_bytes);
        self.srtt_ms.append(&mut other.srtt_ms);
        self.rtt_ms.append(&mut other.rtt_ms);
        self.delivered_bytes.append(&mut other.delivered_bytes);
        self.arrived_bytes.append(&mut other.arrived_bytes);
        self.delivery_rate_mbps.append(&mut other.delivery_rate_mbps);
        self.pacing_mbps.append(&mut other.pacing_mbps);
        self.lost_packets.append(&mut other.lost_packets);
    }
}

/// Samples of links, one column per quantity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkSeries {
    /// Time.
    pub time_s: Vec<f64>,
    /// Index into the link rows.
    pub link: Vec<u32>,
    /// Packets in the system: those that wait and the one in transmission, for every kind of queue.
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
    /// One row per connection.
    pub connections: Vec<ConnectionRow>,
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

/// A quantile in milliseconds; NaN without spans.
pub fn quantile_ms(spans: &SpanHistogram, permille: u64) -> f64 {
    spans.quantile(permille).map_or(f64::NAN, Span::as_millis_f64)
}

/// A named list of columns of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Name.
    pub name: &'static str,
    /// Names of columns and what is in them, in order.
    pub columns: Vec<(&'static str, Column)>,
}

/// The values of a column, one per row.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Few texts, often repeated: row `i` holds `words[rows[i]]`.
    Texts {
        /// Each text once.
        words: Vec<String>,
        /// Which of them each row holds.
        rows: Vec<u32>,
    },
    /// Quantities; NaN where there is none.
    Numbers(Vec<f64>),
    /// Counts.
    Counts(Vec<u64>),
}

impl Column {
    fn texts(words: Vec<String>) -> Self {
        let rows = (0..words.len() as u32).collect();
        Self::Texts { words, rows }
    }
}

impl Outcome {
    /// The run as tables `flows`, `connections`, `counters`, `links`, `flow_series` and `link_series`: the
    /// names and the order that every reader of records sees.
    pub fn into_tables(self) -> [Table; 6] {
        let flow_names: Vec<String> = self.flows.iter().map(|row| row.flow.clone()).collect();
        let link_names: Vec<String> = self.links.iter().map(|row| row.link.clone()).collect();
        [
            flows(&self.flows, flow_names.clone()),
            connections(&self.connections),
            counters(&self.flows, flow_names.clone()),
            links(&self.links, link_names.clone()),
            flow_series(self.flow_series, flow_names),
            link_series(self.link_series, link_names),
        ]
    }
}

fn flows(rows: &[FlowRow], names: Vec<String>) -> Table {
    let numbers = |get: fn(&FlowRow) -> f64| Column::Numbers(rows.iter().map(get).collect());
    let counts = |get: fn(&FlowRow) -> u64| Column::Counts(rows.iter().map(get).collect());
    let controllers = rows.iter().map(|row| row.controller.clone()).collect();
    let columns = vec![
        ("flow", Column::texts(names)),
        ("controller", Column::texts(controllers)),
        ("start_s", numbers(|row| row.start_s)),
        ("active_s", numbers(|row| row.active_s)),
        ("mss_bytes", counts(|row| row.mss_bytes)),
        ("sent_packets", counts(|row| row.sent_packets)),
        ("sent_bytes", counts(|row| row.sent_bytes)),
        ("retransmitted_packets", counts(|row| row.retransmitted_packets)),
        ("dropped_packets", counts(|row| row.dropped_packets)),
        ("queue_drops", counts(|row| row.queue_drops)),
        ("random_losses", counts(|row| row.random_losses)),
        ("received_packets", counts(|row| row.received_packets)),
        ("delivered_bytes", counts(|row| row.delivered_bytes)),
        ("goodput_bytes", counts(|row| row.goodput_bytes)),
        ("stall_max_ms", numbers(|row| row.stall_max_ms)),
        ("ce_marked_bytes", counts(|row| row.ce_marked_bytes)),
        ("declared_lost_bytes", counts(|row| row.declared_lost_bytes)),
        ("rtt_samples", counts(|row| row.rtt_samples)),
        ("rtt_mean_ms", numbers(|row| row.rtt_mean_ms)),
        ("rtt_min_ms", numbers(|row| row.rtt_min_ms)),
        ("rtt_max_ms", numbers(|row| row.rtt_max_ms)),
        ("rtt_p50_ms", numbers(|row| row.rtt_p50_ms)),
        ("rtt_p95_ms", numbers(|row| row.rtt_p95_ms)),
        ("rtt_at_delivery_ms", numbers(|row| row.rtt_at_delivery_ms)),
        ("base_rtt_ms", numbers(|row| row.base_rtt_ms)),
        ("owd_mean_ms", numbers(|row| row.owd_mean_ms)),
        ("timeouts", counts(|row| row.timeouts)),
        ("recoveries", counts(|row| row.recoveries)),
        ("unsent_acks", counts(|row| row.unsent_acks)),
        ("offered_writes", counts(|row| row.offered_writes)),
        ("refused_writes", counts(|row| row.refused_writes)),
        ("transfers", counts(|row| row.transfers)),
        ("fct_mean_ms", numbers(|row| row.fct_mean_ms)),
    ];
    Table { name: "flows", columns }
}

fn connections(rows: &[ConnectionRow]) -> Table {
    let texts =
        |get: fn(&ConnectionRow) -> &String| Column::texts(rows.iter().map(get).cloned().collect());
    let numbers = |get: fn(&ConnectionRow) -> f64| Column::Numbers(rows.iter().map(get).collect());
    let counts = |get: fn(&ConnectionRow) -> u64| Column::Counts(rows.iter().map(get).collect());
    let columns = vec![
        ("connection", texts(|row| &row.connection)),
        ("controller", texts(|row| &row.controller)),
        ("subflows", counts(|row| row.subflows)),
        ("scheduler", texts(|row| &row.scheduler)),
        ("start_s", numbers(|row| row.start_s)),
        ("active_s", numbers(|row| row.active_s)),
        ("goodput_bytes", counts(|row| row.goodput_bytes)),
        ("reinjected_bytes", counts(|row| row.reinjected_bytes)),
        ("duplicate_bytes", counts(|row| row.duplicate_bytes)),
        ("reorder_peak_bytes", counts(|row| row.reorder_peak_bytes)),
        ("transfers", counts(|row| row.transfers)),
        ("fct_mean_ms", numbers(|row| row.fct_mean_ms)),
    ];
    Table { name: "connections", columns }
}

fn counters(rows: &[FlowRow], names: Vec<String>) -> Table {
    let all = || {
        let numbered = (0..).zip(rows);
        numbered.flat_map(|(index, row)| row.counters.iter().map(move |counter| (index, counter)))
    };
    let counters = all().map(|(_, &(name, _))| name.to_owned()).collect();
    let columns = vec![
        ("flow", Column::Texts { words: names, rows: all().map(|(index, _)| index).collect() }),
        ("name", Column::texts(counters)),
        ("value", Column::Numbers(all().map(|(_, &(_, value))| value).collect())),
    ];
    Table { name: "counters", columns }
}

fn links(rows: &[LinkRow], names: Vec<String>) -> Table {
    let counts = |get: fn(&LinkRow) -> u64| Column::Counts(rows.iter().map(get).collect());
    let columns = vec![
        ("link", Column::texts(names)),
        ("arrived_packets", counts(|row| row.arrived_packets)),
        ("queue_drops", counts(|row| row.queue_drops)),
        ("random_losses", counts(|row| row.random_losses)),
        ("marked_packets", counts(|row| row.marked_packets)),
        ("queued_packets", counts(|row| row.queued_packets)),
        ("delivered_packets", counts(|row| row.delivered_packets)),
        ("delivered_bytes", counts(|row| row.delivered_bytes)),
        ("goodput_bytes", counts(|row| row.goodput_bytes)),
        ("wait_mean_ms", Column::Numbers(rows.iter().map(|row| row.wait_mean_ms).collect())),
        ("capacity_bytes", counts(|row| row.capacity_bytes)),
    ];
    Table { name: "links", columns }
}

fn flow_series(series: FlowSeries, names: Vec<String>) -> Table {
    let throughput = throughput_mbps(&series, names.len());
    let columns = vec![
        ("time_s", Column::Numbers(series.time_s)),
        ("flow", Column::Texts { words: names, rows: series.flow }),
        ("cwnd_packets", Column::Numbers(series.cwnd_packets)),
        ("ssthresh_packets", Column::Numbers(series.ssthresh_packets)),
        ("inflight_bytes", Column::Counts(series.inflight_bytes)),
        ("srtt_ms", Column::Numbers(series.srtt_ms)),
        ("rtt_ms", Column::Numbers(series.rtt_ms)),
        ("delivered_bytes", Column::Counts(series.delivered_bytes)),
        ("arrived_bytes", Column::Counts(series.arrived_bytes)),
        ("throughput_mbps", Column::Numbers(throughput)),
        ("delivery_rate_mbps", Column::Numbers(series.delivery_rate_mbps)),
        ("pacing_mbps", Column::Numbers(series.pacing_mbps)),
        ("lost_packets", Column::Counts(series.lost_packets)),
    ];
    Table { name: "flow_series", columns }
}

/// What arrived since a flow's row before, over the time between the two; NaN in its first row.
fn throughput_mbps(series: &FlowSeries, flows: usize) -> Vec<f64> {
    let mut before = vec![None; flows];
    let rows = series.flow.iter().zip(&series.time_s).zip(&series.arrived_bytes);
    rows.map(|((&flow, &time), &bytes)| {
        let Some((earlier, had)) = before[flow as usize].replace((time, bytes)) else {
            return f64::NAN;
        };
        8e-6 * bytes.saturating_sub(had) as f64 / (time - earlier)
    })
    .collect()
}

fn link_series(series: LinkSeries, names: Vec<String>) -> Table {
    let columns = vec![
        ("time_s", Column::Numbers(series.time_s)),
        ("link", Column::Texts { words: names, rows: series.link }),
        ("queue_packets", Column::Counts(series.queue_packets)),
        ("queue_bytes", Column::Counts(series.queue_bytes)),
    ];
    Table { name: "link_series", columns }
}
