#include "trainer/cli/add_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "trainer/cli/value_checks.h"
#include "trainer/optim/make_optimizer.h"

namespace paceline::train {
namespace {

constexpr double most_epochs = 1e6;

void add_optimizer(CLI::App& app, OptimizationOptions& options) {
  OptimizerOptions& o = options.optimizer;
  app.add_option("--optimizer", o.name,
                 "sgd: with momentum; lars: a rate for each layer; adam; adamw: Adam with decoupled weight decay; "
                 "rmsprop_warmup: from RMSprop to momentum SGD")
      ->check(CLI::IsMember(optimizer_names()))
      ->capture_default_str();
  app.add_option("--momentum", o.momentum, "sgd, lars, rmsprop_warmup: momentum of the gradient")
      ->check(number(0, 0.9999))
      ->capture_default_str();
  app.add_flag("--nesterov", o.nesterov, "sgd: Nesterov's look-ahead");
  app.add_option(
         "--rate-position", o.rate_position,
         "sgd: position of the rate: after (v = m v + g, w -= lr v), inside (v = m v + lr g, w -= v), corrected "
         "(inside, v corrected when the rate changes: the same steps as after)")
      ->check(CLI::IsMember({"after", "inside", "corrected"}))
      ->capture_default_str();
  app.add_option("--weight-decay", o.weight_decay.rate,
                 "the weights times this factor are added to the gradient; adamw: each step shrinks the weights by the "
                 "rate times this factor")
      ->check(number(0, 1e6))
      ->capture_default_str();
  app.add_option("--decay-exclude", options.decay_exclude,
                 "parameters without weight decay (and without the layer rates of lars): batch_norm, bias")
      ->delimiter(',')
      ->check(CLI::IsMember({"batch_norm", "bias"}));
  app.add_option("--freeze", o.frozen,
                 "parameters whose names begin with one of these stay as they are: conv1,bn1,layer1 (their batch norms "
                 "still gather statistics)")
      ->delimiter(',')
      ->type_name("PREFIX");
  app.add_option("--clip-grad-norm", options.clip_gradient_norm,
                 "scale the averaged gradient of all parameters down to this norm if it is larger; default: never")
      ->check(positive());
  app.add_option("--label-smoothing", options.label_smoothing,
                 "share of each label that the training loss spreads evenly over all classes")
      ->check(number(0, 1))
      ->capture_default_str();
  app.add_option("--lars-trust", o.trust, "lars: trust coefficient")->check(positive())->capture_default_str();
  app.add_option(
         "--lars-threshold", o.lars_threshold,
         "lars: a layer whose weights have at most this norm takes the trust coefficient as its rate (Chainer: 0.01)")
      ->check(number(0, 1e6))
      ->capture_default_str();
  app.add_option("--beta1", o.beta1, "adam, adamw: decay of the mean")->check(number(0, 0.9999))->capture_default_str();
  app.add_option("--beta2", o.beta2, "adam, adamw: decay of the mean square")
      ->check(number(0, 0.999999))
      ->capture_default_str();
  app.add_option("--epsilon", o.epsilon, "adam, adamw, rmsprop_warmup: added to the root")
      ->check(positive())
      ->capture_default_str();
  app.add_option("--rms-decay", o.rms_decay, "rmsprop_warmup: decay of the mean square")
      ->check(number(0, 0.999999))
      ->capture_default_str();
  app.add_option("--rms-lr", o.rms_rate, "rmsprop_warmup: learning rate of RMSprop")
      ->check(positive())
      ->capture_default_str();
  app.add_option("--rms-center", o.rms_center, "rmsprop_warmup: epoch at which SGD's share is one half")
      ->check(number(0, most_epochs))
      ->capture_default_str();
  app.add_option("--rms-period", o.rms_period,
                 "rmsprop_warmup: length of the transition in epochs; SGD is alone half a period after the center")
      ->check(number(1e-6, most_epochs))
      ->capture_default_str();
  app.add_flag("--rms-printed-slope", o.rms_printed_slope,
               "rmsprop_warmup: SGD's share as the paper prints it, which rises to 1.5 and jumps to 1; default: the "
               "continuous form");
}

void add_rate(CLI::App& app, OptimizationOptions& options) {
  RateOptions& o = options.rate;
  app.add_option("--lr", o.rate, "learning rate after the warm-up; with --lr-scaling, that of --base-batch")
      ->check(positive())
      ->capture_default_str();
  app.add_option("--lr-scaling", o.scaling, "scaling of the rate with the global batch: none, linear, sqrt")
      ->check(CLI::IsMember({"none", "linear", "sqrt"}))
      ->capture_default_str();
  app.add_option("--base-batch", o.base_batch,
                 "global batch that --lr is meant for, with --lr-scaling or --regime-adaptation")
      ->check(number(1, 1 << 28))
      ->capture_default_str();
  app.add_option("--schedule", o.schedule,
                 "course of the learning rate: constant, cosine (to 0 at the end), step (times --lr-factor at "
                 "--lr-steps), poly "
                 "(to 0 with --poly-power), slow_start")
      ->check(CLI::IsMember({"constant", "cosine", "step", "poly", "slow_start"}))
      ->capture_default_str();
  app.add_option("--lr-steps", o.step_epochs, "step: epochs, e.g. 30,60,80; default: 1/2 and 3/4 of the run")
      ->delimiter(',')
      ->check(number(1e-6, most_epochs));
  app.add_option("--lr-factor", o.step_factor, "step: factor of the rate at each of --lr-steps")
      ->check(number(1e-6, 1))
      ->capture_default_str();
  app.add_option("--poly-power", o.power, "poly: power of the remaining fraction of the run")
      ->check(positive())
      ->capture_default_str();
  app.add_option("--warmup", o.warmup, "none, constant (at --warmup-lr), gradual (from --warmup-lr, by iteration)")
      ->check(CLI::IsMember({"none", "constant", "gradual"}))
      ->capture_default_str();
  app.add_option("--warmup-epochs", o.warmup_epochs, "length of the warm-up in epochs; fractions are allowed")
      ->check(number(0, most_epochs))
      ->capture_default_str();
  app.add_option("--warmup-lr", o.warmup_rate,
                 "rate of the warm-up; default: --lr before scaling, or just above 0 without scaling (gradual)")
      ->check(positive());
  app.add_flag("--regime-adaptation", o.regime_adaptation,
               "make as many updates as with --base-batch: epochs, steps and warm-up last global batch / base batch "
               "times as long");
  app.add_option("--grow-batch", options.grow_batch,
                 "step: multiply the batch of an update by this at --lr-steps, instead of lowering the rate")
      ->check(number(1, 1000))
      ->capture_default_str();
  app.add_option("--grow-batch-limit", options.grow_batch_limit,
                 "largest number of batches that an update accumulates; later steps lower the rate; 0: no limit")
      ->check(whole(0, 1 << 20))
      ->capture_default_str();
}

void add_batch_norm(CLI::App& app, OptimizationOptions& o) {
  auto* frozen = app.add_flag("--freeze-batch-norm", o.freeze_batch_norm,
                              "normalise with the running statistics and do not update them");
  auto* sync =
      app.add_flag("--sync-batch-norm", o.sync_batch_norm, "normalise with the statistics of all ranks' batches");
  auto* ghost = app.add_option("--ghost-batch", o.ghost_batch,
                               "normalise groups of this many images, each with its own statistics; 0: the whole batch")
                    ->check(whole(0, 1 << 28))
                    ->capture_default_str();
  auto* statistics =
      app.add_option("--batch-norm-statistics", o.batch_norm_statistics,
                     "statistics for evaluation: average (moving average), last (those of the last batch)")
          ->check(CLI::IsMember({"average", "last"}))
          ->capture_default_str();
  frozen->excludes(sync)->excludes(ghost)->excludes(statistics);
  sync->excludes(ghost);
}

}  // namespace

void add_optimization_options(CLI::App& app, OptimizationOptions& o) {
  add_optimizer(app, o);
  add_rate(app, o);
  add_batch_norm(app, o);
  app.add_flag("--resnet-v1", o.resnet_v1,
               "ResNets: put a bottleneck's stride into its first 1x1 convolution (v1); default: into the 3x3 (v1.5)");
  app.add_flag("--zero-gamma", o.zero_gamma, "ResNets: the last batch norm of each residual block starts with scale 0");
  app.add_option("--width", o.width,
                 "multiply the published numbers of channels by this factor: narrow networks for small machines")
      ->check(number(0.01, 16))
      ->capture_default_str();
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
