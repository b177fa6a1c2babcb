// SPDX-License-Identifier: Apache-2.0
// Images that cannot be read or decoded, for a run that leaves them out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace paceline::train {

// The bad images of one source that this rank has found. Several threads may use it at once.
class BadImages {
 public:
  // report: called once for each image, with a line that names it.
  explicit BadImages(std::function<void(const std::string&)> report) : report_(std::move(report)) {}

  bool has(std::size_t sample) const;
  void add(std::size_t sample, const std::string& what);
  std::vector<std::uint64_t> samples() const;  // ascending

 private:
  const std::function<void(const std::string&)> report_;
  mutable std::mutex mutex_;
  std::map<std::size_t, std::string> what_;
};

}  // namespace paceline::train
