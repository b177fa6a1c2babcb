// SPDX-License-Identifier: Apache-2.0
// One HTML file that loads nothing: styles, figures and the charting library are inside. Tables and sentences need no
// JavaScript; charts are drawn where it is on.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "analysis/report/glossary.h"
#include "analysis/report/outline.h"
#include "analysis/report/render.h"
#include "analysis/report/renderings/cards.h"
#include "analysis/report/renderings/html_parts.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"
#include "analysis/text/labels.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace html_rendering {

using nlohmann::json;

std::string escaped(const std::string& text) { return markup_escaped(text); }

// A sentence: what stands between two backticks is code.
std::string sentence(const std::string& text) {
  std::string out = escaped(text);
  for (std::size_t begin = 0; (begin = out.find('`', begin)) != std::string::npos;) {
    const std::size_t end = out.find('`', begin + 1);
    if (end == std::string::npos) break;
    const std::string code = "<code>" + out.substr(begin + 1, end - begin - 1) + "</code>";
    out.replace(begin, end + 1 - begin, code);
    begin += code.size();
  }
  return out;
}

// Keeps a number and its unit on one line.
std::string unbroken(std::string text) {
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    const bool number = text[at - 1] >= '0' && text[at - 1] <= '9';
    const bool unit = text[at] == ' ' && std::string_view("%smn").find(text[at + 1]) != std::string_view::npos;
    if (number && unit) text.replace(at, 1, "&nbsp;");
  }
  return text;
}

class Page {
 public:
  explicit Page(const Report& report) : report_(report), outline_(outline_of(report, Table::Place::documents)) {}

  std::string write() {
    begin();
    picture();
    reasons();
    changes();
    details();
    definitions();
    end();
    return std::move(out_);
  }

 private:
  void begin() {
    out_ += fmt::format(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>Paceline report</title>\n"
        "<style>{}</style>\n</head>\n<body>\n<a class=\"skip\" href=\"#reasons\">Skip to the reasons</a>\n<main>\n"
        "<header>\n<p class=\"brand\">Paceline report</p>\n{}<h1>{}</h1>\n",
        html_style(), subject(), unbroken(sentence(report_.verdict.state)));
    if (!report_.verdict.change.empty()) {
      out_ += fmt::format("<p class=\"change\">{}</p>\n", unbroken(sentence(report_.verdict.change)));
    }
    out_ += "<div class=\"cards\">\n";
    for (const Card& card : cards_of(report_)) {
      out_ += fmt::format("<a class=\"card\" href=\"#{}\"><b>{}</b><span>{}</span>{}</a>\n", card.definition,
                          escaped(card.value), escaped(card.what),
                          card.beside.empty() ? "" : fmt::format("<small>{}</small>", escaped(card.beside)));
    }
    out_ += "</div>\n<nav aria-label=\"Parts of the report\">";
    if (!outline_.picture.empty()) out_ += "<a href=\"#picture\">Picture</a>";
    if (!outline_.reasons.empty()) out_ += "<a href=\"#reasons\">Reasons</a>";
    if (!outline_.changes.empty()) out_ += "<a href=\"#changes\">Changes that pay</a>";
    out_ += "<a href=\"#details\">Details</a><a href=\"#definitions\">Definitions</a></nav>\n</header>\n";
  }

  // What was run.
  std::string subject() const {
    if (!outline_.focus) return "";
    const RunAnalysis& run = report_.runs[*outline_.focus];
    const std::string others =
        report_.runs.size() > 1 ? fmt::format("{}, the largest ", plural(report_.runs.size(), "run", "runs")) : "";
    return fmt::format("<p class=\"what\">{}{}</p>\n", others, escaped(run.name + ": " + run_summary(run)));
  }

  void picture() {
    if (outline_.picture.empty()) return;
    out_ += "<section id=\"picture\">\n<h2>The picture</h2>\n";
    print(outline_.picture);
    out_ += "</section>\n";
  }

  // A reason has its cost in front, and its first sentence stands out.
  void reasons() {
    if (outline_.reasons.empty()) return;
    out_ +=
        "<section id=\"reasons\">\n<h2>Reasons, by what they <a href=\"#cost\">cost</a> a rank</h2>\n"
        "<ol class=\"findings\">\n";
    for (const Finding& finding : outline_.reasons) {
      const Split text = split_sentences(finding.text);
      const bool names_run = finding.run && report_.runs.size() > 1;
      const std::string cost = finding.cost_s && *finding.cost_s > 0 ? seconds(*finding.cost_s) : std::string();
      out_ += fmt::format("<li class=\"{}\"><span class=\"cost\">{}</span><div><b>{}{}{}</b>{}</div></li>\n",
                          severity_name(finding.severity), escaped(cost), severity_word(finding),
                          names_run ? escaped(report_.runs[*finding.run].name) + ": " : "", sentence(text.first),
                          text.rest.empty() ? "" : fmt::format("<p>{}</p>", sentence(text.rest)));
    }
    out_ += "</ol>\n</section>\n";
  }

  static std::string severity_word(const Finding& finding) {
    if (finding.severity == Severity::info) return "";
    return finding.severity == Severity::warning ? "<em>Warning</em> " : "<em>Problem</em> ";
  }

  void changes() {
    if (outline_.changes.empty()) return;
    out_ += "<section id=\"changes\">\n<h2>Changes that pay</h2>\n";
    for (const Table& table : outline_.changes) print(table, true);
    out_ += "</section>\n";
  }

  void details() {
    out_ += "<section id=\"details\">\n<h2>Details</h2>\n";
    if (!outline_.tables.empty() || !outline_.remarks.empty()) {
      out_ += "<details class=\"part\" open><summary>Scaling</summary>\n";
      for (std::size_t t = 0; t < outline_.tables.size(); ++t) {
        print(outline_.tables[t], t == 0);
        if (t == 0) print(outline_.charts);
      }
      print(outline_.remarks, "About these figures");
      out_ += "</details>\n";
    }
    for (std::size_t r = 0; r < report_.runs.size(); ++r) {
      const RunDetails& run = outline_.runs[r];
      out_ += fmt::format("<details class=\"part\"{}><summary>{} <small>{}</small></summary>\n",
                          report_.runs.size() == 1 ? " open" : "", escaped(report_.runs[r].name),
                          escaped(run_summary(report_.runs[r])));
      print(run.findings, "");
      for (std::size_t t = 0; t < run.tables.size(); ++t) {
        print(run.tables[t], t == 0);
        if (t == 0) print(run.charts);
      }
      out_ += "</details>\n";
    }
    out_ += "</section>\n";
  }

  void print(const std::vector<Finding>& findings, const char* heading) {
    if (findings.empty()) return;
    if (*heading != '\0') out_ += fmt::format("<h3>{}</h3>\n", heading);
    out_ += "<ul class=\"remarks\">\n";
    for (const Finding& finding : findings) {
      out_ += fmt::format("<li>{}{}</li>\n", severity_word(finding), sentence(finding.text));
    }
    out_ += "</ul>\n";
  }

  void definitions() {
    out_ += "<section id=\"definitions\">\n<h2>Definitions</h2>\n<dl>\n";
    for (const Definition& definition : glossary()) {
      out_ += fmt::format("<dt id=\"{}\" tabindex=\"-1\">{}</dt><dd>{}</dd>\n", definition.id, escaped(definition.term),
                          escaped(definition.text));
    }
    out_ += "</dl>\n</section>\n";
  }

  static std::string heading_cell(const Table& table, std::size_t c) {
    const std::string& name = table.columns[c];
    const std::string_view id = definition_id(name);
    return fmt::format(
        "<th scope=\"col\"{}><span>{}</span>{}</th>", table.is_text(c) ? "" : " class=\"n\"", escaped(name),
        id.empty()
            ? ""
            : fmt::format("<a class=\"def\" href=\"#{}\" aria-label=\"Definition of {}\">?</a>", id, escaped(name)));
  }

  void print(const Table& table, bool open) {
    // On a narrow screen the rows of a wide table become blocks, one line a figure, each with its column's name.
    const bool wide = table.columns.size() > 3;
    out_ += fmt::format(
        "<details class=\"table\"{0}><summary>{1}</summary>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
        "aria-label=\"{1}\"><table class=\"{2}{3}\">\n<thead><tr>",
        open ? " open" : "", escaped(table.title), table.id, wide ? " wide" : "");
    for (std::size_t c = 0; c < table.columns.size(); ++c) out_ += heading_cell(table, c);
    out_ += "</tr></thead>\n<tbody>\n";
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      if (table.sums > 0 && r + table.sums == table.rows.size()) out_ += "</tbody>\n<tbody class=\"sums\">\n";
      out_ += "<tr>";
      for (std::size_t c = 0; c < table.rows[r].size(); ++c) {
        out_ += fmt::format("<td{}{}>{}</td>", table.is_text(c) ? "" : " class=\"n\"",
                            wide ? fmt::format(" data-label=\"{}\"", escaped(table.columns[c])) : "",
                            escaped(table.rows[r][c]));
      }
      out_ += "</tr>\n";
    }
    out_ += "</tbody></table></div>\n";
    if (!table.note.empty()) out_ += fmt::format("<p class=\"note\">{}</p>\n", sentence(table.note));
    out_ += "</details>\n";
  }

  // The places of the charts, wide ones last. The script at the end of the page draws them from `charts_`.
  void print(const std::vector<Chart>& charts) {
    for (const bool wide : {false, true}) {
      if (std::ranges::count(charts, wide, &Chart::wide) == 0) continue;
      out_ += wide ? "<div class=\"charts wide\">\n" : "<div class=\"charts\">\n";
      for (const Chart& chart : charts) {
        if (chart.wide != wide) continue;
        const std::string title = escaped(chart.title);
        out_ += fmt::format(
            "<figure><figcaption>{0}</figcaption><div style=\"height:{1}px\"><canvas id=\"chart{2}\" role=\"img\" "
            "aria-label=\"{0}\"></canvas></div></figure>\n",
            title, chart.height, charts_.size());
        charts_.push_back(data_of(chart));
      }
      out_ += "</div>\n";
    }
  }

  static json data_of(const Chart& chart) {
    json data = chart.data;
    data["kind"] = chart.kind;
    if (chart.bars.empty()) return data;
    data["origin"] = chart.origin;
    for (const Bar& bar : chart.bars) {
      data["rows"].push_back(
          {{"label", bar.label}, {"kind", bar.kind}, {"from", bar.from}, {"to", bar.to}, {"text", bar.text}});
    }
    return data;
  }

  void end() {
    // Before printing, the script of the tables unfolds the parts, and then that of the charts draws in them.
    out_ += fmt::format("</main>\n<script>{}</script>\n", html_table_script());
    if (!html_chart_library().empty()) {
      std::string data = json(charts_).dump(-1, ' ', true, json::error_handler_t::replace);
      for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3) data.insert(at + 1, 1, '\\');
      out_ += fmt::format("<script>{}</script>\n<script>const charts = {};\n{}</script>\n", html_chart_library(), data,
                          html_script());
    }
    out_ += "</body>\n</html>\n";
  }

  const Report& report_;
  const Outline outline_;
  std::string out_;
  std::vector<json> charts_;
};

}  // namespace html_rendering

std::string render_html(const Report& report) { return html_rendering::Page(report).write(); }

}  // namespace paceline::analysis
