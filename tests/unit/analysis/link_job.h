// SPDX-License-Identifier: Apache-2.0
// Two ranks that only compute and call MPI_Allreduce, with times that can be worked out on paper. Each iteration is
// followed by the next one without a gap:
//
//   forward 40 ms, then `small` calls of 1,000 bytes that take 1 ms each, then one call of 8 MB that takes `large_ms`.
#pragma once

#include <string>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

struct LinkJob {
  bool two_hosts = true;
  int small = 1;
  std::int64_t large_ms = 400;
  int iterations = 12;
};

inline Trace make_trace(const LinkJob& job) {
  constexpr std::int64_t ms = 1'000'000;
  const std::string domain = "paceline.trainer";
  TraceBuilder run;
  for (int r = 0; r < 2; ++r) {
    RankBuilder& rank = run.add_rank(r, 2);
    rank.info().host = job.two_hosts && r == 1 ? "bob" : "alice";
    rank.info().format = "pace";
    TrackBuilder& main = rank.add_main_thread();
    std::int64_t now = 0;
    int sequence = 0;
    const auto allreduce = [&](double bytes, std::int64_t length) {
      main.add_slice(now, now + length * ms, "MPI_Allreduce", "mpi", "collective");
      main.argument("bytes", bytes);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("sequence", sequence++);
      now += length * ms;
    };
    for (int i = 0; i < job.iterations; ++i) {
      main.push(now, "iteration", domain, "iteration");
      main.argument("payload", i);
      main.add_slice(now, now + 40 * ms, "forward", domain, "forward");
      now += 40 * ms;
      for (int k = 0; k < job.small; ++k) allreduce(1000, 1);
      allreduce(8e6, job.large_ms);
      main.pop(now);
    }
    rank.info().start_ns = 0;
    rank.info().end_ns = now;
  }
  return run.finish();
}

}  // namespace paceline::analysis
