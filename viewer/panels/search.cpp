// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/search.h"

#include <QHBoxLayout>
#include <QKeyEvent>
#include <QRegularExpression>
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
#include "viewer/session/slice_filter.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {

namespace search {

QRegularExpression pattern_of(const QString& text) {
  return QRegularExpression(text, QRegularExpression::CaseInsensitiveOption);
}

struct Hit {
  std::int64_t start_ns = 0;
  SliceRef ref;

  auto key() const { return std::tuple(start_ns, ref.rank, ref.track, ref.mark, ref.slice); }
};

// Divides the time of the run into parts with about equally many slices, and collects the hits part by part on all
// CPUs. Of a frequent name, only the parts that have the earliest hits are read.
class Search {
 public:
  Search(const Run& run, const QString& text, const Ticket& ticket, std::size_t limit)
      : run_(run), ticket_(ticket), limit_(limit) {
    choose_kinds(text);
    list_columns();
    divide();
    hits_.resize(begins_.size());
    done_.resize(begins_.size());
    needed_ = begins_.size();
    analysis::parallel_for(begins_.size(), [&](std::size_t part) { search_part(part); });
  }

  Hits hits() const {
    if (ticket_.cancelled()) return {};
    Hits hits{.found = {}, .more = counted_ > limit_};
    hits.found.reserve(std::min(counted_, limit_));
    for (std::size_t part = 0; part < needed_; ++part) {
      for (const Hit& hit : hits_[part]) {
        if (hits.found.size() == limit_) return hits;
        hits.found.push_back(hit.ref);
      }
    }
    return hits;
  }

 private:
  // The slices or the marks of a track.
  struct Column {
    const analysis::Slices* slices;
    SliceRef first;

    std::size_t first_from(std::int64_t time_ns) const {
      return std::size_t(std::ranges::lower_bound(slices->start_ns, time_ns) - slices->start_ns.begin());
    }
  };

  void choose_kinds(const QString& text) {
    const auto& kinds = run_.trace.kinds;
    wanted_.resize(kinds.size());
    constexpr std::size_t at_once = 4096;
    analysis::parallel_for((kinds.size() + at_once - 1) / at_once, [&](std::size_t part) {
      const QRegularExpression pattern = pattern_of(text);
      const std::size_t end = std::min((part + 1) * at_once, kinds.size());
      for (std::size_t kind = part * at_once; kind < end && !ticket_.cancelled(); ++kind) {
        const QString name = QString::fromStdString(run_.trace.names[kinds[kind].name]);
        wanted_[kind] = name.contains(text, Qt::CaseInsensitive) || (pattern.isValid() && name.contains(pattern));
      }
    });
  }

  void list_columns() {
    for (std::size_t rank = 0; rank < run_.trace.ranks.size(); ++rank) {
      const auto& tracks = run_.trace.ranks[rank].tracks;
      for (std::size_t track = 0; track < tracks.size(); ++track) {
        SliceRef first{.rank = rank, .track = track, .slice = 0, .mark = false};
        const auto& kinds = run_.ranks[rank].kinds[track];
        if (std::ranges::any_of(kinds, [&](analysis::KindId kind) { return wanted_[kind] != 0; })) {
          columns_.push_back({&tracks[track].slices, first});
        }
        first.mark = true;
        if (tracks[track].marks.size() > 0) columns_.push_back({&tracks[track].marks, first});
      }
    }
  }

  // A sample of the slices shows where the parts begin: one of each 4096, counted through all columns, at a place that
  // varies, so that columns of equal lengths are not all sampled near their ends.
  void divide() {
    constexpr std::size_t step = 4096, samples_of_part = 64;
    const auto sampled = [](std::size_t n) { return n * step + n * 2'654'435'761 % step; };
    std::vector<std::int64_t> samples;
    std::size_t begin = 0;  // of the column, among all slices
    for (const Column& column : columns_) {
      const auto& starts = column.slices->start_ns;
      while (sampled(samples.size()) < begin + starts.size()) {
        samples.push_back(starts[sampled(samples.size()) - begin]);
      }
      begin += starts.size();
    }
    std::ranges::sort(samples);
    begins_ = {std::numeric_limits<std::int64_t>::min()};
    for (std::size_t i = samples_of_part; i < samples.size(); i += samples_of_part) {
      if (samples[i] > begins_.back()) begins_.push_back(samples[i]);
    }
  }

  void search_part(std::size_t part) {
    if (part >= needed_ || ticket_.cancelled()) return;
    std::vector<Hit> hits;
    for (const Column& column : columns_) {
      const analysis::Slices& slices = *column.slices;
      const std::size_t end = part + 1 < begins_.size() ? column.first_from(begins_[part + 1]) : slices.size();
      std::size_t added = 0;
      for (std::size_t i = column.first_from(begins_[part]); i < end; ++i) {
        if (wanted_[slices.kind[i]] == 0) continue;
        if (added++ > limit_) break;  // one more than the limit shows that there are more
        hits.push_back({slices.start_ns[i], column.first});
        hits.back().ref.slice = static_cast<std::uint32_t>(i);
      }
    }
    std::ranges::sort(hits, {}, &Hit::key);
    const std::scoped_lock lock(mutex_);
    hits_[part] = std::move(hits);
    done_[part] = true;
    for (; next_ < needed_ && done_[next_]; ++next_) {
      counted_ += hits_[next_].size();
      if (counted_ > limit_) needed_ = next_ + 1;
    }
  }

  const Run& run_;
  const Ticket& ticket_;
  const std::size_t limit_;
  std::vector<std::uint8_t> wanted_;  // by kind
  std::vector<Column> columns_;
  std::vector<std::int64_t> begins_;    // of the parts
  std::mutex mutex_;                    // of the members below
  std::vector<std::vector<Hit>> hits_;  // of each part, by key
  std::vector<bool> done_;
  std::size_t next_ = 0, counted_ = 0;   // the first part that is not done, and the hits before it
  std::atomic<std::size_t> needed_ = 0;  // so many parts have all hits that are kept
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
  connect(&state.commands, &Commands::filter_wanted, this, [this] {
    text_->setFocus(Qt::ShortcutFocusReason);
    text_->selectAll();
    if (!text_->text().isEmpty()) filter_->toggle();
  });
  connect(&state.commands, &Commands::search_wanted, this, [this](const QString& text) {
    text_->setFocus(Qt::ShortcutFocusReason);
    if (!text.isEmpty()) {
      text_->setText(text);
      search(1);
    }
    text_->selectAll();
  });
}

void SearchBar::search(int steps) {
  searched_ = text_->text();
  hits_ = std::make_shared<const Hits>();
  current_ = -1;
  if (searched_.isEmpty()) {
    task_.cancel();
    state_.selection.set_hits(nullptr);
    return show_count();
  }
  count_->setText("searching…");
  const auto work = [run = document_.shared_run(), text = searched_](const Ticket& ticket) {
    return std::make_shared<const Hits>(find_by_name(*run, text, ticket));
  };
  task_.start(work, [this, steps](std::shared_ptr<const Hits> hits) {
    hits_ = std::move(hits);
    state_.selection.set_hits(HitList(hits_, &hits_->found));  // shares them
    show_count();
    go(steps);
  });
}

void SearchBar::filter(bool on) {
  filtering_.cancel();
  count_->clear();
  if (!on) return state_.arrangement.set_filter({}, {});
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
    state_.arrangement.set_filter(text, std::move(kinds));
  });
}

void SearchBar::step(int steps) {
  // Enter after a change.
  if (filter_->isChecked() && text_->text() != state_.arrangement.filter()) return filter(true);
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
  state_.selection.reveal_closely(hits_->found[static_cast<std::size_t>(current_)]);
}

void SearchBar::show_count() {
  if (searched_.isEmpty()) {
    count_->clear();
  } else if (hits_->found.empty()) {
    // A condition need not be in a name.
    const bool tried = !filter_->isChecked() || searched_ != state_.arrangement.filter();
    const bool valid = search::pattern_of(searched_).isValid();
    count_->setText(!tried ? "" : valid ? "not found" : "not found; not a regular expression");
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
      Q_EMIT state_.commands.timeline_wanted();
      return true;
    }
  }
  return QWidget::eventFilter(watched, event);
}

}  // namespace paceline::viewer
