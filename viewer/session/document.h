// SPDX-License-Identifier: Apache-2.0
// What is open: a run, its analysis and its report, and the worker threads that compute for its page. Widgets hold a
// reference; the page owns it and outlives them.
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <utility>

#include "analysis/report/report.h"
#include "viewer/session/background.h"
#include "viewer/session/insight.h"
#include "viewer/session/run.h"

namespace paceline::viewer {

class Document : public QObject {
  Q_OBJECT

 public:
  // Begins with the analysis of the run.
  explicit Document(std::shared_ptr<const Run> run);
  ~Document() override;

  const Run& run() const { return *run_; }
  // For work in other threads.
  const std::shared_ptr<const Run>& shared_run() const { return run_; }
  Background& background() { return background_; }
  // nullptr until analysed(); does not change after it.
  const Insight* insight() const { return insight_.get(); }
  const std::shared_ptr<const Insight>& shared_insight() const { return insight_; }
  // The whole report, with the critical path and the predictions, which take longer than the insight. nullptr until
  // reported(); does not change after it.
  const std::shared_ptr<const analysis::Report>& report() const { return report_; }
  // Begins to compute the report, unless that has begun. Happens by itself for runs below this size.
  void want_report();
  static constexpr std::uint64_t most_slices_at_once = 10'000'000;

 Q_SIGNALS:
  void analysed();
  void reported();
  void row_ready();  // a row's index has arrived: rows may be taller, and are to be drawn again

 private:
  std::shared_ptr<const Run> run_;
  std::shared_ptr<const Insight> insight_;
  Background background_;
  std::shared_ptr<const analysis::Report> report_;
  bool report_wanted_ = false;
  Task analysis_{background_}, reporting_{background_};
};

// A value that is made when it is first asked for: at once if that is cheap, else by a worker, which is followed by
// Document::row_ready().
template <class Value>
class OnDemand {
 public:
  explicit OnDemand(Document& document) : document_(document), task_(document.background()) {}

  // nullptr while a worker makes it. `make` is called in any thread and refers to nothing but the run; `slices` is how
  // many slices it has to read.
  template <class Make>
  const Value* get(std::size_t slices, Make make) {
    constexpr std::size_t cheap = 20'000;  // some 0.2 ms
    if (!value_ && slices <= cheap) value_ = make();
    if (!value_ && !task_.busy()) {
      task_.start([make, run = document_.shared_run()](const Ticket&) { return make(); },
                  [this](Value made) {
                    value_ = std::move(made);
                    Q_EMIT document_.row_ready();
                  });
    }
    return value_ ? &*value_ : nullptr;
  }

  // The value is to be made anew.
  void reset() {
    task_.cancel();
    value_.reset();
  }
  const Value* made() const { return value_ ? &*value_ : nullptr; }

 private:
  Document& document_;
  Task task_;
  std::optional<Value> value_;
};

}  // namespace paceline::viewer
