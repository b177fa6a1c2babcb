// SPDX-License-Identifier: Apache-2.0
#include "analysis/report/glossary.h"

#include <map>

namespace paceline::analysis {
namespace glossary_parts {

constexpr Definition definitions[] = {
    {"accuracy", "accuracy, time to target",
     "The share of test images that the trained model classifies correctly, and the time after which the target was "
     "reached for the first time."},
    {"amdahl", "Amdahl's law",
     "If a share s of the work stays the same on any number of ranks, N ranks are at most 1/(s + (1 − s)/N) times as "
     "fast as one, and no number of ranks is more than 1/s times as fast."},
    {"bandwidth", "algorithm and bus bandwidth",
     "Bytes ÷ transfer time of a collective, without waiting. The bus bandwidth multiplies that by what the operation "
     "sends over each link (for an allreduce on n ranks 2(n − 1)/n), so that it can be compared with the rated speed "
     "of a "
     "link."},
    {"collective", "collective",
     "A call that all ranks of a group make together, such as an allreduce. It ends only after the last rank has "
     "come."},
    {"cost", "cost of a reason",
     "The seconds of wall time that it takes a rank, as the mean over the ranks. One second can have several reasons: "
     "waiting for a slow rank is communication as well. Costs must not be added."},
    {"counts-as", "parallel, serial, overhead",
     "Parallel time becomes 1/N of itself on N ranks. Serial time stays. Overhead (communication and waiting) appears "
     "only with more than one rank. Together they are the wall time, exactly."},
    {"critical-path", "critical path, slack",
     "The chain of work and transfers through all ranks that decided how long the iterations took. Only a change on it "
     "makes a step shorter. The slack of a rank is how much longer it could have taken before it came onto the path."},
    {"efficiency", "efficiency E(N)", "Speed-up ÷ ranks. 100 % is a perfect division of the work."},
    {"gustafson", "weak scaling, Gustafson's law",
     "The work grows with the ranks. The weak efficiency is T(1) ÷ T(N), and the scaled speed-up is N times that. "
     "Gustafson's law makes it N − s(N − 1), where s is the share of the time that stays."},
    {"interval", "95 % interval",
     "The range that holds the true value in 95 of 100 cases, as far as the noise of the runs is known. It comes from "
     "three or more repeats or from the iterations of one run."},
    {"iteration", "iteration, step",
     "One training step on one batch: input, forward, backward, communication, optimizer. Its time is the mean over "
     "the "
     "ranks."},
    {"karp-flatt", "Karp–Flatt e(N)",
     "The serial share that one measured speed-up implies: (1/S − 1/N)/(1 − 1/N). If it rises with N, communication "
     "and waiting grow. If it stays the same, serial work limits the speed-up."},
    {"lateness", "lateness, last in, made others wait",
     "How much later than the median rank a rank arrives at the collectives of a step. A rank is called slow only if a "
     "test shows that chance does not explain its lateness."},
    {"long-runs", "time model, speed-up of long runs",
     "A run takes a fixed time before and beside training plus a time for each epoch. In long runs the fixed time no "
     "longer matters, and the speed-up tends to the ratio of the times of an epoch."},
    {"phase", "phase",
     "What the main thread of a rank does: start-up, preprocessing (waiting for input), forward, backward, optimizer, "
     "communication, evaluation, checkpoint, copy, launch, idle, other. The phases of a rank add up to its wall time."},
    {"prediction", "prediction, what if",
     "The recorded run is replayed with a change, and the report gives the step time that results. `paceline whatif` "
     "computes any combination of them. \"Bound\" marks what no change of the program reaches."},
    {"perfect-division", "T(1)/N, a perfect division",
     "The time of the 1-rank run ÷ N: what N ranks would take if "
     "nothing were lost."},
    {"serial-share", "serial share s",
     "The share of the 1-rank run that more ranks do not shorten. By Amdahl's law it comes from total times, and so it "
     "includes communication, waiting and work that became slower. Measured, it comes from the breakdown of the 1-rank "
     "run and is only the serial work itself."},
    {"slower-work", "slower parallel work",
     "Work that is divided among the ranks but takes longer for the same images than on one rank, for example because "
     "ranks share cores, caches or memory. Below 0, it took less time."},
    {"speed-up", "speed-up S(N)", "The time of the 1-rank run ÷ the time of the run on N ranks, for the same work."},
    {"spread", "σ in a table of times", "The standard deviation of the times."},
    {"steady", "steady, warm-up",
     "Steady figures leave out the warm-up: the first tenth of the iterations, at least one."},
    {"throughput", "throughput", "Images that all ranks together train in a second."},
    {"transfer", "transfer", "The part of communication after the last rank has come: bytes that move."},
    {"useful", "useful work, parallel efficiency, load balance",
     "Useful is everything in an iteration but communication and idle time. The parallel efficiency is its share of "
     "the "
     "time of the iterations: the load balance (mean ÷ largest useful time) × the communication efficiency (largest "
     "useful time ÷ time). 80 % is called acceptable."},
    {"usl", "Universal Scalability Law",
     "Speed-up = N/(1 + σ(N − 1) + κN(N − 1)): σ is contention for something shared, κ the cost of keeping ranks "
     "consistent. With κ above 0 there is a number of ranks beyond which more ranks are slower."},
    {"waiting", "waiting", "The part of communication in which a rank waits for the last one to come."},
    {"wall-time", "wall time, T(N)", "The time of the whole job by the clock, from its start to its end."},
};

const std::map<std::string_view, std::string_view> ids = {
    {"accuracy", "accuracy"},
    {"time to target", "accuracy"},
    {"limit 1/s", "amdahl"},
    {"algorithm bandwidth", "bandwidth"},
    {"bus bandwidth", "bandwidth"},
    {"operation", "collective"},
    {"costs", "cost"},
    {"counts as", "counts-as"},
    {"on the path", "critical-path"},
    {"E(N)", "efficiency"},
    {"95 % interval", "interval"},
    {"iterations", "iteration"},
    {"step", "iteration"},
    {"Karp–Flatt", "karp-flatt"},
    {"made others wait", "lateness"},
    {"last in", "lateness"},
    {"fixed", "long-runs"},
    {"an epoch", "long-runs"},
    {"S of long runs", "long-runs"},
    {"phase", "phase"},
    {"change of the step", "prediction"},
    {"change", "prediction"},
    {"T(1)/N", "perfect-division"},
    {"ideal", "perfect-division"},
    {"s", "serial-share"},
    {"serial work", "serial-share"},
    {"slower parallel work", "slower-work"},
    {"S(N)", "speed-up"},
    {"S without it", "speed-up"},
    {"measured", "speed-up"},
    {"σ", "spread"},
    {"throughput", "throughput"},
    {"communication: transfer", "transfer"},
    {"transfer", "transfer"},
    {"transfer in all", "transfer"},
    {"efficiency", "useful"},
    {"σ contention", "usl"},
    {"κ coherency", "usl"},
    {"peak, ranks", "usl"},
    {"communication: waiting", "waiting"},
    {"of it waiting", "waiting"},
    {"wait a rank", "waiting"},
    {"waited for others", "waiting"},
    {"T(N)", "wall-time"},
    {"time", "wall-time"},
    {"wall", "wall-time"},
};

}  // namespace glossary_parts

std::span<const Definition> glossary() { return glossary_parts::definitions; }

std::string_view definition_id(std::string_view heading) {
  const auto found = glossary_parts::ids.find(heading);
  return found == glossary_parts::ids.end() ? std::string_view() : found->second;
}

}  // namespace paceline::analysis
