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
  written_ += buffer_.size();
  buffer_.clear();
}

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string valid_utf8(std::string_view text) { return nlohmann::json::parse(json_string(text)).get<std::string>(); }

const std::string& JsonArguments::operator()(const Slices& slices, const SelectedSlice& slice) {
  const NameId domain = trace_.kind_of(slices, slice.index).domain;
  const RecordId record = slices.record[slice.index];
  if (!Records::is_shared(record)) {
    write(domain, slices, slice, own_);
    return own_;
  }
  Latest& latest = latest_[(record * 31 + domain) % latest_.size()];
  if (latest.slices != &slices || latest.record != record || latest.domain != domain ||
      latest.clipped != slice.clipped) {
    latest.slices = &slices, latest.record = record, latest.domain = domain, latest.clipped = slice.clipped;
    write(domain, slices, slice, latest.text);
  }
  return latest.text;
}

void JsonArguments::write(NameId domain, const Slices& slices, const SelectedSlice& slice, std::string& out) {
  out = "{";
  if (domain != 0) out += "\"domain\":" + names_[domain];
  slices.each_argument(slice.index, [&](const Argument& argument) {
    if (out.back() != '{') out += ',';
    out += names_[argument.key];
    out += ':';
    const auto print = [&](auto value) { out += TextOutput::view(fmt::format_int(value)); };
    switch (argument.type) {
      case ValueType::text:
        out += names_[argument.text()];
        break;
      case ValueType::signed_integer:
        print(static_cast<std::int64_t>(argument.bits));
        break;
      case ValueType::unsigned_integer:
        print(argument.bits);
        break;
      case ValueType::real:
        if (std::isfinite(argument.number())) {
          fmt::format_to(std::back_inserter(out), "{}", argument.number());
        } else {
          out += "null";  // JSON has no infinity
        }
        break;
    }
  });
  if (slice.clipped != Clipped::no) {
    if (out.back() != '{') out += ',';
    out += fmt::format("\"clipped\":\"{}\"", clipped_text(slice.clipped));
  }
  out += '}';
}

}  // namespace paceline::analysis
