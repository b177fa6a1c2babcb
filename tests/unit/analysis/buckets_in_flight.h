// SPDX-License-Identifier: Apache-2.0
// Training jobs whose gradient is averaged in several collectives that are in flight together. One rank is delayed
// before backward. Times in ms:
//
//   forward 10, the delay, backward 20 in which the buckets become ready one after another, the rest of the buckets'
//   transfers, optimizer 5. The transfers of an iteration take 6 together; they follow one another, and each begins
//   when its bucket is ready on all ranks.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "analysis/trace/builder.h"

namespace paceline::analysis {

enum class InFlight {
  pytorch,  // as `paceline record --pytorch` records gloo under DistributedDataParallel
  waitall,  // MPI_Iallreduce, and one MPI_Waitall at the end
  helper,   // MPI_Allreduce in a second thread
  nccl,     // kernels on a stream beside the compute stream
};

struct BucketJob {
  InFlight how = InFlight::pytorch;
  int ranks = 2, buckets = 13, iterations = 60;
  std::int64_t delay_ms = 30;      // of rank 1
  bool busy = false;               // each rank keeps a core busy, and a counter says so
  std::int64_t noted_late_ns = 0;  // PyTorch: in every second iteration the end of the last bucket is noted so late
};

class BucketTrace {
 public:
  static constexpr std::int64_t ms = 1'000'000, forward = 10 * ms, backward = 20 * ms, transfers = 6 * ms;

  explicit BucketTrace(const BucketJob& job) : job_(job) {
    for (int r = 0; r < job.ranks; ++r) {
      RankBuilder& rank = run_.add_rank(r, job.ranks);
      rank.info().format = "pace";
      mains_.push_back(&rank.add_main_thread());
      if (job.busy) cpu_times_.push_back(&rank.add_counter("CPU time", "µs", "", true));
      if (job.how == InFlight::pytorch) others_.push_back(&rank.add_track(TrackKind::thread, "ranges", 9));
      if (job.how == InFlight::helper) others_.push_back(&rank.add_track(TrackKind::thread, "sender", 2));
      if (job.how != InFlight::nccl) continue;
      others_.push_back(&rank.add_track(TrackKind::nccl, "NCCL c"));
      streams_.push_back(&rank.add_track(TrackKind::stream, "stream 7"));
      communication_.push_back(&rank.add_track(TrackKind::stream, "stream 20"));
    }
  }

  Trace make() {
    for (int i = 0; i < job_.iterations; ++i) add_iteration(i);
    for (TrackBuilder* time : cpu_times_) {
      for (const std::int64_t at : {ms, now_}) time->add_sample(at, static_cast<double>(at) / 1e3);
    }
    return run_.finish();
  }

 private:
  void describe(TrackBuilder& track, std::int64_t number) {
    track.argument("bytes", 4e6);
    track.text_argument("communicator", "c");
    track.argument("sequence", static_cast<double>(number));
    track.argument("members", job_.ranks);
  }

  void add_iteration(int i) {
    const std::size_t ranks = mains_.size(), buckets = static_cast<std::size_t>(job_.buckets);
    std::vector<std::int64_t> begin(ranks), blocked(ranks);  // of backward, and its end
    for (std::size_t r = 0; r < ranks; ++r) {
      begin[r] = now_ + forward + (r == 1 ? job_.delay_ms * ms : 0);
      blocked[r] = begin[r] + backward;
    }
    const std::int64_t first = static_cast<std::int64_t>(i) * job_.buckets + 1;
    std::vector<std::vector<std::int64_t>> starts(ranks);
    std::vector<std::int64_t> ends;
    for (std::size_t k = 0; k < buckets; ++k) {
      std::int64_t last = ends.empty() ? 0 : ends.back();
      for (std::size_t r = 0; r < ranks; ++r) {
        std::int64_t start = begin[r] + backward * static_cast<std::int64_t>(k + 1) / job_.buckets - 1000;
        const bool in_order = job_.how == InFlight::helper || job_.how == InFlight::nccl;
        if (in_order && !ends.empty()) start = std::max(start, ends.back() + 100);
        starts[r].push_back(start);
        last = std::max(last, start);
      }
      ends.push_back(last + transfers / job_.buckets);
    }
    const std::int64_t over = std::max(ends.back() + 2000, *std::ranges::max_element(blocked));
    for (std::size_t r = 0; r < ranks; ++r) {
      TrackBuilder& main = *mains_[r];
      main.push(now_, "iteration", "torch", "iteration");
      main.argument("payload", i);
      main.add_slice(now_, now_ + forward, "forward", "torch", "forward");
      main.push(begin[r], "backward", "torch", "backward");
      for (std::size_t k = 0; k < buckets; ++k) {
        const std::int64_t number = first + static_cast<std::int64_t>(k), start = starts[r][k], end = ends[k];
        switch (job_.how) {
          case InFlight::pytorch:
            others_[r]->add_slice(start, end + (k + 1 == buckets ? i % 2 * job_.noted_late_ns : 0), "gloo:all_reduce",
                                  "torch", "collective");
            describe(*others_[r], number);
            others_[r]->argument("request", static_cast<double>(number));
            break;
          case InFlight::waitall:
            main.add_slice(start, start + 500, "MPI_Iallreduce", "mpi", "collective");
            describe(main, number);
            main.argument("request", static_cast<double>(number));
            break;
          case InFlight::helper:
            others_[r]->add_slice(start, end, "MPI_Allreduce", "mpi", "collective");
            describe(*others_[r], number);
            break;
          case InFlight::nccl:
            others_[r]->add_slice(start, end, "ncclAllReduce", "nccl", "collective");
            describe(*others_[r], number);
            communication_[r]->add_slice(start, end, "ncclDevKernel_AllReduce_Sum_f32", "cuda", "kernel");
            break;
        }
      }
      if (job_.how == InFlight::nccl) streams_[r]->add_slice(begin[r], blocked[r], "gemm", "cuda", "kernel");
      if (job_.how == InFlight::pytorch) {
        main.add_slice(blocked[r], over, "wait", "torch", "wait");
        main.argument("request", static_cast<double>(first));
        main.argument("last_request", static_cast<double>(first + job_.buckets - 1));
        main.pop(over);
      } else {
        main.pop(blocked[r]);
      }
      if (job_.how == InFlight::helper) main.add_slice(blocked[r], over, "allreduce", "paceline.trainer", "allreduce");
      if (job_.how == InFlight::nccl) {
        main.add_slice(blocked[r], over, "cudaDeviceSynchronize", "cuda", "synchronization");
      }
      if (job_.how == InFlight::waitall) {
        main.add_slice(blocked[r], over, "MPI_Waitall", "mpi", "wait");
        for (std::size_t k = 0; k < buckets; ++k)
          main.argument("request", static_cast<double>(first + std::int64_t(k)));
      }
      main.add_slice(over, over + 5 * ms, "optimizer", "torch", "optimizer");
      main.pop(over + 5 * ms);
    }
    now_ = over + 5 * ms;
  }

  BucketJob job_;
  TraceBuilder run_;
  std::vector<TrackBuilder*> mains_, others_, streams_, communication_, cpu_times_;
  std::int64_t now_ = ms;
};

inline Trace trace_of(const BucketJob& job) { return BucketTrace(job).make(); }

}  // namespace paceline::analysis
