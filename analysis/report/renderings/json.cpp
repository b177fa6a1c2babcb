#include <algorithm>
#include <cmath>
#include <iterator>

#include "analysis/report/findings.h"
#include "analysis/report/render.h"
#include "analysis/report/scaling_sentences.h"

namespace paceline::analysis {
namespace {

using Json = nlohmann::ordered_json;

// Whole numbers without a point.
Json number(double value) {
  if (value == std::floor(value) && std::abs(value) < 0x1p53) return static_cast<std::int64_t>(value);
  return value;
}

Json interval(const Interval& ci95) { return Json::array({ci95.low, ci95.high}); }

template <class T>
void set(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}
// A figure that is not finite is not known: it is left out rather than written as null.
void set(Json& object, const char* key, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) object[key] = *value;
}
void set(Json& object, const char* key, const std::optional<Interval>& value) {
  if (value && std::isfinite(value->low) && std::isfinite(value->high)) object[key] = interval(*value);
}

Json breakdown_json(const RunReport& run) {
  const Breakdown& b = *run.breakdown;
  Json out = {{"wall_ns", b.wall_ns},
              {"parallel_ns", b.parallel_ns},
              {"serial_ns", b.serial_ns},
              {"serial_share", b.serial_share},
              {"rows", Json::array()}};
  if (run.communication_observed) out["overhead_ns"] = b.overhead_ns;  // what nobody saw is not 0
  set(out, "serial_share_ci95", b.serial_share_ci95);
  for (const auto& row : b.rows) {
    out["rows"].push_back({{"phase", phase_name(row.phase)},
                           {"in_iterations", row.inside_iterations},
                           {"counts_as", counts_as_name(row.counts_as)},
                           {"ns", row.ns}});
  }
  return out;
}

Json rank_json(const RunReport& run, const RankReport& rank) {
  Json phases = Json::object();
  for (std::size_t p = 0; p < phase_count; ++p) {
    const auto phase = static_cast<Phase>(p);
    // A phase that nothing was seen of is absent rather than 0; `other` is what is left, and always there.
    const bool seen = rank.phase_ns[p] > 0 || phase == Phase::other ||
                      (phase == Phase::communication && run.communication_observed && run.ranks > 1);
    if (seen) phases[std::string(phase_name(phase))] = rank.phase_ns[p];
  }
  Json out = {{"rank", rank.rank}, {"host", rank.host}, {"wall_ns", rank.wall_ns}, {"phases", std::move(phases)}};
  if (rank.span_ns != rank.wall_ns) out["span_ns"] = rank.span_ns;
  if (rank.losses.events > 0) out["lost_events"] = rank.losses.events;
  if (rank.losses.main_ns > 0) out["lost_ns"] = rank.losses.main_ns;
  if (rank.gpu) {
    out["gpu"] = {{"span_ns", rank.gpu->span_ns},
                  {"idle_ns", rank.gpu->idle_ns},
                  {"compute_ns", rank.gpu->compute_ns},
                  {"noncompute_ns", rank.gpu->noncompute_ns}};
  }
  if (rank.overlap) {
    out["overlap"] = {{"communication_ns", rank.overlap->communication_ns}, {"hidden_ns", rank.overlap->hidden_ns}};
  }
  if (any_timed(run.collectives)) {
    out["waits"] = {{"waited_ns", rank.waited_ns}, {"caused_ns", rank.caused_ns}, {"last_count", rank.last_count}};
  }
  return out;
}

Json losses_json(const LossReport& losses) {
  Json out = {{"events", losses.events},
              {"ranks", losses.ranks},
              {"helper_ranks", losses.helper_ranks},
              {"main_thread_ns", losses.main_ns},
              {"located", losses.located},
              {"iterations_left_out", losses.iterations.size()}};
  if (!losses.causes.empty()) out["causes"] = losses.causes;
  if (!losses.iterations.empty()) out["iterations"] = number_list(losses.iterations);
  return out;
}

Json lateness_json(const RunReport& run) {
  const LatenessTest& test = run.lateness;
  Json out = {{"judged", test.judged},
              {"iterations", test.iterations},
              {"autocorrelation_time", test.autocorrelation_time},
              {"slow_ranks", Json::array()}};
  if (test.judged) out["block"] = test.block;
  for (const LateRank& late : test.late) {
    out["slow_ranks"].push_back({{"rank", run.per_rank[late.rank].rank},
                                 {"late_ns", late.behind_ns},
                                 {"share_of_step", late.share_of_step},
                                 {"p", late.p}});
  }
  return out;
}

Json run_json(const RunReport& run) {
  Json out = {{"path", run.path},          {"format", run.format},
              {"ranks", run.ranks},        {"hosts", run.hosts},
              {"span_ns", run.span_ns},    {"wall_ns", run.wall_ns},
              {"config", run.config},      {"communication_observed", run.communication_observed},
              {"per_rank", Json::array()}, {"collectives", Json::array()}};
  set(out, "accuracy", run.accuracy);
  set(out, "best_accuracy", run.best_accuracy);
  set(out, "seconds_to_accuracy", run.seconds_to_accuracy);
  if (run.accuracy) out["target_accuracy"] = run.target_accuracy;
  const auto& it = run.iterations;
  if (it.count > 0) {
    Json iterations = {{"count", it.count},
                       {"median_ns", it.median_ns},
                       {"p95_ns", it.p95_ns},
                       {"warmup_excluded", it.warmup},
                       {"steady_median_ns", it.steady_median_ns}};
    if (run.images) iterations["images"] = number(*run.images);
    set(iterations, "steady_images_per_s", it.steady_images_per_s);
    set(iterations, "steady_images_per_s_ci95", it.steady_ci95);
    out["iterations"] = std::move(iterations);
  }
  if (run.images && run.wall_ns > 0) out["images_per_s"] = *run.images / (1e-9 * static_cast<double>(run.wall_ns));
  if (run.breakdown) out["breakdown"] = breakdown_json(run);
  set(out, "communication_share_of_step", run.communication_share_of_step);
  set(out, "waiting_for_cpu_share", run.waiting_for_cpu);
  for (const auto& rank : run.per_rank) out["per_rank"].push_back(rank_json(run, rank));
  for (const auto& row : run.collectives) {
    Json collective = {
        {"operation", row.operation}, {"bytes", row.bytes}, {"count", row.count}, {"members", row.members}};
    if (row.timed > 0) {
      collective["wait_ns"] = row.wait_ns;
      collective["transfer_ns"] = row.transfer_ns;
    }
    if (row.timed < row.count) collective["timed"] = row.timed;
    if (row.busbw_bytes_per_s > 0) collective["busbw_bytes_per_s"] = row.busbw_bytes_per_s;
    out["collectives"].push_back(std::move(collective));
  }
  if (run.unmatched_calls > 0) out["unmatched_collective_calls"] = run.unmatched_calls;
  if (run.dropped > 0) out["dropped"] = run.dropped;
  if (!run.dropped_by_cause.empty()) out["dropped_by_cause"] = run.dropped_by_cause;
  if (run.losses.any()) out["lost"] = losses_json(run.losses);
  out["ended"] = run.ended;
  if (run.refused()) out["refused"] = {"breakdown", "serial_share", "scaling"};
  if (run.lateness.iterations > 0) out["lateness"] = lateness_json(run);
  if (!run.damage.empty()) out["damaged"] = run.damage;
  if (!run.hangs.empty()) out["hangs"] = run.hangs;
  return out;
}

Json differences_json(const std::vector<Difference>& differences) {
  Json out = Json::array();
  for (const auto& d : differences) out.push_back({{"column", d.column}, {"from", d.from}, {"to", d.to}});
  return out;
}

Json ranks_json(const Scaling& scaling, const std::vector<std::size_t>& points) {
  Json out = Json::array();
  for (const std::size_t p : points) out.push_back(scaling.points[p].ranks);
  return out;
}

Json fit_json(const Scaling& scaling, const AmdahlFit& fit) {
  Json out = {{"serial_fraction", fit.serial_fraction},
              {"ranks", ranks_json(scaling, fit.points)},
              {"worst_miss", fit.worst_miss}};
  set(out, "ci95", fit.ci95);
  const auto& first = scaling.points[fit.points.front()];
  if (first.epochs > 0) out["epochs"] = number(first.epochs);
  if (first.images > 0) out["images"] = number(first.images);
  set(out, "limit_ci95", fit.limit_ci95);
  if (fit.misfit) out["refused"] = true;
  if (fit.foreign) out["not_of_the_series"] = scaling.points[*fit.foreign].ranks;
  if (fit.usl) {
    Json usl = {{"sigma", fit.usl->sigma}, {"kappa", fit.usl->kappa}, {"weak", fit.usl_weak}};
    set(usl, "sigma_ci95", fit.sigma_ci95);
    set(usl, "kappa_ci95", fit.kappa_ci95);
    set(usl, "peak_ranks", shown_peak(scaling, fit));
    set(usl, "peak_ranks_ci95", fit.peak_ci95);
    out["usl"] = std::move(usl);
  }
  return out;
}

Json refused_json(const Scaling& scaling, const RefusedFit& refused) {
  Json out = {{"ranks", ranks_json(scaling, refused.points)},
              {"differs_in", refused.columns},
              {"karp_flatt_falls", refused.karp_flatt_falls},
              {"serial_fraction", refused.serial_fraction},
              {"serial_fraction_free_start", refused.serial_fraction_free_start},
              {"at_ranks", scaling.points[refused.worst_point].ranks},
              {"curve_speedup", refused.curve_speedup},
              {"measured_speedup", *scaling.points[refused.worst_point].speedup}};
  const auto& first = scaling.points[refused.points.front()];
  if (first.epochs > 0) out["epochs"] = number(first.epochs);
  if (refused.stranger) out["not_of_the_series"] = scaling.points[*refused.stranger].ranks;
  return out;
}

const char* spread_name(SpreadSource source) {
  switch (source) {
    case SpreadSource::none:
      return "unknown";
    case SpreadSource::two_repeats:
      return "two repeats";
    case SpreadSource::equal_repeats:
      return "equal repeats";
    case SpreadSource::few_iterations:
      return "few iterations";
    case SpreadSource::iterations:
      return "iterations of one run";
    case SpreadSource::repeats:
      return "repeats";
    case SpreadSource::given:
      return "given";
  }
  return "";
}

void set_verdict(Json& object, Verdict verdict) {
  if (verdict == Verdict::unknown) return;
  object["verdict"] = verdict == Verdict::faster ? "faster" : verdict == Verdict::slower ? "slower" : "undecided";
}

void add_weak_scaling(const Scaling& scaling, Json& out) {
  for (const auto& fit : scaling.weak) {
    Json g = {{"serial_fraction", fit.serial_fraction}, {"ranks", ranks_json(scaling, fit.points)}};
    set(g, "ci95", fit.ci95);
    out["gustafson"].push_back(std::move(g));
  }
}

void add_comparisons(const Report& report, Json& out) {
  const Scaling& scaling = report.scaling;
  const auto label = [&](std::size_t point) { return report.scaling_runs[scaling.points[point].runs.front()].label; };
  for (const auto& comparison : scaling.comparisons) {
    Json c = {{"ranks", scaling.points[comparison.reference].ranks},
              {"reference", label(comparison.reference)},
              {"run", label(comparison.other)},
              {"differences", differences_json(comparison.differences)},
              {"ratio", comparison.ratio}};
    set(c, "ratio_ci95", comparison.ci95);
    set_verdict(c, comparison.verdict);
    out["comparisons"].push_back(std::move(c));
  }
}

Json scaling_json(const Report& report) {
  const Scaling& scaling = report.scaling;
  Json out = {{"points", Json::array()}};
  for (const auto& point : scaling.points) {
    Json p = {{"ranks", point.ranks}};
    if (point.epochs > 0) p["epochs"] = number(point.epochs);
    if (point.images > 0) {
      p["images"] = number(point.images);
      p["throughput"] = point.throughput;
    }
    p["seconds"] = point.seconds;
    p["runs"] = Json::array();
    for (const std::size_t r : point.runs) p["runs"].push_back(report.scaling_runs[r].label);
    set(p, "speedup", point.speedup);
    set(p, "speedup_ci95", point.speedup_ci95);
    set(p, "efficiency", point.efficiency);
    set(p, "efficiency_ci95", point.efficiency_ci95);
    set(p, "karp_flatt", point.karp_flatt);
    set(p, "karp_flatt_ci95", point.karp_flatt_ci95);
    set(p, "weak_efficiency", point.weak_efficiency);
    set(p, "weak_efficiency_ci95", point.weak_efficiency_ci95);
    set(p, "scaled_speedup", point.scaled_speedup);
    set(p, "scaled_speedup_ci95", point.scaled_speedup_ci95);
    set_verdict(p, point.verdict);
    p["spread"] = spread_name(point.spread.source);
    set(p, "accuracy", point.accuracy);
    set(p, "seconds_to_accuracy", point.seconds_to_accuracy);
    if (!point.config.empty()) p["config"] = point.config;
    if (!point.differences.empty()) p["differences"] = differences_json(point.differences);
    out["points"].push_back(std::move(p));
  }
  if (!scaling.fits.empty()) {
    out["amdahl"] = fit_json(scaling, scaling.fits.front());
    out["fits"] = Json::array();
    for (const auto& fit : scaling.fits) out["fits"].push_back(fit_json(scaling, fit));
  }
  add_weak_scaling(scaling, out);
  add_comparisons(report, out);
  for (const auto& refused : scaling.refused) out["refused_fits"].push_back(refused_json(scaling, refused));
  for (const auto& row : scaling.time_model) {
    Json r = {{"ranks", row.ranks}, {"fixed_s", row.model.fixed_s}, {"per_epoch_s", row.model.per_epoch_s}};
    set(r, "fixed_s_ci95", row.fixed_ci95);
    set(r, "per_epoch_s_ci95", row.per_epoch_ci95);
    set(r, "speedup_limit", row.speedup_limit);
    set(r, "speedup_limit_ci95", row.speedup_limit_ci95);
    if (!row.differences.empty()) r["differences"] = differences_json(row.differences);
    out["time_model"].push_back(std::move(r));
  }
  for (const auto& lost : report.lost_time) {
    out["lost_time"].push_back({{"ranks", lost.ranks},
                                {"runs", lost.many.size()},
                                {"baseline_runs", lost.one.size()},
                                {"ideal_s", lost.ideal_s},
                                {"actual_s", lost.actual_s},
                                {"serial_s", lost.serial_s},
                                {"overhead_s", lost.overhead_s},
                                {"waiting_s", lost.waiting_s},
                                {"slowdown_s", lost.slowdown_s}});
  }
  for (const auto& point : scaling.points) {
    if (point.ranks != 1) continue;
    const auto measured = measured_serial_share(report, point);
    if (!measured) continue;
    out["measured_serial_share"] = {{"serial_fraction", measured->share}, {"runs", measured->runs}};
    set(out["measured_serial_share"], "ci95", measured->ci95);
    if (measured->runs > 1) out["measured_serial_share"]["range"] = {measured->low, measured->high};
    break;
  }
  if (scaling.speedup_limit) {
    out["speedup_limit"] = *scaling.speedup_limit;
    set(out, "speedup_limit_ci95", scaling.speedup_limit_ci95);
    out["speedup_limit_from"] = scaling.limit_from_time_model ? "time_model" : "amdahl";
  }
  return out;
}

// JSON has neither infinity nor NaN, and a figure that does not apply is absent: members that hold one, or null, go.
bool is_writable(const Json& value) {
  if (value.is_null()) return false;
  if (value.is_number_float()) return std::isfinite(value.get<double>());
  return !value.is_array() || std::ranges::all_of(value, is_writable);
}

void keep_writable(Json& value) {
  if (value.is_object()) {
    for (auto member = value.begin(); member != value.end();) {
      member = is_writable(*member) ? std::next(member) : value.erase(member);
    }
  }
  if (value.is_structured()) {
    for (Json& member : value) keep_writable(member);
  }
}

}  // namespace

Json report_json(const Report& report) {
  Json out = {{"schema", "paceline.report/1"}, {"headline", report.headline}, {"runs", Json::array()}};
  for (const auto& run : report.runs) out["runs"].push_back(run_json(run));
  if (!report.scaling.points.empty()) out["scaling"] = scaling_json(report);
  out["findings"] = Json::array();
  for (const auto& finding : report.findings) {
    Json f = {{"severity", severity_name(finding.severity)}, {"text", finding.text}};
    if (finding.run) f["run"] = report.runs[*finding.run].path;
    out["findings"].push_back(std::move(f));
  }
  keep_writable(out);
  return out;
}

std::string render_json(const Report& report) {
  // Names in traces may be any bytes: what is no UTF-8 is replaced.
  return report_json(report).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace paceline::analysis
