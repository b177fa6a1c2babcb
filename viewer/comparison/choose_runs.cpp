// SPDX-License-Identifier: Apache-2.0
#include "viewer/comparison/choose_runs.h"

#include <QDialogButtonBox>
#include <QFileDialog>
#include <QGridLayout>
#include <QLabel>

namespace paceline::viewer {

ChooseRuns::ChooseRuns(const QStringList& known, QWidget* parent) : QDialog(parent) {
  setWindowTitle("Compare two runs");
  auto* grid = new QGridLayout(this);
  grid->setColumnStretch(1, 1);
  a_ = make_field("Run &A", known, 0);
  b_ = make_field("Run &B", known, 1);
  if (known.size() > 1) b_->setCurrentIndex(1);
  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Cancel);
  compare_ = buttons->addButton("Compare", QDialogButtonBox::AcceptRole);
  connect(buttons, &QDialogButtonBox::accepted, this, &QDialog::accept);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  grid->addWidget(buttons, 2, 0, 1, 4);
  compare_->setDefault(true);  // in the dialog by now, which would else take the first button: Cancel
  check();
  resize(760, sizeHint().height());
}

QComboBox* ChooseRuns::make_field(const QString& name, const QStringList& known, int row) {
  auto* grid = static_cast<QGridLayout*>(layout());
  auto* field = new QComboBox;
  field->setEditable(true);
  field->setInsertPolicy(QComboBox::NoInsert);
  field->addItems(known);
  field->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  field->setAccessibleName(QString(name).remove('&'));
  auto* label = new QLabel(name);
  label->setBuddy(field);
  grid->addWidget(label, row, 0);
  grid->addWidget(field, row, 1);
  auto* directory = new QPushButton("Directory…");
  auto* file = new QPushButton("File…");
  directory->setAutoDefault(false);
  file->setAutoDefault(false);
  grid->addWidget(directory, row, 2);
  grid->addWidget(file, row, 3);
  const auto put = [field](const QString& path) {
    if (!path.isEmpty()) field->setEditText(path);
  };
  connect(directory, &QPushButton::clicked, this,
          [this, put] { put(QFileDialog::getExistingDirectory(this, "The directory of a run")); });
  connect(file, &QPushButton::clicked, this, [this, put] { put(QFileDialog::getOpenFileName(this, "A trace")); });
  connect(field, &QComboBox::editTextChanged, this, &ChooseRuns::check);
  return field;
}

void ChooseRuns::check() {
  if (compare_ != nullptr) compare_->setEnabled(!a().isEmpty() && !b().isEmpty());
}

}  // namespace paceline::viewer
