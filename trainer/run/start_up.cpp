// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/start_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "trainer/backend/cuda/plan_cache.h"
#include "trainer/checkpoint/weights.h"
#include "trainer/comm/waiting.h"
#include "trainer/core/whole_file.h"
#include "trainer/guard/agreement.h"
#include "trainer/guard/interrupt.h"
#include "trainer/guard/rank_check.h"
#include "trainer/nn/models.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/pipeline/pipelined_updater.h"
#include "trainer/reporting/layer_marks.h"
#include "trainer/run/checkpointing.h"
#include "trainer/run/staged_job.h"
#include "trainer/updaters/threads.h"

namespace paceline::train {
namespace start {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t batches_ahead = 4;  // that the loader prepares

bool same_file(const std::string& a, const std::string& b) {
  const auto canonical = [](const std::string& name) {
    std::error_code code;
    const fs::path absolute = fs::absolute(name, code), path = fs::weakly_canonical(absolute, code);
    return code ? absolute : path;
  };
  return canonical(a) == canonical(b);
}

// The log and the checkpoint are written late, but checked before anything takes time.
void check_outputs(const Job& job) {
  const TrainOptions& o = job.options;
  if (job.ranks.rank() != 0) return;
  if (!o.checkpoint.empty()) {
    check_writable(o.checkpoint);
    if (!o.resume && !o.overwrite_checkpoint) {
      check_no_checkpoint(o.checkpoint);
      if (o.keep_best) check_no_checkpoint(best_checkpoint(o.checkpoint));
    }
  }
  if (!o.export_weights.empty()) check_writable(o.export_weights);
  const auto refuse_equal = [](const char* a, const std::string& file, const char* b, const std::string& other) {
    if (file.empty() || other.empty() || !same_file(file, other)) return;
    throw Error(file, fmt::format("‹{}› and ‹{}› are the same file", a, b), "name another", Status::usage);
  };
  refuse_equal("log", o.log, "checkpoint", o.checkpoint);
  refuse_equal("log", o.log, "export-weights", o.export_weights);
  refuse_equal("checkpoint", o.checkpoint, "export-weights", o.export_weights);
}

// Throws AgreedError unless all ranks can run this job and run the same one.
void check_ranks_agree(Job& job, std::uint64_t data, std::size_t memory) {
  const RankFacts own = facts_of_this_rank(job.options.settings, data, job.ranks.local_size(), memory);
  const std::optional<Mismatch> mismatch = check_ranks(job.ranks, own, job.options.settings);
  if (mismatch) throw AgreedError(mismatch->what, Status::failed, mismatch->rank);
}

// Most stages wait at any time. Where ranks share cores, they would take them from the stages that compute.
void leave_cores_to_other_stages(const Job& job) {
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  if (job.ranks.local_size() * job.threads > cores) sleep_in_waits();
}

// Cuts the run into epochs and iterations.
void plan(Job& job) {
  const TrainOptions& o = job.options;
  const std::size_t images = job.planned_images();
  const double longer = stretch(o.optimization.rate, job.global_batch());
  job.batches = batch_schedule_of(o.optimization, o.accumulate, longer);
  job.first_epoch = {.samples = images,
                     .batch = static_cast<std::size_t>(o.batch_size * o.accumulate),
                     .rank = job.replicas.rank(),
                     .ranks = job.replicas.size(),
                     .equal_length = o.sharding == "equal-length"};
  if (job.first_epoch.iterations() == 0) {
    const bool accumulates = o.accumulate > 1;
    throw Error(job.data.title,
                fmt::format("{} training images are fewer than one iteration takes ({} ranks × batch {}{})", images,
                            job.replicas.size(), o.batch_size,
                            accumulates ? fmt::format(" × ‹accumulate› {}", o.accumulate) : ""),
                accumulates ? "lower ‹accumulate› or ‹batch-size›" : "lower ‹batch-size›");
  }
  job.plan = job.plan_of(job.replicas.rank());
  const auto stretched = static_cast<std::uint64_t>(std::ceil(static_cast<double>(o.epochs) * longer));
  const std::uint64_t epochs = std::max<std::uint64_t>(1, stretched);
  const std::optional<RunPlan::Place> wall = job.plan.wall();
  if (wall && (o.iterations > 0 ? wall->iteration < o.iterations : wall->epoch < epochs)) {
    throw Error(job.data.title,
                fmt::format("{} training images are fewer than one iteration takes when the batch has grown ({} ranks "
                            "× {})",
                            images, job.replicas.size(), wall->plan.batch),
                "give ‹grow-batch-limit›");
  }
  job.iterations = o.iterations > 0 ? o.iterations : job.plan.first_of(epochs);
}

ModelOptions model_options(Job& job) {
  const TrainOptions& o = job.options;
  ModelOptions model;
  model.name = o.model;
  model.batch_size = o.batch_size / o.pipeline.microbatches;
  model.image_size = job.data.train->image_size();
  model.classes = job.data.train->classes();
  model.seed = o.seed;
  const auto sum_over_ranks = [&job](std::span<double> sums) {
    const Range range(Category::allreduce, sums.size_bytes());
    job.replicas.allreduce_sum(sums);
  };
  set_variants(o.optimization, sum_over_ranks, model);
  model.cifar_stem = job.data.train->image_size() <= 64;
  model.dtype = o.dtype;
  model.winograd = !o.exact;
  if (o.plan_cache != "none") {
    model.plan_cache = o.plan_cache == "default" ? cuda::default_plan_cache().string() : o.plan_cache;
  }
  model.cuda_graphs = o.cuda_graphs;
  model.fuse = !o.no_fusion;
  model.memory_limit = memory_available() / static_cast<std::uint64_t>(job.ranks.local_size());
  return model;
}

// On rank 0, whose weights share_state() gives to all ranks: fills the model from the file of --import-weights. On
// every rank: refuses a model that torchvision does not have.
void take_weights(Job& job) {
  const TrainOptions& o = job.options;
  const char* const option = !o.import_weights.empty() ? "‹import-weights›" : "‹export-weights›";
  if (o.import_weights.empty() && o.export_weights.empty()) return;
  if (const std::string why = why_not_torchvisions(model_options(job)); !why.empty()) {
    throw Error(option, why, "use a model of torchvision's at its own width and structure", Status::usage);
  }
  if (!o.import_weights.empty() && job.ranks.rank() == 0) {
    Model& model = job.staged ? *job.staged->whole_model : *job.model;
    const std::string note =
        import_weights(std::filesystem::path(o.import_weights), title_of(o.model, o.optimization), model);
    if (!note.empty() && o.evaluate_only) throw Error(note, "name the weights of this data set's classes", "");
    if (!note.empty()) job.notes.push_back(note);
  }
}

std::unique_ptr<Optimizer> optimizer_of(const Job& job) {
  const UpdaterKind& updater = updater_kind(job.options.updater);
  const bool on_gpu = job.surroundings.gpu != nullptr && !updater.steps_on_host;
  const OptimizerOptions& options = job.options.optimization.optimizer;
  const std::size_t elements = job.model->weights().size();
  const auto make = on_gpu ? job.surroundings.gpu->make_optimizer : make_optimizer;
  if (!updater.shards_optimizer || job.ranks.size() == 1) return make(options, job.model->parameters(), elements);
  const Slice shard = halves_of(job.communicator).own_shard(elements);
  const auto make_shard = on_gpu ? job.surroundings.gpu->make_shard_optimizer : make_shard_optimizer;
  return make_shard(options, job.model->parameters(), elements, shard);
}

void make_model(Job& job) {
  if (job.staged) {
    make_stage(job);
    job.train_flops_per_image = job.staged->network.train_flops();
    return;
  }
  const GpuPart* const gpu = job.surroundings.gpu;
  job.model = gpu != nullptr ? gpu->make_model(model_options(job)) : make_cpu_model(model_options(job));
  if (const std::string layer = job.model->first_slow_layer(); !layer.empty() && job.ranks.rank() == 0) {
    fmt::print(stderr,
               "paceline-train: layer {}: oneDNN has only slow reference code for it on this processor: take another "
               "--width, or another version of oneDNN\n",
               layer);
  }
  job.model->observer = &job.layer_ranges;
  job.train_flops_per_image = job.model->train_flops_per_image();
}

// The part of start-up that may fail on one rank alone. It does not communicate.
void prepare(Job& job) {
  const TrainOptions& o = job.options;
  job.faults = parse_faults(o.faults, job.ranks.size());
  plan(job);
  make_model(job);
  job.layer_ranges.know(job.model->parameters());
  job.optimizer = optimizer_of(job);
  const std::size_t per_epoch = job.first_epoch.iterations();
  const auto iterations =
      std::max(1ll, std::llround(job.plan.epochs_before(job.iterations) * static_cast<double>(per_epoch)));
  job.schedule = plan_rate(o.optimization.rate, job.global_batch(), iterations, static_cast<std::int64_t>(per_epoch),
                           job.batches.absorbed());
  take_weights(job);
  read_state(job);
}

// Bytes that this rank will still take from its host after start-up.
std::size_t memory_wanted(const Job& job) {
  const auto batch_size = static_cast<std::size_t>(job.options.batch_size);
  const std::size_t gradient = job.model->gradients().size_bytes();
  const std::size_t batch = job.plan.at(job.iterations - 1).plan.batch;  // the largest, since batches only grow
  const std::size_t images = batch + batch_size;                         // of training and of evaluation
  const bool bytes = job.model->takes_stored_images() && job.data.train->stored() != nullptr;
  std::size_t memory = (batches_ahead + 1) * images * job.data.train->values() * (bytes ? 1 : sizeof(float));
  const UpdaterKind& updater = updater_kind(job.options.updater);
  memory += updater.copies * gradient;
  if (job.ranks.rank() == 0) memory += updater.copies_on_main_rank * gradient;
  if (batch > batch_size) memory += gradient;
  return memory + (job.staged ? job.staged->pipeline->unfilled_bytes() : job.model->unfilled_bytes());
}

void set_segments(Job& job) {
  std::vector<std::size_t> segments;
  for (const Parameter& parameter : job.model->parameters()) segments.push_back(parameter.offset);
  segments.push_back(job.model->gradients().size());
  job.communicator.reduction->set_segments(std::move(segments));
}

// The description of the run that its NVTX mark carries and the analysis compares with that of other runs.
nlohmann::json describe(const Job& job) {
  const TrainOptions& o = job.options;
  const std::int64_t global_batch = std::llround(job.global_batch());
  const double epochs = job.plan.epochs_before(job.iterations);
  nlohmann::json run = {{"program", "paceline-train"},
                        {"model", title_of(o.model, o.optimization)},
                        {"data", job.data.title},
                        {"batch_per_rank", o.batch_size},
                        {"global_batch", global_batch},
                        {"images_per_iteration", global_batch},
                        {"flops_per_image", job.train_flops_per_image},
                        {"dtype", o.dtype},
                        {"communicator", o.communicator},
                        {"allreduce_dtype", o.allreduce_dtype},
                        {"updater", o.updater},
                        {"optimizer", o.optimization.optimizer.name},
                        {"schedule", o.optimization.rate.schedule},
                        {"seed", o.seed},
                        {"epochs", epochs},
                        {"ranks", job.ranks.size()},
                        {"evaluate", "all ranks"},
                        {"test_images", job.data.test->size()}};
  if (job.surroundings.gpu != nullptr) run["device"] = job.surroundings.gpu->device_name();
  if (o.augment != "all") run["augment"] = o.augment;
  if (o.sharding != "exact") run["sharding"] = o.sharding;
  if (!o.reduction.ring_order.empty()) run["ring_order"] = o.reduction.ring_order;
  if (o.accumulate > 1) run["accumulate"] = o.accumulate;
  for (const UpdaterOption& option : updater_kind(o.updater).options) {
    const std::optional<double> value = value_of(o.updater_values, option);
    if (!value) continue;
    std::string key = option.key;
    std::ranges::replace(key, '-', '_');
    option.whole ? run[key] = static_cast<std::uint64_t>(*value) : run[key] = *value;
  }
  if (job.staged) {
    run["pipeline_stages"] = o.pipeline.stages;
    run["microbatches"] = o.pipeline.microbatches;
    run["pipeline_schedule"] = o.pipeline.schedule;
    run["pipeline_split"] = job.staged->split();
  }
  if (!o.faults.empty()) run["faults"] = o.faults;
  if (epochs == std::floor(epochs)) run["epochs"] = static_cast<std::uint64_t>(epochs);
  return run;
}

// Marks each part between which the network can be cut, with a cost whose largest is a million. The analysis predicts
// other stages from them.
void mark_parts(const StagedRun& run) {
  double most = 0;
  for (const StagedRun::Part& part : run.parts) most = std::max(most, part.cost);
  for (const StagedRun::Part& part : run.parts) {
    const double relative = most > 0 ? part.cost / most : 1;
    mark(Category::part, RangeName(part.first_layer), static_cast<std::uint64_t>(std::llround(1e6 * relative)));
  }
}

// Writes the start of the log, the marks of the profile, and what the user should know before the first iteration.
void announce(const Job& job) {
  const TrainOptions& o = job.options;
  nlohmann::json run = describe(job);
  mark(Category::run, run.dump());
  run.update({{"iterations", job.iterations},
              {"threads", job.threads},
              {"lr", scaled_rate(o.optimization.rate, job.global_batch())},
              {"train_images", job.data.train->size()},
              {"image_size", job.data.train->image_size()},
              {"classes", job.data.train->classes()},
              {"loader_workers", o.loader_workers},
              {"first_iteration", job.first_iteration}});
  job.journal->start(run);
  const OptimizerOptions& optimizer = o.optimization.optimizer;
  if (optimizer.name == "rmsprop_warmup" && optimizer.rms_printed_slope) {
    job.journal->line(fmt::format("rms-printed-slope: the share of SGD rises to 1.5 at epoch {:g} and falls back to 1",
                                  optimizer.rms_center + optimizer.rms_period / 2));
  }
  if (o.resume && job.first_iteration == 0 && job.ranks.rank() == 0 && !job.has_checkpoint()) {
    job.journal->line(fmt::format("{}: no checkpoint yet: the run starts from the beginning", o.checkpoint));
  }
  if (job.first_iteration > 0) {
    job.journal->line(fmt::format("{}: resumed after {} of {} iterations, in epoch {}", o.checkpoint,
                                  job.first_iteration, job.iterations,
                                  job.plan.at(std::min(job.first_iteration, job.iterations - 1)).epoch + 1));
  }
  const std::int64_t warm_up = warm_up_iterations(o.optimization.rate, job.global_batch(),
                                                  static_cast<std::int64_t>(job.first_epoch.iterations()));
  if (static_cast<std::uint64_t>(warm_up) > job.iterations) {
    job.journal->line(
        fmt::format("the warm-up of {} iterations is longer than the run of {}: the learning rate stays below its "
                    "full value (shorten it with --warmup-epochs, or leave it out with --warmup none)",
                    warm_up, job.iterations));
  }
  if (job.staged && !job.staged->balance.empty()) job.journal->line(job.staged->balance);
  for (const std::string& note : job.notes) job.journal->line(note);
  for (const std::string& note : job.resume_notes) job.journal->line(note);
  if (!job.data.note.empty()) job.journal->line(job.data.note);
  if (job.staged) mark_parts(*job.staged);
  for (const std::string& fault : o.faults) mark(Category::fault, RangeName(fault), 0);
}

void make_loader(Job& job) {
  const TrainOptions& o = job.options;
  Loader::Options loading;
  loading.first = job.first_iteration;
  loading.last = job.iterations;
  loading.workers = o.loader_workers;
  loading.depth = batches_ahead;
  loading.delay = job.faults.slow_loader.of(job.ranks.rank());
  loading.memory = job.model->image_memory();
  loading.stored = job.model->takes_stored_images();
  loading.progress = &job.activity.images;
  if (o.on_bad_image == "skip") {
    const auto report = [rank = job.ranks.rank()](const std::string& what) {
      fmt::print(stderr, "paceline-train: rank {}: left out: {}\n", rank, what);
    };
    job.bad_train = std::make_unique<BadImages>(report);
    job.bad_test = std::make_unique<BadImages>(report);
    loading.bad = job.bad_train.get();
  }
  if (o.evaluate_only) return;  // which loads the test images alone
  const RunPlan images = job.faults.duplicate_shards ? job.plan_of(0) : job.plan;
  const bool crops = o.augment == "all" || o.augment == "crop", mirrors = o.augment == "all" || o.augment == "mirror";
  job.loader =
      std::make_unique<Loader>(job.train_images(), training_batches(images, Draw{o.seed, 0, crops, mirrors}), loading);
}

void make_job_updater(Job& job) {
  const TrainOptions& o = job.options;
  UpdaterParts parts{*job.model, job.communicator, *job.optimizer};
  parts.pass = {.seed = o.seed,
                .rank = job.ranks.rank(),
                .batch = static_cast<std::size_t>(o.batch_size),
                .delay = job.faults.slow_rank.of(job.ranks.rank())};
  parts.clip_norm = o.optimization.clip_gradient_norm;
  std::array<std::uint64_t, 1> logs = {o.log.empty() && o.tensorboard.empty() ? 0u : 1u};  // rank 0's
  job.ranks.broadcast(std::span<std::uint64_t>(logs), 0);
  parts.measure_norm = logs[0] != 0;
  parts.values = o.updater_values;
  if (job.faults.tiny_buckets) parts.values["bucket-mb"] = 0x1p-20;  // one byte
  job.updater = job.staged ? make_pipelined_updater(parts, *job.staged->pipeline, job.replicas.size())
                           : make_updater(o.updater, parts);
  if (!job.resumed.pending.empty()) job.updater->restore_pending(job.resumed.pending);
  const std::span<float> warm_start = job.updater->warm_start();  // of another size with another rank of PowerSGD
  if (job.resumed.warm_start.size() == warm_start.size()) std::ranges::copy(job.resumed.warm_start, warm_start.begin());
}

}  // namespace
}  // namespace start

std::unique_ptr<Job> start_up(const TrainOptions& options, const Surroundings& surroundings) {
  auto owner = std::make_unique<Job>(options, surroundings);
  Job& job = *owner;
  start::check_ranks_agree(job, 0, 0);  // before the ranks follow their options
  together(job.ranks, [&] {
    start::check_outputs(job);
    job.threads = set_threads(job.options.threads, job.ranks.local_size());
  });
  if (surroundings.grid != nullptr) start::leave_cores_to_other_stages(job);
  job.data = open_data(job.options, job.ranks);
  if (surroundings.grid != nullptr) job.staged = split_network(job, start::model_options(job));
  together(job.ranks, [&] { start::prepare(job); });
  start::check_ranks_agree(job, job.data.hash, start::memory_wanted(job));
  start::set_segments(job);
  share_state(job);
  // Opened last, so that a run that cannot start leaves the log of an earlier run as it is.
  together(job.ranks, [&] {
    job.journal =
        std::make_unique<Journal>(job.ranks.rank(), job.options.log, job.options.resume, job.options.tensorboard);
  });
  start::announce(job);
  const ModelOptions model = start::model_options(job);
  mark_layers(job.staged ? job.staged->network : build_network(model), model.batch_size, model.dtype,
              surroundings.gpu == nullptr);
  start::make_loader(job);
  start::make_job_updater(job);
  if (!job.options.checkpoint.empty()) {
    job.checkpoint_times.emplace(parse_checkpoint_every(job.options.checkpoint_every), job.ranks, job.first_iteration);
  }
  catch_interrupts();
  return owner;
}

}  // namespace paceline::train
