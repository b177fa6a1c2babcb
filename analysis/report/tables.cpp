#include "analysis/report/tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "analysis/report/findings.h"
#include "analysis/report/scaling_sentences.h"
#include "analysis/text/numbers.h"

namespace paceline::analysis {
namespace {

const std::string no_value = "–";

template <class T, class Write>
std::string or_none(const std::optional<T>& value, Write&& write) {
  return value ? write(*value) : no_value;
}

std::string with_share(std::int64_t part, std::int64_t whole) {
  return fmt::format("{} ({})", duration(part), percent(share(part, whole)));
}

// "1.694 [1.672–1.716]"
template <class Write>
std::string with_range(const std::optional<double>& value, const std::optional<Interval>& ci95, Write&& write) {
  if (!value) return no_value;
  if (!ci95) return write(*value);
  return fmt::format("{} [{}–{}]", write(*value), write(ci95->low), write(ci95->high));
}

// Keeps the first rows of a long table, and says how many were left out.
void bound(Table& table) {
  if (table.rows.size() <= most_rows_printed) return;
  const std::size_t left_out = table.rows.size() - most_rows_printed;
  table.rows.resize(most_rows_printed);
  table.rows.push_back({fmt::format("… and {} more", count(static_cast<double>(left_out)))});
  table.rows.back().resize(table.columns.size());
  table.note += fmt::format("{}{} are left out here; --format json and csv have them all.",
                            table.note.empty() ? "" : " ", plural(left_out, "row", "rows"));
}

std::string label_of(const Report& report, const ScalingPoint& point) {
  const std::size_t first = point.runs.front();
  const std::string label = report.run_of_scaling_run[first]
                                ? report.runs[*report.run_of_scaling_run[first]].name
                                : std::filesystem::path(report.scaling_runs[first].label).filename().string();
  return point.runs.size() > 1 ? fmt::format("{} and {} more", label, point.runs.size() - 1) : label;
}

Table points_table(const Report& report) {
  Table table{.id = "scaling",
              .title = "Speed-up at equal work",
              .columns = {"run", "ranks", "epochs", "images", "time", "throughput", "S(N)", "E(N)", "Karp–Flatt"},
              .rows = {},
              .text_columns = 1,
              .note =
                  "S(N) = T(1)/T(N), E = S/N; T is the whole job, from process start to end. In brackets the 95 % "
                  "interval, from three or more repeats or from the iterations of one run."};
  const auto& points = report.scaling.points;
  const auto any = [&](auto&& has) { return std::any_of(points.begin(), points.end(), has); };
  const bool accuracy = any([](const auto& p) { return p.accuracy.has_value(); });
  const bool differences = any([](const auto& p) { return !p.differences.empty(); });
  if (accuracy) table.columns.insert(table.columns.end(), {"accuracy", "time to target"});
  if (differences) table.columns.push_back("differs from its 1-rank run in");
  table.last_is_text = differences;
  for (const auto& point : points) {
    if (table.rows.size() > most_rows_printed) {  // only counted: its texts are not needed
      table.rows.emplace_back();
      continue;
    }
    std::vector<std::string> row = {
        label_of(report, point),
        std::to_string(point.ranks),
        point.epochs > 0 ? count(point.epochs) : no_value,
        point.images > 0 ? count(point.images) : no_value,
        seconds(point.seconds),
        point.images > 0 ? images_per_second(point.throughput) : no_value,
        with_range(point.speedup, point.speedup_ci95, [](double s) { return fixed(s, 3); }),
        with_range(point.efficiency, point.efficiency_ci95, percent),
        with_range(point.karp_flatt, point.karp_flatt_ci95, [](double e) { return significant(e, 3); })};
    if (accuracy) {
      row.push_back(or_none(point.accuracy, [](double a) { return percent(a); }));
      row.push_back(or_none(point.seconds_to_accuracy, [](double s) { return seconds(s); }));
    }
    if (differences) row.push_back(point.differences.empty() ? no_value : differences_text(point.differences));
    table.rows.push_back(std::move(row));
  }
  bound(table);
  return table;
}

Table weak_table(const Report& report) {
  Table table{.id = "weak-scaling",
              .title = "Weak scaling: as many images a rank",
              .columns = {"run", "ranks", "images", "time", "efficiency T(1)/T(N)", "scaled speed-up"},
              .rows = {},
              .text_columns = 1,
              .note = "The scaled speed-up is N × T(1)/T(N). In brackets the 95 % interval."};
  for (const auto& point : report.scaling.points) {
    if (!point.scaled_speedup) continue;
    table.rows.push_back(
        {label_of(report, point), std::to_string(point.ranks), count(point.images), seconds(point.seconds),
         with_range(point.weak_efficiency, point.weak_efficiency_ci95, percent),
         with_range(point.scaled_speedup, point.scaled_speedup_ci95, [](double s) { return fixed(s, 3); })});
  }
  bound(table);
  return table;
}

Table comparisons_table(const Report& report) {
  Table table{.id = "comparisons",
              .title = "Equal rank counts side by side",
              .columns = {"ranks", "time of the first", "time of the second", "ratio of speeds", "first → second"},
              .rows = {},
              .text_columns = 0,
              .note =
                  "The ratio is the time of the first over that of the second: above 1, the second is faster. In "
                  "brackets the 95 % interval.",
              .last_is_text = true};
  for (const auto& comparison : report.scaling.comparisons) {
    const auto &first = report.scaling.points[comparison.reference], &second = report.scaling.points[comparison.other];
    table.rows.push_back({std::to_string(first.ranks), seconds(first.seconds), seconds(second.seconds),
                          with_range(comparison.ratio, comparison.ci95, [](double r) { return fixed(r, 3); }),
                          differences_text(comparison.differences)});
  }
  bound(table);
  return table;
}

// The Universal Scalability Law's figures, one row a fit.
Table scalability_table(const Report& report) {
  Table table{.id = "scalability",
              .title = "Universal Scalability Law",
              .columns = {"through", "σ contention", "κ coherency", "peak, ranks"},
              .rows = {},
              .text_columns = 1,
              .note =
                  "In brackets the 95 % interval. No peak stands where the runs do not bound it; fewer than 6 rank "
                  "counts are weak evidence."};
  const auto three = [](double value) { return significant(value, 3); };
  for (const auto& fit : report.scaling.fits) {
    if (!fit.usl) continue;
    table.rows.push_back({fmt::format("{} ranks, {}", ranks_text(report.scaling, fit.points),
                                      work_text(report.scaling.points[fit.points.front()])),
                          with_range(fit.usl->sigma, fit.sigma_ci95, three),
                          with_range(fit.usl->kappa, fit.kappa_ci95, three),
                          with_range(shown_peak(report.scaling, fit), fit.peak_ci95, three)});
  }
  bound(table);
  return table;
}

Table serial_share_table(const Report& report) {
  Table table{.id = "serial-share",
              .title = "Serial share: fitted beside measured",
              .columns = {"from", "s", "95 % interval", "limit 1/s"},
              .rows = {},
              .text_columns = 1,
              .note =
                  "The fit sees total times only and takes communication and slowed-down parallel work for serial; the "
                  "breakdown of the 1-rank run counts only seconds that stay."};
  const auto row = [&](const std::string& from, double s, const std::optional<Interval>& ci95) {
    // A share that may be 0 bounds nothing.
    const bool bounds = ci95 ? ci95->low > 1e-6 : s >= least_bounding_share;
    std::string limit = bounds ? significant(1 / s, 3) : no_value;
    if (bounds && ci95) {
      limit += fmt::format(" [{}–{}]", significant(1 / ci95->high, 3), significant(1 / ci95->low, 3));
    }
    table.rows.push_back({from, fixed(s, 4),
                          ci95 ? fmt::format("{}–{}", fixed(ci95->low, 4), fixed(ci95->high, 4)) : no_value,
                          std::move(limit)});
  };
  for (const auto& fit : report.scaling.fits) {
    if (fit.misfit) continue;  // the law is refused
    row(fmt::format("Amdahl's law through {} ranks, {}", ranks_text(report.scaling, fit.points),
                    work_text(report.scaling.points[fit.points.front()])),
        fit.serial_fraction, fit.ci95);
  }
  for (const auto& point : report.scaling.points) {
    if (point.ranks != 1 || report.scaling.fits.empty()) continue;
    const auto measured = measured_serial_share(report, point);
    if (!measured) continue;
    row(measured->runs == 1 ? "breakdown of the 1-rank run"
                            : fmt::format("breakdowns of the 1-rank runs, mean of {}", measured->runs),
        measured->share, measured->ci95);
  }
  for (const auto& fit : report.scaling.weak) {
    table.rows.push_back({fmt::format("Gustafson's law through {} ranks", ranks_text(report.scaling, fit.points)),
                          fixed(fit.serial_fraction, 4),
                          fit.ci95 ? fmt::format("{}–{}", fixed(fit.ci95->low, 4), fixed(fit.ci95->high, 4)) : no_value,
                          no_value});
  }
  bound(table);
  return table;
}

Table time_model_table(const Report& report) {
  Table table{.id = "time-model",
              .title = "Time model: T = fixed + epochs × epoch",
              .columns = {"ranks", "fixed", "an epoch", "S of long runs"},
              .rows = {},
              .text_columns = 0,
              .note =
                  "From runs of different lengths, in seconds; fixed is what is spent before and beside training. In "
                  "brackets the 95 % interval."};
  const auto three = [](double value) { return fixed(value, 3); };
  for (const auto& row : report.scaling.time_model) {
    table.rows.push_back({std::to_string(row.ranks),
                          with_range(row.model.fixed_s, row.fixed_ci95, [](double s) { return fixed(s, 2); }) + " s",
                          with_range(row.model.per_epoch_s, row.per_epoch_ci95, three) + " s",
                          with_range(row.speedup_limit, row.speedup_limit_ci95, three)});
  }
  bound(table);
  return table;
}

Table lost_time_table(const Report& report) {
  Table table{
      .id = "lost-time",
      .title = "What keeps the speed-up from N",
      .columns = {"ranks", "T(1)/N", "serial work", "communication", "of it waiting", "slower parallel work", "T(N)"},
      .rows = {},
      .text_columns = 0,
      .note =
          "T(1)/N + serial + communication + slower parallel work = T(N), in wall time averaged over ranks and "
          "repeats. A figure below 0 is time that more ranks saved."};
  for (const auto& lost : report.lost_time) {
    table.rows.push_back({std::to_string(lost.ranks), seconds(lost.ideal_s), seconds(lost.serial_s),
                          seconds(lost.overhead_s), seconds(lost.waiting_s), seconds(lost.slowdown_s),
                          seconds(lost.actual_s)});
  }
  bound(table);
  return table;
}

Table breakdown_table(const RunReport& run) {
  Table table{.id = "breakdown",
              .title = "What shrinks when ranks are added",
              .columns = {"time in", "counts as", "mean over ranks", "share"},
              .rows = {},
              .text_columns = 2,
              .note = ""};
  if (!run.breakdown) return table;
  const Breakdown& b = *run.breakdown;
  for (const auto& row : b.rows) {
    const bool ambiguous =
        std::count_if(b.rows.begin(), b.rows.end(), [&](const auto& r) { return r.phase == row.phase; }) > 1;
    const std::string where = !ambiguous ? "" : row.inside_iterations ? ", in iterations" : ", outside iterations";
    table.rows.push_back({std::string(phase_name(row.phase)) + where, counts_as_name(row.counts_as), duration(row.ns),
                          percent(share(row.ns, b.wall_ns))});
  }
  const auto total = [&](const char* name, const char* kind, std::int64_t ns) {
    table.rows.push_back({name, kind, duration(ns), percent(share(ns, b.wall_ns))});
  };
  total("all parallel", "1/N with N ranks", b.parallel_ns);
  total("all serial", "stays", b.serial_ns);
  if (run.communication_observed) {
    total("all overhead", "comes with N > 1", b.overhead_ns);
  } else {
    table.rows.push_back({"all overhead", "comes with N > 1", "not observed", ""});
  }
  total("wall time", "", b.wall_ns);
  table.note = "parallel + serial + overhead = wall time, exactly.";
  if (run.global_batch_kept) table.note += " The runs share one global batch, so the optimizer counts as serial.";
  return table;
}

bool is_shown(const RunReport& run, Phase phase) {
  if (phase == Phase::communication && run.ranks > 1) return run.communication_observed;
  return std::any_of(run.per_rank.begin(), run.per_rank.end(),
                     [&](const auto& rank) { return rank.phase_ns[static_cast<std::size_t>(phase)] > 0; });
}

// Up to this many ranks stand side by side as columns, with shares; more become rows.
constexpr std::size_t ranks_side_by_side = 6;

std::string time_of_losses(const RankReport& rank) {
  if (!rank.losses.main_thread) return no_value;
  if (!rank.losses.located) return "at unknown times";
  return rank.losses.main_ns > 0 ? duration(rank.losses.main_ns) : "single events";
}

Table phases_table(const RunReport& run) {
  Table table{.id = "phases",
              .title = "Phases of each rank",
              .columns = {},
              .rows = {},
              .text_columns = 1,
              .note = "The phases of a rank add up to its wall time exactly."};
  std::vector<std::size_t> shown;
  for (std::size_t p = 0; p < phase_count; ++p) {
    if (is_shown(run, static_cast<Phase>(p))) shown.push_back(p);
  }
  const bool any_lost = std::ranges::any_of(run.per_rank, [](const auto& rank) { return rank.losses.main_thread; });
  if (any_lost) table.note += " Time in which events of the main thread were lost belongs to none of them.";
  if (run.per_rank.size() <= ranks_side_by_side) {
    table.columns.emplace_back("phase");
    std::vector<std::string> wall = {"wall time"};
    for (const auto& rank : run.per_rank) {
      table.columns.push_back(fmt::format("rank {} on {}", rank.rank, rank.host));
      wall.push_back(duration(rank.wall_ns));
    }
    for (const std::size_t p : shown) {
      std::vector<std::string> row = {std::string(phase_name(static_cast<Phase>(p)))};
      for (const auto& rank : run.per_rank) row.push_back(with_share(rank.phase_ns[p], rank.wall_ns));
      table.rows.push_back(std::move(row));
    }
    if (!run.communication_observed) {
      table.rows.emplace_back(table.columns.size(), "not observed").front() = phase_name(Phase::communication);
    }
    if (any_lost) {
      std::vector<std::string> lost = {"events lost, in no phase"};
      for (const auto& rank : run.per_rank) lost.push_back(time_of_losses(rank));
      table.rows.push_back(std::move(lost));
    }
    table.rows.push_back(std::move(wall));
    return table;
  }
  table.columns = {"rank", "host", "wall"};
  table.text_columns = 2;
  for (const std::size_t p : shown) table.columns.emplace_back(phase_name(static_cast<Phase>(p)));
  if (any_lost) table.columns.emplace_back("events lost");
  for (const auto& rank : run.per_rank) {
    std::vector<std::string> row = {std::to_string(rank.rank), rank.host, duration(rank.wall_ns)};
    for (const std::size_t p : shown) row.push_back(duration(rank.phase_ns[p]));
    if (any_lost) row.push_back(time_of_losses(rank));
    table.rows.push_back(std::move(row));
  }
  return table;
}

Table waits_table(const RunReport& run) {
  Table table{
      .id = "waits",
      .title = "Who waits for whom",
      .columns = {"rank", "host", "waited for others", "made others wait", "last in"},
      .rows = {},
      .text_columns = 2,
      .note =
          "A rank waits in a collective until the last one has come; last in: collectives in which it was that one."};
  if (!any_timed(run.collectives)) return table;
  for (const auto& rank : run.per_rank) {
    table.rows.push_back({std::to_string(rank.rank), rank.host, with_share(rank.waited_ns, rank.wall_ns),
                          duration(rank.caused_ns), count(static_cast<double>(rank.last_count))});
  }
  return table;
}

Table collectives_table(const RunReport& run) {
  Table table{
      .id = "collectives",
      .title = "Collectives",
      .columns = {"operation", "size", "ranks", "count", "wait a rank", "transfer", "transfer in all", "bus bandwidth"},
      .rows = {},
      .text_columns = 1,
      .note =
          "Wait: from a rank's own start to the last rank's start, mean over calls; of a non-blocking collective, what "
          "of that it spent in the call that completed it. Transfer: from the last start to the last end, mean over "
          "collectives. Both of those whose times are known. Bus bandwidth: bytes/transfer × 2(n−1)/n for allreduce "
          "(nccl-tests)."};
  for (const auto& row : run.collectives) {
    const auto timed = static_cast<double>(row.timed);
    const bool known = row.timed > 0;
    table.rows.push_back({row.operation, row.bytes > 0 ? bytes(static_cast<double>(row.bytes)) : no_value,
                          std::to_string(row.members), count(static_cast<double>(row.count)),
                          known ? seconds(1e-9 * static_cast<double>(row.wait_ns) / (timed * row.members)) : no_value,
                          known ? seconds(1e-9 * static_cast<double>(row.transfer_ns) / timed) : no_value,
                          known ? duration(row.transfer_ns) : no_value,
                          row.busbw_bytes_per_s > 0 ? bytes_per_second(row.busbw_bytes_per_s) : no_value});
  }
  return table;
}

Table overlap_table(const RunReport& run) {
  Table table{.id = "overlap",
              .title = "Communication beside compute",
              .columns = {"rank", "communication", "hidden under compute"},
              .rows = {},
              .text_columns = 1,
              .note = "Reported beside the phases, never added to them."};
  for (const auto& rank : run.per_rank) {
    if (!rank.overlap) continue;
    table.rows.push_back({std::to_string(rank.rank), duration(rank.overlap->communication_ns),
                          with_share(rank.overlap->hidden_ns, rank.overlap->communication_ns)});
  }
  return table;
}

Table gpu_table(const RunReport& run) {
  Table table{.id = "gpu",
              .title = "GPU",
              .columns = {"rank", "first to last activity", "compute", "other work", "idle"},
              .rows = {},
              .text_columns = 1,
              .note = "Other work: copies, fills, and communication that no compute kernel ran beside."};
  for (const auto& rank : run.per_rank) {
    if (!rank.gpu) continue;
    const GpuUsage& gpu = *rank.gpu;
    table.rows.push_back({std::to_string(rank.rank), duration(gpu.span_ns), with_share(gpu.compute_ns, gpu.span_ns),
                          with_share(gpu.noncompute_ns, gpu.span_ns), with_share(gpu.idle_ns, gpu.span_ns)});
  }
  return table;
}

Table figures_table(const RunReport& run) {
  Table table{.id = "figures",
              .title = "Main figures",
              .columns = {"figure", "value"},
              .rows = {},
              .text_columns = 1,
              .note = ""};
  const auto add = [&](const std::string& name, const std::string& value) { table.rows.push_back({name, value}); };
  const bool in_part = std::ranges::any_of(run.per_rank, [](const auto& rank) { return rank.span_ns > rank.wall_ns; });
  add(in_part ? "wall time, recorded part" : "wall time", seconds(1e-9 * static_cast<double>(run.wall_ns)));
  if (run.images) {
    add("images", count(*run.images));
    if (run.wall_ns > 0) {
      add("throughput, whole job", images_per_second(*run.images / (1e-9 * static_cast<double>(run.wall_ns))));
    }
  }
  const auto& it = run.iterations;
  if (it.steady_images_per_s) {
    std::string value = images_per_second(*it.steady_images_per_s);
    if (it.steady_ci95) {
      value += fmt::format(" [{}–{}]", fixed(it.steady_ci95->low, 1), fixed(it.steady_ci95->high, 1));
    }
    add(fmt::format("throughput, steady (after {} of warm-up)", plural(it.warmup, "iteration", "iterations")), value);
  }
  if (it.count > 0) {
    const std::size_t left_out = run.losses.iterations.size();
    add("iterations", left_out == 0 ? count(static_cast<double>(it.count))
                                    : fmt::format("{} ({} left out: events lost)", count(static_cast<double>(it.count)),
                                                  count(static_cast<double>(left_out))));
    add("iteration, median", duration(it.median_ns));
    add("iteration, 95th percentile", duration(it.p95_ns));
  }
  if (run.accuracy) add("test accuracy", percent(*run.accuracy));
  if (run.accuracy) {
    add(fmt::format("time to {:g} % accuracy", 100 * run.target_accuracy),
        run.seconds_to_accuracy ? seconds(*run.seconds_to_accuracy) : "not reached");
  }
  if (run.per_rank.size() > 1) add("clock error between ranks, at most", seconds(run.clock_error_ns * 1e-9));
  return table;
}

void keep_filled(std::vector<Table>& tables) {
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
}

}  // namespace

std::vector<Table> scaling_tables(const Report& report) {
  std::vector<Table> tables;
  if (report.scaling.points.size() > 1 || report.runs.empty()) tables.push_back(points_table(report));
  tables.push_back(weak_table(report));
  tables.push_back(comparisons_table(report));
  tables.push_back(lost_time_table(report));
  tables.push_back(serial_share_table(report));
  tables.push_back(scalability_table(report));
  tables.push_back(time_model_table(report));
  keep_filled(tables);
  return tables;
}

std::vector<Table> run_tables(const RunReport& run) {
  std::vector<Table> tables = {figures_table(run), phases_table(run),  breakdown_table(run), collectives_table(run),
                               waits_table(run),   overlap_table(run), gpu_table(run)};
  keep_filled(tables);
  return tables;
}

std::string run_summary(const RunReport& run) {
  std::vector<std::string> parts;
  const auto from_config = [&](const char* key, const std::string& before, const std::string& after) {
    const auto found = run.config.find(key);
    if (found == run.config.end()) return;
    parts.push_back(before + (found->is_string() ? found->get<std::string>() : found->dump()) + after);
  };
  from_config("program", "", "");
  from_config("model", "", "");
  parts.push_back(plural(static_cast<std::size_t>(run.ranks), "rank", "ranks") + " on " + list_text(run.hosts));
  from_config("batch_per_rank", "batch ", " a rank");
  from_config("dtype", "", "");
  from_config("communicator", "communicator ", "");
  std::string text;
  for (const auto& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

}  // namespace paceline::analysis
