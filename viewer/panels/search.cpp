#include "viewer/panels/search.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QToolButton>
#include <algorithm>

#include "viewer/drawing/time_text.h"

namespace paceline::viewer {

Hits find_by_name(const Run& run, const QString& text, const Ticket& ticket) {
  Hits hits;
  if (text.isEmpty()) return hits;
  const auto& trace = run.trace;
  std::vector<bool> wanted;  // by kind
  for (const analysis::Kind& kind : trace.kinds) {
    wanted.push_back(QString::fromStdString(trace.names[kind.name]).contains(text, Qt::CaseInsensitive));
  }
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    for (std::size_t track = 0; track < trace.ranks[rank].tracks.size(); ++track) {
      for (const bool mark : {false, true}) {
        if (ticket.cancelled()) return hits;
        SliceRef ref{.rank = rank, .track = track, .slice = 0, .mark = mark};
        const auto& slices = slices_of(run, ref);
        for (std::size_t i = 0; i < slices.size(); ++i) {
          if (!wanted[slices.kind[i]]) continue;
          if (hits.found.size() == Hits::limit) {
            hits.more = true;
            break;
          }
          ref.slice = static_cast<std::uint32_t>(i);
          hits.found.push_back(ref);
        }
      }
    }
  }
  std::stable_sort(hits.found.begin(), hits.found.end(), [&](const SliceRef& a, const SliceRef& b) {
    return slices_of(run, a).start_ns[a.slice] < slices_of(run, b).start_ns[b.slice];
  });
  return hits;
}

SearchBar::SearchBar(Document& document, ViewState& state)
    : document_(document), state_(state), task_(document.background()) {
  text_ = new QLineEdit;
  text_->setPlaceholderText("Find by name (Ctrl+F)");
  text_->setAccessibleName("Find slices by name");
  text_->setClearButtonEnabled(true);
  text_->setMinimumWidth(240);
  text_->installEventFilter(this);
  count_ = new QLabel;
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->setSpacing(6);
  layout->addWidget(count_);
  layout->addWidget(text_);
  for (const int direction : {-1, 1}) {
    auto* button = new QToolButton;
    button->setArrowType(direction < 0 ? Qt::UpArrow : Qt::DownArrow);
    button->setAutoRaise(true);
    button->setToolTip(direction < 0 ? "Previous hit (Shift+Enter)" : "Next hit (Enter)");
    button->setAccessibleName(direction < 0 ? "Previous hit" : "Next hit");
    layout->addWidget(button);
    connect(button, &QToolButton::clicked, this, [this, direction] { step(direction); });
  }
  connect(text_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (text.isEmpty()) search(0);
  });
  connect(&state, &ViewState::search_wanted, this, [this] {
    text_->setFocus(Qt::ShortcutFocusReason);
    text_->selectAll();
  });
}

void SearchBar::search(int steps) {
  searched_ = text_->text();
  hits_ = {};
  current_ = -1;
  if (searched_.isEmpty()) {
    task_.cancel();
    return show_count();
  }
  count_->setText("searching…");
  task_.start([run = document_.shared_run(),
               text = searched_](const Ticket& ticket) { return find_by_name(*run, text, ticket); },
              [this, steps](Hits hits) {
                hits_ = std::move(hits);
                show_count();
                go(steps);
              });
}

void SearchBar::step(int steps) {
  if (text_->text() != searched_) {
    search(steps);
  } else {
    go(steps);
  }
}

void SearchBar::go(int steps) {
  const auto count = std::ssize(hits_.found);
  if (count == 0) return;
  current_ = current_ < 0 ? (steps > 0 ? 0 : count - 1) : ((current_ + steps) % count + count) % count;
  show_count();
  state_.reveal(hits_.found[static_cast<std::size_t>(current_)]);
}

void SearchBar::show_count() {
  if (searched_.isEmpty()) {
    count_->clear();
  } else if (hits_.found.empty()) {
    count_->setText("not found");
  } else {
    count_->setText(QString("%1 of %2%3")
                        .arg(count_text(static_cast<std::uint64_t>(current_ + 1)), count_text(hits_.found.size()),
                             hits_.more ? "+" : ""));
  }
}

bool SearchBar::eventFilter(QObject* watched, QEvent* event) {
  if (watched == text_ && event->type() == QEvent::KeyPress) {
    const auto* key = static_cast<QKeyEvent*>(event);
    if (key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter) {
      step(key->modifiers() & Qt::ShiftModifier ? -1 : 1);
      return true;
    }
    if (key->key() == Qt::Key_Escape) {
      Q_EMIT state_.timeline_wanted();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace paceline::viewer
