// SPDX-License-Identifier: Apache-2.0
#include "viewer/session/view_file.h"

#include <QDir>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QSaveFile>
#include <map>

#include "profiler/format/error.h"
#include "viewer/session/colour_choices.h"

namespace paceline::viewer {
namespace view_file {

constexpr const char* schema = "paceline.view/1";
constexpr const char* orders[] = {"number", "host", "waiting caused", "duration", "own"};  // as Arrangement::RankOrder

QJsonArray range_json(const TimeRange& range) { return {range.begin_ns, range.end_ns}; }

std::optional<TimeRange> range_of(const QJsonValue& value) {
  const QJsonArray ends = value.toArray();
  if (ends.size() != 2 || !ends[0].isDouble() || !ends[1].isDouble()) return std::nullopt;
  const TimeRange range{ends[0].toDouble(), ends[1].toDouble()};
  return range.length() > 0 ? std::optional(range) : std::nullopt;
}

// The numbers of the ranks for which `is` holds.
template <class Is>
QJsonArray ranks_json(const Run& run, Is is) {
  QJsonArray numbers;
  for (std::size_t rank = 0; rank < run.trace.ranks.size(); ++rank) {
    if (is(rank)) numbers.append(run.trace.ranks[rank].rank);
  }
  return numbers;
}

QJsonObject colours_json(const ColourChoices& choices) {
  QJsonObject phases, names;
  for (std::size_t phase = 0; phase < choices.phases.size(); ++phase) {
    const auto name = analysis::phase_name(static_cast<analysis::Phase>(phase));
    if (choices.phases[phase] != 0)
      phases[QLatin1String(name.data(), qsizetype(name.size()))] = QColor(choices.phases[phase]).name();
  }
  for (const auto& [name, colour] : choices.names) names[QString::fromStdString(name)] = QColor(colour).name();
  return {{"phases", phases}, {"names", names}};
}

// The choices, with those of the file instead where it has some.
ColourChoices with_colours(ColourChoices choices, const QJsonValue& colours) {
  const QJsonObject phases = colours["phases"].toObject(), names = colours["names"].toObject();
  for (std::size_t phase = 0; phase < choices.phases.size(); ++phase) {
    const auto name = analysis::phase_name(static_cast<analysis::Phase>(phase));
    const QColor colour(phases[QLatin1String(name.data(), qsizetype(name.size()))].toString());
    if (colour.isValid()) choices.phases[phase] = colour.rgb();
  }
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (const QColor colour(name->toString()); colour.isValid()) choices.names[name.key().toStdString()] = colour.rgb();
  }
  return choices;
}

class RankNumbers {
 public:
  explicit RankNumbers(const Run& run) {
    for (std::size_t rank = 0; rank < run.trace.ranks.size(); ++rank) index_[run.trace.ranks[rank].rank] = rank;
  }
  // The indices of those that the run has.
  std::vector<std::size_t> of(const QJsonValue& numbers) const {
    std::vector<std::size_t> indices;
    for (const QJsonValue& number : numbers.toArray()) {
      if (const auto found = index_.find(number.toInt(-1)); found != index_.end()) indices.push_back(found->second);
    }
    return indices;
  }

 private:
  std::map<int, std::size_t> index_;
};

}  // namespace view_file

QString view_file_of(const QString& run_path) { return QDir::cleanPath(run_path) + ".paceline-view"; }

QByteArray view_to_json(const ViewState& state, const QByteArray& layout) {
  using namespace view_file;
  const Run& run = state.run;
  QJsonObject view{{"schema", schema},
                   {"view_ns", range_json(state.time.axis().visible())},
                   {"order", orders[int(state.arrangement.rank_order())]},
                   {"names_width", state.time.names_width()},
                   {"panels_shown", state.arrangement.panels_shown()},
                   {"states_shown", state.arrangement.states_shown()},
                   {"layout", QString::fromLatin1(layout.toBase64())}};
  if (const auto range = state.selection.range()) view["selected_ns"] = range_json(*range);
  if (!state.selection.ranks().empty()) {
    view["selected_ranks"] = ranks_json(run, [&](std::size_t rank) { return state.selection.ranks().contains(rank); });
  }
  view["unfolded"] = ranks_json(run, [&](std::size_t rank) { return !state.arrangement.collapsed(rank); });
  view["pinned"] = ranks_json(run, [&](std::size_t rank) { return state.arrangement.pinned(rank); });
  view["hidden"] = ranks_json(run, [&](std::size_t rank) { return state.arrangement.rank_hidden(rank); });
  QJsonArray bookmarks, rows, own, pinned;
  for (const auto& [rank, row] : state.arrangement.pinned_rows()) {
    pinned.append(QJsonObject{{"rank", run.trace.ranks[rank].rank}, {"row", row}});
  }
  view["pinned_rows"] = pinned;
  view["colours"] = colours_json(*chosen_colours());
  for (const Bookmark& bookmark : state.time.bookmarks()) {
    bookmarks.append(QJsonObject{{"time_ns", bookmark.time_ns}, {"text", bookmark.text}});
  }
  for (const QString& name : state.arrangement.hidden_rows()) rows.append(name);
  view["bookmarks"] = bookmarks;
  view["hidden_rows"] = rows;
  if (state.arrangement.rank_order() == Arrangement::RankOrder::own) {
    for (const RankGroup& group : state.arrangement.groups()) {
      for (const std::size_t rank : group.ranks) own.append(run.trace.ranks[rank].rank);
    }
    view["own_order"] = own;
  }
  return QJsonDocument(view).toJson();
}

QByteArray view_from_json(const QByteArray& text, const QString& file, ViewState& state) {
  using namespace view_file;
  QJsonParseError problem;
  const QJsonObject view = QJsonDocument::fromJson(text, &problem).object();
  if (view["schema"].toString() != schema) {
    throw Error(QString("%1: not a saved view (%2); delete it, or save the view again with Ctrl+S")
                    .arg(file, problem.error == QJsonParseError::NoError ? QString("its schema is not %1").arg(schema)
                                                                         : problem.errorString())
                    .toStdString());
  }
  const Run& run = state.run;
  const RankNumbers numbers(run);
  for (std::size_t order = 0; order < std::size(orders); ++order) {
    if (view["order"].toString() == orders[order]) state.arrangement.sort_ranks(Arrangement::RankOrder(order));
  }
  if (view.contains("own_order")) {
    std::vector<std::size_t> own = numbers.of(view["own_order"]);
    // Every rank once, those that the file does not name last.
    std::set<std::size_t> seen;
    std::erase_if(own, [&](std::size_t rank) { return !seen.insert(rank).second; });
    for (std::size_t rank = 0; rank < run.trace.ranks.size(); ++rank) {
      if (!seen.contains(rank)) own.push_back(rank);
    }
    state.arrangement.set_own_order(std::move(own));
  }
  if (view.contains("unfolded")) {
    state.arrangement.set_all_collapsed(true);
    for (const std::size_t rank : numbers.of(view["unfolded"])) state.arrangement.set_collapsed(rank, false);
  }
  for (const std::size_t rank : numbers.of(view["pinned"])) state.arrangement.set_pinned(rank, true);
  for (const std::size_t rank : numbers.of(view["hidden"])) state.arrangement.set_rank_hidden(rank, true);
  for (const QJsonValue& name : view["hidden_rows"].toArray()) state.arrangement.hide_rows(name.toString());
  for (const QJsonValue& row : view["pinned_rows"].toArray()) {
    for (const std::size_t rank : numbers.of(QJsonArray{row["rank"]})) {
      state.arrangement.set_row_pinned(rank, row["row"].toString(), true);
    }
  }
  state.arrangement.set_states_shown(view["states_shown"].toBool(true));
  choose_colours(with_colours(*chosen_colours(), view["colours"]));
  std::vector<Bookmark> bookmarks;
  for (const QJsonValue& bookmark : view["bookmarks"].toArray()) {
    bookmarks.push_back({.time_ns = bookmark["time_ns"].toDouble(), .text = bookmark["text"].toString()});
  }
  state.time.set_bookmarks(std::move(bookmarks));
  if (view.contains("names_width")) state.time.set_names_width(view["names_width"].toInt());
  if (const auto range = range_of(view["view_ns"])) state.time.show_part(*range);
  if (const auto range = range_of(view["selected_ns"])) {
    const auto ranks = numbers.of(view["selected_ranks"]);
    state.selection.select_range(range, {ranks.begin(), ranks.end()});
  }
  if (view.contains("panels_shown")) state.arrangement.set_panels_shown(view["panels_shown"].toBool());
  return QByteArray::fromBase64(view["layout"].toString().toLatin1());
}

void save_view(const QString& file, const ViewState& state, const QByteArray& layout) {
  QSaveFile out(file);  // keeps the old file where the new one cannot be written
  if (!out.open(QIODevice::WriteOnly) || out.write(view_to_json(state, layout)) < 0 || !out.commit()) {
    throw Error(QString("%1: the view cannot be saved: %2").arg(file, out.errorString()).toStdString());
  }
}

}  // namespace paceline::viewer
