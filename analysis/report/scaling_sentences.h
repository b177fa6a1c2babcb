// What the sentences about scaling share. A table may hold thousands of configurations: of each kind of sentence only
// the first are printed, and how many are left out is said.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <vector>

#include "analysis/run/run_analysis.h"

namespace paceline::analysis {

// Rows of a table and sentences of a kind that text, Markdown and HTML print. JSON and CSV have all.
inline constexpr std::size_t most_rows_printed = 50;
inline constexpr std::size_t most_sentences = 20;

// A serial share below this bounds nothing that exists, unless an interval says how well it is known.
inline constexpr double least_bounding_share = 1e-3;

class SentenceList {
 public:
  explicit SentenceList(std::vector<Finding>& out) : out_(out) {}

  // Adds the sentence unless it was said already or its kind has been said often enough.
  void say(const char* kind, Severity severity, std::string text);
  // Says how many were left out.
  void finish();

 private:
  std::vector<Finding>& out_;
  std::map<std::string, std::size_t> said_;
  std::unordered_set<std::string> texts_;
  std::size_t left_out_ = 0;
};

// Series that must not be joined, weak scaling, and runs of equal rank counts beside each other.
void add_series_findings(const Report& report, SentenceList& out);
// What the intervals rest on, and why there are none.
void add_noise_findings(const Report& report, SentenceList& out);

// "1, 2 and 4"
std::string ranks_text(const Scaling& scaling, const std::vector<std::size_t>& points);

// The peak of the Universal Scalability Law where the runs bound it: with an interval, if κ is above 0; without, if it
// lies within ten times the most ranks that were measured.
std::optional<double> shown_peak(const Scaling& scaling, const AmdahlFit& fit);

}  // namespace paceline::analysis
