// SPDX-License-Identifier: Apache-2.0
#include "profiler/record/record.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "profiler/format/error.h"
#include "profiler/launch/environment.h"
#include "profiler/launch/launcher.h"
#include "profiler/record/clock_check.h"
#include "profiler/record/command_file.h"
#include "profiler/record/output_directory.h"
#include "profiler/record/python.h"
#include "profiler/record/stage.h"

namespace paceline::record {
namespace {

namespace fs = std::filesystem;

constexpr int recorder_failed = 125, cannot_be_run = 126, not_found = 127;

void say(const std::string& text) { fmt::print(stderr, "paceline record: {}\n", text); }

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

void set_variable(const char* name, const std::string& value) {
  if (setenv(name, value.c_str(), 1) != 0) throw Error(fmt::format("{}: {}", name, std::strerror(errno)));
}

// The recorder's libraries are in lib beside this program's folder in a build tree, and in lib/paceline in an install
// prefix.
fs::path find_recorder() {
  std::error_code error;
  const fs::path programs = fs::read_symlink("/proc/self/exe", error).parent_path();
  if (error) {
    throw Error(fmt::format("/proc/self/exe: {}; mount /proc, because {} is searched for beside this program",
                            error.message(), recorder_library));
  }
  for (const char* folder : {"../lib", "../lib64", "../lib/paceline"}) {
    const fs::path library = (programs / folder / recorder_library).lexically_normal();
    if (fs::exists(library, error)) return library;
  }
  throw Error(fmt::format("{} is missing in {}; build or install Paceline as a whole", recorder_library,
                          (programs / "../lib").lexically_normal().string()));
}

// The hooks for PyTorch are in lib/paceline/pytorch in both.
fs::path find_hooks(const fs::path& library) {
  const fs::path folder = library.parent_path();
  return (folder.filename() == "paceline" ? folder.parent_path() : folder) / pytorch_folder;
}

// The launcher's identity of the job, else a new one, which all processes that CMD starts inherit.
std::string job() {
  std::array<char, 256> known{};
  if (job_identity(known.data(), known.size()) > 0) return known.data();
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint64_t>(getpid());
  return fmt::format("record-{:016x}", random);
}

// The path of the recorder as the GNU C library's dynamic linker alone understands it. In place of $ORIGIN it puts the
// folder of the program, from which enough steps lead up to the root. Other dynamic linkers, such as musl's, ignore a
// preloaded library that does not exist, but would end the program because of one that was made for another C library.
std::string preload_name(const fs::path& library) {
  constexpr int steps = 40;
  std::string name = "$ORIGIN";
  for (int step = 0; step < steps; ++step) name += "/..";
  return name + library.string();
}

void attach(const fs::path& library) {
  // NVTX's first call runs while it loads its tool. A handler that calls NVTX meanwhile waits for ever, so the tool is
  // preloaded to make that short.
  const fs::path entry = library.parent_path() / nvtx_library;
  std::string own = preload_name(library);
  if (fs::exists(entry)) own += ":" + preload_name(entry);
  const std::string others = variable(env_preload);
  set_variable(env_preload, others.empty() ? own : own + ":" + others);
  for (const auto& [name, option, value] : sanitizer_options) {
    const std::string given = variable(name);
    if (given.find(option) != std::string::npos) continue;
    set_variable(name, fmt::format("{}{}{}={}", given, given.empty() ? "" : ":", option, value));
  }
  set_variable(env_recorder, library);
  const std::string tool = variable(env_nvtx);
  if (!tool.empty() && tool != entry) {
    say(fmt::format("{}={} is replaced: NVTX loads only one tool, which is now the recorder", env_nvtx, tool));
  }
  set_variable(env_nvtx, entry);
}

// The driver and NCCL load one tool each. A user's own choice is kept and reported.
void attach_part(bool wanted, const char* name, const fs::path& library, const char* what) {
  const std::string tool = variable(name);
  if (!wanted) {
    if (tool == library) unsetenv(name);  // set by an outer `paceline record`
    return;
  }
  std::error_code error;
  if (!fs::exists(library, error)) return;  // built without CUDA
  if (tool.empty()) return set_variable(name, library);
  if (tool != library) say(fmt::format("{}={} is kept, so {} is not recorded", name, tool, what));
}

// Returns the directory that the files are staged in, "" without --stage.
fs::path set_environment(const RecordOptions& options, const fs::path& output, const std::string& pattern) {
  const std::string identity = job();
  claim_directory(output, identity, options.force);
  set_variable(env_output, output);
  set_variable(env_pattern, pattern);
  set_variable(env_job, identity);
  std::string settings = variable(env_set);
  for (const std::string& setting : options.settings) settings += (settings.empty() ? "" : "\n") + setting;
  if (!settings.empty()) set_variable(env_set, settings);
  for (const auto& [name, value] : variables_of(options)) set_variable(name, value);
  if (const std::string error = measure_clock_error(); !error.empty()) set_variable(env_clock_error, error);
  const fs::path library = find_recorder();
  fs::path stage;
  if (options.stage.empty()) {
    set_variable(env_command_pid, std::to_string(getpid()));
  } else {
    unsetenv(env_command_pid);
    stage = make_stage(options.stage);
    note_stage(stage, output);
    set_variable(env_stage, stage);
  }
  attach(library);
  if (!options.pytorch.empty()) put_on_python_path(find_hooks(library));
  attach_part(!options.no_cuda, env_cuda, library.parent_path() / cuda_library, "CUDA");
  attach_part(!options.no_nccl, env_nccl_plugin, library.parent_path() / nccl_library, "NCCL");
  return stage;
}

int report_failed_start(const std::string& command, int failure) {
  say(fmt::format("{}: {}", command, failure == ENOENT ? "command not found" : std::strerror(failure)));
  return failure == ENOENT ? not_found : cannot_be_run;
}

}  // namespace

void add_record(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* record =
      app.add_subcommand("record", "Run a command with the recorder attached, one trace file per process");
  const auto options = std::make_shared<RecordOptions>();
  add_options(*record, *options);
  record->add_option("CMD", options->command, "The command and its arguments")->type_name("")->required();
  record->positionals_at_end();  // arguments after the command's name belong to the command
  record->footer(
      "Under mpirun, srun or torchrun, record each rank: mpirun -n 2 paceline record -o run -- ./program\n"
      "The exit status is that of the command; 125: the recorder failed, 126: the command cannot be run, 127: it was "
      "not found.");
  record->callback([&chosen, options] {
    check_options(*options);
    chosen = [options] { return run_recorded(*options); };
  });
}

int run_recorded(const RecordOptions& options) {
  fs::path stage, output;
  // Where no file may be written (`ulimit -f 0`), an error says so. The command starts with the signal as it was.
  const auto too_large = std::signal(SIGXFSZ, SIG_IGN);
  try {
    const OutputPlace place = output_place(options.output);
    output = place.directory;
    stage = set_environment(options, output, place.pattern);
  } catch (const std::exception& error) {
    say(error.what());
    return recorder_failed;
  }
  std::signal(SIGXFSZ, too_large);
  const std::string& command = options.command[0];
  if (const std::string why = why_not_recorded(command); !why.empty()) {
    say(fmt::format("{} {}: the recorder cannot be loaded into it, so it runs unrecorded", command, why));
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  if (stage.empty()) {
    execvp(arguments[0], arguments.data());
    return report_failed_start(command, errno);
  }
  const int status = run_and_wait(arguments);
  const int failure = errno;
  empty_stage(stage, output, options.force);
  if (status == -1) return report_failed_start(command, failure);
  std::error_code error;
  if (launched_rank().rank <= 0 && fs::is_directory(output, error) && trace_files(output).empty()) {
    say("no process of the command opened a trace file: none called NVTX or MPI, or the recorder was not loaded");
  }
  end_alike(status);
}

}  // namespace paceline::record
