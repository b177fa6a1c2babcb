// The command line of paceline-view.
#pragma once

#include <QSize>
#include <QString>
#include <QStringList>
#include <optional>
#include <utility>

#include "viewer/session/time_axis.h"

namespace paceline::viewer {

struct Options {
  QStringList runs;
  QString screenshot;  // not empty: draw one picture and end
  QSize size{1600, 900};
  std::optional<double> from_ns, to_ns;
  std::optional<std::pair<std::int64_t, std::int64_t>> iterations;  // first and last
  QString select;
  QString theme;  // "light", "dark"; empty: the desktop's
  bool fold = false, counters = false;
};

// Ends the program after --help (0), and on wrong usage with a line on standard error (2).
Options parse_options(int argc, char** argv);

}  // namespace paceline::viewer
