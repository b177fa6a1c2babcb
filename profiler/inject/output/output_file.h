// SPDX-License-Identifier: Apache-2.0
// The .pace file: how it is created, how blocks are appended, and how it is compacted at the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "profiler/inject/buffer/mapped_file.h"
#include "profiler/inject/output/file_header.h"

namespace paceline::inject {

// Creates the file that the environment describes (record/environment.h) and maps it. Only the header and the first
// `units_at_start` units of the live area have space on the disk. On failure it reports the reason in one line, leaves
// no file and returns false.
bool create_output(MappedFile& file, std::uint32_t units_at_start, const FileStart& start);

// Appends a block and moves blocks_end. Returns false if the disk did not take it; the file is then unchanged. errno is
// EFBIG if the file has its largest size (--max-size), and ESTALE if another program has truncated it.
bool append_block(MappedFile& file, std::span<const std::byte> block);

// Updates the modification times of the file and of the job's marker, and takes the file's lock again. From these,
// other processes know that this one is still running (format/liveness.h). Writes to the mapping do not always update
// the times. Returns the number of seconds after which this is due again.
int renew_output(MappedFile& file);

// Closes the file. If all events are in blocks, a copy without the live area replaces the file. The copy lies in the
// output directory even if the file was staged. If the copy fails, the file is closed as it is, where it is. A file
// that was removed or truncated meanwhile stays as it is, and one line reports that. `quickly`: a long file is not
// copied and keeps an empty live area.
void close_output(MappedFile& file, bool all_written, bool quickly = false);

}  // namespace paceline::inject
