// SPDX-License-Identifier: Apache-2.0
#include "analysis/text/numbers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace {

// Commas between the thousands of a number written without exponent.
std::string grouped(const std::string& digits) {
  const std::size_t first = digits[0] == '-' ? 1 : 0, point = std::min(digits.find('.'), digits.size());
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && i < point && (point - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}

struct Unit {
  double scale;
  const char* name;
};

std::string scaled(double value, std::initializer_list<Unit> units, const char* smallest) {
  for (const Unit& unit : units) {
    if (std::abs(value) >= unit.scale) return fmt::format("{} {}", significant(value / unit.scale, 3), unit.name);
  }
  return fmt::format("{} {}", significant(value, 3), smallest);
}

}  // namespace

std::string fixed(double value, int decimals) {
  if (!std::isfinite(value)) return "∞";
  std::string text = fmt::format("{:.{}f}", value, decimals);
  if (text[0] == '-' && text.find_first_of("123456789") == std::string::npos) text.erase(0, 1);
  return grouped(text);
}

std::string significant(double value, int digits) {
  if (value == 0 || !std::isfinite(value)) return fixed(value, 0);
  if (std::abs(value) < 1e-6) return fmt::format("{:.{}e}", value, digits - 1);
  // Rounding first: 9.996 has three digits as 10.0, not as 10.00.
  const double magnitude = std::pow(10, digits - 1 - std::floor(std::log10(std::abs(value))));
  const double rounded = std::round(value * magnitude) / magnitude;
  return fixed(rounded, std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(rounded)) + 1e-12))));
}

std::string count(double value) { return value == std::round(value) ? fixed(value, 0) : fixed(value, 2); }

std::string percent(double share) {
  const double value = 100 * share;
  return fmt::format("{} %", fixed(value, value != 0 && std::abs(value) < 1 ? 2 : 1));
}

std::string percent_change(double ratio) {
  return fmt::format("{}{:.1f} %", ratio < 1 ? "−" : "+", 100 * std::abs(ratio - 1));
}

std::string seconds(double value) {
  const double size = std::abs(value);
  if (size >= 100) return fixed(value, 1) + " s";
  if (size >= 1) return fixed(value, 2) + " s";
  if (size < 5e-10) return "0 s";  // less than a nanosecond is rounding
  return scaled(value * 1e9, {{1e6, "ms"}, {1e3, "µs"}}, "ns");
}

std::string duration(std::int64_t ns) { return seconds(static_cast<double>(ns) * 1e-9); }

std::string point_in_time(std::int64_t ns) { return fmt::format("{:.3f} s", static_cast<double>(ns) * 1e-9); }

std::string utc_time(std::int64_t utc_ns) {
  const std::time_t seconds = utc_ns / 1'000'000'000;
  std::tm date{};
  gmtime_r(&seconds, &date);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", date.tm_year + 1900, date.tm_mon + 1, date.tm_mday,
                     date.tm_hour, date.tm_min, date.tm_sec);
}

std::string bytes(double value) { return scaled(value, {{1e12, "TB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}}, "B"); }

std::string bytes_per_second(double value) { return bytes(value) + "/s"; }

std::string images_per_second(double value) { return fixed(value, value < 1000 ? 1 : 0) + " images/s"; }

std::string memory_size(double bytes) {
  const char* unit = "B";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = larger;
  }
  return fmt::format("{:.4g} {}", bytes, unit);
}

std::string quantity(double value, const std::string& unit) {
  const bool rate = unit.ends_with("/s");
  std::string base = rate ? unit.substr(0, unit.size() - 2) : unit;
  if (base == "bytes") base = "B";
  if (base == "mW" || base == "mJ") {
    value *= 1e-3;
    base.erase(0, 1);
  } else if (base == "MHz") {
    value *= 1e6;
    base = "Hz";
  }
  const char* prefix = "";
  if (base.empty() || base == "B" || base == "W" || base == "J" || base == "Hz") {
    for (const char* larger : {"k", "M", "G", "T", "P"}) {
      if (std::abs(value) < 999.95) break;
      value *= 1e-3;
      prefix = larger;
    }
  }
  const double size = std::abs(value);
  const bool whole = value == std::round(value);
  const int decimals = whole || size >= 1000 ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  const std::string written = prefix + base + (rate ? "/s" : "");
  return fmt::format("{:.{}f}{}{}", value, decimals, written.empty() ? "" : " ", written);
}

std::string with_interval(const std::string& value, const std::optional<Interval>& ci95, int decimals) {
  if (!ci95) return value;
  return fmt::format("{} (95 %: {}–{})", value, fixed(ci95->low, decimals), fixed(ci95->high, decimals));
}

std::string plural(std::size_t n, const std::string& one, const std::string& many) {
  return fmt::format("{} {}", count(static_cast<double>(n)), n == 1 ? one : many);
}

}  // namespace paceline::analysis
