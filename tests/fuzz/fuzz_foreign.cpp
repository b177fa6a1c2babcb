// SPDX-License-Identifier: Apache-2.0
// Feeds hostile bytes to the readers of SQLite databases and OTF2 archives and checks the models that they make. With
// clang it is a libFuzzer program (fuzz_foreign), with any compiler it replays the corpus (replay_fuzz_foreign).
//
// After a first byte that is even, the input is a SQLite database. After an odd one, it is an OTF2 archive with one
// location: two bytes with the length of the anchor file, two with the length of the definitions, and the anchor file,
// the definitions and the events. Where the first byte is 3 modulo 4, the definitions are also those of the location.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "analysis/importers/reader.h"
#include "profiler/format/error.h"
#include "tests/fuzz/check_model.h"

// The library loses memory of its own when it refuses an archive.
extern "C" const char* __lsan_default_suppressions() { return "leak:libopen-trace-format2\n"; }

namespace {

namespace fs = std::filesystem;
using namespace paceline;

// A folder in memory that is removed at the end.
class Folder {
 public:
  Folder() {
    const fs::path memory = "/dev/shm";
    path_ =
        (fs::is_directory(memory) ? memory : fs::temp_directory_path()) / ("paceline-fuzz-" + std::to_string(getpid()));
    fs::create_directories(path_ / "a");
  }
  ~Folder() { fs::remove_all(path_); }
  fs::path write(const char* name, std::span<const std::uint8_t> bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path_ / name;
  }

 private:
  fs::path path_;
};

void read(const analysis::TraceReader& reader, const fs::path& path) {
  const std::vector<analysis::TraceFile> files{{path, "fuzz"}};
  if (!reader.recognises(files.front())) return;
  try {
    fuzz::check(reader.read(files, {}));
  } catch (const Error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  if (size < 5) return 0;
  const std::span<const std::uint8_t> rest(data + 1, size - 1);
  if (data[0] % 2 == 0) {
    const fs::path path = folder.write("a.sqlite", rest);
    read(analysis::nsys_reader, path);
    read(analysis::nvprof_reader, path);
    return 0;
  }
  auto take = [&, at = std::size_t{4}](std::size_t length) mutable {
    const std::size_t from = std::min(at, rest.size());
    at = std::min(from + length, rest.size());
    return rest.subspan(from, at - from);
  };
  const fs::path anchor = folder.write("a.otf2", take(rest[0] | std::size_t{rest[1]} << 8));
  const std::span<const std::uint8_t> definitions = take(rest[2] | std::size_t{rest[3]} << 8);
  folder.write("a.def", definitions);
  folder.write("a/0.def", data[0] % 4 == 3 ? definitions : definitions.subspan(0, 0));
  folder.write("a/0.evt", take(rest.size()));
  read(analysis::otf2_reader, anchor);
  return 0;
}
