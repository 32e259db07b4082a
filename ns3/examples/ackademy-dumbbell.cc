// SPDX-License-Identifier: GPL-2.0-only
// Two senders share one link under a controller of Ackademy:
//
//   ackademy-dumbbell --controller=bbr3
//   ackademy-dumbbell --controller=policy --parameters=policy=data/policies/flagship
//   ackademy-dumbbell --ns3::TcpL4Protocol::SocketType=ns3::TcpAckademy --ns3::TcpAckademy::Controller=copa
#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <iostream>

using namespace ns3;

namespace {

NetDeviceContainer
Connect(Ptr<Node> a, Ptr<Node> b, const std::string& rate, const std::string& delay, const std::string& queue) {
    PointToPointHelper link;
    link.DisableFlowControl(); // no queue discipline: the device's queue is the only one
    link.SetDeviceAttribute("DataRate", StringValue(rate));
    link.SetChannelAttribute("Delay", StringValue(delay));
    link.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", StringValue(queue));
    return link.Install(a, b);
}

} // namespace

int
main(int argc, char** argv) {
    std::string controller, parameters;
    double seconds = 30.0;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1446));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    CommandLine command(__FILE__);
    command.AddValue("controller", "of both senders, as `ackademy list` names it", controller);
    command.AddValue("parameters", "its settings: name=value, separated by commas", parameters);
    command.AddValue("seconds", "simulated", seconds);
    command.Parse(argc, argv);
    if (!controller.empty()) {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpAckademy"));
        Config::SetDefault("ns3::TcpAckademy::Controller", StringValue(controller));
        Config::SetDefault("ns3::TcpAckademy::Parameters", StringValue(parameters));
    }

    NodeContainer senders(2), receivers(2), routers(2);
    InternetStackHelper().InstallAll();
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.0");
    addresses.Assign(Connect(routers.Get(0), routers.Get(1), "10Mbps", "20ms", "50p"));
    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t i = 0; i < senders.GetN(); ++i) {
        addresses.NewNetwork();
        addresses.Assign(Connect(senders.Get(i), routers.Get(0), "1Gbps", "0ms", "1000p"));
        addresses.NewNetwork();
        const auto at = addresses.Assign(Connect(routers.Get(1), receivers.Get(i), "1Gbps", "0ms", "1000p"));
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), 5000));
        sinks.push_back(DynamicCast<PacketSink>(sink.Install(receivers.Get(i)).Get(0)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(at.GetAddress(1), 5000));
        source.SetAttribute("MaxBytes", UintegerValue(0));
        source.Install(senders.Get(i)).Start(Seconds(0.1 * (i + 1)));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    Simulator::Stop(Seconds(seconds));
    Simulator::Run();
    for (const auto& sink : sinks) {
        std::cout << 8e-6 * double(sink->GetTotalRx()) / seconds << " Mb/s" << std::endl;
    }
    Simulator::Destroy();
    return 0;
}
