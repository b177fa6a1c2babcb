// How the window of a large run behaves: see viewer_scale.cpp.
#pragma once

#include <QApplication>
#include <QString>

namespace paceline::viewer {

// Measures how long the UI thread handles each event; nested events count with the outer one.
class MeasuredApplication : public QApplication {
 public:
  using QApplication::QApplication;
  bool notify(QObject* receiver, QEvent* event) override;

  double longest_ms() const { return longest_ms_; }
  const QString& longest_event() const { return longest_event_; }
  void forget() { longest_ms_ = 0; }

 private:
  int depth_ = 0;
  double longest_ms_ = 0;
  QString longest_event_;
};

// Opens the run and prints when the window can be used, the times of 300 scripted frames of pan and zoom with folded
// and with unfolded ranks, the longest time that the UI thread took for anything, the time of a search by name over the
// whole run, and the CPU time of two idle seconds. Throws Error if the run cannot be opened.
void measure_scale(MeasuredApplication& application, const QString& path);

}  // namespace paceline::viewer
