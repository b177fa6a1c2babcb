// SPDX-License-Identifier: Apache-2.0
#include "trainer/cli/option_row.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace paceline::train {

bool OptionOwner::suits(const std::string& value) const { return (std::ranges::count(values, value) > 0) != others; }

std::string OptionOwner::refusal(const std::string& value) const {
  if (owner == "synthetic" && value == "true") return "only applies to --data, not to --synthetic";
  if (value == "false") return "only applies to --" + owner;
  if (others) return fmt::format("has no effect with --{} {}", owner, value);
  return fmt::format("only applies to --{} {}, not to {}", owner, fmt::join(values, ", "), value);
}

}  // namespace paceline::train
