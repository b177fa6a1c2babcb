// Options that do something only beside certain values of another one, their owner: --poly-power is of --schedule poly.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace paceline::train {

struct OptionOwner {
  std::string key, owner;  // long names without dashes
  std::vector<std::string> values;
  bool others = false;  // `values` are those beside which it does nothing

  bool suits(const std::string& value) const;
  std::string refusal(const std::string& value) const;  // e.g. "is of --schedule poly, not of cosine"
};

// It does something beside any one of these; empty for an option that always does.
std::vector<const OptionOwner*> owners_of(const std::string& key);

// Why the option does nothing beside what its owners have in `app`, after parsing: a refusal. Empty where it does
// something.
std::string idle(const CLI::App& app, const CLI::Option& option);

}  // namespace paceline::train
