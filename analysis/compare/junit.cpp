// SPDX-License-Identifier: Apache-2.0
#include "analysis/compare/junit.h"

#include <fmt/format.h>

#include "analysis/compare/render.h"
#include "analysis/text/labels.h"

namespace paceline::analysis {

bool is_slower_by_more(const RunComparison& comparison, double share) {
  const QuantityComparison* step = comparison.step();
  return step != nullptr && step->change == Change::slower && step->ratio - 1 > share;
}

std::string render_junit(const RunComparison& comparison, std::optional<double> fail_above) {
  const QuantityComparison* step = comparison.step();
  const bool judged = step != nullptr && step->p, failed = fail_above && is_slower_by_more(comparison, *fail_above);
  const std::string headline = markup_escaped(comparison_headline(comparison));
  std::string result;
  if (failed) result = fmt::format("      <failure message=\"{}\"/>\n", headline);
  if (!judged) result = fmt::format("      <skipped message=\"{}\"/>\n", headline);
  const std::string counts =
      fmt::format("tests=\"1\" failures=\"{}\" errors=\"0\" skipped=\"{}\"", failed ? 1 : 0, judged ? 0 : 1);
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites {0}>\n"
      "  <testsuite name=\"paceline compare\" {0}>\n"
      "    <testcase classname=\"paceline.compare\" name=\"step time\" time=\"{1:.6f}\">\n"
      "{2}"
      "      <system-out>{3}</system-out>\n"
      "    </testcase>\n"
      "  </testsuite>\n"
      "</testsuites>\n",
      counts, step == nullptr ? 0 : step->new_s, result, markup_escaped(render_text(comparison)));
}

}  // namespace paceline::analysis
