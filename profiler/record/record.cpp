#include "profiler/record/record.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "profiler/format/error.h"
#include "profiler/format/layout.h"
#include "profiler/record/environment.h"
#include "profiler/record/launcher.h"
#include "profiler/record/output_directory.h"

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

// The recorder's library lies beside this program, in a build tree and in an install prefix alike.
fs::path find_recorder() {
  const fs::path programs = fs::read_symlink("/proc/self/exe").parent_path();
  for (const char* folder : {"../lib", "../lib64"}) {
    const fs::path library = (programs / folder / recorder_library).lexically_normal();
    if (fs::exists(library)) return library;
  }
  throw Error(fmt::format("{} is missing in {}; build or install Paceline as a whole", recorder_library,
                          (programs / "../lib").lexically_normal().string()));
}

// The launcher's word for the job, else one of our own, which all that CMD starts inherits.
std::string job() {
  std::array<char, 256> known{};
  if (job_identity(known.data(), known.size()) > 0) return known.data();
  std::uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) random = static_cast<std::uint64_t>(getpid());
  return fmt::format("record-{:016x}", random);
}

void attach(const fs::path& library) {
  const std::string others = variable(env_preload);
  set_variable(env_preload, others.empty() ? library.string() : library.string() + ":" + others);
  const std::string tool = variable(env_nvtx);
  if (!tool.empty() && tool != library) {
    say(fmt::format("{}={} is replaced: NVTX takes one tool, which is the recorder now", env_nvtx, tool));
  }
  set_variable(env_nvtx, library);
}

void set_environment(const RecordOptions& options) {
  const OutputPlace place = output_place(options.output);
  const std::string identity = job();
  claim_directory(place.directory, identity, options.force);
  set_variable(env_output, place.directory);
  set_variable(env_pattern, place.pattern);
  set_variable(env_job, identity);
  std::string settings = variable(env_set);
  for (const std::string& setting : options.settings) settings += (settings.empty() ? "" : "\n") + setting;
  if (!settings.empty()) set_variable(env_set, settings);
  if (options.force) set_variable(env_force, "1");
  if (options.buffer_bytes > 0) set_variable(env_buffer_bytes, std::to_string(options.buffer_bytes));
  attach(find_recorder());
}

std::string check_setting(const std::string& setting) {
  const std::size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) return "'" + setting + "' is not of the form KEY=VALUE";
  if (setting.find('\n') != std::string::npos) return "'" + setting + "' has more than one line";
  return {};
}

std::string check_buffer(const std::string& bytes) {
  const std::uint64_t value = std::strtoull(bytes.c_str(), nullptr, 10);
  const bool fits = value >= 4 * format::chunk_bytes && value <= format::max_live_bytes;
  return fits ? "" : "a buffer has 256K to 1G bytes";
}

std::string check_output(const std::string& output) {
  try {
    output_place(output);
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

}  // namespace

void add_record(CLI::App& app, std::function<int()>& chosen) {
  CLI::App* record =
      app.add_subcommand("record", "Run a command with the recorder attached, one trace file per process");
  const auto options = std::make_shared<RecordOptions>();
  record
      ->add_option("-o,--output", options->output,
                   "Directory for the traces, or DIR/PATTERN.pace with %h host, %r rank, %p process id, %q{VARIABLE}"
                   " (default: paceline-run, and in it %h-r%r-p%p.pace)")
      ->type_name("DIR")
      ->check(CLI::Validator(check_output, ""));
  record->add_option("--set", options->settings, "What to keep in the traces about this run, e.g. --set batch=128")
      ->type_name("KEY=VALUE")
      ->type_size(1)
      ->allow_extra_args(false)
      ->check(CLI::Validator(check_setting, ""));
  record->add_flag("--force", options->force, "Remove the traces of an earlier run from the directory");
  record->add_option("--buffer", options->buffer_bytes, "Memory for events that are not written yet (default: 16M)")
      ->transform(CLI::AsSizeValue(false))
      ->check(CLI::Validator(check_buffer, ""))
      ->type_name("SIZE");
  record->add_option("CMD", options->command, "The command and its arguments")->type_name("")->required();
  record->positionals_at_end();  // what follows the command's name is the command's
  record->footer(
      "Under mpirun, srun or torchrun, record each rank: mpirun -n 2 paceline record -o run -- ./program\n"
      "Ends with the command's own status; 125: recorder failed, 126: command cannot be run, 127: not found.");
  record->callback([&chosen, options] { chosen = [options] { return run_recorded(*options); }; });
}

int run_recorded(const RecordOptions& options) {
  try {
    set_environment(options);
  } catch (const std::exception& error) {
    say(error.what());
    return recorder_failed;
  }
  std::vector<char*> arguments;
  for (const std::string& argument : options.command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  execvp(arguments[0], arguments.data());
  const int failure = errno;
  say(fmt::format("{}: {}", options.command[0], failure == ENOENT ? "command not found" : std::strerror(failure)));
  return failure == ENOENT ? not_found : cannot_be_run;
}

}  // namespace paceline::record
