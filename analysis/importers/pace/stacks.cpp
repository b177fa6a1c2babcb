// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/pace/stacks.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/importers/cuda_names.h"

namespace paceline::analysis {

StackId PaceStacks::stack(std::uint32_t number) const {
  const auto known = stacks_.find(number);
  return known == stacks_.end() ? 0 : known->second;
}

void PaceStacks::define(const format::Slot& head) {
  const auto event = format::unpack<format::events::Stack>(&head);
  Stacks& all = context_.rank.stacks();
  auto& names = context_.rank.names();
  const NameId function = names.intern(short_function(names[context_.name(event.function)]));
  const FrameId frame = all.frame({function, context_.name(event.file), event.line});
  stacks_[event.stack] = all.stack(stack(event.caller), frame);
}

void PaceStacks::sample(const format::Slot& head) {
  const auto event = format::unpack<format::events::StackSample>(&head);
  samples_[event.thread_id].push_back({ticks_of(head), event.period_ns, stack(event.stack)});
}

void PaceStacks::add_samples(const std::string& process) {
  for (auto& [thread, samples] : samples_) {
    TrackBuilder*& track = tracks_[thread];
    if (track == nullptr) {
      track = &context_.rank.add_track(TrackKind::thread, fmt::format("{}thread {}", process, thread), thread);
    }
    std::ranges::stable_sort(samples, {}, &Sample::ticks);
    for (const Sample& sample : samples) track->add_stack_sample(context_.time(sample.ticks), sample.stack);
    std::ranges::sort(samples, {}, &Sample::period_ns);
    track->set_sample_period(static_cast<std::int64_t>(samples[samples.size() / 2].period_ns));
  }
}

}  // namespace paceline::analysis
