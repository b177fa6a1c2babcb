#include "viewer/window/window.h"

#include <QApplication>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QProgressBar>
#include <QPushButton>
#include <QStatusBar>
#include <QTabBar>
#include <QVBoxLayout>
#include <utility>

#include "viewer/session/loader.h"
#include "viewer/window/shortcuts.h"

namespace paceline::viewer {
namespace {

QVBoxLayout* centred(QWidget* page) {
  auto* layout = new QVBoxLayout(page);
  layout->setAlignment(Qt::AlignCenter);
  layout->setSpacing(12);
  return layout;
}

QWidget* message_page(const QString& title, const QString& text) {
  auto* page = new QWidget;
  auto* layout = centred(page);
  auto* label = new QLabel(QString("<h3>%1</h3><p>%2</p>").arg(title, text.toHtmlEscaped()));
  label->setWordWrap(true);
  label->setMinimumWidth(560);
  label->setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  layout->addWidget(label);
  return page;
}

}  // namespace

Window::Window() {
  setWindowTitle("Paceline");
  resize(1600, 900);
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setTabsClosable(true);
  tabs_->setTabBarAutoHide(true);
  setCentralWidget(tabs_);
  status_ = new QLabel;
  status_->setContentsMargins(8, 0, 8, 0);
  statusBar()->addWidget(status_, 1);
  statusBar()->setSizeGripEnabled(false);
  connect(tabs_, &QTabWidget::currentChanged, this, [this] { page_changed(); });
  connect(tabs_, &QTabWidget::tabCloseRequested, this, [this](int index) { close_tab(index); });
  make_menus();
  make_empty_page();
}

RunPage* Window::current_page() const { return qobject_cast<RunPage*>(tabs_->currentWidget()); }

void Window::make_menus() {
  const auto add = [this](QMenu* menu, const QString& text, const QKeySequence& keys, auto action) {
    auto* entry = menu->addAction(text, this, action);
    entry->setShortcut(keys);
    return entry;
  };
  // The timeline takes single letters itself while it has the focus; here they are for finding, not for catching.
  const auto on_timeline = [this](auto action) {
    return [this, action] {
      if (RunPage* page = current_page()) action(page->timeline());
    };
  };
  auto* file = menuBar()->addMenu("&File");
  add(file, "&Open run…", QKeySequence::Open, [this] { ask_for_directory(); });
  add(file, "Open &file…", QKeySequence("Ctrl+Shift+O"), [this] { ask_for_file(); });
  add(file, "&Close", QKeySequence::Close, [this] { close_tab(tabs_->currentIndex()); });
  file->addSeparator();
  add(file, "&Quit", QKeySequence::Quit, [] { QApplication::quit(); });

  auto* view = menuBar()->addMenu("&View");
  add(view, "&Whole run\tF", {}, on_timeline([](TimelineWidget& timeline) { timeline.show_all(); }));
  add(view, "&Selection\tZ", {}, on_timeline([](TimelineWidget& timeline) { timeline.zoom_to_selection(); }));
  add(view, "&Back\tBackspace", {}, on_timeline([](TimelineWidget& timeline) { timeline.show_previous(); }));
  view->addSeparator();
  add(view, "Zoom &in", QKeySequence::ZoomIn,
      on_timeline([](TimelineWidget& timeline) { timeline.zoom(timeline.axis().width() / 2.0, 0.5); }));
  add(view, "Zoom &out", QKeySequence::ZoomOut,
      on_timeline([](TimelineWidget& timeline) { timeline.zoom(timeline.axis().width() / 2.0, 2); }));
  view->addSeparator();
  add(view, "&Unfold all ranks", QKeySequence("Ctrl+E"),
      on_timeline([](TimelineWidget& timeline) { timeline.set_all_collapsed(false); }));
  add(view, "&Fold all ranks", QKeySequence("Ctrl+Shift+E"),
      on_timeline([](TimelineWidget& timeline) { timeline.set_all_collapsed(true); }));
  add(view, "Unfold all &counters", QKeySequence("Ctrl+U"),
      on_timeline([](TimelineWidget& timeline) { timeline.set_counters_unfolded(true); }));
  add(view, "Fold all coun&ters", QKeySequence("Ctrl+Shift+U"),
      on_timeline([](TimelineWidget& timeline) { timeline.set_counters_unfolded(false); }));
  auto* panels = view->addAction("&Panels");
  panels->setCheckable(true);
  panels->setChecked(true);
  panels->setShortcut(QKeySequence("Ctrl+P"));
  connect(panels, &QAction::toggled, this, [this](bool shown) {
    if (RunPage* page = current_page()) page->show_panels(shown);
  });

  auto* go = menuBar()->addMenu("&Go");
  add(go, "&Find…", QKeySequence::Find, [this] {
    if (RunPage* page = current_page()) page->search().start();
  });
  add(go, "&Next iteration\t]", {}, on_timeline([](TimelineWidget& timeline) { timeline.jump_to_iteration(1); }));
  add(go, "&Previous iteration\t[", {}, on_timeline([](TimelineWidget& timeline) { timeline.jump_to_iteration(-1); }));

  auto* help = menuBar()->addMenu("&Help");
  add(help, "&Keys and mouse moves", QKeySequence("?"), [this] { ShortcutSheet(this).exec(); });
}

void Window::make_empty_page() {
  empty_ = new QWidget;
  auto* layout = centred(empty_);
  layout->addWidget(
      new QLabel("<h3>No run is open</h3><p>A run is a directory of traces, as <i>paceline record</i> "
                 "leaves it,<br>or a file of another tool.</p>"));
  auto* button = new QPushButton("Open a run…");
  connect(button, &QPushButton::clicked, this, [this] { ask_for_directory(); });
  layout->addWidget(button, 0, Qt::AlignLeft);
  tabs_->addTab(empty_, "Paceline");
}

void Window::ask_for_directory() {
  const QString path = QFileDialog::getExistingDirectory(this, "Open the directory of a run");
  if (!path.isEmpty()) open(path);
}

void Window::ask_for_file() {
  const QString path = QFileDialog::getOpenFileName(this, "Open a trace");
  if (!path.isEmpty()) open(path);
}

void Window::open(const QString& path, std::function<void(RunPage&)> opened) {
  const QString title = QFileInfo(QDir::cleanPath(path)).fileName();
  auto* page = new QWidget;
  auto* layout = centred(page);
  layout->addWidget(new QLabel("Opening " + path.toHtmlEscaped()));
  auto* bar = new QProgressBar;
  bar->setMinimumWidth(420);
  layout->addWidget(bar);
  auto* cancel = new QPushButton("Cancel");
  layout->addWidget(cancel, 0, Qt::AlignRight);

  auto* loader = new Loader(path, page);  // ends with the page
  connect(cancel, &QPushButton::clicked, this, [this, page, loader] {
    loader->cancel();
    close_tab(tabs_->indexOf(page));
  });
  connect(loader, &Loader::progressed, bar, &QProgressBar::setValue);
  // In the page's name: what a closed page's loader still had to say is dropped with it.
  connect(loader, &Loader::loaded, page, [this, page, opened](std::shared_ptr<const Run> run) {
    RunPage* shown = show_run(std::move(run), page);
    try {
      if (opened) opened(*shown);
    } catch (const std::exception& error) {
      statusBar()->showMessage(error.what());
    }
  });
  connect(loader, &Loader::failed, page, [this, page, title](const QString& why) {
    replace(page, message_page("This run could not be opened", why), title);
  });
  put(page, title);
  loader->start();
}

RunPage* Window::show_run(std::shared_ptr<const Run> run, QWidget* instead_of) {
  const QString title = run->title();
  auto* page = new RunPage(std::move(run));
  connect(page, &RunPage::status_changed, this, [this, page] {
    if (page == current_page()) status_->setText(page->status());
  });
  if (instead_of != nullptr) {
    replace(instead_of, page, title);
  } else {
    put(page, title);
  }
  return page;
}

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
  tabs_->removeTab(index);
  page->deleteLater();
  if (tabs_->count() == 0) make_empty_page();
}

void Window::page_changed() {
  RunPage* page = current_page();
  setWindowTitle(page ? page->run().title() + " – Paceline" : QString("Paceline"));
  status_->setText(page ? page->status() : QString());
  if (page) page->timeline().setFocus();
}

}  // namespace paceline::viewer
