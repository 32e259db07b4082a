// SPDX-License-Identifier: GPL-2.0-only
#include "tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace {

void Write(std::ostream& out, double value) { std::isfinite(value) ? out << value : out << "null"; }
void Write(std::ostream& out, uint64_t value) { out << value; }
void Write(std::ostream& out, const char* value) { out << '"' << value << '"'; }

/// One table: a column after the other, each of a function of a row.
template <typename Rows>
class Table {
  public:
    Table(std::ostream& out, const char* name, const Rows& rows) : m_out(out), m_rows(rows) {
        m_out << '"' << name << "\":{";
    }
    ~Table() { m_out << '}'; }

    template <typename Function>
    Table& Column(const char* name, Function function) {
        m_out << (m_first ? "\"" : ",\"") << name << "\":[";
        m_first = false;
        for (size_t i = 0; i < m_rows.size(); ++i) {
            if (i) m_out << ',';
            Write(m_out, function(m_rows[i], i));
        }
        m_out << ']';
        return *this;
    }

  private:
    std::ostream& m_out;
    const Rows& m_rows;
    bool m_first = true;
};

double Ratio(double sum, double count) { return count > 0.0 ? sum / count : NAN; }

double Quantile(std::vector<float> samples, double part) {
    if (samples.empty()) return NAN;
    const auto at = samples.begin() + std::min<size_t>(size_t(part * double(samples.size())), samples.size() - 1);
    std::nth_element(samples.begin(), at, samples.end());
    return *at;
}

double BaseRttMs(const Plan& plan, const FlowPlan& flow) {
    uint64_t sum = 0;
    for (const auto* route : {&flow.forward, &flow.reverse}) {
        for (const uint64_t link : *route) sum += plan.links[link].delay_ns;
    }
    return 1e-6 * double(sum);
}

using Flows = std::deque<Flow>;

// Columns of round trips.
void AddRoundTrips(Table<Flows>& table, const Outcome& run) {
    const auto extreme = [](const Flow& flow, bool largest) {
        if (flow.rtt_ms.empty()) return double(NAN);
        const auto found = std::minmax_element(flow.rtt_ms.begin(), flow.rtt_ms.end());
        return double(largest ? *found.second : *found.first);
    };
    table.Column("rtt_samples", [](const Flow& flow, size_t) { return uint64_t(flow.rtt_ms.size()); })
        .Column("rtt_mean_ms", [](const Flow& flow, size_t) {
            return Ratio(std::accumulate(flow.rtt_ms.begin(), flow.rtt_ms.end(), 0.0), double(flow.rtt_ms.size()));
        })
        .Column("rtt_min_ms", [&](const Flow& flow, size_t) { return extreme(flow, false); })
        .Column("rtt_max_ms", [&](const Flow& flow, size_t) { return extreme(flow, true); })
        .Column("rtt_p50_ms", [](const Flow& flow, size_t) { return Quantile(flow.rtt_ms, 0.5); })
        .Column("rtt_p95_ms", [](const Flow& flow, size_t) { return Quantile(flow.rtt_ms, 0.95); })
        .Column("rtt_at_delivery_ms",
                [](const Flow& flow, size_t) { return Ratio(flow.at_delivery_ms, flow.deliveries_sampled); })
        .Column("base_rtt_ms", [&](const Flow& flow, size_t) { return BaseRttMs(run.plan, flow.plan); })
        .Column("owd_mean_ms", [](const Flow& flow, size_t) { return Ratio(flow.owd_ms, double(flow.received)); });
}

void PrintFlows(std::ostream& out, const Outcome& run) {
    const auto zero = [](const Flow&, size_t) { return uint64_t(0); };
    const auto& losses = run.network.losses;
    Table<Flows> table(out, "flows", run.flows);
    table.Column("flow", [](const Flow&, size_t i) { return uint64_t(i); })
        .Column("controller", [](const Flow&, size_t i) { return uint64_t(i); })
        .Column("start_s", [](const Flow& flow, size_t) { return double(flow.plan.start_ns) / 1e9; })
        .Column("active_s", [](const Flow& flow, size_t) { return flow.ActiveS(); })
        .Column("mss_bytes", [](const Flow& flow, size_t) { return flow.plan.packet; })
        .Column("sent_packets", [](const Flow& flow, size_t) { return flow.sent; })
        .Column("sent_bytes", [](const Flow& flow, size_t) { return flow.sent_bytes; })
        .Column("retransmitted_packets", [](const Flow& flow, size_t) { return flow.retransmitted; })
        .Column("dropped_packets", [&](const Flow&, size_t i) { return losses[i].queue_drops + losses[i].random; })
        .Column("queue_drops", [&](const Flow&, size_t i) { return losses[i].queue_drops; })
        .Column("random_losses", [&](const Flow&, size_t i) { return losses[i].random; })
        .Column("received_packets", [](const Flow& flow, size_t) { return flow.received; })
        .Column("delivered_bytes", [](const Flow& flow, size_t) { return flow.wire_delivered; })
        .Column("goodput_bytes", [](const Flow& flow, size_t) { return flow.payload_delivered; })
        .Column("stall_max_ms", [](const Flow& flow, size_t) { return flow.StallMaxMs(); })
        .Column("ce_marked_bytes", zero)
        // What is declared lost is sent again.
        .Column("declared_lost_bytes", [](const Flow& flow, size_t) { return flow.retransmitted * flow.plan.packet; });
    AddRoundTrips(table, run);
    table.Column("timeouts", [](const Flow& flow, size_t) { return flow.timeouts; })
        .Column("recoveries", [](const Flow& flow, size_t) { return flow.recoveries; })
        .Column("unsent_acks", zero)
        .Column("offered_writes", zero)
        .Column("refused_writes", zero)
        .Column("transfers", [](const Flow& flow, size_t) { return flow.transfers; })
        .Column("fct_mean_ms",
                [](const Flow& flow, size_t) { return Ratio(flow.transfers_ms, double(flow.transfers)); });
}

void PrintConnections(std::ostream& out, const Outcome& run) {
    const auto zero = [](const Flow&, size_t) { return uint64_t(0); };
    Table<Flows> table(out, "connections", run.flows);
    table.Column("connection", [](const Flow&, size_t i) { return uint64_t(i); })
        .Column("controller", [](const Flow&, size_t i) { return uint64_t(i); })
        .Column("subflows", [](const Flow&, size_t) { return uint64_t(1); })
        .Column("scheduler", [](const Flow&, size_t) { return ""; })
        .Column("start_s", [](const Flow& flow, size_t) { return double(flow.plan.start_ns) / 1e9; })
        .Column("active_s", [](const Flow& flow, size_t) { return flow.ActiveS(); })
        .Column("goodput_bytes", [](const Flow& flow, size_t) { return flow.payload_delivered; })
        .Column("reinjected_bytes", zero)
        .Column("duplicate_bytes", zero)
        .Column("reorder_peak_bytes", zero)
        .Column("transfers", [](const Flow& flow, size_t) { return flow.transfers; })
        .Column("fct_mean_ms",
                [](const Flow& flow, size_t) { return Ratio(flow.transfers_ms, double(flow.transfers)); });
}

void PrintLinks(std::ostream& out, const Outcome& run) {
    const auto delivered = [](const Link& link) {
        const auto [packets, bytes] = link.System();
        const uint64_t in_service = packets - link.device->GetQueue()->GetNPackets();
        return std::max(link.served, in_service + link.random_losses) - in_service - link.random_losses;
    };
    std::vector<uint64_t> goodput(run.plan.links.size());
    for (const Flow& flow : run.flows) {
        for (const uint64_t link : flow.plan.forward) goodput[link] += flow.payload_delivered;
    }
    Table<std::deque<Link>> table(out, "links", run.network.links);
    table.Column("link", [](const Link&, size_t i) { return uint64_t(i); })
        .Column("arrived_packets", [](const Link& link, size_t) { return link.arrived; })
        .Column("queue_drops", [](const Link& link, size_t) { return link.queue_drops; })
        .Column("random_losses", [](const Link& link, size_t) { return link.random_losses; })
        .Column("marked_packets", [](const Link&, size_t) { return uint64_t(0); })
        .Column("queued_packets", [](const Link& link, size_t) { return link.System().first; })
        .Column("delivered_packets", [&](const Link& link, size_t) { return delivered(link); })
        .Column("delivered_bytes", [&](const Link& link, size_t) {
            const double size = Ratio(double(link.served_bytes), double(link.served));
            return link.served ? uint64_t(std::llround(size * double(delivered(link)))) : 0;
        })
        .Column("goodput_bytes", [&](const Link&, size_t i) { return goodput[i]; })
        .Column("wait_mean_ms", [](const Link& link, size_t) { return Ratio(1e3 * link.waited_s, double(link.served)); })
        .Column("capacity_bytes", [&](const Link& link, size_t) {
            return uint64_t(double(link.plan.rate_bps) * 1e-9 * double(run.plan.duration_ns) / 8.0);
        });
}

/// A row of a flow's series, the flow, and the row before.
struct FlowRow {
    const FlowSample* now;
    const FlowSample* before;
    uint64_t flow;
};

void PrintFlowSeries(std::ostream& out, const Outcome& run) {
    std::vector<FlowRow> rows;
    for (uint64_t flow = 0; flow < run.flows.size(); ++flow) {
        const FlowSample* before = nullptr;
        for (const FlowSample& now : run.flows[flow].series) {
            rows.push_back({&now, before, flow});
            before = &now;
        }
    }
    std::stable_sort(rows.begin(), rows.end(),
                     [](const FlowRow& a, const FlowRow& b) { return a.now->time_s < b.now->time_s; });
    using Row = const FlowRow&;
    Table<std::vector<FlowRow>> table(out, "flow_series", rows);
    table.Column("time_s", [](Row row, size_t) { return row.now->time_s; })
        .Column("flow", [](Row row, size_t) { return row.flow; })
        .Column("cwnd_packets", [](Row row, size_t) { return row.now->cwnd_packets; })
        .Column("ssthresh_packets", [](Row row, size_t) { return row.now->ssthresh_packets; })
        .Column("inflight_bytes", [](Row row, size_t) { return row.now->inflight_bytes; })
        .Column("srtt_ms", [](Row row, size_t) { return row.now->srtt_ms; })
        .Column("rtt_ms", [](Row row, size_t) { return row.now->rtt_ms; })
        .Column("delivered_bytes", [](Row row, size_t) { return row.now->delivered_bytes; })
        .Column("arrived_bytes", [](Row row, size_t) { return row.now->arrived_bytes; })
        .Column("throughput_mbps", [](Row row, size_t) {
            if (!row.before) return double(NAN);
            const double bits = 8.0 * double(row.now->arrived_bytes - row.before->arrived_bytes);
            return 1e-6 * bits / (row.now->time_s - row.before->time_s);
        })
        .Column("delivery_rate_mbps", [](Row, size_t) { return double(NAN); })
        .Column("pacing_mbps", [](Row row, size_t) { return row.now->pacing_mbps; })
        .Column("lost_packets", [](Row row, size_t) { return row.now->lost_packets; });
}

void PrintLinkSeries(std::ostream& out, const Outcome& run) {
    using Row = const LinkSample&;
    Table<std::vector<LinkSample>> table(out, "link_series", run.link_series);
    table.Column("time_s", [](Row row, size_t) { return row.time_s; })
        .Column("link", [](Row row, size_t) { return uint64_t(row.link); })
        .Column("queue_packets", [](Row row, size_t) { return row.packets; })
        .Column("queue_bytes", [](Row row, size_t) { return row.bytes; });
}

} // namespace

void Print(std::ostream& out, const Outcome& run) {
    out.precision(std::numeric_limits<double>::max_digits10);
    out << '{';
    for (auto* print : {&PrintFlows, &PrintConnections, &PrintLinks, &PrintFlowSeries}) {
        print(out, run);
        out << ',';
    }
    PrintLinkSeries(out, run);
    out << "}\n";
}
