#include "trainer/nn/memory.h"

#include <algorithm>
#include <cstdlib>
#include <new>

namespace paceline::train {
namespace {

class HostMemory final : public Memory {
 public:
  Values allocate(std::size_t count) override {
    constexpr std::size_t line = 64;
    const std::size_t bytes = (count * sizeof(float) + line - 1) / line * line;
    auto* memory = static_cast<float*>(std::aligned_alloc(line, std::max(bytes, line)));
    if (memory == nullptr) throw std::bad_alloc();
    std::fill_n(memory, count, 0.0f);
    return {memory, [](float* values) { std::free(values); }};
  }

  void copy(std::span<const float> from, std::span<float> to) override { std::ranges::copy(from, to.begin()); }

  void add(std::span<const float> from, std::span<float> to) override {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
  }

  void divide(std::span<float> values, float divisor) override {
    for (float& value : values) value /= divisor;
  }
};

}  // namespace

Memory& host_memory() {
  static HostMemory memory;
  return memory;
}

}  // namespace paceline::train
