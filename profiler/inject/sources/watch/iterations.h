// Iterations while they happen: which ranges they are, how many there were, how long each took. Looked for only where
// something needs them (--iterations, --ring-slow, --hang); then they are followed even while recording is off.
//
// They are the outermost ranges that the rules (format/iteration_rules.h) or --iteration-name take for one, on the
// thread that first has such a range, counted from 0.
#pragma once

#include <cstdint>
#include <string_view>

#include "profiler/inject/core/writer.h"

namespace paceline::inject {

// Before the file is opened.
void start_iterations();

// True where ranges are to be shown to the functions below. One relaxed load.
inline bool watching() { return gate.watch.load(std::memory_order_relaxed) != 0; }

// Before a push or start is recorded, and after a pop or end was. `scope` as in the event. They may turn recording on
// and off.
void watch_push(std::uint64_t scope);
void watch_pop(std::uint16_t domain);
void watch_start(std::uint64_t scope, std::uint64_t range);
void watch_end(std::uint64_t range);

// Definitions: called before the first range can have this name or category.
void note_name(std::uint32_t id, std::string_view text);
void note_category(std::uint16_t domain, std::uint16_t category, std::string_view text);

// A child has no iterations yet.
void reset_iterations_in_child();

}  // namespace paceline::inject
