// SPDX-License-Identifier: Apache-2.0
// Whether the ranks have cores to spare for threads that communicate beside computation.
//
// A transfer has two parts: that of the network, during which cores are free, and the CPU time of the thread that
// communicates: copies, sums and the protocol. Where all cores of a machine are busy, the second part is time that the
// computing threads lose.
#pragma once

#include <cstddef>
#include <vector>

#include "analysis/graph/network_model.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The machines that the ranks run on, as far as their CPUs are known.
struct RankCpus {
  struct Machine {
    std::vector<std::size_t> ranks;  // indices into Trace::ranks
    double cpus = 0;                 // that its ranks may run on, together
  };
  std::vector<Machine> machines = {};
  bool one_host = false;  // all ranks have one host name, so that transfers are copies in memory
};

// The CPU time of a helper thread that averages gradients with other hosts over TCP: for each byte, and for its polls
// as a part of the transfer's time. From closed loops with the trainer (tests/bench/README.md), whose helper threads
// used 3 to 10 ns by the kernel's account.
inline constexpr double network_cpu_ns_per_byte = 8, polling_cpu_share = 0.02;
// By how much later a bucket is transferred where the helper thread has to wait for a core: a tick of Linux's
// scheduler.
inline constexpr double helper_delay_ns = 4e6;

// What a transfer and the computation beside it cost each other.
struct BesideWork {
  double longer_ns = 0;  // the transfer
  double lost_ns = 0;    // CPU time that the computing thread goes without
};
// The transfer takes `transfer_ns` alone, of these `cpu_ns` of a core, and begins while the core, of which the helper
// thread lacks the part `taken`, has work for another `work_ns`.
BesideWork beside_work(double work_ns, double transfer_ns, double cpu_ns, double taken);

struct CoreSharing {
  // Of each rank: which part of the CPU time of a helper thread its computing threads go without. 0: the rank has a
  // core to spare, or nothing is known; 1: all cores are busy.
  std::vector<double> taken;
  bool copies = false;  // as RankCpus::one_host
  bool any() const;
  // Of the rank whose helper thread lacks most.
  double most_taken() const;
  // CPU time of a helper thread for the gradients' transfers that cost `transfer` by the clock, without computation
  // beside them.
  TransferCost helper_cost(const TransferCost& transfer) const;
  // What a recorded transfer and the computation beside it cost each other. The computation took `work_ns`; the
  // transfer moved `bytes` at the cost `together`.
  BesideWork recorded_beside(double work_ns, const TransferCost& together, double bytes) const;
};

// The largest share of a machine's CPUs that its ranks kept busy from `from_ns` (by rank) on, 0 where that is not
// known.
double used_share(const Trace& trace, const RankCpus& cpus, const std::vector<std::int64_t>& from_ns);

// A core is busy where the recorder's counter of the process's CPU time rose, between the end of the warm-up and the
// end of the rank. `from_ns` is the start of the first steady iteration of each rank.
CoreSharing core_sharing(const Trace& trace, const RankCpus& cpus, const std::vector<std::int64_t>& from_ns);

}  // namespace paceline::analysis
