// What a run needs to go on as if it had never stopped, in one file, independent of backend and number of ranks. To the
// bit, but for one thing: in mid-epoch each rank has running statistics of its own, of which their mean is kept
// (weights do not depend on them, and an epoch's evaluation takes the mean anyway).
//   "paceline-checkpoint 1\n", length of the header (8 bytes, little-endian), the header (JSON: model, image_size,
//   classes, seed, iteration, iterations_per_epoch, parameters with name and shape, statistics: how many), then fp32
//   arrays: each parameter in its published layout, the statistics, each parameter's velocity; last XXH3-64 of all
//   before (8 bytes, little-endian).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "trainer/nn/model.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {

struct Position {
  std::string model;
  std::int64_t image_size = 32, classes = 10;
  std::uint64_t seed = 1;
  std::uint64_t iteration = 0;  // the next one, counted over the whole run
  std::uint64_t iterations_per_epoch = 0;
};

// Written beside the file and renamed over it: a checkpoint of that name is always whole. Throws Error.
void write_checkpoint(const std::filesystem::path& file, const Position& position, Model& model, Sgd& optimizer);

// Fills model and optimizer, which must be those that the file was written with. Throws Error: unreadable, damaged, of
// another model, image size or number of classes.
Position read_checkpoint(const std::filesystem::path& file, const Position& expected, Model& model, Sgd& optimizer);

}  // namespace paceline::train
