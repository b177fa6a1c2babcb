#include "viewer/session/recent_runs.h"

#include <QFileInfo>
#include <QSettings>

namespace paceline::viewer {
namespace recent_runs_file {

constexpr qsizetype most = 10;
class Settings : public QSettings {
 public:
  Settings() : QSettings(QSettings::IniFormat, QSettings::UserScope, "paceline", "paceline-view") {}
};

}  // namespace recent_runs_file

QStringList recent_runs() { return recent_runs_file::Settings().value("recent").toStringList(); }

void remember_run(const QString& path) {
  const QString absolute = QFileInfo(path).absoluteFilePath();
  QStringList runs = recent_runs();
  runs.removeAll(absolute);
  runs.prepend(absolute);
  recent_runs_file::Settings().setValue("recent", runs.mid(0, recent_runs_file::most));
}

QString remembered_theme() { return recent_runs_file::Settings().value("theme").toString(); }

void remember_theme(const QString& theme) { recent_runs_file::Settings().setValue("theme", theme); }

}  // namespace paceline::viewer
