// SPDX-License-Identifier: Apache-2.0
// The images of a run. On request rank 0 reads them for all ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "trainer/comm/collectives.h"
#include "trainer/data/image_source.h"
#include "trainer/run/train_options.h"

namespace paceline::train {

struct RunData {
  std::unique_ptr<ImageSource> train, test;
  std::uint64_t hash = 0;  // equal on ranks with equal data
  std::string title;       // names the data in comparisons of runs
  std::string note;        // of rank 0: a line about files that are ignored; "" if there are none
};

// Opens synthetic images, CIFAR-10's files or a folder of pictures. Rank 0 alone lists a folder and broadcasts the
// list, as ChainerMN's scatter_dataset broadcasts the order of the samples, because hundreds of ranks that list the
// same folders overload a parallel file system. The orders of the epochs follow from list and seed without messages.
// With broadcast_data, rank 0 alone reads the pictures too, sends them in pieces of at most 64 MiB, and every rank
// keeps all of them in memory as compressed files. A collective call; throws AgreedError.
RunData open_data(const TrainOptions& options, Collectives& collectives);

}  // namespace paceline::train
