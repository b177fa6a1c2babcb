// SPDX-License-Identifier: Apache-2.0
// Two runs on one page, one above the other, on coupled axes, with the differences by name below them.
#pragma once

#include <QLabel>
#include <QSpinBox>
#include <memory>

#include "viewer/comparison/coupling.h"
#include "viewer/comparison/differences_table.h"
#include "viewer/session/document.h"
#include "viewer/session/tab_page.h"
#include "viewer/timeline/timeline_widget.h"

namespace paceline::viewer {

class ComparisonPage : public TabPage {
  Q_OBJECT

 public:
  ComparisonPage(std::shared_ptr<const Run> a, std::shared_ptr<const Run> b);
  ~ComparisonPage() override;

  // The view of the timeline that has the keyboard, else that of run A.
  ViewState& state() override;
  QString title() const override;
  QString status() const override;

  ViewState& state_of_a() { return a_.state; }
  ViewState& state_of_b() { return b_.state; }
  Coupling& coupling() { return coupling_; }
  DifferencesTable& table() { return *table_; }
  // The verdict on the step, or why there is none, and how the runs are aligned.
  QString verdict() const { return verdict_->text(); }
  QString hint() const { return hint_->text(); }

  // Handles events until both runs are analysed and the table is filled: for pictures and tests.
  void finish();
  bool idle();

 private:
  struct Side {
    explicit Side(std::shared_ptr<const Run> run) : document(std::move(run)), state(document.run()) {}
    Document document;
    ViewState state;
    TimelineWidget* timeline = nullptr;
  };

  QWidget* make_side(Side& side, const QString& letter);
  QWidget* make_heading();
  void compare();
  void choose(int number);  // of the iteration, from the field
  void show_alignment();

  Side a_, b_;
  Coupling coupling_;
  Task comparing_;
  QLabel *verdict_ = nullptr, *hint_ = nullptr;
  QSpinBox* iteration_ = nullptr;
  DifferencesTable* table_ = nullptr;
};

}  // namespace paceline::viewer
