// SPDX-License-Identifier: Apache-2.0
// A comparison as text, Markdown and JSON (schema paceline.compare/1). Each ends in a newline.
#pragma once

#include <string>

#include "analysis/compare/compare.h"

namespace paceline::analysis {

std::string render_text(const RunComparison& comparison);
std::string render_markdown(const RunComparison& comparison);
std::string render_json(const RunComparison& comparison);

// The verdict on a quantity: "slower", "faster", "no difference shown" or "not judged".
const char* change_word(const QuantityComparison& quantity);

// "−5.6 %", "+12.3 %", from a hundredfold on "7,005 times"; the interval in the same unit: "6,930 to 7,081 times".
std::string change_text(const QuantityComparison& quantity);
std::string interval_text(const QuantityComparison& quantity);

// "A step takes 112 ms, 12.0 % (11.2 to 12.8 %) longer than in base (100 ms)." One sentence.
std::string comparison_headline(const RunComparison& comparison);

}  // namespace paceline::analysis
