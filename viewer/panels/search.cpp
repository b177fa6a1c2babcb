#include "viewer/panels/search.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "analysis/trace/parallel.h"
#include "profiler/format/error.h"
#include "viewer/drawing/time_text.h"
#include "viewer/session/slice_filter.h"

namespace paceline::viewer {

namespace search {

// Calls test(name) once for each name that slices have, and notes the result for each kind.
template <class Test>
std::vector<bool> kinds_with(const analysis::Trace& trace, const Ticket& ticket, Test test) {
  std::vector<bool> wanted;
  for (const analysis::Kind& kind : trace.kinds) {
    wanted.push_back(!ticket.cancelled() && test(QString::fromStdString(trace.names[kind.name])));
  }
  return wanted;
}

struct Hit {
  std::int64_t start_ns = 0;
  SliceRef ref;

  auto key() const { return std::tuple(start_ns, ref.rank, ref.track, ref.mark, ref.slice); }
};

// Collects the hits rank by rank, on all CPUs. Of too many hits the earliest ones are kept, whatever the order of the
// ranks.
class Search {
 public:
  Search(const Run& run, const QString& text, const Ticket& ticket, std::size_t limit)
      : run_(run), ticket_(ticket), limit_(limit) {
    const auto named = [&](const QString& name) { return name.contains(text, Qt::CaseInsensitive); };
    for (const bool one : kinds_with(run.trace, ticket, named)) wanted_.push_back(one);
    analysis::parallel_for(run.trace.ranks.size(), [&](std::size_t rank) { search_rank(rank); });
  }

  Hits hits() {
    if (ticket_.cancelled()) return {};
    if (hits_.size() > limit_) keep_earliest();
    std::ranges::sort(hits_, {}, &Hit::key);
    Hits hits{.found = {}, .more = more_};
    hits.found.reserve(hits_.size());
    for (const Hit& hit : hits_) hits.found.push_back(hit.ref);
    return hits;
  }

 private:
  void search_rank(std::size_t rank) {
    std::vector<Hit> found;
    const auto& tracks = run_.trace.ranks[rank].tracks;
    for (std::size_t track = 0; track < tracks.size() && !ticket_.cancelled(); ++track) {
      const auto& kinds = run_.ranks[rank].kinds[track];
      if (std::ranges::any_of(kinds, [&](analysis::KindId kind) { return wanted_[kind] != 0; })) {
        add_from(tracks[track].slices, {.rank = rank, .track = track, .slice = 0, .mark = false}, found);
      }
      add_from(tracks[track].marks, {.rank = rank, .track = track, .slice = 0, .mark = true}, found);
    }
    const std::scoped_lock lock(mutex_);
    hits_.insert(hits_.end(), found.begin(), found.end());
    if (hits_.size() >= 2 * limit_) keep_earliest();
  }

  void add_from(const analysis::Slices& slices, SliceRef ref, std::vector<Hit>& found) {
    std::size_t added = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) {
      if (wanted_[slices.kind[i]] == 0) continue;
      // Later ones are not among the earliest ones of the run.
      if (slices.start_ns[i] > last_ns_.load(std::memory_order_relaxed)) return;
      if (added++ > limit_) return;  // one more than the limit shows that there are more
      ref.slice = static_cast<std::uint32_t>(i);
      found.push_back({slices.start_ns[i], ref});
    }
  }

  void keep_earliest() {
    more_ = true;
    const auto end = hits_.begin() + static_cast<std::ptrdiff_t>(limit_);
    std::ranges::nth_element(hits_, end - 1, {}, &Hit::key);
    last_ns_ = (end - 1)->start_ns;
    hits_.erase(end, hits_.end());
  }

  const Run& run_;
  const Ticket& ticket_;
  const std::size_t limit_;
  std::vector<std::uint8_t> wanted_;  // by kind
  std::mutex mutex_;                  // of the members below
  std::vector<Hit> hits_;
  bool more_ = false;
  std::atomic<std::int64_t> last_ns_ = std::numeric_limits<std::int64_t>::max();  // nothing after it is kept
};

}  // namespace search

Hits find_by_name(const Run& run, const QString& text, const Ticket& ticket, std::size_t limit) {
  if (text.isEmpty()) return {};
  return search::Search(run, text, ticket, limit).hits();
}

SearchBar::SearchBar(Document& document, ViewState& state)
    : document_(document), state_(state), task_(document.background()), filtering_(document.background()) {
  text_ = new QLineEdit;
  text_->setPlaceholderText("Find by name (Ctrl+F)");
  text_->setAccessibleName("Find slices by name");
  text_->setClearButtonEnabled(true);
  text_->setMinimumWidth(140);
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
  filter_ = new QToolButton;
  filter_->setText("Filter");
  filter_->setCheckable(true);
  filter_->setAutoRaise(true);
  filter_->setToolTip("Show only slices that fit this condition, such as: mpi and not rank 3 (Ctrl+Shift+F)");
  layout->addWidget(filter_);
  connect(filter_, &QToolButton::toggled, this, &SearchBar::filter);
  connect(text_, &QLineEdit::textChanged, this, [this](const QString& text) {
    if (!text.isEmpty()) return;
    search(0);
    filter_->setChecked(false);
  });
  connect(&state, &ViewState::filter_wanted, this, [this] {
    text_->setFocus(Qt::ShortcutFocusReason);
    text_->selectAll();
    if (!text_->text().isEmpty()) filter_->toggle();
  });
  connect(&state, &ViewState::search_wanted, this, [this] {
    text_->setFocus(Qt::ShortcutFocusReason);
    text_->selectAll();
  });
}

void SearchBar::search(int steps) {
  searched_ = text_->text();
  hits_ = std::make_shared<const Hits>();
  current_ = -1;
  if (searched_.isEmpty()) {
    task_.cancel();
    state_.set_hits(nullptr);
    return show_count();
  }
  count_->setText("searching…");
  const auto work = [run = document_.shared_run(), text = searched_](const Ticket& ticket) {
    return std::make_shared<const Hits>(find_by_name(*run, text, ticket));
  };
  task_.start(work, [this, steps](std::shared_ptr<const Hits> hits) {
    hits_ = std::move(hits);
    state_.set_hits(HitList(hits_, &hits_->found));  // shares them
    show_count();
    go(steps);
  });
}

void SearchBar::filter(bool on) {
  filtering_.cancel();
  if (!on) return state_.set_filter({}, {});
  std::optional<SliceFilter> filter;
  try {
    filter.emplace(text_->text());
  } catch (const Error& error) {
    filter_->setChecked(false);
    return count_->setText(QString::fromUtf8(error.what()));
  }
  const auto work = [run = document_.shared_run(), filter = *filter](const Ticket& ticket) {
    return filter.kinds_of(*run, ticket);
  };
  filtering_.start(work, [this, text = text_->text()](KindSets kinds) {
    const auto shows = [](const KindSet& set) { return std::ranges::find(*set, true) != set->end(); };
    if (std::ranges::none_of(kinds, shows)) count_->setText("nothing fits");
    state_.set_filter(text, std::move(kinds));
  });
}

void SearchBar::step(int steps) {
  if (filter_->isChecked() && text_->text() != state_.filter()) return filter(true);  // Enter after a change
  if (text_->text() != searched_) {
    search(steps);
  } else {
    go(steps);
  }
}

void SearchBar::go(int steps) {
  const auto count = std::ssize(hits_->found);
  if (count == 0) return;
  current_ = current_ < 0 ? (steps > 0 ? 0 : count - 1) : ((current_ + steps) % count + count) % count;
  show_count();
  state_.reveal_closely(hits_->found[static_cast<std::size_t>(current_)]);
}

void SearchBar::show_count() {
  if (searched_.isEmpty()) {
    count_->clear();
  } else if (hits_->found.empty()) {
    count_->setText("not found");
  } else {
    count_->setText(QString("%1 of %2%3")
                        .arg(count_text(static_cast<std::uint64_t>(current_ + 1)), count_text(hits_->found.size()),
                             hits_->more ? "+" : ""));
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
