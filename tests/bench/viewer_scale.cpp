// The goals for large runs, measured on a window of 1920 × 1080 pixels: usable within 5 s, frames with a median of 8 ms
// and a 99th percentile of 16 ms, nothing on the UI thread longer than 50 ms, a search within 1 s, and no CPU when
// idle.
//
// Every time is printed twice: as it passed, and as CPU time, which other programs on the machine disturb less.
#include "tests/bench/viewer_scale.h"

#include <QDeadlineTimer>
#include <QEvent>
#include <QEventLoop>
#include <QScrollBar>
#include <QThread>
#include <QTimer>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <vector>

#include "viewer/panels/search.h"
#include "viewer/session/loader.h"
#include "viewer/timeline/timeline_widget.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace scale {

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

// Since it was made.
struct Stopwatch {
  clockid_t cpu_clock;
  double begin = seconds_of(CLOCK_MONOTONIC), cpu_begin = seconds_of(cpu_clock);

  double seconds() const { return seconds_of(CLOCK_MONOTONIC) - begin; }
  double cpu_seconds() const { return seconds_of(cpu_clock) - cpu_begin; }
};

double share_of(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * double(values.size() - 1) + 0.5)];
}

std::ostream& print(const char* what) {
  return std::cout << std::left << std::setw(34) << what << std::right << std::fixed << std::setprecision(1);
}

void print_ms(const char* what, const Stopwatch& watch) {
  print(what) << 1e3 * watch.seconds() << " ms, CPU " << 1e3 * watch.cpu_seconds() << " ms\n";
}

// Moves and draws 300 times, as a user would: closer at the pointer, along, away again, and over the rows.
void draw_frames(const char* what, RunPage& page, TimelineWidget& timeline) {
  ViewState& state = page.state();
  std::vector<double> ms, cpu_ms;
  state.show_all();
  for (int frame = 0; frame < 300; ++frame) {
    const Stopwatch watch{CLOCK_THREAD_CPUTIME_ID};
    const int width = state.axis().width();
    if (frame < 80) {
      state.zoom(0.3 * width, 0.92);
    } else if (frame < 180) {
      state.pan(frame % 2 == 0 ? 37 : 90);
    } else if (frame < 260) {
      state.zoom(0.6 * width, 1 / 0.92);
    } else {
      timeline.verticalScrollBar()->setValue(timeline.scroll_y() + 60);
    }
    timeline.viewport()->repaint();
    ms.push_back(1e3 * watch.seconds());
    cpu_ms.push_back(1e3 * watch.cpu_seconds());
    QCoreApplication::processEvents();
  }
  print(what) << "median " << share_of(ms, 0.5) << " ms, p99 " << share_of(ms, 0.99) << " ms; CPU median "
              << share_of(cpu_ms, 0.5) << " ms, p99 " << share_of(cpu_ms, 0.99) << " ms\n";
}

// Handles events for a while.
void wait(int ms) {
  for (const QDeadlineTimer end(ms); !end.hasExpired();) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    QThread::msleep(1);
  }
}

}  // namespace scale

bool MeasuredApplication::notify(QObject* receiver, QEvent* event) {
  const scale::Stopwatch watch{CLOCK_THREAD_CPUTIME_ID};
  const QString name = QString("%1 to %2").arg(int(event->type())).arg(receiver->metaObject()->className());
  ++depth_;
  const bool done = QApplication::notify(receiver, event);
  --depth_;
  if (depth_ == 0 && 1e3 * watch.cpu_seconds() > longest_ms_) {
    longest_ms_ = 1e3 * watch.cpu_seconds();
    longest_event_ = name;
  }
  return done;
}

void measure_scale(MeasuredApplication& application, const QString& path) {
  using namespace scale;
  std::cout << std::unitbuf;  // each line as soon as it is known
  Stopwatch opening{CLOCK_PROCESS_CPUTIME_ID};
  Window window;
  window.resize(1920, 1080);
  window.show();
  RunPage* page = nullptr;
  double usable = 0, usable_cpu = 0;
  window.open(path, [&](RunPage& opened) { page = &opened; });
  while (page == nullptr) {
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
    if (window.findChild<Loader*>() == nullptr && page == nullptr) throw std::runtime_error("the run cannot be opened");
  }
  QCoreApplication::processEvents();
  usable = opening.seconds(), usable_cpu = opening.cpu_seconds();
  print("slices") << double(page->run().slices) / 1e6 << " million on " << page->run().ranks.size() << " ranks\n";
  print("usable after") << usable << " s, CPU " << usable_cpu << " s\n";
  auto* timeline = page->findChild<TimelineWidget*>();
  page->document().background().finish();
  print("findings after") << opening.seconds() << " s, CPU " << opening.cpu_seconds() << " s\n";

  draw_frames("frames, folded", *page, *timeline);
  page->state().set_all_collapsed(false);
  draw_frames("frames, unfolded, first time", *page, *timeline);
  page->document().background().finish();
  draw_frames("frames, unfolded", *page, *timeline);

  const std::atomic<bool> open = false;
  const Stopwatch searching{CLOCK_THREAD_CPUTIME_ID};
  const std::size_t hits = find_by_name(page->run(), "downsample", Ticket(open)).found.size();
  print_ms("search by name", searching);
  print("hits") << hits << '\n';

  const Stopwatch selecting{CLOCK_THREAD_CPUTIME_ID};
  page->state().reveal({.rank = 0, .track = 0, .slice = 0});
  print_ms("selecting a slice, UI thread", selecting);
  page->document().background().finish();
  wait(500);
  print("longest event of the UI thread")
      << application.longest_ms() << " ms of CPU (event " << application.longest_event().toStdString() << ")\n";
  const Stopwatch idle{CLOCK_PROCESS_CPUTIME_ID};
  QEventLoop loop;
  QTimer::singleShot(2000, &loop, &QEventLoop::quit);
  loop.exec();
  print("CPU in 2 idle seconds") << 1e3 * idle.cpu_seconds() << " ms\n";
}

}  // namespace paceline::viewer
