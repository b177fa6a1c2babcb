// SPDX-License-Identifier: Apache-2.0
// The part of the window that opens several files and directories as one run.
#include <exception>

#include "viewer/merging/merge_dialog.h"
#include "viewer/window/window.h"

namespace paceline::viewer {

void Window::open_all(const QStringList& paths) {
  if (paths.size() == 1) {
    open(paths.front());
  } else if (paths.size() > 1) {
    merge(paths);
  }
}

void Window::merge(const QStringList& paths, const analysis::MergeChoices& choices) {
  auto* dialog = new MergeDialog(paths, choices, this);
  dialog->setAttribute(Qt::WA_DeleteOnClose);
  connect(dialog, &QDialog::accepted, this, [this, dialog] {
    switch (dialog->outcome()) {
      case MergeDialog::Outcome::one_run:
        try {
          remember_and_restore(dialog->source(), *show_run(dialog->run()));
        } catch (const std::exception& error) {
          show_message(error.what());
        }
        break;
      case MergeDialog::Outcome::separate_runs:
        for (const QString& path : dialog->paths()) open(path);
        break;
      case MergeDialog::Outcome::comparison:
        compare(dialog->paths().at(0), dialog->paths().at(1));
        break;
      case MergeDialog::Outcome::none:
        break;
    }
  });
  dialog->open();
}

}  // namespace paceline::viewer
