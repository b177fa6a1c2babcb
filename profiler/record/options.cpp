// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/options.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "profiler/format/error.h"
#include "profiler/format/layout.h"
#include "profiler/launch/environment.h"
#include "profiler/record/output_directory.h"

namespace paceline::record {
namespace {

constexpr std::uint64_t kibibyte = 1024, mebibyte = 1024 * kibibyte;

std::string check_setting(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) return "'" + setting + "' is not of the form KEY=VALUE";
  if (setting.find('\n') != std::string::npos)
    return "'" + setting + "' has more than one line: give one option for each";
  return {};
}

std::string check_buffer(const std::string& bytes) {
  const std::uint64_t value = std::strtoull(bytes.c_str(), nullptr, 10);
  const bool fits = value >= 4 * format::chunk_bytes && value <= format::max_live_bytes;
  return fits ? "" : "the size must be from 256K to 1G";
}

// Turns a size with a unit into bytes, all in powers of 1024: "16M", "16 MB", "16MiB", "16777216".
std::string size_in_bytes(std::string& given) {
  constexpr std::string_view units = "kmgtpe";
  const std::string what =
      fmt::format("'{}' is not a size: give a whole number of bytes, or one with K, M or G", given);
  std::size_t digits = 0;
  while (digits < given.size() && given[digits] >= '0' && given[digits] <= '9') ++digits;
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(given.data(), given.data() + digits, value);
  if (digits == 0) return what;
  std::string unit;
  for (const char c : given.substr(digits)) {
    if (c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  unsigned shift = 0;
  if (!unit.empty() && units.find(unit[0]) != std::string_view::npos) {
    shift = 10 * static_cast<unsigned>(units.find(unit[0]) + 1);
    unit.erase(0, 1);
    if (unit == "ib" || unit == "i") unit = "b";
  }
  if (!unit.empty() && unit != "b") return what;
  if (failure != std::errc() || value > std::numeric_limits<std::uint64_t>::max() >> shift) {
    return fmt::format("'{}' is too large: a size must be below 16E", given);
  }
  given = std::to_string(value << shift);
  return {};
}

CLI::Validator at_least(std::uint64_t bytes, const char* text) {
  return {[bytes, text](std::string& given) {
            return std::strtoull(given.c_str(), nullptr, 10) < bytes ? fmt::format("must be at least {}", text) : "";
          },
          ""};
}

bool is_finite_number(const std::string& given, double& value) {
  char* end = nullptr;
  value = std::strtod(given.c_str(), &end);
  return !given.empty() && *end == '\0' && std::isfinite(value);
}

CLI::Validator above(double limit) {
  return {[limit](std::string& given) {
            double value = 0;
            const bool fits = is_finite_number(given, value) && value > limit && value < 1e9;
            return fits ? "" : fmt::format("'{}' is not a number above {} and below 1e9", given, limit);
          },
          ""};
}

// Accepts a time in seconds. The recorder's unit is the millisecond.
CLI::Validator is_time() {
  return {[](std::string& given) {
            double value = 0;
            const bool fits = is_finite_number(given, value) && value >= 0.001 && value < 1e9;
            return fits ? "" : fmt::format("'{}' is not a number of seconds from 0.001 to 1e9", given);
          },
          ""};
}

std::string check_output(const std::string& output) {
  try {
    check_placeholders(output);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 19 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::string check_iterations(const std::string& given) {
  const std::size_t colon = given.find(':');
  const std::string_view first = std::string_view(given).substr(0, colon);
  const std::string_view last = colon == std::string::npos ? first : std::string_view(given).substr(colon + 1);
  if (!is_number(first) || (!last.empty() && !is_number(last))) return "'" + given + "' is not of the form 10:12";
  const bool turned = !last.empty() && std::stoull(std::string(last)) < std::stoull(std::string(first));
  return turned ? "'" + given + "' ends before it begins" : "";
}

// A signal's number; 0 for "none"; -1 if there is no such signal.
int signal_number(std::string name) {
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (name == "NONE") return 0;
  if (is_number(name)) return name.size() <= 3 && std::stoi(name) < NSIG ? std::stoi(name) : -1;
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (int number = 1; number < NSIG; ++number) {
    const char* known = sigabbrev_np(number);
    if (known != nullptr && name == known) return number;
  }
  return -1;
}

std::string check_signal(const std::string& name) {
  const int number = signal_number(name);
  if (number < 0) return "there is no signal '" + name + "'";
  const bool can = number != SIGKILL && number != SIGSTOP && number != SIGSEGV && number != SIGBUS && number != SIGFPE;
  return can ? "" : "'" + name + "' cannot be used as a trigger: choose another signal, such as USR1";
}

std::string check_rate(const std::string& given) {
  double rate = 0;
  const bool fits = is_finite_number(given, rate) && (rate == 0 || (rate >= 0.001 && rate <= 1000));
  return fits ? "" : "'" + given + "' is neither 0 nor a rate from 0.001 to 1000 per second";
}

std::string check_sample_rate(const std::string& given) {
  double rate = 0;
  const bool fits = given == "off" || (is_finite_number(given, rate) && rate >= 0.001 && rate <= 1000);
  return fits ? "" : "'" + given + "' is neither off nor a rate from 0.001 to 1000 per second";
}

std::string check_sample_threads(const std::string& given) {
  return given == "main" || given == "all" ? "" : "'" + given + "' is neither main nor all";
}

std::string milliseconds(double seconds) { return fmt::format("{}", std::llround(seconds * 1e3)); }

}  // namespace

void add_options(CLI::App& record, RecordOptions& options) {
  const char* where = "Output";
  record
      .add_option("-o,--output", options.output,
                  "Directory for the traces, or DIR/PATTERN.pace with %h host, %r rank, %p process id, %q{VARIABLE}"
                  " (default: paceline-run, and in it %h-r%r-p%p.pace)")
      ->type_name("DIR")
      ->check(CLI::Validator(check_output, ""))
      ->group(where);
  record.add_flag("--force", options.force, "Remove the traces of an earlier run from the directory")->group(where);
  record
      .add_option("--stage", options.stage,
                  "Write to this local directory, and move the files to the output directory at the end")
      ->type_name("DIR")
      ->group(where);
  record.add_option("--set", options.settings, "Describe the run in its traces, e.g. --set batch=128")
      ->type_name("KEY=VALUE")
      ->type_size(1)
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_setting, ""))
      ->group(where);

  const char* what = "What to record";
  record
      .add_option("--iterations", options.iterations,
                  "Record iterations A to B, both included, counted from 0; without B to the end")
      ->type_name("A:B")
      ->check(CLI::Validator(check_iterations, ""))
      ->group(what);
  record
      .add_option(
          "--iteration-name", options.iteration_name,
          "Name of the NVTX ranges that are iterations; * matches any text (default: iteration, step, train_step, …)")
      ->type_name("NAME")
      ->group(what);
  record.add_option("--delay", options.delay_s, "Start recording S seconds after the program starts")
      ->type_name("S")
      ->check(is_time())
      ->group(what);
  record.add_option("--duration", options.duration_s, "Stop recording S seconds after the recording started")
      ->type_name("S")
      ->check(is_time())
      ->group(what);
  record
      .add_option("--capture-range", options.capture_range,
                  "Record only between cudaProfilerStart and cudaProfilerStop")
      ->type_name("cudaProfilerApi")
      ->check(CLI::IsMember({"cudaProfilerApi"}, CLI::ignore_case).description(""))
      ->group(what);
  record
      .add_flag("--pytorch{phases}", options.pytorch,
                "Record the phases and collectives of PyTorch programs without NVTX ranges of their own; "
                "--pytorch=modules also names the modules of the network")
      ->group(what);
  auto* children = record.add_flag("--children", options.children,
                                   "Also record child processes that run another program (default: only workers, which "
                                   "were forked or run the same program)");
  children->group(what);
  record.add_flag("--no-children", options.no_children, "Do not record child processes, not even workers")
      ->excludes(children)
      ->group(what);

  record
      .add_option("--counters", options.counters_hz,
                  "Samples per second of CPU, memory, network and GPU counters; 0 turns them off (default: 20)")
      ->type_name("HZ")
      ->check(CLI::Validator(check_rate, ""))
      ->group(what);
  record
      .add_option("--scheduler", options.scheduler,
                  "Record when threads run, wait for a CPU or are blocked: on (default), sums (without each switch) or "
                  "off")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"on", "sums", "off"}, CLI::ignore_case).description(""))
      ->group(what);
  record
      .add_option("--sample", options.sample,
                  "Samples per second of the main threads' stacks, or off: no samples (default: 10)")
      ->type_name("HZ|off")
      ->check(CLI::Validator(check_sample_rate, ""))
      ->group(what);
  record
      .add_option("--sample-threads", options.sample_threads,
                  "Sample the stacks of the main threads only, or of all threads (default: main)")
      ->type_name("main|all")
      ->check(CLI::Validator(check_sample_threads, ""))
      ->group(what);
  const auto names = [&](const char* option, std::vector<std::string>& of, const char* help) {
    record.add_option(option, of, help)
        ->type_name("NAMES")
        ->type_size(1)
        ->allow_extra_args(false)
        ->delimiter(',')
        ->group(what);
  };
  names("--nvtx-domains", options.nvtx_domains,
        "Record only ranges of these NVTX domains; 'default' is the default domain");
  names("--nvtx-exclude-domains", options.nvtx_exclude_domains, "Do not record ranges of these NVTX domains");
  names("--nvtx-categories", options.nvtx_categories, "Record only ranges of these NVTX categories, by name or number");
  names("--nvtx-exclude-categories", options.nvtx_exclude_categories, "Do not record ranges of these NVTX categories");

  const char* gpu = "GPUs";
  record.add_flag("--no-cuda", options.no_cuda, "Do not record CUDA")->group(gpu);
  record.add_flag("--no-nccl", options.no_nccl, "Do not record NCCL")->group(gpu);
  record
      .add_flag("--cuda-graph-nodes", options.cuda_graph_nodes,
                "Record each node of a CUDA graph instead of its launch")
      ->group(gpu);
  record.add_flag("--nccl-proxy", options.nccl_proxy, "Record the work of NCCL's network proxies")->group(gpu);
  record
      .add_flag("--nccl-kernel-channels", options.nccl_kernel_channels,
                "Record when each channel of NCCL's kernels works; causes more work in NCCL itself")
      ->group(gpu);

  const char* much = "Limits";
  const CLI::Validator size(size_in_bytes, "");  // named units at each option would be most of the help
  record.add_option("--buffer", options.buffer_bytes, "Memory for events that are not written yet (default: 32M)")
      ->transform(size)
      ->check(CLI::Validator(check_buffer, ""))
      ->type_name("SIZE")
      ->group(much);
  record
      .add_flag("--lossless", options.lossless,
                "If no memory is free, a thread waits instead of dropping events; the waits are recorded")
      ->group(much);
  record
      .add_option("--max-memory", options.max_memory_bytes,
                  "Limit of the recorder's memory in each process (default: 64M)")
      ->transform(size)
      ->check(at_least(4 * mebibyte, "4M"))
      ->type_name("SIZE")
      ->group(much);
  record
      .add_option("--max-size", options.max_size_bytes, "Stop recording when a file has this size (default: no limit)")
      ->transform(size)
      ->check(at_least(mebibyte, "1M"))
      ->type_name("SIZE")
      ->group(much);

  const char* ring = "Flight recorder and hangs";
  record
      .add_option("--ring", options.ring_s,
                  "Keep only the last S seconds; they are written at the end and by the triggers below")
      ->type_name("S")
      ->check(is_time())
      ->group(ring);
  record
      .add_option("--ring-signal", options.ring_signal,
                  "Write the last S seconds on this signal; none: on no signal (default: USR2)")
      ->type_name("SIGNAL")
      ->check(CLI::Validator(check_signal, ""))
      ->group(ring);
  record
      .add_option("--ring-slow", options.ring_slow,
                  "Write the last S seconds when an iteration takes more than X times the median")
      ->type_name("X")
      ->check(above(1))
      ->group(ring);
  record
      .add_option("--hang", options.hang_s,
                  "Report when no iteration or collective has ended for S seconds; also triggers --ring")
      ->type_name("S")
      ->check(is_time())
      ->group(ring);
}

void check_options(const RecordOptions& options) {
  if (options.ring_s == 0 && options.ring_slow > 0) throw CLI::ValidationError("--ring-slow", "needs --ring SECONDS");
  if (!options.pytorch.empty() && options.pytorch != "phases" && options.pytorch != "modules") {
    throw CLI::ValidationError("--pytorch", "'" + options.pytorch + "' is neither 'phases' nor 'modules'");
  }
  if (options.ring_s == 0 && !options.ring_signal.empty()) {
    throw CLI::ValidationError("--ring-signal", "needs --ring SECONDS");
  }
  if (options.max_memory_bytes > 0 && options.buffer_bytes > options.max_memory_bytes) {
    throw CLI::ValidationError("--buffer", "is more than --max-memory");
  }
}

std::vector<std::pair<const char*, std::string>> variables_of(const RecordOptions& options) {
  std::vector<std::pair<const char*, std::string>> variables;
  const auto add = [&](bool given, const char* name, std::string value) {
    if (given) variables.emplace_back(name, std::move(value));
  };
  add(options.force, env_force, "1");
  add(!options.iterations.empty(), env_iterations, options.iterations);
  add(!options.iteration_name.empty(), env_iteration_name, options.iteration_name);
  add(options.delay_s > 0, env_delay_ms, milliseconds(options.delay_s));
  add(options.duration_s > 0, env_duration_ms, milliseconds(options.duration_s));
  add(!options.capture_range.empty(), env_capture_range, "1");
  add(!options.pytorch.empty(), env_pytorch, options.pytorch);
  add(options.children || options.no_children, env_children, options.children ? "1" : "0");
  add(options.counters_hz >= 0, env_counters_us,
      options.counters_hz > 0 ? std::to_string(std::llround(1e6 / options.counters_hz)) : "0");
  add(options.scheduler == "off" || options.scheduler == "sums", env_scheduler,
      options.scheduler == "off" ? "0" : options.scheduler);
  add(!options.sample.empty(), env_sample_us,
      options.sample == "off" ? "0" : std::to_string(std::llround(1e6 / std::strtod(options.sample.c_str(), nullptr))));
  add(options.sample_threads == "all", env_sample_threads, "all");
  const auto add_names = [&](const char* name, const std::vector<std::string>& names) {
    add(!names.empty(), name, fmt::format("{}", fmt::join(names, ",")));
  };
  add_names(env_nvtx_domains, options.nvtx_domains);
  add_names(env_nvtx_exclude_domains, options.nvtx_exclude_domains);
  add_names(env_nvtx_categories, options.nvtx_categories);
  add_names(env_nvtx_exclude_categories, options.nvtx_exclude_categories);
  add(options.buffer_bytes > 0, env_buffer_bytes, std::to_string(options.buffer_bytes));
  add(options.lossless, env_lossless, "1");
  add(options.max_memory_bytes > 0, env_max_memory_bytes, std::to_string(options.max_memory_bytes));
  add(options.max_size_bytes > 0, env_max_size_bytes, std::to_string(options.max_size_bytes));
  add(options.ring_s > 0, env_ring_ms, milliseconds(options.ring_s));
  if (!options.ring_signal.empty()) add(true, env_ring_signal, std::to_string(signal_number(options.ring_signal)));
  add(options.ring_slow > 0, env_ring_slow_permille, std::to_string(std::llround(options.ring_slow * 1000)));
  add(options.hang_s > 0, env_hang_ms, milliseconds(options.hang_s));
  add(options.cuda_graph_nodes, env_cuda_graphs, "nodes");
  const std::string nccl =
      std::string(options.nccl_proxy ? "proxy " : "") + (options.nccl_kernel_channels ? "channels" : "");
  add(!nccl.empty(), env_nccl, nccl);
  return variables;
}

}  // namespace paceline::record
