// SPDX-License-Identifier: Apache-2.0
#include "analysis/exporters/selection.h"

#include <fmt/format.h>

#include <charconv>

#include "profiler/format/error.h"

namespace paceline::analysis {
namespace selection_texts {

// Takes a whole number from the start of the text; nothing where there is none.
std::optional<std::int64_t> take_number(std::string_view& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || text.front() == '-') return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

struct TimeUnit {
  std::string_view name;
  std::int64_t ns;
};
constexpr TimeUnit time_units[] = {
    {"ns", 1},           {"us", 1'000},          {"µs", 1'000}, {"ms", 1'000'000}, {"s", 1'000'000'000},
    {"", 1'000'000'000}, {"min", 60'000'000'000}};

}  // namespace selection_texts

std::string_view clipped_text(Clipped clipped) {
  constexpr std::string_view texts[] = {"", "start", "end", "both"};
  return texts[static_cast<int>(clipped)];
}

std::pair<std::size_t, std::size_t> Selection::samples(const std::vector<std::int64_t>& time_ns) const {
  auto first = std::ranges::lower_bound(time_ns, window_.from_ns);
  const auto last = std::ranges::lower_bound(time_ns, window_.until_ns);
  if (first != time_ns.begin() && (first == last || *first > window_.from_ns)) --first;
  return {static_cast<std::size_t>(first - time_ns.begin()), static_cast<std::size_t>(last - time_ns.begin())};
}

std::vector<NumberRange> parse_ranks(std::string_view text) {
  using namespace selection_texts;
  const Error wrong(fmt::format("'{}' is not a list of ranks such as 0,2,5-9", text));
  std::vector<NumberRange> ranges;
  do {
    const auto first = take_number(text);
    const auto last = take(text, '-') ? take_number(text) : first;
    if (!first || !last || *last < *first) throw Error(wrong);
    ranges.emplace_back(*first, *last);
  } while (take(text, ','));
  if (!text.empty()) throw Error(wrong);
  return ranges;
}

NumberRange parse_iterations(std::string_view text) {
  using namespace selection_texts;
  const Error wrong(fmt::format("'{}' is not of the form 10:12", text));
  const auto first = take_number(text);
  if (!first) throw Error(wrong);
  std::optional<std::int64_t> last = first;
  if (take(text, ':')) last = text.empty() ? std::numeric_limits<std::int64_t>::max() : take_number(text);
  if (!last || !text.empty()) throw Error(wrong);
  if (*last < *first) throw Error(fmt::format("{}:{} ends before it begins", *first, *last));
  return {*first, *last};
}

std::int64_t parse_time(std::string_view given) {
  using namespace selection_texts;
  const Error wrong(fmt::format("'{}' is not a time such as 1.5s, 200ms or 3us", given));
  std::string_view text = given;
  const bool negative = take(text, '-');
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  std::string_view number = text.substr(0, digits);
  const auto* unit = std::ranges::find(time_units, text.substr(digits), &TimeUnit::name);
  if (number.empty() || number == "." || unit == std::end(time_units)) throw Error(wrong);

  // Digit by digit, so that a time with all its nanoseconds stays exact.
  __extension__ using Wide = __int128;
  constexpr Wide most = std::numeric_limits<std::int64_t>::max() / 2;
  Wide ns = 0, scale = unit->ns;
  bool fraction = false;
  for (const char c : number) {
    if (c == '.') {
      if (fraction) throw Error(wrong);
      fraction = true;
    } else if (fraction) {
      scale /= 10;
      ns += (c - '0') * scale;
    } else {
      ns = ns * 10 + Wide{c - '0'} * unit->ns;
      if (ns > most) throw Error(fmt::format("'{}' is longer than any run", given));
    }
  }
  return static_cast<std::int64_t>(negative ? -ns : ns);
}

TimeWindow window_of_iterations(const RunIndex& index, const Selection& ranks, NumberRange iterations) {
  TimeWindow window{std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
  std::int64_t lowest = std::numeric_limits<std::int64_t>::max(), highest = -1;
  for (std::size_t r = 0; r < index.trace().ranks.size(); ++r) {
    if (!ranks.takes(index.trace().ranks[r])) continue;
    for (const Iteration& iteration : index.iterations(r)) {
      lowest = std::min(lowest, iteration.number);
      highest = std::max(highest, iteration.number);
      if (iteration.number < iterations.first || iteration.number > iterations.second) continue;
      window.from_ns = std::min(window.from_ns, iteration.start_ns);
      window.until_ns = std::max(window.until_ns, iteration.start_ns + iteration.duration_ns);
    }
  }
  if (highest < 0) throw Error("the chosen ranks have no iterations; choose a part with --from and --until");
  if (window.from_ns > window.until_ns) {
    throw Error(
        fmt::format("the chosen ranks have no iteration {}; they have {} to {}", iterations.first, lowest, highest));
  }
  return window;
}

}  // namespace paceline::analysis
