// SPDX-License-Identifier: Apache-2.0
// The command line of paceline-view.
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>
#include <optional>
#include <utility>

#include "analysis/load/merge.h"

namespace paceline::viewer {

struct Options {
  QStringList runs;
  QString screenshot;  // if not empty: draw one picture to this file and end
  QSize size{1600, 900};
  std::optional<double> from_ns, to_ns;
  std::optional<std::pair<std::int64_t, std::int64_t>> iterations;  // first and last
  QString select;
  QString at;        // as "Go to" takes it
  double scale = 0;  // of texts and rows; 0: as remembered
  QString theme;     // "light", "dark", or empty for the desktop's
  QString panel;     // the title of the panel to open
  bool fold = false, counters = false, follow = false;
  bool compare = false;  // the two runs on one page
  bool merge = false;    // the runs as one, after a dialog
  analysis::ClockMethod clock = analysis::ClockMethod::automatic;
  analysis::Processes processes = analysis::Processes::automatic;
};

// Ends the program with status 0 after --help, and with status 2 and a line on standard error after wrong usage.
Options parse_options(int argc, char** argv);

}  // namespace paceline::viewer
