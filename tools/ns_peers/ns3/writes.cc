// ns-3's answer to one transfer of Knott 2023: an application that writes at a constant rate into a TCP
// send buffer, and drops what the buffer refuses, over one point-to-point link.
//
// usage: writes [key=value ...], keys as in `struct Options`. Prints one JSON object; with `trace=1`,
// first one line per change of the sender's congestion window: seconds, bytes.
//
// ns-3's defaults are kept where an option does not name them: segments of 536 bytes, PRR, delayed ACKs
// of 2 segments or 200 ms, a time-out of at least 1 s, FqCoDel above a device queue of 100 packets.
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

struct Options {
    double rate = 4e6;         // of the link, bit/s
    double delay = 0.02;       // of the link, one way, seconds
    double beta = 0.7;         // TcpCubic's Beta
    double c = 0.4;            // TcpCubic's C
    double count = 1000;       // writes
    double size = 1500;        // bytes a write
    double every = 0.0015;     // seconds between writes
    double buffer = 131072;    // send and receive buffer, bytes
    double segment = 536;      // bytes
    double delack = 2;         // segments per ACK
    double minrto = 1.0;       // seconds
    double hystart = 1;        // TcpCubic's HyStart
    double sack = 1;           //
    double qdisc = 1;          // FqCoDel above the device; 0: none
    double start = 0.0;        // seconds from the connection's SYN to the first write
    double duration = 200;     // seconds
    double trace = 0;          //
};

Options ReadOptions(int argc, char** argv) {
    Options o;
    const std::map<std::string, double*> known = {
        {"rate", &o.rate},       {"delay", &o.delay},     {"beta", &o.beta},         {"c", &o.c},
        {"count", &o.count},     {"size", &o.size},       {"every", &o.every},       {"buffer", &o.buffer},
        {"segment", &o.segment}, {"delack", &o.delack},   {"minrto", &o.minrto},     {"hystart", &o.hystart},
        {"sack", &o.sack},     {"qdisc", &o.qdisc},       {"start", &o.start},
        {"duration", &o.duration}, {"trace", &o.trace},
    };
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const auto cut = argument.find('=');
        const auto found = known.find(argument.substr(0, cut));
        if (cut == std::string::npos || found == known.end()) {
            std::cerr << "unknown argument `" << argument << "'; known:";
            for (const auto& entry : known) std::cerr << ' ' << entry.first;
            std::cerr << std::endl;
            std::exit(2);
        }
        std::istringstream(argument.substr(cut + 1)) >> *found->second;
    }
    return o;
}

void SetDefaults(const Options& o) {
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpCubic::GetTypeId()));
    Config::SetDefault("ns3::TcpCubic::Beta", DoubleValue(o.beta));
    Config::SetDefault("ns3::TcpCubic::C", DoubleValue(o.c));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(o.hystart != 0));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(uint32_t(o.segment)));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(uint32_t(o.delack)));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(uint32_t(o.buffer)));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(uint32_t(o.buffer)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(o.minrto)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(o.sack != 0));
}

// What happened.
struct Record {
    uint32_t offered = 0;
    uint32_t accepted = 0;
    uint64_t received_bytes = 0;
    uint64_t sent = 0;
    uint64_t retransmits = 0;
    uint64_t timeouts = 0;
    uint64_t recoveries = 0;
    uint64_t drops = 0;
    double last_s = 0.0; // when the last byte arrived
    SequenceNumber32 next_new{0};
};

// Writes at a constant rate; what the socket refuses is never offered again.
class Writer {
  public:
    Writer(const Options& o, Record& record, Ptr<Socket> socket, Address to)
        : m_options(o), m_record(record), m_socket(socket), m_to(to) {}

    void Connect() {
        m_socket->Bind();
        m_socket->Connect(m_to);
        Simulator::Schedule(Seconds(m_options.start), &Writer::Write, this);
    }

  private:
    void Write() {
        const int taken = m_socket->Send(Create<Packet>(uint32_t(m_options.size)));
        ++m_record.offered;
        m_record.accepted += taken > 0;
        if (m_record.offered < m_options.count) {
            Simulator::Schedule(Seconds(m_options.every), &Writer::Write, this);
        }
    }

    const Options& m_options;
    Record& m_record;
    Ptr<Socket> m_socket;
    Address m_to;
};

Record* g_record = nullptr;

void OnData(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv()) {
        if (packet->GetSize() == 0) break;
        g_record->received_bytes += packet->GetSize();
        g_record->last_s = Simulator::Now().GetSeconds();
    }
}

void OnAccept(Ptr<Socket> socket, const Address&) { socket->SetRecvCallback(MakeCallback(&OnData)); }

void OnSent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) return;
    ++g_record->sent;
    if (header.GetSequenceNumber() < g_record->next_new) {
        ++g_record->retransmits;
    } else {
        g_record->next_new = header.GetSequenceNumber() + packet->GetSize();
    }
}

void OnState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
    g_record->timeouts += now == TcpSocketState::CA_LOSS;
    g_record->recoveries += now == TcpSocketState::CA_RECOVERY;
}

void OnWindow(uint32_t, uint32_t now) { std::cout << Simulator::Now().GetSeconds() << ' ' << now << '\n'; }

void OnDropBefore(Ptr<const QueueDiscItem>, const char*) { ++g_record->drops; }

Ipv4Address BuildLink(const Options& o, NodeContainer nodes) {
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(o.rate))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(o.delay)));
    const auto devices = link.Install(nodes);
    InternetStackHelper().Install(nodes);
    const auto at = Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
    const auto control = nodes.Get(0)->GetObject<TrafficControlLayer>();
    if (o.qdisc == 0) {
        TrafficControlHelper().Uninstall(devices);
    } else {
        const auto disc = control->GetRootQueueDiscOnDevice(devices.Get(0));
        disc->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&OnDropBefore));
        disc->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&OnDropBefore));
    }
    return at.GetAddress(1);
}

void PrintResult(const Options& o, const Record& r) {
    std::cout.precision(12);
    std::cout << "{\"peer\":\"ns-3\",\"offered\":" << r.offered << ",\"accepted\":" << r.accepted
              << ",\"refused\":" << r.offered - r.accepted
              << ",\"received_writes\":" << double(r.received_bytes) / o.size << ",\"last_s\":" << r.last_s
              << ",\"sent\":" << r.sent << ",\"retransmits\":" << r.retransmits << ",\"drops\":" << r.drops
              << ",\"timeouts\":" << r.timeouts << ",\"recoveries\":" << r.recoveries << "}" << std::endl;
}

} // namespace

int main(int argc, char** argv) {
    const Options o = ReadOptions(argc, argv);
    SetDefaults(o);
    NodeContainer nodes(2);
    const auto receiver = BuildLink(o, nodes);

    Record record;
    g_record = &record;
    auto listener = Socket::CreateSocket(nodes.Get(1), TcpSocketFactory::GetTypeId());
    listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), 5000));
    listener->Listen();
    listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), MakeCallback(&OnAccept));
    auto socket = Socket::CreateSocket(nodes.Get(0), TcpSocketFactory::GetTypeId());
    socket->TraceConnectWithoutContext("Tx", MakeCallback(&OnSent));
    socket->TraceConnectWithoutContext("CongState", MakeCallback(&OnState));
    if (o.trace != 0) socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&OnWindow));
    Writer writer(o, record, socket, InetSocketAddress(receiver, 5000));
    Simulator::Schedule(Seconds(0), &Writer::Connect, &writer);

    Simulator::Stop(Seconds(o.duration));
    Simulator::Run();
    PrintResult(o, record);
    Simulator::Destroy();
    return 0;
}
