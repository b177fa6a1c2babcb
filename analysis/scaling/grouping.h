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

// Numbers 0, 1, … for values in ascending order: a new number where a value is more than 1 % above the first of its
// class. `order` holds indexes sorted by value; the result is indexed as `values` is.
std::vector<std::size_t> classes_of(std::span<const double> values);

// What differs between two series. One rank uses no communicator, so where `from` has one rank, it is not compared.
std::vector<Difference> differences_between(const ScalingPoint& from, const ScalingPoint& to);

// One text for each series; `without_communicator` as the series of one rank has it.
std::string series_key(const Columns& series, bool without_communicator);

}  // namespace paceline::analysis
