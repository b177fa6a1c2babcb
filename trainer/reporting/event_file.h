// SPDX-License-Identifier: Apache-2.0
// A file of scalars for TensorBoard.
//
// The file is a sequence of TFRecords: the length (8 bytes), its checksum (4), the data, its checksum (4), all
// little-endian; a checksum is the CRC-32C, rotated and shifted (TensorFlow, core/lib/io/record_writer.h). The data of
// each record is an Event in protobuf's encoding (TensorBoard, compat/proto/event.proto and summary.proto).
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::train {

// The checksum of TFRecords.
std::uint32_t masked_crc32c(std::string_view data);

class EventFile {
 public:
  // Creates DIRECTORY/events.out.tfevents.SECONDS.HOST.PID, and the directory if it is missing. Each run writes a new
  // file; TensorBoard shows the files of a directory as one run. Throws Error if the file cannot be written.
  explicit EventFile(const std::filesystem::path& directory);

  // Appends one event with a value for each tag, at the time of the call, and flushes it. Throws Error.
  void scalars(std::int64_t step, const std::vector<std::pair<std::string_view, double>>& values);

 private:
  void write(std::string_view event);

  std::filesystem::path file_;
  std::ofstream out_;
};

}  // namespace paceline::train
