// SPDX-License-Identifier: GPL-2.0-only
// Runs a plan in ns-3: reads the lines that `ackademy run --backend ns3` writes, prints tables as JSON. Bad input is
// one line on stderr and status 2.
#include "flow.h"
#include "network.h"
#include "plan.h"
#include "tables.h"

#include "../model/tcp-ackademy.h"

#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/version-defines.h"

#include <algorithm>
#include <cmath>
#include <iostream>

using namespace ns3;

namespace {

/// Bytes of the packets of a handshake, and a few more.
constexpr uint64_t SYN_BYTES = 100;

/// Handshakes that are not part of the run come before it, one after the other, so that no queue builds.
struct Before {
    Time between, all;
};

Before Handshakes(const Plan& plan) {
    double slowest_s = 0.0, longest_s = 0.0;
    for (const LinkPlan& link : plan.links) {
        slowest_s = std::max(slowest_s, 8.0 * SYN_BYTES / double(link.rate_bps));
        longest_s += 8.0 * SYN_BYTES / double(link.rate_bps) + 1e-9 * double(link.delay_ns);
    }
    const double all_s = 2.0 * slowest_s * double(plan.flows.size()) + 2.0 * longest_s + 1.0;
    return {Seconds(2.0 * slowest_s), Seconds(std::ceil(all_s))};
}

class Run {
  public:
    explicit Run(const Plan& plan) : m_plan(plan), m_before(Handshakes(plan)), m_network(plan) {
        for (uint32_t i = 0; i < plan.flows.size(); ++i) {
            const FlowPlan& own = plan.flows[i];
            Flow& flow = m_flows.emplace_back(own, i, m_network.ends[i], m_before.all, At(plan.duration_ns));
            if (!own.handshake) Simulator::Schedule(m_before.between * int64_t(i), &Flow::Connect, &flow);
            if (own.start_ns < plan.duration_ns) Simulator::Schedule(At(own.start_ns), &Flow::Begin, &flow);
            if (own.stop_ns < plan.duration_ns) Simulator::Schedule(At(own.stop_ns), &Flow::End, &flow);
        }
        Simulator::Schedule(m_before.all, &Run::Start, this);
    }

    void Go() {
        Simulator::Stop(At(m_plan.duration_ns) + TimeStep(1)); // so that what happens at the end happens
        Simulator::Run();
    }

    void Print(std::ostream& out) const { ::Print(out, {m_plan, m_network, m_flows, m_links}); }

  private:
    Time At(uint64_t ns) const { return m_before.all + NanoSeconds(ns); }

    void Start() {
        for (Link& link : m_network.links) link.Reset();
        if (m_plan.sample_ns) Sample();
    }

    void Sample() {
        const Time now = Simulator::Now() - m_before.all;
        for (size_t i = 0; i < m_flows.size(); ++i) {
            const auto start = NanoSeconds(m_plan.flows[i].start_ns);
            if (now >= start) m_flows[i].Sample(m_network.losses[i]);
        }
        for (size_t i = 0; i < m_network.links.size(); ++i) {
            if (!m_plan.links[i].sampled) continue;
            const auto [packets, bytes] = m_network.links[i].System();
            m_links.push_back({now.GetSeconds(), i, packets, bytes});
        }
        Simulator::Schedule(NanoSeconds(m_plan.sample_ns), &Run::Sample, this);
    }

    const Plan& m_plan;
    Before m_before;
    Network m_network;
    std::deque<Flow> m_flows;
    std::vector<LinkSample> m_links;
};

void PrintVersion() {
    std::cout << "ackademy-ns3 protocol " << PROTOCOL << ", ns-" << NS3_VERSION_MAJOR << '.' << NS3_VERSION_MINOR
              << ", libackademy ABI " << ackademy_abi() << std::endl;
}

int RunPlan() {
    const std::string why = TcpAckademy::WhyUnusable();
    if (!why.empty()) throw Refused(why);
    const Plan plan = ReadPlan(std::cin);
    RngSeedManager::SetRun(plan.seed);
    {
        Run run(plan);
        run.Go();
        run.Print(std::cout);
    }
    Simulator::Destroy();
    return std::cout.flush() ? 0 : 1;
}

} // namespace

int main(int argc, char** argv) {
    const std::string word = argc == 2 ? argv[1] : "";
    try {
        if (word == "--version") {
            PrintVersion();
            return 0;
        }
        if (argc != 1) throw Refused("allowed: --version, or a plan on standard input");
        return RunPlan();
    } catch (const Refused& refused) {
        std::cerr << "ackademy-ns3: " << refused.what() << std::endl;
        return 2;
    }
}
