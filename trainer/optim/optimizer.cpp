// SPDX-License-Identifier: Apache-2.0
#include "trainer/optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace paceline::train {
namespace {

constexpr std::size_t longest_chunk = 16384;  // 64 KiB of each array

void cut(std::vector<Chunk>& chunks, Chunk whole) {
  for (std::size_t done = 0; done < whole.count; done += longest_chunk) {
    Chunk chunk = whole;
    chunk.first += done;
    chunk.count = std::min(longest_chunk, whole.count - done);
    chunks.push_back(chunk);
  }
}

}  // namespace

std::vector<Chunk> chunks_of(const std::vector<Parameter>& parameters, std::size_t elements, const WeightDecay& decay,
                             std::span<const std::string> frozen) {
  std::vector<Chunk> chunks;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Parameter& parameter = parameters[i];
    const std::size_t end = i + 1 < parameters.size() ? parameters[i + 1].offset : elements;
    const bool bias = !parameter.batch_norm && parameter.name.ends_with(".bias");
    const bool excluded = (parameter.batch_norm && !decay.batch_norm) || (bias && !decay.biases);
    const bool stays =
        std::ranges::any_of(frozen, [&](const std::string& begin) { return parameter.name.starts_with(begin); });
    cut(chunks, {parameter.offset, end - parameter.offset, excluded ? 0 : decay.rate, i, excluded, stays});
  }
  return chunks;
}

std::vector<Chunk> chunks_within(const std::vector<Chunk>& chunks, Slice shard) {
  std::vector<Chunk> parts;
  for (Chunk chunk : chunks) {
    const std::size_t first = std::max(chunk.first, shard.first);
    const std::size_t end = std::min(chunk.first + chunk.count, shard.first + shard.count);
    if (first >= end) continue;
    chunk.first = first - shard.first;
    chunk.count = end - first;
    parts.push_back(chunk);
  }
  return parts;
}

Optimizer::Optimizer(std::vector<Chunk> chunks, std::size_t arrays, std::size_t scalars)
    : scalars_(scalars, 0.0), chunks_(std::move(chunks)) {
  if (!chunks_.empty()) elements_ = chunks_.back().first + chunks_.back().count;
  arrays_.resize(arrays);  // without a further array to copy from
  for (std::vector<float>& array : arrays_) array.assign(elements_, 0.0f);
}

void Optimizer::step(std::span<float> weights, std::span<const float> gradients, float rate) {
  if (weights.size() != elements_ || gradients.size() != elements_) {
    throw std::invalid_argument("weights, gradients and the optimizer's state differ in size");
  }
  update(weights, gradients, rate);
}

void Optimizer::on_all_chunks(const std::function<void(const Chunk&, std::size_t)>& body) const {
  const auto count = static_cast<std::ptrdiff_t>(chunks_.size());
#pragma omp parallel for schedule(static) if (count > 1)
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    const Chunk& chunk = chunks_[static_cast<std::size_t>(i)];
    if (!chunk.frozen) body(chunk, static_cast<std::size_t>(i));
  }
}

double clip_divisor(double squares, double most) { return std::max(1.0, (std::sqrt(squares) + 1e-6) / most); }

}  // namespace paceline::train
