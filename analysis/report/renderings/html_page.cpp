// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/renderings/html_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/report/glossary.h"
#include "analysis/report/renderings/html_parts.h"
#include "analysis/text/labels.h"

namespace paceline::analysis {
namespace html_page {

using nlohmann::json;

std::string heading_cell(const Table& table, std::size_t c, bool defined) {
  const std::string& name = table.columns[c];
  const std::string_view id = defined ? definition_id(name) : "";
  return fmt::format("<th scope=\"col\"{}><span>{}</span>{}</th>", table.is_text(c) ? "" : " class=\"n\"",
                     markup_escaped(name),
                     id.empty() ? ""
                                : fmt::format("<a class=\"def\" href=\"#{}\" aria-label=\"Definition of {}\">?</a>", id,
                                              markup_escaped(name)));
}

json data_of(const Chart& chart) {
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

}  // namespace html_page

std::string HtmlPage::escaped(const std::string& text) { return markup_escaped(text); }

std::string HtmlPage::sentence(const std::string& text) {
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

void HtmlPage::begin(const char* title) {
  out_ = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}</title>\n"
      "<style>{}</style>\n</head>\n<body>\n",
      title, html_style());
}

void HtmlPage::print(const Table& table, bool open) {
  // On a narrow screen the rows of a wide table become blocks, one line a figure, each with its column's name.
  const bool wide = table.columns.size() > 3;
  out_ += fmt::format(
      "<details class=\"table\"{0}><summary>{1}</summary>\n<div class=\"scroll\" role=\"region\" tabindex=\"0\" "
      "aria-label=\"{1}\"><table class=\"{2}{3}\">\n<thead><tr>",
      open ? " open" : "", escaped(table.title), table.id, wide ? " wide" : "");
  for (std::size_t c = 0; c < table.columns.size(); ++c) out_ += html_page::heading_cell(table, c, defines_);
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

void HtmlPage::print(const std::vector<Chart>& charts) {
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
      charts_.push_back(html_page::data_of(chart));
    }
    out_ += "</div>\n";
  }
}

std::string HtmlPage::end() {
  out_ += fmt::format("</main>\n<script>{}</script>\n", html_table_script());
  if (!html_chart_library().empty()) {
    std::string data = Json(charts_).dump(-1, ' ', true, Json::error_handler_t::replace);
    for (std::size_t at = 0; (at = data.find("</", at)) != std::string::npos; at += 3) data.insert(at + 1, 1, '\\');
    out_ += fmt::format("<script>{}</script>\n<script>const charts = {};\n{}</script>\n", html_chart_library(), data,
                        html_script());
  }
  out_ += "</body>\n</html>\n";
  return std::move(out_);
}

}  // namespace paceline::analysis
