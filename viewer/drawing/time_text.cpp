#include "viewer/drawing/time_text.h"

#include <QRegularExpression>
#include <QStringList>
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

// Turns "12.3456789" into "12.345 678 9": groups of three digits are easier to read.
QString grouped(const QString& number) {
  const qsizetype point = number.indexOf('.');
  if (point < 0) return number;
  QString text = number.left(point + 1);
  for (qsizetype i = point + 1; i < number.size(); ++i) {
    if (i > point + 1 && (i - point - 1) % 3 == 0) text += QChar(0x2009);  // thin space
    text += number[i];
  }
  return text;
}

}  // namespace

QString duration_text(std::int64_t ns) {
  if (ns < 0) return "-" + duration_text(-ns);
  if (ns < 1000) return QString("%1 ns").arg(ns);
  const double seconds = static_cast<double>(ns) / 1e9;
  if (seconds >= 1000) {
    const double tenths = std::round(seconds * 10);
    const auto minutes = static_cast<long long>(tenths / 600);
    return QString("%1 min %2 s").arg(minutes).arg((tenths - static_cast<double>(minutes) * 600) / 10, 0, 'f', 1);
  }
  const Unit& unit = unit_for(static_cast<double>(ns));
  const double value = static_cast<double>(ns) / unit.ns;
  return QString("%1 %2").arg(value, 0, 'f', value < 10 ? 3 : value < 100 ? 2 : 1).arg(unit.name);
}

QString time_text(double time_ns, double step_ns, double span_ns) {
  const Unit& unit = unit_for(span_ns);
  const int digits = std::max(0, static_cast<int>(std::ceil(std::log10(unit.ns / step_ns) - 1e-9)));
  const double value = std::abs(time_ns) < step_ns / 2 ? 0 : time_ns / unit.ns;
  return QString("%1 %2").arg(grouped(QString::number(value, 'f', digits)), unit.name);
}

double time_from_text(const QString& text) {
  static const QRegularExpression form("^\\s*([-+]?[0-9]*\\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\\s*(s|ms|us|µs|μs|ns)?\\s*$");
  const auto match = form.match(text);
  if (!match.hasMatch()) return std::numeric_limits<double>::quiet_NaN();
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
