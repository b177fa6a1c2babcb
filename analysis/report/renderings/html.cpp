// SPDX-License-Identifier: Apache-2.0
// One HTML file that loads nothing: styles, figures and the charting library are inside. Tables and sentences need no
// JavaScript; charts are drawn where it is on.
#include <fmt/format.h>

#include <filesystem>
#include <string_view>

#include "analysis/report/glossary.h"
#include "analysis/report/outline.h"
#include "analysis/report/render.h"
#include "analysis/report/renderings/cards.h"
#include "analysis/report/renderings/html_page.h"
#include "analysis/report/section.h"
#include "analysis/report/sentences.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace html_rendering {

// Keeps a number and its unit on one line.
std::string unbroken(std::string text) {
  for (std::size_t at = 1; at + 1 < text.size(); ++at) {
    const bool number = text[at - 1] >= '0' && text[at - 1] <= '9';
    const bool unit = text[at] == ' ' && std::string_view("%smn").find(text[at + 1]) != std::string_view::npos;
    if (number && unit) text.replace(at, 1, "&nbsp;");
  }
  return text;
}

class Page : HtmlPage {
 public:
  Page(const Report& report, Extent extent)
      : report_(report),
        whole_(extent == Extent::whole),
        outline_(outline_of(report, Table::Place::documents, extent)) {
    defines_ = whole_;
  }

  std::string write() {
    begin();
    picture();
    reasons();
    changes();
    if (whole_) details();
    if (whole_) definitions();
    return end();
  }

 private:
  using HtmlPage::print;

  void begin() {
    HtmlPage::begin("Paceline report");
    if (whole_) out_ += "<a class=\"skip\" href=\"#reasons\">Skip to the reasons</a>\n";
    out_ += fmt::format("<main>\n<header>\n<p class=\"brand\">Paceline report</p>\n{}<h1>{}</h1>\n", subject(),
                        unbroken(sentence(report_.verdict.state)));
    if (!report_.verdict.change.empty()) {
      out_ += fmt::format("<p class=\"change\">{}</p>\n", unbroken(sentence(report_.verdict.change)));
    }
    out_ += "<div class=\"cards\">\n";
    for (const Card& card : cards_of(report_)) {
      out_ += fmt::format("<a class=\"card\"{}><b>{}</b><span>{}</span>{}</a>\n",
                          whole_ ? fmt::format(" href=\"#{}\"", card.definition) : "", escaped(card.value),
                          escaped(card.what),
                          card.beside.empty() ? "" : fmt::format("<small>{}</small>", escaped(card.beside)));
    }
    out_ += "</div>\n";
    if (whole_) links();
    out_ += "</header>\n";
  }

  void links() {
    out_ += "<nav aria-label=\"Parts of the report\">";
    if (!outline_.picture.empty()) out_ += "<a href=\"#picture\">Picture</a>";
    if (!outline_.reasons.empty()) out_ += "<a href=\"#reasons\">Reasons</a>";
    if (!outline_.changes.empty()) out_ += "<a href=\"#changes\">Changes that pay</a>";
    out_ += "<a href=\"#details\">Details</a><a href=\"#definitions\">Definitions</a></nav>\n";
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
    out_ += fmt::format("<section id=\"reasons\">\n<h2>Reasons, by what they {} a rank</h2>\n<ol class=\"findings\">\n",
                        whole_ ? "<a href=\"#cost\">cost</a>" : "cost");
    for (const Finding& finding : outline_.reasons) {
      const Split text = split_sentences(finding.text);
      const bool names_run = finding.run && report_.runs.size() > 1;
      const std::string cost = finding.cost_s && *finding.cost_s > 0 ? seconds(*finding.cost_s) : std::string();
      out_ +=
          fmt::format("<li class=\"{}\"><span class=\"cost\">{}</span><div><b>{}{}{}</b>{}</div></li>\n",
                      severity_name(finding.severity), escaped(cost), severity_word(finding),
                      names_run ? escaped(report_.runs[*finding.run].name) + ": " : "", sentence(text.first),
                      (text.rest.empty() ? "" : fmt::format("<p>{}</p>", sentence(text.rest))) + viewer_link(finding));
    }
    out_ += "</ol>\n</section>\n";
  }

  // The address of a place, which the script makes a link: a page without scripts loads nothing and leads nowhere else.
  std::string viewer_link(const Finding& finding) const {
    if (!whole_ || finding.places.empty() || report_.runs.empty()) return "";
    const RunAnalysis& run = report_.runs[finding.run.value_or(0)];
    const FindingPlace& place = finding.places.front();
    std::string address = "paceline:" + std::filesystem::absolute(run.path).lexically_normal().string() + "?";
    if (place.rank) address += fmt::format("at=rank {}&", run.per_rank[*place.rank].rank);
    if (place.time) address += fmt::format("from={}ns&to={}ns", place.time->start_ns, place.time->end_ns);
    return fmt::format("<a class=\"view\" data-address=\"{}\" hidden>Show in the viewer</a>", escaped(address));
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

  const Report& report_;
  const bool whole_;  // else a summary
  const Outline outline_;
};

}  // namespace html_rendering

std::string render_html(const Report& report, Extent extent) { return html_rendering::Page(report, extent).write(); }

}  // namespace paceline::analysis
