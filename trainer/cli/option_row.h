// SPDX-License-Identifier: Apache-2.0
// What is known about an option of training beside its value: its help topic, the options beside which it has an
// effect, and how ranks and resumed runs treat it.
#pragma once

#include <string>
#include <vector>

namespace paceline::train {

// Another option that decides whether an option has an effect: --poly-power only has one with --schedule poly.
struct OptionOwner {
  std::string owner;  // key of the other option
  std::vector<std::string> values;
  bool others = false;  // false: the option has an effect with these values; true: with all other values

  bool suits(const std::string& value) const;
  std::string refusal(const std::string& value) const;  // e.g. "only applies to --schedule poly, not to cosine"
};

enum class Topic { run, data, model, optimizer, schedule, batch_norm, parallel, device, output };

enum class SameOnRanks { yes, no, all_or_none };

struct OptionRow {
  const char* key = nullptr;  // the long name without dashes
  Topic topic = Topic::run;
  // An option has an effect beside any one of its owners; without owners it always has.
  std::vector<OptionOwner> owners{};
  SameOnRanks same = SameOnRanks::yes;  // all_or_none: either all ranks have it or none, with any value
  bool learning = true;  // decides what is learned or how fast: a resumed run with another value is another run
  bool setting = true;   // --show-config prints it
  bool command_line_only = false;  // not allowed in settings files and presets
};

}  // namespace paceline::train
