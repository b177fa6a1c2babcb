// SPDX-License-Identifier: Apache-2.0
// The changes that pay: what each cause of a lost speed-up takes, and what the predictions gain.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analysis/report/report.h"
#include "analysis/report/section.h"

namespace paceline::analysis {

// The time that N ranks take beyond a perfect division, in seconds of a rank. The parts add up to it; one below 0 is
// time that was won.
struct LostTimeParts {
  double serial_s = 0, transfer_s = 0, waiting_s = 0, slower_work_s = 0;
  double no_cpu_s = 0;  // of the last three, while threads had no CPU
};
LostTimeParts lost_parts(const Report& report, const LostTime& lost);

// A cause of the time that N ranks take beyond a perfect division, and what to do about it.
struct LostCause {
  std::string name;  // "serial work, mostly startup"
  double seconds = 0;
  std::string remedy;      // a noun phrase: "a shorter start-up, or longer runs"
  bool predicted = false;  // what-if has better figures for what a change of it brings
};

// Those above 0, the largest first.
std::vector<LostCause> lost_causes(const Report& report, const LostTime& lost);

// The speed-up if `seconds` of the N ranks' time were gone. nullopt where nothing would be left.
std::optional<double> speed_up_without(const Report& report, const LostTime& lost, double seconds);

// The prediction to try first among those that do the same work for the same images, and whose interval shows that a
// step becomes shorter, or that relieve the rank or host that holds the others up in a run too short for an interval.
// It is the relief of the rank or host that holds the others up if that gains at least half of
// what the best one gains. Else it is the best change that keeps the results of training and the machine, by the same
// rule; else the best one. Faster layers and kernels are none of them. Relief of a rank or host and equal ranks only
// count where one is late beyond chance. nullptr where there is none, and where the run lacked CPUs most.
const Prediction* first_prediction(const RunAnalysis& run);
// The predictions of a run that has some, the first one at the top, with a note on their order.
WhatIf first_change_first(const RunAnalysis& run);
// The prediction of the shortest step among changes of other kinds that do the same work; nullptr where none gains.
const Prediction* best_uncertain(const RunAnalysis& run);
// The relief of a rank, or ranks with equal work, that shortens a step most; nullptr where none of them shortens it.
const Prediction* best_relief(const RunAnalysis& run);
// The faster layers or kernels that shorten a step most; nullptr where none do.
const Prediction* best_faster_work(const RunAnalysis& run);
// What the prediction saves of the run's time, in seconds.
double gain_s(const RunAnalysis& run, const Prediction& prediction);

// The tables of the section, most important first.
std::vector<Table> change_tables(const Report& report);

}  // namespace paceline::analysis
