// SPDX-License-Identifier: Apache-2.0
// What each updater's file declares about its updater. Options, help, checks and start-up follow these declarations, so
// that an updater is one file and one line of updaters.def.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>

namespace paceline::train {

class Updater;
struct UpdaterParts;

// An option that only has an effect with one updater. Its value is a number.
struct UpdaterOption {
  const char* key;  // without dashes, e.g. "local-steps"
  const char* help;
  bool whole = false;  // takes whole numbers only
  double least = 0, most = 0;
  std::optional<double> standard{};  // its default, shown in --help; empty: `help` says what happens without the option
};

// The values that were given, by key. Whole numbers up to 2^53 are exact.
using UpdaterValues = std::map<std::string, double, std::less<>>;

// The given value of an option, else its default; empty if it has neither.
std::optional<double> value_of(const UpdaterValues& given, const UpdaterOption& option);

struct UpdaterKind {
  const char* name;
  const char* summary;  // for --help
  std::unique_ptr<Updater> (*make)(const UpdaterParts&);
  std::span<const UpdaterOption> options{};

  // Ranks and communication.
  bool one_rank = false;         // does not communicate
  bool allreduces = false;       // averages gradients by an allreduce, so that the choice of the communicator matters
  bool threaded = false;         // communicates in a second thread, so MPI needs MPI_THREAD_SERIALIZED
  bool lockstep = false;         // sends nothing during a pass, so batch norms may synchronise the ranks in each layer
  bool pipelines = false;        // averages the stages of a pipeline as well
  const char* varies = nullptr;  // why the results of a repeated run differ; null: they do not
  const char* only_f32 = nullptr;  // why --allreduce-dtype {} is refused; null: gradients travel in any type

  // The optimizer and devices.
  bool on_gpus = true;
  bool steps_on_host = false;     // takes its steps on the host even if a GPU computes the gradients
  bool shards_optimizer = false;  // each rank keeps the state of its shard, and the communicator needs a reduce-scatter
  bool clips = true;              // applies --clip-grad-norm

  // Memory that it takes after start-up, in copies of the gradient.
  std::size_t copies = 0, copies_on_main_rank = 0;

  bool has_option(const std::string& key) const;
};

// All updaters, in the order of updaters.def.
std::span<const UpdaterKind* const> updater_kinds();

// Throws Error (usage) for an unknown name.
const UpdaterKind& updater_kind(const std::string& name);

// Throws Error (usage) if the updater does not work with this number of ranks, this communicator or this type.
void check_updater(const std::string& name, int ranks, const std::string& communicator, const std::string& dtype);

// NAME_updater of each line, which the file of that name defines; `single` is in allreduce.cpp.
#define PACELINE_UPDATER(name) extern const UpdaterKind name##_updater;
#include "trainer/updaters/updaters.def"
#undef PACELINE_UPDATER

}  // namespace paceline::train
