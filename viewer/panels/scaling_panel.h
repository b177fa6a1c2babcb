// SPDX-License-Identifier: Apache-2.0
// How the run and others of the same work scale: speed-up, efficiency and the laws, as `paceline report` computes them
// from several runs. The user adds the other runs; a worker reads them one after another.
#pragma once

#include <QLabel>
#include <QPushButton>
#include <QStringList>
#include <QTextBrowser>
#include <memory>
#include <vector>

#include "analysis/report/report.h"
#include "viewer/panels/lazy_panel.h"

namespace paceline::viewer {

// The speed-up over the number of ranks, both on logarithmic axes, below the line of the ideal speed-up.
class SpeedUpChart : public QWidget {
 public:
  SpeedUpChart();
  void set_report(std::shared_ptr<const analysis::Report> report);
  // Where a point of the scaling is drawn; only of points that have a speed-up.
  QPointF place_of(double ranks, double speed_up) const;

 protected:
  void paintEvent(QPaintEvent* event) override;

 private:
  std::shared_ptr<const analysis::Report> report_;
  double most_ = 2;  // ranks and speed-up at the ends of the axes
};

class ScalingPanel : public LazyPanel {
  Q_OBJECT

 public:
  ScalingPanel(Document& document, Selection& selection);

  // A run, a table of runs (CSV), or a directory without files, which stands for the runs in it.
  void add(const QString& path);
  // nullptr until it is computed.
  const std::shared_ptr<const analysis::Report>& report() const { return report_; }
  QString text() const { return text_->toPlainText(); }

 protected:
  void refresh() override;

 private:
  using Analyses = std::vector<std::shared_ptr<const analysis::RunAnalysis>>;

  void choose(bool table);
  void clear();
  void read_next();
  void build();
  void fill();

  QStringList waiting_, failures_;  // paths still to be read, and why others could not be
  QStringList known_;               // paths that were added
  Analyses runs_;                   // that were read
  std::vector<analysis::ScalingRun> rows_;
  std::shared_ptr<const analysis::Report> report_;
  QPushButton *add_, *table_, *clear_;
  QLabel* note_;
  QTextBrowser* text_;
  SpeedUpChart* chart_;
};

}  // namespace paceline::viewer
