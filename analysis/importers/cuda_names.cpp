// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/cuda_names.h"

#include <cxxabi.h>
#include <fmt/format.h>

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
