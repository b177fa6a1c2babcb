// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the reader of Flight Recorder dumps, pickles and JSON, and checks the models that it makes.
// With clang it is a libFuzzer program (fuzz_flight_recorder), with any compiler it replays the corpus.
#include <cstddef>
#include <cstdint>
#include <span>

#include "analysis/importers/reader.h"
#include "profiler/format/error.h"
#include "tests/fuzz/check_model.h"
#include "tests/fuzz/hostile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  static fuzz::MemoryFile file;
  const analysis::TraceFile dump{file.write({data, size}), "dump_0"};
  if (!analysis::flight_recorder_reader.recognises(dump)) return 0;
  try {
    fuzz::check(analysis::flight_recorder_reader.read(std::span(&dump, 1), {}));
  } catch (const Error&) {
  }
  return 0;
}
