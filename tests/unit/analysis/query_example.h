// SPDX-License-Identifier: Apache-2.0
// A training job of 3 ranks made by hand, which docs/queries.md asks its queries of. Times in ms. Each rank:
//
//   0 to 10: MPI_Init. Iteration i (0 to 3) begins at T = 10 + 100 i and takes 80; iteration 2 takes 95.
//     T + 0   cudaMemcpyAsync 1          copy of 1 MB on stream 7 from 2 to 6
//     T + 2   forward 20                 cudaLaunchKernel at 3 and 5; gemm 10 to 25, relu 25 to 30 on stream 7
//     T + 22  backward 20 + late         cudaLaunchKernel at 23; gemm_grad 32 to 50 on stream 7
//             MPI_Allreduce to T + 60    of 4 MB; nccl kernel 40 to 56 on stream 9
//     T + 60  MPI_Irecv, MPI_Isend of 1000 (rank + 1) bytes to the next rank, MPI_Waitall to T + 66
//     T + 66  optimizer 10               cudaLaunchKernel at 66; sgd 68 to 72 on stream 7
//
//   late: 4 ms times the rank, but in iteration 3 it is 12, 0 and 4 ms on ranks 0, 1 and 2.
//   Rank r sends its message at T + 61 + r / 2 and waits from 0.5 later on. All end at 420 with MPI_Finalize from 410
//   on. The counter "bytes sent" of eth0 rises by 5 MB in each iteration; the GPU's power is 100 W, in iterations 200
//   W.
#pragma once

#include "analysis/trace/builder.h"

namespace paceline::analysis {

inline Trace query_example() {
  constexpr std::int64_t ms = 1'000'000;
  const std::string domain = "train";
  TraceBuilder run;
  for (int r = 0; r < 3; ++r) {
    RankBuilder& rank = run.add_rank(r, 3);
    rank.info().host = r < 2 ? "alice" : "bob";
    rank.info().format = "pace";
    rank.info().path = "run/rank" + std::to_string(r) + ".pace";
    rank.info().command = {"python", "train.py"};
    rank.info().pid = 100 + r;
    rank.info().start_ns = 0;
    rank.info().end_ns = 420 * ms;
    rank.add_communicator({rank.names().intern("MPI_COMM_WORLD"), 77, 3}, r);
    TrackBuilder& main = rank.add_main_thread();
    TrackBuilder& compute = rank.add_track(TrackKind::stream, "GPU 0 stream 7");
    TrackBuilder& network = rank.add_track(TrackKind::stream, "GPU 0 stream 9");
    TrackBuilder& sent = rank.add_counter("bytes sent", "bytes", "eth0", true);
    TrackBuilder& power = rank.add_counter("power", "W", "GPU 0", false);
    const auto call = [&](std::int64_t start, std::int64_t end, const char* name, const char* category) {
      main.add_slice(start, end, name, "mpi", category);
    };
    int correlation = 0;
    const auto launch = [&](std::int64_t start, std::int64_t end, const char* name, std::int64_t on_gpu,
                            std::int64_t to, const char* kernel, const char* category) {
      main.add_slice(start, end, name, "cuda", "runtime");
      main.argument("correlation", ++correlation);
      compute.add_slice(on_gpu, to, kernel, "cuda", category);
      compute.argument("correlation", correlation);
    };
    call(0, 10 * ms, "MPI_Init", "management");
    sent.add_sample(0, 0);
    power.add_sample(0, 100);
    for (int i = 0; i < 4; ++i) {
      const std::int64_t t = (10 + 100 * i) * ms, length = i == 2 ? 95 : 80;
      const std::int64_t late = i < 3 ? 4 * r : r == 0 ? 12 : 4 * (r - 1);
      const auto at = [&](std::int64_t offset) { return t + offset * ms; };
      main.push(at(0), "iteration", domain, "iteration");
      main.argument("payload", i);
      launch(at(0), at(1), "cudaMemcpyAsync", at(2), at(6), "Memcpy HtoD", "memcpy");
      compute.argument("bytes", 1'000'000);
      main.push(at(2), "forward", domain);
      launch(at(3), at(4), "cudaLaunchKernel", at(10), at(25), "gemm", "kernel");
      launch(at(5), at(6), "cudaLaunchKernel", at(25), at(30), "relu", "kernel");
      main.pop(at(22));
      main.push(at(22), "backward", domain);
      launch(at(23), at(24), "cudaLaunchKernel", at(32), at(50), "gemm_grad", "kernel");
      main.pop(at(42 + late));
      network.add_slice(at(40), at(56), "ncclDevKernel_AllReduce", "cuda", "kernel");
      call(at(42 + late), at(60), "MPI_Allreduce", "collective");
      main.argument("bytes", 4'000'000);
      main.text_argument("communicator", "MPI_COMM_WORLD");
      main.argument("members", 3);
      main.argument("sequence", i);
      const auto message = [&](std::int64_t start, const char* name, int peer, int bytes, int request) {
        call(start, start + ms / 2, name, "point-to-point");
        main.argument("bytes", bytes);
        main.text_argument("communicator", "MPI_COMM_WORLD");
        main.argument("peer", peer);
        main.argument("tag", 7);
        main.argument("request", request);
      };
      const int next = (r + 1) % 3, before = (r + 2) % 3;
      message(at(60), "MPI_Irecv", before, 4096, 2 * i + 1);
      message(at(61) + r * ms / 2, "MPI_Isend", next, 1000 * (r + 1), 2 * i + 2);
      call(at(61) + (r + 1) * ms / 2, at(66), "MPI_Waitall", "wait");
      main.argument("request", 2 * i + 1);
      main.argument("request", 2 * i + 2);
      main.push(at(66), "optimizer", domain);
      launch(at(66), at(67), "cudaLaunchKernel", at(68), at(72), "sgd", "kernel");
      main.pop(at(76));
      main.pop(at(length));
      sent.add_sample(at(60), 5e6 * i);
      sent.add_sample(at(70), 5e6 * (i + 1));
      power.add_sample(at(0), 200);
      power.add_sample(at(80), 100);
      main.add_mark(at(length), "step done", domain);
    }
    call(410 * ms, 420 * ms, "MPI_Finalize", "management");
  }
  return run.finish();
}

}  // namespace paceline::analysis
