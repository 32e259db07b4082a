// SPDX-License-Identifier: GPL-2.0-only
#include "plan.h"

#include <functional>
#include <map>
#include <sstream>

namespace {

using Setter = std::function<void(const std::string&)>;

template <typename T>
Setter Into(T& target) {
    return [&target](const std::string& text) {
        std::istringstream words(text);
        if (!(words >> target) || !words.eof()) throw Refused("`" + text + "`: allowed is a number");
    };
}

template <>
Setter Into(std::string& target) {
    return [&target](const std::string& text) { target = text; };
}

template <>
Setter Into(std::vector<uint64_t>& target) {
    return [&target](const std::string& text) {
        std::istringstream words(text);
        for (uint64_t number; words >> number;) target.push_back(number);
    };
}

using Setters = std::map<std::string, Setter>;

Setters OfLink(LinkPlan& link) {
    return {{"sampled", Into(link.sampled)},
            {"rate_bps", Into(link.rate_bps)},
            {"delay_ns", Into(link.delay_ns)},
            {"packets", Into(link.packets)},
            {"loss", Into(link.loss)}};
}

Setters OfFlow(FlowPlan& flow) {
    return {{"controller", Into(flow.controller)},
            {"settings", Into(flow.settings)},
            {"seed", Into(flow.seed)},
            {"forward", Into(flow.forward)},
            {"reverse", Into(flow.reverse)},
            {"start_ns", Into(flow.start_ns)},
            {"stop_ns", Into(flow.stop_ns)},
            {"transfer_bytes", Into(flow.transfer_bytes)},
            {"transfer_varies", Into(flow.transfer_varies)},
            {"pause_s", Into(flow.pause_s)},
            {"packet", Into(flow.packet)},
            {"header", Into(flow.header)},
            {"ack_every", Into(flow.ack_every)},
            {"ack_delay_ns", Into(flow.ack_delay_ns)},
            {"initial_cwnd", Into(flow.initial_cwnd)},
            {"initial_ssthresh", Into(flow.initial_ssthresh)},
            {"rto_margin_ns", Into(flow.rto_margin_ns)},
            {"prr", Into(flow.prr)},
            {"timestamps", Into(flow.timestamps)},
            {"handshake", Into(flow.handshake)}};
}

void Check(const Plan& plan) {
    if (plan.links.empty() || plan.flows.empty()) throw Refused("a plan without links or flows");
    for (const auto& link : plan.links) {
        if (link.rate_bps == 0 || link.packets == 1) throw Refused("a link without a rate, or for one packet");
    }
    for (const auto& flow : plan.flows) {
        if (flow.packet <= flow.header || flow.forward.empty() || flow.reverse.empty()) {
            throw Refused("a flow without payload or without a route");
        }
        for (const auto* route : {&flow.forward, &flow.reverse}) {
            for (const uint64_t link : *route) {
                if (link >= plan.links.size()) throw Refused("a route over link " + std::to_string(link));
            }
        }
    }
}

} // namespace

Plan ReadPlan(std::istream& in) {
    Plan plan;
    uint64_t protocol = 0;
    Setters known = {{"protocol", Into(protocol)},
                     {"duration_ns", Into(plan.duration_ns)},
                     {"sample_ns", Into(plan.sample_ns)},
                     {"seed", Into(plan.seed)}};
    for (std::string line; std::getline(in, line);) {
        const auto cut = line.find(' ');
        const std::string key = line.substr(0, cut);
        if (key == "link") {
            known = OfLink(plan.links.emplace_back());
        } else if (key == "flow") {
            known = OfFlow(plan.flows.emplace_back());
        } else if (const auto found = known.find(key); found != known.end()) {
            found->second(cut == std::string::npos ? "" : line.substr(cut + 1));
        } else {
            throw Refused("unknown key `" + key + "` in the plan");
        }
    }
    if (protocol != PROTOCOL) {
        throw Refused("plans of version " + std::to_string(protocol) + "; allowed: " + std::to_string(PROTOCOL) +
                      "; build this program with `make ns3`");
    }
    Check(plan);
    return plan;
}
