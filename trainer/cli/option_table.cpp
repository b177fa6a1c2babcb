#include "trainer/cli/option_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "trainer/updaters/kinds.h"

namespace paceline::train {
namespace option_table_rows {
namespace {

std::vector<OptionRow> make_rows() {
  using enum Topic;
  using enum SameOnRanks;
  const OptionOwner on_gpu{"device", {"cuda", "auto"}};
  const OptionOwner has_batch_norms{"model", {"vgg11", "vgg13", "vgg16", "vgg19"}, true};
  OptionOwner clips{"updater", {}, true};
  std::vector<OptionRow> of_updaters;
  for (const UpdaterKind* kind : updater_kinds()) {
    if (!kind->clips) clips.values.emplace_back(kind->name);
    for (const UpdaterOption& option : kind->options) {
      of_updaters.push_back({.key = option.key, .topic = parallel, .owners = {{"updater", {kind->name}}}});
    }
  }
  std::vector<OptionRow> rows{
      {.key = "model", .topic = run},
      {.key = "data", .topic = run, .same = no},
      {.key = "synthetic", .topic = run, .learning = false},
      {.key = "batch-size", .topic = run},
      {.key = "epochs", .topic = run, .learning = false},
      {.key = "iterations", .topic = run, .learning = false},
      {.key = "threads", .topic = run, .same = no},
      {.key = "seed", .topic = run},
      {.key = "deterministic", .topic = run, .learning = false},
      {.key = "dtype", .topic = run},
      {.key = "lr", .topic = run},
      {.key = "preset", .topic = run, .learning = false, .setting = false},
      {.key = "config", .topic = run, .same = no, .setting = false, .command_line_only = true},
      {.key = "show-config", .topic = run, .learning = false, .setting = false, .command_line_only = true},
      {.key = "help", .topic = run, .same = no, .setting = false, .command_line_only = true},
      {.key = "version", .topic = run, .learning = false, .setting = false, .command_line_only = true},

      {.key = "image-size", .topic = data},
      {.key = "classes", .topic = data, .learning = false},
      {.key = "train-images", .topic = data, .owners = {{"synthetic", {"true"}}}},
      {.key = "test-images", .topic = data, .owners = {{"synthetic", {"true"}}}},
      {.key = "resize", .topic = data, .owners = {{"synthetic", {"false"}}}},
      {.key = "fraction", .topic = data, .owners = {{"synthetic", {"false"}}}},
      {.key = "augment", .topic = data},
      {.key = "sharding", .topic = data},
      {.key = "on-bad-image", .topic = data, .owners = {{"synthetic", {"false"}}}, .learning = false},
      {.key = "loader-workers", .topic = data, .same = no},
      {.key = "broadcast-data", .topic = data, .owners = {{"synthetic", {"false"}}}, .learning = false},

      {.key = "width", .topic = model},
      {.key = "import-weights", .topic = model},
      {.key = "resnet-v1", .topic = model, .owners = {{"model", {"resnet50", "resnet101", "resnet152"}}}},
      {.key = "zero-gamma",
       .topic = model,
       .owners = {{"model", {"resnet18", "resnet34", "resnet50", "resnet101", "resnet152"}}}},

      {.key = "optimizer", .topic = optimizer},
      {.key = "momentum", .topic = optimizer, .owners = {{"optimizer", {"sgd", "lars", "rmsprop_warmup"}}}},
      {.key = "nesterov", .topic = optimizer, .owners = {{"optimizer", {"sgd"}}}},
      {.key = "rate-position", .topic = optimizer, .owners = {{"optimizer", {"sgd"}}}},
      {.key = "weight-decay", .topic = optimizer},
      {.key = "decay-exclude", .topic = optimizer},
      {.key = "freeze", .topic = optimizer, .owners = {{"device", {"cpu"}}}},
      {.key = "clip-grad-norm", .topic = optimizer, .owners = {clips}},
      {.key = "label-smoothing", .topic = optimizer},
      {.key = "lars-trust", .topic = optimizer, .owners = {{"optimizer", {"lars"}}}},
      {.key = "lars-threshold", .topic = optimizer, .owners = {{"optimizer", {"lars"}}}},
      {.key = "beta1", .topic = optimizer, .owners = {{"optimizer", {"adam", "adamw"}}}},
      {.key = "beta2", .topic = optimizer, .owners = {{"optimizer", {"adam", "adamw"}}}},
      {.key = "epsilon", .topic = optimizer, .owners = {{"optimizer", {"adam", "adamw", "rmsprop_warmup"}}}},
      {.key = "rms-decay", .topic = optimizer, .owners = {{"optimizer", {"rmsprop_warmup"}}}},
      {.key = "rms-lr", .topic = optimizer, .owners = {{"optimizer", {"rmsprop_warmup"}}}},
      {.key = "rms-center", .topic = optimizer, .owners = {{"optimizer", {"rmsprop_warmup"}}}},
      {.key = "rms-period", .topic = optimizer, .owners = {{"optimizer", {"rmsprop_warmup"}}}},
      {.key = "rms-printed-slope", .topic = optimizer, .owners = {{"optimizer", {"rmsprop_warmup"}}}},

      {.key = "lr-scaling", .topic = schedule},
      {.key = "base-batch",
       .topic = schedule,
       .owners = {{"lr-scaling", {"linear", "sqrt"}}, {"regime-adaptation", {"true"}}}},
      {.key = "schedule", .topic = schedule},
      {.key = "lr-steps", .topic = schedule, .owners = {{"schedule", {"step"}}}},
      {.key = "lr-factor", .topic = schedule, .owners = {{"schedule", {"step"}}}},
      {.key = "poly-power", .topic = schedule, .owners = {{"schedule", {"poly"}}}},
      {.key = "warmup", .topic = schedule},
      {.key = "warmup-epochs", .topic = schedule, .owners = {{"warmup", {"constant", "gradual"}}}},
      {.key = "warmup-lr", .topic = schedule, .owners = {{"warmup", {"constant", "gradual"}}}},
      {.key = "regime-adaptation", .topic = schedule},
      {.key = "grow-batch", .topic = schedule},
      {.key = "grow-batch-limit", .topic = schedule},
      {.key = "accumulate", .topic = schedule},

      {.key = "freeze-batch-norm", .topic = batch_norm, .owners = {has_batch_norms}},
      {.key = "sync-batch-norm", .topic = batch_norm, .owners = {has_batch_norms}},
      {.key = "ghost-batch", .topic = batch_norm, .owners = {has_batch_norms}},
      {.key = "batch-norm-statistics", .topic = batch_norm, .owners = {has_batch_norms}},

      {.key = "communicator", .topic = parallel},
      {.key = "allreduce-dtype", .topic = parallel},
      {.key = "ring-order", .topic = parallel},
      {.key = "updater", .topic = parallel},
      {.key = "pipeline-stages", .topic = parallel, .learning = false},
      {.key = "microbatches", .topic = parallel},
      {.key = "pipeline-schedule", .topic = parallel, .owners = {{"pipeline-stages", {"1"}, true}}, .learning = false},
      {.key = "pipeline-split", .topic = parallel, .owners = {{"pipeline-stages", {"1"}, true}}, .learning = false},
      {.key = "fault", .topic = parallel},
      {.key = "nccl-ctas", .topic = parallel, .owners = {on_gpu}},
      {.key = "registered-buffers", .topic = parallel, .owners = {on_gpu}},
      {.key = "comm-timeout", .topic = parallel, .learning = false},

      {.key = "device", .topic = device},
      {.key = "share-gpu", .topic = device, .owners = {on_gpu}, .learning = false},
      {.key = "cuda-graphs", .topic = device, .owners = {on_gpu}},
      {.key = "no-fusion", .topic = device, .owners = {on_gpu}},
      {.key = "plan-cache", .topic = device, .owners = {on_gpu}, .same = no},

      {.key = "log", .topic = output, .same = no},
      {.key = "checkpoint", .topic = output, .same = all_or_none, .learning = false},
      {.key = "checkpoint-every", .topic = output, .learning = false},
      {.key = "keep", .topic = output, .learning = false},
      {.key = "resume", .topic = output, .learning = false},
      {.key = "overwrite-checkpoint", .topic = output, .same = no, .learning = false},
      {.key = "eval-every", .topic = output, .learning = false},
      {.key = "evaluate-only", .topic = output, .learning = false},
      {.key = "export-weights", .topic = output, .learning = false},
      {.key = "target-accuracy", .topic = output, .learning = false},
  };
  const auto updater = std::ranges::find(rows, std::string_view("updater"), &OptionRow::key);
  rows.insert(updater + 1, of_updaters.begin(), of_updaters.end());
  return rows;
}

}  // namespace
}  // namespace option_table_rows

const std::vector<TopicName>& topics() {
  static const std::vector<TopicName> all{{Topic::run, "run", "Run"},
                                          {Topic::data, "data", "Data"},
                                          {Topic::model, "model", "Model"},
                                          {Topic::optimizer, "optimizer", "Optimizer"},
                                          {Topic::schedule, "schedule", "Learning rate and batch"},
                                          {Topic::batch_norm, "batch-norm", "Batch norm"},
                                          {Topic::parallel, "parallel", "Ranks"},
                                          {Topic::device, "device", "GPUs"},
                                          {Topic::output, "output", "Log, checkpoints, evaluation"}};
  return all;
}

const std::vector<OptionRow>& option_table() {
  static const std::vector<OptionRow> rows = option_table_rows::make_rows();
  return rows;
}

const OptionRow* find_option(std::string_view key) {
  const auto found =
      std::ranges::find(option_table(), key, [](const OptionRow& row) { return std::string_view(row.key); });
  return found == option_table().end() ? nullptr : &*found;
}

std::string key_of(const CLI::Option& option) {
  return option.get_lnames().empty() ? option.get_name() : option.get_lnames().front();
}

bool OptionOwner::suits(const std::string& value) const { return (std::ranges::count(values, value) > 0) != others; }

std::string OptionOwner::refusal(const std::string& value) const {
  if (owner == "synthetic" && value == "true") return "only applies to --data, not to --synthetic";
  if (value == "false") return "only applies to --" + owner;
  if (others) return fmt::format("has no effect with --{} {}", owner, value);
  return fmt::format("only applies to --{} {}, not to {}", owner, fmt::join(values, ", "), value);
}

std::string idle(const CLI::App& app, const CLI::Option& option) {
  const OptionRow* row = find_option(key_of(option));
  std::vector<std::string> refusals;
  for (const OptionOwner& owner : row != nullptr ? row->owners : std::vector<OptionOwner>()) {
    const CLI::Option& other = *app.get_option("--" + owner.owner);
    const bool is_switch = other.get_items_expected_max() == 0;
    const std::string value = is_switch           ? (other.count() > 0 && other.as<bool>() ? "true" : "false")
                              : other.count() > 0 ? other.results().front()
                                                  : other.get_default_str();
    if (owner.suits(value)) return {};
    refusals.push_back(owner.refusal(value));
  }
  return fmt::format("{}", fmt::join(refusals, ", or "));
}

std::string settings_of(const CLI::App& app) {
  std::string settings;
  for (const CLI::Option* option : app.get_options()) {
    const OptionRow* row = find_option(key_of(*option));
    const SameOnRanks same = row != nullptr ? row->same : SameOnRanks::yes;
    const bool given = option->count() > 0;
    if (same == SameOnRanks::all_or_none && given) settings += option->get_name() + "=given\n";
    if (same != SameOnRanks::yes) continue;
    settings += fmt::format("{}={}\n", option->get_name(),
                            given ? fmt::format("{}", fmt::join(option->results(), ",")) : option->get_default_str());
  }
  return settings;
}

std::string learning_settings(const std::string& settings) {
  std::string kept;
  std::istringstream in(settings);
  for (std::string line; std::getline(in, line);) {
    const OptionRow* row = find_option(std::string_view(line).substr(2, line.find('=') - 2));
    if (row == nullptr || row->learning) kept += line + "\n";
  }
  return kept;
}

std::string with_option_names(std::string text) {
  constexpr std::string_view open = "‹", close = "›";
  for (std::size_t at = 0; (at = text.find(open, at)) != std::string::npos;) {
    const std::size_t end = text.find(close, at);
    if (end == std::string::npos) break;
    text.erase(end, close.size());
    text.replace(at, open.size(), "--");
  }
  return text;
}

}  // namespace paceline::train
