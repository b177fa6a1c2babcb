// SPDX-License-Identifier: Apache-2.0
#include "analysis/text/text_output.h"

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>

#include "profiler/format/error.h"

namespace paceline::analysis {

void TextOutput::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size() || std::fflush(file_) != 0) {
    throw Error(fmt::format("the export could not be written: {}", std::strerror(errno)));
  }
  written_ += buffer_.size();
  buffer_.clear();
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string valid_utf8(std::string_view text) { return nlohmann::json::parse(json_string(text)).get<std::string>(); }

}  // namespace paceline::analysis
