// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "trainer/cli/add_options.h"
#include "trainer/cli/declare.h"
#include "trainer/cli/value_checks.h"
#include "trainer/optim/make_optimizer.h"

namespace paceline::train {
namespace {

constexpr double most_epochs = 1e6;

OptionRow with_optimizer(std::vector<std::string> names) { return {.owners = {{"optimizer", std::move(names)}}}; }
OptionRow with_schedule(const char* name) { return {.owners = {{"schedule", {name}}}}; }

}  // namespace

void add_optimizer_options(Declare& d, OptimizationOptions& options) {
  OptimizerOptions& o = options.optimizer;
  d.option("optimizer", o.name, one_of(optimizer_names()),
           "sgd: with momentum; lars: a rate for each layer; adam; adamw: Adam with decoupled weight decay; "
           "rmsprop_warmup: from RMSprop to momentum SGD");
  d.option("momentum", o.momentum, number(0, 0.9999), "sgd, lars, rmsprop_warmup: momentum of the gradient",
           with_optimizer({"sgd", "lars", "rmsprop_warmup"}));
  d.flag("nesterov", o.nesterov, "sgd: Nesterov's look-ahead", with_optimizer({"sgd"}));
  d.option("rate-position", o.rate_position, one_of({"after", "inside", "corrected"}),
           "sgd: position of the rate: after (v = m v + g, w -= lr v), inside (v = m v + lr g, w -= v), corrected "
           "(inside, v corrected when the rate changes: the same steps as after)",
           with_optimizer({"sgd"}));
  d.option("weight-decay", o.weight_decay.rate, number(0, 1e6),
           "the weights times this factor are added to the gradient; adamw: each step shrinks the weights by the "
           "rate times this factor");
  d.option("decay-exclude", options.decay_exclude, one_of({"batch_norm", "bias"}),
           "parameters without weight decay (and without the layer rates of lars): batch_norm, bias")
      ->delimiter(',');
  d.option("freeze", o.frozen,
           "parameters whose names begin with one of these stay as they are: conv1,bn1,layer1 (their batch norms "
           "still gather statistics)",
           {.owners = {{"device", {"cpu"}}}})
      ->delimiter(',')
      ->type_name("PREFIX");
  OptionOwner clips{"updater", {}, true};
  for (const UpdaterKind* kind : updater_kinds()) {
    if (!kind->clips) clips.values.emplace_back(kind->name);
  }
  d.option("clip-grad-norm", options.clip_gradient_norm, positive(),
           "scale the averaged gradient of all parameters down to this norm if it is larger; default: never",
           {.owners = {clips}});
  d.option("label-smoothing", options.label_smoothing, number(0, 1),
           "share of each label that the training loss spreads evenly over all classes");
  d.option("lars-trust", o.trust, positive(), "lars: trust coefficient", with_optimizer({"lars"}));
  d.option("lars-threshold", o.lars_threshold, number(0, 1e6),
           "lars: a layer whose weights have at most this norm takes the trust coefficient as its rate (Chainer: 0.01)",
           with_optimizer({"lars"}));
  const OptionRow with_adam = with_optimizer({"adam", "adamw"}), with_warmup = with_optimizer({"rmsprop_warmup"});
  d.option("beta1", o.beta1, number(0, 0.9999), "adam, adamw: decay of the mean", with_adam);
  d.option("beta2", o.beta2, number(0, 0.999999), "adam, adamw: decay of the mean square", with_adam);
  d.option("epsilon", o.epsilon, positive(), "adam, adamw, rmsprop_warmup: added to the root",
           with_optimizer({"adam", "adamw", "rmsprop_warmup"}));
  d.option("rms-decay", o.rms_decay, number(0, 0.999999), "rmsprop_warmup: decay of the mean square", with_warmup);
  d.option("rms-lr", o.rms_rate, positive(), "rmsprop_warmup: learning rate of RMSprop", with_warmup);
  d.option("rms-center", o.rms_center, number(0, most_epochs), "rmsprop_warmup: epoch at which SGD's share is one half",
           with_warmup);
  d.option("rms-period", o.rms_period, number(1e-6, most_epochs),
           "rmsprop_warmup: length of the transition in epochs; SGD is alone half a period after the center",
           with_warmup);
  d.flag("rms-printed-slope", o.rms_printed_slope,
         "rmsprop_warmup: SGD's share as the paper prints it, which rises to 1.5 and jumps to 1; default: the "
         "continuous form",
         with_warmup);
}

void add_schedule_options(Declare& d, OptimizationOptions& options) {
  RateOptions& o = options.rate;
  const OptionRow with_warmup{.owners = {{"warmup", {"constant", "gradual"}}}};
  d.option("lr-scaling", o.scaling, one_of({"none", "linear", "sqrt"}),
           "scaling of the rate with the global batch: none, linear, sqrt");
  d.option("base-batch", o.base_batch, number(1, 1 << 28),
           "global batch that --lr is meant for, with --lr-scaling or --regime-adaptation",
           {.owners = {{"lr-scaling", {"linear", "sqrt"}}, {"regime-adaptation", {"true"}}}});
  d.option("schedule", o.schedule, one_of({"constant", "cosine", "step", "poly", "slow_start"}),
           "course of the learning rate: constant, cosine (to 0 at the end), step (times --lr-factor at "
           "--lr-steps), poly "
           "(to 0 with --poly-power), slow_start");
  d.option("lr-steps", o.step_epochs, number(1e-6, most_epochs),
           "step: epochs, e.g. 30,60,80; default: 1/2 and 3/4 of the run", with_schedule("step"))
      ->delimiter(',');
  d.option("lr-factor", o.step_factor, number(1e-6, 1), "step: factor of the rate at each of --lr-steps",
           with_schedule("step"));
  d.option("poly-power", o.power, positive(), "poly: power of the remaining fraction of the run",
           with_schedule("poly"));
  d.option("warmup", o.warmup, one_of({"none", "constant", "gradual"}),
           "none, constant (at --warmup-lr), gradual (from --warmup-lr, by iteration)");
  d.option("warmup-epochs", o.warmup_epochs, number(0, most_epochs),
           "length of the warm-up in epochs; fractions are allowed", with_warmup);
  d.option("warmup-lr", o.warmup_rate, positive(),
           "rate of the warm-up; default: --lr before scaling, or just above 0 without scaling (gradual)", with_warmup);
  d.flag("regime-adaptation", o.regime_adaptation,
         "make as many updates as with --base-batch: epochs, steps and warm-up last global batch / base batch "
         "times as long");
  d.option("grow-batch", options.grow_batch, number(1, 1000),
           "step: multiply the batch of an update by this at --lr-steps, instead of lowering the rate");
  d.option("grow-batch-limit", options.grow_batch_limit, whole(0, 1 << 20),
           "largest number of batches that an update accumulates; later steps lower the rate; 0: no limit");
}

void add_batch_norm_options(Declare& d, OptimizationOptions& o) {
  const OptionRow has_them{.owners = {{"model", {"vgg11", "vgg13", "vgg16", "vgg19"}, true}}};
  auto* frozen = d.flag("freeze-batch-norm", o.freeze_batch_norm,
                        "normalise with the running statistics and do not update them", has_them);
  auto* sync =
      d.flag("sync-batch-norm", o.sync_batch_norm, "normalise with the statistics of all ranks' batches", has_them);
  auto* ghost =
      d.option("ghost-batch", o.ghost_batch, whole(0, 1 << 28),
               "normalise groups of this many images, each with its own statistics; 0: the whole batch", has_them);
  auto* statistics =
      d.option("batch-norm-statistics", o.batch_norm_statistics, one_of({"average", "last"}),
               "statistics for evaluation: average (moving average), last (those of the last batch)", has_them);
  frozen->excludes(sync)->excludes(ghost)->excludes(statistics);
  sync->excludes(ghost);
}

std::string complete(OptimizationOptions& o) {
  const auto excluded = [&](const char* what) { return std::ranges::count(o.decay_exclude, what) > 0; };
  o.optimizer.weight_decay.batch_norm = !excluded("batch_norm");
  o.optimizer.weight_decay.biases = !excluded("bias");
  std::ranges::sort(o.rate.step_epochs);
  if (o.grow_batch > 1 && (o.rate.schedule != "step" || o.rate.step_epochs.empty())) {
    return "--grow-batch needs --schedule step and --lr-steps: there the batch grows";
  }
  if (o.grow_batch_limit > 0 && o.grow_batch == 1) return "--grow-batch-limit only applies to --grow-batch above 1";
  if (o.rate.warmup == "constant" && o.rate.scaling == "none" && !o.rate.warmup_rate) {
    return "--warmup constant needs --warmup-lr, or --lr-scaling, which makes the run's rate differ from the warm-up's";
  }
  return {};
}

}  // namespace paceline::train
