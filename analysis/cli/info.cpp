// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/cli/commands.h"
#include "analysis/cli/interruption.h"
#include "analysis/cli/print_line.h"
#include "analysis/cli/reading_options.h"
#include "analysis/clocks/alignment.h"
#include "analysis/communication/collectives.h"
#include "analysis/communication/hang_stacks.h"
#include "analysis/communication/hangs.h"
#include "analysis/importers/pace/import.h"
#include "analysis/load/load.h"
#include "analysis/run/machine.h"
#include "analysis/text/labels.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"
#include "profiler/format/error.h"
#include "profiler/format/trace_file_reader.h"

namespace paceline::cli {
namespace {

using analysis::Rank;
using analysis::Trace;
using nlohmann::ordered_json;

struct InfoOptions {
  std::string format = "text";
  std::vector<std::string> paths;
  analysis::ClockMethod clock = analysis::ClockMethod::automatic;
  analysis::Processes processes = analysis::Processes::automatic;
};

// All runs below one path: a directory may hold several.
struct Found {
  std::vector<Trace> runs;
  std::vector<std::string> failures;  // files without a readable header
};

bool defines_name(const format::TraceFile& file, std::initializer_list<std::string_view> names) {
  bool found = false;
  for (const format::Track& track : file.tracks) {
    format::for_each_event(track.slots, [&](const format::Slot& head, const format::Slot* text) {
      if (type_of(head) != format::EventType::name) return;
      const std::string_view name(reinterpret_cast<const char*>(text), head.low >> 32);
      found = found || std::ranges::find(names, name) != names.end();
    });
  }
  return found;
}

bool ended_with_failure(const format::TraceFile& file) {
  bool found = false;
  for (const format::Track& track : file.tracks) {
    format::for_each_event(track.slots, [&](const format::Slot& head, const format::Slot*) {
      found = found || (type_of(head) == format::EventType::process_end && head.low != 0);
    });
  }
  return found;
}

// True if something that is printed about the run rests on more than definitions and counts: hanging collectives are
// found by the calls that are open at the end, those that failed by all calls, and some notes count NCCL's calls and
// ranges of certain names.
bool needs_all_events(const format::TraceSummary& summary) {
  const format::TraceFile& file = summary.file;
  const auto dropped = [&](format::DropCause cause) {
    return file.header.dropped[static_cast<std::size_t>(cause)] > 0;
  };
  const bool incomplete = file.header.closed == 0 || file.damaged || !file.lost.empty() || file.header.kept_from > 0 ||
                          dropped(format::DropCause::no_free_chunk) || dropped(format::DropCause::too_long) ||
                          dropped(format::DropCause::disk) || dropped(format::DropCause::ring) || file.interrupted > 0;
  return incomplete || ended_with_failure(file) || summary.has_open_call ||
         file.left_out.events[static_cast<std::size_t>(format::Family::nccl)] > 0 ||
         defines_name(file, {"recorder wait", "NCCL"});
}

// The files of one run, without the events that nothing printed needs.
std::vector<format::TraceFile> files_of(std::vector<format::TraceSummary> summaries) {
  const bool all_events = std::ranges::any_of(summaries, needs_all_events);
  std::vector<format::TraceFile> files;
  for (format::TraceSummary& summary : summaries) {
    files.push_back(all_events ? format::read_trace_file(summary.file.path) : std::move(summary.file));
  }
  return files;
}

// From the headers and summaries of .pace files where these suffice.
void add_pace_runs(const analysis::RunFiles& files, Found& found) {
  std::map<std::string, std::vector<format::TraceSummary>> jobs;
  for (const analysis::TraceFile& file : files.files) {
    try {
      format::TraceSummary read = format::read_trace_summary(file.path);
      const std::string job = read.file.job;
      jobs[job].push_back(std::move(read));
    } catch (const Error& error) {
      found.failures.push_back(files.with_names(error.what()));
    }
  }
  for (auto& [job, summaries] : jobs) {
    Trace& run = found.runs.emplace_back(analysis::import_pace(files_of(std::move(summaries))));
    for (Rank& rank : run.ranks) rank.path = files.with_names(std::move(rank.path));
    for (std::string& note : run.notes) note = files.with_names(std::move(note));
    run.notes.insert(run.notes.begin(), files.notes.begin(), files.notes.end());
  }
}

Found find_runs(const analysis::RunPaths& path, analysis::ClockMethod clock) {
  Found found;
  interruptible([&](const analysis::Progress& progress) {
    try {
      if (clock != analysis::ClockMethod::automatic) {
        found.runs.push_back(analysis::load_run(path, clock, progress));
        return;
      }
      const analysis::RunFiles files = analysis::find_run_files(path, progress);
      if (files.reader == &analysis::pace_reader && files.others.empty()) {
        add_pace_runs(files, found);
      } else {
        found.runs.push_back(analysis::load_files(files, progress));
      }
    } catch (const Error& error) {
      found.failures.emplace_back(error.what());
    }
  });
  return found;
}

// Events that are not there; others lack only their name or a part of a payload.
std::uint64_t dropped_of(const Rank& rank) {
  std::uint64_t sum = 0;
  for (const auto& [cause, count] : rank.dropped) {
    if (cause != "too_many_names" && cause != "payload_cut") sum += count;
  }
  return sum;
}

ordered_json json_of(const Rank& rank) {
  ordered_json trace = {
      {"path", rank.path},
      {"format", rank.format},
      {"rank", rank.rank},
      {"world_size", rank.world_size},
      {"host", rank.host},
      {"pid", rank.pid},
      {"command", rank.command},
      {"span_ns", rank.end_ns - rank.start_ns},
      {"dropped", dropped_of(rank)},
      {"ended", rank.ended},
      {"damaged", rank.damaged},
      {"events",
       {{"nvtx", rank.nvtx_events},
        {"mpi", rank.mpi_events},
        {"cuda", rank.cuda_events},
        {"nccl", rank.nccl_events},
        {"counter", rank.counter_events}}},
      {"clock",
       {{"source", rank.clock_source}, {"error_ns", rank.clock_error_ns}, {"error_source", rank.clock_error_source}}}};
  if (rank.recorder_wait_ns > 0) trace["recorder_wait_ns"] = rank.recorder_wait_ns;
  if (!rank.dropped.empty()) trace["dropped_by_cause"] = rank.dropped;
  if (rank.damaged) trace["damage"] = rank.damage;
  if (!rank.gaps.empty()) trace["recorded_ns"] = rank.recorded_ns();
  for (const auto& gap : rank.gaps) {
    trace["gaps"].push_back({{"start_ns", gap.start_ns - rank.start_ns},
                             {"duration_ns", gap.end_ns - gap.start_ns},
                             {"reason", gap.reason}});
  }
  for (const auto& trigger : rank.triggers) {
    trace["triggers"].push_back({{"time_ns", trigger.time_ns - rank.start_ns}, {"cause", trigger.cause}});
  }
  const auto add_lost = [&](const std::vector<analysis::LostInterval>& losses, const std::string& track) {
    for (const auto& loss : losses) {
      ordered_json entry = {{"start_ns", loss.start_ns - rank.start_ns},
                            {"duration_ns", loss.end_ns - loss.start_ns},
                            {"cause", loss.cause}};
      if (loss.events > 0) entry["events"] = loss.events;
      if (!track.empty()) entry["track"] = track;
      trace["lost"].push_back(std::move(entry));
    }
  };
  add_lost(rank.lost, "");
  for (const auto& track : rank.tracks) add_lost(track.lost, track.label);
  if (!rank.set.empty()) trace["set"] = rank.set;
  if (!rank.facts.empty()) trace["facts"] = rank.facts;
  return trace;
}

// Where a rank's clock is from, and its error against the other ranks.
std::string clock_text(const Rank& rank, std::size_t ranks) {
  const double ns = rank.clock_error_ns;
  const std::string& source = rank.clock_source;
  if (rank.format != "pace") {
    if (ranks == 1) return source;
    if (ns == 0) return source + " (reference)";
    if (ns >= analysis::unset_utc_error_ns) return source + " ± unknown";
  }
  if (ns < 1e3) return fmt::format("{} ± {:.0f} ns", source, ns);
  return ns < 1e6 ? fmt::format("{} ± {:.1f} µs", source, ns * 1e-3) : fmt::format("{} ± {:.1f} ms", source, ns * 1e-6);
}

// What of a rank's time is in its file, where that is not all.
void print_coverage(const Rank& rank) {
  constexpr const char* indent = "             ";
  std::map<std::string, std::int64_t> gaps;
  for (const auto& gap : rank.gaps) gaps[gap.reason] += gap.end_ns - gap.start_ns;
  std::string recorded = fmt::format("{}recorded: {}", indent, analysis::point_in_time(rank.recorded_ns()));
  for (const auto& [reason, ns] : gaps) recorded += fmt::format("; not {}: {}", analysis::point_in_time(ns), reason);
  if (!gaps.empty()) print_line(stdout, "{}", recorded);
  for (const auto& trigger : rank.triggers) {
    print_line(stdout, "{}asked for after {}: {}", indent, analysis::point_in_time(trigger.time_ns - rank.start_ns),
               trigger.cause);
  }
}

// When and on which track events were lost: the longest stretches, and how many more there are.
void print_losses(const Rank& rank) {
  constexpr std::size_t most_lines = 5;
  struct Line {
    const analysis::LostInterval* loss;
    std::string where;
  };
  std::vector<Line> lines;
  for (const auto& loss : rank.lost) lines.push_back({&loss, "any track"});
  for (const auto& track : rank.tracks) {
    for (const auto& loss : track.lost) lines.push_back({&loss, track.label});
  }
  std::ranges::stable_sort(lines, std::ranges::greater{},
                           [](const Line& line) { return line.loss->end_ns - line.loss->start_ns; });
  for (std::size_t i = 0; i < std::min(lines.size(), most_lines); ++i) {
    const auto& loss = *lines[i].loss;
    print_line(stdout, "             {} on {} from {} to {}",
               loss.events > 0 ? fmt::format("{} events lost", loss.events) : std::string("events lost"),
               lines[i].where, analysis::point_in_time(loss.start_ns - rank.start_ns),
               analysis::point_in_time(loss.end_ns - rank.start_ns));
  }
  if (lines.size() > most_lines) {
    print_line(stdout, "             and {} shorter stretches with lost events", lines.size() - most_lines);
  }
}

// Which NVTX ranges were not recorded because nobody wanted them.
void print_filters(const Trace& run) {
  constexpr std::pair<const char*, const char*> filters[] = {
      {"nvtx_domains", "only these NVTX domains"},
      {"nvtx_exclude_domains", "NVTX domains left out"},
      {"nvtx_categories", "only these NVTX categories"},
      {"nvtx_exclude_categories", "NVTX categories left out"},
  };
  for (const auto& [key, meaning] : filters) {
    std::set<std::string> said;
    for (const Rank& rank : run.ranks) {
      const auto found = rank.facts.find(key);
      if (found != rank.facts.end() && said.insert(found->second).second) {
        print_line(stdout, "  {}: {}", meaning, found->second);
      }
    }
  }
}

// What NCCL's own outputs and the Flight Recorder say of the ranks.
void print_nccl(const Trace& run) {
  std::map<std::string, std::map<std::string, std::vector<int>>> facts;  // by key and value
  for (const Rank& rank : run.ranks) {
    for (const auto& [key, value] : rank.facts) {
      if (key.starts_with("nccl.") || key == "flight_recorder.verdict") facts[key][value].push_back(rank.rank);
    }
  }
  for (const auto& [key, values] : facts) {
    for (const auto& [value, ranks] : values) {
      print_line(stdout, "  {}: {}{}", key, value,
                 ranks.size() == run.ranks.size() ? "" : fmt::format(" ({})", analysis::rank_list(ranks)));
    }
  }
}

// The hosts' clocks by what is known of their CPUs.
void print_clock_errors(const Trace& run) {
  std::map<std::string, std::set<std::string>> hosts;
  for (const Rank& rank : run.ranks) {
    if (!rank.clock_error_source.empty()) hosts[rank.clock_error_source].insert(rank.host);
  }
  for (const auto& [source, names] : hosts) {
    print_line(stdout, "  clock error between the CPUs of {}: {}", fmt::join(names, ", "), source);
  }
}

void print_text(const std::string& path, const Trace& run, const std::vector<analysis::Hang>& hangs) {
  std::set<std::string> hosts;
  for (const Rank& rank : run.ranks) hosts.insert(rank.host);
  hosts.erase("");  // not every format has it
  const std::string on_hosts =
      hosts.empty() ? "" : fmt::format(" on {} host{}", hosts.size(), hosts.size() == 1 ? "" : "s");
  print_line(stdout, "{}: {} rank{}{}, {}", path, run.ranks.size(), run.ranks.size() == 1 ? "" : "s", on_hosts,
             analysis::point_in_time(run.span_ns()));
  if (!run.ranks.empty() && run.ranks.front().format != "pace") {
    print_line(stdout, "  format   {}", run.ranks.front().format);
  }
  if (!run.ranks.empty() && !run.ranks.front().command.empty()) {
    print_line(stdout, "  command  {}", fmt::join(run.ranks.front().command, " "));
  }
  std::size_t host_width = 4;
  for (const std::string& host : hosts) host_width = std::max(host_width, host.size());
  print_line(stdout, "  {:>9}  {:<{}}  {:>8}  {:>12}  {:>10}  {:>10}  {:>10}  {:>8}  clock", "rank", "host", host_width,
             "pid", "span", "NVTX", "MPI", "counter", "dropped");
  for (const Rank& rank : run.ranks) {
    print_line(stdout, "  {:>9}  {:<{}}  {:>8}  {:>12}  {:>10}  {:>10}  {:>10}  {:>8}  {}",
               fmt::format("{} of {}", rank.rank, rank.world_size), rank.host.empty() ? "-" : rank.host, host_width,
               rank.pid > 0 ? fmt::format("{}", rank.pid) : "-", analysis::point_in_time(rank.end_ns - rank.start_ns),
               rank.nvtx_events, rank.mpi_events, rank.counter_events, dropped_of(rank),
               clock_text(rank, run.ranks.size()));
    if (rank.damaged) print_line(stdout, "             damaged: {}: {}", rank.path, rank.damage);
    print_coverage(rank);
    if (rank.cuda_events + rank.nccl_events > 0) {
      print_line(stdout, "             {} CUDA and {} NCCL events", rank.cuda_events, rank.nccl_events);
    }
    if (rank.recorder_wait_ns > 0) {
      print_line(stdout, "             threads waited {} for the recorder in all (record --lossless)",
                 analysis::point_in_time(rank.recorder_wait_ns));
    }
    for (const auto& [cause, count] : rank.dropped) {
      if (cause == "too_many_names") {
        print_line(stdout, "             {} events are there without their names: too many different names", count);
      } else if (cause == "payload_cut") {
        print_line(stdout, "             {} events are there without a part of their NVTX payloads", count);
      } else {
        print_line(stdout, "             {} events dropped: {}", count, cause);
      }
    }
    print_losses(rank);
  }
  print_clock_errors(run);
  print_filters(run);
  print_nccl(run);
  for (const auto& hang : hangs) print_line(stdout, "  {}", analysis::hang_text(hang));
  const std::string stacks = hangs.empty() ? "" : analysis::last_stacks_text(run);
  if (!stacks.empty()) print_line(stdout, "  {}", stacks);
  const auto ranks = analysis::identities(run);
  if (const std::string ends = analysis::sudden_ends_text(ranks); !ends.empty()) print_line(stdout, "  {}", ends);
  if (const auto lines = analysis::machine_lines(ranks); !lines.empty()) {
    print_line(stdout, "  machine");
    for (const std::string& line : lines) print_line(stdout, "    {}", line);
  }
  for (const std::string& note : run.notes) print_line(stdout, "  {}", note);
}

// With one rank no call has a partner. Of .pace files, the calls may not have been read.
void note_unmatched(Trace& run) {
  const std::uint64_t calls = run.ranks.size() < 2 ? 0 : analysis::match_collectives(run).unmatched_calls;
  if (calls == 0) return;
  run.notes.push_back(fmt::format("{} no partner on other ranks",
                                  analysis::plural(calls, "collective call has", "collective calls have")));
}

int info(const InfoOptions& options) {
  ordered_json document = {{"schema", "paceline.info/1"}, {"traces", ordered_json::array()}};
  bool failed = false;
  for (const analysis::RunPaths& paths : analysis::runs_among(options.paths, options.processes)) {
    Found found = find_runs(paths, options.clock);
    for (Trace& run : found.runs) {
      note_unmatched(run);
      const std::vector<analysis::Hang> hangs = analysis::find_hangs(run);
      if (options.format == "text") print_text(paths.name(), run, hangs);
      for (const Rank& rank : run.ranks) document["traces"].push_back(json_of(rank));
      for (const auto& hang : hangs) document["hangs"].push_back(analysis::hang_text(hang));
      for (const std::string& note : run.notes) document["notes"].push_back(note);
    }
    for (const std::string& failure : found.failures) print_line(stderr, "paceline info: {}", failure);
    failed = failed || !found.failures.empty();
  }
  if (options.format == "json") {
    fmt::print("{}\n",
               analysis::printable_json(document.dump(2, ' ', false, nlohmann::json::error_handler_t::replace)));
  }
  return failed ? 1 : 0;
}

}  // namespace

void add_info(CLI::App& app, Command& chosen) {
  const auto options = std::make_shared<InfoOptions>();
  CLI::App* command =
      app.add_subcommand("info", "Show the contents of traces: ranks, hosts, clocks, events, drops, damage");
  command->add_option("--format", options->format, "text (default) or json")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "json"}));
  add_align_option(*command, options->clock);
  add_processes_option(*command, options->processes);
  command
      ->add_option("PATH", options->paths,
                   "Run directories, trace files, archives (.tar, .tar.gz, .zip, …) or quoted patterns. Formats: "
                   ".pace, PyTorch and Chrome JSON, Perfetto, Flight Recorder dumps, Nsight Systems SQLite, "
                   "nvprof, OTF2, outputs of NCCL; compressed or not. "
                   "Directories that hold different ranks of one job are one run")
      ->required()
      ->type_name("");
  command->callback([&chosen, options] { chosen = [options] { return info(*options); }; });
}

}  // namespace paceline::cli
