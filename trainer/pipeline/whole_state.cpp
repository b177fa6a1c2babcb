// SPDX-License-Identifier: Apache-2.0
#include "trainer/pipeline/whole_state.h"

#include <algorithm>
#include <bit>

#include "trainer/nn/plain_model.h"

namespace paceline::train {
namespace whole_state {
namespace {

// The stage's parameters in the published layout, one after another.
std::vector<float> packed(const Model& stage, std::span<const float> flat) {
  std::vector<float> values;
  for (const Parameter& parameter : stage.parameters()) {
    const std::vector<float> plain = stage.to_plain(parameter, flat);
    values.insert(values.end(), plain.begin(), plain.end());
  }
  return values;
}

void unpack(const Model& model, std::span<const Parameter> parameters, std::span<const float> values,
            std::span<float> flat) {
  for (const Parameter& parameter : parameters) {
    std::size_t count = 1;
    for (const std::int64_t extent : parameter.shape) count *= static_cast<std::size_t>(extent);
    model.from_plain(parameter, values.first(count), flat);
    values = values.subspan(count);
  }
}

std::span<const Parameter> of_part(const Model& whole, const StageParts& part) {
  return std::span(whole.parameters()).subspan(part.first_parameter, part.parameters);
}

}  // namespace
}  // namespace whole_state

std::vector<StageParts> parts_of(const Network& network, const std::vector<LayerRun>& stages) {
  std::vector<StageParts> parts;
  StageParts next;
  for (const LayerRun& stage : stages) {
    const Network part = network.part(stage.first, stage.last);
    next.parameters = 0;
    for (const Layer& layer : part.layers()) next.parameters += layer.parameters().size();
    next.statistics = statistics_of(part);
    parts.push_back(next);
    next.first_parameter += next.parameters;
    next.first_statistic += next.statistics;
  }
  return parts;
}

std::size_t WholeStateMover::values_of(Model& whole, const StageParts& part) const {
  std::size_t values = 0;
  for (const Parameter& parameter : whole_state::of_part(whole, part)) values += parameter.size;
  return values;
}

void WholeStateMover::gather(Model& stage, std::span<const float> flat, Model* whole, std::span<float> whole_flat) {
  if (grid_.replica != 0) return;
  const std::vector<float> own_values = whole_state::packed(stage, flat);
  if (ranks_.rank() != 0) return ranks_.send(std::as_bytes(std::span(own_values)), 0);
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    std::vector<float> values = i == 0 ? own_values : std::vector<float>(values_of(*whole, parts_[i]));
    if (i > 0) ranks_.receive(std::as_writable_bytes(std::span(values)), grid_.rank_of(static_cast<int>(i), 0));
    whole_state::unpack(*whole, whole_state::of_part(*whole, parts_[i]), values, whole_flat);
  }
}

void WholeStateMover::scatter(Model& stage, std::span<float> flat, Model* whole, std::span<const float> whole_flat) {
  if (ranks_.rank() == 0) {
    for (std::size_t i = parts_.size(); i-- > 0;) {
      std::vector<float> values;
      for (const Parameter& parameter : whole_state::of_part(*whole, parts_[i])) {
        const std::vector<float> plain = whole->to_plain(parameter, whole_flat);
        values.insert(values.end(), plain.begin(), plain.end());
      }
      if (i > 0) {
        ranks_.send(std::as_bytes(std::span(values)), grid_.rank_of(static_cast<int>(i), 0));
      } else {
        whole_state::unpack(stage, stage.parameters(), values, flat);
      }
    }
  } else if (grid_.replica == 0) {
    std::vector<float> values(whole_state::packed(stage, flat).size());
    ranks_.receive(std::as_writable_bytes(std::span(values)), 0);
    whole_state::unpack(stage, stage.parameters(), values, flat);
  }
  grid_.of_stage.collectives->broadcast(flat, 0);
}

void WholeStateMover::gather(Model& stage, Optimizer& optimizer, Model* whole, Optimizer* whole_state) {
  for (std::size_t i = 0; i < optimizer.arrays().size(); ++i) {
    gather(stage, optimizer.arrays()[i], whole,
           whole_state == nullptr ? std::span<float>() : std::span<float>(whole_state->arrays()[i]));
  }
  if (whole_state != nullptr) whole_state->scalars() = optimizer.scalars();
}

void WholeStateMover::scatter(Model& stage, Optimizer& optimizer, Model* whole, Optimizer* whole_state) {
  for (std::size_t i = 0; i < optimizer.arrays().size(); ++i) {
    scatter(stage, optimizer.arrays()[i], whole,
            whole_state == nullptr ? std::span<const float>() : std::span<const float>(whole_state->arrays()[i]));
  }
  std::vector<double>& scalars = optimizer.scalars();
  if (whole_state != nullptr) scalars = whole_state->scalars();
  std::vector<std::uint64_t> bits(scalars.size());
  std::ranges::transform(scalars, bits.begin(), [](double value) { return std::bit_cast<std::uint64_t>(value); });
  ranks_.broadcast(std::span<std::uint64_t>(bits), 0);
  std::ranges::transform(bits, scalars.begin(), [](std::uint64_t value) { return std::bit_cast<double>(value); });
}

std::vector<float> WholeStateMover::gather_statistics(std::span<const float> own_values, int replicas,
                                                      std::size_t whole_size) {
  if (grid_.replica >= replicas) return {};
  const std::span<const float> mine = own_values.first(own().statistics);
  if (ranks_.rank() != 0) {
    if (!mine.empty()) ranks_.send(std::as_bytes(mine), 0);
    return {};
  }
  std::vector<float> all(static_cast<std::size_t>(replicas) * whole_size);
  for (int replica = 0; replica < replicas; ++replica) {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const int from = grid_.rank_of(static_cast<int>(i), replica);
      const auto place = std::span(all).subspan(
          static_cast<std::size_t>(replica) * whole_size + parts_[i].first_statistic, parts_[i].statistics);
      if (from == 0) {
        std::ranges::copy(mine, place.begin());
      } else if (!place.empty()) {
        ranks_.receive(std::as_writable_bytes(place), from);
      }
    }
  }
  return all;
}

std::span<const float> WholeStateMover::own_statistics(std::span<const float> whole) const {
  return whole.subspan(own().first_statistic, own().statistics);
}

}  // namespace paceline::train
