// SPDX-License-Identifier: Apache-2.0
// Shares of a time that a report prints: none can be above 100 %.
#pragma once

#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>

namespace paceline {

// The first share above 100 % in a report, with some of the text around it; "" where there is none. Shares are what
// stands in parentheses behind a time, "1.2 s (34 %)", and what the words behind it call a part of a step or of a time.
// Changes ("+130 %", "by 130 %") are no shares.
inline std::string impossible_share(std::string_view report) {
  const auto numeric = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '.' || c == ','; };
  for (std::size_t at = report.find('%'); at != report.npos; at = report.find('%', at + 1)) {
    std::size_t end = at;
    while (end > 0 && (report[end - 1] == ' ' || static_cast<unsigned char>(report[end - 1]) >= 0x80))
      --end;  // a space, also one that does not break
    std::size_t begin = end;
    while (begin > 0 && numeric(report[begin - 1])) --begin;
    if (begin == end || begin == 0) continue;
    const std::string_view before = report.substr(0, begin), after = report.substr(at + 1, 40);
    if (before.back() == '+' || before.back() == '-' || before.ends_with("by ")) continue;
    bool share = before.back() == '(' && after.starts_with(")");
    for (const char* whole :
         {" of a step", " of the step", " of each step", " of its wall time", " of its time", " of the time",
          " of their time", " of the wall time", " of the delay", " of an iteration"}) {
      share = share || after.starts_with(whole);
    }
    std::string digits;
    for (const char c : report.substr(begin, end - begin)) {
      if (c != ',') digits += c;
    }
    if (share && std::strtod(digits.c_str(), nullptr) > 100) {
      return std::string(report.substr(begin < 80 ? 0 : begin - 80, 160));
    }
  }
  return "";
}

}  // namespace paceline
