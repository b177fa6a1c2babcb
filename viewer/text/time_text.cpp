// SPDX-License-Identifier: Apache-2.0
#include "viewer/text/time_text.h"

#include <QRegularExpression>
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace paceline::viewer {
namespace {

struct Unit {
  double ns;
  const char* name;
};
constexpr std::array<Unit, 4> units{{{1e9, "s"}, {1e6, "ms"}, {1e3, "µs"}, {1, "ns"}}};

const Unit& unit_for(double ns) {
  for (const Unit& unit : units) {
    if (ns >= unit.ns) return unit;
  }
  return units.back();
}

constexpr QChar minus(0x2212);  // not a hyphen
constexpr double minute_ns = 60e9, hour_ns = 3600e9;

}  // namespace

QString duration_text(std::int64_t ns) {
  if (ns < 0) return minus + duration_text(-std::max(ns, -std::numeric_limits<std::int64_t>::max()));
  if (ns < 1000) return QString("%1 ns").arg(ns);
  const double seconds = static_cast<double>(ns) / 1e9;
  if (seconds >= 36'000) {
    const auto minutes = std::llround(seconds / 60);
    return QString("%1 h %2 min").arg(minutes / 60).arg(minutes % 60);
  }
  if (seconds >= 3600) {
    const auto whole = std::llround(seconds);
    return QString("%1 h %2 min %3 s").arg(whole / 3600).arg(whole / 60 % 60).arg(whole % 60);
  }
  if (seconds >= 1000) {
    const double tenths = std::round(seconds * 10);
    const auto minutes = static_cast<long long>(tenths / 600);
    return QString("%1 min %2 s").arg(minutes).arg((tenths - static_cast<double>(minutes) * 600) / 10, 0, 'f', 1);
  }
  const Unit& unit = unit_for(static_cast<double>(ns));
  const double value = static_cast<double>(ns) / unit.ns;
  return QString("%1 %2").arg(value, 0, 'f', value < 10 ? 3 : value < 100 ? 2 : 1).arg(unit.name);
}

QString length_text(double ns) {
  constexpr double most = 9e18;
  return duration_text(static_cast<std::int64_t>(std::clamp(ns, -most, most)));
}

QString time_text(double time_ns, double step_ns, double span_ns) {
  if (span_ns >= hour_ns) {
    const bool in_minutes = step_ns >= minute_ns;
    const int decimals = std::max(0, static_cast<int>(std::ceil(std::log10(1e9 / step_ns) - 1e-9)));
    // Rounded to the last digit that is written, not to the step: a step of 5 min does not move 26 h 23 min.
    const double digit_ns = in_minutes ? minute_ns : 1e9 / std::pow(10, decimals);
    const double size = std::round(std::abs(time_ns) / digit_ns) * digit_ns;
    const double hours = std::floor(size / hour_ns), minutes = std::floor((size - hours * hour_ns) / minute_ns);
    const QString text = QString("%1%2 h %3 min")
                             .arg(time_ns < 0 && size > 0 ? QString(minus) : QString())
                             .arg(hours, 0, 'f', 0)
                             .arg(minutes, 2, 'f', 0, QChar('0'));
    if (in_minutes) return text;
    const double left = (size - hours * hour_ns - minutes * minute_ns) / 1e9;
    return QString("%1 %2 s").arg(text).arg(left, decimals > 0 ? decimals + 3 : 2, 'f', decimals, QChar('0'));
  }
  const Unit& unit = unit_for(span_ns);
  const int digits = std::max(0, static_cast<int>(std::ceil(std::log10(unit.ns / step_ns) - 1e-9)));
  const double value = std::abs(time_ns) < step_ns / 2 ? 0 : time_ns / unit.ns;
  return QString("%1%2 %3")
      .arg(value < 0 ? QString(minus) : QString())
      .arg(std::abs(value), 0, 'f', digits)
      .arg(unit.name);
}

double time_from_text(const QString& typed) {
  const QString text = QString(typed).replace(minus, '-');
  static const QRegularExpression form("^\\s*([-+]?[0-9]*\\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\\s*(s|ms|us|µs|μs|ns)?\\s*$");
  static const QRegularExpression clock(
      "^\\s*([-+]?)(?:([0-9]+)\\s*h)?\\s*(?:([0-9]+)\\s*min)?\\s*(?:([0-9]+\\.?[0-9]*)\\s*s)?\\s*$");
  const auto match = form.match(text);
  if (!match.hasMatch()) {
    const auto parts = clock.match(text);
    if (parts.captured(2).isEmpty() && parts.captured(3).isEmpty()) return std::numeric_limits<double>::quiet_NaN();
    const double ns = parts.captured(2).toDouble() * hour_ns + parts.captured(3).toDouble() * minute_ns +
                      parts.captured(4).toDouble() * 1e9;
    return parts.captured(1) == "-" ? -ns : ns;
  }
  const QString unit = match.captured(2);
  const double scale = unit.isEmpty() || unit == "s" ? 1e9 : unit == "ms" ? 1e6 : unit == "ns" ? 1 : 1e3;
  return match.captured(1).toDouble() * scale;
}

QString share_text(double share) {
  if (share > 0 && share < 0.0005) return "<0.1 %";
  return QString("%1 %").arg(share * 100, 0, 'f', 1);
}

QString count_text(std::uint64_t count) {
  QString text = QString::number(count);
  for (qsizetype at = text.size() - 3; at > 0; at -= 3) text.insert(at, ',');
  return text;
}

}  // namespace paceline::viewer
