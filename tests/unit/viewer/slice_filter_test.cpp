// SPDX-License-Identifier: Apache-2.0
// Conditions on slices, as they are written into the field of the filter.
#include "viewer/session/slice_filter.h"

#include <gtest/gtest.h>

#include <QLabel>
#include <QToolButton>
#include <atomic>
#include <set>
#include <string>

#include "profiler/format/error.h"
#include "tests/unit/viewer/user.h"
#include "viewer/panels/search.h"

namespace paceline::viewer {
namespace {

// Four ranks on node01 (0, 1) and node02 (2, 3).
std::shared_ptr<const Run> run_of_four() {
  static const auto run = index_run("four", simulate({.ranks = 4, .iterations = 2, .layers = false, .hosts = 2}));
  return run;
}

KindSets kinds_of(const QString& text) {
  static const std::atomic<bool> open = false;
  return SliceFilter(text).kinds_of(*run_of_four(), Ticket(open));
}

// The ranks on which slices of this name are shown, as in "013".
std::string shown_on(const QString& text, const char* name) {
  const analysis::Trace& trace = run_of_four()->trace;
  const KindSets sets = kinds_of(text);
  std::string ranks;
  for (std::size_t rank = 0; rank < sets.size(); ++rank) {
    for (std::size_t kind = 0; kind < trace.kinds.size(); ++kind) {
      if (trace.names[trace.kinds[kind].name] != name || !(*sets[rank])[kind]) continue;
      ranks += std::to_string(rank);
      break;
    }
  }
  return ranks;
}

std::string fault_of(const QString& text) {
  try {
    SliceFilter filter(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SliceFilter, WithoutItsWordsIsOneRegularExpression) {
  EXPECT_EQ(shown_on("MPI_", "MPI_Allreduce"), "0123");
  EXPECT_EQ(shown_on("mpi_", "MPI_Allreduce"), "0123") << "whatever the case";
  EXPECT_EQ(shown_on("mpi_", "forward"), "");
  EXPECT_EQ(shown_on("^(for|back)ward$", "forward"), "0123");
  EXPECT_EQ(shown_on("(a|b c)", "backward"), "0123");
  EXPECT_EQ(shown_on("rank", "forward"), "") << "a rank has a number";
}

TEST(SliceFilter, KnowsAndOrNotAndParentheses) {
  EXPECT_EQ(shown_on("forward or backward", "backward"), "0123");
  EXPECT_EQ(shown_on("ward and not back", "forward"), "0123");
  EXPECT_EQ(shown_on("ward and not back", "backward"), "");
  EXPECT_EQ(shown_on("not not forward", "forward"), "0123");
  EXPECT_EQ(shown_on("optimizer or forward and rank 1", "optimizer"), "0123") << "and binds more tightly than or";
  EXPECT_EQ(shown_on("optimizer or forward and rank 1", "forward"), "1");
  EXPECT_EQ(shown_on("(optimizer or forward) and rank 1", "optimizer"), "1");
  EXPECT_EQ(shown_on("((for|back)ward) and rank 1", "backward"), "1") << "parentheses of a regular expression";
  EXPECT_EQ(shown_on("FORWARD AND NOT RANK 3", "forward"), "012");
}

TEST(SliceFilter, ChoosesRanksAndHosts) {
  EXPECT_EQ(shown_on("mpi and not rank 3", "MPI_Allreduce"), "012");
  EXPECT_EQ(shown_on("rank 0-1,3", "forward"), "013");
  EXPECT_EQ(shown_on("host node02", "forward"), "23");
  EXPECT_EQ(shown_on("forward and not host 1$", "forward"), "23");
  const KindSets sets = kinds_of("mpi and not rank 3");
  EXPECT_EQ(sets[0], sets[2]) << "ranks that are treated alike share a set";
  EXPECT_NE(sets[0], sets[3]);
}

TEST(SliceFilter, KeepsWordsWithinQuotationMarks) {
  EXPECT_EQ(shown_on("\"forward\" or \"no and name\"", "forward"), "0123");
  EXPECT_EQ(shown_on("\"and\"", "forward"), "");
}

TEST(SliceFilter, NamesItsFault) {
  EXPECT_EQ(fault_of(" "), "the filter is empty");
  EXPECT_NE(fault_of("[").find("not a regular expression: ["), std::string::npos);
  EXPECT_EQ(fault_of("mpi and"), "a condition is missing after and");
  EXPECT_EQ(fault_of("or mpi"), "a condition is missing at the start");
  EXPECT_EQ(fault_of("not (mpi or nccl"), "a parenthesis is not closed");
  EXPECT_EQ(fault_of("not mpi)"), "a parenthesis is closed that was not opened");
  EXPECT_EQ(fault_of("rank 3x"), "rank 3x: expected numbers such as 3 or 0-7,12");
  EXPECT_EQ(fault_of("host"), "the name of a host is missing after host");
  EXPECT_EQ(fault_of("\"mpi"), "a quotation mark is not closed");
}

TEST(SliceFilterField, HidesRanksThatTheConditionLeavesOut) {
  User user;
  auto* bar = user.page->findChild<SearchBar*>();
  auto* field = bar->findChild<QLineEdit*>();
  field->setText("forward and not rank 1");
  user.press("Ctrl+Shift+F");
  std::set<std::size_t> ranks;
  for (const PlacedRank& placed : user.timeline->rows().ranks()) ranks.insert(placed.rank);
  EXPECT_EQ(ranks, (std::set<std::size_t>{0, 2, 3}));
  field->setText("forward and");
  user.press("Ctrl+Shift+F");  // off
  user.press("Ctrl+Shift+F");
  EXPECT_EQ(bar->findChild<QLabel*>()->text(), "a condition is missing after and");
  EXPECT_EQ(user.timeline->rows().ranks().size(), 4u) << "without a filter";
}

}  // namespace
}  // namespace paceline::viewer
