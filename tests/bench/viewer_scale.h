// SPDX-License-Identifier: Apache-2.0
// How the window of a large run behaves: see viewer_scale.cpp.
#pragma once

#include <QApplication>
#include <QString>

namespace paceline::viewer {

// Measures how long the UI thread handles each event; nested events count with the outer one.
class MeasuredApplication : public QApplication {
 public:
  struct Event {
    double ms = 0;
    QString name;  // "12 to paceline::viewer::Overview": the type's number and the receiver's class
  };

  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override;

  // The longest event since the last call of forget(), by the time that passed and by the CPU time of the thread.
  const Event& longest() const { return longest_; }
  const Event& longest_cpu() const { return longest_cpu_; }
  void forget() { longest_ = longest_cpu_ = {}; }

 private:
  int depth_ = 0;
  Event longest_, longest_cpu_;
};

// Opens the run in a window of 1920 × 1080 pixels and prints each figure beside its goal. `by_cpu_time`: frames and
// events are judged by the CPU time of the UI thread, for a machine that does other work at the same time. Returns
// whether all goals were met. Throws Error if the run cannot be opened.
bool measure_scale(MeasuredApplication& application, const QString& path, bool by_cpu_time);

}  // namespace paceline::viewer
