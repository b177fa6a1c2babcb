// SPDX-License-Identifier: Apache-2.0
// Rewrites CLI11's error messages: one line that names the option and what to write instead.
#pragma once

#include <string>

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace paceline::train {

std::string explain(const CLI::ParseError& error, const CLI::App& app);

// " (did you mean --batch-size?)" for "batch_size" or "batch"; empty if no option is similar. dashes: printed before
// names.
std::string suggestion(const std::string& key, const CLI::App& app, const char* dashes = "--");

}  // namespace paceline::train
