// One HTML file that loads nothing: styles, figures and the charting library are inside. Tables and sentences need no
// JavaScript; charts are drawn where it is on.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/report/render.h"
#include "analysis/report/renderings/html_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace html_rendering {

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
    out_ += "<section>\n<h2>Findings</h2>\n";
    findings(std::nullopt);
    out_ += "</section>\n";
    const auto tables = scaling_tables(report_);
    if (tables.empty()) return;
    out_ += "<section>\n<h2>Scaling</h2>\n";
    print(scaling_charts(report_));
    for (const auto& table : tables) print(table);
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
    if (const auto measured = measured_serial_share(report_)) {
      card(fixed(measured->share, 3), "serial share, measured",
           measured->runs == 1 ? beside(measured->ci95, 3)
                               : fmt::format("mean of {} runs, {}–{}", measured->runs, fixed(measured->low, 3),
                                             fixed(measured->high, 3)));
    }
    if (report_.scaling.limit_from_time_model) {
      card(fixed(*report_.scaling.speedup_limit, 2), "speed-up of long runs",
           beside(report_.scaling.speedup_limit_ci95, 2));
    }
    const RunAnalysis* largest = nullptr;
    for (const auto& run : report_.runs) {
      if (largest == nullptr || run.ranks > largest->ranks) largest = &run;
    }
    if (largest != nullptr) {
      const std::string on =
          report_.runs.size() > 1
              ? fmt::format(" on {}, {}", plural(static_cast<std::size_t>(largest->ranks), "rank", "ranks"),
                            largest->name)
              : "";
      if (best == nullptr) card(duration(largest->wall_ns), "wall time");
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
    out_ += table.behind_chart ? fmt::format("<details><summary>{}</summary>\n", escaped(table.title))
                               : fmt::format("<h3>{}</h3>\n", escaped(table.title));
    out_ += fmt::format("<div class=\"scroll\"><table class=\"{}{}\">\n<thead><tr>", table.id, wide ? " wide" : "");
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
    if (table.behind_chart) out_ += "</details>\n";
  }

  // The places of the charts, wide ones first. The script at the end of the page draws them from `charts_`.
  void print(std::vector<Chart> charts) {
    for (const bool wide : {true, false}) {
      if (std::ranges::count(charts, wide, &Chart::wide) == 0) continue;
      out_ += wide ? "<div class=\"charts wide\">\n" : "<div class=\"charts\">\n";
      for (Chart& chart : charts) {
        if (chart.wide != wide) continue;
        const std::string title = escaped(chart.title);
        out_ += fmt::format(
            "<figure><figcaption>{0}</figcaption><div style=\"height:{1}px\"><canvas id=\"chart{2}\" role=\"img\" "
            "aria-label=\"{0}\"></canvas></div></figure>\n",
            title, chart.height, charts_.size());
        chart.data["kind"] = chart.kind;
        charts_.push_back(std::move(chart.data));
      }
      out_ += "</div>\n";
    }
  }

  // The main figures, then the charts, then the other tables.
  void run_section(std::size_t index) {
    const RunAnalysis& run = report_.runs[index];
    out_ +=
        fmt::format("<section>\n<h2>{}</h2>\n<p class=\"what\">{}</p>\n", escaped(run.name), escaped(run_summary(run)));
    if (report_.runs.size() > 1) findings(index);
    const auto tables = run_tables(run, Table::Place::documents);
    for (const auto& table : tables) {
      print(table);
      if (&table == &tables.front()) print(run_charts(run));
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

}  // namespace html_rendering

std::string render_html(const Report& report) { return html_rendering::Page(report).write(); }

}  // namespace paceline::analysis
