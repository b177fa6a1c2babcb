// Errors that may meet one rank alone, and end the job in order on all.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>

#include "trainer/comm/communicator.h"

namespace paceline::train {

// Thrown on every rank in the same place: the job can end in order, each rank for itself. `reporter` is the rank that
// says so; the others are silent.
struct AgreedError : std::runtime_error {
  AgreedError(const std::string& what, int status, int reporter)
      : std::runtime_error(what), status(status), reporter(reporter) {}
  int status, reporter;
};

// Throws AgreedError on all ranks where any has a status above 0; the first such rank reports its own text. A
// collective call.
void agree(Communicator& communicator, const std::string& what, int status);

// Runs `part`, which communicates with nobody, and agrees on how that went. A collective call.
void together(Communicator& communicator, const std::function<void()>& part);

}  // namespace paceline::train
