// SPDX-License-Identifier: Apache-2.0
#include "trainer/backend/cpu/peaks.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>

#include "trainer/backend/cpu/layers.h"
#include "trainer/core/vectorize.h"

namespace paceline::train {
namespace {

// The least seconds that body() takes in 30 ms, after a first run.
template <class Body>
double least_seconds(Body body) {
  using clock = std::chrono::steady_clock;
  body();
  double least = 1e9;
  const auto end = clock::now() + std::chrono::milliseconds(30);
  for (auto begin = clock::now(); begin < end;) {
    body();
    const auto now = clock::now();
    least = std::min(least, std::chrono::duration<double>(now - begin).count());
    begin = now;
  }
  return least;
}

double measure_flops(onednn::Type type) {
  const dnnl::engine engine(dnnl::engine::kind::cpu, 0);
  dnnl::stream stream(engine);
  const std::int64_t batch = 8, channels = 256, pixels = 14;
  const onednn::Dims shape{batch, channels, pixels, pixels};
  const onednn::Convolution convolution =
      onednn::convolution(engine, onednn::any_layout(shape, type), {channels, channels, 3, 3}, false, shape,
                          {{3, 3}, {1, 1}, {1, 1}}, false, false);
  MemoryPlan plan(engine);
  const Call call{dnnl::convolution_forward(convolution.forward),
                  {{DNNL_ARG_SRC, plan.acquire(convolution.forward.src_desc())},
                   {DNNL_ARG_WEIGHTS, plan.acquire(convolution.forward.weights_desc())},
                   {DNNL_ARG_DST, plan.acquire(convolution.forward.dst_desc())}}};
  plan.allocate();
  const double seconds = least_seconds([&] {
    call.run(stream);
    stream.wait();
  });
  return 2.0 * static_cast<double>(batch * channels * channels * 9 * pixels * pixels) / seconds;
}

PACELINE_VECTORIZE void add_arrays(const float* b, const float* c, float* a, std::ptrdiff_t count) {
  for (std::ptrdiff_t i = 0; i < count; ++i) a[i] = b[i] + c[i];
}

double measure_bytes() {
  constexpr std::ptrdiff_t count = 8 << 20, part = 1 << 16;
  const auto memory = std::make_unique<float[]>(3 * count);
  float *const a = memory.get(), *const b = a + count, *const c = b + count;
  const double seconds = least_seconds([&] {
#pragma omp parallel for schedule(static)
    for (std::ptrdiff_t first = 0; first < count; first += part) add_arrays(b + first, c + first, a + first, part);
  });
  return 3.0 * static_cast<double>(count) * sizeof(float) / seconds;
}

}  // namespace

Peaks measure_peaks(const std::string& dtype) {
  return {measure_flops(dtype == "bf16" ? onednn::Type::bf16 : onednn::Type::f32), measure_bytes()};
}

}  // namespace paceline::train
