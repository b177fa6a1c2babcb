// SPDX-License-Identifier: Apache-2.0
#include "viewer/options.h"

#include <CLI/CLI.hpp>
#include <QRegularExpression>
#include <QUrl>
#include <QUrlQuery>
#include <cmath>

#include "analysis/cli/reading_options.h"
#include "cmake/version/version.h"
#include "viewer/panels/panel.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace {

std::optional<double> time_option(const std::string& name, const std::string& text) {
  if (text.empty()) return std::nullopt;
  const double ns = time_from_text(QString::fromStdString(text));
  if (std::isnan(ns)) {
    throw CLI::ValidationError(name, "'" + text + "' is not a time: write seconds, or a number with s, ms, us or ns");
  }
  return ns;
}

}  // namespace

Options parse_options(int argc, char** argv) {
  CLI::App app{"Shows runs of a training job on a timeline.", "paceline-view"};
  std::vector<std::string> runs;
  std::string screenshot, size = "1600x900", from, to, iterations, select, at, theme, panel;
  Options options;
  app.set_version_flag("--version", [] { return version_text("paceline-view"); });
  app.add_option(
      "RUN", runs,
      "Directories of traces, single traces in any format that paceline reads, or links that begin with paceline:. "
      "Without any, the runs that were open last");
  app.add_option("--screenshot", screenshot,
                 "Write a picture of the window to this file (PNG, SVG) and end. Needs no display")
      ->type_name("FILE");
  app.add_option("--size", size, "Size of the window")->type_name("WxH")->capture_default_str();
  app.add_option("--from", from, "Start of the view in seconds, or with a unit as in 12.5ms")->type_name("T");
  app.add_option("--to", to, "End of the view")->type_name("T");
  app.add_option("--iterations", iterations, "Show iterations A to B, both included")->type_name("A:B");
  app.add_option("--select", select, "Select the first slice with this name in the view")->type_name("NAME");
  app.add_option("--at", at,
                 "Go to a time, an iteration, a rank or a name: 1.25s, \"iteration 12\", \"rank 3\", backward")
      ->type_name("PLACE");
  app.add_option("--scale", options.scale, "The size of texts and rows, for this start and the next ones: 1.25")
      ->type_name("FACTOR")
      ->check(CLI::Range(0.5, 4.0));
  app.add_option("--theme", theme, "light or dark. The default is the desktop's theme")
      ->check(CLI::IsMember({"light", "dark"}));
  std::vector<std::string> titles;
  for (const PanelKind& kind : panel_kinds()) {
    if (kind.place == PanelKind::Place::tab) titles.push_back(kind.title);
  }
  app.add_option("--panel", panel, "Open this panel, such as Ranks or \"Heat map\"")
      ->type_name("TITLE")
      ->check(CLI::IsMember(titles));
  app.add_flag("--follow", options.follow, "Reload runs while they are being recorded");
  app.add_flag("--compare", options.compare, "Show two RUNs on one page with coupled axes");
  app.add_flag("--merge", options.merge, "Open all RUNs as one run, after a dialog that lists their files");
  std::string align = "auto";
  app.add_option("--align", align, "How clocks are aligned: auto, recorded, exchange or collectives")
      ->type_name("METHOD")
      ->capture_default_str()
      ->check(CLI::IsMember({"auto", "recorded", "exchange", "collectives"}));
  cli::add_processes_option(app, options.processes);
  app.add_flag("--fold", options.fold, "Show only the phases of each rank");
  app.add_flag("--counters", options.counters, "Show all counters, not only each rank's first");
  try {
    app.parse(argc, argv);
    for (std::string& run : runs) {
      if (!run.starts_with("paceline:")) continue;
      const QUrl link(QString::fromStdString(run));
      const QUrlQuery query(link);
      const auto take = [&](const char* key, std::string& value) {
        if (query.hasQueryItem(key)) value = query.queryItemValue(key, QUrl::FullyDecoded).toStdString();
      };
      take("from", from), take("to", to), take("at", at), take("select", select);
      run = link.path(QUrl::FullyDecoded).toStdString();
      if (run.empty()) throw CLI::ValidationError("RUN", "the link names no run: write paceline:/DIRECTORY?at=PLACE");
    }
    static const QRegularExpression size_form("^([0-9]{2,5})x([0-9]{2,5})$"), pair_form("^([0-9]+)(?::([0-9]+))?$");
    const auto sizes = size_form.match(QString::fromStdString(size));
    if (!sizes.hasMatch()) throw CLI::ValidationError("--size", "'" + size + "' is not of the form 1600x900");
    options.size = {sizes.captured(1).toInt(), sizes.captured(2).toInt()};
    if (!iterations.empty()) {
      const auto pair = pair_form.match(QString::fromStdString(iterations));
      if (!pair.hasMatch()) {
        throw CLI::ValidationError("--iterations", "'" + iterations + "' is not of the form 10:12");
      }
      const std::int64_t first = pair.captured(1).toLongLong();
      options.iterations = {first, pair.captured(2).isEmpty() ? first : pair.captured(2).toLongLong()};
    }
    options.from_ns = time_option("--from", from);
    options.to_ns = time_option("--to", to);
    options.clock = *analysis::clock_method_named(align);
    if (options.merge && runs.empty()) throw CLI::ValidationError("--merge", "give the RUNs to open as one");
    if (options.merge && (options.compare || options.follow)) {
      throw CLI::ValidationError("--merge", "goes without --compare and --follow");
    }
    if (options.clock != analysis::ClockMethod::automatic && (options.compare || options.follow)) {
      throw CLI::ValidationError("--align", "goes without --compare and --follow");
    }
    if (options.processes != analysis::Processes::automatic && (options.compare || options.follow)) {
      throw CLI::ValidationError("--processes", "goes without --compare and --follow");
    }
    if (options.compare && runs.size() != 2) throw CLI::ValidationError("--compare", "give the two RUNs to compare");
    if (options.compare && (options.follow || !select.empty() || !panel.empty() || !at.empty())) {
      throw CLI::ValidationError("--compare", "goes without --follow, --select, --panel and --at");
    }
    if (!screenshot.empty() && runs.size() != 1 && !options.compare && !options.merge) {
      throw CLI::ValidationError("--screenshot", "give one RUN to draw");
    }
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error) == 0 ? 0 : 2);
  }
  for (const std::string& run : runs) options.runs << QString::fromStdString(run);
  options.screenshot = QString::fromStdString(screenshot);
  options.select = QString::fromStdString(select);
  options.at = QString::fromStdString(at);
  options.panel = QString::fromStdString(panel);
  options.theme = QString::fromStdString(theme);
  return options;
}

}  // namespace paceline::viewer
