// Whether a run's state may be kept: a checkpoint with numbers that are not finite is worth less than none.
#pragma once

#include <span>
#include <string>

#include "trainer/nn/model.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train {

// Whether no value is an infinity or a NaN. One pass over the values, without a branch for each.
bool all_finite(std::span<const float> values);

// Names the first part of the state that holds a value that is not finite: a parameter's weights, the running
// statistics, the optimizer's state of a parameter, the pending gradient. Empty where all values are finite.
std::string first_nonfinite_part(Model& model, Optimizer& optimizer, std::span<const float> pending);

}  // namespace paceline::train
