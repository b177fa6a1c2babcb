// SPDX-License-Identifier: Apache-2.0
// A line of text that takes the room that there is: without enough, "…" stands at its end and its tooltip has the rest.
#pragma once

#include <QLabel>

namespace paceline::viewer {

class CutLabel : public QLabel {
 public:
  explicit CutLabel(const QString& text = {});

 protected:
  void paintEvent(QPaintEvent* event) override;
};

}  // namespace paceline::viewer
