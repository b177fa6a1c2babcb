// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/cuda_names.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <memory>

namespace paceline::analysis {

std::string demangled(std::string_view name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      name.starts_with("_Z") ? abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status) : nullptr,
      std::free);
  return plain && status == 0 ? plain.get() : std::string(name);
}

std::string short_function(std::string_view mangled) {
  if (!mangled.starts_with("_Z")) return std::string(mangled);
  const std::string name = demangled(mangled);
  if (name == mangled) return name;
  constexpr std::string_view unnamed = "(anonymous namespace)", word = "operator";
  constexpr std::string_view brackets[] = {"()", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "->*", "->", "<", ">"};
  std::string text;
  std::size_t type_end = 0;  // of the type that it returns
  int depth = 0;
  bool has_parameters = false;
  for (std::size_t at = 0; at < name.size(); ++at) {
    const std::string_view rest = std::string_view(name).substr(at);
    if (depth == 0 && rest.starts_with(unnamed)) {
      text += unnamed;
      at += unnamed.size() - 1;
    } else if (depth == 0 && rest.starts_with(word)) {
      text += word;
      const std::string_view sign = rest.substr(word.size());
      const auto* found = std::ranges::find_if(brackets, [&](std::string_view one) { return sign.starts_with(one); });
      if (found != std::end(brackets)) text += *found;
      at += word.size() - 1 + (found != std::end(brackets) ? found->size() : 0);
    } else if (rest.front() == '(' || rest.front() == '<') {
      ++depth;
    } else if ((rest.front() == ')' || rest.front() == '>') && depth > 0) {
      --depth;
      has_parameters |= rest.front() == ')';
    } else if (depth == 0) {
      if (rest.front() == ' ' && has_parameters) break;  // " const", " [clone .cold]"
      text += rest.front();
      if (rest.front() == ' ' && !text.ends_with("operator ")) type_end = text.size();
    }
  }
  return text.substr(type_end);
}

std::string memory_text(std::uint32_t kind, std::optional<std::uint32_t> device) {
  constexpr const char* names[] = {"unknown", "pageable", "pinned", "device",
                                   "array",   "managed",  "static", "managed static"};
  constexpr std::uint32_t plain = 3, array = 4, fixed = 6;
  std::string name = kind < std::size(names) ? names[kind] : fmt::format("memory {}", kind);
  if (!device || (kind != plain && kind != array && kind != fixed)) return name;
  return kind == plain ? fmt::format("GPU {}", *device) : fmt::format("GPU {} {}", *device, name);
}

std::string copy_name(std::uint32_t kind) {
  constexpr const char* names[] = {"Memcpy",      "Memcpy HtoD", "Memcpy DtoH", "Memcpy HtoA",
                                   "Memcpy AtoH", "Memcpy AtoA", "Memcpy AtoD", "Memcpy DtoA",
                                   "Memcpy DtoD", "Memcpy HtoH", "Memcpy PtoP"};
  return kind < std::size(names) ? names[kind] : names[0];
}

std::string overhead_name(std::uint32_t kind) {
  constexpr const char* names[] = {"",
                                   "CUPTI buffer flush",
                                   "CUPTI instrumentation",
                                   "CUPTI resources",
                                   "module loading",
                                   "function loading",
                                   "command buffer full",
                                   "CUPTI buffer request",
                                   "CUPTI unified memory"};
  if (kind == 1) return "driver compiler";
  return kind >> 16 > 0 && kind >> 16 < std::size(names) ? names[kind >> 16] : fmt::format("overhead {}", kind);
}

bool waits(std::string_view function) { return function.find("Synchronize") != std::string_view::npos; }

}  // namespace paceline::analysis
