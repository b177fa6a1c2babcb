// SPDX-License-Identifier: Apache-2.0
#include "trainer/updaters/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "trainer/core/error.h"

namespace paceline::train {
namespace {

constexpr const UpdaterKind* kinds[] = {
#define PACELINE_UPDATER(name) &name##_updater,
#include "trainer/updaters/updaters.def"
#undef PACELINE_UPDATER
};

}  // namespace

std::optional<double> value_of(const UpdaterValues& given, const UpdaterOption& option) {
  const auto found = given.find(option.key);
  return found == given.end() ? option.standard : found->second;
}

bool UpdaterKind::has_option(const std::string& key) const {
  return std::ranges::any_of(options, [&](const UpdaterOption& option) { return key == option.key; });
}

std::span<const UpdaterKind* const> updater_kinds() { return kinds; }

const UpdaterKind& updater_kind(const std::string& name) {
  const auto found = std::ranges::find_if(kinds, [&](const UpdaterKind* kind) { return name == kind->name; });
  if (found == std::end(kinds)) throw Error("‹updater› " + name, "unknown updater", "", Status::usage);
  return **found;
}

void check_updater(const std::string& name, int ranks, const std::string& communicator, const std::string& dtype) {
  const UpdaterKind& kind = updater_kind(name);
  const auto refuse = [&](const std::string& wrong, const std::string& remedy) {
    return Error("‹updater› " + name, wrong, remedy, Status::usage);
  };
  if (kind.one_rank && ranks > 1) throw refuse(fmt::format("is for one rank, not {}", ranks), "take allreduce");
  if (!kind.allreduces && communicator != "mpi") {
    throw refuse("makes no allreduce of gradients", "leave out ‹communicator› " + communicator);
  }
  constexpr std::string_view with_reduce_scatter[] = {"mpi", "single_node", "ring", "pure_nccl"};
  if (kind.shards_optimizer && std::ranges::count(with_reduce_scatter, communicator) == 0) {
    throw refuse(fmt::format("communicator {} has no reduce-scatter", communicator), "take mpi, ring or pure_nccl");
  }
  if (kind.only_f32 != nullptr && dtype != "f32") {
    throw refuse(fmt::format(fmt::runtime(kind.only_f32), dtype), "leave out ‹allreduce-dtype› " + dtype);
  }
}

}  // namespace paceline::train
