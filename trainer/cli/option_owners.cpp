#include "trainer/cli/option_owners.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>

namespace paceline::train {
namespace {

const std::vector<OptionOwner>& owners() {
  static const std::vector<OptionOwner> all = [] {
    std::vector<OptionOwner> table;
    const auto add = [&](const std::vector<std::string>& keys, const std::string& owner,
                         const std::vector<std::string>& values, bool others = false) {
      for (const std::string& key : keys) table.push_back({key, owner, values, others});
    };
    add({"nesterov", "rate-position"}, "optimizer", {"sgd"});
    add({"momentum"}, "optimizer", {"sgd", "lars", "rmsprop_warmup"});
    add({"lars-trust", "lars-threshold"}, "optimizer", {"lars"});
    add({"beta1", "beta2"}, "optimizer", {"adam"});
    add({"epsilon"}, "optimizer", {"adam", "rmsprop_warmup"});
    add({"rms-decay", "rms-lr", "rms-center", "rms-period", "rms-printed-slope"}, "optimizer", {"rmsprop_warmup"});
    add({"lr-steps", "lr-factor"}, "schedule", {"step"});
    add({"poly-power"}, "schedule", {"poly"});
    add({"warmup-epochs", "warmup-lr"}, "warmup", {"constant", "gradual"});
    add({"base-batch"}, "lr-scaling", {"linear", "sqrt"});
    add({"base-batch"}, "regime-adaptation", {"true"});
    add({"bucket-mb"}, "updater", {"overlap"});
    add({"max-ahead"}, "updater", {"parameter_server"});
    add({"share-gpu", "cuda-graphs", "no-fusion", "plan-cache", "nccl-ctas", "registered-buffers"}, "device",
        {"cuda", "auto"});
    add({"zero-gamma"}, "model", {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"});
    add({"resnet-v1"}, "model", {"resnet50", "resnet101", "resnet152"});  // the others have no bottlenecks
    add({"freeze-batch-norm", "sync-batch-norm", "ghost-batch", "batch-norm-statistics"}, "model",
        {"vgg11", "vgg13", "vgg16", "vgg19"}, true);
    add({"train-images", "test-images"}, "synthetic", {"true"});
    add({"resize", "fraction", "broadcast-data", "on-bad-image"}, "synthetic", {"false"});
    return table;
  }();
  return all;
}

}  // namespace

bool OptionOwner::suits(const std::string& value) const { return (std::ranges::count(values, value) > 0) != others; }

std::string OptionOwner::refusal(const std::string& value) const {
  if (owner == "synthetic" && value == "true") return "is of --data, not of --synthetic";
  if (value == "false") return "is of --" + owner;
  if (others) return fmt::format("does nothing with --{} {}", owner, value);
  return fmt::format("is of --{} {}, not of {}", owner, fmt::join(values, ", "), value);
}

std::vector<const OptionOwner*> owners_of(const std::string& key) {
  std::vector<const OptionOwner*> found;
  for (const OptionOwner& owner : owners()) {
    if (owner.key == key) found.push_back(&owner);
  }
  return found;
}

std::string idle(const CLI::App& app, const CLI::Option& option) {
  if (option.get_lnames().empty()) return {};
  std::vector<std::string> refusals;
  for (const OptionOwner* owner : owners_of(option.get_lnames().front())) {
    const CLI::Option& other = *app.get_option("--" + owner->owner);
    const bool is_switch = other.get_items_expected_max() == 0;
    const std::string value = is_switch           ? (other.count() > 0 && other.as<bool>() ? "true" : "false")
                              : other.count() > 0 ? other.results().front()
                                                  : other.get_default_str();
    if (owner->suits(value)) return {};
    refusals.push_back(owner->refusal(value));
  }
  return fmt::format("{}", fmt::join(refusals, ", or "));
}

}  // namespace paceline::train
