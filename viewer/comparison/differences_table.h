// SPDX-License-Identifier: Apache-2.0
// The table of names below two compared runs: the time of each name in the selected range of either run, and the
// verdict of `paceline compare`.
#pragma once

#include <memory>

#include "viewer/comparison/coupling.h"
#include "viewer/comparison/name_differences.h"
#include "viewer/panels/table_panel.h"

namespace paceline::viewer {

class DifferencesTable : public TablePanel {
  Q_OBJECT

 public:
  // A click on a row goes to the longest slice of the name in run A.
  DifferencesTable(Document& a, Selection& in_a, Document& b, Selection& in_b, const Coupling& coupling);

  // The verdicts, as soon as they are known.
  void set_comparison(std::shared_ptr<const analysis::RunComparison> comparison);

 protected:
  void refresh() override;

 private:
  Document& other_;
  Selection& other_selection_;
  const Coupling& coupling_;
  std::shared_ptr<const analysis::RunComparison> comparison_;
};

}  // namespace paceline::viewer
