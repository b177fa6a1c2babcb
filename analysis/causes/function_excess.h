// SPDX-License-Identifier: Apache-2.0
// Which function took longer: the samples of main threads' stacks on a late rank against the other ranks in the same
// iterations, or in slow iterations against the usual ones.
//
// A sample counts for each function on its stack once, with the time that it stands for. Functions are tested together
// by permutations, so that the p-value of one holds for the largest of all (P. H. Westfall and S. S. Young,
// "Resampling-Based Multiple Testing", 1993). Of a late rank, the differences of blocks of iterations change their
// signs; of slow iterations, the labels "slow" and "usual" are exchanged. Each function's difference is divided by the
// root of its sum of squares, which the permutations do not change.
//
// Of the functions beyond chance whose excess is at least 0.8 of the largest one, the innermost one with a source line
// or in a program's own file is named, rather than a function of a shared library that it called. The innermost of all
// is named beside it, and where that is a system call, the file that it concerned.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "analysis/causes/loss_parts.h"
#include "analysis/communication/blocked_time.h"
#include "analysis/phases/iterations.h"
#include "analysis/trace/trace.h"

namespace paceline::analysis {

// The time of one iteration in each function, from samples.
class FunctionTimes {
 public:
  explicit FunctionTimes(const Trace& trace);

  // Adds the samples of the rank's main thread within its iterations, outside of `blocked`, to rows of the matrix:
  // row_of(iteration) is a row or -1. Cost: samples times the depth of their stacks.
  template <class RowOf>
  void add(const Rank& rank, std::span<const BlockedTime> blocked, std::span<const Iteration> iterations, double factor,
           RowOf&& row_of) {
    const Track* main = main_track(rank);
    if (main == nullptr) return;
    const StackSamples& samples = main->stacks;
    std::size_t at = 0;
    for (const Iteration& iteration : iterations) {
      const std::ptrdiff_t row = iteration.finished ? row_of(iteration) : -1;
      if (row < 0) continue;
      while (at < samples.size() && samples.time_ns[at] < iteration.start_ns) ++at;
      for (; at < samples.size() && samples.time_ns[at] < iteration.start_ns + iteration.duration_ns; ++at) {
        if (blocked_ns(blocked, samples.time_ns[at], samples.time_ns[at] + 1) > 0) continue;
        add_stack(samples.stack[at], factor * period_ns(samples, at), static_cast<std::size_t>(row));
      }
    }
  }

  bool empty() const { return names_.empty(); }  // no stack was sampled

  // The share of the result is the mean excess in an iteration, in ns.
  // `rows` differences of a late rank to the others, one for each iteration, in order; blocks of `block` of them.
  std::optional<CauseFunction> of_late_rank(std::size_t rows, std::size_t block) const;
  // The rows of `slow` are the slow iterations.
  std::optional<CauseFunction> of_slow_iterations(const std::vector<bool>& slow) const;

 private:
  struct Key {
    NameId function, file;
    auto operator<=>(const Key&) const = default;
  };
  struct FileTime {
    NameId file;
    std::size_t row;
    double ns;
  };
  struct LineTime {
    std::uint32_t line;
    std::size_t row;
    double ns;
  };
  struct Function {
    Key key;
    bool has_lines = false, is_call = false;
    double depth = 0, samples = 0;  // the depth is a sum over samples
    std::vector<double> ns;         // by row
    std::vector<FileTime> files;    // of a system call
    std::vector<LineTime> lines;    // for each line and row
    std::vector<LineTime> callers;  // of a system call: the innermost own frames, counted from 1
  };
  using WeightOfRow = std::function<double(std::size_t)>;
  static double period_ns(const StackSamples& samples, std::size_t at);
  void add_stack(StackId stack, double ns, std::size_t row);
  // The excess is that of the rows with these weights.
  std::optional<CauseFunction> named(const std::vector<double>& excess, const std::vector<double>& p,
                                     const WeightOfRow& weight) const;
  // What is part of a function's excess needs no test of its own: the excess in the calls that it makes itself, seen in
  // two rows or more; else 0.
  double excess_in_calls(std::size_t call, std::size_t caller, const WeightOfRow& weight) const;
  // Of the program itself, not of a library.
  bool is_own(const Function& function) const;
  std::string file_of_most(const std::vector<FileTime>& times, const WeightOfRow& weight) const;
  static void add_line(std::vector<LineTime>& lines, const LineTime& time);
  // The line of most of the excess; 0: no line is known.
  static std::uint32_t line_of_most(const std::vector<LineTime>& lines, const WeightOfRow& weight);

  const Trace* trace_;
  std::vector<std::size_t> function_of_;  // by FrameId
  std::vector<Function> names_;
  std::vector<FrameId> on_stack_;
};

}  // namespace paceline::analysis
