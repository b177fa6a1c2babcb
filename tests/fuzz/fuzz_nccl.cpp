// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the reader of the outputs of NCCL, and checks the models that it makes.
// With clang it is a libFuzzer program (fuzz_nccl), with any compiler it replays the corpus.
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
  const analysis::TraceFile output{file.write({data, size}), "output"};
  if (!analysis::nccl_reader.recognises(output)) return 0;
  try {
    fuzz::check(analysis::nccl_reader.read(std::span(&output, 1), {}));
  } catch (const Error&) {
  }
  return 0;
}
