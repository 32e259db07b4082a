//! From counters to the simulator's rows.
use super::Quic;
use super::flow::{Flow, PathOf};
use super::watched::Seen;
use super::wire::{Counts, Event};
use crate::Handle;
use crate::factory::locked;
use ackademy::control::{CWND_MAX, Control};
use ackademy::sim::record::{ConnectionRow, FlowRow, FlowSeries, Outcome, mean_ms, quantile_ms};
use ackademy::units::{Rate, Span, Time};

impl Quic {
    /// Ends the run where it is and hands over what it measured.
    pub fn finish(mut self) -> Outcome {
        let (end, at) = (self.net.now(), self.at(self.net.now()));
        let events = self.net.events();
        if let Some(qlog) = self.qlog.take() {
            qlog.flush();
        }
        let (mut links, link_series) = self.net.finish(end);
        let (mut flows, mut connections) = (Vec::new(), Vec::new());
        for flow in &mut self.flows {
            flow.keep_stats();
            let handles = flow.factory.as_ref().map_or_else(Vec::new, |factory| factory.handles());
            for handle in &handles {
                handle.on_end(at);
            }
            let first = flow.first_row as usize;
            let counts = &self.wire.counts[first..first + flow.paths.len()];
            let rows: Vec<FlowRow> = (0..counts.len())
                .map(|path| flow_row(flow, (path, counts), handles.get(path), end))
                .collect();
            for (row, (forward, _)) in rows.iter().zip(&self.wire.paths[first..]) {
                for &link in self.net.links_of(*forward) {
                    links[link as usize].goodput_bytes += row.goodput_bytes;
                }
            }
            connections.push(connection_row(flow, &rows));
            flows.extend(rows);
        }
        Outcome { flows, connections, links, flow_series: self.series, link_series, events }
    }

    /// A row of every path that is open.
    pub(super) fn sample(&mut self) {
        let now = self.net.now();
        for flow in &mut self.flows {
            let Flow { ends: Some([client, _]), paths, first_row, delivered, factory, .. } = flow
            else {
                continue;
            };
            let packet = (flow.packet_bytes - super::plan::HEADER_BYTES) as f64;
            let handles = factory.as_ref().map_or_else(Vec::new, |factory| factory.handles());
            let first = *first_row as usize;
            let counts = &self.wire.counts[first..first + paths.len()];
            for path in 0..paths.len() {
                let Some(state) = client.path(path) else { continue };
                let series = &mut self.series;
                series.time_s.push(now.as_secs_f64());
                series.flow.push(*first_row + path as u32);
                series.delivered_bytes.push(share(*delivered, path, counts));
                series.arrived_bytes.push(counts[path].received_bytes);
                series.lost_packets.push(counts[path].queue_drops + counts[path].random_losses);
                let rate = handles.get(path).map_or(Rate(0), Handle::delivery_rate);
                sample_path(
                    series,
                    (&state.control, packet),
                    &locked(&paths[path].seen),
                    (state.srtt.as_millis_f64(), rate),
                );
            }
        }
        self.net.schedule(now + self.sample_interval, Event::Sample);
    }
}

/// What a sender knows of a path.
fn sample_path(
    series: &mut FlowSeries,
    (control, packet): (&Control, f64),
    seen: &Seen,
    (srtt_ms, rate): (f64, Rate),
) {
    let none = |value: f64| if value > 0.0 { value } else { f64::NAN };
    let is_set = control.ssthresh <= CWND_MAX;
    let ssthresh = if is_set { control.ssthresh.0 as f64 / packet } else { f64::NAN };
    series.cwnd_packets.push(control.cwnd.0 as f64 / packet);
    series.ssthresh_packets.push(ssthresh);
    series.inflight_bytes.push(seen.inflight);
    series.srtt_ms.push(if seen.samples > 0 { srtt_ms } else { f64::NAN });
    series.rtt_ms.push(none(seen.latest.as_millis_f64()));
    series.delivery_rate_mbps.push(none(rate.as_mbps()));
    let is_paced = control.pacing_rate != Rate::UNLIMITED;
    series.pacing_mbps.push(if is_paced { control.pacing_rate.as_mbps() } else { f64::NAN });
}

/// A path's share of what was delivered in order, by what it carried.
fn share(delivered: u64, path: usize, counts: &[Counts]) -> u64 {
    let all: u64 = counts.iter().map(|counts| counts.received_bytes).sum();
    let own = u128::from(delivered) * u128::from(counts[path].received_bytes);
    (own / u128::from(all.max(1))) as u64
}

fn connection_row(flow: &Flow, rows: &[FlowRow]) -> ConnectionRow {
    let one = ConnectionRow::of_flow(&rows[0]);
    if rows.len() == 1 {
        return one;
    }
    ConnectionRow {
        connection: flow.name.clone(),
        subflows: rows.len() as u64,
        scheduler: "noq".to_owned(),
        goodput_bytes: flow.delivered,
        ..one
    }
}

fn flow_row(
    flow: &Flow,
    (path, counts): (usize, &[Counts]),
    handle: Option<&Handle>,
    end: Time,
) -> FlowRow {
    let app = &flow.app;
    let PathOf { base_rtt, seen, lost, rtt_at_delivery } = &flow.paths[path];
    let seen = locked(seen);
    let own = &counts[path];
    FlowRow {
        flow: flow.name_of(path),
        controller: flow.controller.clone(),
        start_s: flow.start.as_secs_f64(),
        active_s: app.active(end).as_secs_f64(),
        mss_bytes: flow.packet_bytes,
        sent_packets: own.sent,
        sent_bytes: own.sent_bytes,
        retransmitted_packets: lost.packets,
        dropped_packets: own.queue_drops + own.random_losses,
        queue_drops: own.queue_drops,
        random_losses: own.random_losses,
        received_packets: own.received,
        delivered_bytes: own.received_bytes,
        goodput_bytes: share(flow.delivered, path, counts),
        stall_max_ms: longest_stall_ms(flow, end),
        declared_lost_bytes: lost.bytes,
        rtt_at_delivery_ms: mean_ms(rtt_at_delivery.0, rtt_at_delivery.1),
        base_rtt_ms: base_rtt.as_millis_f64(),
        owd_mean_ms: mean_ms(own.owd_sum, own.received),
        offered_writes: u64::from(app.writes.offered),
        refused_writes: u64::from(app.writes.refused),
        transfers: app.transfers,
        fct_mean_ms: mean_ms(u128::from(app.transfer_time.0), app.transfers),
        counters: handle.map_or_else(Vec::new, Handle::counters),
        ..sender_row(&seen)
    }
}

/// What a sender saw of a path.
fn sender_row(seen: &Seen) -> FlowRow {
    let millis = |span: Span| if seen.samples == 0 { f64::NAN } else { span.as_millis_f64() };
    FlowRow {
        rtt_samples: seen.samples,
        rtt_mean_ms: mean_ms(seen.sum_ns, seen.samples),
        rtt_min_ms: millis(seen.min),
        rtt_max_ms: millis(seen.max),
        rtt_p50_ms: quantile_ms(&seen.histogram, 500),
        rtt_p95_ms: quantile_ms(&seen.histogram, 950),
        timeouts: seen.timeouts,
        recoveries: seen.recoveries,
        ..FlowRow::default()
    }
}

/// The longest time without data in order, one that lasts until `end` included.
fn longest_stall_ms(flow: &Flow, end: Time) -> f64 {
    let last = if flow.app.is_active() { end.since(flow.progress) } else { Span::ZERO };
    let was_active = flow.app.active(end) > Span::ZERO;
    if was_active { flow.stall_max.max(last).as_millis_f64() } else { f64::NAN }
}
