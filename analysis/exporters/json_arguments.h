// SPDX-License-Identifier: Apache-2.0
// The texts of names and arguments that exporters share.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/exporters/selection.h"
#include "analysis/text/text_output.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// A text for each of the trace's names, made once where it is asked for.
template <std::string (*make)(std::string_view)>
class NameTexts {
 public:
  explicit NameTexts(const Trace& trace) : trace_(trace), texts_(trace.names.size()) {}
  const std::string& operator[](NameId name) {
    std::string& text = texts_[name];
    if (text.empty()) text = make(trace_.names[name]);
    return text;
  }

 private:
  const Trace& trace_;
  std::vector<std::string> texts_;
};
using JsonNames = NameTexts<json_string>;  // with quotes
using CleanNames = NameTexts<valid_utf8>;

// The arguments of slices as JSON objects: {"domain":"mpi","bytes":4096}, with the NVTX domain, if there is one, and
// "clipped" where the selection clipped the slice.
class JsonArguments {
 public:
  explicit JsonArguments(const Trace& trace) : trace_(trace), names_(trace) {}

  // Stays as it is until the next call.
  const std::string& operator()(const Slices& slices, const SelectedSlice& slice);
  JsonNames& names() { return names_; }

 private:
  void write(NameId domain, const Slices& slices, const SelectedSlice& slice, std::string& out);

  // What many slices have in common is written once: the latest texts, by a hash of the record and the domain.
  struct Latest {
    const Slices* slices = nullptr;
    RecordId record = 0;
    NameId domain = 0;
    Clipped clipped = Clipped::no;
    std::string text;
  };
  const Trace& trace_;
  JsonNames names_;
  std::array<Latest, 256> latest_;
  std::string own_;
};

}  // namespace paceline::analysis
