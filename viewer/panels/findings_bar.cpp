// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/findings_bar.h"

#include <QApplication>
#include <QClipboard>
#include <QFileInfo>
#include <QMenu>
#include <QPainter>
#include <QUrl>
#include <QUrlQuery>
#include <algorithm>
#include <cmath>

#include "analysis/report/changes.h"
#include "viewer/drawing/labels.h"
#include "viewer/drawing/palette.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace findings_bar {

constexpr int icon_size = 12, icon_gap = 4;  // the gap is to the text

// A warning sign, or a dot beside what is no warning.
QIcon icon_of(const ShownFinding& finding) {
  QPixmap icon(2 * (icon_size + icon_gap), 2 * icon_size);  // sharp on screens with two pixels for one
  icon.fill(Qt::transparent);
  QPainter painter(&icon);
  if (finding.severity == analysis::Severity::info) {
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(Qt::gray);
    painter.drawEllipse(QPoint(icon_size, icon_size), 4, 4);
  } else {
    paint_warning(painter, {0, 0}, icon.height(),
                  finding.severity == analysis::Severity::problem ? 0xffc62828 : 0xffe6a100);
  }
  return icon;
}

// As a tooltip: lines of a readable length.
QString paragraph(const QString& text) { return QString("<p>%1</p>").arg(text.toHtmlEscaped()); }

// Up to the first semicolon, or the end of the first sentence.
QString first_clause(const QString& text) {
  const auto semicolon = text.indexOf("; "), stop = text.indexOf(". ");
  qsizetype end = semicolon < 0 || (stop >= 0 && stop < semicolon) ? stop : semicolon;
  if (end < 0) end = text.endsWith('.') ? text.size() - 1 : text.size();
  return text.left(end);
}

// "paceline:/runs/a?from=1200ns&to=3400ns&at=rank 3", which paceline-view opens on any machine with these files.
QString link_to(const Run& run, const ShownFinding& finding) {
  QUrl link;
  link.setScheme("paceline");
  link.setPath(QFileInfo(run.path).absoluteFilePath());
  QUrlQuery query;
  if (finding.range) {
    query.addQueryItem("from", QString("%1ns").arg(std::llround(finding.range->begin_ns)));
    query.addQueryItem("to", QString("%1ns").arg(std::llround(finding.range->end_ns)));
  }
  if (finding.rank) query.addQueryItem("at", QString("rank %1").arg(run.trace.ranks[*finding.rank].rank));
  link.setQuery(query);
  return link.toString(QUrl::FullyEncoded);
}

void offer_link(QWidget* over, const QPoint& point, const QString& link) {
  auto* menu = new QMenu(over);
  menu->setAttribute(Qt::WA_DeleteOnClose);
  menu->addAction("Copy a link to this place", menu, [link] { QApplication::clipboard()->setText(link); });
  menu->popup(over->mapToGlobal(point));
}

}  // namespace findings_bar

FindingsBar::FindingsBar(Document& document, ViewState& state) : document_(document), state_(state) {
  setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  setAccessibleName("Findings of the report");
  layout_ = new QHBoxLayout(this);
  layout_->setContentsMargins(8, 0, 8, 1);
  layout_->setSpacing(4);
  all_ = new QToolButton;
  all_->setAutoRaise(true);
  all_->setPopupMode(QToolButton::InstantPopup);
  all_->setStyleSheet("QToolButton::menu-indicator { image: none; }");  // its text has an arrow, which is not cut
  all_->setMenu(new QMenu(all_));
  all_->menu()->setToolTipsVisible(true);
  all_->menu()->setContextMenuPolicy(Qt::CustomContextMenu);
  connect(all_->menu(), &QWidget::customContextMenuRequested, this, [this](const QPoint& point) {
    const QAction* entry = all_->menu()->actionAt(point);
    if (entry != nullptr && entry->data().isValid()) {
      findings_bar::offer_link(all_->menu(), point, entry->data().toString());
    }
  });
  all_->hide();
  layout_->addWidget(all_);
  layout_->addStretch(1);
  status_ = "Analysing the run…";
  connect(&document, &Document::analysed, this,
          [this] { fill(document_.insight()->verdict, document_.insight()->findings); });
  connect(&document, &Document::reported, this, &FindingsBar::show_report);
}

QToolButton* FindingsBar::add(const QString& text, const QString& details, const QIcon& icon,
                              std::function<void()> clicked) {
  auto* button = new QToolButton;
  button->setAutoRaise(true);
  button->setToolButtonStyle(icon.isNull() ? Qt::ToolButtonTextOnly : Qt::ToolButtonTextBesideIcon);
  button->setIcon(icon);
  button->setIconSize({findings_bar::icon_size + findings_bar::icon_gap, findings_bar::icon_size});
  button->setToolTip(findings_bar::paragraph(details));
  button->setAccessibleName(text);
  button->setAccessibleDescription(details);
  button->hide();
  connect(button, &QToolButton::clicked, this, clicked);
  layout_->insertWidget(static_cast<int>(findings_.size()), button);
  findings_.push_back(button);
  QAction* entry = all_->menu()->addAction(icon, QString(text).replace("&", "&&"), this, clicked);
  entry->setToolTip(button->toolTip());
  return button;
}

void FindingsBar::fill(const QString& verdict, std::vector<ShownFinding> findings) {
  status_.clear();
  for (const QToolButton* button : findings_) delete button;
  findings_.clear(), leading_.clear(), verdict_ = nullptr;
  all_->menu()->clear();
  // A finding that says the same as the verdict stands for both, because it may lead to a place.
  const QString state = findings_bar::first_clause(verdict);
  const auto same = std::ranges::find(findings, state, &ShownFinding::text);
  if (same != findings.end()) {
    std::rotate(findings.begin(), same, same + 1);
  } else if (!verdict.isEmpty()) {
    verdict_ = add(state, verdict, {}, [this] { Q_EMIT state_.commands.panel_wanted("Report"); });
  }
  for (const ShownFinding& finding : findings) {
    QToolButton* button =
        add(finding.text, finding.details, findings_bar::icon_of(finding), [this, finding] { go_to(finding); });
    if (verdict_ == nullptr && finding.text == state) verdict_ = button;
    if (finding.rank || finding.range) leading_.insert(button);
    const QString link = findings_bar::link_to(document_.run(), finding);
    all_->menu()->actions().back()->setData(link);
    button->setContextMenuPolicy(Qt::CustomContextMenu);
    connect(button, &QWidget::customContextMenuRequested, button,
            [button, link](const QPoint& point) { findings_bar::offer_link(button, point, link); });
  }
  fit();
  update();
}

void FindingsBar::show_report() {
  const analysis::Report& report = *document_.report();
  fill(QString::fromStdString(report.verdict.state), shown_findings(report));
  const QString details = QString::fromStdString(report.verdict.change);
  if (details.isEmpty()) return;
  const analysis::Prediction* first = analysis::first_prediction(report.runs.front());
  const QString text = first == nullptr ? findings_bar::first_clause(details)
                                        : QString("To change first: %1 (a step takes %2 less)")
                                              .arg(QString::fromStdString(first->title), share_text(1 - first->ratio));
  add(text, details, {}, [this] { Q_EMIT state_.commands.panel_wanted("What-if"); });
  fit();
}

void FindingsBar::cut_texts(std::size_t count, int most) {
  for (std::size_t i = 0; i < count; ++i) {
    QToolButton* button = findings_[i];
    QString text = button->accessibleName();
    const QFontMetrics metrics = button->fontMetrics();
    // "A step takes 40.1 ms (mean): rank 1 holds the others up": the reason matters more than the time before it.
    const QString time = text.left(text.indexOf(": ") + 2);
    const bool is_cut = 2 * (metrics.horizontalAdvance(text) - most) > metrics.horizontalAdvance(time);
    if (button == verdict_ && text.startsWith("A step ") && is_cut && text.contains(": ")) {
      text.remove(0, time.size());
      text[0] = text[0].toUpper();
    }
    text = metrics.elidedText(text, Qt::ElideRight, most);
    button->setText(QString(text).replace("&", "&&"));
  }
}

// Long findings are cut where not all of them fit, so that more of them are seen. Those that lead to a place get the
// room first, and the verdict gets what it needs, because its cause is at its end.
void FindingsBar::fit() {
  constexpr int most_if_cut = 420;
  const int room = width() - 16, for_all = fontMetrics().horizontalAdvance("99 findings") + 40;
  cut_texts(findings_.size(), room);
  int needed_for_all = 0;
  for (const QToolButton* button : findings_) needed_for_all += button->sizeHint().width() + layout_->spacing();
  if (needed_for_all > room) {
    cut_texts(findings_.size(), most_if_cut);
    if (verdict_ != nullptr) {
      const int text = verdict_->fontMetrics().size(Qt::TextShowMnemonic, verdict_->text()).width();
      cut_texts(1, room - for_all - layout_->spacing() - (verdict_->sizeHint().width() - text));
    }
  }
  std::vector<QToolButton*> first = findings_;
  std::ranges::stable_partition(first, [&](auto* button) { return button == verdict_ || leading_.contains(button); });
  int used = 0;
  std::size_t shown = 0;
  while (shown < first.size()) {
    const int needed = first[shown]->sizeHint().width() + layout_->spacing();
    if (used + needed + (shown + 1 < first.size() ? for_all : 0) > room) break;
    used += needed;
    ++shown;
  }
  for (std::size_t i = 0; i < first.size(); ++i) first[i]->setVisible(i < shown);
  all_->setVisible(shown < findings_.size());
  const std::size_t more = findings_.size() - shown;
  const QString text = plural_text(more, "finding", "findings");
  all_->setText((shown == 0 ? text : QString("%1 more").arg(more)) + " ▾");
  all_->setAccessibleName("All findings");
}

void FindingsBar::go_to(const ShownFinding& finding) {
  // It has no place but its sentence.
  if (!finding.rank && !finding.range) return Q_EMIT state_.commands.panel_wanted("Report");
  if (finding.rank) {
    state_.arrangement.set_pinned(*finding.rank, true);
    state_.arrangement.set_collapsed(*finding.rank, false);
  }
  if (finding.iteration) state_.selection.select_range(*finding.iteration);
  state_.selection.go_to({.rank = finding.rank, .range = finding.range});
  if (finding.stacks) Q_EMIT state_.commands.stacks_wanted(*finding.stacks);
  Q_EMIT state_.commands.timeline_wanted();
}

void FindingsBar::resizeEvent(QResizeEvent*) { fit(); }

void FindingsBar::paintEvent(QPaintEvent*) {
  const Theme theme = Theme::of(palette());
  QPainter painter(this);
  painter.fillRect(rect(), QColor(theme.ruler));
  painter.fillRect(0, height() - 1, width(), 1, QColor(theme.row_line));
  painter.setFont(with_size(font(), 11));
  painter.setPen(QColor(theme.faint_text));
  painter.drawText(rect().adjusted(12, 0, -12, 0), Qt::AlignVCenter | Qt::AlignLeft, status_);
}

}  // namespace paceline::viewer
