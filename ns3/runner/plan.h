// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include <cstdint>
#include <istream>
#include <stdexcept>
#include <string>
#include <vector>

/// The version of the lines that `ackademy._core.ns3_plan` writes and of the tables that this program prints.
constexpr uint64_t PROTOCOL = 1;

/// What is wrong with a run, on one line.
struct Refused : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// One direction of a link.
struct LinkPlan {
    bool sampled = false;
    uint64_t rate_bps = 0;
    uint64_t delay_ns = 0;
    uint64_t packets = 0; ///< most in the system, the one in transmission included; 0 for no limit
    double loss = 0.0;    ///< part of the packets lost behind the queue
};

/// One connection. Sizes are of packets on the wire.
struct FlowPlan {
    std::string controller; ///< of Ackademy, or the TypeId of one of ns-3
    std::string settings;   ///< name=value,...; attributes of one of ns-3
    uint64_t seed = 1;
    std::vector<uint64_t> forward, reverse; ///< links, in order
    uint64_t start_ns = 0, stop_ns = UINT64_MAX;
    double transfer_bytes = 0.0; ///< of payload; 0 for no end
    bool transfer_varies = false; ///< exponentially, with that mean
    double pause_s = -1.0;        ///< mean of the exponential pauses between transfers; negative for one transfer
    uint64_t packet = 1500, header = 52;
    uint64_t ack_every = 2, ack_delay_ns = 40'000'000;
    uint64_t initial_cwnd = 10; ///< packets
    uint64_t initial_ssthresh = 0; ///< bytes; 0 for none
    uint64_t rto_margin_ns = 200'000'000; ///< least that the time-out is longer than the smoothed round trip
    bool prr = true, timestamps = true;
    bool handshake = false; ///< as part of the run, and not before it

    uint64_t Payload() const { return packet - header; }
};

struct Plan {
    uint64_t duration_ns = 0;
    uint64_t sample_ns = 0; ///< 0 for no series
    uint64_t seed = 1;
    std::vector<LinkPlan> links;
    std::vector<FlowPlan> flows;
};

/// Reads lines of a key and a value. Throws `Refused`.
Plan ReadPlan(std::istream& in);
