// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "network.h"
#include "plan.h"

#include "ns3/random-variable-stream.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"

#include <deque>
#include <string>
#include <vector>

/// A row of a flow's time series.
struct FlowSample {
    double time_s, cwnd_packets, ssthresh_packets, srtt_ms, rtt_ms, pacing_mbps;
    uint64_t inflight_bytes, delivered_bytes, arrived_bytes, lost_packets;
};

/// A connection: its application, and what its packets and acknowledgements tell. Sizes are of packets on the wire.
class Flow {
  public:
    Flow(const FlowPlan& plan, uint32_t index, const Ends& ends, ns3::Time origin, ns3::Time end);
    Flow(const Flow&) = delete;

    void Connect();
    void Begin();
    void End(); ///< of the application
    void Sample(const Losses& losses);
    /// At the end of the run: time with something to send or to be acknowledged.
    double ActiveS() const;
    /// At the end of the run: longest time in which nothing was delivered in order; NaN if it was never active.
    double StallMaxMs() const;

    const FlowPlan& plan;
    uint64_t sent = 0, sent_bytes = 0, retransmitted = 0, received = 0, timeouts = 0, recoveries = 0;
    uint64_t payload_delivered = 0, wire_delivered = 0, wire_arrived = 0, transfers = 0;
    double owd_ms = 0.0, transfers_ms = 0.0;                 ///< sums
    double at_delivery_ms = 0.0, deliveries_sampled = 0.0;   ///< sum and number
    std::vector<float> rtt_ms;                               ///< samples
    std::vector<FlowSample> series;

  private:
    /// What was sent at once: a piece of the stream of payload.
    struct Segment {
        uint64_t end;
        int64_t sent_ns;
        bool retransmitted, arrived, acknowledged;
    };

    void Listen(const Ends& ends);
    void Open(const Ends& ends);
    void Govern();
    void Trace();
    void Offer();
    void Fill();
    void OnConnected(ns3::Ptr<ns3::Socket> socket);
    void OnLeft(ns3::Ptr<ns3::Socket> socket, uint32_t bytes);
    void OnRoom(ns3::Ptr<ns3::Socket> socket, uint32_t room);
    void OnSent(ns3::Ptr<const ns3::Packet>, const ns3::TcpHeader&, ns3::Ptr<const ns3::TcpSocketBase>);
    void OnAcknowledged(ns3::Ptr<const ns3::Packet>, const ns3::TcpHeader&, ns3::Ptr<const ns3::TcpSocketBase>);
    void OnAccepted(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
    void OnArrived(ns3::Ptr<const ns3::Packet>, const ns3::TcpHeader&, ns3::Ptr<const ns3::TcpSocketBase>);
    void OnData(ns3::Ptr<ns3::Socket> socket);
    void OnState(ns3::TcpSocketState::TcpCongState_t before, ns3::TcpSocketState::TcpCongState_t now);
    uint64_t Offset(ns3::SequenceNumber32 number) const;
    Segment* Find(uint64_t offset);
    void Measure(const Segment& newest);

    uint32_t m_index;
    ns3::Time m_origin, m_end;
    ns3::Ptr<ns3::TcpSocketBase> m_socket;
    ns3::Ptr<ns3::Socket> m_listener;
    ns3::InetSocketAddress m_to;
    ns3::Ptr<ns3::ExponentialRandomVariable> m_amount, m_pause;

    bool m_connected = false, m_stopped = false, m_active = false;
    ns3::Time m_since, m_progress;
    double m_activeS = 0.0, m_stallS = -1.0;
    double m_left = 0.0; ///< bytes of this transfer not yet handed to the socket
    uint64_t m_written = 0;
    uint64_t m_high = 0; ///< bytes of payload sent
    std::deque<Segment> m_segments; ///< not cumulatively acknowledged
    uint64_t m_popped = 0, m_deliveredSegments = 0;
    double m_latestMs = 0.0, m_minMs = 0.0, m_srttMs = 0.0;

    uint32_t m_cwnd = 0, m_ssthresh = UINT32_MAX, m_inflight = 0;
    ns3::DataRate m_pacing;
};
