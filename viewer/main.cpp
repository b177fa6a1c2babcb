// paceline-view: the desktop viewer, and its pictures without a display.
#include <QApplication>
#include <QFont>
#include <cstdlib>
#include <iostream>

#include "profiler/format/error.h"
#include "viewer/drawing/appearance.h"
#include "viewer/options.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace {

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

// Off screen Qt warns of what only a desktop has.
void show_only_failures(QtMsgType type, const QMessageLogContext&, const QString& message) {
  if (type == QtCriticalMsg || type == QtFatalMsg) std::cerr << "paceline-view: " << message.toStdString() << '\n';
}

// The range and the selection that the command line asks for.
void apply_view(RunPage& page, const Options& options) {
  TimelineWidget& timeline = page.timeline();
  if (options.fold) timeline.set_all_collapsed(true);
  if (options.counters) timeline.set_counters_unfolded(true);
  if (options.iterations && !timeline.show_iterations(options.iterations->first, options.iterations->second)) {
    throw Error(QString("--iterations: %1 has no iteration from %2 to %3")
                    .arg(page.run().path)
                    .arg(options.iterations->first)
                    .arg(options.iterations->second)
                    .toStdString());
  }
  if (options.from_ns || options.to_ns) {
    const TimeRange view = timeline.axis().visible();
    const TimeRange wanted{options.from_ns.value_or(view.begin_ns), options.to_ns.value_or(view.end_ns)};
    if (wanted.length() <= 0) throw Error("--from, --to: the view would end before it begins");
    timeline.jump_to(wanted);
  }
  if (!options.select.isEmpty() && !page.select_name(options.select)) {
    throw Error("--select: " + page.run().path.toStdString() + " has no slice named '" + options.select.toStdString() +
                "'");
  }
}

void save_screenshot(const Options& options, std::shared_ptr<const Run> run) {
  Window window;
  RunPage* page = window.show_run(std::move(run));
  window.resize(options.size);
  window.show();
  QApplication::processEvents();
  apply_view(*page, options);
  page->timeline().clearFocus();
  QApplication::processEvents();
  if (!window.grab().save(options.screenshot)) {
    throw Error(options.screenshot.toStdString() +
                ": the picture could not be written: is the directory there, and "
                "does the name end with .png?");
  }
}

int run(int argc, char** argv) {
  const Options options = parse_options(argc, argv);
  std::shared_ptr<const Run> drawn;  // opened first: what cannot be read is then the only thing said
  if (!options.screenshot.isEmpty()) drawn = open_run(options.runs.front());
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY") && !is_set("QT_QPA_PLATFORM")) {
    if (options.screenshot.isEmpty()) {
      throw Error("no display: neither DISPLAY nor WAYLAND_DISPLAY is set; use --screenshot FILE.png, or ssh -X");
    }
    // Qt aborts where there is no display; this has to come before its application.
    std::cerr << "paceline-view: no display, drawing off screen\n";
    qputenv("QT_QPA_PLATFORM", "offscreen");
  }
  if (qgetenv("QT_QPA_PLATFORM").startsWith("offscreen")) qInstallMessageHandler(&show_only_failures);
  QApplication application(argc, argv);
  QApplication::setApplicationName("paceline-view");
  const bool offscreen = QApplication::platformName() == "offscreen";
  // No desktop, no settings of one.
  apply_theme(options.theme.isEmpty() && offscreen ? QString("light") : options.theme);
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
  window.resize(options.size);
  for (const QString& path : options.runs) {
    window.open(path, [options](RunPage& page) { apply_view(page, options); });
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
