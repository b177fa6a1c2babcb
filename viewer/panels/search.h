// SPDX-License-Identifier: Apache-2.0
// Finds slices and marks by name in the whole run, not only in the part in view, and filters the rows by name.
#pragma once

#include <QLabel>
#include <QLineEdit>
#include <QToolButton>
#include <QWidget>
#include <memory>
#include <vector>

#include "viewer/session/document.h"
#include "viewer/session/view_state.h"

namespace paceline::viewer {

struct Hits {
  std::vector<SliceRef> found;  // by start: the first `limit` of the run
  bool more = false;            // there are more than that

  static constexpr std::size_t limit = 1'000'000;
};

// Slices and marks whose names contain the text or fit it as a regular expression, whatever the case; none for an empty
// text. Returns early if cancelled.
// Cost: linear in the kinds, in the slices up to the last hit that is kept and n log n in these hits, on all CPUs.
Hits find_by_name(const Run& run, const QString& text, const Ticket& ticket, std::size_t limit = Hits::limit);

class SearchBar : public QWidget {
  Q_OBJECT

 public:
  SearchBar(Document& document, ViewState& state);

  // Goes `steps` hits further from the current one, backwards if negative. Searches first if the text is new.
  void step(int steps);
  const Hits& hits() const { return *hits_; }

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void search(int steps);  // and then goes to a hit
  void go(int steps);
  void show_count();
  void filter(bool on);

  Document& document_;
  ViewState& state_;
  Task task_, filtering_;
  QToolButton* filter_;
  QLineEdit* text_;
  QLabel* count_;
  std::shared_ptr<const Hits> hits_ = std::make_shared<const Hits>();
  QString searched_;
  std::ptrdiff_t current_ = -1;
};

}  // namespace paceline::viewer
