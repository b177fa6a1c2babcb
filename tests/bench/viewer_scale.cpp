// SPDX-License-Identifier: Apache-2.0
// The goals for large runs, measured on a window of 1920 × 1080 pixels:
//
// - usable within 5 s of the command: the whole run is drawn, and a pan is answered;
// - 300 frames of pan, zoom and scrolling with a median of 8 ms and a 99th percentile of 16 ms. A frame is the change
//   of the view and the painting of everything in the window that it concerns;
// - no event takes the UI thread longer than 50 ms, whatever the user does;
// - a search by name over the whole run within 1 s;
// - no CPU when idle: at most 10 ms in 2 s.
//
// Times of the UI thread are measured twice: as they passed, and as CPU time, which other programs on the machine
// disturb less.
#include "tests/bench/viewer_scale.h"

#include <unistd.h>
#include <QDeadlineTimer>
#include <QDir>
#include <QEvent>
#include <QEventLoop>
#include <QFile>
#include <QMouseEvent>
#include <QScrollBar>
#include <QThread>
#include <QTimer>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <ctime>
#include <functional>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "viewer/panels/panel.h"
#include "viewer/panels/search.h"
#include "viewer/session/loader.h"
#include "viewer/timeline/timeline_widget.h"
#include "viewer/window/window.h"

namespace paceline::viewer {
namespace scale {

constexpr double most_open_s = 5, most_median_ms = 8, most_p99_ms = 16, most_event_ms = 50, most_search_s = 1,
                 most_idle_ms = 10;

double seconds_of(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

// Since it was made.
struct Stopwatch {
  clockid_t cpu_clock;
  double begin = seconds_of(CLOCK_MONOTONIC), cpu_begin = seconds_of(cpu_clock);

  double ms() const { return 1e3 * (seconds_of(CLOCK_MONOTONIC) - begin); }
  double cpu_ms() const { return 1e3 * (seconds_of(cpu_clock) - cpu_begin); }
};

// How long ago this process was started, in seconds, to 10 ms.
double seconds_since_start() {
  QFile file("/proc/self/stat");
  if (!file.open(QIODevice::ReadOnly)) throw std::runtime_error("/proc/self/stat cannot be read");
  const QByteArray text = file.readAll();
  // The name of the program, in parentheses, may have spaces. The start is the 20th word after it, in clock ticks.
  const auto words = text.mid(text.lastIndexOf(')') + 2).split(' ');
  return seconds_of(CLOCK_BOOTTIME) - words.at(19).toDouble() / double(sysconf(_SC_CLK_TCK));
}

double peak_memory_gb() {
  QFile file("/proc/self/status");
  if (!file.open(QIODevice::ReadOnly)) return 0;
  for (const QByteArray& line : file.readAll().split('\n')) {
    if (line.startsWith("VmHWM:")) return line.mid(6).trimmed().split(' ').front().toDouble() / 1e6;
  }
  return 0;
}

double share_of(std::vector<double> values, double share) {
  std::ranges::sort(values);
  return values[static_cast<std::size_t>(share * double(values.size() - 1) + 0.5)];
}

class Bench {
 public:
  Bench(MeasuredApplication& application, bool by_cpu_time) : application_(application), by_cpu_time_(by_cpu_time) {
    std::cout << std::unitbuf;  // each line as soon as it is known
    window_.resize(1920, 1080);
    window_.show();
  }

  bool met() const { return met_; }

  void open(const QString& path) {
    window_.open(path, [this](RunPage& opened) { page_ = &opened; });
    while (page_ == nullptr) {
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents);
      if (window_.findChild<Loader*>() == nullptr && page_ == nullptr) {
        throw std::runtime_error("the run cannot be opened");
      }
    }
    QCoreApplication::processEvents();
    draw();
    timeline_ = page_->findChild<TimelineWidget*>();
    state().time.pan(37);
    draw();
    const double usable = seconds_since_start(), usable_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
    print("slices") << double(page_->run().slices) / 1e6 << " million on " << page_->run().ranks.size() << " ranks\n";
    judge("usable", usable, "s", most_open_s) << "; CPU " << usable_cpu << " s\n";
    finish();
    print("findings") << seconds_since_start() << " s; CPU " << seconds_of(CLOCK_PROCESS_CPUTIME_ID) << " s\n";
    judge_events("longest event of opening");
  }

  // Moves and draws 300 times, as a user would: closer at the pointer, along, away again, and over the rows.
  void draw_frames(const char* what) {
    state().time.show_all();
    timeline_->verticalScrollBar()->setValue(0);
    measure_frames(what, [&](int frame) {
      const int width = state().time.axis().width();
      if (frame < 80) {
        state().time.zoom(0.3 * width, 0.92);
      } else if (frame < 180) {
        state().time.pan(frame % 2 == 0 ? 37 : 90);
      } else if (frame < 260) {
        state().time.zoom(0.6 * width, 1 / 0.92);
      } else {
        scroll(60);
      }
    });
  }

  // Over the rows, from the first one on and back from the last one, in steps that take it through all of them if that
  // needs less than a screen each; at the whole run and closer.
  void scroll_frames(const char* what) {
    state().time.show_all();
    QScrollBar* bar = timeline_->verticalScrollBar();
    bar->setValue(0);
    const int step = std::clamp(bar->maximum() / 250, 40, 600);
    bool up = false;
    measure_frames(what, [&](int frame) {
      if (frame == 150) state().time.zoom(0.5 * state().time.axis().width(), 0.01);
      if (bar->value() == bar->minimum() || bar->value() == bar->maximum()) up = bar->value() != bar->minimum();
      scroll(up ? -step : step);
    });
  }

  // Does one thing after the other as events, and waits after each one until everything that it began is done.
  void act(const std::string& what, const std::vector<std::function<void()>>& actions) {
    application_.forget();
    for (const auto& action : actions) {
      QMetaObject::invokeMethod(&application_, action, Qt::QueuedConnection);
      QCoreApplication::processEvents();
      draw();
    }
    finish();
    judge_events("longest event of " + what);
  }

  void use_everything() {
    act("folding", {[this] { state().arrangement.set_all_collapsed(true); }});
    act("unfolding all ranks", {[this] { state().arrangement.set_all_collapsed(false); }});
    act("selecting a slice", {[this] { select("forward"); }, [this] { select("backward"); }});
    act("selecting a call of all ranks", {[this] { select("MPI_Allreduce"); }});
    std::vector<std::function<void()>> drag;
    const QSize size = timeline_->viewport()->size();
    const int left = state().time.names_width() + 200, y = size.height() / 2;
    drag.emplace_back([=, this] { mouse(QEvent::MouseButtonPress, {left, y}); });
    for (int x = left + 20; x < size.width() - 60; x += 20) {
      drag.emplace_back([=, this] { mouse(QEvent::MouseMove, {x, y}); });
    }
    drag.emplace_back([=, this] { mouse(QEvent::MouseButtonRelease, {size.width() - 60, y}); });
    for (const PanelKind& kind : panel_kinds()) {
      if (kind.place != PanelKind::Place::tab) continue;
      const QString title = kind.title;
      act("opening " + title.toStdString(), {[=, this] { Q_EMIT state().commands.panel_wanted(title); }});
      act("a range beside " + title.toStdString(), drag);
      act("no range beside it", {[this] { state().selection.select_range(std::nullopt); }});
    }
    act("zooming to a slice", {[this] { state().selection.fill_view(); }});
    act("sorting the ranks", {[this] { state().arrangement.sort_ranks(Arrangement::RankOrder::waiting_caused); },
                              [this] { state().arrangement.sort_ranks(Arrangement::RankOrder::number); }});
    act("hiding and showing the panels", {[this] { state().arrangement.set_panels_shown(false); },
                                          [this] { state().arrangement.set_panels_shown(true); }});
  }

  void search() {
    const std::atomic<bool> open = false;
    double longest = 0, cpu = 0;
    for (const char* name : {"downsample", "layer", "MPI_Allreduce", "e", "no slice has this name"}) {
      const Stopwatch searching{CLOCK_PROCESS_CPUTIME_ID};
      const std::size_t hits = find_by_name(page_->run(), name, Ticket(open)).found.size();
      const double ms = searching.ms();
      print("  search for \"" + std::string(name) + "\"")
          << ms << " ms; CPU " << searching.cpu_ms() << " ms; " << hits << " hits\n";
      if (ms > longest) longest = ms, cpu = searching.cpu_ms();
    }
    judge("longest search by name", longest / 1e3, "s", most_search_s) << "; CPU " << cpu / 1e3 << " s\n";
  }

  void idle() {
    wait(500);
    const Stopwatch idle{CLOCK_PROCESS_CPUTIME_ID};
    QEventLoop loop;
    QTimer::singleShot(2000, &loop, &QEventLoop::quit);
    loop.exec();
    judge("CPU in 2 idle seconds", idle.cpu_ms(), "ms", most_idle_ms) << "\n";
    print("peak memory") << peak_memory_gb() << " GB\n";
  }

 private:
  ViewState& state() { return page_->state(); }

  static std::ostream& print(const std::string& what) {
    return std::cout << std::left << std::setw(42) << what << std::right << std::fixed << std::setprecision(1)
                     << std::setw(7);
  }
  std::ostream& judge(const std::string& what, double value, const char* unit, double most) {
    met_ = met_ && value <= most;
    return print(what) << value << ' ' << unit << "  " << (value <= most ? "pass" : "FAIL") << ": at most "
                       << std::setprecision(0) << most << ' ' << unit << std::setprecision(1);
  }
  void judge_events(const std::string& what) {
    const auto &passed = application_.longest(), &cpu = application_.longest_cpu();
    const auto& judged = by_cpu_time_ ? cpu : passed;
    judge(what, judged.ms, "ms", most_event_ms)
        << (by_cpu_time_ ? "; passed " : "; CPU ") << (by_cpu_time_ ? passed : cpu).ms << " ms; event "
        << judged.name.toStdString() << '\n';
    application_.forget();
  }

  // What the next frame would draw: everything in the window that is out of date.
  void draw() {
    QEvent request(QEvent::UpdateRequest);
    QCoreApplication::sendEvent(&window_, &request);
  }
  void scroll(int pixels) { timeline_->verticalScrollBar()->setValue(timeline_->scroll_y() + pixels); }

  void measure_frames(const std::string& what, const std::function<void(int)>& move) {
    std::vector<double> ms, cpu_ms;
    application_.forget();
    for (int frame = 0; frame < 300; ++frame) {
      QCoreApplication::processEvents();
      const Stopwatch watch{CLOCK_THREAD_CPUTIME_ID};
      move(frame);
      draw();
      ms.push_back(watch.ms());
      cpu_ms.push_back(watch.cpu_ms());
    }
    const auto &judged = by_cpu_time_ ? cpu_ms : ms, &other = by_cpu_time_ ? ms : cpu_ms;
    const char* name = by_cpu_time_ ? "; passed " : "; CPU ";
    judge(what + ", median", share_of(judged, 0.5), "ms", most_median_ms) << name << share_of(other, 0.5) << " ms\n";
    judge(what + ", p99", share_of(judged, 0.99), "ms", most_p99_ms) << name << share_of(other, 0.99) << " ms\n";
    judge_events("  longest event meanwhile");
  }

  // Selects the last slice of this name on the main thread of the middle rank.
  void select(const char* name) {
    const Run& run = page_->run();
    const std::size_t rank = run.ranks.size() / 2;
    const auto id = run.trace.names.find(name);
    const auto& slices = run.trace.ranks[rank].tracks.front().slices;
    for (std::size_t i = slices.size(); i-- > 0;) {
      if (run.trace.kind_of(slices, i).name == id) {
        return state().selection.reveal({.rank = rank, .track = 0, .slice = std::uint32_t(i)});
      }
    }
  }

  void mouse(QEvent::Type type, const QPoint& at) {
    QWidget* target = timeline_->viewport();
    const auto button = type == QEvent::MouseMove ? Qt::NoButton : Qt::LeftButton;
    const auto held = type == QEvent::MouseButtonRelease ? Qt::NoButton : Qt::LeftButton;
    QMouseEvent event(type, at, target->mapToGlobal(at), button, held, Qt::ShiftModifier);
    QCoreApplication::sendEvent(target, &event);
  }

  // Handles events for a while.
  static void wait(int ms) {
    for (const QDeadlineTimer end(ms); !end.hasExpired();) {
      QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
      QThread::msleep(1);
    }
  }
  // Handles events until the workers have delivered everything and it is drawn.
  void finish() {
    page_->document().background().finish();
    wait(100);
    page_->document().background().finish();
    draw();
  }

  MeasuredApplication& application_;
  const bool by_cpu_time_;
  bool met_ = true;
  Window window_;
  RunPage* page_ = nullptr;
  TimelineWidget* timeline_ = nullptr;
};

}  // namespace scale

bool MeasuredApplication::notify(QObject* receiver, QEvent* event) {
  const scale::Stopwatch watch{CLOCK_THREAD_CPUTIME_ID};
  const auto type = static_cast<int>(event->type());
  const char* const receiver_class = receiver->metaObject()->className();
  ++depth_;
  const bool done = QApplication::notify(receiver, event);
  --depth_;
  if (depth_ > 0) return done;
  const auto keep = [&](double ms, Event& longest) {
    if (ms > longest.ms) longest = {ms, QString("%1 to %2").arg(type).arg(receiver_class)};
  };
  keep(watch.ms(), longest_);
  keep(watch.cpu_ms(), longest_cpu_);
  return done;
}

bool measure_scale(MeasuredApplication& application, const QString& path, bool by_cpu_time) {
  scale::Bench bench(application, by_cpu_time);
  bench.open(path);
  bench.draw_frames("frames, folded");
  bench.use_everything();
  bench.draw_frames("frames, unfolded");
  bench.scroll_frames("frames, scrolling");
  bench.search();
  bench.idle();
  return bench.met();
}

}  // namespace paceline::viewer
