// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/what_if_panel.h"

#include <QFormLayout>
#include <QHBoxLayout>
#include <QPushButton>
#include <QScrollArea>
#include <cmath>

#include "analysis/report/changes.h"
#include "analysis/report/predictions.h"
#include "analysis/run/run_analysis.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace what_if_panel {

using analysis::GradientSchedule;

QString seconds_text(double seconds) { return duration_text(std::llround(seconds * 1e9)); }

QString change_text(double ratio) {
  return QString("%1%2 %").arg(ratio < 1 ? "−" : "+").arg(std::abs(ratio - 1) * 100, 0, 'f', 1);
}

QString prediction_text(const analysis::WhatIf& base, const analysis::Prediction& found, const QString& options,
                        const QString& path) {
  QString html = QString("<p>A step takes <b>%1</b> instead of %2 on average (%3).")
                     .arg(seconds_text(found.step_s), seconds_text(base.step_s), change_text(found.ratio));
  if (found.ci95) {
    html += QString(" 95 % interval: %1 to %2.").arg(seconds_text(found.ci95->low), seconds_text(found.ci95->high));
  }
  html += QString(" The time per image changes by %1.%2</p><table cellpadding='2'>")
              .arg(change_text(found.per_image), QString::fromStdString(analysis::training_note(found)));
  for (const analysis::MovedPart& part : found.moved) {
    html += QString(
                "<tr><td style='padding-right:16px'>%1</td><td align='right'>%2</td><td>→</td><td align='right'>"
                "%3</td></tr>")
                .arg(QString::fromStdString(part.name).toHtmlEscaped(), seconds_text(part.before_s),
                     seconds_text(part.after_s));
  }
  return html + QString("</table><p><code>paceline whatif %1 %2</code></p>")
                    .arg(path.toHtmlEscaped(), options.toHtmlEscaped());
}

}  // namespace what_if_panel

WhatIfModel what_if_model(const Run& run, const analysis::RunAnalysis& figures) {
  WhatIfModel model;
  if (figures.refused()) {
    model.obstacle = "Events of a main thread were lost, so no replay is possible. Record the run again.";
    return model;
  }
  const auto graph = analysis::dependency_graph(*run.index);
  auto predictor = std::make_shared<const analysis::Predictor>(*run.index, graph, analysis::training_setup(figures));
  if (predictor->program().iterations.empty()) {
    model.obstacle = "No iteration was finished by all ranks. Mark iterations with a range named iteration.";
  } else if (!predictor->usable()) {
    model.obstacle = "The recorded calls do not fit together. Record all ranks without losses.";
  } else {
    for (const std::string& limit : analysis::prediction_limits(figures, *predictor)) {
      model.limits << QString::fromStdString(limit);
    }
    model.predictor = std::move(predictor);
  }
  return model;
}

QString what_if_options(const analysis::Changes& changes, const Run& run) {
  using what_if_panel::GradientSchedule;
  QStringList options;
  const auto number = [&](const char* option, double value) {
    if (value != 1) options << QString("%1 %2").arg(option).arg(value, 0, 'g', 3);
  };
  if (changes.bytes_per_value) options << "--fp16";
  if (changes.schedule == GradientSchedule::overlap) options << "--overlap";
  if (changes.schedule == GradientSchedule::double_buffering) options << "--double-buffering";
  if (changes.schedule == GradientSchedule::blocking) options << "--blocking";
  number("--bandwidth", 1 / changes.byte_time);
  number("--latency", changes.latency);
  number("--batch", changes.batch);
  number("--loader", changes.loader);
  if (changes.ranks) options << QString("--ranks %1").arg(*changes.ranks);
  if (changes.balanced) options << "--balanced";
  for (const std::size_t rank : changes.relieved) {
    options << QString("--relieve %1").arg(run.trace.ranks[rank].rank);
  }
  if (changes.free_communication) options << "--free-communication";
  return options.join(' ');
}

double WhatIfPanel::Slider::factor() const {
  // Two digits, so that the factor is the number that is shown.
  const double factor = std::pow(base, slider->value() / 10.0);
  const double digit = std::pow(10, std::floor(std::log10(factor)) - 1);
  return std::round(factor / digit) * digit;
}

WhatIfPanel::Slider WhatIfPanel::add_slider(QFormLayout* form, const char* label, const char* meaning, double base) {
  Slider made{new QSlider(Qt::Horizontal), new QLabel("× 1"), base};
  made.slider->setRange(-10, 10);
  made.slider->setPageStep(2);
  made.slider->setAccessibleName(label);
  made.slider->setToolTip(meaning);
  made.value->setMinimumWidth(made.value->fontMetrics().horizontalAdvance("× 0.0000"));
  auto* line = new QHBoxLayout;
  line->addWidget(made.slider, 1);
  line->addWidget(made.value);
  form->addRow(label, line);
  connect(made.slider, &QSlider::valueChanged, this, [this, made] {
    made.value->setText(QString("× %1").arg(made.factor(), 0, 'g', 3));
    predict();
  });
  return made;
}

WhatIfPanel::WhatIfPanel(Document& document, Selection& selection) : LazyPanel(document, selection) {
  auto* controls = new QWidget;
  auto* form = new QFormLayout(controls);
  form->setContentsMargins(12, 8, 12, 8);
  form->setVerticalSpacing(3);
  bandwidth_ = add_slider(form, "Network bandwidth", "factor of the network's bandwidth", 10);
  latency_ = add_slider(form, "Network latency", "factor of the network's latency", 10);
  batch_ = add_slider(form, "Images per rank", "factor of the images per rank and iteration", 8);
  loader_ = add_slider(form, "Loader's speed", "factor of the speed of preprocessing", 10);
  const int recorded = int(document.run().trace.ranks.size());
  ranks_ = new QSpinBox;
  ranks_->setRange(1, std::max(1024, 16 * recorded));
  ranks_->setValue(recorded);
  form->addRow("Ranks", ranks_);
  relieved_ = new QSpinBox;
  relieved_->setRange(-1, recorded - 1);
  relieved_->setSpecialValueText("none");
  relieved_->setValue(-1);
  relieved_->setToolTip("this rank is no slower than the others");
  form->addRow("Rank to relieve", relieved_);
  schedule_ = new QComboBox;
  schedule_->addItems({"as recorded", "after backward", "in buckets beside backward", "during the next iteration"});
  form->addRow("Gradients are averaged", schedule_);
  half_ = new QCheckBox("16-bit gradients");
  balanced_ = new QCheckBox("equal work on all ranks");
  free_ = new QCheckBox("transfers take no time");
  for (QCheckBox* box : {half_, balanced_, free_}) {
    form->addRow("", box);
    connect(box, &QCheckBox::toggled, this, [this] { predict(); });
  }
  auto* nothing = new QPushButton("Back to the recorded run");
  connect(nothing, &QPushButton::clicked, this, [this] { reset(); });
  form->addRow("", nothing);
  connect(ranks_, &QSpinBox::valueChanged, this, [this] { predict(); });
  connect(relieved_, &QSpinBox::valueChanged, this, [this] { predict(); });
  connect(schedule_, &QComboBox::currentIndexChanged, this, [this] { predict(); });
  result_ = new QTextEdit;  // lays a long table out once, where a label tries several widths
  result_->setReadOnly(true);
  result_->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  result_->setTabChangesFocus(true);
  result_->setAccessibleName("Prediction");
  result_->setFrameShape(QFrame::NoFrame);
  result_->viewport()->setAutoFillBackground(false);
  result_->document()->setDocumentMargin(12);
  show("computing…");
  auto* area = new QScrollArea;
  area->setWidgetResizable(true);
  area->setFrameShape(QFrame::NoFrame);
  area->setWidget(controls);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(area, 1);
  layout->addWidget(result_, 1);
  connect(&document, &Document::analysed, this, [this] { set_stale(); });
  connect(&document, &Document::reported, this, [this] {
    if (ready_ && !changes().any()) show_predictions();
  });
}

void WhatIfPanel::refresh() {
  if (document_.insight() == nullptr) return;
  document_.want_report();
  task_.start([run = document_.shared_run(),
               insight = document_.shared_insight()](const Ticket&) { return what_if_model(*run, insight->figures); },
              [this](WhatIfModel model) {
                model_ = std::move(model);
                ready_ = true;
                predict();
              });
}

analysis::Changes WhatIfPanel::changes() const {
  using analysis::GradientSchedule;
  analysis::Changes changes;
  if (half_->isChecked()) changes.bytes_per_value = 2;
  constexpr GradientSchedule schedules[] = {GradientSchedule::blocking, GradientSchedule::overlap,
                                            GradientSchedule::double_buffering};
  if (schedule_->currentIndex() > 0) changes.schedule = schedules[schedule_->currentIndex() - 1];
  changes.byte_time = 1 / bandwidth_.factor();
  changes.latency = latency_.factor();
  changes.batch = batch_.factor();
  changes.loader = loader_.factor();
  changes.balanced = balanced_->isChecked();
  changes.free_communication = free_->isChecked();
  if (ranks_->value() != int(document_.run().trace.ranks.size())) changes.ranks = ranks_->value();
  if (relieved_->value() >= 0) changes.relieved = {std::size_t(relieved_->value())};
  return changes;
}

void WhatIfPanel::reset() {
  resetting_ = true;
  for (const Slider& one : {bandwidth_, latency_, batch_, loader_}) one.slider->setValue(0);
  ranks_->setValue(int(document_.run().trace.ranks.size()));
  relieved_->setValue(-1);
  schedule_->setCurrentIndex(0);
  for (QCheckBox* box : {half_, balanced_, free_}) box->setChecked(false);
  resetting_ = false;
  predict();
}

void WhatIfPanel::predict() {
  if (!ready_ || resetting_) return;
  if (!model_.predictor) return show("<p>" + model_.obstacle.toHtmlEscaped() + "</p>");
  const analysis::Changes wanted = changes();
  if (!wanted.any()) {
    task_.cancel();
    return show_predictions();
  }
  const QString options = what_if_options(wanted, document_.run());
  task_.start(
      [predictor = model_.predictor, wanted, options, path = document_.run().path](const Ticket&) {
        const std::string obstacle = predictor->obstacle(wanted);
        if (!obstacle.empty()) return QString("<p>No prediction: %1.</p>").arg(QString::fromStdString(obstacle));
        return what_if_panel::prediction_text(predictor->unchanged(), predictor->predict(wanted), options, path);
      },
      [this](const QString& text) {
        QString limits;
        for (const QString& limit : model_.limits) limits += "<p>" + limit.toHtmlEscaped() + "</p>";
        show(text + limits);
      });
}

void WhatIfPanel::show(const QString& html) {
  if (html == shown_) return;
  shown_ = html;
  result_->setHtml(html);
}

void WhatIfPanel::show_predictions() {
  const auto& report = document_.report();
  if (!report) return show("<p>Move a slider. The predictions of the report are being computed…</p>");
  const auto& what_if = report->runs.front().what_if;
  if (!what_if) return show("<p>The report has no predictions for this run. Move a slider.</p>");
  QString html = QString("<p>%1</p><p>A step takes %2. The predictions of the report:</p><table cellpadding='2'>")
                     .arg(QString::fromStdString(report->verdict.change).toHtmlEscaped(),
                          what_if_panel::seconds_text(what_if->step_s));
  for (const analysis::Prediction& one : first_change_first(report->runs.front()).predictions) {
    html += QString("<tr><td style='padding-right:16px'>%1</td><td align='right'>%2</td><td align='right'>%3</td></tr>")
                .arg(QString::fromStdString(analysis::marked_title(one)).toHtmlEscaped(),
                     what_if_panel::seconds_text(one.step_s), what_if_panel::change_text(one.ratio));
  }
  show(html + "</table>");
}

}  // namespace paceline::viewer
