// SPDX-License-Identifier: Apache-2.0
#include "viewer/text/cut_label.h"

#include <QPainter>
#include <QStyle>
#include <QTextDocumentFragment>

namespace paceline::viewer {

CutLabel::CutLabel(const QString& text) : QLabel(text) {
  setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);  // a long text does not widen the window
}

void CutLabel::paintEvent(QPaintEvent* event) {
  const bool whole = sizeHint().width() <= width();
  const bool rich = textFormat() != Qt::PlainText && Qt::mightBeRichText(text());
  const QString plain = rich ? QTextDocumentFragment::fromHtml(text()).toPlainText() : text();
  setToolTip(whole ? QString() : plain);
  if (whole) return QLabel::paintEvent(event);
  QPainter painter(this);
  const QRect room = contentsRect();
  style()->drawItemText(&painter, room, int(alignment()), palette(), isEnabled(),
                        fontMetrics().elidedText(plain, Qt::ElideRight, room.width()), foregroundRole());
}

}  // namespace paceline::viewer
