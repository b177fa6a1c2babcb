// SPDX-License-Identifier: Apache-2.0
// What a sharded optimizer exchanges, and what compressed gradients cost and save. docs/metrics.md has the formulas.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// One kind of exchange or of local work, in an iteration of a rank: means over the ranks.
struct ExchangeRow {
  std::string name;  // as ExchangeTime::name
  double calls = 0, bytes = 0, total_s = 0, hidden_s = 0, exposed_s = 0;
};

// The compression of gradients, in an iteration of a rank.
struct Compression {
  double work_s = 0;                // compress and decompress, mean over the ranks
  double gradient_bytes = 0;        // that the optimizer needs
  double sent_bytes = 0;            // that a rank sends
  double plain_bytes = 0;           // that a rank would send of the whole gradient in a ring
  double exchange_s = 0;            // of the messages, on the rank that waits least
  double plain_exchange_s = 0;      // of the whole gradient at the same rate
  std::optional<double> link_gbit;  // the rate that the user gave; nothing: the rate that the messages reached
  double saved_s() const { return plain_exchange_s - exchange_s; }
};

struct Exchanges {
  std::vector<ExchangeRow> rows;  // in the order of ExchangeTime::name
  std::optional<Compression> compression;

  const ExchangeRow* find(const std::string& name) const;
};

// Nothing where the run has neither, or no iterations.
std::optional<Exchanges> exchanges_of(const RunAnalysis& run);

}  // namespace paceline::analysis
