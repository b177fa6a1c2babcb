// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/document.h"

#include <thread>
#include <vector>

#include "analysis/report/build.h"

namespace paceline::viewer {
namespace document_parts {

std::shared_ptr<const analysis::Report> report_of(const Run& run) {
  std::vector<analysis::RunAnalysis> runs;
  runs.push_back(analysis::analyse_run(*run.index, run.path.toStdString()));
  return std::make_shared<const analysis::Report>(analysis::build_report(std::move(runs)));
}

}  // namespace document_parts

Document::Document(std::shared_ptr<const Run> run) : run_(std::move(run)) {
  analysis_.start([run = run_](const Ticket&) { return std::make_shared<const Insight>(examine(*run)); },
                  [this](std::shared_ptr<const Insight> found) {
                    insight_ = std::move(found);
                    Q_EMIT analysed();
                    if (run_->slices <= most_slices_at_once) want_report();
                  });
}

// Freeing gigabytes takes long enough to be noticed, so a thread of its own does it.
Document::~Document() {
  if (run_->slices <= most_slices_at_once) return;
  std::thread([run = std::move(run_), insight = std::move(insight_)] {}).detach();
}

void Document::want_report() {
  if (std::exchange(report_wanted_, true)) return;
  reporting_.start([run = run_](const Ticket&) { return document_parts::report_of(*run); },
                   [this](std::shared_ptr<const analysis::Report> report) {
                     report_ = std::move(report);
                     Q_EMIT reported();
                   });
}

}  // namespace paceline::viewer
