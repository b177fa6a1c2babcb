// SPDX-License-Identifier: Apache-2.0
// Writes a run in the format of another tool.
//
// To add a format, write one file that defines an Exporter, and add its line to exporters.def.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "analysis/exporters/selection.h"
#include "analysis/trace/progress.h"
#include "analysis/trace/slice_id.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// A run, the part of it that is exported, and how far the export has come.
class ExportJob {
 public:
  // The trace must outlive the job.
  explicit ExportJob(const Trace& trace, const Selection& selection = {}, Progress progress = {});
  ExportJob(const ExportJob&) = delete;
  ExportJob& operator=(const ExportJob&) = delete;

  const Trace& trace() const { return trace_; }
  const Selection& selection() const { return selection_; }
  // The ranks that are selected.
  const std::vector<const Rank*>& ranks() const { return ranks_; }
  // The number of the rank's first track among all tracks of the run (slice_id.h).
  TrackNumber first_track(const Rank& rank) const {
    return first_track_[static_cast<std::size_t>(&rank - trace_.ranks.data())];
  }

  // Calls visit(SelectedSlice) for each selected slice or mark, in the order of their starts. Throws Error where the
  // export is to stop. Cost: linear in those that start before the window's end.
  template <class Visit>
  void each(const Slices& slices, Visit&& visit) const {
    const std::uint32_t end = selection_.end_of(slices);
    for (std::uint32_t i = 0; i < end; ++i) {
      if (const auto selected = selection_.slice(slices, i)) visit(*selected);
      if ((i + 1) % stride == 0) done(stride);
    }
    done(slices.size() - end / stride * stride);
  }

  // Counts slices that are exported by other ways. Throws Error where the export is to stop.
  void done(std::uint64_t slices) const;

  // The UTC time of the run's zero in ns since 1970, by the clock of the first rank that has one.
  std::optional<std::int64_t> utc_of_zero_ns() const;

  // No time of the export is earlier. Formats whose times are unsigned move all times by -min(this, 0).
  std::int64_t earliest_ns() const;

 private:
  static constexpr std::uint32_t stride = 1 << 16;

  const Trace& trace_;
  const Selection selection_;
  const Progress progress_;
  std::vector<const Rank*> ranks_;
  std::vector<TrackNumber> first_track_;  // by rank of the trace
  mutable std::unique_ptr<ProgressCounter> counter_;
};

// "rank 3 (node17)", or "rank 3" where the host is not known.
std::string process_name(const Rank& rank);

struct Exporter {
  enum class Target { stream, file, folder };

  std::string_view name;  // as in --to
  std::string_view what;  // for the help
  Target target = Target::stream;
  // Writes to the open file. Throws Error where it takes no more. Of Target::stream.
  void (*write)(const ExportJob& job, std::FILE* out) = nullptr;
  // Makes the file or folder, which does not exist yet. Throws Error; the caller then removes what there is of it.
  // Of the other targets.
  void (*make)(const ExportJob& job, const std::filesystem::path& path) = nullptr;
};

#define PACELINE_EXPORTER(name) extern const Exporter name##_exporter;
#include "analysis/exporters/exporters.def"
#undef PACELINE_EXPORTER

// The table of formats.
std::span<const Exporter* const> exporters();

}  // namespace paceline::analysis
