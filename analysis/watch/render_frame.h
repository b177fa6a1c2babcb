// SPDX-License-Identifier: Apache-2.0
// A frame of `paceline watch` as lines of text and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/watch/watch_frame.h"

namespace paceline::analysis {

struct FrameLine {
  enum class Style : std::uint8_t { plain, heading, warning, faint };
  std::string text;  // no control characters, whatever the traces contain
  Style style = Style::plain;
};

// At most `height` lines of at most `width` columns, with one line for each rank from index `first_rank` on. Ranks that
// do not fit are counted in the last line. A height of 0 means all ranks.
std::vector<FrameLine> render_frame(const WatchFrame& frame, std::size_t width, std::size_t height,
                                    std::size_t first_rank = 0);

// The job in one line, for logs: "iteration 411: step 128.3 ms, …".
std::string frame_summary(const WatchFrame& frame);

// The last line when the job has ended.
std::string closing_line(const WatchFrame& frame);

// One JSON object on one line, schema paceline.watch/1; docs/analyse.md describes its keys.
std::string frame_json(const WatchFrame& frame);

}  // namespace paceline::analysis
