// A run's images, found and, where that is wished, read by rank 0 for all.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/cli/options.h"
#include "trainer/comm/collectives.h"
#include "trainer/data/image_source.h"

namespace paceline::train {

struct RunData {
  std::unique_ptr<ImageSource> train, test;
  std::uint64_t hash = 0;  // the same on ranks that have the same data
  std::string title;       // for whoever compares runs
};

// Made up, CIFAR-10's files or a folder of JPEGs, as the options say and --data has it. Rank 0 alone lists a folder,
// and broadcasts the list, as ChainerMN's scatter_dataset does the samples' order: hundreds of ranks that list the same
// folders are a storm for a parallel file system. The orders of the epochs follow from list and seed without a message.
// With --broadcast-data rank 0 alone reads the pictures too, and every rank keeps all of them in memory, as they are in
// the files. Sent in pieces of 64 MiB at most. A collective call; throws AgreedError.
RunData open_data(const TrainOptions& options, Collectives& collectives);

}  // namespace paceline::train
