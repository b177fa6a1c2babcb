// SPDX-License-Identifier: Apache-2.0
// How long messages take on each link between two ranks, and which link is slower than the others.
//
// The time of a message runs from the moment at which both sides are there (the start of the send, or the start of the
// receiver's blocking, whichever is later) to the end of its receive. The times of an iteration are added up for each
// link, so that links can be tested like ranks (lateness.h): a slow link is one whose time minus the median over the
// links is larger than chance over all links allows.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/communication/collective_costs.h"
#include "analysis/communication/lateness.h"
#include "analysis/communication/link_rates.h"
#include "analysis/communication/messages.h"
#include "analysis/phases/iterations.h"

namespace paceline::analysis {

// From one rank to another, as indices into Trace::ranks.
struct RankLink {
  std::uint32_t sender = 0, receiver = 0;
  auto operator<=>(const RankLink&) const = default;
};

// Links of one kind that carry equally much in each iteration.
struct LinkTimes {
  bool between_hosts = false;
  std::vector<RankLink> links;
  double bytes = 0;           // of one link in an iteration
  std::vector<double> times;  // seconds of each link in an iteration, mean
  LatenessTest test;          // LatenessTest::late has indices into `links`
};

// The links within hosts and those between hosts, each kind by itself. Only links whose bytes in each iteration are
// within 1 % of the other links' are compared, in iterations that all of them carried messages in; at least three of
// them. `iterations` holds those of each rank, and `ends` has one entry for each rank. Cost: n log n in the messages,
// and that of the test.
std::vector<LinkTimes> link_times(const Messages& messages, std::span<const std::span<const Iteration>> iterations,
                                  std::span<const LinkEnd> ends, double clock_error_ns);

// As link_uses(const Collectives&), of messages of at least 256 KiB between two hosts, in both directions together.
std::vector<LinkUse> link_uses(const Messages& messages, std::span<const LinkEnd> ends);

}  // namespace paceline::analysis
