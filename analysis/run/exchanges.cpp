// SPDX-License-Identifier: Apache-2.0
#include "analysis/run/exchanges.h"

#include <algorithm>
#include <limits>

namespace paceline::analysis {
namespace run_exchanges {
namespace {

constexpr const char* messages[] = {"all-gather", "mean of P", "mean of Q"};  // of compressed gradients

const ExchangeTime* find(const RankSummary& rank, const std::string& name) {
  const auto found = std::ranges::find(rank.exchanges, name, &ExchangeTime::name);
  return found == rank.exchanges.end() ? nullptr : &*found;
}

// The typical time of a call on the rank that waits least for the others.
double least_s(const RunAnalysis& run, const std::string& name) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const RankSummary& rank : run.per_rank) {
    if (const ExchangeTime* time = find(rank, name)) least = std::min(least, time->median_ns);
  }
  return 1e-9 * static_cast<double>(least);
}

std::optional<Compression> compression_of(const RunAnalysis& run, const Exchanges& all) {
  const ExchangeRow *const compress = all.find("compress"), *const decompress = all.find("decompress");
  const auto ranks = static_cast<double>(run.ranks);
  if (compress == nullptr || decompress == nullptr || decompress->bytes <= 0 || run.ranks < 2) return std::nullopt;
  Compression found;
  found.work_s = compress->total_s + decompress->total_s;
  found.gradient_bytes = decompress->bytes;
  const double ring = 2 * (ranks - 1) / ranks;  // what a rank sends of each byte of an allreduce
  found.plain_bytes = ring * found.gradient_bytes;
  for (const char* name : messages) {
    const ExchangeRow* const row = all.find(name);
    if (row == nullptr) continue;
    const bool gathered = row->name == "all-gather";  // every rank sends its message to all others
    found.sent_bytes += (gathered ? ranks - 1 : ring) * row->bytes;
    found.exchange_s += row->calls * least_s(run, name);
  }
  if (found.sent_bytes <= 0 || found.exchange_s <= 0) return std::nullopt;
  found.link_gbit = run.config.number("link_gbit");
  found.plain_exchange_s = found.link_gbit ? 8e-9 * found.plain_bytes / *found.link_gbit
                                           : found.exchange_s * found.plain_bytes / found.sent_bytes;
  return found;
}

}  // namespace
}  // namespace run_exchanges

const ExchangeRow* Exchanges::find(const std::string& name) const {
  const auto found = std::ranges::find(rows, name, &ExchangeRow::name);
  return found == rows.end() ? nullptr : &*found;
}

std::optional<Exchanges> exchanges_of(const RunAnalysis& run) {
  Exchanges all;
  if (run.refused() || run.per_rank.empty()) return std::nullopt;
  for (const char* name : {"reduce-scatter", "all-gather", "mean of P", "mean of Q", "compress", "decompress"}) {
    ExchangeRow row{.name = name};
    bool any = false;
    const double ranks = static_cast<double>(run.per_rank.size());
    for (const RankSummary& rank : run.per_rank) {
      const ExchangeTime* const time = run_exchanges::find(rank, name);
      if (time == nullptr || rank.iterations.empty()) continue;
      any = true;
      const double part = 1 / (ranks * static_cast<double>(rank.iterations.size()));
      row.calls += part * static_cast<double>(time->calls);
      row.bytes += part * time->bytes;
      row.total_s += 1e-9 * part * static_cast<double>(time->overlap.communication_ns);
      row.hidden_s += 1e-9 * part * static_cast<double>(time->overlap.hidden_ns);
      row.exposed_s += 1e-9 * part * static_cast<double>(time->overlap.exposed_ns());
    }
    if (any) all.rows.push_back(std::move(row));
  }
  if (all.rows.empty()) return std::nullopt;
  all.compression = run_exchanges::compression_of(run, all);
  return all;
}

}  // namespace paceline::analysis
