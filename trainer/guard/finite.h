// SPDX-License-Identifier: Apache-2.0
// Checks that a run's state is finite before a checkpoint keeps it.
#pragma once

#include <span>
#include <string>

#include "trainer/nn/model.h"
#include "trainer/optim/optimizer.h"

namespace paceline::train {

// Whether no value is an infinity or a NaN. One pass over the values, without a branch for each.
bool all_finite(std::span<const float> values);

// Names the first part of the state with a value that is not finite: a parameter's weights, the running statistics, the
// optimizer's state of a parameter, or the pending gradient. Empty if all values are finite.
std::string first_nonfinite_part(Model& model, Optimizer& optimizer, std::span<const float> pending);

}  // namespace paceline::train
