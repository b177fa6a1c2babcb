// SPDX-License-Identifier: Apache-2.0
// The trainer's one error type, for bad input and failed calls. The program prints it as one line and ends with
// `status`.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace paceline::train {

enum class Status { failed = 1, usage = 2 };

// Three parts make the line "WHERE: WRONG: REMEDY". An option of the program is written as its key between ‹ and ›, as
// in "lower ‹batch-size›", because code outside of cli/ does not know how users write options: with_option_names() of
// cli/option_table.h translates the keys.
struct Error : std::runtime_error {
  // where: the file, option, library call or part of the job. wrong: the problem there. remedy: what the user can do;
  // may be empty.
  Error(std::string_view where, std::string_view wrong, std::string_view remedy, Status status = Status::failed)
      : Error(joined(where, wrong, remedy), status) {}

  // A line that is complete already, such as one from another rank.
  explicit Error(const std::string& line, Status status = Status::failed) : std::runtime_error(line), status(status) {}

  Status status;

 private:
  static std::string joined(std::string_view where, std::string_view wrong, std::string_view remedy) {
    std::string line(where);
    line.append(": ").append(wrong);
    if (!remedy.empty()) line.append(": ").append(remedy);
    return line;
  }
};

}  // namespace paceline::train
