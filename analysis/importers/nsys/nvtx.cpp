// SPDX-License-Identifier: Apache-2.0
// NVTX in a Nsight Systems export. Ranges of the domain "MPI" are MPI calls, which old versions record in this way.
#include <fmt/format.h>

#include "analysis/importers/mpi_names.h"
#include "analysis/importers/nsys/import.h"

namespace paceline::analysis {
namespace nsys_nvtx {

enum Column {
  start,
  end,
  type,
  thread,
  domain,
  category,
  text,
  text_id,
  first_payload,  // uint64Value, int64Value, doubleValue, uint32Value, int32Value, floatValue
  json = first_payload + 6,
  json_id,
};

std::optional<Argument> payload(const Rows& row, NameId key) {
  constexpr int real_1 = 2, real_2 = 5;
  for (int i = 0; i < 6; ++i) {
    const int column = first_payload + i;
    if (row.is_null(column)) continue;
    if (i == real_1 || i == real_2) return make_argument(key, row.real(column));
    if (i == 0) return make_argument(key, static_cast<std::uint64_t>(row.integer(column)));
    return make_argument(key, row.integer(column));
  }
  return std::nullopt;
}

// PyTorch's emit_nvtx() gives each call a name of its own: "aten::add, seq = 7, op_id = 12".
std::string without_numbers(std::string name) {
  for (const std::string_view key : {", op_id = ", ", seq = "}) {
    const std::size_t at = name.find(key);
    if (at == name.npos) continue;
    const std::size_t end = name.find_first_not_of("0123456789", at + key.size());
    name.erase(at, end == name.npos ? end : end - at);
  }
  return name;
}

}  // namespace nsys_nvtx

KindId NsysImport::range_kind(Process& process, std::int64_t global_process, const Rows& row) {
  const std::int64_t domain_number = row.integer(nsys_nvtx::domain);
  const bool plain = row.is_null(nsys_nvtx::text) && !row.is_null(nsys_nvtx::text_id) &&
                     (row.is_null(nsys_nvtx::category) || row.integer(nsys_nvtx::category) == 0);
  const std::pair key(domain_number, row.integer(nsys_nvtx::text_id));
  if (plain) {
    if (const auto known = process.ranges.find(key); known != process.ranges.end()) return known->second;
  }
  const std::string name =
      nsys_nvtx::without_numbers(std::string(capture_.text_or_string(row, nsys_nvtx::text, nsys_nvtx::text_id)));
  const auto domain = capture_.nvtx_domains.find({global_process, domain_number});
  const std::string_view domain_name = domain != capture_.nvtx_domains.end() ? std::string_view(domain->second) : "";
  KindId kind = 0;
  if (domain_name == "MPI" && name.starts_with("MPI_")) {
    kind = process.tracks.rank().kind(name, "mpi", mpi_category(name));
  } else {
    const auto category =
        capture_.nvtx_categories.find({global_process, domain_number, row.integer(nsys_nvtx::category)});
    kind = process.tracks.rank().kind(
        name, domain_name, category != capture_.nvtx_categories.end() ? std::string_view(category->second) : "");
  }
  if (plain) process.ranges[key] = kind;
  return kind;
}

void NsysImport::read_nvtx() {
  const char* table = "NVTX_EVENTS";
  Rows row = database_.rows(
      table, {"start", "end", "eventType", "globalTid", "domainId", "category", "text", "textId", "uint64Value",
              "int64Value", "doubleValue", "uint32Value", "int32Value", "floatValue", "jsonText", "jsonTextId"});
  const bool typed = database_.has(table, "eventType");
  while (row.next()) {
    const auto type = typed ? static_cast<NsysEvent>(row.integer(nsys_nvtx::type)) : NsysEvent::push_pop;
    const bool nests = type == NsysEvent::push_pop || type == NsysEvent::push_pop_of_text;
    const bool crosses = type == NsysEvent::start_end || type == NsysEvent::start_end_of_text;
    if (!nests && !crosses && type != NsysEvent::nvtx_mark) continue;
    std::int64_t start_ns = 0, end_ns = 0;
    if (!read_times(row, table, start_ns, end_ns)) continue;
    const std::int64_t global_process = nsys_process(row.integer(nsys_nvtx::thread));
    const std::uint64_t thread = nsys_tid(row.integer(nsys_nvtx::thread));
    Process* of = process(global_process, false);
    if (of == nullptr) continue;
    RankBuilder& rank = of->tracks.rank();
    const KindId kind = range_kind(*of, global_process, row);
    const Kind names = rank.vocabulary().kinds[kind];
    const std::string& domain = rank.names()[names.domain];
    const auto payload = nsys_nvtx::payload(row, rank.names().intern("payload"));
    ++(domain == "mpi" ? rank.info().mpi_events : rank.info().nvtx_events);
    if (type == NsysEvent::nvtx_mark) {
      TrackBuilder& track = of->tracks.thread(thread);
      const std::uint32_t mark = track.add_mark(start_ns, kind);
      if (payload) track.add_mark_argument(mark, *payload);
      continue;
    }
    const bool ended = !row.is_null(nsys_nvtx::end);
    if (domain == "NCCL") {
      const std::string json(capture_.text_or_string(row, nsys_nvtx::json, nsys_nvtx::json_id));
      of->nccl.add_range(thread, start_ns, end_ns, rank.names()[names.name], json);
    }
    if (crosses && ended) {
      of->tracks.add_range(thread, {start_ns, end_ns, kind, payload});
      continue;
    }
    TrackBuilder& track = crosses ? of->tracks.extra(TrackKind::thread, fmt::format("thread {}, ranges", thread))
                                  : of->tracks.thread(thread);
    const std::uint32_t slice = ended ? track.add_slice(start_ns, end_ns, kind) : track.begin_slice(start_ns, kind);
    if (payload) track.add_argument(slice, *payload);
  }
}

}  // namespace paceline::analysis
