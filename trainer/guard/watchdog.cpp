// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "trainer/core/ranges.h"
#include "trainer/guard/interrupt.h"

namespace paceline::train {
namespace {

// A loader that has had no image for this long after the job was asked to stop is taken as stuck.
std::chrono::milliseconds grace_of_loaders() {
  const char* of_tests = std::getenv("PACELINE_TEST_GRACE_MS");
  return std::chrono::milliseconds(of_tests != nullptr ? std::atoi(of_tests) : 5000);
}

constexpr std::chrono::milliseconds between_looks(100);

std::int32_t milliseconds_since(SteadyClock::time_point then) {
  const auto time = std::chrono::duration_cast<std::chrono::milliseconds>(SteadyClock::now() - then).count();
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(time, 0, 1'000'000'000));
}

bool stuck_in_loader(const RankState& state) { return state.images_ms >= grace_of_loaders().count(); }

std::string doing(const RankState& state) {
  if (state.waits_ms >= 0) return "is waiting in an earlier collective call";
  if (state.images_ms >= 0) return fmt::format("has waited for images for {:.0f} s", state.images_ms * 1e-3);
  if (state.saving != 0)
    return fmt::format("has been writing a checkpoint for {:.0f} s", state.since_collective_ms * 1e-3);
  return fmt::format("has computed for {:.0f} s", state.since_collective_ms * 1e-3);
}

}  // namespace

std::string missing_ranks(const char* collective, double seconds, int rank,
                          const std::vector<std::optional<RankState>>& states, const std::vector<std::string>& hosts) {
  const RankState own = *states[static_cast<std::size_t>(rank)];
  constexpr std::size_t most_named = 4;
  std::string names;
  std::size_t missing = 0;
  for (std::size_t other = 0; other < states.size(); ++other) {
    const std::optional<RankState>& state = states[other];
    const bool came = state && state->waits_ms >= 0 && state->collectives >= own.collectives;
    if (came || ++missing > most_named) continue;
    const std::string what = !state ? "does not answer: its process is stopped or its host is gone"
                                    : fmt::format("{} in iteration {}", doing(*state), state->iteration);
    names += fmt::format("{}rank {} on {}, which {}", names.empty() ? "" : "; ", other, hosts[other], what);
  }
  if (missing == 0) {
    return fmt::format(
        "an MPI {} has taken {:.0f} s although all ranks have called it: check the network and the MPI library, or "
        "raise "
        "‹comm-timeout›",
        collective, seconds);
  }
  if (missing > most_named) names += fmt::format("; and {} ranks more", missing - most_named);
  return fmt::format("an MPI {} of iteration {} has waited {:.0f} s for {} (‹comm-timeout›)", collective, own.iteration,
                     seconds, names);
}

Watchdog::Watchdog(Collectives& collectives, const Activity& activity, double limit_s, End end)
    : rank_(collectives.rank()),
      activity_(activity),
      limit_(limit_s),
      end_(std::move(end)),
      states_(collectives),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  stop_ = true;
  states_.wake();
  thread_.join();
}

void Watchdog::run() {
  name_this_thread("watchdog");
  while (!stop_) {
    states_.serve([this] { return own_state(); }, between_looks);
    if (stop_) return;
    look_for_stuck_loader();
    look_for_missing_rank();
  }
}

RankState Watchdog::own_state() {
  RankState state;
  state.iteration = activity_.iteration;
  state.collectives = activity_.collectives;
  state.saving = activity_.saving ? 1 : 0;
  // Read before the time. The other thread stores them the other way round, so the time is not that of an earlier call.
  const bool in_collective = activity_.collective != nullptr;
  const SteadyClock::time_point changed{SteadyClock::duration(activity_.changed)};
  if (in_collective) {
    state.waits_ms = milliseconds_since(changed);
  } else {
    state.since_collective_ms = milliseconds_since(changed);
  }
  const std::uint64_t images = activity_.images.prepared;
  if (!activity_.images.waiting || images != images_) image_came_ = SteadyClock::now();
  images_ = images;
  if (activity_.images.waiting) state.images_ms = milliseconds_since(image_came_);
  return state;
}

void Watchdog::look_for_stuck_loader() {
  const RankState own = own_state();  // called in any case, because it records when the last image was ready
  if (interrupt_received() == 0) return;
  if (!interrupted_) interrupted_ = SteadyClock::now();
  const std::chrono::milliseconds grace = grace_of_loaders();
  if (SteadyClock::now() - *interrupted_ < grace) return;
  if (stuck_in_loader(own)) {
    const ImageSource* source = activity_.images.source;
    const std::string name = source == nullptr ? "" : source->name_of(activity_.images.sample);
    end_(
        fmt::format("interrupted in iteration {} while its loader has had no image for {:.0f} s{}{}: stopped without a "
                    "checkpoint of this iteration",
                    own.iteration, own.images_ms * 1e-3, name.empty() ? "" : "; it last began to read ", name));
  }
  // A rank that waits in a collective call has to ask why the others are missing.
  if (own.waits_ms < grace.count()) return;
  if (asked_ && SteadyClock::now() - *asked_ < grace) return;
  const auto states = states_.ask([this] { return own_state(); }, std::chrono::seconds(1));
  asked_ = SteadyClock::now();
  for (std::size_t other = 0; other < states.size(); ++other) {
    if (!states[other] || !stuck_in_loader(*states[other])) continue;
    end_(
        fmt::format("interrupted in iteration {} while the loader of rank {} on {} has had no image for {:.0f} s: "
                    "stopped without a checkpoint of this iteration",
                    own.iteration, other, states_.host(static_cast<int>(other)), states[other]->images_ms * 1e-3));
  }
}

void Watchdog::look_for_missing_rank() {
  const double waited = own_state().waits_ms * 1e-3;
  if (waited < limit_.count()) return;
  const auto states = states_.ask([this] { return own_state(); }, std::chrono::seconds(2));
  const RankState own = own_state();
  if (own.waits_ms * 1e-3 < limit_.count()) return;  // the missing rank has arrived; this may be the next call already
  // Only one rank reports: the first of those that wait. The others report if it has not done so within 10 s.
  const bool another_speaks = std::any_of(states.begin(), states.begin() + rank_,
                                          [](const auto& state) { return state && state->waits_ms >= 0; });
  if (another_speaks && waited < limit_.count() + 10) return;
  const char* collective = activity_.collective;
  if (collective == nullptr) return;
  std::vector<std::string> hosts;
  for (std::size_t other = 0; other < states.size(); ++other) hosts.push_back(states_.host(static_cast<int>(other)));
  end_(missing_ranks(collective, waited, rank_, states, hosts));
}

}  // namespace paceline::train
