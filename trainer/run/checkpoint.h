// What a run needs to go on as if it had never stopped, to the bit, in one file, independent of backend and number of
// ranks.
//   "paceline-checkpoint 1\n", length of the header (8 bytes, little-endian), the header (JSON: model, image_size,
//   classes, seed, iteration, iterations_per_epoch, images_per_iteration, parameters with name and shape, statistics:
//   how many, optimizer: its name and its single numbers, ranks: how many, pending: whether there is such a gradient,
//   run: the settings, the data set and the length of the run that wrote it),
//   then fp32 arrays: each parameter in its published layout, the statistics, each parameter of each of the optimizer's
//   arrays, each parameter's pending gradient, the running statistics of each rank; last XXH3-64 of all before (8
//   bytes, little-endian). Where the batch grows, iterations are counted as if all epochs were cut like the one at
//   hand.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/nn/model.h"
#include "trainer/optim/optimizer.h"
#include "trainer/run/resume_notes.h"

namespace paceline::train {

struct Position {
  std::string model;
  std::int64_t image_size = 32, classes = 10;
  std::uint64_t seed = 1;
  std::uint64_t iteration = 0;  // the next one, counted over the whole run
  std::uint64_t iterations_per_epoch = 0;
  std::uint64_t images_per_iteration = 0;  // of all ranks
};

// What one kind of updater, or a run on as many ranks, needs beside weights, statistics and optimizer.
struct RunState {
  std::vector<float> pending;          // the flat mean gradient that the next step applies; empty: none
  std::vector<float> rank_statistics;  // running statistics of rank 0, rank 1, …, each as long as the model's
  RunFacts facts;                      // of the run; without settings where an older version wrote the file
};

// Written beside the file and renamed over it: a checkpoint of that name is always whole. The last `keep` checkpoints
// are kept: this one, before it FILE.1, before that FILE.2. Throws Error.
void write_checkpoint(const std::filesystem::path& file, const Position& position, Model& model, Optimizer& optimizer,
                      const RunState& state = {}, unsigned keep = 1);

// Throws Error where a run without --resume would write over a checkpoint, or any other file that is not empty.
void check_no_checkpoint(const std::filesystem::path& file);

// Fills model, optimizer and `state`, where given. Model and optimizer must be those that the file was written with.
// Throws Error: unreadable, damaged, of another model, image size or number of classes.
Position read_checkpoint(const std::filesystem::path& file, const Position& expected, Model& model,
                         Optimizer& optimizer, RunState* state = nullptr);

}  // namespace paceline::train
