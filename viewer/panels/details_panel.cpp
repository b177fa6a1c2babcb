#include "viewer/panels/details_panel.h"

#include <QEvent>
#include <algorithm>
#include <cmath>

#include "viewer/drawing/palette.h"
#include "viewer/drawing/time_text.h"
#include "viewer/timeline/timeline_painter.h"

namespace paceline::viewer {
namespace {

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

QString argument_text(const analysis::Trace& trace, const analysis::Argument& argument) {
  if (argument.is_text()) return text_of(trace.names[argument.text()]);
  if (trace.names[argument.key] == "bytes") return count_text(argument.whole()) + " B";
  return text_of(analysis::number_text(argument));
}

bool is_device(const analysis::Track& track) {
  return track.kind == analysis::TrackKind::stream || track.kind == analysis::TrackKind::nccl;
}

// What belongs to a slice by a number that both have: to a call what it started, to that the call that started it.
void add_partners(const Run& run, const SliceRef& ref, const analysis::Argument& number, Facts& facts) {
  const auto& rank = run.trace.ranks[ref.rank];
  const bool on_device = is_device(rank.tracks[ref.track]);
  constexpr int most = 4;
  int added = 0;
  for (std::size_t t = 0; t < run.ranks[ref.rank].own_tracks; ++t) {
    const auto& track = rank.tracks[t];
    if (is_device(track) == on_device) continue;
    for (std::uint32_t i = 0; i < track.slices.size(); ++i) {
      const auto other = track.slices.argument(i, number.key);
      if (!other || other->whole() != number.whole()) continue;
      if (added++ == most) return;
      const std::int64_t start = track.slices.start_ns[i];
      facts.add(on_device ? "called by" : "ran as",
                QString("%1 (%2, %3)")
                    .arg(slice_title(run, track, track.slices, i), text_of(track.label),
                         time_text(static_cast<double>(start), 1, static_cast<double>(run.trace.span_ns()))));
    }
  }
}

}  // namespace

DetailsPanel::DetailsPanel(std::shared_ptr<const Run> run, QWidget* parent)
    : QTextBrowser(parent), run_(std::move(run)) {
  setFrameShape(QFrame::NoFrame);
  setAccessibleName("Details");
  document()->setDocumentMargin(12);
  fill();
}

void DetailsPanel::show_slice(std::optional<SliceRef> slice) {
  slice_ = slice;
  fill();
}

void DetailsPanel::changeEvent(QEvent* event) {
  QTextBrowser::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) fill();
}

void DetailsPanel::fill() { setHtml(slice_ ? slice_text(*slice_) : run_text()); }

QString DetailsPanel::run_text() const {
  const auto& ranks = run_->trace.ranks;
  const Theme theme = Theme::of(palette());
  Facts facts(theme);
  facts.add("trace", run_->path);
  if (!ranks.empty()) {
    QStringList hosts, command;
    std::uint64_t dropped = 0;
    QStringList damage;
    for (const auto& rank : ranks) {
      if (!hosts.contains(text_of(rank.host))) hosts << text_of(rank.host);
      for (const auto& [cause, count] : rank.dropped) {
        if (cause != "too_many_names" && cause != "payload_cut") dropped += count;  // those are there
      }
      if (rank.damaged) damage << QString("rank %1: %2").arg(rank.rank).arg(text_of(rank.damage));
    }
    for (const auto& word : ranks.front().command) command << text_of(word);
    facts.add("ranks", QString("%1 of %2").arg(ranks.size()).arg(ranks.front().world_size))
        .add("hosts", hosts.join(", "))
        .add("command", command.join(' '))
        .add("format", text_of(ranks.front().format))
        .add("slices", count_text(run_->slices()))
        .add("clock", text_of(ranks.front().clock_source))
        .add("clock error", ranks.size() > 1 && run_->clock_error_ns() > 0
                                ? "at most " + duration_text(std::llround(run_->clock_error_ns()))
                                : QString());
    if (dropped > 0) facts.add("events lost", count_text(dropped));
    if (!damage.isEmpty()) facts.add("damage", damage.join("; "));
  }
  return QString("<p><b>%1</b></p>").arg(run_->title().toHtmlEscaped()) + facts.html() +
         QString("<p style='color:%1'>Click a slice to see what it is.<br>Press ? for the keys and mouse moves.</p>")
             .arg(QColor(theme.faint_text).name());
}

QString DetailsPanel::slice_text(const SliceRef& ref) const {
  const auto& trace = run_->trace;
  const auto& rank = trace.ranks[ref.rank];
  const auto& track = rank.tracks[ref.track];
  const auto& slices = slices_of(*run_, ref);
  const std::int64_t start = slices.start_ns[ref.slice], duration = slices.duration_ns[ref.slice];
  const auto& kind = trace.kind_of(slices, ref.slice);
  const Theme theme = Theme::of(palette());

  Facts facts(theme);
  const auto span = static_cast<double>(trace.span_ns());
  if (ref.mark) {
    facts.add("time", time_text(static_cast<double>(start), 1, span));
  } else {
    facts.add("duration", duration_text(duration));
    const analysis::Iteration* iteration = analysis::iteration_at(run_->ranks[ref.rank].iterations, start);
    if (iteration != nullptr && duration < iteration->duration_ns) {
      const double share = static_cast<double>(duration) / static_cast<double>(iteration->duration_ns);
      facts.add("share", QString("%1 of iteration %2").arg(share_text(share)).arg(iteration->number));
    }
    facts.add("start", time_text(static_cast<double>(start), 1, span))
        .add("end", time_text(static_cast<double>(slices.end_ns(ref.slice)), 1, span));
  }
  facts.add("where", QString("rank %1, %2").arg(rank.rank).arg(text_of(track.label)));
  QStringList kinds;
  for (const auto id : {kind.domain, kind.category}) {
    if (id != 0) kinds << text_of(trace.names[id]);
  }
  facts.add("category", kinds.join(", "));
  slices.each_argument(ref.slice, [&](const analysis::Argument& argument) {
    facts.add(text_of(trace.names[argument.key]), argument_text(trace, argument));
    const std::string& key = trace.names[argument.key];
    const bool joins = (key == "call" || key == "correlation") && argument.whole() > 0;
    if (joins && !ref.mark) add_partners(*run_, ref, argument, facts);
  });
  const QString title = QString("<b>%1</b>").arg(slice_title(*run_, track, slices, ref.slice).toHtmlEscaped());
  if (ref.mark) return "<p>" + title + "</p>" + facts.html();

  return QString(
             "<table cellspacing='0' cellpadding='0'><tr><td "
             "style='padding-right:12px'><p>%1</p>%2</td><td>%3</td></tr>"
             "</table>")
      .arg(title, facts.html(), statistics_text(rank, kind.name));
}

QString DetailsPanel::statistics_text(const analysis::Rank& chosen, analysis::NameId name) const {
  const QString faint = QColor(Theme::of(palette()).faint_text).name();
  QString html =
      QString("<p style='color:%1'>All of this name</p><table cellspacing='0' cellpadding='2'><tr>").arg(faint);
  for (const char* header : {"rank", "count", "median", "p95", "longest"}) {
    html +=
        QString("<td align='right' style='color:%1; padding-right:5px; white-space:nowrap'>%2</td>").arg(faint, header);
  }
  html += "</tr>";
  for (std::size_t r = 0; r < run_->trace.ranks.size(); ++r) {
    const auto& rank = run_->trace.ranks[r];
    const auto statistics =
        analysis::durations_of(run_->trace, std::span(rank.tracks).first(run_->ranks[r].own_tracks), name);
    if (statistics.count == 0) continue;
    const QString weight = &rank == &chosen ? "bold" : "normal";
    html += "<tr>";
    for (const QString& value :
         {QString::number(rank.rank), count_text(statistics.count), duration_text(statistics.median_ns),
          duration_text(statistics.p95_ns), duration_text(statistics.maximum_ns)}) {
      html += QString("<td align='right' style='padding-right:5px; font-weight:%1; white-space:nowrap'>%2</td>")
                  .arg(weight, value);
    }
    html += "</tr>";
  }
  return html + "</table>";
}

}  // namespace paceline::viewer
