#include "viewer/window/window.h"

#include <QApplication>
#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLabel>
#include <QMenuBar>
#include <QPushButton>
#include <QScreen>
#include <QStatusBar>
#include <QTabBar>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "viewer/session/actions.h"
#include "viewer/session/loader.h"
#include "viewer/window/loading_page.h"
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
  resize(fitting({1600, 900}, screen()->availableSize()));
  tabs_ = new QTabWidget;
  tabs_->setDocumentMode(true);
  tabs_->setTabsClosable(true);
  tabs_->setTabBarAutoHide(true);
  setCentralWidget(tabs_);
  status_ = new QLabel;
  status_->setContentsMargins(8, 0, 8, 0);
  status_->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // a long text does not widen the window
  statusBar()->addWidget(status_, 1);
  statusBar()->setSizeGripEnabled(false);
  connect(tabs_, &QTabWidget::currentChanged, this, [this] { page_changed(); });
  connect(tabs_, &QTabWidget::tabCloseRequested, this, [this](int index) { close_tab(index); });
  make_menus();
  make_empty_page();
}

QSize Window::fitting(QSize wanted, QSize screen) {
  constexpr int frame = 40;  // of the window and its title
  return wanted.boundedTo({screen.width(), screen.height() - frame});
}

RunPage* Window::current_page() const { return qobject_cast<RunPage*>(tabs_->currentWidget()); }

void Window::make_menus() {
  for (const char* title : {"&File", "&View", "&Go", "&Help"}) {
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
    }
  }
}

void Window::act(const Action& action) {
  RunPage* page = current_page();
  if (action.view != nullptr && page != nullptr) action.view(page->state());
  switch (action.window) {
    case WindowAction::none:
      break;
    case WindowAction::open_directory:
      if (const QString path = QFileDialog::getExistingDirectory(this, "Open the directory of a run");
          !path.isEmpty()) {
        open(path);
      }
      break;
    case WindowAction::open_file:
      if (const QString path = QFileDialog::getOpenFileName(this, "Open a trace"); !path.isEmpty()) open(path);
      break;
    case WindowAction::close:
      close_tab(tabs_->currentIndex());
      break;
    case WindowAction::quit:
      QApplication::quit();
      break;
    case WindowAction::show_keys:
      ShortcutSheet(this).exec();
      break;
  }
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
  tabs_->addTab(empty_, "Paceline");
}

void Window::open(const QString& path, std::function<void(RunPage&)> opened) {
  const QString title = QFileInfo(QDir::cleanPath(path)).fileName();
  auto* page = new LoadingPage(path);
  auto* loader = new Loader(path, page);  // ends with the page
  connect(page, &LoadingPage::cancelled, this, [this, page, loader] {
    loader->cancel();
    close_tab(tabs_->indexOf(page));
  });
  connect(loader, &Loader::progressed, page, &LoadingPage::show_progress);
  connect(loader, &Loader::rank_progressed, page, &LoadingPage::show_rank);
  // The page is the context, so that signals that arrive after it is closed are dropped.
  connect(loader, &Loader::loaded, page, [this, page, opened](std::shared_ptr<const Run> run) {
    RunPage* shown = show_run(std::move(run), page);
    try {
      if (opened) opened(*shown);
    } catch (const std::exception& error) {
      show_message(error.what());
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
  connect(&page->document().background(), &Background::failed, this, &Window::show_message);
  if (instead_of != nullptr) {
    replace(instead_of, page, title);
  } else {
    put(page, title);
  }
  return page;
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
  tabs_->removeTab(index);
  page->deleteLater();
  if (tabs_->count() == 0) make_empty_page();
}

void Window::page_changed() {
  RunPage* page = current_page();
  setWindowTitle(page ? page->run().title() + " – Paceline" : QString("Paceline"));
  status_->setText(page ? page->status() : QString());
  if (page) page->setFocus();  // its focus proxy is the timeline
}

}  // namespace paceline::viewer
