// SPDX-License-Identifier: GPL-2.0-only
#include "network.h"

#include "ns3/boolean.h"
#include "ns3/data-rate.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/error-model.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/ipv4.h"
#include "ns3/mac48-address.h"
#include "ns3/pointer.h"
#include "ns3/simple-channel.h"
#include "ns3/simulator.h"

#include <map>
#include <numeric>

using namespace ns3;

NS_OBJECT_ENSURE_REGISTERED(FlowTag);

TypeId FlowTag::GetTypeId() {
    static TypeId id = TypeId("ackademy::FlowTag").SetParent<Tag>().AddConstructor<FlowTag>();
    return id;
}

void FlowTag::Serialize(TagBuffer to) const {
    to.WriteU32(flow);
    to.WriteU64(uint64_t(sent_ns));
}

void FlowTag::Deserialize(TagBuffer from) {
    flow = from.ReadU32();
    sent_ns = int64_t(from.ReadU64());
}

namespace {

Ptr<SimpleNetDevice> AddDevice(Ptr<Node> node, Ptr<SimpleChannel> channel) {
    auto device = CreateObject<SimpleNetDevice>();
    device->SetAttribute("PointToPointMode", BooleanValue(true));
    device->SetAddress(Mac48Address::Allocate());
    node->AddDevice(device);
    device->SetChannel(channel);
    return device;
}

// Queue and transmitter, the packet in transmission outside the queue.
void SetUp(Ptr<SimpleNetDevice> device, const LinkPlan& plan) {
    device->SetAttribute("DataRate", DataRateValue(DataRate(plan.rate_bps)));
    auto queue = CreateObject<DropTailQueue<Packet>>();
    const uint64_t waiting = plan.packets ? std::min<uint64_t>(plan.packets - 1, UINT32_MAX) : UINT32_MAX;
    queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, uint32_t(waiting)));
    device->SetQueue(queue);
}

void AddAddress(Ptr<SimpleNetDevice> device, uint32_t interface, Ipv4Address local) {
    device->GetNode()->GetObject<Ipv4>()->AddAddress(interface, {local, Ipv4Mask("255.255.255.252")});
}

uint32_t AddInterface(Ptr<SimpleNetDevice> device) {
    auto ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->SetUp(interface);
    return interface;
}

// An interface needs an address to forward packets.
void AddressTheRest(const NodeContainer& nodes) {
    uint32_t next = (172u << 24) + (16u << 16) + 1;
    for (auto node = nodes.Begin(); node != nodes.End(); ++node) {
        auto ipv4 = (*node)->GetObject<Ipv4>();
        for (uint32_t interface = 0; interface < ipv4->GetNInterfaces(); ++interface) {
            if (ipv4->GetNAddresses(interface) > 0) continue;
            AddAddress(DynamicCast<SimpleNetDevice>(ipv4->GetNetDevice(interface)), interface, Ipv4Address(next));
            next += 4;
        }
    }
}

} // namespace

Link::Link(const LinkPlan& link, Ptr<Node> from, Ptr<Node> to, std::vector<Losses>& losses)
    : plan(link), m_losses(losses) {
    auto channel = CreateObject<SimpleChannel>();
    channel->SetAttribute("Delay", TimeValue(NanoSeconds(link.delay_ns)));
    device = AddDevice(from, channel);
    m_end = AddDevice(to, channel);
    SetUp(device, link);
    interface = AddInterface(device);
    AddInterface(m_end);
    auto queue = device->GetQueue();
    queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Link::OnEnqueue, this));
    queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Link::OnDequeue, this));
    queue->TraceConnectWithoutContext("Drop", MakeCallback(&Link::OnDrop, this));
    m_end->TraceConnectWithoutContext("PhyRxDrop", MakeCallback(&Link::OnLoss, this));
}

void Link::Reset() {
    arrived = queue_drops = random_losses = served = served_bytes = 0;
    waited_s = 0.0;
    if (plan.loss > 0.0) {
        auto model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(plan.loss);
        m_end->SetReceiveErrorModel(model);
    }
}

std::pair<uint64_t, uint64_t> Link::System() const {
    const auto queue = device->GetQueue();
    const bool busy = Simulator::Now() < m_busyUntil;
    return {queue->GetNPackets() + busy, queue->GetNBytes() + (busy ? m_inService : 0)};
}

void Link::OnEnqueue(Ptr<const Packet>) {
    ++arrived;
    m_since.push_back(Simulator::Now());
}

void Link::OnDequeue(Ptr<const Packet> packet) {
    waited_s += (Simulator::Now() - m_since.front()).GetSeconds();
    m_since.pop_front();
    ++served;
    served_bytes += packet->GetSize();
    m_inService = packet->GetSize();
    m_busyUntil = Simulator::Now() + DataRate(plan.rate_bps).CalculateBytesTxTime(packet->GetSize());
}

void Link::OnDrop(Ptr<const Packet> packet) {
    ++arrived;
    ++queue_drops;
    FlowTag tag;
    if (packet->PeekPacketTag(tag)) ++m_losses[tag.flow].queue_drops;
}

void Link::OnLoss(Ptr<const Packet> packet) {
    ++random_losses;
    FlowTag tag;
    if (packet->PeekPacketTag(tag)) ++m_losses[tag.flow].random;
}

Network::Network(const Plan& plan) : losses(plan.flows.size()) {
    BuildNodes(plan);
    for (size_t i = 0; i < plan.links.size(); ++i) {
        links.emplace_back(plan.links[i], m_nodes.Get(m_tails[i]), m_nodes.Get(m_heads[i]), losses);
    }
    std::map<std::pair<std::vector<uint64_t>, std::vector<uint64_t>>, Ends> known;
    for (const auto& flow : plan.flows) {
        const auto [at, is_new] = known.try_emplace({flow.forward, flow.reverse});
        if (is_new) {
            // A /30 for each end, as addresses of the interfaces that it sends from.
            const uint32_t number = 8 * uint32_t(known.size()) + 1;
            Ends& own = at->second;
            own.sender = m_nodes.Get(m_tails[flow.forward.front()]);
            own.receiver = m_nodes.Get(m_heads[flow.forward.back()]);
            own.sender_address = Ipv4Address((10u << 24) + number);
            own.receiver_address = Ipv4Address((10u << 24) + number + 4);
            Route(flow, own);
        }
        ends.push_back(at->second);
    }
    AddressTheRest(m_nodes);
}

// A link of a route begins where the one before it ends; the way back begins where the way there ends.
void Network::BuildNodes(const Plan& plan) {
    const size_t count = plan.links.size();
    std::vector<uint32_t> parent(2 * count); // tails, then heads
    std::iota(parent.begin(), parent.end(), 0);
    const auto root = [&parent](uint32_t end) {
        while (parent[end] != end) end = parent[end] = parent[parent[end]];
        return end;
    };
    for (const auto& flow : plan.flows) {
        auto circle = flow.forward;
        circle.insert(circle.end(), flow.reverse.begin(), flow.reverse.end());
        for (size_t i = 0; i < circle.size(); ++i) {
            parent[root(uint32_t(count + circle[i]))] = root(uint32_t(circle[(i + 1) % circle.size()]));
        }
    }
    std::map<uint32_t, uint32_t> nodes;
    const auto node = [&](uint32_t end) { return nodes.try_emplace(root(end), nodes.size()).first->second; };
    for (uint32_t i = 0; i < count; ++i) {
        m_tails.push_back(node(i));
        m_heads.push_back(node(uint32_t(count + i)));
    }
    m_nodes.Create(uint32_t(nodes.size()));
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    stack.Install(m_nodes);
}

void Network::Route(const FlowPlan& flow, const Ends& own) {
    const Link& there = links[flow.forward.front()];
    const Link& back = links[flow.reverse.front()];
    for (const Link* first : {&there, &back}) {
        // ns-3's TCP takes the first address of the interface that it sends through.
        if (first->device->GetNode()->GetObject<Ipv4>()->GetNAddresses(first->interface) > 0) {
            throw Refused("flows that begin on one link and take different routes: allowed with ns-3 is one route");
        }
    }
    AddAddress(there.device, there.interface, own.sender_address);
    AddAddress(back.device, back.interface, own.receiver_address);
    const auto through = [this](const std::vector<uint64_t>& route, Ipv4Address to) {
        for (const uint64_t index : route) {
            const Link& link = links[index];
            auto ipv4 = link.device->GetNode()->GetObject<Ipv4>();
            Ipv4StaticRoutingHelper().GetStaticRouting(ipv4)->AddHostRouteTo(to, link.interface);
        }
    };
    through(flow.forward, own.receiver_address);
    through(flow.reverse, own.sender_address);
}
