// SPDX-License-Identifier: Apache-2.0
// Small Kineto files for tests: texts become files, and files become a trace.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "analysis/importers/reader.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

class KinetoFiles {
 public:
  KinetoFiles() { std::filesystem::create_directories(directory); }
  ~KinetoFiles() { std::filesystem::remove_all(directory); }

  // Reads the texts as the files of one run.
  Trace read(const std::vector<std::string>& texts, Processes processes = Processes::automatic) const {
    std::vector<TraceFile> files;
    for (const std::string& text : texts) {
      const std::filesystem::path path = directory / (std::to_string(files.size()) + ".json");
      std::ofstream(path, std::ios::binary) << text;
      files.push_back({path, "run/" + path.filename().string(), processes});
    }
    return kineto_reader.read(files, {});
  }
  bool recognises(const std::string& text) const {
    const std::filesystem::path path = directory / "file";
    std::ofstream(path, std::ios::binary) << text;
    return kineto_reader.recognises({path, "file"});
  }

  const std::filesystem::path directory =
      std::filesystem::temp_directory_path() / ("paceline-kineto-" + std::to_string(::getpid()));
};

// The text of a file with these events, and with these members before them.
inline std::string kineto_file(const std::string& events, const std::string& members = "") {
  return "{\"schemaVersion\": 1, " + members + (members.empty() ? "" : ", ") + "\"traceEvents\": [" + events + "]}";
}

// An event of the thread 7 of the process 7; `more` are further members, with a comma before each.
inline std::string operator_event(const std::string& name, const std::string& ts, const std::string& dur,
                                  const std::string& more = "") {
  return R"({"ph": "X", "cat": "cpu_op", "name": ")" + name + R"(", "pid": 7, "tid": 7, "ts": )" + ts +
         ", \"dur\": " + dur + more + "}";
}

inline const Track* track_of(const Trace& trace, const std::string& label, std::size_t rank = 0) {
  for (const Track& track : trace.ranks.at(rank).tracks) {
    if (track.label == label) return &track;
  }
  return nullptr;
}

inline std::vector<std::string> names_of(const Trace& trace, const Track& track) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < track.slices.size(); ++i) names.push_back(trace.name_of(track.slices, i));
  return names;
}

// The text or the number of an argument of slice i; "" where it has none.
inline std::string argument_of(const Trace& trace, const Slices& slices, std::size_t i, const std::string& key) {
  const auto found = slices.argument(i, trace.names.find(key));
  if (!found || trace.names.find(key) == 0) return "";
  return found->is_text() ? trace.names[found->text()] : number_text(*found);
}

}  // namespace paceline::analysis
