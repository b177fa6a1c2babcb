// SPDX-License-Identifier: Apache-2.0
// paceline report: the breakdown of a run; of several runs, or of a table of runs, the scaling report.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/report/build.h"
#include "analysis/report/render.h"
#include "analysis/run/read_run.h"
#include "analysis/scaling/runs_table.h"
#include "profiler/format/error.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

struct Format {
  const char* name;
  const char* extension;
  std::string (*render)(const analysis::Report&, analysis::Extent);
};

constexpr Format formats[] = {
    {"html", ".html", analysis::render_html},
    {"md", ".md", analysis::render_markdown},
    {"json", ".json", [](const analysis::Report& report, analysis::Extent) { return analysis::render_json(report); }},
    {"csv", ".csv", [](const analysis::Report& report, analysis::Extent) { return analysis::render_csv(report); }},
    {"text", ".txt", analysis::render_text}};

struct ReportCommandOptions {
  std::vector<std::string> formats;
  bool summary = false;
  std::string output;
  std::vector<std::string> runs;
  analysis::ScalingOptions scaling;
  double noise_percent = 0;
  double link_gbit = 0;  // 0: not given
  std::uint64_t whole_run_slots = analysis::whole_run_slots;
  analysis::ClockMethod clock = analysis::ClockMethod::automatic;
  analysis::Processes processes = analysis::Processes::automatic;
};

const Format& format_named(const std::string& name) {
  for (const auto& format : formats) {
    if (format.name == name) return format;
  }
  throw Error(fmt::format("--format {}: no such format", name));  // not reached: the names were checked
}

bool is_directory_name(const std::string& path) {
  std::error_code error;
  return path.ends_with('/') || fs::is_directory(path, error);
}

void write_file(const fs::path& path, const std::string& text) {
  std::error_code error;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), error);
  write_output(path, [&](std::FILE* file) { std::fwrite(text.data(), 1, text.size(), file); });
}

// Nothing on the processes that only read their share.
std::optional<analysis::Report> read_and_build(const ReportCommandOptions& options,
                                               analysis::ReadingProcesses* processes) {
  std::vector<analysis::RunAnalysis> runs;
  std::vector<analysis::ScalingRun> rows;
  std::vector<std::string> traces;
  std::set<fs::path> given;
  const analysis::RunReading reading{options.whole_run_slots, processes, options.clock};
  for (const auto& path : options.runs) {
    std::error_code error;
    if (analysis::looks_like_runs_table(path) || (path.ends_with(".csv") && fs::is_regular_file(path, error))) {
      for (auto& row : analysis::read_runs_table(path)) rows.push_back(std::move(row));
    } else {
      if (!given.insert(fs::weakly_canonical(path, error)).second && !error) {
        throw Error(fmt::format("{}: is given twice; give each repeated measurement as its own run", path));
      }
      traces.push_back(path);
    }
  }
  for (const analysis::RunPaths& run : analysis::runs_among(traces, options.processes)) {
    bool failed = false;
    std::optional<analysis::ReadRun> read = read_run(run, reading, interruptible, failed);  // one in memory at a time
    if (failed) return std::nullopt;
    if (!read) continue;
    for (const std::string& note : read->notes) print_line(stderr, "paceline report: {}", note);
    runs.push_back(std::move(read->run));
    if (options.link_gbit > 0) runs.back().config.set("link_gbit", options.link_gbit);
  }
  if (processes != nullptr && processes->number() > 0) return std::nullopt;
  return analysis::build_report(std::move(runs), std::move(rows), options.scaling);
}

int report(const ReportCommandOptions& options, analysis::ReadingProcesses* processes) {
  std::vector<std::string> names = options.formats;
  if (names.empty()) {
    // From the name of the output: -o report.html.
    names.push_back("text");
    for (const auto& format : formats) {
      if (!options.output.empty() && fs::path(options.output).extension() == format.extension)
        names.back() = format.name;
    }
  }
  const std::optional<analysis::Report> made = read_and_build(options, processes);
  if (!made) return 0;
  const analysis::Report& built = *made;
  const analysis::Extent extent = options.summary ? analysis::Extent::summary : analysis::Extent::whole;
  if (options.output.empty()) {
    std::cout << format_named(names.front()).render(built, extent);
    return 0;
  }
  const bool directory = names.size() > 1 || is_directory_name(options.output);
  for (const auto& name : names) {
    const Format& format = format_named(name);
    const fs::path path =
        directory ? fs::path(options.output) / (std::string("report") + format.extension) : fs::path(options.output);
    write_file(path, format.render(built, extent));
    if (!directory || name != "csv") continue;
    for (const analysis::CsvFile& table : analysis::render_csv_tables(built)) {
      write_file(fs::path(options.output) / table.name, table.text);
    }
  }
  return 0;
}

// The number of processes that mpirun or srun started, and which of them this one is.
int from_launcher(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr) return std::atoi(value);
  }
  return 0;
}
// 1 in a program that a process of such a job starts: it inherits the variables.
int launched_processes() {
  constexpr const char* launchers[] = {"mpirun",        "mpiexec",       "orterun",   "orted",
                                       "prterun",       "prte",          "prted",     "hydra_pmi_proxy",
                                       "mpiexec.hydra", "mpiexec.mpich", "slurmstepd"};
  std::ifstream file(fmt::format("/proc/{}/comm", getppid()));
  std::string parent;
  std::getline(file, parent);
  if (std::ranges::find(launchers, parent) == std::end(launchers)) return 1;
  return from_launcher({"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"});
}
int launched_number() { return from_launcher({"OMPI_COMM_WORLD_RANK", "PMI_RANK"}); }

// Becomes the program that shares the ranks over MPI; returns only where that fails.
int become_shared() {
  constexpr const char* name = "paceline-report-mpi";
  std::error_code error;
  const fs::path own = fs::read_symlink("/proc/self/exe", error);
  const fs::path path = own.parent_path().parent_path() / "lib" / "paceline" / name;
  std::ifstream command_line("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(command_line, argument, '\0');) arguments.push_back(argument);
  std::vector<char*> raw;
  for (std::string& argument : arguments) raw.push_back(argument.data());
  raw.push_back(nullptr);
  if (!error && !arguments.empty()) execv(path.c_str(), raw.data());
  if (launched_number() > 0) return 0;  // the first one reports it for all
  throw Error(
      fmt::format("{}: {}; several processes share a report only if Paceline was built with MPI "
                  "(PACELINE_MPI=ON). Start one process instead",
                  path.string(), error ? error.message() : std::strerror(errno)));
}

}  // namespace

void add_report(CLI::App& app, Command& chosen, analysis::ReadingProcesses* processes) {
  auto* command = app.add_subcommand("report", "Show where the time of a run went, and how several runs scale");
  auto options = std::make_shared<ReportCommandOptions>();
  command
      ->add_option("--format", options->formats,
                   "html, md, json, csv or text; separate several with commas. Default: by the extension of "
                   "FILE (.html, …), else text")
      ->type_name("FORMAT,…")
      ->delimiter(',')
      ->allow_extra_args(false)  // the next argument is a RUN
      ->check(CLI::IsMember({"html", "md", "json", "csv", "text"}));
  command->add_flag(
      "--summary", options->summary,
      "One page: the verdict, the main figures, what costs most, the best changes. As md it is the comment "
      "on a change. For text, md and html");
  command
      ->add_option("-o,--output", options->output,
                   "File to write. It is taken as a directory if it is one, ends in /, or if there are several "
                   "formats. Default: standard output")
      ->type_name("FILE");
  command
      ->add_option("--series", options->scaling.series,
                   "A column, or a key of --set, that defines a scaling series in addition to model, data, image_size, "
                   "classes, batch, dtype, program, communicator and updater. May be repeated")
      ->type_name("COLUMN")
      ->allow_extra_args(false);
  command
      ->add_option("--noise", options->noise_percent,
                   "The noise of runs that were not repeated: the standard deviation of the times of equal runs, in "
                   "percent")
      ->type_name("PERCENT")
      ->check(CLI::Range(1e-6, 1000.0));
  command
      ->add_option("--link-gbit", options->link_gbit,
                   "The rated speed of the link between the ranks, each way. Default: that of the network adapters or "
                   "NVLinks, if the trace has it")
      ->type_name("GBIT/S")
      ->check(CLI::Range(1e-6, 1e6));
  command
      ->add_option(
          "--whole-run-slots", options->whole_run_slots,
          "A run with more slots than this (two or three for each range or call) is read rank by rank, in bounded "
          "memory, and by all processes of mpirun. Its report has no messages, critical path and predictions. Default: "
          "400000000")
      ->type_name("SLOTS");
  add_align_option(*command, options->clock);
  add_processes_option(*command, options->processes);
  command
      ->add_option("RUN", options->runs,
                   "Run directories, trace files, archives, quoted patterns, or tables of runs (CSV: "
                   "ranks,epochs,images,seconds). Directories that hold different ranks of one job are one run")
      ->type_name("")
      ->required();
  command->callback([options, processes, &chosen] {
    if (options->noise_percent > 0) options->scaling.noise = options->noise_percent / 100;
    // The columns of tables are read in lower case.
    for (std::string column : std::vector(options->scaling.series)) {
      for (char& c : column) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
      options->scaling.series.push_back(column);
    }
    if (options->formats.size() > 1 && options->output.empty()) {
      throw CLI::ValidationError("--format", "several formats need -o DIRECTORY");
    }
    const auto whole_only = [](const std::string& format) { return format == "json" || format == "csv"; };
    if (options->summary && std::ranges::any_of(options->formats, whole_only)) {
      throw CLI::ValidationError("--summary", "goes with the formats text, md and html");
    }
    chosen = [options, processes] {
      if (processes == nullptr && launched_processes() > 1) return become_shared();
      return report(*options, processes);
    };
  });
}

}  // namespace paceline::cli
