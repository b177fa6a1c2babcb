// SPDX-License-Identifier: Apache-2.0
// The part of the window that opens two runs on one page.
#include <QTabWidget>
#include <utility>

#include "viewer/comparison/choose_runs.h"
#include "viewer/comparison/pair_loader.h"
#include "viewer/session/recent_runs.h"
#include "viewer/window/loading_page.h"
#include "viewer/window/window.h"

namespace paceline::viewer {

QStringList Window::open_paths() const {
  QStringList paths;
  if (const RunPage* page = current_page()) paths << page->run().path;
  for (int tab = 0; tab < tabs_->count(); ++tab) {
    if (const auto* page = qobject_cast<RunPage*>(tabs_->widget(tab))) paths << page->run().path;
  }
  paths.removeDuplicates();
  return paths;
}

void Window::choose_runs_to_compare() {
  QStringList known = open_paths();
  for (const RunSource& run : recent_runs()) {
    if (!run.merged) known << run.path();
  }
  known.removeDuplicates();
  ChooseRuns dialog(known, this);
  if (dialog.exec() == QDialog::Accepted) compare(dialog.a(), dialog.b());
}

void Window::compare(const QString& a, const QString& b, std::function<void(ComparisonPage&)> opened) {
  const auto to_open = [this](const QString& path) {
    RunToOpen wanted{.path = path};
    for (int tab = 0; tab < tabs_->count(); ++tab) {
      auto* page = qobject_cast<RunPage*>(tabs_->widget(tab));
      if (page != nullptr && page->run().path == path) wanted.run = page->document().shared_run();
    }
    return wanted;
  };
  auto* page = new LoadingPage(a + " and " + b);
  auto* loader = new PairLoader(to_open(a), to_open(b), page);  // ends with the page
  connect(page, &LoadingPage::cancelled, this, [this, page, loader] {
    loader->cancel();
    close_tab(tabs_->indexOf(page));
  });
  connect(loader, &PairLoader::progressed, page, &LoadingPage::show_progress);
  connect(loader, &PairLoader::rank_progressed, page, &LoadingPage::show_rank);
  connect(loader, &PairLoader::loaded, page,
          [this, page, opened](std::shared_ptr<const Run> run_a, std::shared_ptr<const Run> run_b) {
            ComparisonPage* shown = show_comparison(std::move(run_a), std::move(run_b), page);
            try {
              if (opened) opened(*shown);
            } catch (const std::exception& error) {
              show_message(error.what());
            }
          });
  connect(loader, &PairLoader::failed, page, [this, page](const QString& why) {
    show_failure(page, "The runs could not be compared", why, "Comparison");
  });
  put(page, "Comparison");
  loader->start();
}

ComparisonPage* Window::show_comparison(std::shared_ptr<const Run> a, std::shared_ptr<const Run> b,
                                        QWidget* instead_of) {
  auto* page = new ComparisonPage(std::move(a), std::move(b));
  watch_status(page);
  if (instead_of != nullptr) {
    replace(instead_of, page, page->title());
  } else {
    put(page, page->title());
  }
  return page;
}

}  // namespace paceline::viewer
