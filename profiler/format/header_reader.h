// SPDX-License-Identifier: Apache-2.0
// Reads the header of a .pace file and the JSON text in it.
#pragma once

#include "profiler/format/input_file.h"
#include "profiler/format/trace_facts.h"

namespace paceline::format {

// Collects what is damaged in a file. The first damage is kept as text, the others are counted.
class DamageLog {
 public:
  void add(std::string what) {
    if (count_++ == 0) first_ = std::move(what);
  }
  bool empty() const { return count_ == 0; }
  // One line, "" where nothing is damaged.
  std::string text() const { return count_ > 1 ? first_ + " (and " + std::to_string(count_ - 1) + " more)" : first_; }

 private:
  std::string first_;
  int count_ = 0;
};

// Fills in the header and everything that its text contains, and returns the length of the file in bytes. Throws Error
// where not even a header can be read. A text that is damaged is added to `damage`, and its members stay empty.
std::uint64_t read_header(const InputFile& file, TraceFacts& facts, DamageLog& damage);

}  // namespace paceline::format
