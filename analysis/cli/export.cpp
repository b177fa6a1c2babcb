// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/exporters/exporter.h"
#include "analysis/exporters/gzip.h"
#include "analysis/load/load.h"

namespace paceline::cli {
namespace {

using analysis::Exporter;

struct ExportOptions {
  std::vector<std::string> to;  // a format and perhaps a time
  std::string iterations, ranks, from, until, output;
  std::vector<std::string> run;
  analysis::Processes processes = analysis::Processes::automatic;
};

const Exporter* find_exporter(const std::string& name) {
  for (const Exporter* exporter : analysis::exporters()) {
    if (exporter->name == name) return exporter;
  }
  return nullptr;
}

// Runs a parser for its error. The message of an option's validator.
template <class Parse>
std::string failure(Parse&& parse) {
  try {
    parse();
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string check_to(const std::string& given) {
  const bool time = !given.empty() && std::string_view("-.0123456789").find(given.front()) != std::string_view::npos;
  if (time) return failure([&] { analysis::parse_time(given); });
  if (find_exporter(given) != nullptr) return "";
  std::string names;
  for (const Exporter* exporter : analysis::exporters()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", exporter->name);
  }
  return fmt::format("{} is not a format; there are {}", given, names);
}

// Splits the values of --to into the format, which is returned, and the end of the window.
const Exporter& format_of(ExportOptions& options) {
  const Exporter* format = nullptr;
  for (const std::string& given : options.to) {
    const Exporter* found = find_exporter(given);
    if (found != nullptr && format != nullptr) throw CLI::ValidationError("--to", "two formats are given");
    if (found == nullptr && !options.until.empty()) throw CLI::ValidationError("--to", "two ends are given");
    if (found != nullptr) {
      format = found;
    } else {
      options.until = given;
    }
  }
  if (format == nullptr) throw CLI::RequiredError("--to with a format");
  if (format->target != Exporter::Target::stream && (options.output.empty() || options.output == "-")) {
    throw CLI::ValidationError("-o", fmt::format("{} cannot be written to standard output; give a name", format->name));
  }
  if (!options.iterations.empty() && (!options.from.empty() || !options.until.empty())) {
    throw CLI::ValidationError("--iterations", "cannot be combined with --from and --until");
  }
  return *format;
}

analysis::Selection selection_of(const ExportOptions& options, const analysis::Trace& trace) {
  std::vector<analysis::NumberRange> ranks;
  if (!options.ranks.empty()) ranks = analysis::parse_ranks(options.ranks);
  const analysis::Selection chosen({}, ranks);
  if (std::ranges::none_of(trace.ranks, [&](const analysis::Rank& rank) { return chosen.takes(rank); })) {
    throw Error(fmt::format("the run has no rank {}", options.ranks));
  }
  analysis::TimeWindow window;
  if (!options.iterations.empty()) {
    window = analysis::window_of_iterations(trace, chosen, analysis::parse_iterations(options.iterations));
  }
  if (!options.from.empty()) window.from_ns = analysis::parse_time(options.from);
  if (!options.until.empty()) window.until_ns = analysis::parse_time(options.until);
  if (window.from_ns >= window.until_ns) {
    throw Error(fmt::format("--until {} is not after --from {}", options.until, options.from));
  }
  return analysis::Selection(window, ranks);
}

// False after a signal. On a terminal it shows the share that is done.
bool show_progress(const char* what, double share) {
  static const bool terminal = isatty(STDERR_FILENO) == 1;
  if (terminal) fmt::print(stderr, "\r{} {:3.0f} %{}", what, 100 * share, share < 1 ? "" : "\r\033[K");
  return Interruption::signal() == 0;
}

void write_stream(const Exporter& format, const analysis::ExportJob& job, std::FILE* file, bool compressed) {
  if (!compressed) return format.write(job, file);
  std::FILE* inner = analysis::gzip_onto(file);
  if (inner == nullptr) throw std::bad_alloc();
  try {
    format.write(job, inner);
  } catch (...) {
    std::fclose(inner);
    throw;
  }
  if (std::fclose(inner) != 0) throw Error(fmt::format("the export could not be written: {}", std::strerror(errno)));
}

void write_run(const Exporter& format, const ExportOptions& options) {
  const analysis::Trace trace = analysis::load_run(analysis::one_run(options.run, options.processes),
                                                   [](double share) { return show_progress("loading", share); });
  for (const std::string& note : trace.notes) print_line(stderr, "paceline export: {}", note);
  const analysis::ExportJob job(trace, selection_of(options, trace),
                                [](double share) { return show_progress("writing", share); });
  const std::string& output = options.output;
  if (output.empty() || output == "-") return format.write(job, stdout);
  if (format.target == Exporter::Target::stream) {
    const bool compressed = output.ends_with(".gz");
    return write_output(output, [&](std::FILE* file) { write_stream(format, job, file, compressed); });
  }
  make_output(output, [&](const std::filesystem::path& path) { format.make(job, path); });
}

int export_run(const Exporter& format, const ExportOptions& options) {
  const Interruption interruption;
  try {
    write_run(format, options);
  } catch (const std::exception&) {
    if (const int signal = Interruption::signal()) {
      throw Error(fmt::format("stopped by SIG{}; nothing was kept of the output", sigabbrev_np(signal)));
    }
    throw;
  }
  return 0;
}

}  // namespace

void add_export(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<ExportOptions>();
  CLI::App* command = app.add_subcommand("export", "Write a run in the format of another tool");
  std::string formats = "Format:";
  for (const Exporter* exporter : analysis::exporters()) {
    formats +=
        fmt::format("{} {} ({})", exporter == analysis::exporters().front() ? "" : ",", exporter->name, exporter->what);
  }
  command->add_option("--to", options->to, formats)
      ->required()
      ->allow_extra_args(false)
      ->type_name("FORMAT")
      ->check(CLI::Validator(check_to, ""));
  command
      ->add_option("-o,--output", options->output,
                   "File to write, compressed if its name ends with .gz; for otf2 and chakra, the new directory. "
                   "Default: standard output")
      ->type_name("FILE");
  command->add_option("--ranks", options->ranks, "Only these ranks, such as 0,2,5-9")
      ->type_name("LIST")
      ->check(
          CLI::Validator([](const std::string& given) { return failure([&] { analysis::parse_ranks(given); }); }, ""));
  command->add_option("--iterations", options->iterations, "Only the time of iterations A to B, both included")
      ->type_name("A:B")
      ->check(CLI::Validator(
          [](const std::string& given) { return failure([&] { analysis::parse_iterations(given); }); }, ""));
  const auto time =
      CLI::Validator([](const std::string& given) { return failure([&] { analysis::parse_time(given); }); }, "");
  command
      ->add_option("--from", options->from,
                   "Only what happened after this time since the run's zero, such as 1.5s or 200ms")
      ->type_name("TIME")
      ->check(time);
  command->add_option("--until", options->until, "Only what happened before this time")->type_name("TIME")->check(time);
  add_processes_option(*command, options->processes);
  command
      ->add_option("RUN", options->run,
                   "Run directory or trace file, or directories that hold different ranks of one job")
      ->required()
      ->type_name("");
  command->callback([&chosen, options] {
    const Exporter& format = format_of(*options);
    chosen = [&format, options] { return export_run(format, *options); };
  });
}

}  // namespace paceline::cli
