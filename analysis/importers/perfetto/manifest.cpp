// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/perfetto/manifest.h"

#include <algorithm>
#include <optional>

#include "analysis/importers/flight_recorder/values.h"

namespace paceline::analysis::perfetto {
namespace perfetto_manifest {

using Json = flight_recorder::Value;

constexpr std::int64_t most_ns = 1'000'000'000'000'000'000;  // of an offset; 30 years

bool is_since_boot(const Json& clock) {
  const std::string_view name = clock.text_at("clock");
  return name.empty() || name == "BOOTTIME";
}

class Entries {
 public:
  explicit Entries(const Json& list) {
    for (const Json* entry : list.items) by_path_.try_emplace(entry->text_at("path"), entry);
  }

  // The name of a member of an archive ends with its path in the manifest.
  const Json* of(std::string_view file) const {
    const auto found = std::ranges::find_if(by_path_, [&](const auto& entry) {
      return file.ends_with(entry.first) &&
             (file.size() == entry.first.size() || file[file.size() - entry.first.size() - 1] == '/');
    });
    return found == by_path_.end() ? nullptr : found->second;
  }

  // From the clock of a file to that of the machine that its references lead to.
  struct Placed {
    std::string_view machine;
    std::int64_t offset_ns = 0;
  };
  std::optional<Placed> place(const Json* entry) const {
    std::int64_t offset_ns = 0;
    for (std::size_t steps = 0; entry != nullptr && steps <= by_path_.size(); ++steps) {
      const Json* const clocks = entry->find("clocks");
      if (clocks == nullptr) {
        const Json* const machine = entry->find("machine");
        return Placed{machine == nullptr ? "" : machine->text_at("name"), offset_ns};
      }
      const Json* const reference = clocks->find("sync_to");
      if (reference == nullptr || !is_since_boot(*clocks) || !is_since_boot(*reference)) return std::nullopt;
      offset_ns += std::clamp(clocks->whole_at("offset_ns").value_or(0), -most_ns, most_ns);
      if (offset_ns < -most_ns || offset_ns > most_ns) return std::nullopt;
      const auto next = by_path_.find(reference->text_at("file"));
      entry = next == by_path_.end() ? nullptr : next->second;
    }
    return std::nullopt;
  }

 private:
  std::map<std::string_view, const Json*> by_path_;
};

}  // namespace perfetto_manifest

bool is_manifest(std::string_view begin) {
  for (const std::string_view token : {"{", "\"perfetto_manifest\""}) {
    begin.remove_prefix(std::min(begin.find_first_not_of(" \t\r\n"), begin.size()));
    if (!begin.starts_with(token)) return false;
    begin.remove_prefix(token.size());
  }
  return true;
}

std::map<std::string, std::int64_t> clock_offsets(std::string_view manifest, std::span<const TraceFile> files) {
  using namespace perfetto_manifest;
  flight_recorder::Values values;
  const Json* const content = flight_recorder::decode_json(manifest, values).find("perfetto_manifest");
  const Json* const list = content == nullptr ? nullptr : content->find("files");
  if (list == nullptr) return {};
  const Entries entries(*list);
  std::map<std::string, std::int64_t> offsets;
  std::optional<std::string_view> machine;
  for (const TraceFile& file : files) {
    const auto placed = entries.place(entries.of(file.name));
    if (!placed || machine.value_or(placed->machine) != placed->machine) return {};
    machine = placed->machine;
    offsets[file.name] = placed->offset_ns;
  }
  return offsets;
}

}  // namespace paceline::analysis::perfetto
