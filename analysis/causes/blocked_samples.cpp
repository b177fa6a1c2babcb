// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/blocked_samples.h"

#include <algorithm>
#include <tuple>

#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {

bool is_input_output(std::string_view call, std::string_view file) {
  constexpr std::string_view of_files[] = {
      "read",       "write",  "readv",     "writev", "pread64",         "pwrite64",  "preadv",         "pwritev",
      "fsync",      "syncfs", "fdatasync", "openat", "sync_file_range", "ftruncate", "fallocate",      "getdents64",
      "newfstatat", "statx",  "fstat",     "lseek",  "close",           "open",      "stat",           "unlink",
      "unlinkat",   "rename", "renameat2", "execve", "splice",          "sendfile",  "copy_file_range"};
  constexpr std::string_view without_file[] = {"sync", "msync", "io_getevents"};
  if (std::ranges::find(without_file, call) != std::end(without_file)) return true;
  const bool is_file = file.starts_with('/') && !file.starts_with("/dev/") && !file.starts_with("/proc/");
  // Relative paths are those of a call with a path.
  const bool is_relative = call.starts_with("open") || call.find("stat") != std::string_view::npos;
  return (is_file || is_relative) && std::ranges::find(of_files, call) != std::end(of_files);
}

BlockedSamples::BlockedSamples(const Stacks& stacks, const Names& names, const StackSamples& samples,
                               std::span<const BlockedTime> in_collectives) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (samples.stack[i] == 0 || blocked_ns(in_collectives, samples.time_ns[i], samples.time_ns[i] + 1) > 0) continue;
    const Frame& frame = stacks[stacks.innermost(samples.stack[i])];
    const std::string_view call = system_call(names[frame.function]);
    if (call.empty()) continue;
    add(samples.time_ns[i], call == "page fault", is_input_output(call, names[frame.file]));
  }
}

BlockedSamples::BlockedSamples(std::span<const BlockedSamples* const> ranks) {
  std::vector<std::tuple<std::int64_t, bool, bool>> samples;
  for (const BlockedSamples* of : ranks) {
    for (std::size_t i = 0; i < of->time_ns_.size(); ++i) {
      samples.emplace_back(of->time_ns_[i], of->page_faults_[i + 1] > of->page_faults_[i], of->io_[i + 1] > of->io_[i]);
    }
  }
  std::ranges::sort(samples);
  for (const auto& [time_ns, page_fault, input_output] : samples) add(time_ns, page_fault, input_output);
}

void BlockedSamples::add(std::int64_t time_ns, bool page_fault, bool input_output) {
  time_ns_.push_back(time_ns);
  page_faults_.push_back(page_faults_.back() + (page_fault ? 1 : 0));
  io_.push_back(io_.back() + (input_output ? 1 : 0));
}

BlockedSamples::Shares BlockedSamples::shares(std::int64_t begin_ns, std::int64_t end_ns,
                                              const BlockedSamples* all) const {
  // Of short waits, a few samples a second see some.
  constexpr std::int64_t near_ns = 250'000'000, far_ns = 5'000'000'000;
  for (const std::int64_t around_ns : {0L, near_ns}) {
    const Counts own = counts(begin_ns - around_ns, end_ns + around_ns);
    if (own.samples > 0) return own.shares();
  }
  Counts own = counts(begin_ns - far_ns, end_ns + far_ns);
  const Counts others = all == nullptr ? Counts{} : all->counts(begin_ns - far_ns, end_ns + far_ns);
  if (others.samples > 0) {
    constexpr double weight = 4;
    own.samples += weight;
    own.page_faults += weight * others.shares().page_faults;
    own.input_output += weight * others.shares().input_output;
  }
  return own.samples > 0 ? own.shares() : Shares{};
}

BlockedSamples::Counts BlockedSamples::counts(std::int64_t begin_ns, std::int64_t end_ns) const {
  const auto first = static_cast<std::size_t>(std::ranges::lower_bound(time_ns_, begin_ns) - time_ns_.begin());
  const auto last = static_cast<std::size_t>(std::ranges::lower_bound(time_ns_, end_ns) - time_ns_.begin());
  return {.samples = static_cast<double>(last - first),
          .page_faults = static_cast<double>(page_faults_[last] - page_faults_[first]),
          .input_output = static_cast<double>(io_[last] - io_[first])};
}

}  // namespace paceline::analysis
