// SPDX-License-Identifier: Apache-2.0
// Unpacks compressed files (gzip, zstd, xz, bzip2) and archives (tar, compressed or not; zip). Nothing that a hostile
// archive holds is written outside the given folder, and nothing but regular files is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "analysis/importers/reader.h"
#include "analysis/trace/progress.h"

namespace paceline::analysis {

enum class Packing : std::uint8_t { none, compressed, archive };

// The packing of a file, and the first bytes of its contents. Decided by the content, never by the file's name.
struct PackedHead {
  Packing packing = Packing::none;
  std::string bytes;   // unpacked, of a compressed file; at most head_bytes
  bool whole = false;  // the contents have no more bytes than these
  std::string damage;  // why there are no more bytes, where the compression is damaged
};
inline constexpr std::size_t head_bytes = 1 << 20;

// Throws nothing; a file that cannot be read has no packing. Cost: one read of 512 bytes, and for a compressed file the
// unpacking of its first MiB.
PackedHead packed_head(const std::filesystem::path& file);

// Files that unpack to more than this are refused: no trace is as repetitive, and a disk would fill up.
inline constexpr std::uint64_t most_times_larger = 250;
inline constexpr std::uint64_t always_allowed_bytes = 256 << 20;

// Unpacks the files of one run. Its functions may be called from several threads.
class Unpacker {
 public:
  // `room`: how many bytes may be written in all. `packed_bytes`: the size of all files that will be unpacked, for
  // `progress`, which must outlive this object.
  Unpacker(std::uint64_t room, std::uint64_t packed_bytes, const Progress& progress)
      : room_(room), counter_(progress, packed_bytes) {}

  // Unpacks one compressed file to the path `target`. Where the compression is damaged, the target has what precedes
  // the damage, and the result is a line for people that names the file; else it is "". Throws Error where the contents
  // are too large, the disk is full or `progress` returned false.
  std::string unpack_file(const TraceFile& packed, const std::filesystem::path& target);

  struct Members {
    std::vector<TraceFile> files;    // in the order of the archive; "run4.tar.gz/rank-0.json" is a name
    std::vector<std::string> notes;  // what was left out, for people
  };
  // Unpacks the regular files of an archive below the directory `target`, which exists and is empty. Links, devices and
  // paths that lead out of the archive are left out and noted, and so is what follows damage. Throws Error as above and
  // where members are encrypted.
  Members unpack_archive(const TraceFile& packed, const std::filesystem::path& target);

 private:
  friend class UnpackedFile;
  std::atomic<std::uint64_t> written_{0};
  const std::uint64_t room_;
  ProgressCounter counter_;
};

}  // namespace paceline::analysis
