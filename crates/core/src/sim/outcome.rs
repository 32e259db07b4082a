//! From counters to rows.
use super::link::Link;
use super::traffic::App;
use super::{Arrived, Flow, FlowPlan, Sim};
use crate::sim::record::{ConnectionRow, FlowRow, LinkRow, Outcome, mean_ms, quantile_ms};
use crate::transport::packet::Kind;
use crate::units::{Span, Time};

impl Sim {
    /// Ends the run where it is and hands over what it measured.
    pub fn finish(mut self) -> Outcome {
        let end = self.net.now();
        debug_assert!(self.conserves_packets(), "packets are conserved from end to end");
        self.hosts.finish_taps(end);
        let (mut links, link_series) = self.net.finish(end);
        let flows: Vec<FlowRow> = {
            let planned = self.hosts.flows.iter().zip(&self.hosts.plans);
            planned.map(|(flow, plan)| self.flow_row(flow, plan, end)).collect()
        };
        for (row, flow) in flows.iter().zip(&self.hosts.flows) {
            for &link in self.net.links_of(flow.forward) {
                links[link as usize].goodput_bytes += row.goodput_bytes;
            }
        }
        debug_assert!(self.conserves_data(), "no connection loses data");
        let connections = self.connection_rows(&flows, end);
        let events = self.net.events();
        Outcome { flows, connections, links, flow_series: self.flow_series, link_series, events }
    }

    /// Whether every data packet sent, or copied on the way, was received, dropped, or is still on a
    /// wire or in a scheduler's queue.
    fn conserves_packets(&self) -> bool {
        let mut missing: Vec<i64> = vec![0; self.hosts.flows.len()];
        let flows = self.hosts.flows.iter().zip(&self.hosts.plans);
        for (missing, (flow, plan)) in missing.iter_mut().zip(flows) {
            let arrived = &flow.arrived;
            let copies = plan.copies.as_ref().map_or((0, 0), |copies| (copies.made, copies.lost));
            let sent = flow.sender.stats().sent_packets + plan.datagrams_sent().0;
            let made = sent + copies.0;
            let lost = arrived.queue_drops + arrived.random_losses + copies.1;
            let ended = arrived.packets + lost;
            *missing = made as i64 - ended as i64;
        }
        let (on_wire, held) = self.net.inside();
        for packet in on_wire {
            missing[packet.flow as usize] -= i64::from(packet.kind != Kind::Ack);
        }
        missing.iter().all(|&count| count >= 0) && missing.iter().sum::<i64>() <= held as i64
    }

    /// Whether every connection of several subflows has what it was handed, on one side or the other.
    fn conserves_data(&self) -> bool {
        let mut levels = self.hosts.connections.iter().filter_map(|one| one.data.as_ref());
        levels.all(|data| data.conserves_data())
    }

    /// One row per connection: that of its flow, or what its data level says of several.
    fn connection_rows(&self, flows: &[FlowRow], end: Time) -> Vec<ConnectionRow> {
        let mut rows = Vec::with_capacity(self.hosts.connections.len());
        for connection in &self.hosts.connections {
            let first = connection.first_flow as usize;
            let own = &flows[first..first + connection.flow_count as usize];
            let Some(data) = &connection.data else {
                rows.extend(own.iter().map(ConnectionRow::of_flow));
                continue;
            };
            let name = own[0].flow.strip_suffix(".0").unwrap_or_default();
            rows.push(ConnectionRow {
                connection: name.to_owned(),
                controller: connection.controller.to_string(),
                subflows: own.len() as u64,
                scheduler: data.scheduler.to_owned(),
                start_s: data.start.as_secs_f64(),
                active_s: connection.app.active(end).as_secs_f64(),
                goodput_bytes: data.receiver.next(),
                reinjected_bytes: data.sender.reinjected_bytes(),
                duplicate_bytes: data.receiver.duplicate_bytes(),
                reorder_peak_bytes: data.receiver.held_max(),
                transfers: own[0].transfers,
                fct_mean_ms: own[0].fct_mean_ms,
            });
        }
        rows
    }

    fn flow_row(&self, flow: &Flow, plan: &FlowPlan, end: Time) -> FlowRow {
        let connection = &self.hosts.connections[flow.connection as usize];
        let sent = flow.sender.stats();
        let arrived = &flow.arrived;
        let app = &connection.app;
        let is_datagrams = plan.datagrams.is_some();
        let no_rtt = sent.rtt_samples == 0;
        // A subflow that is not open stalls nothing.
        let stalls_until = if self.hosts.is_governed(flow) { end } else { arrived.progress };
        let headers = arrived.segments * plan.header_bytes;
        FlowRow {
            flow: plan.name.to_string(),
            controller: if is_datagrams {
                "none".into()
            } else {
                connection.controller.to_string()
            },
            start_s: plan.start.as_secs_f64(),
            active_s: app.active(end).as_secs_f64(),
            mss_bytes: flow.packet_bytes,
            sent_packets: sent.sent_packets + plan.datagrams_sent().0,
            sent_bytes: sent.sent_bytes + plan.datagrams_sent().1,
            retransmitted_packets: sent.retransmitted_packets,
            dropped_packets: arrived.queue_drops + arrived.random_losses,
            queue_drops: arrived.queue_drops,
            random_losses: arrived.random_losses,
            received_packets: arrived.packets,
            delivered_bytes: arrived.delivered_bytes,
            goodput_bytes: arrived.delivered_bytes.saturating_sub(headers),
            stall_max_ms: longest_stall_ms(app, arrived, stalls_until),
            ce_marked_bytes: sent.ce_marked_bytes,
            declared_lost_bytes: sent.declared_lost_bytes,
            rtt_samples: sent.rtt_samples,
            rtt_mean_ms: mean_ms(sent.rtt_sum, sent.rtt_samples),
            rtt_min_ms: if no_rtt { f64::NAN } else { Span(sent.rtt_min).as_millis_f64() },
            rtt_max_ms: if no_rtt { f64::NAN } else { Span(sent.rtt_max).as_millis_f64() },
            rtt_p50_ms: quantile_ms(&sent.rtt_histogram, 500),
            rtt_p95_ms: quantile_ms(&sent.rtt_histogram, 950),
            rtt_at_delivery_ms: mean_ms(arrived.rtt_at_delivery_sum, arrived.rtt_at_delivery_count),
            base_rtt_ms: plan.base_rtt.as_millis_f64(),
            owd_mean_ms: mean_ms(arrived.owd_sum, arrived.packets),
            timeouts: sent.timeouts,
            recoveries: sent.recoveries,
            unsent_acks: flow.sender.unsent_acks(),
            offered_writes: u64::from(app.writes.offered),
            refused_writes: u64::from(app.writes.refused),
            transfers: app.transfers,
            fct_mean_ms: mean_ms(u128::from(app.transfer_time.0), app.transfers),
            counters: self.hosts.counters_of(flow),
        }
    }
}

/// The longest stall, one that lasts until `end` included.
fn longest_stall_ms(app: &App, arrived: &Arrived, end: Time) -> f64 {
    let last = if app.is_active() { end.since(arrived.progress) } else { Span::ZERO };
    let was_active = app.active(end) > Span::ZERO;
    if was_active { arrived.stall_max.max(last).as_millis_f64() } else { f64::NAN }
}

impl Link {
    /// Ends the counting at `end`, takes the samples due until then, and sums up.
    pub fn finish(&mut self, name: String, end: Time) -> LinkRow {
        self.sample_until(end);
        let queued_packets = self.close(end);
        let stats = self.stats;
        debug_assert_eq!(
            stats.arrived_packets,
            stats.queue_drops + stats.random_losses + stats.delivered_packets + queued_packets,
            "packets are conserved on link {name}"
        );
        LinkRow {
            link: name,
            arrived_packets: stats.arrived_packets,
            queue_drops: stats.queue_drops,
            random_losses: stats.random_losses,
            marked_packets: stats.marked_packets,
            delivered_packets: stats.delivered_packets,
            delivered_bytes: stats.delivered_bytes,
            goodput_bytes: 0,
            queued_packets,
            wait_mean_ms: mean_ms(stats.wait_sum, stats.transmitted_packets),
            capacity_bytes: self.capacity(Time(0), end + Span(1)).0,
        }
    }
}
