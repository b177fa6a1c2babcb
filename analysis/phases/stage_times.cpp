// SPDX-License-Identifier: Apache-2.0
#include "analysis/phases/stage_times.h"

namespace paceline::analysis {
namespace stage_ranges {

// Reads the ranges `stage` and what was computed in them.
class Reader {
 public:
  explicit Reader(const Trace& trace)
      : trace_(trace),
        domain_(trace.names.find("paceline.trainer")),
        stage_(trace.names.find("stage")),
        forward_(trace.names.find("forward")),
        backward_(trace.names.find("backward")) {}

  std::vector<StageIteration> read(const Slices& slices, const std::vector<Iteration>& iterations) const {
    std::vector<StageIteration> found;
    if (domain_ == 0 || stage_ == 0) return found;
    auto around = iterations.begin();
    for (std::size_t i = 0; i < slices.size(); ++i) {
      const Kind& kind = trace_.kinds[slices.kind[i]];
      if (kind.domain != domain_) continue;
      const std::int64_t start = slices.start_ns[i], end = slices.end_ns(i);
      if (kind.category == stage_) {
        while (around != iterations.end() && around->start_ns + around->duration_ns < end) ++around;
        if (around == iterations.end()) break;
        if (around->start_ns > start || !around->finished) continue;
        found.push_back({around->number, slices.duration_ns[i], 0, start, end});
      } else if ((kind.category == forward_ || kind.category == backward_) && !found.empty() &&
                 end <= found.back().end_ns) {
        found.back().busy_ns += slices.duration_ns[i];
      }
    }
    return found;
  }

 private:
  const Trace& trace_;
  const NameId domain_, stage_, forward_, backward_;
};

std::vector<NetworkPart> parts(const Trace& trace, const Slices& marks) {
  std::vector<NetworkPart> found;
  const NameId domain = trace.names.find("paceline.trainer"), part = trace.names.find("part"),
               payload = trace.names.find("payload");
  if (domain == 0 || part == 0 || payload == 0) return found;
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const Kind& kind = trace.kind_of(marks, i);
    const auto cost = marks.number(i, payload);
    if (kind.domain == domain && kind.category == part && cost && *cost >= 0) {
      found.push_back({trace.name_of(marks, i), *cost});
    }
  }
  return found;
}

}  // namespace stage_ranges

StageTimes stage_times(const Trace& trace, const Rank& rank, const std::vector<Iteration>& iterations) {
  StageTimes times;
  const Track* const main = main_track(rank);
  if (main == nullptr) return times;
  times.iterations = stage_ranges::Reader(trace).read(main->slices, iterations);
  if (!times.iterations.empty()) times.parts = stage_ranges::parts(trace, main->marks);
  return times;
}

}  // namespace paceline::analysis
