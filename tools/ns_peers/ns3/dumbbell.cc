// A dumbbell in ns-3.37: K senders share one drop-tail link; prints one line of JSON.
//
//   dumbbell agent=TcpNewReno flows=1 rate=10e6 rtt=0.150 buffer=50 duration=400
//
// Units are bits/s, seconds, packets and bytes. Every field of `Options` is an argument, and the names
// are those of tools/ns_peers/ns2/dumbbell.tcl. docs/results/peers.md says what differs between the two simulators.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <deque>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace ns3;

namespace {

// ------------------------------------------------------------------------------- options

struct Options {
    // Any TypeId below ns3::TcpCongestionOps, without "ns3::"; TcpWestwoodPlus is TcpWestwood so set.
    std::string agent = "TcpNewReno";
    uint32_t flows = 1;
    double rate = 10e6;
    double rtt = 0.150;
    uint32_t buffer = 50;       // packets in the bottleneck, the one in service included
    double duration = 400.0;
    uint32_t payload = 1196;    // segment; 1196 + 12 timestamps + 20 TCP + 20 IP + 2 PPP = 1250 on the wire
    uint32_t timestamps = 1;
    double access = 100e6;
    uint32_t delack = 0;        // 1: every second segment is acknowledged, as ns-3 does by default
    uint32_t sack = 1;
    uint32_t iw = 2;
    double minrto = 1.0;
    double loss = 0.0;
    std::string traffic = "always"; // or onoff: exponential bytes, exponential pause, the socket is kept
    double on_bytes = 10e6;
    double off_s = 0.5;
    double spread = 0.0;        // starts are uniform in [0, spread)
    std::string starts;         // start times, comma separated; otherwise drawn
    uint32_t seed = 1;
    uint32_t sample = 1;        // average the sender's last RTT over deliveries
    uint32_t monitor = 1;       // count drops and waiting time per flow
    double socket = 0.0;        // bytes of both socket buffers; 0: max(1 MiB, 4 (BDP + buffer))

    uint32_t WireBytes() const { return payload + 42 + (timestamps ? 12 : 0); }

    double SocketBytes() const {
        if (socket > 0.0) return socket;
        const double pipe = rate * rtt / 8.0 + double(buffer) * WireBytes();
        return std::max(1048576.0, 4.0 * pipe);
    }
};

template <typename T>
std::function<void(const std::string&)> Into(T& target) {
    return [&target](const std::string& text) {
        double number = 0.0; // accepts 10e6 for an integer too
        std::istringstream(text) >> number;
        target = static_cast<T>(number);
    };
}

template <>
std::function<void(const std::string&)> Into(std::string& target) {
    return [&target](const std::string& text) { target = text; };
}

Options ReadOptions(int argc, char** argv) {
    Options o;
    const std::map<std::string, std::function<void(const std::string&)>> known = {
        {"agent", Into(o.agent)},       {"flows", Into(o.flows)},       {"rate", Into(o.rate)},
        {"rtt", Into(o.rtt)},           {"buffer", Into(o.buffer)},     {"duration", Into(o.duration)},
        {"payload", Into(o.payload)},   {"access", Into(o.access)},     {"timestamps", Into(o.timestamps)},
        {"delack", Into(o.delack)},     {"sack", Into(o.sack)},         {"iw", Into(o.iw)},
        {"minrto", Into(o.minrto)},     {"loss", Into(o.loss)},         {"traffic", Into(o.traffic)},
        {"on_bytes", Into(o.on_bytes)}, {"off_s", Into(o.off_s)},       {"spread", Into(o.spread)},
        {"starts", Into(o.starts)},
        {"seed", Into(o.seed)},         {"sample", Into(o.sample)},     {"monitor", Into(o.monitor)},
        {"socket", Into(o.socket)},
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
        found->second(argument.substr(cut + 1));
    }
    if (o.buffer < 2) {
        std::cerr << "buffer must be at least 2: one packet in service and one waiting" << std::endl;
        std::exit(2);
    }
    return o;
}

// Hybla with the ratio of round trips that it is meant to have. ns-3.37 computes it when a round trip equals
// the smallest; on a link of constant delay that was the SYN's, shorter than a data packet's, so it never does.
class RatedHybla : public TcpHybla {
  public:
    static TypeId GetTypeId() {
        static TypeId id = TypeId("ns3::TcpHyblaRated").SetParent<TcpHybla>().AddConstructor<RatedHybla>();
        return id;
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t segments, const Time&) override {
        TcpHybla::PktsAcked(state, segments, state->m_minRtt);
    }

    Ptr<TcpCongestionOps> Fork() override { return CopyObject<RatedHybla>(this); }
};

NS_OBJECT_ENSURE_REGISTERED(RatedHybla);

void SetDefaults(const Options& o) {
    const bool plus = o.agent == "TcpWestwoodPlus";
    if (plus) Config::SetDefault("ns3::TcpWestwood::ProtocolType", EnumValue(TcpWestwood::WESTWOODPLUS));
    const std::string agent = "ns3::" + (plus ? "TcpWestwood" : o.agent);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(agent)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(o.payload));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(o.iw));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(o.delack ? 2 : 1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(uint32_t(o.SocketBytes())));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(uint32_t(o.SocketBytes())));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(o.minrto)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(o.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(o.timestamps));
    RngSeedManager::SetRun(o.seed);
}

std::vector<double> GivenStarts(const Options& o) {
    std::vector<double> found;
    std::istringstream words(o.starts);
    for (std::string word; std::getline(words, word, ',');) found.push_back(std::stod(word));
    return found;
}

// --------------------------------------------------------------------------------- flows

// What one flow did. The simulator's trace sources fill it in.
struct Record {
    double start_s = 0.0;
    double active_s = 0.0;
    uint64_t payload_bytes = 0;
    uint64_t sent = 0;
    uint64_t retransmits = 0;
    uint64_t timeouts = 0;
    uint64_t drops = 0;
    uint64_t left = 0;     // packets that left the bottleneck queue
    Time waited;           // summed over them
    Time last_rtt;         // the sender's newest sample
    Time summed_rtt;       // of last_rtt, at every delivery
    uint64_t samples = 0;
    SequenceNumber32 next_new{0};
};

// Offers bytes to a TCP socket: without end, or in transfers with pauses between them.
class Source {
  public:
    Source(const Options& o, Record& record, Ptr<Socket> socket, Address to)
        : m_options(o), m_record(record), m_socket(socket), m_to(to) {
        m_size->SetAttribute("Mean", DoubleValue(o.on_bytes));
        m_pause->SetAttribute("Mean", DoubleValue(o.off_s));
    }

    void Start() {
        m_socket->SetSendCallback(MakeCallback(&Source::OnRoom, this));
        m_socket->SetConnectCallback(MakeCallback(&Source::OnConnected, this), MakeNullCallback<void, Ptr<Socket>>());
        m_socket->Bind();
        m_socket->Connect(m_to);
        Offer();
    }

    void Stop() {
        if (m_offering) m_record.active_s += (Simulator::Now() - m_offered_at).GetSeconds();
    }

  private:
    void Offer() {
        m_offered_at = Simulator::Now();
        m_offering = true;
        m_left = Endless() ? 0.0 : std::max(1.0, m_size->GetValue());
        if (m_connected) Fill();
    }

    void OnConnected(Ptr<Socket>) {
        m_connected = true;
        Fill();
    }

    // Called when an ACK has freed room, so it also tells when everything has been acknowledged.
    void OnRoom(Ptr<Socket>, uint32_t) {
        if (!m_connected || !m_offering) return;
        Fill();
        if (!Endless() && m_left <= 0.0 && m_socket->GetTxAvailable() == uint32_t(m_options.SocketBytes())) {
            Stop();
            m_offering = false;
            Simulator::Schedule(Seconds(m_pause->GetValue()), &Source::Offer, this);
        }
    }

    void Fill() {
        while ((Endless() || m_left > 0.0) && m_socket->GetTxAvailable() >= m_options.payload) {
            if (m_socket->Send(Create<Packet>(m_options.payload)) < 0) return;
            m_left -= m_options.payload;
        }
    }

    bool Endless() const { return m_options.traffic == "always"; }

    const Options& m_options;
    Record& m_record;
    Ptr<Socket> m_socket;
    Address m_to;
    Ptr<ExponentialRandomVariable> m_size = CreateObject<ExponentialRandomVariable>();
    Ptr<ExponentialRandomVariable> m_pause = CreateObject<ExponentialRandomVariable>();
    Time m_offered_at;
    double m_left = 0.0; // bytes of this transfer not yet handed to the socket
    bool m_connected = false;
    bool m_offering = false;
};

// Accepts one connection and discards what arrives.
class Sink {
  public:
    Sink(Record& record, Ptr<Socket> listener, uint16_t port) : m_record(record), m_listener(listener) {
        m_listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Sink::OnAccept, this));
    }

  private:
    void OnAccept(Ptr<Socket> socket, const Address&) { socket->SetRecvCallback(MakeCallback(&Sink::OnData, this)); }

    void OnData(Ptr<Socket> socket) {
        uint64_t bytes = 0;
        while (Ptr<Packet> packet = socket->Recv()) {
            if (packet->GetSize() == 0) break;
            bytes += packet->GetSize();
        }
        if (bytes == 0) return;
        m_record.payload_bytes += bytes;
        if (m_record.last_rtt.IsStrictlyPositive()) {
            m_record.summed_rtt += m_record.last_rtt;
            ++m_record.samples;
        }
    }

    Record& m_record;
    Ptr<Socket> m_listener;
};

void OnSent(Record* record, Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>) {
    if (packet->GetSize() == 0) return;
    ++record->sent;
    if (header.GetSequenceNumber() < record->next_new) {
        ++record->retransmits;
    } else {
        record->next_new = header.GetSequenceNumber() + packet->GetSize();
    }
}

void OnRtt(Record* record, Time, Time now) { record->last_rtt = now; }

// Counts entries into the loss state: a second time-out in a row is not seen.
void OnState(Record* record, TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t now) {
    if (now == TcpSocketState::CA_LOSS) ++record->timeouts;
}

// ------------------------------------------------------------------------------- network

// Bottleneck queue: who waits since when. First in, first out, so a list is enough.
class QueueMonitor {
  public:
    QueueMonitor(Ptr<Queue<Packet>> queue, std::vector<Record>& records) : m_records(records) {
        queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&QueueMonitor::OnEnqueue, this));
        queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&QueueMonitor::OnDequeue, this));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&QueueMonitor::OnDrop, this));
    }

  private:
    void OnEnqueue(Ptr<const Packet> packet) { m_waiting.emplace_back(FlowOf(packet), Simulator::Now()); }

    void OnDequeue(Ptr<const Packet>) {
        const auto [flow, since] = m_waiting.front();
        m_waiting.pop_front();
        m_records[flow].waited += Simulator::Now() - since;
        ++m_records[flow].left;
    }

    void OnDrop(Ptr<const Packet> packet) { ++m_records[FlowOf(packet)].drops; }

    // The receiver's address is 10.2.flow.2 and stands 16 bytes into IP, behind 2 bytes of PPP.
    static size_t FlowOf(Ptr<const Packet> packet) {
        uint8_t head[22];
        packet->CopyData(head, sizeof(head));
        return head[20];
    }

    std::vector<Record>& m_records;
    std::deque<std::pair<size_t, Time>> m_waiting;
};

struct Network {
    NodeContainer senders, receivers, routers;
    std::vector<Ipv4Address> receiver_address;
    Ptr<Queue<Packet>> queue;
};

NetDeviceContainer Connect(Ptr<Node> a, Ptr<Node> b, double rate, double delay_s) {
    PointToPointHelper link;
    link.DisableFlowControl(); // no queueing discipline: the device's own queue is the only one
    link.SetDeviceAttribute("DataRate", DataRateValue(DataRate(uint64_t(rate))));
    link.SetChannelAttribute("Delay", TimeValue(Seconds(delay_s)));
    link.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100000p"));
    return link.Install(a, b);
}

void BuildBottleneck(const Options& o, Network& net) {
    const auto devices = Connect(net.routers.Get(0), net.routers.Get(1), o.rate, o.rtt / 2.0);
    net.queue = DynamicCast<PointToPointNetDevice>(devices.Get(0))->GetQueue();
    // The packet in service is no longer in the queue.
    net.queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, o.buffer - 1));
    if (o.loss > 0.0) {
        auto model = CreateObject<RateErrorModel>();
        model->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        model->SetRate(o.loss);
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(model));
    }
    Ipv4AddressHelper("10.0.0.0", "255.255.255.0").Assign(devices);
}

Network BuildNetwork(const Options& o) {
    Network net;
    net.senders.Create(o.flows);
    net.receivers.Create(o.flows);
    net.routers.Create(2);
    InternetStackHelper().InstallAll();
    BuildBottleneck(o, net);
    for (uint32_t i = 0; i < o.flows; ++i) {
        const std::string third = std::to_string(i) + ".0";
        const auto left = Connect(net.senders.Get(i), net.routers.Get(0), o.access, 0.0);
        Ipv4AddressHelper(("10.1." + third).c_str(), "255.255.255.0").Assign(left);
        const auto right = Connect(net.routers.Get(1), net.receivers.Get(i), o.access, 0.0);
        const auto at = Ipv4AddressHelper(("10.2." + third).c_str(), "255.255.255.0").Assign(right);
        net.receiver_address.push_back(at.GetAddress(1));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return net;
}

// -------------------------------------------------------------------------------- result

void PrintFlow(const Options& o, const Record& r) {
    const double wire = double(r.payload_bytes) / o.payload * o.WireBytes();
    std::cout << "{\"start_s\":" << r.start_s << ",\"active_s\":" << r.active_s
              << ",\"delivered_bytes\":" << uint64_t(wire + 0.5) << ",\"sent\":" << r.sent
              << ",\"retransmits\":" << r.retransmits << ",\"timeouts\":" << r.timeouts << ",\"window_cuts\":null";
    if (o.monitor) {
        std::cout << ",\"drops\":" << r.drops
                  << ",\"wait_ms\":" << (r.left ? 1e3 * r.waited.GetSeconds() / double(r.left) : 0.0);
    } else {
        std::cout << ",\"drops\":null,\"wait_ms\":null";
    }
    if (o.sample && r.samples) {
        std::cout << ",\"d_ms\":" << 1e3 * (r.summed_rtt.GetSeconds() / double(r.samples) - o.rtt) << "}";
    } else {
        std::cout << ",\"d_ms\":null}";
    }
}

void PrintResult(const Options& o, const std::vector<Record>& records) {
    uint64_t payload_bytes = 0, sent = 0, drops = 0;
    for (const auto& r : records) {
        payload_bytes += r.payload_bytes;
        sent += r.sent;
        drops += r.drops;
    }
    std::cout.precision(12);
    std::cout << "{\"peer\":\"ns-3\",\"duration_s\":" << o.duration << ",\"wire_bytes\":" << o.WireBytes()
              << ",\"delivered_bytes\":" << uint64_t(double(payload_bytes) / o.payload * o.WireBytes() + 0.5)
              << ",\"sent\":" << sent << ",\"drops\":" << (o.monitor ? std::to_string(drops) : "null")
              << ",\"flows\":[";
    for (size_t i = 0; i < records.size(); ++i) {
        if (i > 0) std::cout << ",";
        PrintFlow(o, records[i]);
    }
    std::cout << "]}" << std::endl;
}

Ptr<Socket> TracedSocket(const Options& o, Ptr<Node> node, Record* record) {
    auto socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    socket->TraceConnectWithoutContext("Tx", MakeBoundCallback(&OnSent, record));
    socket->TraceConnectWithoutContext("CongState", MakeBoundCallback(&OnState, record));
    if (o.sample) socket->TraceConnectWithoutContext("RTT", MakeBoundCallback(&OnRtt, record));
    return socket;
}

} // namespace

int main(int argc, char** argv) {
    const Options o = ReadOptions(argc, argv);
    SetDefaults(o);
    const Network net = BuildNetwork(o);

    std::vector<Record> records(o.flows);
    std::deque<Source> sources;
    std::deque<Sink> sinks;
    std::deque<QueueMonitor> monitors;
    if (o.monitor) monitors.emplace_back(net.queue, records);
    auto uniform = CreateObject<UniformRandomVariable>();
    const auto given = GivenStarts(o);
    for (uint32_t i = 0; i < o.flows; ++i) {
        Record& record = records[i];
        record.start_s = i < given.size() ? given[i] : o.spread * uniform->GetValue();
        sinks.emplace_back(record, Socket::CreateSocket(net.receivers.Get(i), TcpSocketFactory::GetTypeId()), 5000);
        sources.emplace_back(o, record, TracedSocket(o, net.senders.Get(i), &record),
                             InetSocketAddress(net.receiver_address[i], 5000));
        Simulator::Schedule(Seconds(record.start_s), &Source::Start, &sources.back());
    }
    Simulator::Stop(Seconds(o.duration));
    Simulator::Run();
    for (auto& source : sources) source.Stop();
    PrintResult(o, records);
    Simulator::Destroy();
    return 0;
}
