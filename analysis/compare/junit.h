// SPDX-License-Identifier: Apache-2.0
// A comparison as a test report in JUnit's XML form, which GitLab, Jenkins and GitHub's actions show beside a change.
#pragma once

#include <optional>
#include <string>

#include "analysis/compare/compare.h"

namespace paceline::analysis {

// The step became slower beyond chance, and by more than this share (0.05: 5 %).
bool is_slower_by_more(const RunComparison& comparison, double share);

// One test case, "step time": failed if `fail_above` is given and exceeded, skipped if the step was not judged. Its
// output is that of render_text().
std::string render_junit(const RunComparison& comparison, std::optional<double> fail_above);

}  // namespace paceline::analysis
