//! From counters to the simulator's rows.
use super::Quic;
use super::flow::Flow;
use super::host::Host;
use super::wire::{Counts, Event, Side};
use crate::factory::locked;
use ackademy::control::CWND_MAX;
use ackademy::sim::record::{ConnectionRow, FlowRow, Outcome, mean_ms, quantile_ms};
use ackademy::units::{Span, Time};
use noq_proto::PathId;
use noq_proto::congestion::Controller;

impl Quic {
    /// Ends the run where it is and hands over what it measured.
    pub fn finish(mut self) -> Outcome {
        let (end, at) = (self.net.now(), self.at(self.net.now()));
        let events = self.net.events();
        let (mut links, link_series) = self.net.finish(end);
        let mut flows = Vec::with_capacity(self.flows.len());
        for (index, flow) in self.flows.iter_mut().enumerate() {
            flow.keep_stats();
            if let Some(handle) = flow.factory.as_ref().and_then(|factory| factory.latest()) {
                handle.on_end(at);
            }
            flows.push(flow_row(flow, &self.wire.counts[index], end));
            for &link in self.net.links_of(self.wire.paths[index].0) {
                links[link as usize].goodput_bytes += flow.delivered;
            }
        }
        let connections = flows.iter().map(ConnectionRow::of_flow).collect();
        Outcome { flows, connections, links, flow_series: self.series, link_series, events }
    }

    /// A row of every flow that has begun and is not over.
    pub(super) fn sample(&mut self) {
        let now = self.net.now();
        let none = |value: f64| if value > 0.0 { value } else { f64::NAN };
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let packet = (flow.packet_bytes - super::plan::HEADER_BYTES) as f64;
            let Some(connection) = flow.end(Side::Client).and_then(Host::connection) else {
                continue;
            };
            let srtt = connection.rtt(PathId::ZERO).unwrap_or_default();
            let Some(metrics) = connection.congestion_state(PathId::ZERO).map(Controller::metrics)
            else {
                continue;
            };
            let counts = &self.wire.counts[index];
            let rate = flow.factory.as_ref().and_then(|factory| factory.latest());
            let rate = rate.map_or(0.0, |handle| handle.delivery_rate().as_mbps());
            let seen = locked(&flow.seen);
            let ssthresh = metrics.ssthresh.filter(|&bytes| bytes <= CWND_MAX.0);
            let series = &mut self.series;
            series.time_s.push(now.as_secs_f64());
            series.flow.push(index as u32);
            series.cwnd_packets.push(metrics.congestion_window as f64 / packet);
            series.ssthresh_packets.push(ssthresh.map_or(f64::NAN, |bytes| bytes as f64 / packet));
            series.inflight_bytes.push(seen.inflight);
            let is_sampled = seen.samples > 0;
            series.srtt_ms.push(if is_sampled { srtt.as_secs_f64() * 1e3 } else { f64::NAN });
            series.rtt_ms.push(none(seen.latest.as_millis_f64()));
            series.delivered_bytes.push(flow.delivered);
            series.arrived_bytes.push(counts.received_bytes);
            series.delivery_rate_mbps.push(none(rate));
            let pacing = metrics.pacing_rate.map_or(f64::NAN, |rate| rate as f64 * 8e-6);
            series.pacing_mbps.push(pacing);
            series.lost_packets.push(counts.queue_drops + counts.random_losses);
        }
        self.net.schedule(now + self.sample_interval, Event::Sample);
    }
}

fn flow_row(flow: &Flow, counts: &Counts, end: Time) -> FlowRow {
    let app = &flow.app;
    let seen = locked(&flow.seen);
    let handle = flow.factory.as_ref().and_then(|factory| factory.latest());
    let millis = |span: Span| if seen.samples == 0 { f64::NAN } else { span.as_millis_f64() };
    FlowRow {
        flow: flow.name.clone(),
        controller: flow.controller.clone(),
        start_s: flow.start.as_secs_f64(),
        active_s: app.active(end).as_secs_f64(),
        mss_bytes: flow.packet_bytes,
        sent_packets: counts.sent,
        sent_bytes: counts.sent_bytes,
        retransmitted_packets: flow.stats.lost_packets,
        dropped_packets: counts.queue_drops + counts.random_losses,
        queue_drops: counts.queue_drops,
        random_losses: counts.random_losses,
        received_packets: counts.received,
        delivered_bytes: counts.received_bytes,
        goodput_bytes: flow.delivered,
        stall_max_ms: longest_stall_ms(flow, end),
        ce_marked_bytes: 0,
        declared_lost_bytes: flow.stats.lost_bytes,
        rtt_samples: seen.samples,
        rtt_mean_ms: mean_ms(seen.sum_ns, seen.samples),
        rtt_min_ms: millis(seen.min),
        rtt_max_ms: millis(seen.max),
        rtt_p50_ms: quantile_ms(&seen.histogram, 500),
        rtt_p95_ms: quantile_ms(&seen.histogram, 950),
        rtt_at_delivery_ms: mean_ms(flow.rtt_at_delivery.0, flow.rtt_at_delivery.1),
        base_rtt_ms: flow.base_rtt.as_millis_f64(),
        owd_mean_ms: mean_ms(counts.owd_sum, counts.received),
        timeouts: seen.timeouts,
        recoveries: seen.recoveries,
        unsent_acks: 0,
        offered_writes: u64::from(app.writes.offered),
        refused_writes: u64::from(app.writes.refused),
        transfers: app.transfers,
        fct_mean_ms: mean_ms(u128::from(app.transfer_time.0), app.transfers),
        counters: handle.map_or_else(Vec::new, |handle| handle.counters()),
    }
}

/// The longest time without data in order, one that lasts until `end` included.
fn longest_stall_ms(flow: &Flow, end: Time) -> f64 {
    let last = if flow.app.is_active() { end.since(flow.progress) } else { Span::ZERO };
    let was_active = flow.app.active(end) > Span::ZERO;
    if was_active { flow.stall_max.max(last).as_millis_f64() } else { f64::NAN }
}
