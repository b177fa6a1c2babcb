#include "analysis/trace/trace.h"

#include <algorithm>
#include <limits>

#include "profiler/format/error.h"

namespace paceline::analysis {

std::int64_t Rank::recorded_ns() const {
  std::int64_t ns = end_ns - start_ns;
  for (const Gap& gap : gaps) ns -= gap.end_ns - gap.start_ns;
  return ns;
}

std::int64_t Trace::span_ns() const {
  std::int64_t end = 0;
  for (const Rank& rank : ranks) end = std::max(end, rank.end_ns);
  return end;
}

std::uint16_t Trace::class_of(std::string_view domain, std::string_view category) {
  if (classes.empty()) classes.push_back({});
  const SliceClass wanted{names.intern(domain), names.intern(category)};
  const auto found = std::find(classes.begin(), classes.end(), wanted);
  if (found == classes.end()) {
    if (classes.size() > std::numeric_limits<std::uint16_t>::max()) {
      throw Error("more than 65,536 pairs of NVTX domain and category: this is not a trace that can be read as ranges");
    }
    classes.push_back(wanted);
    return static_cast<std::uint16_t>(classes.size() - 1);
  }
  return static_cast<std::uint16_t>(found - classes.begin());
}

std::vector<LostInterval> merged_losses(std::vector<LostInterval> losses) {
  std::ranges::stable_sort(losses, {}, &LostInterval::start_ns);
  std::vector<LostInterval> merged;
  for (LostInterval& loss : losses) {
    if (merged.empty() || loss.start_ns > merged.back().end_ns) {
      merged.push_back(std::move(loss));
      continue;
    }
    LostInterval& into = merged.back();
    into.end_ns = std::max(into.end_ns, loss.end_ns);
    into.events += loss.events;
    if (into.cause.empty()) into.cause = loss.cause;
  }
  return merged;
}

std::vector<LostInterval> main_thread_losses(const Rank& rank) {
  std::vector<LostInterval> losses = rank.lost;
  if (const Track* main = main_track(rank)) losses.insert(losses.end(), main->lost.begin(), main->lost.end());
  return merged_losses(std::move(losses));
}

const Track* main_track(const Rank& rank) {
  const auto found =
      std::find_if(rank.tracks.begin(), rank.tracks.end(), [](const Track& track) { return track.main; });
  return found == rank.tracks.end() ? nullptr : &*found;
}

std::span<const Argument> arguments_of(const std::vector<Argument>& arguments, std::uint32_t slice) {
  const auto range = std::ranges::equal_range(arguments, slice, {}, &Argument::slice);
  return {range.begin(), range.end()};
}

const Argument* find_argument(const std::vector<Argument>& arguments, std::uint32_t slice, NameId key) {
  for (const Argument& candidate : arguments_of(arguments, slice)) {
    if (candidate.key == key) return &candidate;
  }
  return nullptr;
}

std::optional<double> argument(const std::vector<Argument>& arguments, std::uint32_t slice, NameId key) {
  const Argument* found = find_argument(arguments, slice, key);
  if (found == nullptr || found->text != 0) return std::nullopt;
  return found->number;
}

}  // namespace paceline::analysis
