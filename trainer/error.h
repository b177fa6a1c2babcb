// The trainer's one error type, thrown where input may be bad: one line that names the file or option, what is wrong
// and what to do. The program prints it and ends with `status`.
#pragma once

#include <stdexcept>
#include <string>

namespace paceline::train {

enum class Status { failed = 1, usage = 2 };

struct Error : std::runtime_error {
  explicit Error(const std::string& what, Status status = Status::failed) : std::runtime_error(what), status(status) {}
  Status status;
};

}  // namespace paceline::train
