#include "analysis/exporters/text_output.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "profiler/format/error.h"

namespace paceline::analysis {

void TextOutput::flush() {
  if (std::fwrite(buffer_.data(), 1, buffer_.size(), file_) != buffer_.size() || std::fflush(file_) != 0) {
    throw Error(fmt::format("the export could not be written: {}", std::strerror(errno)));
  }
  buffer_.clear();
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_json_arguments(std::string& out, NameId domain, std::span<const Argument> arguments, JsonNames& names) {
  out += '{';
  if (domain != 0) out += "\"domain\":" + names[domain];
  for (const Argument& argument : arguments) {
    if (out.back() != '{') out += ',';
    out += names[argument.key];
    out += ':';
    if (argument.text != 0) {
      out += names[argument.text];
    } else if (std::isfinite(argument.number)) {
      fmt::format_to(std::back_inserter(out), "{}", argument.number);
    } else {
      out += "null";  // JSON knows no infinity
    }
  }
  out += '}';
}

}  // namespace paceline::analysis
