// SPDX-License-Identifier: Apache-2.0
#include "viewer/panels/details_panel.h"

#include <QEvent>
#include <algorithm>
#include <functional>
#include <limits>

#include "viewer/drawing/palette.h"
#include "viewer/text/time_text.h"

namespace paceline::viewer {
namespace details {

constexpr std::size_t most_partners = 4;

QString text_of(const std::string& text) { return QString::fromStdString(text); }

class Facts {
 public:
  explicit Facts(const Theme& theme) : faint_(QColor(theme.faint_text).name()) {}

  Facts& add(const QString& key, const QString& value) {
    if (!value.isEmpty()) {
      rows_ += QString(
                   "<tr><td style='color:%1; padding-right:16px; white-space:nowrap'>%2</td><td "
                   "style='white-space:%4'>%3</td></tr>")
                   .arg(faint_, key.toHtmlEscaped(), value.toHtmlEscaped(), value.size() < 40 ? "nowrap" : "normal");
    }
    return *this;
  }
  QString html() const { return "<table cellspacing='0' cellpadding='2'>" + rows_ + "</table>"; }

 private:
  QString faint_, rows_;
};

// The text with places where a line may end. Otherwise a long name would make the panel as wide as itself.
QString breakable(QString text) {
  constexpr int most = 40;
  for (qsizetype at = most; at < text.size(); at += most + 1) text.insert(at, QChar(0x200b));
  return text;
}

bool is_device(const analysis::Track& track) {
  return track.kind == analysis::TrackKind::stream || track.kind == analysis::TrackKind::nccl;
}

// The slice's number that joins it with others, if it has one.
std::optional<analysis::Argument> joining(const Run& run, const SliceRef& ref) {
  std::optional<analysis::Argument> found;
  if (ref.mark) return found;
  slices_of(run, ref).each_argument(ref.slice, [&](const analysis::Argument& argument) {
    const std::string& key = run.trace.names[argument.key];
    if (!found && (key == "call" || key == "correlation") && argument.whole() > 0) found = argument;
  });
  return found;
}

std::vector<SliceRef> partners_of(const Run& run, const SliceRef& ref) {
  std::vector<SliceRef> partners;
  const auto number = joining(run, ref);
  if (!number) return partners;
  const auto& tracks = run.trace.ranks[ref.rank].tracks;
  const bool on_device = is_device(tracks[ref.track]);
  for (std::size_t t = 0; t < tracks.size(); ++t) {
    if (is_device(tracks[t]) == on_device) continue;
    for (std::uint32_t i = 0; i < tracks[t].slices.size(); ++i) {
      const auto other = tracks[t].slices.argument(i, number->key);
      if (!other || other->whole() != number->whole()) continue;
      partners.push_back({.rank = ref.rank, .track = t, .slice = i});
      if (partners.size() == most_partners) return partners;
    }
  }
  return partners;
}

}  // namespace details

using details::Facts;
using details::text_of;

DetailsPanel::DetailsPanel(Document& document, Selection& selection)
    : document_(document), selection_(selection), task_(document.background()) {
  setFrameShape(QFrame::NoFrame);
  setAccessibleName("Details");
  this->document()->setDocumentMargin(12);
  connect(&selection, &Selection::slices_changed, this, &DetailsPanel::start);
  connect(&document, &Document::analysed, this, [this] {
    if (!selection_.slice()) fill();
  });
  start();
}

void DetailsPanel::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) fill();
}

void DetailsPanel::start() {
  scan_.reset();
  task_.cancel();
  const auto slice = selection_.slice();
  if (slice && !slice->mark) {
    task_.start([run = document_.shared_run(), ref = *slice](const Ticket& ticket) { return scan(*run, ref, ticket); },
                [this](Scan done) {
                  scan_ = std::move(done);
                  fill();
                });
  }
  fill();
}

DetailsPanel::Scan DetailsPanel::scan(const Run& run, const SliceRef& ref, const Ticket& ticket) {
  Scan scan{.ranks = {}, .partners = details::partners_of(run, ref)};
  const analysis::NameId name = kind_of(run, ref).name;
  for (std::size_t rank = 0; rank < run.trace.ranks.size() && !ticket.cancelled(); ++rank) {
    const auto durations = analysis::durations_of(run.trace, run.trace.ranks[rank].tracks, name);
    if (durations.count > 0) scan.ranks.push_back({rank, durations});
  }
  return scan;
}

void DetailsPanel::fill() { setHtml(selection_.slice() ? slice_text(*selection_.slice()) : run_text()); }

QString DetailsPanel::run_text() const {
  const auto& ranks = run().trace.ranks;
  const Theme theme = Theme::of(palette());
  Facts facts(theme);
  facts.add("trace", run().path);
  if (!ranks.empty()) {
    QStringList command, damage;
    for (const auto& rank : ranks) {
      if (rank.damaged) damage << QString("rank %1: %2").arg(rank.rank).arg(text_of(rank.damage));
    }
    for (const auto& word : ranks.front().command) command << text_of(word);
    facts.add("ranks", QString("%1 of %2").arg(ranks.size()).arg(ranks.front().world_size))
        .add("hosts", run().hosts.join(", "))
        .add("command", command.join(' '))
        .add("format", text_of(ranks.front().format))
        .add("slices", count_text(run().slices))
        .add("clock", text_of(ranks.front().clock_source))
        .add("clock error", clock_error_text(run()));
    if (const Insight* insight = document_.insight(); insight && insight->figures.losses.events > 0) {
      facts.add("events lost", count_text(insight->figures.losses.events));
    }
    if (!damage.isEmpty()) facts.add("damage", damage.join("; "));
  }
  return QString("<p><b>%1</b></p>").arg(run().title().toHtmlEscaped()) + facts.html() +
         QString("<p style='color:%1'>Click a slice to see its details.<br>Press ? for the keys and mouse moves.</p>")
             .arg(QColor(theme.faint_text).name());
}

QString DetailsPanel::slice_text(const SliceRef& ref) const {
  const auto& trace = run().trace;
  const auto& slices = slices_of(run(), ref);
  const std::int64_t start = slices.start_ns[ref.slice], duration = slices.duration_ns[ref.slice];
  const auto span = static_cast<double>(trace.span_ns());
  const auto time = [&](std::int64_t ns) { return time_text(static_cast<double>(ns), 1, span); };

  Facts facts(Theme::of(palette()));
  if (ref.mark) {
    facts.add("time", time(start));
  } else {
    facts.add("duration", duration_text(duration));
    const analysis::Iteration* iteration = analysis::iteration_at(run().index->iterations(ref.rank), start);
    if (iteration != nullptr && duration < iteration->duration_ns) {
      const double share = static_cast<double>(duration) / static_cast<double>(iteration->duration_ns);
      facts.add("share", QString("%1 of iteration %2").arg(share_text(share)).arg(iteration->number));
    }
    facts.add("start", time(start)).add("end", time(slices.end_ns(ref.slice)));
  }
  const auto& track = track_of(run(), ref);
  facts.add("where", QString("rank %1, %2").arg(trace.ranks[ref.rank].rank).arg(text_of(track.label)));
  QStringList kinds{domain_of(run(), ref), category_of(run(), ref)};
  kinds.removeAll(QString());
  facts.add("category", kinds.join(", "));
  slices.each_argument(ref.slice, [&](const analysis::Argument& argument) {
    facts.add(text_of(trace.names[argument.key]), value_text(run(), argument));
  });
  if (const std::string& name = trace.names[kind_of(run(), ref).name]; shown_name(name).contains(QChar(0x2026))) {
    facts.add("full name", details::breakable(text_of(name)));
  }
  const QString partner = details::is_device(track) ? "called by" : "ran as";
  if (!scan_ && details::joining(run(), ref)) facts.add(partner, "computing…");
  for (const SliceRef& other : scan_ ? scan_->partners : std::vector<SliceRef>()) {
    facts.add(partner, QString("%1 (%2, %3)")
                           .arg(slice_title(run(), other), text_of(track_of(run(), other).label),
                                time(slices_of(run(), other).start_ns[other.slice])));
  }
  const QString title = QString("<b>%1</b>").arg(slice_title(run(), ref).toHtmlEscaped());
  if (ref.mark) return "<p>" + title + "</p>" + facts.html();
  return QString(
             "<table cellspacing='0' cellpadding='0'><tr><td "
             "style='padding-right:12px'><p>%1</p>%2</td><td>%3</td></tr>"
             "</table>")
      .arg(title, facts.html(), statistics_text(ref));
}

QString DetailsPanel::statistics_text(const SliceRef& ref) const {
  const QString faint = QColor(Theme::of(palette()).faint_text).name();
  QString html = QString("<p style='color:%1'>All slices of this name</p>").arg(faint);
  if (!scan_) return html + QString("<p style='color:%1'>computing…</p>").arg(faint);
  html += "<table cellspacing='0' cellpadding='2'><tr>";
  for (const char* header : {"rank", "count", "median", "p95", "longest"}) {
    html +=
        QString("<td align='right' style='color:%1; padding-right:5px; white-space:nowrap'>%2</td>").arg(faint, header);
  }
  html += "</tr>";
  // The selected rank, and the ranks in which the name took longest.
  constexpr std::size_t most = 12;
  std::vector<Scan::OfRank> shown = scan_->ranks;
  std::ranges::stable_sort(shown, std::greater(), [&](const Scan::OfRank& of) {
    return of.rank == ref.rank ? std::numeric_limits<std::int64_t>::max() : of.durations.median_ns;
  });
  const std::size_t hidden = shown.size() - std::min(most, shown.size());
  shown.resize(shown.size() - hidden);
  if (hidden == 0) std::ranges::stable_sort(shown, {}, &Scan::OfRank::rank);
  for (const auto& [rank, durations] : shown) {
    const QString weight = rank == ref.rank ? "bold" : "normal";
    html += "<tr>";
    for (const QString& value :
         {QString::number(run().trace.ranks[rank].rank), count_text(durations.count),
          duration_text(durations.median_ns), duration_text(durations.p95_ns), duration_text(durations.maximum_ns)}) {
      html += QString("<td align='right' style='padding-right:5px; font-weight:%1; white-space:nowrap'>%2</td>")
                  .arg(weight, value);
    }
    html += "</tr>";
  }
  html += "</table>";
  if (hidden == 0) return html;
  return html + QString("<p style='color:%1'>and %2 with shorter medians</p>")
                    .arg(faint, plural_text(hidden, "rank", "ranks"));
}

}  // namespace paceline::viewer
