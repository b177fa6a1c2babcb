// SPDX-License-Identifier: Apache-2.0
// Small SQLite databases in temporary files, and short ways to look at the trace that a reader makes of them.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "analysis/importers/reader.h"

namespace paceline::analysis {

class SqliteFile {
 public:
  explicit SqliteFile(const std::string& statements, const std::string& name = "trace.sqlite") {
    static int number = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("paceline-sqlite-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    std::filesystem::create_directories(folder_);
    path_ = folder_ / name;
    sqlite3* database = nullptr;
    EXPECT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    char* error = nullptr;
    EXPECT_EQ(sqlite3_exec(database, statements.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
    sqlite3_free(error);
    sqlite3_close(database);
  }
  ~SqliteFile() { std::filesystem::remove_all(folder_); }

  const std::filesystem::path& path() const { return path_; }
  TraceFile file() const { return {path_, "name of the trace"}; }

 private:
  std::filesystem::path folder_, path_;
};

inline Trace read_with(const TraceReader& reader, const TraceFile& file) {
  const std::vector<TraceFile> files{file};
  return reader.read(files, {});
}

inline const Track* find_track(const Rank& rank, std::string_view label) {
  for (const Track& track : rank.tracks) {
    if (track.label == label) return &track;
  }
  return nullptr;
}

// "domain/category/name at START for DURATION" of each slice.
inline std::vector<std::string> slices_of(const Trace& trace, const Track* track) {
  std::vector<std::string> lines;
  if (track == nullptr) return {"no such track"};
  for (std::size_t i = 0; i < track->slices.size(); ++i) {
    const Kind& kind = trace.kind_of(track->slices, i);
    lines.push_back(trace.names[kind.domain] + "/" + trace.names[kind.category] + "/" + trace.names[kind.name] +
                    " at " + std::to_string(track->slices.start_ns[i]) + " for " +
                    std::to_string(track->slices.duration_ns[i]));
  }
  return lines;
}

// "key=value …" of a slice.
inline std::string arguments_of(const Trace& trace, const Track* track, std::size_t slice) {
  std::string text;
  if (track == nullptr || slice >= track->slices.size()) return "no such slice";
  track->slices.each_argument(slice, [&](const Argument& argument) {
    text += (text.empty() ? "" : " ") + trace.names[argument.key] + "=" +
            (argument.is_text() ? trace.names[argument.text()] : number_text(argument));
  });
  return text;
}

}  // namespace paceline::analysis
