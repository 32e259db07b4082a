// SPDX-License-Identifier: GPL-2.0-only
#pragma once

#include "flow.h"
#include "network.h"

#include <deque>
#include <ostream>

/// A row of a link's time series.
struct LinkSample {
    double time_s;
    size_t link;
    uint64_t packets, bytes;
};

/// What a run leaves behind.
struct Outcome {
    const Plan& plan;
    const Network& network;
    const std::deque<Flow>& flows;
    const std::vector<LinkSample>& link_series;
};

/// Prints the tables that the simulator makes of a run as one object of JSON: by table, by column. Flows and links are
/// their numbers, and what is not measured is null.
void Print(std::ostream& out, const Outcome& run);
