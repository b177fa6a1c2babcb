// SPDX-License-Identifier: Apache-2.0
#include "viewer/comparison/differences_table.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/compare/render.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace differences_table {

constexpr int verdict_column = 2;

TableKind kind() {
  return {
      .name = "Differences by name",
      .columns = {{"Name", "of the slices", false},
                  {"Category", "domain and category", false},
                  {"Verdict",
                   "of paceline compare on this name's time in an iteration, over all iterations after warm-up", false},
                  {"Change", "of the time in an iteration, B against A: what the verdict is about"},
                  {"A per iteration", "mean over the iterations after warm-up and the ranks"},
                  {"B per iteration", "mean over the iterations after warm-up and the ranks"},
                  {"Count in A", "slices of all ranks that begin in the selection, or in the run"},
                  {"Count in B", "slices of all ranks that begin in the selection, or in the run"},
                  {"Total in A",
                   "in the selection, or in the run, mean over the ranks; a slice inside another one counts in both"},
                  {"Total in B",
                   "in the selection, or in the run, mean over the ranks; a slice inside another one counts in both"},
                  {"Difference", "total in B − total in A"}},
      .sorted_by = 10,
      .of_range = true,
      .make = {}};
}

QString signed_text(double ns) {
  const auto whole = std::int64_t(std::llround(std::abs(ns)));
  return whole == 0 ? QString("0 ns") : (ns < 0 ? "−" : "+") + duration_text(whole);
}

// Of the quantity that the verdict is about. Of a name without a verdict only where it is.
TableCell change_cell(const NameDifference& name, const analysis::QuantityComparison* quantity) {
  if (quantity != nullptr) {
    return {QString::fromStdString(analysis::change_text(*quantity)), quantity->ratio - 1};
  }
  return {name.a.count == 0 ? "only in B" : name.b.count == 0 ? "only in A" : ""};
}

TableCell per_iteration(double seconds) { return duration_cell(std::llround(seconds * 1e9)); }

TableCell time_of(const NameTotal& total) {
  return total.count == 0 ? TableCell{} : TableCell{duration_text(std::llround(total.mean_ns)), total.mean_ns};
}

TableRow row_of(const NameDifference& name, const analysis::RunComparison* comparison) {
  QStringList where{shown_name(name.domain, 60), shown_name(name.category, 60)};
  where.removeAll(QString());
  const analysis::QuantityComparison* verdict = comparison != nullptr ? compared(*comparison, name) : nullptr;
  const bool in_iterations = verdict != nullptr && !comparison->totals;
  TableRow row;
  row.place.slice = name.a.longest;
  row.cells = {{shown_name(name.name)},
               {where.join(", ")},
               {verdict != nullptr ? analysis::change_word(*verdict) : ""},
               change_cell(name, verdict),
               in_iterations ? per_iteration(verdict->base_s) : TableCell{},
               in_iterations ? per_iteration(verdict->new_s) : TableCell{},
               count_cell(name.a.count),
               count_cell(name.b.count),
               time_of(name.a),
               time_of(name.b),
               {signed_text(name.difference_ns()), std::abs(name.difference_ns())}};
  return row;
}

QString where(const Stretch& a, const Stretch& b) {
  if (!a.part.range || !b.part.range) return "in the whole runs";
  if (a.iteration) return QString("in iteration %1 of A and of B").arg(*a.iteration);
  return QString("in the selected %1 of A and %2 of B")
      .arg(duration_text(std::llround(a.part.range->length())), duration_text(std::llround(b.part.range->length())));
}

}  // namespace differences_table

DifferencesTable::DifferencesTable(Document& a, Selection& in_a, Document& b, Selection& in_b, const Coupling& coupling)
    : TablePanel(a, in_a, differences_table::kind()), other_(b), other_selection_(in_b), coupling_(coupling) {
  connect(&in_b, &Selection::range_changed, this, [this] { set_stale(); });
}

void DifferencesTable::set_comparison(std::shared_ptr<const analysis::RunComparison> comparison) {
  comparison_ = std::move(comparison);
  constexpr int margin = 40;  // as of the other columns, which were fitted before the verdicts were known
  const int width = view().fontMetrics().horizontalAdvance("no difference shown") + margin;
  view().setColumnWidth(differences_table::verdict_column, width);
  set_stale();
}

void DifferencesTable::refresh() {
  note_->setText("computing…");
  const auto iteration = coupling_.selected_iteration();
  const Stretch here{selected_part(), iteration};
  const Stretch there{{other_selection_.range(), other_selection_.ranks()}, iteration};
  const auto make = [a = document_.shared_run(), b = other_.shared_run(), comparison = comparison_, here,
                     there](const Ticket& ticket) {
    const std::vector<NameDifference> names = name_differences(*a, here, *b, there, ticket);
    const std::size_t shown = std::min(names.size(), most_table_rows);
    TableContent content;
    for (std::size_t i = 0; i < shown; ++i) {
      content.rows.push_back(differences_table::row_of(names[i], comparison.get()));
    }
    content.note = plural_text(names.size(), "name ", "names ") + differences_table::where(here, there) +
                   cut_text(shown, names.size(), "with the largest differences") + "; totals are means over the ranks";
    return content;
  };
  task_.start(make, [this](TableContent content) { show(std::move(content)); });
}

}  // namespace paceline::viewer
