// SPDX-License-Identifier: Apache-2.0
// Sorts runs into points (repeats of one measurement) and points into classes of equal work.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "analysis/scaling/scaling.h"

namespace paceline::analysis {

bool equal_within_1_percent(double a, double b);

// Points by epochs, images and ranks, each with its spread and its class of work. n log n in the number of runs.
void group_runs(Scaling& scaling, const std::vector<ScalingRun>& runs, const ScalingOptions& options);

// Numbers the classes of ascending values 0, 1, …: a value that is more than 1 % above the first of its class starts a
// new class. The result has one entry for each value.
std::vector<std::size_t> classes_of(std::span<const double> values);

// The columns in which two series differ. One rank uses no communicator, so the communicator is not compared if `from`
// has one rank.
std::vector<Difference> differences_between(const ScalingPoint& from, const ScalingPoint& to);

// A text that identifies the series; `without_communicator` for the series of one rank.
std::string series_key(const Columns& series, bool without_communicator);

}  // namespace paceline::analysis
