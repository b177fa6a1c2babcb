// SPDX-License-Identifier: Apache-2.0
// Writes traces as PyTorch's profiler writes them: a training loop of operators, launches, kernels, copies and
// collectives, in Kineto's layout and with all of its arguments. The same seed gives the same bytes.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace paceline::kineto_events {

class Writer {
 public:
  Writer(const std::filesystem::path& path, int rank, int ranks) : out_(path, std::ios::binary), rank_(rank) {
    std::string all = "0";
    for (int r = 1; r < ranks; ++r) all += fmt::format(", {}", r);
    ranks_ = all, world_ = ranks;
    out_ << fmt::format(
        R"({{
  "schemaVersion": 1,
  "deviceProperties": [
    {{
      "id": {0}, "name": "NVIDIA H100", "totalGlobalMem": 85045149696,
      "computeMajor": 9, "computeMinor": 0, "numSms": 132
    }}
  ],
  "distributedInfo": {{"backend": "nccl", "rank": {0}, "world_size": {1}, "pg_count": 1, "pg_config": [{{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": {1}, "ranks": [{2}]}}], "nccl_version": "2.21.5"}},
  "cuda_runtime_version": 12040,
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1724000000000000000,
  "traceEvents": [
)",
        rank, ranks, all);
  }

  // About `events` events, flows included.
  void write(int events) {
    for (int number = 0; events_ < events; ++number) {
      const std::int64_t begin_ns = cpu_ns_;
      for (int op = 0; op < 400; ++op) operator_and_kernel(op);
      step(number, begin_ns);
    }
    flush();
    out_ << R"(  {
    "name": "process_name", "ph": "M", "ts": 0.000, "pid": 4037, "tid": 0,
    "args": {
      "name": "python"
    }
  }],
  "traceName": "rank.json"
}
)";
  }

 private:
  std::uint32_t random(std::uint32_t below) {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<std::uint32_t>(state_ >> 33) % below;
  }
  static std::string us(std::int64_t ns) { return fmt::format("{}.{:03}", ns / 1000, ns % 1000); }
  void add(const std::string& event) {
    buffer_ += event;
    ++events_;
    if (buffer_.size() > (1 << 20)) flush();
  }
  void flush() {
    out_ << buffer_;
    buffer_.clear();
  }

  void step(int number, std::int64_t begin_ns) {
    add(fmt::format(R"(  {{
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{}", "pid": 4037, "tid": 4037,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {},"Record function id": 0, "Ev Idx": {}
    }}
  }},
)",
                    number, us(begin_ns), us(cpu_ns_ - begin_ns - 100), ++external_, events_));
  }

  void operator_and_kernel(int op) {
    static constexpr const char* operators[] = {"aten::linear",  "aten::layer_norm", "aten::add",   "aten::gelu",
                                                "aten::softmax", "aten::mul",        "aten::copy_", "aten::transpose"};
    static constexpr const char* kernels[] = {
        "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
        "at::detail::Array<char*, 3> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, at::detail::Array<char*, 3>)",
        "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__"
        "5x_"
        "cublas",
        "void cutlass::Kernel<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(T1::Params)",
        "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float, "
        "c10::BFloat16 const*, c10::BFloat16 const*, c10::BFloat16 const*, float*, float*, c10::BFloat16*)",
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_"
        "cuda(at::TensorIteratorBase&)::{lambda()#3}> >(int, at::native::gpu_kernel_impl_nocast)"};
    const std::uint32_t which = random(8), rows = 128u << random(4), columns = 64u << random(5);
    const std::int64_t start_ns = cpu_ns_, launch_ns = start_ns + 4'000 + random(2'000),
                       call_ns = 3'000 + random(2'000);
    const std::int64_t end_ns = launch_ns + call_ns + 2'000 + random(1'000);
    cpu_ns_ = end_ns + 1'000 + random(2'000);
    for (int nested = 0; nested < 2; ++nested) {
      add(fmt::format(R"(  {{
    "ph": "X", "cat": "cpu_op", "name": "{0}", "pid": 4037, "tid": 4037,
    "ts": {1}, "dur": {2},
    "args": {{
      "External id": {3},"Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": ["c10::BFloat16", "c10::BFloat16", ""], "Input Strides": [[{5}, 1], [{5}, 1], []], "Input Dims": [[{4}, {5}], [{4}, {5}], []], "Ev Idx": {6}
    }}
  }},
)",
                      nested == 0 ? operators[which] : "aten::empty_strided", us(start_ns + nested * 500),
                      us(end_ns - start_ns - nested * (1'500 + (end_ns - launch_ns))), ++external_, rows, columns,
                      events_));
    }
    const std::uint32_t correlation = ++correlation_;
    add(fmt::format(R"(  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4037, "tid": 4037,
    "ts": {}, "dur": {},
    "args": {{
      "External id": {}, "cbid": 211, "correlation": {}
    }}
  }},
)",
                    us(launch_ns), us(call_ns), external_, correlation));
    add(fmt::format(R"(  {{
    "ph": "s", "id": {0}, "pid": 4037, "tid": 4037, "ts": {1},
    "cat": "ac2g", "name": "ac2g"
  }},
)",
                    correlation, us(launch_ns)));
    const bool collective = op % 40 == 39;
    std::int64_t& device_ns = collective ? nccl_ns_ : gpu_ns_;
    const int stream = collective ? 20 : 7;
    device_ns = std::max(device_ns, launch_ns + call_ns) + 1'000 + random(3'000);
    const std::int64_t work_ns = (collective ? 90'000 : 2'000) + random(20'000);
    const std::string arguments = collective ? fmt::format(R"(,
      "Collective name": "allreduce", "In msg nelems": {0}, "Out msg nelems": {0}, "Group size": {1}, "dtype": "BFloat16", "In split size": "[]", "Out split size": "[]", "Process Group Name": "0", "Process Group Description": "default_pg", "Process Group Ranks": "[{2}]")",
                                                           6'553'600u << random(2), world_, ranks_)
                                             : "";
    add(fmt::format(R"(  {{
    "ph": "X", "cat": "kernel", "name": "{0}", "pid": {1}, "tid": {2},
    "ts": {3}, "dur": {4},
    "args": {{
      "External id": {5},
      "queued": 0, "device": {1}, "context": 1,
      "stream": {2}, "correlation": {6},
      "registers per thread": {7},
      "shared memory": 0,
      "blocks per SM": 1.185185,
      "warps per SM": 4.740741,
      "grid": [{8}, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %": 7{9}
    }}
  }},
)",
                    collective ? "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long, ncclWork*)"
                               : kernels[which % 5],
                    rank_, stream, us(device_ns), us(work_ns), external_, correlation, 16 + 8 * (which % 5),
                    rows * columns / 8192 + 1, arguments));
    add(fmt::format(R"(  {{
    "ph": "f", "id": {0}, "pid": {1}, "tid": {2}, "ts": {3},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
)",
                    correlation, rank_, stream, us(device_ns)));
    device_ns += work_ns;
  }

  std::ofstream out_;
  int rank_ = 0, world_ = 1, events_ = 0;
  std::string ranks_, buffer_;
  std::uint64_t state_ = 42;
  std::uint32_t external_ = 1000, correlation_ = 100;
  std::int64_t cpu_ns_ = 5'213'421'123'000 / 1000, gpu_ns_ = 0, nccl_ns_ = 0;
};

inline void write(const std::filesystem::path& path, int rank, int ranks, int events) {
  Writer(path, rank, ranks).write(events);
}

}  // namespace paceline::kineto_events
