// One HTML file that loads nothing: styles, figures and the charting library are inside. Tables and sentences need no
// JavaScript; charts are drawn where it is on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "analysis/report/findings.h"
#include "analysis/report/render.h"
#include "analysis/report/renderings/html_parts.h"
#include "analysis/report/scaling_sentences.h"
#include "analysis/report/tables.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

using nlohmann::json;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

bool is_finite(const std::optional<Interval>& interval) {
  return interval && std::isfinite(interval->low) && std::isfinite(interval->high);
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report) {}

  std::string write() {
    header();
    for (std::size_t r = 0; r < report_.runs.size(); ++r) run_section(r);
    footer();
    return std::move(out_);
  }

 private:
  void header() {
    out_ += fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Paceline report</title>\n"
        "<style>{}</style>\n</head>\n<body>\n<main>\n<header>\n<p class=\"brand\">Paceline report</p>\n<h1>{}</h1>\n",
        html_style(), escaped(report_.headline));
    key_figures();
    out_ += "</header>\n";
    out_ += "<section>\n<h2>What the figures say</h2>\n";
    findings(std::nullopt);
    out_ += "</section>\n";
    const auto tables = scaling_tables(report_);
    if (tables.empty()) return;
    out_ += "<section>\n<h2>Scaling</h2>\n";
    for (const auto& table : tables) {
      if (table.id == "scaling") scaling_charts();
      print(table);
    }
    out_ += "</section>\n";
  }

  void card(const std::string& value, const std::string& what, const std::string& beside = "") {
    out_ += fmt::format("<div class=\"card\"><b>{}</b><span>{}</span>{}</div>\n", escaped(value), escaped(what),
                        beside.empty() ? "" : fmt::format("<small>{}</small>", escaped(beside)));
  }

  std::string beside(const std::optional<Interval>& ci95, int decimals) {
    return ci95 ? fmt::format("95 %: {}–{}", fixed(ci95->low, decimals), fixed(ci95->high, decimals)) : "";
  }

  void key_figures() {
    out_ += "<div class=\"cards\">\n";
    const ScalingPoint* best = headline_point(report_.scaling);
    if (best != nullptr) {
      card(fixed(*best->speedup, 2), fmt::format("speed-up S({})", best->ranks), beside(best->speedup_ci95, 2));
      card(percent(*best->efficiency), fmt::format("efficiency E({})", best->ranks),
           best->efficiency_ci95
               ? fmt::format("95 %: {}–{}", percent(best->efficiency_ci95->low), percent(best->efficiency_ci95->high))
               : "");
    }
    if (!report_.scaling.fits.empty() && !report_.scaling.fits.front().misfit) {
      const auto& fit = report_.scaling.fits.front();
      card(fixed(fit.serial_fraction, 3), "serial share, fitted", beside(fit.ci95, 3));
    }
    for (const auto& point : report_.scaling.points) {
      if (point.ranks != 1) continue;
      const auto measured = measured_serial_share(report_, point);
      if (!measured) continue;
      card(fixed(measured->share, 3), "serial share, measured",
           measured->runs == 1 ? beside(measured->ci95, 3)
                               : fmt::format("mean of {} runs, {}–{}", measured->runs, fixed(measured->low, 3),
                                             fixed(measured->high, 3)));
      break;
    }
    if (report_.scaling.limit_from_time_model) {
      card(fixed(*report_.scaling.speedup_limit, 2), "speed-up of long runs",
           beside(report_.scaling.speedup_limit_ci95, 2));
    }
    const RunReport* largest = nullptr;
    for (const auto& run : report_.runs) {
      if (largest == nullptr || run.ranks > largest->ranks) largest = &run;
    }
    if (largest != nullptr) {
      const std::string on =
          report_.runs.size() > 1
              ? fmt::format(" on {}, {}", plural(static_cast<std::size_t>(largest->ranks), "rank", "ranks"),
                            largest->name)
              : "";
      if (best == nullptr) card(seconds(1e-9 * static_cast<double>(largest->wall_ns)), "wall time");
      if (largest->iterations.steady_images_per_s) {
        card(fixed(*largest->iterations.steady_images_per_s, 1), "images/s, steady" + on,
             beside(largest->iterations.steady_ci95, 1));
      }
      if (largest->communication_share_of_step)
        card(percent(*largest->communication_share_of_step), "of a step is communication" + on);
      if (largest->accuracy) {
        card(percent(*largest->accuracy), "test accuracy" + on,
             largest->seconds_to_accuracy ? fmt::format("{:g} % after {}", 100 * largest->target_accuracy,
                                                        seconds(*largest->seconds_to_accuracy))
                                          : fmt::format("{:g} % not reached", 100 * largest->target_accuracy));
      }
    } else if (best != nullptr) {
      card(images_per_second(best->throughput), fmt::format("throughput on {} ranks", best->ranks));
    }
    out_ += "</div>\n";
  }

  void findings(std::optional<std::size_t> about) {
    out_ += "<ul class=\"findings\">\n";
    for (const auto& finding : report_.findings) {
      if (finding.run != about) continue;
      const char* word = finding.severity == Severity::info      ? ""
                         : finding.severity == Severity::warning ? "<em>Warning</em> "
                                                                 : "<em>Problem</em> ";
      out_ += fmt::format("<li class=\"{}\">{}{}</li>\n", severity_name(finding.severity), word, escaped(finding.text));
    }
    out_ += "</ul>\n";
  }

  void print(const Table& table) {
    // On a narrow screen the rows of a wide table become blocks, one line a figure, each with its column's name.
    const bool wide = table.columns.size() > 3;
    out_ += fmt::format("<h3>{}</h3>\n<div class=\"scroll\"><table class=\"{}{}\">\n<thead><tr>", escaped(table.title),
                        table.id, wide ? " wide" : "");
    const auto cells = [&](const std::vector<std::string>& row, const char* tag) {
      const bool named = wide && std::string_view(tag) == "td";
      for (std::size_t c = 0; c < row.size(); ++c) {
        out_ += fmt::format("<{}{}{}>{}</{}>", tag, !table.is_text(c) ? " class=\"n\"" : "",
                            named ? fmt::format(" data-label=\"{}\"", escaped(table.columns[c])) : "", escaped(row[c]),
                            tag);
      }
    };
    cells(table.columns, "th");
    out_ += "</tr></thead>\n<tbody>\n";
    for (const auto& row : table.rows) {
      out_ += "<tr>";
      cells(row, "td");
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
    if (!table.note.empty()) out_ += fmt::format("<p class=\"note\">{}</p>\n", escaped(table.note));
  }

  // A place for a chart; what it shows is drawn by the script at the end from the data given here.
  void chart(const std::string& title, const std::string& kind, json data, int height = 260) {
    data["kind"] = kind;
    out_ += fmt::format(
        "<figure><figcaption>{}</figcaption><div style=\"height:{}px\"><canvas id=\"chart{}\" role=\"img\" "
        "aria-label=\"{}\"></canvas></div></figure>\n",
        escaped(title), height, charts_.size(), escaped(title));
    charts_.push_back(std::move(data));
  }

  void scaling_charts() {
    const auto& points = report_.scaling.points;
    json series = json::array();
    int most = 1;
    // One series for each amount of work, which points follow each other by; a chart of more would not be read.
    constexpr std::size_t most_series = 8, most_points = 400;
    for (std::size_t p = 0; p < points.size() && series.size() < most_series;) {
      json values = json::array();
      const std::size_t first = p;
      for (; p < points.size() && points[p].work == points[first].work; ++p) {
        if (!points[p].speedup || values.size() >= most_points) continue;
        json value = {{"x", points[p].ranks}, {"y", *points[p].speedup}};
        if (is_finite(points[p].speedup_ci95))
          value["ci"] = {points[p].speedup_ci95->low, points[p].speedup_ci95->high};
        values.push_back(std::move(value));
        most = std::max(most, points[p].ranks);
      }
      if (values.size() > 1)
        series.push_back({{"label", "measured"}, {"points", std::move(values)}, {"epochs", points[first].epochs}});
    }
    if (series.empty()) return;
    json curves = json::array();
    for (const auto& fit : report_.scaling.fits) {
      if (fit.misfit) continue;
      json curve = json::array();
      for (int i = 0; i <= 40; ++i) {
        const double n = 1 + (most - 1) * i / 40.0;
        curve.push_back({{"x", n}, {"y", amdahl_speedup(fit.serial_fraction, n)}});
      }
      curves.push_back(
          {{"label", fmt::format("Amdahl, s = {}", fixed(fit.serial_fraction, 3))}, {"points", std::move(curve)}});
      break;
    }
    for (auto& s : series) {
      if (series.size() > 1) s["label"] = fmt::format("measured, {} epochs", count(s["epochs"].get<double>()));
    }
    out_ += "<div class=\"charts\">\n";
    chart("Speed-up over ranks", "speedup", {{"series", series}, {"curves", curves}, {"most", most}});
    if (!report_.lost_time.empty()) {
      json rows = json::array();
      for (const auto& lost : report_.lost_time) {
        rows.push_back(
            {{"label", plural(static_cast<std::size_t>(lost.ranks), "rank", "ranks")},
             {"values",
              {lost.ideal_s, lost.serial_s, lost.overhead_s - lost.waiting_s, lost.waiting_s, lost.slowdown_s}}});
      }
      chart("Seconds of a run: T(1)/N, and what is added to it", "lost", {{"rows", rows}}, 260);
    } else {
      json rows = json::array();
      for (const auto& point : points) {
        if (point.images > 0 && rows.size() < most_rows_printed) {
          rows.push_back({{"label", point.epochs > 0 ? fmt::format("{} × {} ep.", point.ranks, count(point.epochs))
                                                     : fmt::format("{}", point.ranks)},
                          {"value", point.throughput}});
        }
      }
      chart("Throughput, images/s", "throughput", {{"rows", rows}}, 260);
    }
    out_ += "</div>\n";
  }

  void phases_chart(const RunReport& run) {
    json phases = json::array(), ranks = json::array();
    for (const auto& rank : run.per_rank) ranks.push_back(fmt::format("rank {}", rank.rank));
    for (std::size_t p = 0; p < phase_count; ++p) {
      json values = json::array();
      bool any = false;
      for (const auto& rank : run.per_rank) {
        values.push_back(1e-9 * static_cast<double>(rank.phase_ns[p]));
        any = any || rank.phase_ns[p] > 0;
      }
      if (any) phases.push_back({{"name", phase_name(static_cast<Phase>(p))}, {"seconds", std::move(values)}});
    }
    json lost = json::array();
    bool any_lost = false;
    for (const auto& rank : run.per_rank) {
      lost.push_back(1e-9 * static_cast<double>(rank.losses.main_ns));
      any_lost = any_lost || rank.losses.main_ns > 0;
    }
    if (any_lost) phases.push_back({{"name", "events lost"}, {"seconds", std::move(lost)}});
    chart("Phases of each rank, seconds of wall time", "phases", {{"ranks", ranks}, {"phases", phases}},
          110 + 34 * static_cast<int>(std::min<std::size_t>(run.per_rank.size(), 64)));
  }

  // At most 2,000 points: each the mean of its neighbours.
  void iterations_chart(const RunReport& run) {
    const auto& values = run.iterations.seconds;
    if (values.size() < 3) return;
    const std::size_t group = (values.size() + 1999) / 2000;
    json points = json::array();
    for (std::size_t i = 0; i < values.size(); i += group) {
      double sum = 0;
      std::size_t n = 0;
      for (; n < group && i + n < values.size(); ++n) sum += values[i + n];
      points.push_back({{"x", i}, {"y", 1e3 * sum / static_cast<double>(n)}});
    }
    chart("Time of each iteration, ms", "iterations",
          {{"points", points},
           {"median", 1e-6 * static_cast<double>(run.iterations.median_ns)},
           {"warmup", run.iterations.warmup}},
          240);
  }

  void accuracy_chart(const RunReport& run) {
    if (run.accuracy_curve.size() < 2) return;
    json points = json::array();
    for (const auto& point : run.accuracy_curve) {
      points.push_back({{"x", 1e-9 * static_cast<double>(point.time_ns)}, {"y", 100 * point.accuracy}});
    }
    chart("Test accuracy over time, %", "accuracy", {{"points", points}, {"target", 100 * run.target_accuracy}}, 240);
  }

  void run_section(std::size_t index) {
    const RunReport& run = report_.runs[index];
    out_ +=
        fmt::format("<section>\n<h2>{}</h2>\n<p class=\"what\">{}</p>\n", escaped(run.name), escaped(run_summary(run)));
    if (report_.runs.size() > 1) findings(index);
    for (const auto& table : run_tables(run)) {
      if (table.id == "phases") {
        out_ += "<div class=\"charts wide\">\n";
        phases_chart(run);
        out_ += "</div>\n<div class=\"charts\">\n";
        iterations_chart(run);
        accuracy_chart(run);
        out_ += "</div>\n";
      }
      print(table);
    }
    out_ += "</section>\n";
  }

  void footer() {
    out_ += "</main>\n";
    if (!html_chart_library().empty()) {
      std::string data = json(charts_).dump(-1, ' ', true, json::error_handler_t::replace);
      for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3) data.insert(at + 1, 1, '\\');
      out_ += fmt::format("<script>{}</script>\n<script>const charts = {};\n{}</script>\n", html_chart_library(), data,
                          html_script());
    }
    out_ += "</body>\n</html>\n";
  }

  const Report& report_;
  std::string out_;
  std::vector<json> charts_;
};

}  // namespace

std::string render_html(const Report& report) { return Page(report).write(); }

}  // namespace paceline::analysis
