// SPDX-License-Identifier: Apache-2.0
#include "viewer/merging/merge_dialog.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

#include "analysis/clocks/alignment.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace merge_dialog {

using analysis::ClockMethod;
using analysis::MergedFile;
using analysis::Processes;

template <class Value>
struct Choice {
  Value value;
  const char *text, *meaning;
};
constexpr Choice<ClockMethod> methods[] = {
    {ClockMethod::automatic, "Automatic", "the best that the files allow"},
    {ClockMethod::recorded, "As recorded", "by the UTC times in the files, else as the files have them"},
    {ClockMethod::exchange, "Clock exchange", "by the clocks that paceline record compared; only for .pace files"},
    {ClockMethod::collectives, "Matching collectives", "by the ends of collectives that the ranks took part in"},
};
constexpr Choice<Processes> processes[] = {
    {Processes::automatic, "Automatic", "ranks if their names have the numbers of ranks, else one rank"},
    {Processes::ranks, "A rank each", "for the processes in one Chrome JSON or Perfetto file"},
    {Processes::one_rank, "One rank", "for the processes in one Chrome JSON or Perfetto file"},
};

constexpr const char* titles[] = {"File",  "Format", "Rank",      "Host", "Time span", "Clock aligned by",
                                  "Error", "Offset", "In the run"};
constexpr const char* meanings[] = {
    "remove the mark to leave a file out",
    "that the file was recognised as",
    "that the file is, or that it belongs to",
    "",
    "from the first to the last event, on the run's clock",
    "how the rank's times came to the run's clock",
    "bound of the error against the run's clock",
    "added to the times of the file after the alignment: 5 ms, -20 us; double click to change it",
    "and what is missing, or why the file is left out"};

QString text_of(const std::string& text) { return QString::fromStdString(text); }

// The folder that all names are in, with a slash at its end; empty if there is none.
QString common_folder(const std::vector<MergedFile>& files) {
  QString folder;
  for (const MergedFile& file : files) {
    QString own = QFileInfo(text_of(file.name)).path() + '/';
    if (&file == &files.front()) folder = own;
    while (!folder.isEmpty() && !own.startsWith(folder)) folder = folder.left(folder.lastIndexOf('/', -2) + 1);
  }
  return folder;
}

QString span_of(const MergedFile& file) {
  const auto length = file.end_ns - file.start_ns;
  if (length <= 0 && !file.rank) return {};
  if (!file.in_run()) return duration_text(length);
  const double step = std::max(double(length) / 1000, 1e3);
  return QString("%1 to %2")
      .arg(time_text(double(file.start_ns), step, double(file.end_ns)),
           time_text(double(file.end_ns), step, double(file.end_ns)));
}

// `first`: the file has the run's reference clock.
QString error_of(const MergedFile& file, bool first) {
  if (!file.in_run() || file.clock.empty()) return {};
  if (file.clock_error_ns >= analysis::unset_utc_error_ns) return "not known";
  return first && file.clock_error_ns <= 0 ? QString("reference")
                                           : "± " + duration_text(std::llround(file.clock_error_ns));
}

QString taken_of(const MergedFile& file) {
  if (!file.in_run()) return "left out: " + text_of(file.left_out);
  QStringList parts{"yes"};
  if (!file.part.empty()) parts << text_of(file.part);
  if (!file.loss.empty()) parts << text_of(file.loss);
  return parts.join("; ");
}

QString offset_text(std::int64_t ns) { return ns == 0 ? QString("0") : duration_text(ns); }

// Returns nothing if the text is not a time.
std::optional<std::int64_t> offset_of(const QString& text) {
  const double ns = time_from_text(text);
  if (std::isnan(ns) || std::abs(ns) > 1e18) return std::nullopt;
  return std::llround(ns);
}

QString summary_of(const MergePreview& preview) {
  const auto in_run = std::size_t(std::ranges::count_if(preview.files, &MergedFile::in_run));
  const Run& run = *preview.run;
  QStringList parts{QString("%1 of %2 become a run of %3 and %4")
                        .arg(count_text(in_run), plural_text(preview.files.size(), "file", "files"), run.ranks_text(),
                             duration_text(std::int64_t(run.end_ns - run.begin_ns)))};
  if (const auto others = preview.files.size() - in_run; others > 0) {
    parts << plural_text(others, "file is", "files are") + " left out";
  }
  const auto incomplete = std::size_t(
      std::ranges::count_if(preview.files, [](const MergedFile& file) { return file.in_run() && !file.loss.empty(); }));
  if (incomplete > 0) parts << plural_text(incomplete, "file has", "files have") + " gaps";
  if (const QString error = clock_error_text(run); !error.isEmpty()) parts << "clock error " + error;
  return parts.join(" · ");
}

}  // namespace merge_dialog

MergeDialog::MergeDialog(QStringList paths, analysis::MergeChoices choices, QWidget* parent)
    : QDialog(parent), paths_(std::move(paths)), choices_(std::move(choices)) {
  setWindowTitle("Open several traces as one run");
  resize(1180, 520);
  auto* layout = new QVBoxLayout(this);
  summary_ = new QLabel;
  summary_->setWordWrap(true);
  summary_->setTextFormat(Qt::PlainText);
  summary_->setAccessibleName("Summary");
  layout->addWidget(summary_);
  bar_ = new QProgressBar;
  bar_->setTextVisible(false);
  bar_->setMaximumHeight(6);
  layout->addWidget(bar_);
  layout->addWidget(make_choices());
  table_ = new QTableWidget(0, columns);
  table_->setAccessibleName("Files");
  for (int column = 0; column < columns; ++column) {
    auto* title = new QTableWidgetItem(merge_dialog::titles[column]);
    title->setToolTip(merge_dialog::meanings[column]);
    title->setTextAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    table_->setHorizontalHeaderItem(column, title);
  }
  table_->setShowGrid(false);
  table_->setWordWrap(true);  // of long reasons
  table_->setAlternatingRowColors(true);
  table_->setTabKeyNavigation(false);
  table_->setSelectionBehavior(QAbstractItemView::SelectRows);
  table_->setHorizontalScrollMode(QAbstractItemView::ScrollPerPixel);
  table_->verticalHeader()->hide();
  table_->verticalHeader()->setMinimumSectionSize(24);
  table_->verticalHeader()->setSectionResizeMode(QHeaderView::ResizeToContents);  // as the last column has room
  table_->horizontalHeader()->setHighlightSections(false);
  table_->horizontalHeader()->setStretchLastSection(true);
  layout->addWidget(table_, 1);
  notes_ = new QPlainTextEdit;
  notes_->setReadOnly(true);
  notes_->setAccessibleName("Notes");
  notes_->setMaximumHeight(90);
  notes_->setTabChangesFocus(true);
  notes_->hide();
  layout->addWidget(notes_);
  layout->addWidget(make_buttons());
  connect(table_, &QTableWidget::itemChanged, this, &MergeDialog::change);
  connect(this, &MergeDialog::progressed, bar_, &QProgressBar::setValue);
  connect(&background_, &Background::failed, this, &MergeDialog::show_failure);
  load();
}

MergeDialog::~MergeDialog() { loading_.cancel(); }

QWidget* MergeDialog::make_choices() {
  auto* choices = new QWidget;
  auto* row = new QHBoxLayout(choices);
  row->setContentsMargins(0, 0, 0, 0);
  const auto add_choice = [&](const char* title, const auto& table, auto& value) {
    auto* box = new QComboBox;
    for (const auto& one : table) {
      box->addItem(one.text);
      box->setItemData(box->count() - 1, QString(one.meaning), Qt::ToolTipRole);
      if (one.value == value) box->setCurrentIndex(box->count() - 1);
    }
    auto* label = new QLabel(title);
    label->setBuddy(box);
    row->addWidget(label);
    row->addWidget(box);
    connect(box, &QComboBox::currentIndexChanged, this, [this, &table, &value](int index) {
      value = table[index].value;
      load();
    });
  };
  add_choice("&Align the clocks:", merge_dialog::methods, choices_.clock);
  add_choice("&Processes of a file:", merge_dialog::processes, choices_.processes);
  auto* files = new QPushButton("Add &files…");
  auto* folder = new QPushButton("Add &directory…");
  for (QPushButton* button : {files, folder}) button->setAutoDefault(false);
  row->addStretch(1);
  row->addWidget(files);
  row->addWidget(folder);
  connect(files, &QPushButton::clicked, this, [this] { add(QFileDialog::getOpenFileNames(this, "Add traces")); });
  connect(folder, &QPushButton::clicked, this, [this] {
    const QString path = QFileDialog::getExistingDirectory(this, "Add a directory of traces");
    if (!path.isEmpty()) add({path});
  });
  return choices;
}

QWidget* MergeDialog::make_buttons() {
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  open_ = buttons->addButton("&Open as one run", QDialogButtonBox::AcceptRole);
  open_->setDefault(true);
  separate_ = buttons->addButton("Open &separately", QDialogButtonBox::ActionRole);
  compare_ = buttons->addButton("&Compare the two", QDialogButtonBox::ActionRole);
  connect(open_, &QPushButton::clicked, this, [this] { end(Outcome::one_run); });
  connect(separate_, &QPushButton::clicked, this, [this] { end(Outcome::separate_runs); });
  connect(compare_, &QPushButton::clicked, this, [this] { end(Outcome::comparison); });
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  return buttons;
}

void MergeDialog::add(const QStringList& paths) {
  if (paths.isEmpty()) return;
  paths_ += paths;
  paths_.removeDuplicates();
  load();
}

void MergeDialog::load() {
  preview_.run.reset();
  summary_->setText("Reading " + plural_text(std::size_t(paths_.size()), "path…", "paths…"));
  show_state();
  const auto work = [this, paths = paths_, choices = choices_](const Ticket& ticket) {
    const analysis::Progress progress([this, &ticket](double share) {
      if (!ticket.cancelled()) Q_EMIT progressed(int(100 * share));
      return !ticket.cancelled();
    });
    std::vector<std::filesystem::path> files;
    for (const QString& path : paths) files.emplace_back(path.toStdString());
    analysis::MergedRun merged = analysis::load_merged(files, choices, progress.from_to(0, 0.9));
    MergePreview preview{.files = std::move(merged.files), .run = {}};
    preview.run = index_run(RunSource{.paths = paths}.path(), std::move(merged.trace), progress);
    return preview;
  };
  loading_.start(work, [this](MergePreview preview) { show_preview(std::move(preview)); });
  show_state();
}

void MergeDialog::show_preview(MergePreview preview) {
  preview_ = std::move(preview);
  summary_->setText(merge_dialog::summary_of(preview_));
  filling_ = true;
  table_->setRowCount(0);
  const QString folder = merge_dialog::common_folder(preview_.files);
  for (const analysis::MergedFile& of : preview_.files) add_row(of, folder);
  filling_ = false;
  for (int column = 0; column < taken; ++column) {
    table_->resizeColumnToContents(column);
    table_->setColumnWidth(column, std::min(table_->columnWidth(column) + 12, 340));
  }
  // Notes about files that the table has are in its last column.
  QStringList notes;
  for (const std::string& note : preview_.run->trace.notes) {
    const bool in_table = std::ranges::any_of(
        preview_.files, [&](const analysis::MergedFile& of) { return !of.in_run() && note.starts_with(of.name); });
    if (!in_table) notes << QString::fromStdString(note);
  }
  notes_->setPlainText(notes.join('\n'));
  notes_->setVisible(!notes.isEmpty());
  show_state();
}

void MergeDialog::show_failure(const QString& why) {
  summary_->setText("These files cannot be opened as one run: " + why);
  show_state();
}

void MergeDialog::show_state() {
  const bool ready = preview_.run != nullptr;
  bar_->setRange(0, 100);
  bar_->setValue(ready ? 100 : 0);
  bar_->setVisible(loading_.busy());
  open_->setEnabled(ready);
  open_->setDefault(true);  // a disabled button loses this
  separate_->setEnabled(paths_.size() > 1);
  compare_->setVisible(paths_.size() == 2);
}

void MergeDialog::add_row(const analysis::MergedFile& of, const QString& folder) {
  const int row = table_->rowCount();
  table_->insertRow(row);
  const QString name = merge_dialog::text_of(of.name);
  const auto moved = choices_.offset_ns.find(of.name);
  const bool by_user = choices_.without.contains(of.name);
  const QString texts[columns] = {name.mid(folder.size()),
                                  merge_dialog::text_of(of.format),
                                  of.rank ? QString::number(*of.rank) : QString(),
                                  merge_dialog::text_of(of.host),
                                  merge_dialog::span_of(of),
                                  of.in_run() ? merge_dialog::text_of(of.clock) : QString(),
                                  merge_dialog::error_of(of, row == 0),
                                  of.in_run() && of.part.empty()
                                      ? merge_dialog::offset_text(moved == choices_.offset_ns.end() ? 0 : moved->second)
                                      : QString(),
                                  merge_dialog::taken_of(of)};
  for (int column = 0; column < columns; ++column) {
    auto* item = new QTableWidgetItem(texts[column]);
    item->setToolTip(column == file ? name : texts[column]);
    Qt::ItemFlags flags = Qt::ItemIsSelectable | Qt::ItemIsEnabled;
    if (column == file) {
      // The user can take back only what the user left out; the other files are left out by the loader.
      if (of.in_run() || by_user) flags |= Qt::ItemIsUserCheckable;
      item->setCheckState(of.in_run() ? Qt::Checked : Qt::Unchecked);
      item->setData(Qt::UserRole, name);
    }
    if (column == offset && !texts[offset].isEmpty()) flags |= Qt::ItemIsEditable;
    item->setFlags(flags);
    if (!of.in_run()) item->setForeground(palette().brush(QPalette::Disabled, QPalette::Text));
    table_->setItem(row, column, item);
  }
}

void MergeDialog::change(QTableWidgetItem* item) {
  if (filling_) return;
  const std::string name = table_->item(item->row(), file)->data(Qt::UserRole).toString().toStdString();
  if (item->column() == file) {
    if (item->checkState() == Qt::Checked) {
      choices_.without.erase(name);
    } else {
      choices_.without.insert(name);
    }
    return load();
  }
  if (item->column() != offset) return;
  const auto ns = merge_dialog::offset_of(item->text());
  if (!ns) {
    const auto before = choices_.offset_ns.find(name);
    filling_ = true;
    item->setText(merge_dialog::offset_text(before == choices_.offset_ns.end() ? 0 : before->second));
    filling_ = false;
    return summary_->setText("An offset is a time such as 5 ms, -20 us or 0.25 s.");
  }
  choices_.offset_ns[name] = *ns;
  load();
}

void MergeDialog::end(Outcome outcome) {
  outcome_ = outcome;
  loading_.cancel();
  accept();
}

}  // namespace paceline::viewer
