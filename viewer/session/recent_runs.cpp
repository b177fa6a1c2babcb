// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/recent_runs.h"

#include <QSettings>
#include <QStringList>
#include <algorithm>

namespace paceline::viewer {
namespace recent_runs_file {

constexpr std::size_t most = 10;
class Settings : public QSettings {
 public:
  Settings() : QSettings(QSettings::IniFormat, QSettings::UserScope, "paceline", "paceline-view") {}
};

}  // namespace recent_runs_file

std::vector<RunSource> recent_runs() {
  std::vector<RunSource> runs;
  for (const QString& text : recent_runs_file::Settings().value("recent").toStringList()) {
    RunSource source = source_from_text(text);
    if (!source.paths.isEmpty()) runs.push_back(std::move(source));
  }
  return runs;
}

void remember_run(const RunSource& source) {
  const RunSource opened = source.absolute();
  std::vector<RunSource> runs = recent_runs();
  std::erase_if(runs, [&](const RunSource& one) { return one.paths == opened.paths && one.merged == opened.merged; });
  runs.insert(runs.begin(), opened);
  runs.resize(std::min(runs.size(), recent_runs_file::most));
  QStringList texts;
  for (const RunSource& one : runs) texts << source_to_text(one);
  recent_runs_file::Settings().setValue("recent", texts);
}

QString remembered_theme() { return recent_runs_file::Settings().value("theme").toString(); }

void remember_theme(const QString& theme) { recent_runs_file::Settings().setValue("theme", theme); }

}  // namespace paceline::viewer
