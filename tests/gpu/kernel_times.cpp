// SPDX-License-Identifier: Apache-2.0
// usage: gpu_kernel_times [SECONDS]: kernels one behind another in one stream, 0.5 s of them if not said otherwise, and
// how long they took by CUDA's events, as JSON. Recorded, their times in the trace are held against that: nothing else
// runs on the GPU, and all are in the queue before the first begins, so that there are no gaps.
#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "trainer/backend/cuda/runtime.h"
#include "trainer/comm/gpu/numbers.h"
#include "trainer/core/error.h"

namespace {

using namespace paceline::train;

// 1 GiB, read and written by each kernel: the microsecond between two kernels is then a small part of 1 %.
constexpr std::size_t values = std::size_t{1} << 28;
constexpr int most_kernels = 500;  // the queue of a stream takes a thousand

double milliseconds_of(int kernels, float* data, const cuda::Stream& stream) {
  cuda::Event begin(true), end(true);
  const auto hold = [](void*) { std::this_thread::sleep_for(std::chrono::milliseconds(100)); };
  PACELINE_CHECK_CUDA(cudaLaunchHostFunc(stream, hold, nullptr));
  begin.record(stream);
  for (int i = 0; i < kernels; ++i) nccl::divide(data, values, 1.0f, stream);
  end.record(stream);
  stream.synchronize();
  return end.milliseconds_since(begin);
}

int measure(double seconds) {
  const cuda::VisibleDevices visible = cuda::visible_devices();
  cuda::use_device(
      visible.devices[static_cast<std::size_t>(cuda::choose_device(0, visible.devices.size(), visible.reason))]);
  const cuda::Stream stream("kernels");
  const cuda::Buffer memory = cuda::device_buffer(values * sizeof(float));
  PACELINE_CHECK_CUDA(cudaMemsetAsync(memory.data(), 0, memory.bytes(), stream));
  const double one = milliseconds_of(1, memory.data<float>(), stream);  // and loads the kernel
  const int kernels = std::clamp(static_cast<int>(seconds * 1e3 / one), 10, most_kernels);
  const double first = milliseconds_of(1, memory.data<float>(), stream);
  const double all = milliseconds_of(kernels, memory.data<float>(), stream);
  fmt::print("{{\"kernels\": {}, \"before\": 2, \"event_ms\": {:.6f}, \"one_ms\": {:.6f}, \"bytes_per_s\": {:.4e}}}\n",
             kernels, all, first, 2.0 * values * sizeof(float) * kernels / (all * 1e-3));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return measure(argc > 1 ? std::atof(argv[1]) : 0.5);
  } catch (const Error& error) {
    std::string text = error.what();  // names the trainer's options as ‹device›; this program has none
    for (const std::string_view mark : {"‹", "›"}) {
      for (std::size_t at; (at = text.find(mark)) != std::string::npos;) text.erase(at, mark.size());
    }
    fmt::print(stderr, "gpu_kernel_times: {}\n", text);
    return static_cast<int>(error.status);
  }
}
