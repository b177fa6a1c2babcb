#include "analysis/graph/what_if.h"

#include <algorithm>
#include <cmath>

#include "analysis/graph/changed_work.h"
#include "analysis/scaling/long_run.h"

namespace paceline::analysis {
namespace prediction_parts {

// How many replays give the replayed step: with one, it would depend on which iterations happen to be paired.
constexpr std::size_t draws = 4;
constexpr double least_moved = 0.005;  // of the step
constexpr double least_width = 1e-6;   // of the median; iterations that differ by less are equal but for rounding

const std::vector<Phase> per_image = {Phase::forward, Phase::backward, Phase::preprocess, Phase::copy};

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

// The expected maximum of n standard normal values (G. Blom, "Statistical Estimates and Transformed Beta-Variables",
// 1958).
double expected_maximum(double n) {
  if (n < 2) return 0;
  const double wanted = (n - 0.375) / (n + 0.25);
  double low = 0, high = 10;
  for (int step = 0; step < 60; ++step) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < wanted ? low : high) = middle;
  }
  return low;
}

// By how much each value moves the logarithm of the median m: ψ/(f m), with f the density at the median from the width
// of a share of the values around it, and ψ = x − m in units of that width, between −1/2 and 1/2 (P. J. Huber, "Robust
// Statistics", 1981, section 3.2). Then ψ is scaled to the variance of the sign, which the median has. A sign would do
// for one series; where series are subtracted, it would flip for values that differ little.
std::vector<double> median_influence(const std::vector<double>& values) {
  std::vector<double> sorted = values;
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  const double share = std::clamp(std::pow(n, -1.0 / 3), 0.05, 0.3);  // on each side of the median
  const auto at = [&](double q) { return sorted[static_cast<std::size_t>(q * (n - 1) + 0.5)]; };
  const double median = median_of(sorted), width = at(0.5 + share) - at(0.5 - share);
  std::vector<double> influence(values.size(), 0);
  if (width < least_width * median) return influence;
  double squares = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    influence[i] = std::clamp((values[i] - median) / width, -0.5, 0.5);
    squares += influence[i] * influence[i];
  }
  const double scale = 0.5 / std::sqrt(squares / n) * width / (2 * share * median);
  for (double& of : influence) of *= scale;
  return influence;
}

// The 95 % interval of measured × changed ÷ base as a factor of it; all three are medians of the same iterations.
std::optional<Interval> factor_interval(const std::vector<double>& measured, const std::vector<double>& base,
                                        const std::vector<double>& changed) {
  const auto of_measured = median_influence(measured), of_base = median_influence(base);
  std::vector<double> influence = median_influence(changed);
  for (std::size_t i = 0; i < influence.size(); ++i) influence[i] += of_measured[i] - of_base[i];
  const auto spread = mean_spread(influence);
  const bool equal = std::ranges::all_of(influence, [](double of) { return of == 0; });
  if (!spread || (!equal && !mean_spread(changed))) return std::nullopt;
  const double half = t_quantile_two_sided(0.05, spread->degrees) * std::sqrt(spread->variance);
  return Interval{std::exp(-half), std::exp(half)};
}

// When the iteration began on each rank; the rank's start where it has no such iteration.
std::vector<std::int64_t> steady_starts(const RunIndex& index, const ReplayProgram& program, std::size_t first) {
  std::vector<std::int64_t> starts;
  for (std::size_t r = 0; r < index.trace().ranks.size(); ++r) {
    const auto& all = index.iterations(r);
    const auto found = std::ranges::find(all, program.iterations[first].number, &Iteration::number);
    starts.push_back(found == all.end() ? index.trace().ranks[r].start_ns : found->start_ns);
  }
  return starts;
}

std::vector<double> chosen(const std::vector<double>& values, const std::vector<std::size_t>& indices) {
  std::vector<double> out;
  for (const std::size_t i : indices) out.push_back(values[i]);
  return out;
}

// The mean over these iterations, in s.
StepParts mean_of(const std::vector<StepParts>& parts, const std::vector<std::size_t>& indices) {
  StepParts sum;
  const double scale = 1e-9 / static_cast<double>(std::max<std::size_t>(indices.size(), 1));
  for (const std::size_t i : indices) {
    for (std::size_t phase = 0; phase < phase_count; ++phase) sum.work[phase] += scale * parts[i].work[phase];
    sum.waiting += scale * parts[i].waiting;
    sum.transfer += scale * parts[i].transfer;
    sum.helpers += scale * parts[i].helpers;
  }
  return sum;
}

std::vector<MovedPart> moved_parts(const StepParts& before, const StepParts& after, double step_s) {
  std::vector<MovedPart> moved = {{"waiting for the last rank", before.waiting, after.waiting},
                                  {"transfer", before.transfer, after.transfer},
                                  {"waiting for helper threads and devices", before.helpers, after.helpers}};
  for (std::size_t phase = 0; phase < phase_count; ++phase) {
    moved.push_back({std::string(phase_name(static_cast<Phase>(phase))), before.work[phase], after.work[phase]});
  }
  std::erase_if(moved,
                [&](const MovedPart& part) { return std::abs(part.after_s - part.before_s) < least_moved * step_s; });
  std::ranges::stable_sort(moved, std::greater(),
                           [](const MovedPart& part) { return std::abs(part.after_s - part.before_s); });
  return moved;
}

}  // namespace prediction_parts

bool Changes::any() const {
  return bytes_per_value || schedule || bucket_bytes || algorithm || latency != 1 || byte_time != 1 ||
         free_communication || batch != 1 || ranks || balanced || !relieved.empty() || loader != 1 || !faster.empty();
}

Predictor::Predictor(const RunIndex& index, const DependencyGraph& graph, const TrainingSetup& setup,
                     const std::vector<FasterWork>& faster)
    : setup_(setup), faster_(faster) {
  std::vector<std::string> patterns;
  for (const FasterWork& of : faster) patterns.push_back(of.name);
  program_ = replay_program(index, graph, patterns);
  for (std::size_t r = 0; r < index.trace().ranks.size(); ++r) {
    const std::string& host = index.trace().ranks[r].host;
    auto of = std::ranges::find(hosts_, host, &HostRanks::host);
    if (of == hosts_.end()) of = hosts_.insert(of, {host, {}});
    of->ranks.push_back(r);
  }
  if (program_.iterations.empty()) return;
  schedule_ = recorded_schedule(program_);
  ready_ = recorded_readiness(program_);
  costs_ = fit_costs(program_);
  replay_unchanged();
  std::vector<double> measured;
  for (const std::size_t i : steady()) measured.push_back(1e-9 * program_.iterations[i].recorded_ns);
  measured_s_ = prediction_parts::median_of(std::move(measured));
  sharing_ =
      core_sharing(index.trace(), setup.cpus, prediction_parts::steady_starts(index, program_, steady().front()));
}

std::vector<std::size_t> Predictor::steady() const {
  const std::size_t count = program_.iterations.size();
  std::vector<std::size_t> indices;
  for (std::size_t i = count < 2 ? 0 : std::max<std::size_t>(1, count / 10); i < count; ++i) indices.push_back(i);
  return indices;
}

void Predictor::replay_unchanged() {
  double waiting = 0, sum = 0;
  for (std::size_t draw = prediction_parts::draws; draw-- > 0;) {
    draw_transfers(program_, draw);
    base_ = replay(program_, costs_);  // in the end that of draw 0, which predictions take
    for (const std::size_t i : steady()) {
      replayed_ns_.push_back(base_.iteration_ns[i]);
      sum += base_.iteration_ns[i];
      waiting += base_.wait_ns[i];
    }
  }
  replayed_waiting_share_ = waiting / std::max(sum, 1.0);
}

double Predictor::replayed_s() const { return 1e-9 * prediction_parts::median_of(replayed_ns_); }

WhatIf Predictor::unchanged() const {
  WhatIf out{.step_s = measured_s_, .replayed_s = replayed_s(), .iterations = iterations()};
  double step = 0;
  for (const std::size_t i : steady()) {
    step += program_.iterations[i].recorded_ns;
    out.waiting_share += program_.iterations[i].recorded_wait_ns;
  }
  out.waiting_share /= std::max(step, 1.0);
  out.replayed_waiting_share = replayed_waiting_share_;
  return out;
}

std::string Predictor::obstacle(const Changes& changes) const {
  const bool rearranges = changes.schedule || changes.bucket_bytes;
  const bool network = changes.latency != 1 || changes.byte_time != 1 || changes.free_communication;
  const bool collectives = rearranges || changes.bytes_per_value || changes.algorithm || changes.ranks;
  const bool messages =
      std::ranges::any_of(program_.edges, [](const ReplayEdge& of) { return carries_bytes(of.kind); });
  if (program_.collectives.empty() && (collectives || (network && !messages))) {
    return "no collective of several ranks was recorded, so nothing is known about the network; record the job on at "
           "least 2 ranks";
  }
  const bool averages = rearranges || changes.bytes_per_value || changes.algorithm;
  if (averages && !setup_.other_updater.empty()) {
    return "the updater " + setup_.other_updater + " does not average whole gradients by allreduce";
  }
  if (averages && !schedule_) {
    const bool streams = std::ranges::any_of(program_.tracks, [](const ReplayTrack& track) { return track.stream; });
    return rearranges && streams
               ? "the gradients are averaged on streams of GPUs, and no work of backward was recorded there"
               : "no allreduce of gradients was found in the iterations";
  }
  const bool buckets =
      changes.schedule.value_or(schedule_.value_or(GradientSchedule::blocking)) == GradientSchedule::overlap;
  if (changes.bucket_bytes && !buckets) {
    return "only overlap sends buckets; add --overlap";
  }
  if ((changes.balanced || !changes.relieved.empty()) && program_.ranks < 2) return "the run has only one rank";
  if (std::ranges::any_of(changes.relieved, [&](std::size_t rank) { return rank >= program_.ranks; })) {
    return "the run has no such rank";
  }
  if (changes.relieved.size() >= program_.ranks)
    return "all ranks are to be relieved, so no other rank is left to compare with";
  return "";
}

ReplayProgram Predictor::changed(const Changes& changes) const {
  using namespace prediction_parts;
  ReplayProgram program = program_;
  if (changes.batch != 1) scale_phases(program, per_image, changes.batch);
  if (changes.loader != 1) {
    scale_phases(program, {Phase::preprocess}, changes.loader > 0 ? 1 / changes.loader : 0);
  }
  if (!changes.faster.empty()) {
    std::vector<double> factors;
    for (const FasterWork& of : changes.faster) factors.push_back(of.factor);
    speed_up_groups(program, factors);
  }
  if (!changes.relieved.empty()) relieve_ranks(program, changes.relieved);
  if (changes.balanced) balance_ranks(program);
  const double bytes_factor = changes.bytes_per_value.value_or(setup_.bytes_per_value) / setup_.bytes_per_value;
  const GradientSchedule schedule = changes.schedule.value_or(schedule_.value_or(GradientSchedule::blocking));
  // Fewer bytes fill fewer buckets.
  const bool other_buckets = schedule == GradientSchedule::overlap && bytes_factor != 1;
  if (schedule_ && (schedule != *schedule_ || changes.bucket_bytes || other_buckets)) {
    GradientPlan plan{.schedule = schedule, .bytes_factor = bytes_factor, .ready = ready_};
    plan.bucket_bytes = changes.bucket_bytes.value_or(setup_.bucket_bytes.value_or(plan.bucket_bytes));
    plan.core_costs = core_costs(changes);
    if (!plan.core_costs.empty()) plan.helper_delay_ns = sharing_.delay_ns();
    program = rescheduled(std::move(program), plan);
  } else {
    for (ReplayCollective& of : program.collectives) {
      if (of.gradient) of.bytes_factor = bytes_factor;
    }
  }
  if (changes.ranks) {
    const double more = expected_maximum(*changes.ranks) - expected_maximum(static_cast<double>(program.ranks));
    const double extra = more * work_deviation(program, program.iterations.size() - steady().size());
    std::vector<bool> seen(program.iterations.size());
    for (ReplayCollective& of : program.collectives) {
      if (!of.gradient || of.arrivals == 0 || seen[static_cast<std::size_t>(of.iteration)]) continue;
      seen[static_cast<std::size_t>(of.iteration)] = true;
      of.extra_ns += std::max(extra, 0.0);
    }
  }
  return program;
}

// A run that was recorded with helper threads shows in its own work what they cost.
std::vector<TransferCost> Predictor::core_costs(const Changes& changes) const {
  if (schedule_ != GradientSchedule::blocking || changes.free_communication || !sharing_.any()) return {};
  const auto gradient = std::ranges::find_if(program_.collectives, [](const auto& of) { return of.gradient; });
  const TransferCost* fitted = costs_.of_even.network.cost({gradient->operation, gradient->members});
  if (fitted == nullptr) return {};
  const TransferCost cost =
      sharing_.helper_cost({fitted->latency_ns * changes.latency, fitted->ns_per_byte * changes.byte_time});
  std::vector<TransferCost> of_ranks;
  for (const double taken : sharing_.taken) of_ranks.push_back({taken * cost.latency_ns, taken * cost.ns_per_byte});
  return of_ranks;
}

CollectiveTime Predictor::time_of(const Changes& changes) const {
  return [this, changes](const ReplayCollective& of, const FittedCosts& costs) {
    const double base = fitted_time(of, costs);
    if (changes.free_communication) return 0.0;
    const TransferCost* cost = costs.network.cost({of.operation, of.members});
    if (cost == nullptr) return base;
    const bool allreduces = of.gradient || of.operation.find("llreduce") != std::string::npos;
    const AllreduceAlgorithm before = allreduces ? setup_.algorithm : AllreduceAlgorithm::tree;
    const AllreduceAlgorithm after = of.gradient ? changes.algorithm.value_or(before) : before;
    const double members = of.members;
    const double ranks = changes.ranks ? *changes.ranks : members;
    const AlgorithmFactors old = allreduce_factors(before, members), fresh = allreduce_factors(after, ranks);
    const double bytes = static_cast<double>(of.bytes);
    const double steps = old.latency > 0 ? fresh.latency / old.latency : 1;
    const double moved = old.bandwidth > 0 ? fresh.bandwidth / old.bandwidth : 1;
    const double now = cost->of(bytes);
    if (now <= 0) return base;
    const double then = cost->latency_ns * changes.latency * steps +
                        cost->ns_per_byte * bytes * of.bytes_factor * changes.byte_time * moved;
    return base * then / now;
  };
}

MessageTime Predictor::message_time_of(const Changes& changes) {
  return [changes](const ReplayEdge& of, double ns, const FittedCosts& costs) {
    if (changes.free_communication) return 0.0;
    const TransferCost* cost = costs.network.cost({of.kind == DependencyKind::message ? "message" : "send", 2});
    const double bytes = static_cast<double>(of.bytes), now = cost == nullptr ? 0 : cost->of(bytes);
    if (now <= 0) return ns;
    return ns * (cost->latency_ns * changes.latency + cost->ns_per_byte * bytes * changes.byte_time) / now;
  };
}

Prediction Predictor::predict(const Changes& changes) const {
  using namespace prediction_parts;
  const Replayed after = replay(changed(changes), costs_, time_of(changes), message_time_of(changes));
  const std::vector<std::size_t> indices = steady();
  const auto base = chosen(base_.iteration_ns, indices), fresh = chosen(after.iteration_ns, indices);
  Prediction out;
  out.ratio = median_of(fresh) / std::max(median_of(base), 1e-9);
  out.step_s = measured_s_ * out.ratio;
  const double ranks = static_cast<double>(program_.ranks);
  out.per_image = out.ratio / (changes.batch * (changes.ranks ? *changes.ranks / ranks : 1));
  std::vector<double> measured;
  for (const std::size_t i : indices) measured.push_back(program_.iterations[i].recorded_ns);
  if (const auto factor = factor_interval(measured, base, fresh)) {
    out.ci95 = Interval{out.step_s * factor->low, out.step_s * factor->high};
  }
  out.alters_training = changes.bytes_per_value.value_or(setup_.bytes_per_value) < setup_.bytes_per_value ||
                        (changes.schedule == GradientSchedule::double_buffering && schedule_ != changes.schedule) ||
                        changes.batch != 1 || changes.ranks;
  out.moved = moved_parts(mean_of(base_.parts, indices), mean_of(after.parts, indices), measured_s_);
  return out;
}

}  // namespace paceline::analysis
