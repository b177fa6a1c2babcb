// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/destination.h"

#include <QRegularExpression>
#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace destination {

using Kind = Destination::Kind;
constexpr std::size_t most_numbers = 10, most_names = 20, most_kinds = 100'000;

// "it 1" asks for the iterations whose numbers begin with 1; a number alone for this very number.
struct Numbered {
  QString word, digits;
  bool valid = false;

  explicit Numbered(const QString& text) {
    static const QRegularExpression form("^([a-z]*) ?([0-9]*)$", QRegularExpression::CaseInsensitiveOption);
    const auto match = form.match(text);
    word = match.captured(1), digits = match.captured(2);
    valid = match.hasMatch();
  }
  bool means(const QString& noun) const { return valid && noun.startsWith(word, Qt::CaseInsensitive); }
  bool fits(const QString& number) const { return word.isEmpty() ? number == digits : number.startsWith(digits); }
};

// Of `count` numbered things, those that fit, the shortest numbers first. `number_of` returns the number of the i-th.
template <class NumberOf>
void add_numbered(std::vector<Destination>& found, const Numbered& wanted, Kind kind, const QString& noun,
                  std::size_t count, NumberOf number_of) {
  if (!wanted.means(noun)) return;
  std::vector<std::size_t> fitting;
  for (std::size_t i = 0; i < count; ++i) {
    if (wanted.fits(QString::number(number_of(i)))) fitting.push_back(i);
  }
  std::ranges::stable_sort(fitting, {}, [&](std::size_t i) { return QString::number(number_of(i)).size(); });
  if (fitting.size() > most_numbers) fitting.resize(most_numbers);
  const QString title = noun.left(1).toUpper() + noun.mid(1);
  for (const std::size_t i : fitting) {
    found.push_back({.kind = kind, .text = QString("%1 %2").arg(title).arg(number_of(i)), .index = i, .name = {}});
  }
}

// The names that contain the text: those that are the text first, then those that begin with it, then the shortest.
void add_names(std::vector<Destination>& found, const analysis::Trace& trace, const QString& text) {
  std::set<std::tuple<bool, bool, qsizetype, QString>> names;
  const std::size_t kinds = std::min(trace.kinds.size(), most_kinds);
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    const QString name = QString::fromStdString(trace.names[trace.kinds[kind].name]);
    if (!name.contains(text, Qt::CaseInsensitive)) continue;
    names.emplace(name != text, !name.startsWith(text, Qt::CaseInsensitive), name.size(), name);
    if (names.size() > most_names) names.erase(std::prev(names.end()));
  }
  const bool more = names.size() > 1 || kinds < trace.kinds.size();
  if (more && (names.empty() || std::get<0>(*names.begin()))) {
    found.push_back({.kind = Kind::name, .text = QString("All names with \"%1\"").arg(text), .name = text});
  }
  for (const auto& [other, inside, length, name] : names) {
    found.push_back({.kind = Kind::name, .text = shown_name(name.toStdString()), .name = name});
  }
}

template <class NumberOf>
QString range_text(const QString& noun, std::size_t count, NumberOf number_of) {
  if (count == 0) return QString("The run has no %1s.").arg(noun);
  std::int64_t least = number_of(0), most = least;
  for (std::size_t i = 1; i < count; ++i) {
    least = std::min<std::int64_t>(least, number_of(i)), most = std::max<std::int64_t>(most, number_of(i));
  }
  return QString("The run has the %1s %2 to %3.").arg(noun).arg(least).arg(most);
}

}  // namespace destination

Destinations destinations(const Run& run, const QString& typed, bool names) {
  using destination::Kind;
  const QString text = typed.simplified();
  if (text.isEmpty()) return {};
  const destination::Numbered wanted(text);
  const auto iteration_number = [&](std::size_t i) { return run.iterations[i].number; };
  const auto rank_number = [&](std::size_t i) { return std::int64_t{run.trace.ranks[i].rank}; };
  const double time = time_from_text(text);
  Destinations all;
  destination::add_numbered(all.found, wanted, Kind::iteration, "iteration", run.iterations.size(), iteration_number);
  destination::add_numbered(all.found, wanted, Kind::rank, "rank", run.ranks.size(), rank_number);
  if (time >= run.begin_ns && time <= run.end_ns) {
    const QString unit = text.back().isDigit() || text.back() == '.' ? " s" : "";
    all.found.push_back({.kind = Kind::time, .text = "Time " + text + unit, .time_ns = time, .name = {}});
  }
  if (names) destination::add_names(all.found, run.trace, text);
  if (!all.found.empty()) return all;
  const bool counted = !wanted.word.isEmpty() && !wanted.digits.isEmpty();
  if (counted && wanted.means("iteration")) {
    all.missing = destination::range_text("iteration", run.iterations.size(), iteration_number);
  } else if (counted && wanted.means("rank")) {
    all.missing = destination::range_text("rank", run.ranks.size(), rank_number);
  } else if (!std::isnan(time)) {
    all.missing = QString("The run lasts from %1 to %2.")
                      .arg(duration_text(std::llround(run.begin_ns)), duration_text(std::llround(run.end_ns)));
  } else if (names) {
    all.missing = QString("No slice has a name with \"%1\".").arg(text);
  } else {
    all.missing = QString("\"%1\" is no time, iteration or rank.").arg(text);
  }
  return all;
}

void go_to(ViewState& state, const Destination& destination) {
  switch (destination.kind) {
    case Destination::Kind::time:
      state.time.go_to_time(destination.time_ns);
      break;
    case Destination::Kind::iteration: {
      const RunIteration& iteration = state.run.iterations[destination.index];
      const TimeRange range{double(iteration.start_ns), double(iteration.end_ns)};
      state.time.jump_to({range.begin_ns - 0.03 * range.length(), range.end_ns + 0.03 * range.length()});
      state.selection.select_range(range);
      break;
    }
    case Destination::Kind::rank:
      state.arrangement.set_collapsed(destination.index, false);
      state.selection.go_to({.rank = destination.index});
      break;
    case Destination::Kind::name:
      Q_EMIT state.commands.search_wanted(destination.name);
      return;  // the keyboard goes to the search, where Enter leads to the next hit
  }
  Q_EMIT state.commands.timeline_wanted();
}

}  // namespace paceline::viewer
