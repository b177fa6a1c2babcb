// `paceline-train bench-allreduce`: the communicators against each other.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace paceline::train {

struct BenchAllreduceOptions {
  std::vector<std::string> sizes = {"4K", "64K", "1M", "25M"};  // bytes on the wire; K, M, G are powers of 1024
  std::vector<std::string> communicators;                       // empty: all that suit the job
  std::string dtype = "f32";
  int iterations = 20;
};

// "25M" → 26214400. Throws Error (usage) for anything but a number of bytes with an optional K, M or G.
std::size_t parse_bytes(const std::string& text);

// One iteration's time is that of the slowest rank, from a barrier until allreduce_mean returns, casts and division
// included, as training waits for it; the communicators take turns within an iteration, so that whatever else the
// machine does hits all alike; the median over the iterations counts. algbw = bytes ÷ time, busbw = algbw × 2(n − 1)/n
// for n ranks (nccl-tests, doc/PERFORMANCE.md). Before that one mean of known integers is checked to be exact on every
// rank. Rank 0 prints a table. A collective call over all ranks of the job; returns the exit status on all: 1 where a
// mean was wrong. Throws Error (usage) for unknown names or sizes.
int bench_allreduce(const BenchAllreduceOptions& options);

}  // namespace paceline::train
