// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/nsys/capture.h"

#include <fmt/format.h>

#include <charconv>
#include <initializer_list>

#include "analysis/importers/sqlite/process_tracks.h"

namespace paceline::analysis {
namespace nsys_capture {

std::optional<int> whole_number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<int> first_of(std::string_view environment, std::initializer_list<std::string_view> variables) {
  for (const std::string_view variable : variables) {
    const auto value = environment_value(environment, variable);
    if (!value) continue;
    if (const auto number = whole_number(*value)) return number;
  }
  return std::nullopt;
}

}  // namespace nsys_capture

NsysCapture::NsysCapture(Database& database)
    : database_(database), lookup_(database.rows("StringIds", {"value"}, "WHERE id = ?")) {
  read_host();
  read_processes();
  read_nvtx_names();
}

std::string_view NsysCapture::string(std::int64_t id) {
  lookup_.bind(id);
  found_ = lookup_.next() ? lookup_.text(0) : std::string_view();
  return found_;
}

std::string_view NsysCapture::text_or_string(const Rows& row, int text, int id) {
  if (!row.is_null(text)) return row.text(text);
  return row.is_null(id) ? std::string_view() : string(row.integer(id));
}

void NsysCapture::read_host() {
  for (Rows row = database_.rows("TARGET_INFO_SESSION_START_TIME", {"utcEpochNs"}); row.next();) {
    if (!row.is_null(0) && row.integer(0) > 0 && is_usable_time(row.integer(0))) utc_of_zero_ns = row.integer(0);
  }
  for (Rows row = database_.rows("TARGET_INFO_SYSTEM_ENV", {"name", "value"}); row.next();) {
    const std::string_view name = row.text(0);
    if (name == "Hostname") host = row.text(1);
    if (name == "CpuDescription") facts["cpu_model"] = row.text(1);
    if (name == "DeviceEnvironment") read_environment(row.text(1));
  }
  for (Rows row = database_.rows("META_DATA_CAPTURE", {"value"}); row.next();) read_environment(row.text(0));
  for (Rows row = database_.rows("TARGET_INFO_GPU", {"id", "name"}); row.next();) {
    facts[fmt::format("gpu.{}", row.integer(0))] = row.text(1);
  }
  for (const char* table : {"META_DATA_EXPORT", "EXPORT_META_DATA"}) {
    for (Rows row = database_.rows(table, {"name", "value"}); row.next();) {
      if (row.text(0) == "EXPORT_PRODUCT_VERSION") version = row.text(1);
    }
  }
}

void NsysCapture::read_environment(std::string_view text) {
  if (!environment_rank) {
    environment_rank =
        nsys_capture::first_of(text, {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"});
  }
  if (!environment_size) {
    environment_size = nsys_capture::first_of(text, {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS", "WORLD_SIZE"});
  }
}

// Nsight Systems names threads after their MPI rank, also where it has no table of ranks.
void NsysCapture::name_thread(std::int64_t global_thread, std::string_view name) {
  constexpr std::string_view of_rank = "MPI Rank ";
  thread_names[global_thread] = name;
  if (!name.starts_with(of_rank)) return;
  if (const auto rank = nsys_capture::whole_number(name.substr(of_rank.size()))) {
    ranks.try_emplace(nsys_process(global_thread), *rank);
  }
}

void NsysCapture::read_processes() {
  for (Rows row = database_.rows("PROCESSES", {"globalPid", "name"}); row.next();) {
    if (!row.is_null(0)) process_names[nsys_process(row.integer(0))] = row.text(1);
  }
  for (Rows row = database_.rows("MPI_RANKS", {"globalTid", "rank"}); row.next();) {
    const std::int64_t rank = row.integer(1);
    if (rank >= 0 && rank <= 0x7fff'ffff) ranks.try_emplace(nsys_process(row.integer(0)), static_cast<int>(rank));
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> named;
  for (Rows row = database_.rows("ThreadNames", {"globalTid", "nameId"}); row.next();) {
    named.emplace_back(row.integer(0), row.integer(1));
  }
  for (const auto& [thread, name] : named) name_thread(thread, string(name));
}

void NsysCapture::read_nvtx_names() {
  if (!database_.has("NVTX_EVENTS", "eventType")) return;
  const std::string names_only = fmt::format("WHERE eventType IN ({}, {}, {})", int(NsysEvent::nvtx_category),
                                             int(NsysEvent::nvtx_thread), int(NsysEvent::nvtx_domain));
  for (Rows row = database_.rows("NVTX_EVENTS", {"eventType", "globalTid", "domainId", "category", "text", "textId"},
                                 names_only);
       row.next();) {
    const std::int64_t thread = row.integer(1), process = nsys_process(thread), domain = row.integer(2);
    const std::string_view text = text_or_string(row, 4, 5);
    switch (static_cast<NsysEvent>(row.integer(0))) {
      case NsysEvent::nvtx_category:
        nvtx_categories[{process, domain, row.integer(3)}] = text;
        break;
      case NsysEvent::nvtx_thread:
        name_thread(thread, text);
        break;
      default:
        nvtx_domains[{process, domain}] = text;
        break;
    }
  }
}

}  // namespace paceline::analysis
