// SPDX-License-Identifier: Apache-2.0
// A checkpoint: one file from which a run goes on as if it had never stopped, to the bit. It does not depend on the
// backend or the number of ranks. Its content is:
//   "paceline-checkpoint 1\n", length of the header (8 bytes, little-endian), the header (JSON: model, image_size,
//   classes, seed, iteration, iterations_per_epoch, images_per_iteration, parameters with name and shape, statistics:
//   how many, optimizer: its name and its single numbers, ranks: how many, pending: whether there is such a gradient,
//   warm_start: how many numbers, best_accuracy, run: the settings, the data set and the length of the run that wrote
//   it), then fp32 arrays: each parameter in its published layout, the statistics, each parameter of each of the
//   optimizer's arrays, each parameter's pending gradient, the running statistics of each rank, the warm start; last
//   XXH3-64 of all before (8 bytes, little-endian). Where the batch grows, iterations are counted as if all epochs were
//   cut like the one at hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/resume_notes.h"
#include "trainer/nn/model.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train {

struct Position {
  std::string model;
  std::int64_t image_size = 32, classes = 10;
  std::uint64_t seed = 1;
  std::uint64_t iteration = 0;  // the next iteration, counted over the whole run
  std::uint64_t iterations_per_epoch = 0;
  std::uint64_t images_per_iteration = 0;  // of all ranks
};

// State beside weights, statistics and optimizer that one kind of updater needs, or a run on as many ranks.
struct RunState {
  std::vector<float> pending;          // the mean gradient that the next step applies; empty: none
  std::vector<float> rank_statistics;  // running statistics of rank 0, rank 1, …, each as long as the model's
  std::vector<float> warm_start;       // as Updater::warm_start()
  double best_accuracy = -1;           // on the test images so far; negative: there was no evaluation
  RunFacts facts;                      // of the run; the settings are empty if an older version wrote the file
};

// Writes the checkpoint atomically (core/whole_file.h) and keeps the last `keep` checkpoints: this one, the one before
// it as FILE.1, then FILE.2. Throws Error.
void write_checkpoint(const std::filesystem::path& file, const Position& position, Model& model, Optimizer& optimizer,
                      const RunState& state = {}, unsigned keep = 1);

// FILE.best, where --keep-best keeps a checkpoint.
std::filesystem::path best_checkpoint(const std::filesystem::path& file);

// Keeps the checkpoint that was just written as FILE.best as well. Throws Error.
void keep_as_best(const std::filesystem::path& file);

// Throws Error if a run that does not resume would overwrite a checkpoint or any other file that is not empty.
void check_no_checkpoint(const std::filesystem::path& file);

// Fills model, optimizer and, if not null, `state`. Throws Error if the file is unreadable or damaged, or belongs to
// another model, image size, number of classes or optimizer.
Position read_checkpoint(const std::filesystem::path& file, const Position& expected, Model& model,
                         Optimizer& optimizer, RunState* state = nullptr);

}  // namespace paceline::train
