// SPDX-License-Identifier: Apache-2.0
// A condition on slices, as the user writes it into the field of the filter: `mpi and not (rank 3 or host node02)`.
//
//   mpi, layer[12]    a regular expression that the name of the slice matches somewhere, whatever the case
//   "a and b"         the same; quotation marks keep words like `and` and the blanks between them
//   rank 3, rank 0-7,12   slices of these ranks
//   host node0        slices of ranks on hosts whose name matches
//
// `not` binds most tightly, then `and`, then `or`. A parenthesis that is closed within a word belongs to its regular
// expression. A text without these words is one regular expression.
#pragma once

#include <QRegularExpression>
#include <QString>
#include <utility>
#include <vector>

#include "viewer/session/arrangement.h"
#include "viewer/session/background.h"
#include "viewer/session/run.h"

namespace paceline::viewer {

class SliceFilter {
 public:
  // Throws Error with what is wrong.
  explicit SliceFilter(const QString& text);

  // The kinds of slices that fit, for each rank; equal sets are shared. Returns anything if cancelled. Cost: kinds ×
  // regular expressions, and kinds × groups of ranks that the condition treats alike.
  KindSets kinds_of(const Run& run, const Ticket& ticket) const;

 private:
  friend class SliceFilterParser;
  // In postfix order: an atom adds a value, `negate` changes the last one, `both` and `either` join the last two.
  struct Step {
    enum class Kind { name, rank, host, negate, both, either };
    Kind kind;
    QRegularExpression expression = {};           // of a name or a host
    std::vector<std::pair<int, int>> ranks = {};  // from, to
  };

  bool fits_rank(const Step& step, const analysis::Rank& rank) const;

  std::vector<Step> steps_;
};

}  // namespace paceline::viewer
