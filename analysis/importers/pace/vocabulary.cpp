#include "analysis/importers/pace/vocabulary.h"

#include <fmt/format.h>

#include "profiler/format/mpi_functions.h"

namespace paceline::analysis {
namespace {

constexpr std::string_view category_of(format::MpiKind kind) {
  switch (kind) {
    case format::MpiKind::management:
      return "management";
    case format::MpiKind::point_to_point:
      return "point-to-point";
    case format::MpiKind::wait:
      return "wait";
    case format::MpiKind::collective:
      return "collective";
    case format::MpiKind::one_sided:
      return "one-sided";
    case format::MpiKind::file:
      return "file";
  }
  return "";
}

}  // namespace

PaceVocabulary::PaceVocabulary(TraceBuilder& run)
    : run_(run),
      payload(run.names().intern("payload")),
      bytes(run.names().intern("bytes")),
      communicator(run.names().intern("communicator")),
      sequence(run.names().intern("sequence")),
      members(run.names().intern("members")),
      root(run.names().intern("root")),
      peer(run.names().intern("peer")),
      tag(run.names().intern("tag")),
      request(run.names().intern("request")),
      file(run.names().intern("file")),
      offset(run.names().intern("offset")),
      window(run.names().intern("window")),
      unfinished(run.names().intern("unfinished")) {
  for (const format::MpiFunction& function : format::mpi_functions) {
    const auto id = static_cast<std::size_t>(function.id);
    if (mpi_.size() <= id) mpi_.resize(id + 1);
    mpi_[id] = {run.names().intern(function.name), run.class_of("mpi", category_of(function.kind))};
  }
}

PaceVocabulary::MpiCall PaceVocabulary::mpi(std::uint32_t function) {
  if (mpi_.size() <= function) mpi_.resize(function + 1);
  MpiCall& call = mpi_[function];
  if (call.name == 0) call = {run_.names().intern(fmt::format("MPI function {}", function)), run_.class_of("mpi", "")};
  return call;
}

NameId PaceVocabulary::communicator_text(std::uint64_t identity, std::string_view name) {
  NameId& text = communicators_[identity];
  if (text == 0) {
    const bool free = !name.empty() && communicator_names_.insert(std::string(name)).second;
    text = run_.names().intern(free ? std::string(name)
                                    : fmt::format("{}{}{:016x}", name, name.empty() ? "" : " ", identity));
  }
  return text;
}

}  // namespace paceline::analysis
