// SPDX-License-Identifier: Apache-2.0
// How predictions are written: the table and the JSON of `paceline whatif` and of the report.
#pragma once

#include <string>

#include "analysis/graph/prediction.h"
#include "analysis/report/section.h"

namespace paceline::analysis {

// " It alters the training, so check the accuracy." where the change does; otherwise "".
std::string training_note(const Prediction& prediction);

// "double buffering (check the accuracy)"; the title alone where the change does not alter the training.
std::string marked_title(const Prediction& prediction);

Table prediction_table(const WhatIf& what_if);
Json predictions_json(const WhatIf& what_if);

// The same for `paceline whatif RUN`. `run` is the name that the user gave.
std::string render_what_if_text(const WhatIf& what_if, const std::string& run);
std::string render_what_if_json(const WhatIf& what_if, const std::string& run);

}  // namespace paceline::analysis
