// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/function_excess.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <random>
#include <set>

#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace function_excess_parts {

constexpr int permutations = 999;
constexpr std::size_t most_tested = 100;  // functions in slow iterations: those whose times vary most
constexpr double level = 0.05, least_of_largest = 0.8, least_of_call = 0.25, most_of_calls = 2.0 / 3;

// Share of permutations, the given order among them, whose largest statistic reaches each function's own.
template <class Statistics>
std::vector<double> p_values(std::size_t functions, Statistics&& statistics) {
  std::mt19937_64 random(1);
  const std::vector<double> own = statistics(nullptr);
  std::vector<double> reached(functions, 1);
  for (int i = 0; i < permutations; ++i) {
    const std::vector<double> drawn = statistics(&random);
    const double largest = *std::ranges::max_element(drawn);
    for (std::size_t f = 0; f < functions; ++f) reached[f] += largest >= own[f] - 1e-9 ? 1 : 0;
  }
  for (double& p : reached) p /= permutations + 1;
  return reached;
}

}  // namespace function_excess_parts

FunctionTimes::FunctionTimes(const Trace& trace) : trace_(&trace), function_of_(trace.stacks.frames()) {
  std::map<Key, std::size_t> ids;
  for (FrameId frame = 0; frame < function_of_.size(); ++frame) {
    const bool is_call = !system_call(trace.names[trace.stacks[frame].function]).empty();
    const Key key{trace.stacks[frame].function, is_call ? 0 : trace.stacks[frame].file};
    const auto [found, fresh] = ids.try_emplace(key, names_.size());
    if (fresh) names_.push_back({.key = key, .ns = {}, .files = {}, .lines = {}, .callers = {}});
    names_[found->second].has_lines |= trace.stacks[frame].line > 0;
    names_[found->second].is_call |= is_call;
    function_of_[frame] = found->second;
  }
}

double FunctionTimes::period_ns(const StackSamples& samples, std::size_t at) {
  if (samples.period_ns > 0) return static_cast<double>(samples.period_ns);
  if (at + 1 < samples.size()) return static_cast<double>(samples.time_ns[at + 1] - samples.time_ns[at]);
  return 0;
}

void FunctionTimes::add_stack(StackId stack, double ns, std::size_t row) {
  on_stack_.clear();
  if (stack != 0) {
    const FrameId frame = trace_->stacks.innermost(stack);
    const NameId file = trace_->stacks[frame].file;
    Function& called = names_[function_of_[frame]];
    if (called.key.file != file) called.files.push_back({file, row, ns});
  }
  for (; stack != 0; stack = trace_->stacks.caller(stack)) {
    on_stack_.push_back(trace_->stacks.innermost(stack));
  }
  std::ranges::reverse(on_stack_);
  const auto function_of = [this](FrameId frame) { return function_of_[frame]; };
  for (std::size_t depth = 0; depth < on_stack_.size(); ++depth) {
    const auto first = std::ranges::find(on_stack_, function_of(on_stack_[depth]), function_of);
    if (static_cast<std::size_t>(first - on_stack_.begin()) != depth) continue;  // it calls itself
    Function& function = names_[function_of(on_stack_[depth])];
    add_line(function.lines, {trace_->stacks[on_stack_[depth]].line, row, ns});
    if (function.ns.size() <= row) function.ns.resize(row + 1);
    function.ns[row] += ns;
    function.depth += static_cast<double>(depth);
    ++function.samples;
  }
  if (on_stack_.empty() || !names_[function_of(on_stack_.back())].is_call) return;
  const auto own = std::ranges::find_if(on_stack_.rbegin(), on_stack_.rend(),
                                        [&](FrameId frame) { return is_own(names_[function_of(frame)]); });
  if (own != on_stack_.rend()) add_line(names_[function_of(on_stack_.back())].callers, {*own + 1, row, ns});
}

bool FunctionTimes::is_own(const Function& function) const {
  const std::string& file = trace_->names[function.key.file];
  return function.has_lines || (file.starts_with('/') && !is_shared_library(file));
}

std::string FunctionTimes::file_of_most(const std::vector<FileTime>& times, const WeightOfRow& weight) const {
  std::map<std::string, double> files, directories;
  double all = 0;
  for (const FileTime& time : times) {
    const std::string& file = trace_->names[time.file];
    const double ns = weight(time.row) * time.ns;
    all += ns;
    files[file] += ns;
    if (const auto slash = file.rfind('/'); slash != std::string::npos) directories[file.substr(0, slash + 1)] += ns;
  }
  for (const auto* places : {&files, &directories}) {
    const auto most = std::ranges::max_element(*places, {}, [](const auto& place) { return place.second; });
    if (most != places->end() && most->second > 0 && most->second >= 0.5 * all) return most->first;
  }
  return "";
}

void FunctionTimes::add_line(std::vector<LineTime>& lines, const LineTime& time) {
  if (time.line == 0) return;
  for (auto at = lines.rbegin(); at != lines.rend() && at->row == time.row; ++at) {
    if (at->line != time.line) continue;
    at->ns += time.ns;
    return;
  }
  lines.push_back(time);
}

std::uint32_t FunctionTimes::line_of_most(const std::vector<LineTime>& lines, const WeightOfRow& weight) {
  std::map<std::uint32_t, double> sums;
  for (const LineTime& time : lines) sums[time.line] += weight(time.row) * time.ns;
  const auto most = std::ranges::max_element(sums, {}, [](const auto& sum) { return sum.second; });
  return most == sums.end() ? 0 : most->first;
}

double FunctionTimes::excess_in_calls(std::size_t call, std::size_t caller, const WeightOfRow& weight) const {
  double excess = 0;
  std::set<std::size_t> rows;
  for (const LineTime& time : names_[call].callers) {
    if (function_of_[time.line - 1] != caller) continue;
    const double ns = weight(time.row) * time.ns;
    excess += ns;
    if (ns > 0) rows.insert(time.row);
  }
  return rows.size() < 2 ? 0 : std::max(excess, 0.0);
}

std::optional<CauseFunction> FunctionTimes::named(const std::vector<double>& excess, const std::vector<double>& p,
                                                  const WeightOfRow& weight) const {
  using namespace function_excess_parts;
  double largest = 0;
  for (std::size_t f = 0; f < names_.size(); ++f) {
    if (p[f] <= level) largest = std::max(largest, excess[f]);
  }
  if (largest <= 0) return std::nullopt;
  const auto depth_of = [&](std::size_t f) { return names_[f].depth / names_[f].samples; };
  std::optional<std::size_t> innermost, own;
  for (std::size_t f = 0; f < names_.size(); ++f) {
    if (p[f] > level || excess[f] < least_of_largest * largest) continue;
    if (!innermost || depth_of(f) > depth_of(*innermost)) innermost = f;
    if (is_own(names_[f]) && (!own || depth_of(f) > depth_of(*own))) own = f;
  }
  const std::size_t chosen = own.value_or(*innermost);
  // A system call of which the thread's own work is a part, such as fsync, is never most of the time. But it may be a
  // large part, or most of what the function's own calls take.
  if (chosen == *innermost) {
    double most = least_of_call * largest, in_calls = 0;
    std::vector<double> calls(names_.size());
    for (std::size_t f = 0; f < names_.size(); ++f) in_calls += calls[f] = excess_in_calls(f, chosen, weight);
    for (std::size_t f = 0; f < names_.size(); ++f) {
      if (!names_[f].is_call || depth_of(f) < depth_of(chosen)) continue;
      if (p[f] <= level && excess[f] >= most) {
        most = excess[f];
        innermost = f;
      } else if (innermost == chosen && calls[f] > 0 && calls[f] >= most_of_calls * in_calls) {
        innermost = f;
      }
    }
  }
  const Function& function = names_[chosen];
  CauseFunction cause{.function = trace_->names[function.key.function],
                      .file = trace_->names[function.key.file],
                      .line = line_of_most(function.lines, weight),
                      .innermost = chosen == *innermost ? "" : trace_->names[names_[*innermost].key.function],
                      .call_file = file_of_most(names_[*innermost].files, weight),
                      .share = excess[chosen],
                      .p = p[chosen]};
  // All ranks may spend as much time in the function that makes the call, such as main().
  if (const std::uint32_t caller = line_of_most(function.callers, weight); function.is_call && caller != 0) {
    const Frame& frame = trace_->stacks[caller - 1];
    cause.innermost = cause.function;
    cause.function = trace_->names[frame.function];
    cause.file = trace_->names[frame.file];
    cause.line = frame.line;
  }
  if (cause.file.empty() && cause.innermost.empty()) cause.file = cause.call_file;
  return cause;
}

std::optional<CauseFunction> FunctionTimes::of_late_rank(std::size_t rows, std::size_t block) const {
  using namespace function_excess_parts;
  const std::size_t blocks = block == 0 ? 0 : (rows + block - 1) / block, functions = names_.size();
  if (blocks < 5 || functions == 0) return std::nullopt;  // 2^-5 is the least p-value of five blocks
  std::vector<double> sums(blocks * functions), excess(functions), scale(functions);
  for (std::size_t f = 0; f < functions; ++f) {
    for (std::size_t row = 0; row < std::min(rows, names_[f].ns.size()); ++row) {
      sums[row / block * functions + f] += names_[f].ns[row];
      excess[f] += names_[f].ns[row] / static_cast<double>(rows);
    }
    for (std::size_t b = 0; b < blocks; ++b) scale[f] += sums[b * functions + f] * sums[b * functions + f];
    scale[f] = scale[f] > 0 ? 1 / std::sqrt(scale[f]) : 0;
  }
  const auto p = p_values(functions, [&](std::mt19937_64* random) {
    std::vector<double> statistics(functions);
    for (std::size_t b = 0; b < blocks; ++b) {
      const double sign = random != nullptr && ((*random)() >> 32 & 1) != 0 ? -1 : 1;
      for (std::size_t f = 0; f < functions; ++f) statistics[f] += sign * scale[f] * sums[b * functions + f];
    }
    return statistics;
  });
  return named(excess, p, [&](std::size_t) { return 1 / static_cast<double>(rows); });
}

std::optional<CauseFunction> FunctionTimes::of_slow_iterations(const std::vector<bool>& slow) const {
  using namespace function_excess_parts;
  const std::size_t rows = slow.size(), functions = names_.size();
  const auto slow_rows = static_cast<std::size_t>(std::ranges::count(slow, true));
  if (slow_rows == 0 || slow_rows == rows || functions == 0) return std::nullopt;
  const auto of_slow = static_cast<double>(slow_rows), of_usual = static_cast<double>(rows - slow_rows);
  std::vector<double> excess(functions), scale(functions);
  for (std::size_t f = 0; f < functions; ++f) {
    double squares = 0, sum = 0;
    for (std::size_t row = 0; row < names_[f].ns.size(); ++row) {
      const double ns = names_[f].ns[row];
      squares += ns * ns;
      sum += ns;
      excess[f] += slow[row] ? ns / of_slow : -ns / of_usual;
    }
    const double variance = squares - sum * sum / static_cast<double>(rows);
    scale[f] = variance > 0 ? 1 / std::sqrt(variance) : 0;
  }
  // The choice does not depend on the labels.
  std::vector<std::size_t> tested(functions);
  std::iota(tested.begin(), tested.end(), std::size_t{0});
  std::ranges::stable_sort(tested, {}, [&](std::size_t f) { return scale[f] > 0 ? scale[f] : HUGE_VAL; });
  tested.resize(std::min(tested.size(), most_tested));
  std::vector<bool> labels = slow;
  const auto p = p_values(functions, [&](std::mt19937_64* random) {
    if (random != nullptr) std::shuffle(labels.begin(), labels.end(), *random);
    std::vector<double> statistics(functions);
    for (const std::size_t f : tested) {
      for (std::size_t row = 0; row < names_[f].ns.size(); ++row) {
        statistics[f] += scale[f] * names_[f].ns[row] * (labels[row] ? 1 / of_slow : -1 / of_usual);
      }
    }
    return statistics;
  });
  return named(excess, p, [&](std::size_t row) { return slow[row] ? 1 / of_slow : -1 / of_usual; });
}

}  // namespace paceline::analysis
