// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/cause_text.h"

#include <algorithm>

#include "analysis/report/values.h"
#include "analysis/text/lists.h"
#include "analysis/text/numbers.h"
#include "analysis/trace/stack_frames.h"

namespace paceline::analysis {
namespace cause_text_parts {

constexpr double much = 0.02;              // of the wall time
constexpr double most_of_loss = 0.5;       // a cause below that is not named alone
constexpr double most_of_cause = 2.0 / 3;  // a function or range that explains so much of a cause is its place
constexpr double much_used = 0.5;          // of the ranks' CPUs by their own threads
constexpr double least_of_two = 0.3, most_of_two = 0.65, nearly_all = 0.9;

double in_seconds(double ns) { return 1e-9 * ns; }

double cpu_ns(const LossParts& parts) { return parts[LossCause::no_cpu] + parts[LossCause::throttled]; }

// Waiting for a CPU and being throttled together, under the name of the larger one.
LossParts merged_cpu(LossParts parts) {
  const double cpu = cpu_ns(parts);
  const LossCause name =
      parts[LossCause::throttled] > parts[LossCause::no_cpu] ? LossCause::throttled : LossCause::no_cpu;
  parts[LossCause::no_cpu] = parts[LossCause::throttled] = 0;
  parts[name] = cpu;
  return parts;
}

LossCause largest(const LossParts& parts) {
  return static_cast<LossCause>(std::ranges::max_element(parts.ns) - parts.ns.begin());
}

// What a thread did, after "it" or "the ranks".
std::string predicate(LossCause cause, bool several) {
  const char* const were = several ? "were" : "was";
  switch (cause) {
    case LossCause::moving_bytes:
      return "transferred bytes";
    case LossCause::no_cpu:
      return "had no CPU";
    case LossCause::throttled:
      return fmt::format("{} stopped by the CPU limit of the control group", were);
    case LossCause::page_faults:
      return "waited for major page faults";
    case LossCause::input_output:
      return "waited for input or output";
    case LossCause::blocked:
      return fmt::format("{} blocked", were);
    case LossCause::collecting:
      return "collected garbage";
    case LossCause::computing:
      return "computed longer";
    case LossCause::unknown:
      break;
  }
  return "";
}

// What a thread did, after "mostly".
const char* participle(LossCause cause) {
  constexpr const char* names[] = {"transferring bytes",
                                   "without a CPU",
                                   "stopped by the CPU limit",
                                   "waiting for major page faults",
                                   "waiting for input or output",
                                   "blocked",
                                   "collecting garbage",
                                   "computing longer",
                                   ""};
  return names[static_cast<std::size_t>(cause)];
}

// "load (train.py:41)"
std::string function_text(const CauseFunction& function) {
  if (function.innermost.empty() && !function.call_file.empty()) {
    return fmt::format("{} ({})", function.function, function.call_file);
  }
  if (function.file.empty()) return function.function;
  const std::string name = function.file.substr(function.file.rfind('/') + 1);
  return function.line > 0 ? fmt::format("{} ({}:{})", function.function, name, function.line)
                           : fmt::format("{} ({})", function.function, name);
}

// Whom the samples name by the call, not by the function that waits: "Python's lock, held by load".
bool is_lock(LossCause cause, const CauseFunction& function) {
  return is_sleep(cause) && function.call_file.starts_with("Python's lock");
}

// The largest cause and its share. Sleep of several kinds counts together where no kind explains the loss alone.
struct MainPart {
  LossCause cause = LossCause::unknown;
  double share = 0;
};

// " in the function load (train.py:41)", " on Python's lock, held by load", else " in the range load" or " after the
// range load"; only for what a thread did itself.
std::string place_text(const MainPart& main, const std::optional<CausePlace>& place,
                       const std::optional<CauseFunction>& function) {
  const auto& [cause, share] = main;
  const double clear = std::min(most_of_loss, most_of_cause * share);
  if (!is_sleep(cause) && cause != LossCause::computing) return "";
  if (function && function->share >= clear) {
    return is_lock(cause, *function) ? " on " + function->call_file : " in the function " + function_text(*function);
  }
  if (place && place->cause == cause && place->share >= clear) {
    return (place->after ? " after the range " : " in the range ") + place->range;
  }
  return "";
}

// ", in the function load (train.py:41), which called read (/data/x)"
std::string whole_place_text(const MainPart& main, const std::optional<CausePlace>& place,
                             const std::optional<CauseFunction>& function) {
  std::string text = place_text(main, place, function);
  if (text.empty()) return text;
  if (text.starts_with(" on ")) return text + ", in the function " + function_text(*function);
  const bool called = is_sleep(main.cause) || (function && system_call(function->innermost).empty());
  if (called && text.starts_with(" in the function ") && !function->innermost.empty()) {
    text += fmt::format(", which called {}", function->innermost);
    if (!function->call_file.empty()) text += fmt::format(" ({})", function->call_file);
  }
  return "," + text;
}

MainPart main_part(const LossParts& parts) {
  MainPart main{.cause = largest(parts)};
  double part = parts[main.cause];
  const double slept = parts[LossCause::page_faults] + parts[LossCause::input_output] + parts[LossCause::blocked];
  if (is_sleep(main.cause) && part < most_of_loss * parts.sum() && part < nearly_all * slept) {
    main.cause = LossCause::blocked;
    part = slept;
  }
  main.share = parts.sum() > 0 ? part / parts.sum() : 0;
  return main;
}

// ", mostly blocked in the function load (train.py:41)"; only the function where no cause explains half of the loss,
// and "" where it does not either.
std::string mostly_text(const LossParts& parts, const std::optional<CausePlace>& place,
                        const std::optional<CauseFunction>& function) {
  const MainPart main = main_part(parts);
  if (main.cause == LossCause::unknown || main.share < most_of_loss) {
    const std::string where = place_text({main.cause, 1}, place, function);
    return where.starts_with(" in the function ") ? ", mostly" + where : "";
  }
  return fmt::format(", mostly {}{}", participle(main.cause), place_text(main, place, function));
}

// What others waited for this rank because of what it did itself: it is not late for a transfer that ended later there.
LossParts own_parts(const RankCauses& causes) {
  LossParts parts = causes.caused;
  parts[LossCause::moving_bytes] = 0;
  return parts;
}

// `who` lost it: "it", "rank 1" or "the ranks".
std::string share_text(const LossParts& parts, const std::string& who, const std::optional<CausePlace>& place,
                       const std::optional<CauseFunction>& function) {
  const bool several = who == "the ranks";
  const MainPart main = main_part(parts);
  const auto& [cause, share] = main;
  const std::string what = predicate(cause, several);
  if (what.empty()) return "";
  if (share >= most_of_loss) {
    return fmt::format(", for {} of that {} {}{}", percent(share), who, what, whole_place_text(main, place, function));
  }
  // Two causes that are most of it together.
  LossParts rest = parts;
  rest[cause] = 0;
  if (is_sleep(cause)) rest[LossCause::page_faults] = rest[LossCause::input_output] = rest[LossCause::blocked] = 0;
  const LossCause second = largest(rest);
  const double other = rest[second] / parts.sum();
  const std::string also = predicate(second, several);
  if (share < least_of_two || also.empty() || share + other < most_of_two) return "";
  return fmt::format(", for {} of that {} {}{}, and for {} {} {}", percent(share), who, what,
                     whole_place_text(main, place, function), percent(other), who, also);
}

// The programs that had the CPUs; nullptr where their time does not explain at least half of what a rank lost.
const OtherProgram* blamed_program(const RunAnalysis& run) {
  const auto loss = main_loss(run);
  const auto& other = run.causes->other_program;
  const bool explains =
      loss && loss->cause == LossCause::no_cpu && other && other->all_s >= most_of_loss * loss->seconds;
  return explains ? &*other : nullptr;
}

// With the others, where it did not use nearly all of what they used together.
std::string programs_text(const OtherProgram& other) {
  return other.name + (other.cpu_s < nearly_all * other.all_s ? " and others" : "");
}

double wall_s(const RunAnalysis& run) { return in_seconds(static_cast<double>(run.wall_ns)); }

}  // namespace cause_text_parts

std::string cause_name(LossCause cause) {
  constexpr const char* names[] = {"bytes moving",       "no CPU",       "CPU limit",
                                   "major page faults",  "input/output", "blocked",
                                   "garbage collection", "computing",    "unknown"};
  return names[static_cast<std::size_t>(cause)];
}

std::optional<MainLoss> main_loss(const RunAnalysis& run) {
  using namespace cause_text_parts;
  if (!run.causes) return std::nullopt;
  const LossParts mean = merged_cpu(run.causes->mean());
  // A step is shorter by all that a late rank is late, and only the others lose that. What all ranks do at the same
  // time, such as writing a file, is lost in no collective, but in slow iterations.
  const auto ranks = static_cast<double>(run.causes->ranks.size());
  LossParts saved = run.causes->mean();
  for (const RankCauses& rank : run.causes->ranks) {
    if (ranks > 1) saved.add(rank.waiting, 1 / ranks / (ranks - 1));
  }
  saved = merged_cpu(saved);
  if (const auto& slow = run.causes->slow) {
    const LossParts of_slow = merged_cpu(slow->parts);
    for (std::size_t i = 0; i < loss_cause_count; ++i) saved.ns[i] = std::max(saved.ns[i], of_slow.ns[i]);
  }
  const LossCause cause = largest(saved);
  const double ns = mean[cause] > 0 ? mean[cause] : saved[cause];
  const MainLoss loss{cause, in_seconds(ns)};
  if (loss.seconds < much * wall_s(run)) return std::nullopt;
  return loss;
}

bool is_starved(const RunAnalysis& run) {
  const auto loss = main_loss(run);
  return loss && loss->is_cpu();
}

bool is_starved_as_others(const RunAnalysis& run, std::size_t rank) {
  using namespace cause_text_parts;
  const auto& ranks = run.causes->ranks;
  const auto other_ranks = static_cast<double>(ranks.size() - 1);
  const LossParts caused = own_parts(ranks[rank]);
  double otherwise = caused.sum() - cpu_ns(caused) - caused[LossCause::unknown];
  // Threads that share a core, or the caches behind it, compute longer, too.
  const double computing = caused[LossCause::computing];
  const auto loss = main_loss(run);
  if (loss && in_seconds(computing) < most_of_loss * loss->seconds * other_ranks) otherwise -= computing;
  if (otherwise >= most_of_loss * caused.sum()) return false;
  const double own_ns = cpu_ns(ranks[rank].own);
  double others_ns = 0;
  for (const RankCauses& of : ranks) others_ns += cpu_ns(of.own);
  others_ns = (others_ns - own_ns) / other_ranks;
  return in_seconds(others_ns) >= much * wall_s(run) || others_ns >= least_of_two * own_ns;
}

std::string starved_cost_text(const RunAnalysis& run) {
  using namespace cause_text_parts;
  const MainLoss loss = *main_loss(run);
  return fmt::format(
      "{} cost a rank {} ({} of the wall time)",
      loss.cause == LossCause::throttled ? "the CPU limit of the control group" : "threads that had no CPU",
      seconds(loss.seconds), percent(loss.seconds / wall_s(run)));
}

std::string other_program_text(const RunAnalysis& run) {
  const OtherProgram* other = cause_text_parts::blamed_program(run);
  return other == nullptr ? ""
                          : fmt::format(", while the program {} used {} of CPU time",
                                        cause_text_parts::programs_text(*other), seconds(other->all_s));
}

std::string starved_text(const RunAnalysis& run) {
  using namespace cause_text_parts;
  const MainLoss loss = *main_loss(run);
  std::string text = starved_cost_text(run);
  const auto& slow = run.causes->slow;
  const double share = slow ? in_seconds(cpu_ns(slow->parts)) / loss.seconds : 0;
  if (share >= most_of_loss) {
    text += fmt::format(", {} of it in {} {}", percent(std::min(share, 1.0)),
                        slow->numbers.size() == 1 ? "iteration" : "iterations", number_list(slow->numbers));
  }
  text += other_program_text(run);
  if (run.ranks > 1 && any_timed(run.collectives)) text += "; the network was not the limit";
  return text;
}

std::string starved_remedy(const RunAnalysis& run) {
  using namespace cause_text_parts;
  if (main_loss(run)->cause == LossCause::throttled) {
    return "a higher limit (docker `--cpus`, Kubernetes `resources.limits.cpu`), or fewer threads";
  }
  if (const OtherProgram* other = blamed_program(run)) {
    return fmt::format("CPUs that {} {} not use, or fewer threads per rank", programs_text(*other),
                       other->cpu_s >= nearly_all * other->all_s ? "does" : "do");
  }
  if (run.crowded_cpus.empty() && run.causes->used_cpus >= much_used) {
    return fmt::format("more CPUs for the ranks, whose own threads used {} of theirs, or fewer threads per rank",
                       percent(run.causes->used_cpus));
  }
  if (run.crowded_cpus.empty()) {
    return "CPUs that no other program uses (see `top`), or fewer threads";
  }
  return run.crowded_cpus.front().bound
             ? "CPUs of its own for each rank, or ranks that are bound to none (`mpirun --bind-to none`)"
             : "no more ranks on a host than it has CPUs for them";
}

std::string lateness_cause_text(const RankCauses& causes) {
  return cause_text_parts::share_text(cause_text_parts::own_parts(causes), "it", causes.place, causes.function);
}

std::string main_cause_of_lateness(const RankCauses& causes) {
  return cause_text_parts::mostly_text(cause_text_parts::own_parts(causes), causes.place, causes.function);
}

const LongerCauses* slow_iterations(const RunAnalysis& run) {
  using namespace cause_text_parts;
  if (!run.causes || !run.causes->slow) return nullptr;
  const LongerCauses& slow = *run.causes->slow;
  return in_seconds(slow.excess_ns) < much * wall_s(run) ? nullptr : &slow;
}

std::string slow_iterations_text(const LongerCauses& slow, SlowText length) {
  using namespace cause_text_parts;
  constexpr std::size_t few = 3;
  const std::size_t count = slow.numbers.size();
  const std::string which = count > few && length >= SlowText::counted
                                ? fmt::format("{} iterations", count)
                                : (count == 1 ? "iteration " : "iterations ") + number_list(slow.numbers);
  const std::string rank = slow.rank && length < SlowText::without_rank ? fmt::format("rank {}", *slow.rank) : "";
  std::string why;
  if (length == SlowText::whole) {
    why = share_text(slow.parts, rank.empty() ? "the ranks" : rank, slow.place, slow.function);
  } else if (length < SlowText::without_cause) {
    why = mostly_text(slow.parts, slow.place, slow.function);
    if (!why.empty() && !rank.empty()) why += " on " + rank;
  }
  return fmt::format("{} took {} longer{}{}", which, seconds(in_seconds(slow.excess_ns)), count == 1 ? "" : " in all",
                     why);
}

}  // namespace paceline::analysis
