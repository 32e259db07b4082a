// SPDX-License-Identifier: GPL-2.0-only
#include "flow.h"

#include "../model/tcp-ackademy.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/inet-socket-address.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/tcp-option-sack.h"
#include "ns3/tcp-recovery-ops.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace ns3;

namespace {

/// Largest buffer that ns-3's window scale can announce, about.
constexpr uint64_t BUFFER_MAX = (1u << 30) - (1u << 14);
/// Segments that wait in the socket: enough for ns-3 to ask for more in time.
constexpr uint64_t BACKLOG = 8;

template <typename T>
void Keep(T* to, T, T now) {
    *to = now;
}

Ptr<TcpSocketBase> MakeSocket(Ptr<Node> node, const FlowPlan& plan) {
    auto socket = DynamicCast<TcpSocketBase>(Socket::CreateSocket(node, TcpSocketFactory::GetTypeId()));
    socket->SetAttribute("SegmentSize", UintegerValue(plan.Payload()));
    socket->SetAttribute("InitialCwnd", UintegerValue(plan.initial_cwnd));
    socket->SetAttribute("SndBufSize", UintegerValue(BUFFER_MAX));
    socket->SetAttribute("RcvBufSize", UintegerValue(BUFFER_MAX));
    socket->SetAttribute("DelAckCount", UintegerValue(plan.ack_every));
    socket->SetAttribute("DelAckTimeout", TimeValue(NanoSeconds(plan.ack_delay_ns)));
    // RFC 6298 equation 2.3, RTO = SRTT + max(G, 4 RTTVAR), with the margin for G. The least RTO is then without effect.
    socket->SetAttribute("MinRto", TimeValue(NanoSeconds(plan.rto_margin_ns)));
    socket->SetAttribute("ClockGranularity", TimeValue(NanoSeconds(plan.rto_margin_ns)));
    socket->SetAttribute("Timestamp", BooleanValue(plan.timestamps));
    if (plan.initial_ssthresh) {
        const uint64_t payload = plan.initial_ssthresh / plan.packet * plan.Payload();
        socket->SetAttribute("InitialSlowStartThreshold", UintegerValue(std::min<uint64_t>(payload, UINT32_MAX)));
    }
    return socket;
}

// One of ns-3's controllers with attributes of its own.
Ptr<TcpCongestionOps> MakeOwn(const FlowPlan& plan) {
    TypeId id;
    if (!TypeId::LookupByNameFailSafe(plan.controller, &id)) throw Refused("this ns-3 has no " + plan.controller);
    ObjectFactory factory;
    factory.SetTypeId(id);
    auto made = factory.Create<TcpCongestionOps>();
    std::istringstream words(plan.settings);
    for (std::string word; std::getline(words, word, ',');) {
        const auto cut = word.find('=');
        const std::string name = word.substr(0, cut), value = cut == std::string::npos ? "" : word.substr(cut + 1);
        if (made->SetAttributeFailSafe(name, StringValue(value))) continue;
        std::string allowed;
        for (size_t i = 0; i < id.GetAttributeN(); ++i) allowed += (i ? ", " : "") + id.GetAttribute(i).name;
        throw Refused(plan.controller + ": " + word + ": allowed: a value for one of " +
                      (allowed.empty() ? "no attributes" : allowed));
    }
    return made;
}

} // namespace

Flow::Flow(const FlowPlan& flow, uint32_t index, const Ends& ends, Time origin, Time end)
    : plan(flow),
      m_index(index),
      m_origin(origin),
      m_end(end),
      m_to(ends.receiver_address, uint16_t(1024 + index)),
      m_amount(CreateObject<ExponentialRandomVariable>()),
      m_pause(CreateObject<ExponentialRandomVariable>()) {
    m_amount->SetAttribute("Mean", DoubleValue(std::max(plan.transfer_bytes, 1.0)));
    m_pause->SetAttribute("Mean", DoubleValue(std::max(plan.pause_s, 0.0)));
    Listen(ends);
    Open(ends);
}

void Flow::Listen(const Ends& ends) {
    m_listener = MakeSocket(ends.receiver, plan);
    m_listener->Bind(m_to);
    m_listener->Listen();
    m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                  MakeCallback(&Flow::OnAccepted, this));
}

void Flow::Open(const Ends& ends) {
    m_socket = MakeSocket(ends.sender, plan);
    m_socket->Bind(InetSocketAddress(ends.sender_address, uint16_t(1024 + m_index)));
    Govern();
    Trace();
    m_socket->SetConnectCallback(MakeCallback(&Flow::OnConnected, this), MakeNullCallback<void, Ptr<Socket>>());
    m_socket->SetSendCallback(MakeCallback(&Flow::OnRoom, this));
    m_socket->SetDataSentCallback(MakeCallback(&Flow::OnLeft, this));
}

void Flow::Govern() {
    if (!plan.prr) m_socket->SetRecoveryAlgorithm(CreateObject<TcpClassicRecovery>());
    if (plan.controller.rfind("ns3::", 0) == 0) {
        m_socket->SetCongestionControlAlgorithm(MakeOwn(plan));
        return;
    }
    const std::string why = TcpAckademy::WhyRefused(plan.controller, plan.settings);
    if (!why.empty()) throw Refused(why);
    auto made = CreateObject<TcpAckademy>();
    made->SetAttribute("Controller", StringValue(plan.controller));
    made->SetAttribute("Parameters", StringValue(plan.settings));
    made->SetAttribute("Seed", UintegerValue(plan.seed));
    made->SetAttribute("Prr", BooleanValue(plan.prr));
    m_socket->SetCongestionControlAlgorithm(made);
}

void Flow::Trace() {
    m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::OnSent, this));
    m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::OnAcknowledged, this));
    m_socket->TraceConnectWithoutContext("CongState", MakeCallback(&Flow::OnState, this));
    m_socket->TraceConnectWithoutContext("CongestionWindow", MakeBoundCallback(&Keep<uint32_t>, &m_cwnd));
    m_socket->TraceConnectWithoutContext("SlowStartThreshold", MakeBoundCallback(&Keep<uint32_t>, &m_ssthresh));
    m_socket->TraceConnectWithoutContext("BytesInFlight", MakeBoundCallback(&Keep<uint32_t>, &m_inflight));
    m_socket->TraceConnectWithoutContext("PacingRate", MakeBoundCallback(&Keep<DataRate>, &m_pacing));
}

void Flow::Connect() { m_socket->Connect(m_to); }

void Flow::OnConnected(Ptr<Socket>) {
    m_connected = true;
    Fill();
}

// ------------------------------------------------------------------------------ application

void Flow::Begin() {
    if (plan.handshake) Connect();
    Offer();
}

void Flow::Offer() {
    if (m_stopped) return;
    m_since = m_progress = Simulator::Now();
    m_active = true;
    m_stallS = std::max(m_stallS, 0.0);
    const double drawn = plan.transfer_varies ? std::floor(m_amount->GetValue()) : plan.transfer_bytes;
    m_left = plan.transfer_bytes > 0.0 ? std::max(drawn, 1.0) : INFINITY;
    Fill();
}

void Flow::End() {
    m_stopped = true;
    m_left = 0.0;
}

void Flow::Fill() {
    const uint64_t most = BACKLOG * plan.Payload();
    while (m_connected && m_left > 0.0 && m_written - m_high < most) {
        const auto size = uint32_t(std::min(double(plan.Payload()), m_left));
        const int taken = m_socket->Send(Create<Packet>(size), 0);
        if (taken <= 0) return;
        m_written += uint64_t(taken);
        m_left -= taken;
    }
}

// Without new data at hand, ns-3 sends again what is not lost (RFC 6675, NextSeg rule 3).
void Flow::OnLeft(Ptr<Socket>, uint32_t) { Fill(); }

// ns-3 calls it when something is acknowledged, and when the window is larger than what waits.
void Flow::OnRoom(Ptr<Socket>, uint32_t room) {
    if (!m_active) return;
    Fill();
    if (m_left > 0.0 || room < BUFFER_MAX || m_written == 0) return;
    m_active = false;
    const double took_s = (Simulator::Now() - m_since).GetSeconds();
    m_activeS += took_s;
    if (plan.transfer_bytes > 0.0 && !m_stopped) {
        ++transfers;
        transfers_ms += 1e3 * took_s;
    }
    if (plan.pause_s >= 0.0) Simulator::Schedule(Seconds(m_pause->GetValue()), &Flow::Offer, this);
}

double Flow::ActiveS() const { return m_activeS + (m_active ? (m_end - m_since).GetSeconds() : 0.0); }

double Flow::StallMaxMs() const {
    if (m_stallS < 0.0) return NAN;
    return 1e3 * std::max(m_stallS, m_active ? (m_end - m_progress).GetSeconds() : 0.0);
}

// ---------------------------------------------------------------------------------- traces

// Payload before a sequence number; the first byte of it has number 1.
uint64_t Flow::Offset(SequenceNumber32 number) const {
    const auto distance = int32_t(number.GetValue() - uint32_t(m_high + 1));
    return uint64_t(std::max<int64_t>(int64_t(m_high) + distance, 0));
}

Flow::Segment* Flow::Find(uint64_t offset) {
    const auto found = std::upper_bound(m_segments.begin(), m_segments.end(), offset,
                                        [](uint64_t at, const Segment& segment) { return at < segment.end; });
    return found == m_segments.end() ? nullptr : &*found;
}

void Flow::OnSent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    const uint32_t size = packet->GetSize();
    if (size == 0) return;
    FlowTag tag;
    tag.flow = m_index;
    tag.sent_ns = Simulator::Now().GetNanoSeconds();
    packet->AddPacketTag(tag);
    ++sent;
    sent_bytes += size + plan.header;
    const uint64_t offset = Offset(header.GetSequenceNumber());
    if (offset >= m_high) {
        m_high = offset + size;
        m_segments.push_back({m_high, tag.sent_ns, false, false, false});
        return;
    }
    ++retransmitted;
    if (Segment* segment = Find(offset)) {
        segment->sent_ns = tag.sent_ns;
        segment->retransmitted = true;
    }
}

// The newest segment that an acknowledgement is the first to cover gives a round-trip sample.
void Flow::OnAcknowledged(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (!(header.GetFlags() & TcpHeader::ACK) || m_segments.empty()) return;
    const Segment none{0, -1, false, false, false};
    Segment newest = none;
    const auto cover = [&newest](Segment& segment) {
        if (!segment.acknowledged && segment.sent_ns >= newest.sent_ns) newest = segment;
        segment.acknowledged = true;
    };
    const uint64_t acknowledged = Offset(header.GetAckNumber());
    while (!m_segments.empty() && m_segments.front().end <= acknowledged) {
        cover(m_segments.front());
        m_segments.pop_front();
        ++m_popped;
    }
    if (header.HasOption(TcpOption::SACK)) {
        const auto option = DynamicCast<const TcpOptionSack>(header.GetOption(TcpOption::SACK));
        for (const auto& [from, to] : option->GetSackList()) {
            for (uint64_t at = Offset(to); at > Offset(from);) {
                Segment* segment = Find(at - 1);
                if (!segment || segment->acknowledged) break;
                cover(*segment);
                at = segment == &m_segments.front() ? 0 : (segment - 1)->end;
            }
        }
    }
    if (newest.sent_ns >= 0) Measure(newest);
}

void Flow::Measure(const Segment& newest) {
    const double sample_ms = 1e-6 * double(Simulator::Now().GetNanoSeconds() - newest.sent_ns);
    if (newest.retransmitted && (!plan.timestamps || sample_ms < m_minMs)) return; // of which copy?
    rtt_ms.push_back(float(sample_ms));
    m_minMs = m_minMs > 0.0 ? std::min(m_minMs, sample_ms) : sample_ms;
    m_srttMs = m_srttMs > 0.0 ? 0.875 * m_srttMs + 0.125 * sample_ms : sample_ms;
    m_latestMs = sample_ms;
}

void Flow::OnAccepted(Ptr<Socket> socket, const Address&) {
    socket->SetRecvCallback(MakeCallback(&Flow::OnData, this));
    socket->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::OnArrived, this));
}

void Flow::OnArrived(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    FlowTag tag;
    if (packet->GetSize() == 0 || !packet->PeekPacketTag(tag)) return;
    ++received;
    owd_ms += 1e-6 * double(Simulator::Now().GetNanoSeconds() - tag.sent_ns);
    Segment* segment = Find(Offset(header.GetSequenceNumber()));
    if (segment && !segment->arrived) {
        segment->arrived = true;
        wire_arrived += packet->GetSize() + plan.header;
    }
}

void Flow::OnData(Ptr<Socket> socket) {
    uint64_t bytes = 0;
    while (Ptr<Packet> packet = socket->Recv()) {
        if (packet->GetSize() == 0) break;
        bytes += packet->GetSize();
    }
    if (bytes == 0) return;
    payload_delivered += bytes;
    wire_delivered += bytes;
    while (m_deliveredSegments < m_popped + m_segments.size()) {
        const uint64_t next = m_deliveredSegments - m_popped;
        if (m_segments[next].end > payload_delivered) break;
        wire_delivered += plan.header;
        ++m_deliveredSegments;
    }
    if (m_latestMs > 0.0) {
        at_delivery_ms += m_latestMs;
        ++deliveries_sampled;
    }
    m_stallS = std::max(m_stallS, (Simulator::Now() - m_progress).GetSeconds());
    m_progress = Simulator::Now();
}

// ns-3 counts time-outs in a row as one entry into the state.
void Flow::OnState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
    timeouts += now == TcpSocketState::CA_LOSS;
    recoveries += now == TcpSocketState::CA_RECOVERY;
}

void Flow::Sample(const Losses& losses) {
    const double payload = double(plan.Payload());
    FlowSample row{};
    row.time_s = (Simulator::Now() - m_origin).GetSeconds();
    row.cwnd_packets = m_cwnd / payload;
    row.ssthresh_packets = m_ssthresh < UINT32_MAX / 2 ? m_ssthresh / payload : NAN;
    row.srtt_ms = m_srttMs > 0.0 ? m_srttMs : NAN;
    row.rtt_ms = m_latestMs > 0.0 ? m_latestMs : NAN;
    row.pacing_mbps = m_pacing.GetBitRate() ? 1e-6 * double(m_pacing.GetBitRate()) : NAN;
    row.inflight_bytes = m_inflight / plan.Payload() * plan.packet;
    row.delivered_bytes = wire_delivered;
    row.arrived_bytes = wire_arrived;
    row.lost_packets = losses.queue_drops + losses.random;
    series.push_back(row);
}
