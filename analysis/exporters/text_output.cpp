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

void append_json_arguments(std::string& out, NameId domain, const Slices& slices, std::size_t i, JsonNames& names) {
  out += '{';
  if (domain != 0) out += "\"domain\":" + names[domain];
  slices.each_argument(i, [&](const Argument& argument) {
    if (out.back() != '{') out += ',';
    out += names[argument.key];
    out += ':';
    const auto print = [&](auto value) { fmt::format_to(std::back_inserter(out), "{}", value); };
    switch (argument.type) {
      case ValueType::text:
        out += names[argument.text()];
        break;
      case ValueType::signed_integer:
        print(static_cast<std::int64_t>(argument.bits));
        break;
      case ValueType::unsigned_integer:
        print(argument.bits);
        break;
      case ValueType::real:
        if (std::isfinite(argument.number())) {
          print(argument.number());
        } else {
          out += "null";  // JSON has no infinity
        }
        break;
    }
  });
  out += '}';
}

}  // namespace paceline::analysis
