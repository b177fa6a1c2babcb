// SPDX-License-Identifier: Apache-2.0
#include "analysis/graph/what_if.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/scaling/long_run.h"
#include "analysis/statistics/statistics.h"
#include "analysis/trace/parallel.h"

namespace paceline::analysis {
namespace prediction_parts {

constexpr double least_moved = 0.005;  // of the step
constexpr double rounding = 1e-6;      // of the step; iterations that differ by less are equal

const std::vector<Phase> passes = {Phase::forward, Phase::backward}, inputs = {Phase::preprocess, Phase::copy};
// The part of a pass that does not grow with the batch: weights that are read, and calls of functions. The least
// squares of closed loops with twice and half the batch (tests/bench/README.md).
constexpr double fixed_part = 0.08;

// What gloo's copies and sums add to a transfer, whatever the network. From closed loops with half and twice the
// bandwidth (tests/bench/README.md).
constexpr double gloo_cpu_ns_per_byte = 1.6;

std::vector<Phase> every_phase() {
  std::vector<Phase> all;
  for (std::size_t phase = 0; phase < phase_count; ++phase) all.push_back(static_cast<Phase>(phase));
  return all;
}

// The 95 % interval of measured × changed ÷ base as a factor of it; all three are means of the same iterations. `moved`
// is the work that a relief takes from each of them, and `error` the part of a step by which the model itself is wrong.
// Where the run is too short for its own mean step, but not for the change, it is the interval of changed ÷ base.
struct FactorInterval {
  Interval factor;
  bool of_change = false;
};

std::optional<FactorInterval> factor_interval(const std::vector<double>& measured, const std::vector<double>& base,
                                              const std::vector<double>& changed, const std::vector<double>& moved,
                                              double error) {
  const double of_measured = mean(measured), of_base = mean(base), of_changed = mean(changed);
  // How far the step follows the work of the relieved ranks. The difference of their mean work is uncertain as well,
  // and the two replays do not show that.
  const double difference = mean(moved);
  const double follows = difference == 0 ? 0 : std::clamp((of_changed - of_base) / difference, 0.0, 1.0);
  std::vector<double> change, influence;  // of each iteration on the logarithm of the quotient, and of the product
  for (std::size_t i = 0; i < changed.size(); ++i) {
    change.push_back(changed[i] / of_changed - base[i] / of_base);
    if (!moved.empty()) change.back() += follows * (moved[i] - difference) / of_changed;
    influence.push_back(change.back() + measured[i] / of_measured - 1);
    for (double* of : {&change.back(), &influence.back()}) {
      if (std::abs(*of) < rounding) *of = 0;
    }
  }
  auto spread = mean_spread(influence);
  const bool equal = std::ranges::all_of(influence, [](double of) { return of == 0; });
  const bool of_change = !spread || (!equal && !mean_spread(changed));
  if (of_change) spread = mean_spread(change);
  if (!spread) return std::nullopt;
  const double t = t_quantile_two_sided(0.05, spread->degrees);
  const double half = std::sqrt(t * t * spread->variance + error * error);  // std::hypot needs glibc 2.35
  return FactorInterval{{std::exp(-half), std::exp(half)}, of_change};
}

// What a kind of change was off by in closed loops on real runs (tests/bench/README.md), at least twice the root of
// mean(e² − SE²), where SE is how much runs of one job differ: a part of the step, and a part of what the change is
// predicted to move.
struct LearnedError {
  double of_step = 0, of_change = 0;
};
constexpr LearnedError relief_error{0.03, 0.25}, bandwidth_error{0.03, 0.35}, fewer_bytes_error{0.05, 0.35},
    overlap_error{0.14, 0}, other_schedule_error{0.13, 0.15}, batch_error{0.03, 0.25}, loader_error{0.03, 0.15};
// A further one where the recorded helper threads shared cores with the computing ones.
constexpr LearnedError shared_cores_error{0.12, 0};

// Of a prediction whose step is `ratio` times the measured one, as a part of it. Nothing for a kind without such runs,
// or whose runs disagree.
std::optional<double> learned_error(const Changes& changes, std::optional<GradientSchedule> recorded,
                                    double bytes_per_value, double ratio, bool shares_cores) {
  Changes others = changes;
  double squares = 0;
  const double moved = std::log(std::max(ratio, rounding));
  const auto take = [&](bool changed, const LearnedError& error) {
    if (changed) squares += error.of_step * error.of_step + std::pow(error.of_change * moved, 2);
  };
  take(!std::exchange(others.relieved, {}).empty(), relief_error);
  take(shares_cores, shared_cores_error);
  // With another bandwidth beside double buffering, runs disagree.
  const bool disagree = shares_cores && recorded == GradientSchedule::double_buffering;
  if (!disagree) take(std::exchange(others.byte_time, 1) != 1, bandwidth_error);
  take(std::exchange(others.batch, 1) != 1, batch_error);
  take(std::exchange(others.loader, 1) != 1, loader_error);
  if (others.bytes_per_value && *others.bytes_per_value <= bytes_per_value) {
    take(*std::exchange(others.bytes_per_value, std::nullopt) != bytes_per_value, fewer_bytes_error);
  }
  const bool overlaps = others.schedule == GradientSchedule::overlap;
  if (others.schedule && (recorded == GradientSchedule::blocking || others.schedule == GradientSchedule::blocking)) {
    if (overlaps) others.bucket_bytes.reset();
    take(std::exchange(others.schedule, std::nullopt) != recorded, overlaps ? overlap_error : other_schedule_error);
  }
  return others.any() ? std::nullopt : std::optional(std::sqrt(squares));
}

// The size of the type whose values take about as many bytes; 0 where there is none.
double bytes_of_type(double bytes) {
  for (const double of : {2.0, 4.0, 8.0}) {
    if (std::abs(bytes / of - 1) < 0.1) return of;
  }
  return 0;
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
  if (setup_.values)
    setup_.bytes_per_value = prediction_parts::bytes_of_type(gradient_bytes(program_) / *setup_.values);
  ready_ = recorded_readiness(program_);
  costs_ = fit_costs(program_);
  work_ = work_of(program_);
  work_sums_ = sums_of(work_, steady().front());
  replay_unchanged();
  std::vector<double> measured;
  for (const std::size_t i : steady()) measured.push_back(1e-9 * program_.iterations[i].recorded_ns);
  measured_s_ = mean(measured);
  median_s_ = median(std::move(measured));
  if (!gradient_tracks(program_).streams) {  // which would need no core
    sharing_ =
        core_sharing(index.trace(), setup.cpus, prediction_parts::steady_starts(index, program_, steady().front()));
  }
  rebuild();
}

std::vector<std::size_t> Predictor::steady() const {
  const std::size_t count = program_.iterations.size();
  std::vector<std::size_t> indices;
  for (std::size_t i = count < 2 ? 0 : std::max<std::size_t>(1, count / 10); i < count; ++i) indices.push_back(i);
  return indices;
}

void Predictor::replay_unchanged() {
  std::vector<ReplayVariant> variants(program_.draws.size());
  for (std::size_t draw = 0; draw < variants.size(); ++draw) variants[draw].draw = draw;
  std::vector<Replayed> replayed = replay(program_, costs_, variants);
  double waiting = 0, sum = 0;
  for (std::size_t draw = replayed.size(); draw-- > 0;) {
    for (const std::size_t i : steady()) {
      replayed_ns_.push_back(replayed[draw].iteration_ns[i]);
      sum += replayed[draw].iteration_ns[i];
      waiting += replayed[draw].wait_ns[i];
    }
  }
  base_ = std::move(replayed.front());
  replayed_waiting_share_ = waiting / std::max(sum, 1.0);
}

double Predictor::replayed_s() const { return 1e-9 * mean(replayed_ns_); }

WhatIf Predictor::unchanged() const {
  WhatIf out{.step_s = measured_s_, .median_s = median_s_, .replayed_s = replayed_s(), .iterations = iterations()};
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
  const bool gradients = std::ranges::any_of(program_.collectives, [](const auto& of) { return of.gradient; });
  if ((averages && !gradients) || ((rearranges || changes.algorithm) && !schedule_)) {
    const bool streams = std::ranges::any_of(program_.tracks, [](const ReplayTrack& track) { return track.stream; });
    if (rearranges && streams) {
      return "the gradients are averaged on streams of GPUs, and no work of backward was recorded there";
    }
    return gradients && !streams
               ? "the gradients' buckets and their algorithm are PyTorch's own, and no others are predicted"
               : "no allreduce of gradients was found in the iterations";
  }
  if (changes.bytes_per_value && setup_.bytes_per_value == 0) {
    return "the type of the gradients is not known, because their bytes are not 2, 4 or 8 times the parameters";
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

double Predictor::bytes_factor(const Changes& changes) const {
  return changes.bytes_per_value ? *changes.bytes_per_value / setup_.bytes_per_value : 1;
}

// Puts together the recorded averaging of gradients beside computation. Where the model comes to far more or fewer
// buckets, their size is not the one that the run's description states. (It counts the least ones, too, which the
// recorded gradients leave out.)
void Predictor::rebuild() {
  const bool overlaps = schedule_ == GradientSchedule::overlap && setup_.bucket_bytes;
  if (!overlaps && (schedule_ != GradientSchedule::double_buffering || !sharing_.any())) return;
  const auto buckets = [](const ReplayProgram& program) {
    return static_cast<double>(std::ranges::count_if(
        program.collectives, [](const ReplayCollective& of) { return of.gradient && of.arrivals > 0; }));
  };
  const Variation same = varied({}, true);
  const double times = buckets(*same.program) / buckets(program_);
  if (!(times >= 0.5 && times <= 2)) return;
  rebuilt_ = replay(*same.program, costs_, same.variant);
}

// Whether the gradients are averaged at other times.
bool Predictor::reschedules(const Changes& changes) const {
  if (!schedule_) return false;
  const GradientSchedule schedule = changes.schedule.value_or(*schedule_);
  const bool other_bytes = bytes_factor(changes) != 1;
  // Fewer bytes fill fewer buckets, where their size is known.
  const bool other_buckets = rebuilt_ && schedule == GradientSchedule::overlap && other_bytes;
  // Work and transfers that share cores take other times from each other where one of them changes.
  const bool other_sharing =
      schedule == *schedule_ && rebuilt_ && sharing_.any() && !changes.free_communication &&
      (other_bytes || changes.batch != 1 || changes.byte_time != 1 || changes.latency != 1 || !changes.faster.empty());
  return schedule != *schedule_ || changes.bucket_bytes || other_buckets || other_sharing;
}

// The replay that a changed one is compared with. Where the model puts together the averaging of gradients anew, in the
// recorded schedule, that is the recorded one put together likewise: what the model says wrongly of both then cancels.
const Replayed& Predictor::base_of(const Changes& changes) const {
  const bool same = !changes.schedule || changes.schedule == schedule_;
  return rebuilt_ && same && reschedules(changes) ? *rebuilt_ : base_;
}

// Whether other bytes leave the rescheduled gradients in their places: they are not divided into buckets, and no core
// works on them.
bool Predictor::bytes_move_nothing(const Changes& changes) const {
  return changes.schedule.value_or(*schedule_) != GradientSchedule::overlap && !shares_cores(changes) &&
         !stops_sharing(changes);
}

// Whether two changes that reschedule the gradients differ in their bytes alone.
bool Predictor::in_one_program(const Changes& a, const Changes& b) const {
  Changes other = b;
  other.bytes_per_value = a.bytes_per_value;
  return a == other && bytes_move_nothing(a);
}

Predictor::Variation Predictor::varied(const Changes& changes, bool rebuilt) const {
  using namespace prediction_parts;
  Variation out;
  WorkFactors& work = out.variant.work;
  const std::size_t warmup = program_.iterations.size() - steady().size();
  if (changes.batch != 1) {
    work.scale_phases(passes, fixed_part + (1 - fixed_part) * changes.batch);
    work.scale_phases(inputs, changes.batch);
  }
  if (changes.loader != 1) {
    constexpr Phase loads[] = {Phase::preprocess};
    work.scale_phases(loads, changes.loader > 0 ? 1 / changes.loader : 0);
  }
  if (!changes.faster.empty()) {
    std::vector<double> factors;
    for (const FasterWork& of : changes.faster) factors.push_back(of.factor);
    work.speed_up_groups(factors);
  }
  // Calls change(the ranks' work after the changes so far).
  const auto with_work = [&](const ReplayProgram& program, auto&& change) {
    return &program == &program_ && !work.any() ? change(work_) : change(work_of(program, work));
  };
  if (!changes.relieved.empty()) {
    out.relief_ns = with_work(program_, [&](const RankWork& now) {
      return relieve_ranks(work, now, &now == &work_ ? work_sums_ : sums_of(now, warmup), changes.relieved, warmup);
    });
  }
  if (changes.balanced) with_work(program_, [&](const RankWork& now) { balance_ranks(work, now); });
  if (rebuilt || reschedules(changes)) {
    GradientPlan plan{.schedule = changes.schedule.value_or(*schedule_),
                      .bytes_factor = bytes_move_nothing(changes) ? 1 : bytes_factor(changes),
                      .ready = ready_};
    if (stops_sharing(changes)) {
      const BesideWork cost = recorded_beside();
      work.scale_phases(every_phase(), 1 - cost.lost_ns);
      plan.bytes_factor *= 1 - cost.longer_ns;
    }
    plan.bucket_bytes = changes.bucket_bytes.value_or(setup_.bucket_bytes.value_or(plan.bucket_bytes));
    if (shares_cores(changes) || stops_sharing(changes)) plan.cores = sharing_;
    out.variant.gradient_bytes = bytes_move_nothing(changes) ? bytes_factor(changes) : 1;
    plan.transfer = transfer_cost(changes);
    ReplayProgram program = program_;
    if (work.any()) scale_work(program, std::exchange(work, {}));
    out.program = rescheduled(std::move(program), plan);
  }
  if (changes.ranks) {
    const ReplayProgram& program = out.program ? *out.program : program_;
    const auto later_ns = with_work(program, [&](const RankWork& now) {
      return later_arrivals(now, static_cast<std::size_t>(*changes.ranks), warmup);
    });
    out.variant.extra_ns.resize(program.collectives.size());
    std::vector<bool> seen(program.iterations.size());
    for (std::size_t c = 0; c < program.collectives.size(); ++c) {
      const ReplayCollective& of = program.collectives[c];
      if (!of.gradient || of.arrivals == 0) continue;
      const auto iteration = static_cast<std::size_t>(of.iteration);
      if (!seen[iteration]) out.variant.extra_ns[c] = later_ns[iteration];
      seen[iteration] = true;
    }
  }
  out.variant.collective_time = time_of(changes, out.program ? 1 : bytes_factor(changes));
  out.variant.message_time = message_time_of(changes);
  return out;
}

// Of the gradients; 0 where it is not known.
TransferCost Predictor::transfer_cost(const Changes& changes) const {
  const auto gradient = std::ranges::find_if(program_.collectives, [](const auto& of) { return of.gradient; });
  const TransferCost* fitted = costs_.of_even.network.cost({gradient->operation, gradient->members});
  if (fitted == nullptr || changes.free_communication) return {};
  return {fitted->latency_ns * changes.latency, fitted->ns_per_byte * changes.byte_time};
}

// The recorded work of double buffering shows what its helper threads cost.
bool Predictor::shares_cores(const Changes& changes) const {
  return schedule_ != GradientSchedule::double_buffering && !changes.free_communication && sharing_.any();
}

// The recorded computation and transfers of double buffering took longer because they shared cores.
bool Predictor::stops_sharing(const Changes& changes) const {
  return schedule_ == GradientSchedule::double_buffering && !changes.free_communication && sharing_.any();
}

// By how much, as parts of the recorded transfers and of the recorded work.
BesideWork Predictor::recorded_beside() const {
  const TransferCost together = transfer_cost({});
  const double bytes = gradient_bytes(program_);
  const double work_ns = mean(work_sums_.totals) / static_cast<double>(steady().size());
  const BesideWork ns = sharing_.recorded_beside(work_ns, together, bytes);
  return {ns.longer_ns / std::max(together.of(bytes), 1.0), ns.lost_ns / std::max(work_ns, 1.0)};
}

// `bytes_factor`: the bytes that gradients move ÷ ReplayCollective::bytes.
CollectiveTime Predictor::time_of(const Changes& changes, double bytes_factor) const {
  return [this, changes, bytes_factor](const ReplayCollective& of, double base, const FittedCosts& costs) {
    if (changes.free_communication) return 0.0;
    const TransferCost* cost = costs.network.cost({of.operation, of.members});
    if (cost == nullptr) return base;
    const bool allreduces = of.gradient || plain_operation(of.operation).find("allreduce") != std::string::npos;
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
    const double cpu =
        of.operation.starts_with("gloo") ? std::min(prediction_parts::gloo_cpu_ns_per_byte, cost->ns_per_byte / 2) : 0;
    const double ns_per_byte = (cost->ns_per_byte - cpu) * changes.byte_time + cpu;
    const double then =
        cost->latency_ns * changes.latency * steps + ns_per_byte * bytes * (of.gradient ? bytes_factor : 1) * moved;
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

std::vector<Prediction> Predictor::predict_all(const std::vector<Changes>& changes) const {
  // What is replayed together: indices of changes that keep the order of the items, or that make the same one.
  std::vector<std::vector<std::size_t>> jobs;
  std::vector<std::size_t> kept;
  std::vector<std::size_t> same(changes.size());  // the first equal ones
  for (std::size_t c = 0; c < changes.size(); ++c) {
    same[c] = static_cast<std::size_t>(std::ranges::find(changes, changes[c]) - changes.begin());
    if (same[c] != c) continue;
    if (reschedules(changes[c])) {
      const auto together = std::ranges::find_if(jobs, [&](const std::vector<std::size_t>& job) {
        return job.size() < replay_lanes && reschedules(changes[job.front()]) &&
               in_one_program(changes[job.front()], changes[c]);
      });
      (together == jobs.end() ? jobs.emplace_back() : *together).push_back(c);
      continue;
    }
    kept.push_back(c);
    if (kept.size() == replay_lanes) jobs.push_back(std::exchange(kept, {}));
  }
  if (!kept.empty()) jobs.push_back(std::move(kept));
  std::vector<Prediction> out(changes.size());
  parallel_for(jobs.size(), [&](std::size_t j) {
    std::vector<Variation> variations;
    std::vector<ReplayVariant> variants;
    for (const std::size_t c : jobs[j]) {
      if (variations.empty() || !variations.front().program) {
        variations.push_back(varied(changes[c]));
        variants.push_back(std::move(variations.back().variant));
      } else {
        variants.push_back(variants.front());
        variants.back().gradient_bytes = bytes_factor(changes[c]);
      }
    }
    const std::optional<ReplayProgram>& program = variations.front().program;
    const std::vector<Replayed> after = replay(program ? *program : program_, costs_, variants);
    for (std::size_t k = 0; k < jobs[j].size(); ++k) {
      const Variation& of = variations[std::min(k, variations.size() - 1)];
      out[jobs[j][k]] = prediction(changes[jobs[j][k]], of.relief_ns, after[k]);
    }
  });
  for (std::size_t c = 0; c < changes.size(); ++c) out[c] = out[same[c]];
  return out;
}

Prediction Predictor::prediction(const Changes& changes, const std::vector<double>& relief_ns,
                                 const Replayed& after) const {
  using namespace prediction_parts;
  const std::vector<std::size_t> indices = steady();
  const Replayed& before = base_of(changes);
  const auto base = chosen(before.iteration_ns, indices), fresh = chosen(after.iteration_ns, indices);
  Prediction out;
  out.ratio = mean(fresh) / std::max(mean(base), 1e-9);
  out.step_s = measured_s_ * out.ratio;
  out.median_s = median_s_ * median(fresh) / std::max(median(base), 1e-9);
  const double ranks = static_cast<double>(program_.ranks);
  out.per_image = out.ratio / (changes.batch * (changes.ranks ? *changes.ranks / ranks : 1));
  std::vector<double> measured;
  for (const std::size_t i : indices) measured.push_back(program_.iterations[i].recorded_ns);
  const bool shares_cores = &before != &base_ && sharing_.any();
  if (const auto error = learned_error(changes, schedule_, setup_.bytes_per_value, out.ratio, shares_cores)) {
    if (const auto of = factor_interval(measured, base, fresh, relief_ns, *error)) {
      out.ci95 = Interval{out.step_s * of->factor.low, out.step_s * of->factor.high};
      out.ci95_of_change = of->of_change;
    }
  } else {
    out.error_unknown = true;
  }
  out.alters_training = changes.bytes_per_value.value_or(setup_.bytes_per_value) < setup_.bytes_per_value ||
                        (changes.schedule == GradientSchedule::double_buffering && schedule_ != changes.schedule) ||
                        changes.batch != 1 || changes.ranks;
  out.moved = moved_parts(mean_of(before.parts, indices), mean_of(after.parts, indices), measured_s_);
  return out;
}

}  // namespace paceline::analysis
