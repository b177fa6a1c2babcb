// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/recent_runs.h"

#include <QCryptographicHash>
#include <QDir>
#include <QFileInfo>
#include <QSettings>
#include <QStringList>
#include <algorithm>
#include <optional>

namespace paceline::viewer {
namespace recent_runs_file {

constexpr std::size_t most = 10;
std::optional<bool> wheel;  // since the user chose

class Settings : public QSettings {
 public:
  Settings() : QSettings(QSettings::IniFormat, QSettings::UserScope, "paceline", "paceline-view") {}
};

std::vector<RunSource> read(const char* key) {
  std::vector<RunSource> runs;
  for (const QString& text : Settings().value(key).toStringList()) {
    RunSource source = source_from_text(text);
    if (!source.paths.isEmpty()) runs.push_back(std::move(source));
  }
  return runs;
}

void write(const char* key, const std::vector<RunSource>& runs) {
  QStringList texts;
  for (const RunSource& one : runs) texts << source_to_text(one);
  Settings().setValue(key, texts);
}

// The views of runs that are no longer recent go.
void remove_old_views(const std::vector<RunSource>& recent) {
  QStringList kept;
  for (const RunSource& run : recent) kept << QFileInfo(kept_view_file(run.path())).fileName();
  const QDir folder = QFileInfo(kept_view_file({})).dir();
  for (const QString& name : folder.entryList({"*.paceline-view"}, QDir::Files)) {
    if (!kept.contains(name)) QFile::remove(folder.filePath(name));
  }
}

}  // namespace recent_runs_file

std::vector<RunSource> recent_runs() { return recent_runs_file::read("recent"); }

void remember_run(const RunSource& source) {
  const RunSource opened = source.absolute();
  std::vector<RunSource> runs = recent_runs();
  std::erase_if(runs, [&](const RunSource& one) { return one.paths == opened.paths && one.merged == opened.merged; });
  runs.insert(runs.begin(), opened);
  runs.resize(std::min(runs.size(), recent_runs_file::most));
  recent_runs_file::write("recent", runs);
  recent_runs_file::remove_old_views(runs);
}

std::vector<RunSource> runs_left_open() { return recent_runs_file::read("open"); }

void remember_open(const std::vector<RunSource>& runs) { recent_runs_file::write("open", runs); }

QString kept_view_file(const QString& run_path) {
  const QFileInfo settings(recent_runs_file::Settings().fileName());
  const QByteArray path = QDir::cleanPath(QFileInfo(run_path).absoluteFilePath()).toUtf8();
  const QString name = QCryptographicHash::hash(path, QCryptographicHash::Sha1).toHex();
  return settings.dir().filePath("views/" + name + ".paceline-view");
}

QString remembered_theme() { return recent_runs_file::Settings().value("theme").toString(); }

void remember_theme(const QString& theme) { recent_runs_file::Settings().setValue("theme", theme); }

bool wheel_scrolls() {
  static const bool remembered = recent_runs_file::Settings().value("wheel").toString() == "rows";
  return recent_runs_file::wheel.value_or(remembered);
}

void set_wheel_scrolls(bool on) {
  recent_runs_file::wheel = on;
  recent_runs_file::Settings().setValue("wheel", on ? "rows" : "zoom");
}

double remembered_scale() {
  const double scale = recent_runs_file::Settings().value("scale", 1.0).toDouble();
  return scale >= 0.5 && scale <= 4 ? scale : 1;
}

void remember_scale(double factor) { recent_runs_file::Settings().setValue("scale", factor); }

}  // namespace paceline::viewer
