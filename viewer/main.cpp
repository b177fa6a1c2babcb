// paceline-view: the desktop viewer, and its pictures without a display.
#include <QApplication>
#include <QFont>
#include <QScreen>
#include <cstdlib>
#include <functional>
#include <iostream>

#include "profiler/format/error.h"
#include "viewer/drawing/appearance.h"
#include "viewer/options.h"
#include "viewer/session/recent_runs.h"
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
  if (!options.panel.isEmpty()) Q_EMIT state.panel_wanted(options.panel);
  if (options.fold) state.set_all_collapsed(true);
  if (options.counters) state.set_all_counters_unfolded(true);
  if (options.iterations && !state.show_iterations(options.iterations->first, options.iterations->second)) {
    throw Error(QString("--iterations: %1 has no iteration from %2 to %3")
                    .arg(page.run().path)
                    .arg(options.iterations->first)
                    .arg(options.iterations->second)
                    .toStdString());
  }
  TimeRange wanted = state.axis().visible();
  if (options.iterations) {  // without the margin around them, where slices of other iterations are
    wanted = state.range_of_iterations(options.iterations->first, options.iterations->second).value_or(wanted);
  }
  if (options.from_ns || options.to_ns) {
    const TimeRange view = options.iterations ? state.axis().visible() : state.axis().whole();
    wanted = {options.from_ns.value_or(view.begin_ns), options.to_ns.value_or(view.end_ns)};
    if (wanted.length() <= 0) throw Error("--from, --to: the view would end before it starts");
    state.jump_to(wanted);
  }
  if (options.select.isEmpty()) return;
  page.select_name(options.select, wanted,
                   [message = QString("--select: %1 has no slice named '%2'").arg(page.run().path, options.select),
                    missing = std::move(missing)](bool found) {
                     if (!found) missing(message);
                   });
}

void save_screenshot(const Options& options, std::shared_ptr<const Run> run) {
  Window window;
  RunPage* page = window.show_run(std::move(run));
  window.resize(options.size);
  window.show();
  QApplication::processEvents();
  QString failure;
  apply_view(*page, options, [&](const QString& message) { failure = message; });
  Background& background = page->document().background();
  QPixmap picture;
  do {  // what is drawn for the first time may have to be computed, and is drawn again then
    background.finish();
    if (QWidget* focused = QApplication::focusWidget()) focused->clearFocus();
    QApplication::processEvents();
    picture = window.grab();
  } while (!background.idle());
  if (!failure.isEmpty()) throw Error(failure.toStdString());
  if (!picture.save(options.screenshot)) {
    throw Error(options.screenshot.toStdString() +
                ": the picture cannot be written: the directory must exist and the name must end with .png");
  }
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  std::shared_ptr<const Run> drawn;  // opened first, so that an error is the only message
  if (!options.screenshot.isEmpty()) drawn = open_run(options.runs.front());
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !is_set("QT_QPA_PLATFORM")) {
    if (options.screenshot.isEmpty()) {
      throw Error("no display: neither DISPLAY nor WAYLAND_DISPLAY is set; use --screenshot FILE.png, or ssh -X");
    }
    // Qt aborts without a display. The platform has to be set before the application is made.
    std::cerr << "paceline-view: no display, drawing off screen\n";
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  if (qgetenv("QT_QPA_PLATFORM").startsWith("offscreen")) qInstallMessageHandler(&show_only_failures);
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
    save_screenshot(options, std::move(drawn));
    return 0;
  }
  Window window;
  window.resize(Window::fitting(options.size, window.screen()->availableSize()));
  window.set_remembering(true);
  for (const QString& path : options.runs) {
    if (options.follow) {
      window.follow(path);
      continue;
    }
    window.open(path, [options, &window](RunPage& page) {
      apply_view(page, options, [&window](const QString& message) { window.show_message(message); });
    });
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
