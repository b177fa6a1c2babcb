// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/cifar.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "trainer/core/error.h"
#include "trainer/core/whole_file.h"

namespace paceline::train {

void read_cifar_batch(const std::filesystem::path& file, Dataset& data) {
  std::error_code code;
  const std::uintmax_t bytes = std::filesystem::file_size(file, code);
  if (code) throw Error(file.string(), code.message(), "copy or download the file again");
  if (bytes == 0 || bytes % cifar_record_bytes != 0) {
    throw Error(file.string(),
                fmt::format("{} bytes is not a whole number of records of {} bytes", bytes, cifar_record_bytes),
                "copy or download the file again");
  }
  std::ifstream in(file, std::ios::binary);
  std::vector<char> content(bytes);
  if (!in.read(content.data(), static_cast<std::streamsize>(bytes))) {
    throw Error(file.string(), "cannot be read", std::strerror(errno));
  }
  const std::size_t records = bytes / cifar_record_bytes;
  data.labels.reserve(data.labels.size() + records);
  data.pixels.reserve(data.pixels.size() + records * cifar_image_bytes);
  for (std::size_t record = 0; record < records; ++record) {
    const char* start = content.data() + record * cifar_record_bytes;
    const auto label = static_cast<std::uint8_t>(start[0]);
    if (label > 9) {
      throw Error(file.string(), fmt::format("record {} has label {}, above 9", record, label),
                  "this is not a CIFAR-10 batch file");
    }
    data.labels.push_back(label);
    data.pixels.insert(data.pixels.end(), start + 1, start + cifar_record_bytes);
  }
}

namespace {

// CIFAR-10's archive unpacks to this folder, and most programs take its parent.
std::filesystem::path folder_of_batches(const std::filesystem::path& directory) {
  const std::filesystem::path unpacked = directory / "cifar-10-batches-bin";
  std::error_code code;
  const bool here = std::filesystem::exists(directory / "data_batch_1.bin", code);
  return !here && std::filesystem::exists(unpacked / "data_batch_1.bin", code) ? unpacked : directory;
}

}  // namespace

std::string check_cifar10(const std::filesystem::path& given) {
  const std::filesystem::path directory = folder_of_batches(given);
  require_directory(directory);
  for (const char* name : {"data_batch_1.bin", "test_batch.bin"}) {
    std::error_code code;
    if (std::filesystem::exists(directory / name, code)) continue;
    if (code) throw Error(directory.string(), "cannot be read", code.message());
    throw Error(directory.string(), fmt::format("no {} in it, and no folder train of pictures", name),
                "unpack CIFAR-10's binary version there, or draw a set with: paceline-train make-dataset " +
                    directory.string());
  }
  std::string missing;
  for (int number = 2; number <= 5; ++number) {
    std::error_code code;
    const std::string name = fmt::format("data_batch_{}.bin", number);
    if (!std::filesystem::exists(directory / name, code)) missing += (missing.empty() ? "" : ", ") + name;
  }
  return missing.empty() ? "" : fmt::format("{}: trains without {}, which is missing", directory.string(), missing);
}

TrainAndTest read_cifar10(const std::filesystem::path& given) {
  check_cifar10(given);
  const std::filesystem::path directory = folder_of_batches(given);
  TrainAndTest data;
  for (int number = 1; number <= 5; ++number) {
    const std::filesystem::path file = directory / fmt::format("data_batch_{}.bin", number);
    std::error_code code;
    if (std::filesystem::exists(file, code)) read_cifar_batch(file, data.train);
  }
  read_cifar_batch(directory / "test_batch.bin", data.test);
  return data;
}

void write_cifar_batch(const std::filesystem::path& file, const Dataset& data, std::size_t first, std::size_t count) {
  std::string content;
  content.reserve(count * cifar_record_bytes);
  for (std::size_t sample = first; sample < first + count; ++sample) {
    const auto image = data.image(sample);
    content.push_back(static_cast<char>(data.labels[sample]));
    content.append(reinterpret_cast<const char*>(image.data()), image.size());
  }
  write_file_atomically(file, content);
}

}  // namespace paceline::train
