// SPDX-License-Identifier: Apache-2.0
#include "trainer/core/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "trainer/core/cast.h"
#include "trainer/core/error.h"

namespace paceline::train::safetensors {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are copied as they lie in memory");

using nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::uint64_t longest_header = 100'000'000;  // bytes; the limit of the reference implementation
constexpr std::size_t most_dimensions = 64;

struct Dtype {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr Dtype dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
                            {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
                            {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

// The bytes of a tensor of that shape; nothing if they do not fit into 64 bits.
std::optional<std::uint64_t> shape_bytes(const std::vector<std::int64_t>& shape, std::uint64_t bytes_of_one) {
  std::uint64_t bytes = bytes_of_one;
  for (const std::int64_t extent : shape) {
    if (__builtin_mul_overflow(bytes, static_cast<std::uint64_t>(extent), &bytes)) return std::nullopt;
  }
  return bytes;
}

// Parses the header. JSON allows an object to have a name twice; then readers would disagree about the file.
json parse_header(std::string_view text, const std::string& where) {
  std::vector<std::set<std::string>> names;  // of the objects that are open
  const auto look = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) names.emplace_back();
    if (event == json::parse_event_t::object_end) names.pop_back();
    if (event == json::parse_event_t::key && !names.back().insert(parsed.get<std::string>()).second) {
      throw Error(where, fmt::format("the header has the name {} twice", in_quotes(parsed.get<std::string>())),
                  "write the file again");
    }
    return true;
  };
  try {
    json header = json::parse(text, look);
    if (header.is_object()) return header;
  } catch (const json::parse_error& error) {
    throw Error(where, fmt::format("the header is not valid JSON at byte {}", length_bytes + error.byte),
                "download or write the file again");
  }
  throw Error(where, "the header is not a JSON object", "download or write the file again");
}

// One entry of the header.
struct Entry {
  std::string name, dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin = 0, end = 0;  // of its bytes, from the end of the header
};

Entry entry_of(const std::string& name, const json& value, const std::string& where) {
  const auto refuse = [&](const std::string& wrong) {
    return Error(where, fmt::format("tensor {}: {}", in_quotes(name), wrong), "write the file again");
  };
  if (!value.is_object() || value.size() != 3 || !value.contains("dtype") || !value.contains("shape") ||
      !value.contains("data_offsets")) {
    throw refuse("expected dtype, shape and data_offsets, and nothing else");
  }
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  const auto size_of = [&](const json& number) {
    if (!number.is_number_unsigned() || number.get<std::uint64_t>() > std::uint64_t{1} << 62) {
      throw refuse("a size or an offset is not a whole number from 0 on");
    }
    return number.get<std::uint64_t>();
  };
  Entry entry;
  entry.name = name;
  if (!dtype.is_string()) throw refuse("the dtype is not a text");
  entry.dtype = dtype.get<std::string>();
  const auto known = std::ranges::find(dtypes, std::string_view(entry.dtype), &Dtype::name);
  if (known == std::end(dtypes)) throw refuse("unknown dtype " + in_quotes(entry.dtype));
  if (!shape.is_array() || shape.size() > most_dimensions) throw refuse("the shape is not a short list");
  for (const json& extent : shape) entry.shape.push_back(static_cast<std::int64_t>(size_of(extent)));
  if (!offsets.is_array() || offsets.size() != 2) throw refuse("data_offsets are not two numbers");
  entry.begin = size_of(offsets[0]);
  entry.end = size_of(offsets[1]);
  const std::optional<std::uint64_t> bytes = shape_bytes(entry.shape, known->bytes);
  if (entry.end < entry.begin || bytes != entry.end - entry.begin) {
    throw refuse(fmt::format("shape {} of {} does not have the bytes {} to {}", text_of(entry.shape), entry.dtype,
                             entry.begin, entry.end));
  }
  return entry;
}

void check_metadata(const json& metadata, const std::string& where) {
  const bool texts =
      metadata.is_object() && std::ranges::all_of(metadata, [](const json& value) { return value.is_string(); });
  if (!texts) throw Error(where, "__metadata__ is not an object of texts", "write the file again");
}

}  // namespace

std::vector<Tensor> read(std::string_view content, const std::string& where) {
  std::uint64_t header_bytes = 0;
  if (content.size() < length_bytes) {
    throw Error(where, fmt::format("not a safetensors file: it has {} bytes", content.size()), "name another file");
  }
  std::memcpy(&header_bytes, content.data(), length_bytes);
  content.remove_prefix(length_bytes);
  if (header_bytes > content.size() || header_bytes > longest_header) {
    throw Error(where,
                fmt::format("not a safetensors file, or cut off: its first 8 bytes announce a header of {} bytes, and "
                            "{} follow",
                            header_bytes, content.size()),
                "name another file, or download it again");
  }
  const json header = parse_header(content.substr(0, header_bytes), where);
  content.remove_prefix(header_bytes);

  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      check_metadata(value, where);
    } else {
      entries.push_back(entry_of(name, value, where));
    }
  }
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::vector<Tensor> tensors;
  std::uint64_t next = 0;
  for (Entry& entry : entries) {
    const auto refuse = [&](const std::string& wrong) {
      return Error(where, fmt::format("tensor {}: {}", in_quotes(entry.name), wrong),
                   "download or write the file again");
    };
    if (entry.end > content.size()) {
      throw refuse(fmt::format("its bytes end at {}, and {} follow the header", entry.end, content.size()));
    }
    if (entry.begin != next) {
      throw refuse(
          fmt::format("its bytes begin at {}, and those of the tensor before it end at {}", entry.begin, next));
    }
    next = entry.end;
    tensors.push_back({std::move(entry.name), std::move(entry.dtype), std::move(entry.shape),
                       content.substr(entry.begin, entry.end - entry.begin)});
  }
  if (next != content.size()) {
    throw Error(where, fmt::format("{} bytes after the last tensor belong to none", content.size() - next),
                "write the file again");
  }
  return tensors;
}

std::string write(const std::vector<Tensor>& tensors, const std::string& metadata) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}, {"writer", metadata}};  // libraries ask for this format
  std::size_t bytes = 0;
  for (const Tensor& tensor : tensors) {
    header[tensor.name] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {bytes, bytes + tensor.bytes.size()}}};
    bytes += tensor.bytes.size();
  }
  std::string text = header.dump();
  text.append((length_bytes - text.size() % length_bytes) % length_bytes, ' ');
  std::string content(length_bytes, '\0');
  const std::uint64_t length = text.size();
  std::memcpy(content.data(), &length, length_bytes);
  content.reserve(length_bytes + text.size() + bytes);
  content += text;
  for (const Tensor& tensor : tensors) content += tensor.bytes;
  return content;
}

std::vector<float> floats_of(const Tensor& tensor, const std::string& where) {
  if (tensor.dtype == "F32") {
    std::vector<float> values(tensor.bytes.size() / sizeof(float));
    if (!values.empty()) std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
    return values;
  }
  const bool half = tensor.dtype == "F16";
  if (!half && tensor.dtype != "BF16") {
    throw Error(
        where,
        fmt::format("tensor {}: {} numbers, where F32, F16 or BF16 is expected", in_quotes(tensor.name), tensor.dtype),
        "convert the file to F32");
  }
  std::vector<float> values(tensor.bytes.size() / sizeof(std::uint16_t));
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + i * sizeof bits, sizeof bits);
    values[i] = half ? float_from_half(bits) : float_from_bfloat16(bits);
  }
  return values;
}

std::string in_quotes(std::string_view name) {
  constexpr std::size_t longest = 80;
  // JSON's escapes leave no control character; bytes that are not UTF-8 are replaced.
  return json(std::string(name.substr(0, longest))).dump(-1, ' ', true, json::error_handler_t::replace) +
         (name.size() > longest ? "…" : "");
}

std::string text_of(const std::vector<std::int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

}  // namespace paceline::train::safetensors
