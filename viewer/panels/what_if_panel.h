// SPDX-License-Identifier: Apache-2.0
// The step time if something about the run were different, with a slider or a box for each change. Without a change:
// the predictions of the report, the best one first.
#pragma once

#include <QCheckBox>
#include <QComboBox>
#include <QLabel>
#include <QSlider>
#include <QSpinBox>
#include <QTextEdit>
#include <memory>

#include "analysis/graph/what_if.h"
#include "viewer/panels/lazy_panel.h"

class QFormLayout;

namespace paceline::viewer {

// The run as a program that can be replayed, or why it cannot.
struct WhatIfModel {
  std::shared_ptr<const analysis::Predictor> predictor;
  QString obstacle;
  QStringList limits;  // of the predictions, whole sentences
};
WhatIfModel what_if_model(const Run& run, const analysis::RunAnalysis& figures);

// The options of `paceline whatif` for these changes. `run` gives the rank that is relieved its number.
QString what_if_options(const analysis::Changes& changes, const Run& run);

class WhatIfPanel : public LazyPanel {
  Q_OBJECT

 public:
  WhatIfPanel(Document& document, Selection& selection);

  analysis::Changes changes() const;
  QString text() const { return shown_; }

 protected:
  void refresh() override;

 private:
  struct Slider {
    QSlider* slider;
    QLabel* value;
    double base;  // the factor is base to the power of the position ÷ 10
    double factor() const;
  };
  Slider add_slider(QFormLayout* form, const char* label, const char* meaning, double base);
  void reset();
  void predict();
  void show_predictions();  // those of the report
  void show(const QString& html);

  WhatIfModel model_;
  bool ready_ = false, resetting_ = false;
  Slider bandwidth_, latency_, batch_, loader_;
  QSpinBox *ranks_, *relieved_;
  QComboBox* schedule_;
  QCheckBox *half_, *balanced_, *free_;
  QTextEdit* result_;
  QString shown_;
};

}  // namespace paceline::viewer
