// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/otf2/bytes.h"

#include <algorithm>

namespace paceline::analysis {

Otf2Chunks::Otf2Chunks(const std::filesystem::path& path, std::uint64_t chunk_bytes)
    : file_(path, std::ios::binary | std::ios::ate) {
  if (!file_) return;
  const auto end = file_.tellg();
  if (end <= 0) return;
  left_ = bytes_of_file_ = static_cast<std::uint64_t>(end);
  file_.seekg(0);
  // A damaged size of chunks must neither take memory nor make chunks that cannot hold a head.
  constexpr std::uint64_t least = 64;
  chunk_.resize(std::min(std::max(chunk_bytes, least), left_));
}

bool Otf2Chunks::next() {
  while (left_ > 0) {
    const std::uint64_t size = std::min<std::uint64_t>(chunk_.size(), left_);
    if (!file_.read(reinterpret_cast<char*>(chunk_.data()), static_cast<std::streamsize>(size))) {
      left_ = 0;
      ++bad_heads_;
      return false;
    }
    left_ -= size;
    // OTF2 calls the byte order of little numbers 'B'.
    const std::uint8_t order = size > 1 ? chunk_[1] : 0;
    bytes_ = Otf2Bytes({chunk_.data(), static_cast<std::size_t>(size)}, order == 'L');
    const bool is_head = bytes_.byte() == static_cast<std::uint8_t>(Otf2Mark::head);
    bytes_.byte();
    first_event_ = bytes_.fixed(8);
    last_event_ = bytes_.fixed(8);
    if (!is_head || (order != 'B' && order != 'L') || bytes_.failed()) {
      ++bad_heads_;
      continue;
    }
    if (first_event_ == 0 || last_event_ < first_event_ || last_event_ - first_event_ >= size ||
        last_event_ > bytes_of_file_) {
      first_event_ = last_event_ = 0;
    }
    return true;
  }
  return false;
}

}  // namespace paceline::analysis
