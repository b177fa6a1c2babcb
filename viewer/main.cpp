// SPDX-License-Identifier: Apache-2.0
// paceline-view: the desktop viewer, and its pictures without a display.
#include <QApplication>
#include <QFont>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <vector>

#include "profiler/format/error.h"
#include "viewer/drawing/appearance.h"
#include "viewer/merging/merge_dialog.h"
#include "viewer/options.h"
#include "viewer/session/destination.h"
#include "viewer/session/recent_runs.h"
#include "viewer/window/exports.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Off screen Qt warns about what only a desktop has.
void show_only_failures(QtMsgType type, const QMessageLogContext&, const QString& message) {
  if (type == QtCriticalMsg || type == QtFatalMsg) std::cerr << "paceline-view: " << message.toStdString() << '\n';
}

// Shows what the command line asks for. The selection follows when it is found; `missing` gets the message if the run
// has no slice of that name.
void apply_view(RunPage& page, const Options& options, std::function<void(const QString&)> missing) {
  ViewState& state = page.state();
  if (!options.panel.isEmpty()) Q_EMIT state.commands.panel_wanted(options.panel);
  if (options.fold) state.arrangement.set_all_collapsed(true);
  if (options.counters) state.arrangement.set_all_counters_unfolded(true);
  if (options.iterations && !state.time.show_iterations(options.iterations->first, options.iterations->second)) {
    throw Error(QString("--iterations: %1 has no iteration from %2 to %3")
                    .arg(page.run().path)
                    .arg(options.iterations->first)
                    .arg(options.iterations->second)
                    .toStdString());
  }
  TimeRange wanted = state.time.axis().visible();
  if (options.iterations) {  // without the margin around them, where slices of other iterations are
    wanted = state.time.range_of_iterations(options.iterations->first, options.iterations->second).value_or(wanted);
  }
  if (options.from_ns || options.to_ns) {
    const TimeRange view = options.iterations ? state.time.axis().visible() : state.time.axis().whole();
    wanted = {options.from_ns.value_or(view.begin_ns), options.to_ns.value_or(view.end_ns)};
    if (wanted.length() <= 0) throw Error("--from, --to: the view would end before it starts");
    state.time.jump_to(wanted);
  }
  if (!options.at.isEmpty()) {
    const Destinations places = destinations(page.run(), options.at, true);
    if (places.found.empty()) throw Error("--at: " + places.missing.toStdString());
    go_to(state, places.found.front());
  }
  if (options.select.isEmpty()) return;
  page.select_name(options.select, wanted,
                   [message = QString("--select: %1 has no slice named '%2'").arg(page.run().path, options.select),
                    missing = std::move(missing)](bool found) {
                     if (!found) missing(message);
                   });
}

// Selects the iteration, or shows the range of run A's time.
void apply_view(ComparisonPage& page, const Options& options) {
  if (options.fold)
    page.state_of_a().arrangement.set_all_collapsed(true), page.state_of_b().arrangement.set_all_collapsed(true);
  if (options.iterations && !page.coupling().select_iteration(options.iterations->first)) {
    throw Error(
        QString("--iterations: the runs do not both have iteration %1").arg(options.iterations->first).toStdString());
  }
  if (!options.from_ns && !options.to_ns) return;
  const TimeRange view = page.state_of_a().time.axis().visible();
  const TimeRange wanted{options.from_ns.value_or(view.begin_ns), options.to_ns.value_or(view.end_ns)};
  if (wanted.length() <= 0) throw Error("--from, --to: the view would end before it starts");
  page.state_of_a().time.jump_to(wanted);
}

// `finish` waits until everything that was asked is computed, and `idle` returns whether it is.
void save_picture_of(QWidget& widget, const QString& file, const std::function<void()>& finish,
                     const std::function<bool()>& idle) {
  do {  // what is drawn for the first time may have to be computed, and is drawn again then
    finish();
    if (QWidget* focused = QApplication::focusWidget()) focused->clearFocus();
    QApplication::processEvents();
    widget.grab();
  } while (!idle());
  save_picture(widget, file);
}

// The dialog that lists the files.
void save_picture_of_merge(const Options& options) {
  MergeDialog dialog(options.runs, {.clock = options.clock, .processes = options.processes});
  dialog.resize(options.size);
  dialog.show();
  save_picture_of(
      dialog, options.screenshot, [&] { dialog.finish(); }, [] { return true; });
}

void save_screenshot(const Options& options, const std::vector<std::shared_ptr<const Run>>& runs) {
  Window window;
  window.resize(options.size);
  if (options.compare) {
    ComparisonPage* page = window.show_comparison(runs[0], runs[1]);
    window.show();
    QApplication::processEvents();
    apply_view(*page, options);
    return save_picture_of(
        window, options.screenshot, [page] { page->finish(); }, [page] { return page->idle(); });
  }
  RunPage* page = window.show_run(runs[0]);
  window.show();
  QApplication::processEvents();
  QString failure;
  apply_view(*page, options, [&](const QString& message) { failure = message; });
  Background& background = page->document().background();
  background.finish();
  if (!failure.isEmpty()) throw Error(failure.toStdString());
  save_picture_of(
      window, options.screenshot, [&] { background.finish(); }, [&] { return background.idle(); });
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  std::vector<std::shared_ptr<const Run>> drawn;  // opened first, so that an error is the only message
  if (!options.screenshot.isEmpty() && !options.merge) {
    for (const QString& path : options.runs)
      drawn.push_back(open_run(path, {}, {.clock = options.clock, .processes = options.processes}));
  }
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !is_set("QT_QPA_PLATFORM")) {
    if (options.screenshot.isEmpty()) {
      throw Error("no display: neither DISPLAY nor WAYLAND_DISPLAY is set; use --screenshot FILE.png, or ssh -X");
    }
    // Qt aborts without a display. The platform has to be set before the application is made.
    std::cerr << "paceline-view: no display, drawing off screen\n";
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  if (qgetenv("QT_QPA_PLATFORM").startsWith("offscreen")) qInstallMessageHandler(&show_only_failures);
  const double scale = options.scale > 0 ? options.scale : options.screenshot.isEmpty() ? remembered_scale() : 1;
  if (scale != 1 && !is_set("QT_SCALE_FACTOR")) qputenv("QT_SCALE_FACTOR", QByteArray::number(scale));
  QApplication application(argc, argv);
  QApplication::setApplicationName("paceline-view");
  QApplication::setDesktopFileName("paceline-view");  // the desktop takes name and icon from this file
  const bool offscreen = QApplication::platformName() == "offscreen";
  // Without a desktop there are no settings to follow.
  QString theme = options.theme;
  if (theme.isEmpty()) theme = offscreen ? QString("light") : remembered_theme();
  apply_theme(theme);
  if (offscreen) {
    QFont font("DejaVu Sans");
    font.setPixelSize(12);
    QApplication::setFont(font);
  }
  if (!options.screenshot.isEmpty()) {
    if (options.merge) {
      save_picture_of_merge(options);
    } else {
      save_screenshot(options, drawn);
    }
    return 0;
  }
  Window window;
  window.resize(Window::fitting(options.size, window.screen()->availableSize()));
  window.set_remembering(true);
  if (options.compare) {
    window.compare(options.runs[0], options.runs[1], [options](ComparisonPage& page) { apply_view(page, options); });
    window.show();
    return QApplication::exec();
  }
  if (options.merge) {
    window.show();
    window.merge(options.runs, {.clock = options.clock, .processes = options.processes});
    return QApplication::exec();
  }
  if (options.scale > 0) remember_scale(options.scale);
  if (options.runs.isEmpty()) window.reopen();
  for (const QString& path : options.runs) {
    if (options.follow) {
      window.follow(path);
      continue;
    }
    window.open(path,
                [options, &window](RunPage& page) {
                  apply_view(page, options, [&window](const QString& message) { window.show_message(message); });
                },
                {.clock = options.clock, .processes = options.processes});
  }
  window.show();
  return QApplication::exec();
}

}  // namespace
}  // namespace paceline::viewer

int main(int argc, char** argv) {
  try {
    return paceline::viewer::run(argc, argv);
  } catch (const std::exception& error) {
    std::cerr << "paceline-view: " << error.what() << '\n';
    return 1;
  }
}
