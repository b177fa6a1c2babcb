// SPDX-License-Identifier: Apache-2.0
// What happens to a full chunk whose events are wanted, and what if the disk does not take them.
#pragma once

#include <cstdint>

namespace paceline::inject {

// For each file.
void start_chunk_store();

// Prints one line in a recording: events are lost, because the disk does not take them.
void report_lost_events(int error);

// Writes the chunk, as write_chunk_from(), and frees it. Events that the disk does not take are counted, and one
// message reports them. When the file has reached its largest size, recording ends and the chunk stays in the live
// area.
void store_chunk(std::uint32_t number, std::uint64_t first_ticks = 0);

}  // namespace paceline::inject
