// SPDX-License-Identifier: Apache-2.0
// How the sections write values into cells of tables and into JSON.
#pragma once

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>

#include "analysis/report/section.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {

// Rows of a table and sentences of a kind that text, Markdown and HTML print. JSON and CSV have all.
inline constexpr std::size_t most_rows_printed = 50;
inline constexpr std::size_t most_sentences = 20;

inline const std::string no_value = "–";

template <class T, class Write>
std::string or_none(const std::optional<T>& value, Write&& write) {
  return value ? write(*value) : no_value;
}

// "1.20 s (60.0 %)"
inline std::string with_share(std::int64_t part_ns, std::int64_t whole_ns) {
  return fmt::format("{} ({})", duration(part_ns), percent(share(part_ns, whole_ns)));
}

// Seconds of a share of all steps.
inline double of_the_steps(const RunAnalysis& run, double share_of_step) {
  return share_of_step * 1e-9 * static_cast<double>(run.iterations.median_ns) *
         static_cast<double>(run.iterations.count);
}

// "1.694 [1.672–1.716]"
template <class Write>
std::string with_range(const std::optional<double>& value, const std::optional<Interval>& ci95, Write&& write) {
  if (!value) return no_value;
  if (!ci95) return write(*value);
  return fmt::format("{} [{}–{}]", write(*value), write(ci95->low), write(ci95->high));
}

// How a program marks stretches of its time for the tool that recorded the run.
inline const char* range_name(const RunAnalysis& run) {
  if (run.format == "kineto") return "a torch.profiler.record_function range";
  return run.format == "otf2" ? "a user region" : "an NVTX range";
}
inline const char* ranges_name(const RunAnalysis& run) {
  if (run.format == "kineto") return "Ranges of torch.profiler.record_function";
  return run.format == "otf2" ? "User regions" : "NVTX ranges";
}

// Keeps the first rows of a long table and adds how many were left out.
void limit_rows(Table& table);

// Sets the key where there is a value. JSON has neither infinity nor NaN: a figure that is not finite is left out.
template <class T>
void set(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}
inline void set(Json& object, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[key] = *value;
}
inline void set(Json& object, const char* key, const std::optional<Interval>& value) {
  if (!value || !std::isfinite(value->low) || !std::isfinite(value->high)) return;
  object[key] = Json::array({value->low, value->high});
}

// A number without decimal point where it is whole.
inline Json whole_number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53) return static_cast<std::int64_t>(value);
  return value;
}

}  // namespace paceline::analysis
