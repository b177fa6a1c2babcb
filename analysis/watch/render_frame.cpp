// SPDX-License-Identifier: Apache-2.0
#include "analysis/watch/render_frame.h"
#include "analysis/run/finding_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>

#include "analysis/text/labels.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace frame_rendering {

using Style = FrameLine::Style;

constexpr double least_phase_share = 0.005;
constexpr std::int64_t long_silence_ns = 10'000'000'000;

// An upper bound of the columns that the code point which starts with this byte takes: East Asian wide characters take
// two. 0 for the other bytes of a code point.
std::size_t columns_of(unsigned char first) {
  if ((first & 0xc0) == 0x80) return 0;
  return first >= 0xf0 || (first >= 0xe3 && first < 0xef) ? 2 : 1;
}

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  for (const char c : text) columns += columns_of(static_cast<unsigned char>(c));
  return columns;
}

// The text without what does not fit into the columns.
std::string cut(const std::string& text, std::size_t width) {
  if (columns_of(text) <= width) return text;
  std::string out;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t more = columns_of(static_cast<unsigned char>(text[i]));
    if (more > 0 && columns + more + 1 > width) break;
    columns += more;
    out += text[i];
  }
  return width > 0 ? out + "…" : "";
}

// Lines of at most `width` columns, broken at spaces where there are any; the others are indented.
void wrap(const std::string& text, std::size_t width, Style style, std::vector<FrameLine>& lines) {
  constexpr std::size_t most_lines = 4;
  std::string rest = text;
  for (std::size_t n = 1; n < most_lines && columns_of(rest) > width; ++n) {
    std::size_t at = 0, columns = 0, space = 0;
    for (; at < rest.size() && columns <= width; ++at) {
      if (rest[at] == ' ' && at > 4) space = at;
      columns += columns_of(static_cast<unsigned char>(rest[at]));
    }
    if (space == 0) break;
    lines.push_back({rest.substr(0, space), style});
    rest = "    " + rest.substr(space + 1);
  }
  lines.push_back({rest, style});
}

std::string right(const std::string& text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return columns < width ? std::string(width - columns, ' ') + text : text;
}
std::string left(const std::string& text, std::size_t width) {
  const std::size_t columns = columns_of(text);
  return columns < width ? text + std::string(width - columns, ' ') : cut(text, width);
}

std::string signed_percent(double change) { return fmt::format("{:+.1f} %", 100 * change); }

// From 0 to the largest of the values, so that heights compare.
std::string sparkline(const std::vector<double>& values, std::size_t most) {
  static constexpr const char* bars[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t n = std::min(values.size(), most);
  const auto begin = values.end() - static_cast<std::ptrdiff_t>(n);
  const double largest = n > 0 ? *std::max_element(begin, values.end()) : 0;
  std::string line;
  for (auto value = begin; value != values.end(); ++value) {
    line += bars[largest > 0 ? std::min<std::size_t>(7, static_cast<std::size_t>(8 * *value / largest)) : 0];
  }
  return line;
}

std::string title(const WatchFrame& frame) {
  std::string ranks = plural(frame.ranks.size(), "rank", "ranks");
  if (frame.expected_ranks > static_cast<int>(frame.ranks.size())) {
    ranks = fmt::format("{} of {}", frame.ranks.size(),
                        plural(static_cast<std::size_t>(frame.expected_ranks), "rank", "ranks"));
  }
  return fmt::format("{}: {} on {}, {} {}", label(frame.path, 40), ranks, plural(frame.hosts, "host", "hosts"),
                     frame.ended ? "ended after" : "running for",
                     seconds(1e-9 * static_cast<double>(frame.elapsed_ns)));
}

std::string steps(const WatchFrame& frame, std::size_t width) {
  if (frame.steps_ns.empty()) return "no iteration yet that all ranks have finished";
  std::string line = fmt::format("iteration {}: step {}, 95 % below {}", frame.newest_iteration,
                                 duration(frame.median_ns), duration(frame.p95_ns));
  if (frame.trend) line += ", trend " + signed_percent(*frame.trend);
  const std::size_t used = columns_of(line) + 2;
  return width > used + 8 ? line + "  " + sparkline(frame.steps_ns, width - used) : line;
}

std::string phases(const WatchFrame& frame) {
  std::vector<std::size_t> order(phase_count);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t p) { return frame.phase_shares[p]; });
  std::vector<std::string> parts;
  for (const std::size_t p : order) {
    if (frame.phase_shares[p] < least_phase_share) continue;
    parts.push_back(fmt::format("{} {:.0f} %", phase_name(static_cast<Phase>(p)), 100 * frame.phase_shares[p]));
  }
  return "phases: " + (parts.empty() ? "not known yet" : joined(parts));
}

FrameLine verdict(const WatchFrame& frame) {
  if (frame.ranks.size() < 2) return {"slowest rank: there is only one", Style::faint};
  if (!frame.lateness) return {"slowest rank: not judged yet", Style::faint};
  const LatenessTest& test = *frame.lateness;
  if (!test.judged && test.late.empty()) {
    return {fmt::format("slowest rank: not judged yet after {}", plural(test.iterations, "iteration", "iterations")),
            Style::faint};
  }
  if (test.late.empty()) {
    return {fmt::format("slowest rank: none is late beyond chance, over {} iterations", test.iterations), Style::plain};
  }
  std::string text = "slowest rank: ";
  std::vector<int> others;
  for (const Finding& finding : frame.findings) {
    if (finding.kind != "slow rank") continue;
    if (text.ends_with(": ")) {
      text += "r" + finding.text.substr(1, finding.text.size() - 2);  // without its capital and its full stop
    } else {
      others.push_back(frame.ranks[*finding.places.front().rank].rank);
    }
  }
  std::ranges::sort(others);
  text += fmt::format(", over {} iterations", test.iterations);
  if (!others.empty()) text += "; late too: " + rank_list(others, 4);
  return {text, Style::warning};
}

std::vector<std::string> hangs_of(const WatchFrame& frame) {
  std::vector<std::string> texts;
  for (const Finding& finding : frame.findings) {
    if (finding.kind == "hang") texts.push_back(finding.text);
  }
  return texts;
}

std::string state_of(const WatchedRank& rank) {
  const std::string problem = label(rank.problem, 200);
  switch (rank.state) {
    case LiveState::ended:
      return problem.empty() ? "ended" : "ended, damaged: " + problem;
    case LiveState::killed:
      return problem.empty() ? "killed" : "killed, damaged: " + problem;
    case LiveState::lost:
      return "lost: " + problem;
    case LiveState::running:
      break;
  }
  return problem.empty() ? label(rank.doing, 60) : "damaged: " + problem;
}

std::string columns(const std::string& rank, const std::string& host, const std::string& iterations,
                    const std::string& step, const std::string& wait, const std::string& late,
                    const std::string& newest, const std::string& state) {
  return right(rank, 5) + "  " + left(host, 10) + right(iterations, 8) + right(step, 11) + right(wait, 8) +
         right(late, 11) + right(newest, 10) + "  " + state;
}

FrameLine rank_line(const WatchFrame& frame, std::size_t index) {
  const WatchedRank& rank = frame.ranks[index];
  const bool steps = rank.step_ns > 0;
  const bool named = frame.lateness && std::ranges::count(frame.lateness->late, index, &LateRank::rank) > 0;
  const bool running = rank.state == LiveState::running;
  const bool silent = running && rank.newest_age_ns > long_silence_ns;
  FrameLine line{
      columns(fmt::format("{}", rank.rank), label(rank.host, 10), fmt::format("{}", rank.iterations),
              steps ? duration(rank.step_ns) : "-", steps ? fmt::format("{:.0f} %", 100 * rank.wait_share) : "-",
              steps && frame.ranks.size() > 1 ? duration(static_cast<std::int64_t>(rank.late_ns)) : "-",
              running ? seconds(std::round(1e-8 * static_cast<double>(rank.newest_age_ns)) * 0.1) : "-",
              state_of(rank)),
      Style::plain};
  if (named || silent || !rank.problem.empty() || rank.state == LiveState::killed) line.style = Style::warning;
  return line;
}

}  // namespace frame_rendering

std::vector<FrameLine> render_frame(const WatchFrame& frame, std::size_t width, std::size_t height,
                                    std::size_t first_rank) {
  using namespace frame_rendering;
  std::vector<FrameLine> lines;
  lines.push_back({title(frame), Style::heading});
  lines.push_back({steps(frame, width), Style::plain});
  lines.push_back({phases(frame), Style::plain});
  lines.push_back(verdict(frame));
  for (const std::string& hang : hangs_of(frame)) wrap("hang: " + hang, width, Style::warning, lines);
  for (const std::string& note : frame.notes) wrap(label(note, 300), width, Style::warning, lines);
  lines.push_back({columns("rank", "host", "iter.", "step", "wait", "late", "newest", "doing"), Style::heading});
  const std::size_t all = frame.ranks.size(), first = std::min(first_rank, all == 0 ? 0 : all - 1);
  std::size_t shown = all - first;
  if (height > 0) {
    const std::size_t room = height > lines.size() ? height - lines.size() : 0;
    if (shown > room || first > 0) shown = std::min(shown, room > 0 ? room - 1 : 0);
  }
  for (std::size_t r = first; r < first + shown; ++r) lines.push_back(rank_line(frame, r));
  if (shown < all) {
    lines.push_back(
        {fmt::format("{} of {} ranks are not shown; the arrow keys move the list", all - shown, all), Style::faint});
  }
  for (FrameLine& line : lines) line.text = cut(printable(line.text), width);
  if (height > 0 && lines.size() > height) lines.resize(height);
  return lines;
}

std::string frame_summary(const WatchFrame& frame) {
  using namespace frame_rendering;
  std::string text = fmt::format("{}; {}; {}", title(frame), steps(frame, 0), verdict(frame).text);
  for (const std::string& hang : hangs_of(frame)) text += "; hang: " + hang;
  return text;
}

std::string closing_line(const WatchFrame& frame) {
  std::vector<int> killed;
  for (const WatchedRank& rank : frame.ranks) {
    if (rank.state != LiveState::ended) killed.push_back(rank.rank);
  }
  std::string text =
      fmt::format("The job ended after {}: {}, {}.", seconds(1e-9 * static_cast<double>(frame.elapsed_ns)),
                  plural(frame.ranks.size(), "rank", "ranks"), plural(frame.iterations, "iteration", "iterations"));
  if (!killed.empty())
    text += fmt::format(" {} did not end by {}.", capitalised(rank_list(killed)),
                        killed.size() == 1 ? "itself" : "themselves");
  return text + fmt::format(" See: paceline report {}", label(frame.path, 200));
}

std::string frame_json(const WatchFrame& frame) {
  using nlohmann::ordered_json;
  ordered_json out = {{"schema", "paceline.watch/1"},
                      {"path", frame.path},
                      {"ended", frame.ended},
                      {"elapsed_ns", frame.elapsed_ns},
                      {"expected_ranks", frame.expected_ranks},
                      {"hosts", frame.hosts},
                      {"iterations", {{"count", frame.iterations}}}};
  if (!frame.steps_ns.empty()) {
    out["iterations"]["newest"] = frame.newest_iteration;
    out["iterations"]["median_ns"] = frame.median_ns;
    out["iterations"]["p95_ns"] = frame.p95_ns;
    if (frame.trend) out["iterations"]["trend"] = *frame.trend;
    ordered_json& shares = out["phase_shares"] = ordered_json::object();
    for (std::size_t p = 0; p < phase_count; ++p) {
      if (frame.phase_shares[p] > 0) shares[std::string(phase_name(static_cast<Phase>(p)))] = frame.phase_shares[p];
    }
  }
  if (frame.lateness) {
    out["lateness"] = {{"judged", frame.lateness->judged},
                       {"iterations", frame.lateness->iterations},
                       {"late", ordered_json::array()}};
    for (const LateRank& late : frame.lateness->late) {
      out["lateness"]["late"].push_back({{"rank", frame.ranks[late.rank].rank},
                                         {"behind_ns", late.behind_ns},
                                         {"share_of_step", late.share_of_step},
                                         {"p", late.p}});
    }
  }
  out["hangs"] = frame_rendering::hangs_of(frame);
  out["findings"] = ordered_json::array();
  for (const Finding& finding : frame.findings) {
    out["findings"].push_back(finding_json(finding, [&](std::size_t rank) { return frame.ranks[rank].rank; }));
  }
  out["notes"] = frame.notes;
  out["ranks"] = ordered_json::array();
  constexpr const char* states[] = {"running", "ended", "killed", "lost"};
  for (const WatchedRank& rank : frame.ranks) {
    ordered_json entry = {{"rank", rank.rank},
                          {"host", rank.host},
                          {"state", states[static_cast<std::size_t>(rank.state)]},
                          {"iterations", rank.iterations},
                          {"events", {{"nvtx", rank.nvtx_events}, {"mpi", rank.mpi_events}}},
                          {"newest_age_ns", rank.newest_age_ns}};
    if (rank.step_ns > 0) {
      entry["step_ns"] = rank.step_ns;
      entry["wait_share"] = rank.wait_share;
      entry["late_ns"] = rank.late_ns;
    }
    if (!rank.doing.empty()) entry["doing"] = rank.doing;
    if (!rank.problem.empty()) entry["problem"] = rank.problem;
    if (rank.skipped_events > 0) entry["skipped_events"] = rank.skipped_events;
    out["ranks"].push_back(std::move(entry));
  }
  return printable_json(out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace paceline::analysis
