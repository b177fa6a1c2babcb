// SPDX-License-Identifier: Apache-2.0
#include "viewer/window/window.h"

#include <QApplication>
#include <QClipboard>
#include <QDir>
#include <QDragEnterEvent>
#include <QFileDialog>
#include <QFileInfo>
#include <QMenuBar>
#include <QMimeData>
#include <QPushButton>
#include <QScreen>
#include <QStatusBar>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "viewer/drawing/appearance.h"
#include "viewer/session/loader.h"
#include "viewer/session/recent_runs.h"
#include "viewer/session/view_file.h"
#include "viewer/text/cut_label.h"
#include "viewer/timeline/accessible_timeline.h"
#include "viewer/window/command_palette.h"
#include "viewer/window/exports.h"
#include "viewer/window/follower.h"
#include "viewer/window/go_to_dialog.h"
#include "viewer/window/loading_page.h"
#include "viewer/window/shortcuts.h"

namespace paceline::viewer {
namespace {

constexpr const char* source_property = "source";  // of a page: how its run is opened again

QVBoxLayout* centred(QWidget* page) {
  auto* layout = new QVBoxLayout(page);
  layout->setAlignment(Qt::AlignCenter);
  layout->setSpacing(12);
  return layout;
}

}  // namespace

Window::Window() {
  install_accessible_timeline();
  setWindowTitle("Paceline");
  resize(fitting({1600, 900}, screen()->availableSize()));
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setTabsClosable(true);
  tabs_->setTabBarAutoHide(true);
  setCentralWidget(tabs_);
  status_ = new CutLabel;
  status_->setContentsMargins(8, 0, 8, 0);
  statusBar()->addWidget(status_, 1);
  statusBar()->setSizeGripEnabled(false);
  connect(tabs_, &QTabWidget::currentChanged, this, [this] { page_changed(); });
  connect(tabs_, &QTabWidget::tabCloseRequested, this, [this](int index) { close_tab(index); });
  setAcceptDrops(true);
  make_menus();
  make_empty_page();
}

QSize Window::fitting(QSize wanted, QSize screen) {
  constexpr int frame = 40;  // of the window and its title
  return wanted.boundedTo({screen.width(), screen.height() - frame});
}

RunPage* Window::current_page() const { return qobject_cast<RunPage*>(tabs_->currentWidget()); }

TabPage* Window::current_tab() const { return qobject_cast<TabPage*>(tabs_->currentWidget()); }

void Window::make_menus() {
  for (const char* title : {"&File", "&View", "&Go", "&Panels", "&Help"}) {
    auto* menu = menuBar()->addMenu(title);
    const Action* above = nullptr;
    for (const Action& action : action_table()) {
      if (action.menu != QString(title)) continue;
      if (above != nullptr && above->section != QString(action.section)) menu->addSeparator();
      above = &action;
      auto* entry = menu->addAction(action.text, this, [this, &action] { act(action); });
      if (action.input == Action::Input::window) {
        QList<QKeySequence> keys;
        for (const QString& text : QString(action.keys).split(' ')) keys << QKeySequence(text);
        entry->setShortcuts(keys);
      } else {  // only shown here: the timeline takes the key while it has the keyboard
        entry->setText(QString(action.text) + "\t" + keys_text(action));
      }
      if (action.window != WindowAction::open_latest) continue;
      recent_ = menu->addMenu("Open &recent");
      connect(recent_, &QMenu::aboutToShow, this, &Window::fill_recent);
    }
  }
}

void Window::fill_recent() {
  recent_->clear();
  for (const RunSource& run : recent_runs()) {
    recent_->addAction(run.path().replace("&", "&&"), this, [this, run] { open_source(run); });
  }
  if (recent_->isEmpty()) recent_->addAction("No run was opened yet")->setEnabled(false);
}

void Window::act(const Action& action) {
  TabPage* page = current_tab();
  if (action.view != nullptr && page != nullptr) action.view(page->state());
  switch (action.window) {
    case WindowAction::none:
      break;
    case WindowAction::open_directory:
    case WindowAction::open_file:
    case WindowAction::open_latest:
      act_on_files(action.window);
      break;
    case WindowAction::merge_files: {
      const QStringList paths = QFileDialog::getOpenFileNames(this, "Traces that are one run");
      if (!paths.isEmpty()) merge(paths);
      break;
    }
    case WindowAction::compare_runs:
      choose_runs_to_compare();
      break;
    case WindowAction::close:
      close_tab(tabs_->currentIndex());
      break;
    case WindowAction::quit:
      close();
      break;
    case WindowAction::theme_light:
      set_theme("light");
      break;
    case WindowAction::theme_dark:
      set_theme("dark");
      break;
    case WindowAction::theme_system:
      set_theme({});
      break;
    case WindowAction::larger:
      change_scale(0.25);
      break;
    case WindowAction::smaller:
      change_scale(-0.25);
      break;
    case WindowAction::link_tabs:
      linked_ = !linked_;
      show_message(linked_ ? "The tabs are linked: the next one shows the same iteration, time, ranks and slice."
                           : "The tabs are no longer linked.");
      break;
    case WindowAction::show_palette: {
      CommandPalette palette(this);
      if (palette.exec() == QDialog::Accepted && palette.chosen() != nullptr) act(*palette.chosen());
      break;
    }
    case WindowAction::go_to: {
      if (page == nullptr) return show_message("Open a run first.");
      GoToDialog dialog(page->state().run, current_page() != nullptr, this);
      if (dialog.exec() == QDialog::Accepted && dialog.chosen() != nullptr) go_to(page->state(), *dialog.chosen());
      break;
    }
    case WindowAction::show_keys:
      ShortcutSheet(this).exec();
      break;
    case WindowAction::save_view:
    case WindowAction::export_picture:
    case WindowAction::export_table:
    case WindowAction::export_trace:
    case WindowAction::copy_command:
      if (page == nullptr) return show_message("Open a run first.");
      try {
        act_on_page(action.window, *page);
      } catch (const std::exception& error) {
        show_message(error.what());
      }
  }
}

void Window::act_on_files(WindowAction action) {
  QStringList paths;
  if (action == WindowAction::open_directory) {
    paths << QFileDialog::getExistingDirectory(this, "Open the directory of a run");
  } else if (action == WindowAction::open_file) {
    paths = QFileDialog::getOpenFileNames(this, "Open a trace, or several as one run");
  } else if (const auto runs = recent_runs(); !runs.empty()) {
    return open_source(runs.front());
  } else {
    show_message("No run was opened yet.");
  }
  paths.removeAll(QString());
  open_all(paths);
}

void Window::act_on_page(WindowAction action, TabPage& page) {
  const QString name = page.title();
  if (action == WindowAction::export_picture) {
    const QString file =
        QFileDialog::getSaveFileName(this, "Export a picture", name + ".png", "Pictures (*.png *.svg)");
    if (!file.isEmpty()) save_picture(*this, file);
  } else if (action == WindowAction::export_table) {
    QTableView* table = table_in_front(page);
    if (table == nullptr) return show_message("No table is in front: open a panel with a table first.");
    const QString file = QFileDialog::getSaveFileName(this, "Export the table", name + ".csv", "CSV (*.csv)");
    if (!file.isEmpty()) save_table(*table->model(), file);
  } else if (auto* run_page = qobject_cast<RunPage*>(&page)) {
    act_on_run(action, *run_page);
  } else {
    show_message("This concerns one run: choose the tab of a run first.");
  }
}

void Window::act_on_run(WindowAction action, RunPage& page) {
  if (action == WindowAction::save_view) {
    page.save_view();
    show_message("Saved " + view_file_of(page.run().path));
  } else if (action == WindowAction::copy_command) {
    QApplication::clipboard()->setText(view_command(page.state()));
    show_message("Copied: " + view_command(page.state()));
  } else {
    QString filter;
    const QString file = QFileDialog::getSaveFileName(this, "Export the selection as a trace", page.title(),
                                                      trace_filters().join(";;"), &filter);
    if (!file.isEmpty()) page.export_trace(filter, file);
  }
}

void Window::set_theme(const QString& theme) {
  apply_theme(theme);
  if (remembering_) remember_theme(theme);
}

void Window::change_scale(double by) {
  const double scale = std::clamp(remembered_scale() + by, 0.5, 4.0);
  remember_scale(scale);
  show_message(
      QString("From the next start on, texts and rows have %1 % of their usual size.").arg(std::lround(100 * scale)));
}

void Window::make_empty_page() {
  empty_ = new QWidget;
  auto* layout = centred(empty_);
  layout->addWidget(
      new QLabel("<h3>No run is open</h3><p>A run is a directory of traces that <i>paceline record</i> "
                 "wrote,<br>or a file of another tool.</p>"));
  auto* button = new QPushButton("Open a run…");
  connect(button, &QPushButton::clicked, this,
          [this] { act(*std::ranges::find(action_table(), WindowAction::open_directory, &Action::window)); });
  layout->addWidget(button, 0, Qt::AlignLeft);
  layout->addWidget(new QLabel("Files and directories can be dropped on this window, too."));
  std::vector<RunSource> recent = recent_runs();
  recent.resize(std::min<std::size_t>(recent.size(), 5));
  if (!recent.empty()) layout->addWidget(new QLabel("<h3>Opened before</h3>"));
  for (const RunSource& run : recent) {
    auto* again = new QPushButton(fontMetrics().elidedText(run.path(), Qt::ElideMiddle, 600).replace("&", "&&"));
    again->setToolTip(run.path());
    connect(again, &QPushButton::clicked, this, [this, run] { open_source(run); });
    layout->addWidget(again, 0, Qt::AlignLeft);
  }
  tabs_->addTab(empty_, "Paceline");
}

void Window::reopen() {
  for (const RunSource& source : runs_left_open()) {
    if (std::ranges::all_of(source.paths, [](const QString& path) { return QFileInfo::exists(path); })) {
      open_source(source);
    }
  }
}

void Window::open(const QString& path, std::function<void(RunPage&)> opened, const analysis::MergeChoices& choices) {
  open_source({.paths = {path}, .choices = choices}, std::move(opened));
}

void Window::remember_and_restore(const RunSource& source, RunPage& page) {
  page.setProperty(source_property, source_to_text(source.absolute()));
  if (remembering_) remember_run(source);
  page.restore_view();
}

void Window::open_source(const RunSource& source, std::function<void(RunPage&)> then) {
  const QString title = QFileInfo(QDir::cleanPath(source.path())).fileName();
  auto* page = new LoadingPage(source.path());
  auto* loader = new Loader(source, page);  // ends with the page
  connect(page, &LoadingPage::cancelled, this, [this, page, loader] {
    loader->cancel();
    close_tab(tabs_->indexOf(page));
  });
  connect(loader, &Loader::progressed, page, &LoadingPage::show_progress);
  connect(loader, &Loader::rank_progressed, page, &LoadingPage::show_rank);
  // The page is the context, so that signals that arrive after it is closed are dropped.
  connect(loader, &Loader::loaded, page, [this, page, source, then](std::shared_ptr<const Run> run) {
    RunPage* shown = show_run(std::move(run), page);
    try {
      remember_and_restore(source, *shown);
      if (then) then(*shown);
    } catch (const std::exception& error) {
      show_message(error.what());
    }
  });
  connect(loader, &Loader::failed, page,
          [this, page, title](const QString& why) { show_failure(page, "This run could not be opened", why, title); });
  put(page, title);
  loader->start();
}

void Window::follow(const QString& path, int interval_ms) {
  open(path, [this, path, interval_ms](RunPage& first) {
    auto* follower = new Follower(path, interval_ms, this);
    // The follower ends when the page that it last made is closed.
    connect(follower, &Follower::grown, this,
            [this, follower, page = QPointer<RunPage>(&first)](std::shared_ptr<const Run> run) mutable {
              if (!page) return follower->deleteLater();
              RunPage* old = page;
              auto* grown = new RunPage(std::move(run));
              carry_over(old->state(), grown->state());
              watch(grown);
              replace(old, grown, grown->run().title());
              page = grown;
            });
  });
}

void Window::watch_status(TabPage* page) {
  connect(page, &TabPage::status_changed, this, [this, page] {
    if (page == current_tab()) status_->setText(page->status());
  });
}

void Window::watch(RunPage* page) {
  watch_status(page);
  connect(page, &RunPage::saved, this, [this](const QString& file) { show_message("Saved " + file); });
  connect(&page->document().background(), &Background::failed, this, &Window::show_message);
}

RunPage* Window::show_run(std::shared_ptr<const Run> run, QWidget* instead_of) {
  const QString title = run->title();
  auto* page = new RunPage(std::move(run));
  watch(page);
  if (instead_of != nullptr) {
    replace(instead_of, page, title);
  } else {
    put(page, title);
  }
  return page;
}

void Window::show_failure(QWidget* instead_of, const QString& title, const QString& why, const QString& tab) {
  auto* page = new QWidget;
  auto* layout = centred(page);
  auto* label = new QLabel(QString("<h3>%1</h3><p>%2</p>").arg(title, why.toHtmlEscaped()));
  label->setWordWrap(true);
  label->setMinimumWidth(560);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  layout->addWidget(label);
  replace(instead_of, page, tab);
}

void Window::show_message(const QString& message) { status_->setText(message); }

void Window::put(QWidget* page, const QString& title) {
  if (empty_ != nullptr) {
    replace(std::exchange(empty_, nullptr), page, title);
  } else {
    tabs_->setCurrentIndex(tabs_->addTab(page, title));
  }
}

void Window::replace(QWidget* page, QWidget* by, const QString& title) {
  const int index = tabs_->indexOf(page);
  if (index < 0) {  // closed meanwhile
    by->deleteLater();
    return;
  }
  const bool current = tabs_->currentIndex() == index;
  tabs_->insertTab(index, by, title);
  if (current) tabs_->setCurrentIndex(index);
  tabs_->removeTab(tabs_->indexOf(page));
  page->deleteLater();
  page_changed();
}

void Window::close_tab(int index) {
  if (index < 0) return;
  QWidget* page = tabs_->widget(index);
  if (page == empty_) return;
  if (auto* run_page = qobject_cast<RunPage*>(page)) run_page->keep_view(remembering_);
  tabs_->removeTab(index);
  page->deleteLater();
  if (tabs_->count() == 0) make_empty_page();
}

void Window::closeEvent(QCloseEvent* event) {
  std::vector<RunSource> open;
  for (int tab = 0; tab < tabs_->count(); ++tab) {
    auto* page = qobject_cast<RunPage*>(tabs_->widget(tab));
    if (page == nullptr) continue;
    page->keep_view(remembering_);
    const RunSource source = source_from_text(page->property(source_property).toString());
    if (!source.paths.isEmpty()) open.push_back(source);
  }
  if (remembering_) remember_open(open);
  QMainWindow::closeEvent(event);
}

void Window::dragEnterEvent(QDragEnterEvent* event) {
  const auto urls = event->mimeData()->urls();
  if (std::ranges::any_of(urls, &QUrl::isLocalFile)) event->acceptProposedAction();
}

void Window::dropEvent(QDropEvent* event) {
  event->acceptProposedAction();
  QStringList paths;
  for (const QUrl& url : event->mimeData()->urls()) {
    if (url.isLocalFile()) paths << url.toLocalFile();
  }
  open_all(paths);
}

void Window::page_changed() {
  TabPage* page = current_tab();
  setWindowTitle(page ? page->title() + " – Paceline" : QString("Paceline"));
  status_->setText(page ? page->status() : QString());
  if (page) page->setFocus();  // its focus proxy is the timeline
  if (RunPage* run = current_page(); run != nullptr && run != last_) {
    if (linked_ && last_ != nullptr) follow_selection(last_->state(), run->state());
    last_ = run;
  }
}

}  // namespace paceline::viewer
