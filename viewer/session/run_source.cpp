// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/run_source.h"

#include <QFileInfo>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <filesystem>
#include <string>
#include <vector>

namespace paceline::viewer {
namespace run_source {

using analysis::ClockMethod;

// By the numbers of ClockMethod.
constexpr const char* clocks[] = {"auto", "recorded", "exchange", "collectives"};

QString absolute_path(const QString& path) { return QFileInfo(path).absoluteFilePath(); }

std::string absolute_name(const std::string& name) { return absolute_path(QString::fromStdString(name)).toStdString(); }

}  // namespace run_source

QString RunSource::path() const {
  if (paths.size() < 2) return paths.value(0);
  return QString("%1 + %2 more").arg(paths.front()).arg(paths.size() - 1);
}

RunSource RunSource::absolute() const {
  using namespace run_source;
  RunSource source{.paths = {}, .choices = {.clock = choices.clock, .processes = choices.processes}, .merged = merged};
  for (const QString& one : paths) source.paths << absolute_path(one);
  for (const std::string& name : choices.without) source.choices.without.insert(absolute_name(name));
  for (const auto& [name, ns] : choices.offset_ns) source.choices.offset_ns[absolute_name(name)] = ns;
  return source;
}

std::shared_ptr<const Run> open_source(const RunSource& source, const analysis::Progress& progress) {
  if (!source.merged) return open_run(source.path(), progress, source.choices);
  std::vector<std::filesystem::path> files;
  for (const QString& path : source.paths) files.emplace_back(path.toStdString());
  return index_run(source.path(), analysis::load_merged(files, source.choices, progress.from_to(0, 0.9)).trace,
                   progress);
}

QString source_to_text(const RunSource& source) {
  const bool ordinary = !source.merged && source.choices.clock == run_source::ClockMethod::automatic &&
                        source.choices.processes == analysis::Processes::automatic;
  if (ordinary) return source.path();
  QJsonObject text{{"paths", QJsonArray::fromStringList(source.paths)},
                   {"merged", source.merged},
                   {"align", run_source::clocks[int(source.choices.clock)]},
                   {"processes", int(source.choices.processes)}};
  QJsonArray without;
  for (const std::string& name : source.choices.without) without << QString::fromStdString(name);
  if (!without.isEmpty()) text["without"] = without;
  QJsonObject offsets;  // as text: a double does not hold all numbers of nanoseconds
  for (const auto& [name, ns] : source.choices.offset_ns) offsets[QString::fromStdString(name)] = QString::number(ns);
  if (!offsets.isEmpty()) text["offset_ns"] = offsets;
  return QString::fromUtf8(QJsonDocument(text).toJson(QJsonDocument::Compact));
}

RunSource source_from_text(const QString& text) {
  if (!text.startsWith('{')) return {.paths = {text}};
  const QJsonObject object = QJsonDocument::fromJson(text.toUtf8()).object();
  RunSource source{.paths = {}, .choices = {}, .merged = object["merged"].toBool()};
  for (const QJsonValue& path : object["paths"].toArray()) source.paths << path.toString();
  source.choices.clock = analysis::clock_method_named(object["align"].toString().toStdString())
                             .value_or(run_source::ClockMethod::automatic);
  if (const int kind = object["processes"].toInt(); kind >= 0 && kind <= int(analysis::Processes::one_rank)) {
    source.choices.processes = analysis::Processes(kind);
  }
  for (const QJsonValue& name : object["without"].toArray()) {
    source.choices.without.insert(name.toString().toStdString());
  }
  const QJsonObject offsets = object["offset_ns"].toObject();
  for (auto one = offsets.begin(); one != offsets.end(); ++one) {
    source.choices.offset_ns[one.key().toStdString()] = one.value().toString().toLongLong();
  }
  return source;
}

}  // namespace paceline::viewer
