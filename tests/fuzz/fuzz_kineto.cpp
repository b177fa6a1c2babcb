// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the reader of Kineto's and Chrome's JSON and checks the model that it makes. With clang it is
// a libFuzzer program (fuzz_kineto), with any compiler it replays the corpus (replay_fuzz_kineto).
//
// The first byte of an input selects the size of the pieces in which the rest is parsed, 16 bytes to 4 MiB.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "analysis/importers/kineto/file_reader.h"
#include "analysis/importers/kineto/kineto_rank.h"
#include "analysis/trace/builder.h"
#include "profiler/format/error.h"
#include "tests/fuzz/check_model.h"
#include "tests/fuzz/hostile_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace paceline::analysis;
  if (size == 0) return 0;
  static paceline::fuzz::MemoryFile file;
  const std::filesystem::path path = file.write(std::vector<std::uint8_t>(data + 1, data + size));
  TraceBuilder run;
  RankBuilder& builder = run.add_rank(0);
  kineto::KinetoRank rank(builder, static_cast<Processes>(data[0] / 64 % 3));
  ProgressCounter progress({}, 0);
  try {
    kineto::looks_like_chrome_trace(path);
    const auto summary =
        kineto::read_file({path, "fuzz.json"}, rank, 1 + data[0] % 2, progress, std::size_t{16} << data[0] % 19);
    rank.finish(summary.header);
    paceline::fuzz::check(run.finish());
  } catch (const paceline::Error&) {
  }
  return 0;
}
