// SPDX-License-Identifier: Apache-2.0
// Ranges and marks of a script: NVTX events of the domain "torch", as a program in C would make them. What the
// arguments mean: table.h.
#pragma once

#include <cstdint>

namespace paceline::inject {

// Opens the trace file if nothing has opened it yet. Returns false if this process is not recorded; then the other
// functions do nothing.
bool open_for_script();
std::uint64_t kind_of(const char* name, const char* category);
[[gnu::hot]] void push_kind(std::uint64_t kind);
[[gnu::hot]] void push_number(std::uint64_t kind, std::int64_t number);
[[gnu::hot]] void pop_kind();

// Ranges of the domain "script", which the script names itself. They have no category, so reports assign phases to them
// by their names, as to any NVTX range.
std::uint64_t own_kind(const char* name);
[[gnu::hot]] void push_own(std::uint64_t kind);
[[gnu::hot]] void push_own_number(std::uint64_t kind, std::int64_t number);
[[gnu::hot]] void pop_own();

// The script's library for communication gave this process a rank.
void note_rank(std::int32_t rank, std::int32_t ranks);

void mark_kind(std::uint64_t kind);
void mark_value(std::uint64_t kind, double value);

void push_collective(std::uint64_t kind, std::uint64_t communicator, std::uint64_t bytes, std::uint64_t sequence,
                     std::uint64_t members);
std::uint64_t start_collective(std::uint64_t kind, std::uint64_t communicator, std::uint64_t bytes,
                               std::uint64_t sequence, std::uint64_t members, std::uint64_t request);
std::uint64_t start_message(std::uint64_t kind, std::uint64_t communicator, std::uint64_t bytes, std::int64_t peer,
                            std::int64_t tag, std::uint64_t request);
void end_range(std::uint64_t range);
void push_wait(std::uint64_t kind, std::uint64_t first, std::uint64_t last);

}  // namespace paceline::inject
