// SPDX-License-Identifier: Apache-2.0
// `paceline-train bench-allreduce`: compares the speed of the communicators.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "trainer/comm/nccl_options.h"

namespace paceline::train {

struct BenchAllreduceOptions {
  std::vector<std::string> sizes;          // bytes on the wire; K, M, G are powers of 1024. Empty: see default_sizes()
  std::vector<std::string> communicators;  // empty: all that can run the job
  std::string device = "cpu";              // memory of the values: cpu, cuda
  bool libraries = false;                  // compare MPI in host memory, MPI in GPU memory and NCCL instead
  bool share_gpu = false;                  // several ranks on one GPU
  int iterations = 20;
  nccl::Options reduction;  // type, ring order, options of NCCL
};

// 4K to 25M; for the libraries, 4K to 256M.
std::vector<std::string> default_sizes(bool libraries);

// Rewrites an error message for the user (cli/option_table.h).
using ForUser = std::string (*)(std::string);

// "25M" → 26214400. Throws Error (usage) for anything but a number of bytes with an optional K, M or G.
std::size_t parse_bytes(const std::string& text);

// Measures the communicators and prints a table on rank 0. An iteration's time is that of the slowest rank, from a
// barrier until allreduce_mean returns, casts and division included, because training waits for it. The communicators
// take turns within an iteration, so that other load on the machine affects all of them, and the median over the
// iterations counts. algbw = bytes ÷ time, busbw = algbw × 2(n − 1)/n for n ranks (nccl-tests, doc/PERFORMANCE.md).
// Before the measurement, every rank checks that one mean of known integers is exact. The table has a row for each size
// and communicator; for the libraries it has a row for each size, a column for each library, and a line with the reason
// for each library that is missing. A collective call over all ranks of the job. Returns the exit status on all ranks:
// 1 if a mean was wrong. Throws Error (usage) for unknown names or sizes.
int bench_allreduce(const BenchAllreduceOptions& options, ForUser for_user);

}  // namespace paceline::train
