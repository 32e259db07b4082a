// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "plan.h"

#include "ns3/node-container.h"
#include "ns3/packet.h"
#include "ns3/queue.h"
#include "ns3/simple-net-device.h"
#include "ns3/tag.h"

#include <deque>
#include <vector>

/// Whose packet it is and when it was sent. It takes no room on the wire.
class FlowTag : public ns3::Tag {
  public:
    static ns3::TypeId GetTypeId();
    ns3::TypeId GetInstanceTypeId() const override { return GetTypeId(); }
    uint32_t GetSerializedSize() const override { return 12; }
    void Serialize(ns3::TagBuffer to) const override;
    void Deserialize(ns3::TagBuffer from) override;
    void Print(std::ostream& out) const override { out << flow; }

    uint32_t flow = 0;
    int64_t sent_ns = 0;
};

/// What a data packet's flow loses.
struct Losses {
    uint64_t queue_drops = 0, random = 0;
};

/// One direction of a link: a queue, a transmitter and a delay, and what passed it since `Reset`.
class Link {
  public:
    Link(const LinkPlan& plan, ns3::Ptr<ns3::Node> from, ns3::Ptr<ns3::Node> to, std::vector<Losses>& losses);
    Link(const Link&) = delete;

    /// Forgets what passed, and begins to lose packets.
    void Reset();
    /// Packets and bytes in the system: those that wait and the one in transmission.
    std::pair<uint64_t, uint64_t> System() const;

    const LinkPlan& plan;
    ns3::Ptr<ns3::SimpleNetDevice> device; ///< that sends
    uint32_t interface = 0;                ///< of it, on its node
    uint64_t arrived = 0, queue_drops = 0, random_losses = 0, served = 0, served_bytes = 0;
    double waited_s = 0.0;

  private:
    void OnEnqueue(ns3::Ptr<const ns3::Packet> packet);
    void OnDequeue(ns3::Ptr<const ns3::Packet> packet);
    void OnDrop(ns3::Ptr<const ns3::Packet> packet);
    void OnLoss(ns3::Ptr<const ns3::Packet> packet);

    std::vector<Losses>& m_losses;
    ns3::Ptr<ns3::SimpleNetDevice> m_end;
    std::deque<ns3::Time> m_since; ///< when each that waits came
    ns3::Time m_busyUntil;
    uint64_t m_inService = 0; ///< bytes
};

/// Where a flow's sockets are.
struct Ends {
    ns3::Ptr<ns3::Node> sender, receiver;
    ns3::Ipv4Address sender_address, receiver_address;
};

/// Nodes and links of a plan, with a route of its own for every pair of routes of the flows.
class Network {
  public:
    explicit Network(const Plan& plan);

    std::deque<Link> links;
    std::vector<Ends> ends;      ///< of each flow
    std::vector<Losses> losses;  ///< of each flow

  private:
    void BuildNodes(const Plan& plan);
    void Route(const FlowPlan& flow, const Ends& ends);

    ns3::NodeContainer m_nodes;
    std::vector<uint32_t> m_tails, m_heads; ///< node before and behind each link
};
