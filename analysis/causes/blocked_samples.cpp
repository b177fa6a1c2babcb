// SPDX-License-Identifier: Apache-2.0
#include "analysis/causes/blocked_samples.h"

#include <algorithm>

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
    time_ns_.push_back(samples.time_ns[i]);
    page_faults_.push_back(page_faults_.back() + (call == "page fault" ? 1 : 0));
    io_.push_back(io_.back() + (is_input_output(call, names[frame.file]) ? 1 : 0));
  }
}

BlockedSamples::Shares BlockedSamples::shares(std::int64_t begin_ns, std::int64_t end_ns) const {
  // Of short waits, a few samples a second see some.
  for (const std::int64_t around_ns : {0L, 250'000'000L, 5'000'000'000L}) {
    bool any = false;
    const Shares shares = shares_of_samples(begin_ns - around_ns, end_ns + around_ns, any);
    if (any) return shares;
  }
  return {};
}

BlockedSamples::Shares BlockedSamples::shares_of_samples(std::int64_t begin_ns, std::int64_t end_ns, bool& any) const {
  const auto first = std::ranges::lower_bound(time_ns_, begin_ns) - time_ns_.begin();
  const auto last = std::ranges::lower_bound(time_ns_, end_ns) - time_ns_.begin();
  any = first < last;
  if (!any) return {};
  const auto share = [&](const std::vector<std::uint32_t>& sums) {
    const auto from = static_cast<std::size_t>(first), until = static_cast<std::size_t>(last);
    return static_cast<double>(sums[until] - sums[from]) / static_cast<double>(last - first);
  };
  return {.page_faults = share(page_faults_), .input_output = share(io_)};
}

}  // namespace paceline::analysis
