// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/slice_sums.h"

#include <map>
#include <utility>

#include "analysis/statistics/sum.h"
#include "analysis/trace/intervals.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace slice_sums {

class Adder {
 public:
  explicit Adder(const Run& run) : run_(run) {}

  void add(const SliceRef& ref, analysis::KindId kind, std::int64_t ns) {
    Group& group = groups_[kind];
    for (SliceSum* sum : {&group.sum, &sums_.all}) {
      ++sum->count;
      analysis::add_to_sum(sum->total_ns, ns);
      if (ns > sum->longest_ns) sum->longest_ns = ns, sum->longest = ref;
    }
    if (sums_.all.count > SliceSums::most_covered) return;
    const std::int64_t start = slices_of(run_, ref).start_ns[ref.slice];
    group.times.push_back({start, start + ns});
  }

  SliceSums finish() {
    const bool covers = sums_.all.count <= SliceSums::most_covered;
    analysis::Intervals all;
    for (auto& [kind, group] : groups_) {
      if (covers) {
        const analysis::Intervals times = analysis::merged(std::move(group.times));
        group.sum.covered_ns = analysis::total_ns(times);
        all.insert(all.end(), times.begin(), times.end());
      }
      sums_.kinds.emplace_back(kind, group.sum);
    }
    if (covers) sums_.all.covered_ns = analysis::total_ns(analysis::merged(std::move(all)));
    std::ranges::stable_sort(sums_.kinds, std::ranges::greater{}, [](const auto& one) { return one.second.total_ns; });
    return std::move(sums_);
  }

 private:
  struct Group {
    SliceSum sum;
    analysis::Intervals times;
  };

  const Run& run_;
  std::map<analysis::KindId, Group> groups_;
  SliceSums sums_;
};

}  // namespace slice_sums

SliceSums sum_kinds(const Run& run, std::span<const SliceRef> slices) {
  slice_sums::Adder adder(run);
  for (const SliceRef& ref : slices) {
    const analysis::Slices& of = slices_of(run, ref);
    adder.add(ref, of.kind[ref.slice], of.duration_ns[ref.slice]);
  }
  return adder.finish();
}

SliceSum sum_of(const Run& run, std::span<const SliceRef> slices) { return sum_kinds(run, slices).all; }

SliceSums sum_kinds(const Run& run, const Part& part, const Ticket& ticket) {
  slice_sums::Adder adder(run);
  each_slice_in(run, part, ticket,
                [&](const SliceRef& ref, analysis::KindId kind, std::int64_t ns) { adder.add(ref, kind, ns); });
  return adder.finish();
}

QString sum_text(const SliceSum& sum) {
  QString text =
      QString("%1 selected: %2 in total").arg(plural_text(sum.count, "slice", "slices"), duration_text(sum.total_ns));
  if (sum.covered_ns) text += QString(", %1 covered").arg(duration_text(*sum.covered_ns));
  return text;
}

}  // namespace paceline::viewer
