// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/broken_run.h"

#include <algorithm>

#include "analysis/report/sentences.h"
#include "analysis/report/values.h"
#include "analysis/text/lists.h"

namespace paceline::analysis {
namespace broken_run_parts {

// The ranks that PyTorch's Flight Recorder shows to be at fault, and what each one did not do.
struct Faults {
  std::vector<int> ranks;
  std::vector<std::string> texts;
};
Faults faults_of(const RunAnalysis& run) {
  Faults faults;
  for (const RankSummary& rank : run.per_rank) {
    const auto fault = rank.facts.find("fault");
    if (fault == rank.facts.end()) continue;
    faults.ranks.push_back(rank.rank);
    faults.texts.push_back(fault->second);
  }
  return faults;
}

// "ranks 0 to 7, 12 and 40 more"; sorted ranks.
std::string first_ranks(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + number_list({ranks.begin(), ranks.end()});
}

// The reasons have the whole sentence, which may name all ranks.
std::string brief_hang_text(const Hang& hang) {
  constexpr std::size_t most_words = 25;
  std::string whole = hang_text(hang);
  if (word_count(whole) <= most_words) return whole;
  if (!hang.circle.empty()) {
    return fmt::format("Messages hang: {}, and so on among {} ranks.", hang.circle.front(), hang.circle.size());
  }
  if (hang.missing.empty()) return whole;
  std::vector<int> missing;
  for (const auto& rank : hang.missing) missing.push_back(rank.rank);
  const Hang::Missing& first = hang.missing.front();
  std::string instead;
  if (missing.size() == 1) {
    instead = !first.other.empty()     ? fmt::format("; it called {} instead", first.other)
              : !first.message.empty() ? "; " + first.message
              : !first.inside.empty()  ? "; it was in " + first.inside
                                       : "";
  }
  const char* waiting = hang.broken ? "failed" : hang.waiting.size() == 1 ? "waits" : "wait";
  return fmt::format("{} never {} {} #{} on {}, in which {} {}{}.", capitalised(first_ranks(missing)),
                     hang.broken ? "completed" : "entered", hang.operation, hang.number, hang.communicator,
                     plural(hang.waiting.size(), "rank", "ranks"), waiting, instead);
}

// The reasons; where they are long, without those that waited or were done; where they still are, the first one alone.
std::string brief_fault_text(const Faults& faults) {
  constexpr std::size_t most_words = 28;
  std::string whole = joined(faults.texts, "; ");
  if (word_count(whole) <= most_words) return whole;
  std::vector<std::string> brief;
  for (const std::string& text : faults.texts) {
    brief.push_back(text.substr(0, std::min(text.rfind(", in which "), text.rfind(", which "))));
  }
  whole = joined(brief, "; ");
  return word_count(whole) <= most_words ? whole : brief.front();
}

// The state names them.
std::string one_or_they(const std::vector<int>& ranks) { return ranks.size() == 1 ? rank_list(ranks) : "they"; }

}  // namespace broken_run_parts

std::string repair_text(const RunAnalysis& run, bool details) {
  using namespace broken_run_parts;
  if (const Faults faults = faults_of(run); !faults.ranks.empty()) {
    return fmt::format("First find out what {} did instead{}.", one_or_they(faults.ranks),
                       details ? ": look at the stacks and the GPUs there" : "");
  }
  if (!run.hangs.empty()) {
    std::vector<int> missing;
    for (const auto& rank : run.hangs.front().missing) missing.push_back(rank.rank);
    return fmt::format("First find out why {} did not come: `paceline view {}` shows the last ranges.",
                       one_or_they(missing), run.path);
  }
  if (!run.damage.empty()) {
    return "First get the whole trace: copy the damaged file again, or record again, because the report refuses what "
           "depends on it.";
  }
  if (run.refused()) {
    return "First record again without losses (a larger --buffer, or --lossless), because the report refuses what "
           "depends on the lost events.";
  }
  if (run.failed) return "First find out why the program failed: its figures cover only what ran.";
  return run.ended ? "" : "First find out why the job did not end: its figures cover only what ran.";
}

std::string state_of_broken(const Report& report, const RunAnalysis& run) {
  using namespace broken_run_parts;
  const std::string whose = report.runs.size() > 1 ? run.name + ": " : "";
  std::string text;
  if (const Faults faults = faults_of(run); !faults.ranks.empty()) {
    text = fmt::format("The job hangs because of {}: {}.", first_ranks(faults.ranks), brief_fault_text(faults));
  } else if (!run.hangs.empty()) {
    text = brief_hang_text(run.hangs.front());
  } else if (!run.damage.empty()) {
    text = fmt::format("The trace is damaged ({}), so where the time went is not known.", run.damage.front());
  } else {
    text = without_full_stop(run.refused() ? report.headline : sudden_ends_text(run.per_rank)) + ".";
  }
  return whose + text;
}

}  // namespace paceline::analysis
