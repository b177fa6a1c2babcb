// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the reader of Perfetto's protobuf files and checks the model that it makes. With clang it is a
// libFuzzer program (fuzz_perfetto), with any compiler it replays the corpus.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "analysis/importers/perfetto/manifest.h"
#include "analysis/importers/reader.h"
#include "profiler/format/error.h"
#include "tests/fuzz/check_model.h"
#include "tests/fuzz/hostile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline;
  static fuzz::MemoryFile file;
  const auto processes = static_cast<analysis::Processes>(size % 3);
  const analysis::TraceFile trace{file.write({data, size}), "fuzz.pftrace", processes};
  analysis::perfetto_reader.recognises(trace);
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (analysis::perfetto::is_manifest(text)) analysis::perfetto::clock_offsets(text, std::span(&trace, 1));
    fuzz::check(analysis::perfetto_reader.read(std::span(&trace, 1), {}));
  } catch (const Error&) {
  }
  return 0;
}
