// SPDX-License-Identifier: Apache-2.0
// Errors that one rank alone may meet, turned into errors of all ranks.
#pragma once

#include <functional>
#include <string>

#include "trainer/comm/collectives.h"
#include "trainer/core/error.h"

namespace paceline::train {

// Thrown on every rank at the same place, so that each rank can end in order. Only the rank `reporter` prints it.
struct AgreedError : Error {
  AgreedError(const std::string& line, Status status, int reporter) : Error(line, status), reporter(reporter) {}
  int reporter;
};

// Throws AgreedError on all ranks if any rank passes a line; the first such rank reports its line. An empty line means
// that this rank has no error. A collective call.
void agree(Collectives& collectives, const std::string& line, Status status = Status::failed);

// Runs `part`, which must not communicate, and throws AgreedError on all ranks if it threw on any. A collective call.
void together(Collectives& collectives, const std::function<void()>& part);

}  // namespace paceline::train
