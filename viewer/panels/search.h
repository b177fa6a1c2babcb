// Finds slices and marks by name in the whole run, not only in the part in view.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QWidget>
#include <memory>
#include <vector>

#include "viewer/session/run.h"

namespace paceline::viewer {

struct Hits {
  std::vector<SliceRef> found;  // by start; at most `limit`
  bool more = false;            // there were more than that

  static constexpr std::size_t limit = 1'000'000;
};

// Names that contain the text, whatever the case; none for an empty text. Cost: linear in the slices, n log n in hits.
Hits find_by_name(const Run& run, const QString& text);

class SearchBar : public QWidget {
  Q_OBJECT

 public:
  explicit SearchBar(std::shared_ptr<const Run> run, QWidget* parent = nullptr);

  void start();  // takes the keyboard
  // To the next hit (or by any number of steps, either way) from the current one.
  void step(int steps);
  const Hits& hits() const { return hits_; }

 Q_SIGNALS:
  void hit_chosen(const SliceRef& slice);
  void left();  // Escape: the keyboard goes back to the timeline

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search();
  void show_count();

  std::shared_ptr<const Run> run_;
  QLineEdit* text_;
  QLabel* count_;
  Hits hits_;
  QString searched_;
  std::ptrdiff_t current_ = -1;
};

}  // namespace paceline::viewer
