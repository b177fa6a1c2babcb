#include "trainer/run/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "trainer/backend/cuda/plan_cache.h"
#include "trainer/error.h"
#include "trainer/run/evaluator.h"
#include "trainer/run/finite.h"
#include "trainer/run/interrupt.h"
#include "trainer/run/rank_check.h"
#include "trainer/run/watchdog.h"
#include "trainer/updaters/threads.h"
#include "trainer/whole_file.h"

namespace paceline::train {
namespace {

// Images of an update of all ranks, as the run begins.
std::int64_t global_batch_of(const TrainOptions& options, const Communicator& communicator) {
  return options.batch_size * options.accumulate * communicator.size();
}

constexpr std::size_t batches_ahead = 4;  // that the loader prepares

// What this run is, for whoever compares it with others.
nlohmann::json describe_run(const TrainOptions& options, const std::string& device, const std::string& data,
                            const Communicator& communicator, double epochs) {
  const std::int64_t global_batch = global_batch_of(options, communicator);
  nlohmann::json run = {{"program", "paceline-train"},
                        {"model", title_of(options.model, options.optimization)},
                        {"data", data},
                        {"batch_per_rank", options.batch_size},
                        {"global_batch", global_batch},
                        {"images_per_iteration", global_batch},
                        {"dtype", options.dtype},
                        {"communicator", options.communicator},
                        {"allreduce_dtype", options.allreduce_dtype},
                        {"updater", options.updater},
                        {"optimizer", options.optimization.optimizer.name},
                        {"schedule", options.optimization.rate.schedule},
                        {"seed", options.seed},
                        {"epochs", epochs},
                        {"ranks", communicator.size()},
                        {"evaluate", "all ranks"}};
  if (device != "cpu") run["device"] = device;
  if (options.augment != "all") run["augment"] = options.augment;
  if (options.sharding != "exact") run["sharding"] = options.sharding;
  if (!options.reduction.ring_order.empty()) run["ring_order"] = options.reduction.ring_order;
  if (options.accumulate > 1) run["accumulate"] = options.accumulate;
  if (options.bucket_mb) run["bucket_mb"] = *options.bucket_mb;
  if (options.most_ahead) run["max_ahead"] = *options.most_ahead;
  if (!options.faults.empty()) run["faults"] = options.faults;
  if (epochs == std::floor(epochs)) run["epochs"] = static_cast<std::uint64_t>(epochs);
  return run;
}

}  // namespace

Training::Training(const TrainOptions& options, Communicator& communicator, Clock::time_point start, Abandon abandon,
                   const GpuPart* gpu)
    : options_(options),
      communicator_(communicator, activity_),
      abandon_(std::move(abandon)),
      start_(start),
      gpu_(gpu) {
  check(0, 0);  // options first: they say what the ranks do together
  together(communicator_, [this] { check_outputs(); });
  data_ = open_data(options_, communicator_);
  together(communicator_, [this] { prepare(); });
  check(data_.hash, memory_wanted());
  share_state();
  // Last: what could not be run leaves the log of an earlier run as it is.
  together(communicator_,
           [this] { journal_ = std::make_unique<Journal>(communicator_.rank(), options_.log, options_.resume); });

  const double epochs = run_plan_.epochs_before(iterations_);
  nlohmann::json run =
      describe_run(options_, gpu_ != nullptr ? gpu_->device_name() : "cpu", data_.title, communicator_, epochs);
  run["test_images"] = data_.test->size();
  mark_run(run.dump());
  run.update(
      {{"iterations", iterations_},
       {"threads", threads_},
       {"lr", scaled_rate(options_.optimization.rate, static_cast<double>(global_batch_of(options_, communicator_)))},
       {"train_images", data_.train->size()},
       {"image_size", data_.train->image_size()},
       {"classes", data_.train->classes()},
       {"loader_workers", options_.loader_workers},
       {"first_iteration", first_}});
  journal_->start(run);
  const OptimizerOptions& optimizer = options_.optimization.optimizer;
  if (optimizer.name == "rmsprop_warmup" && optimizer.rms_printed_slope) {
    journal_->line(fmt::format("--rms-printed-slope: the share of SGD rises to 1.5 at epoch {:g} and falls back to 1",
                               optimizer.rms_center + optimizer.rms_period / 2));
  }
  if (options_.resume && first_ == 0 && communicator_.rank() == 0 && !std::filesystem::exists(options_.checkpoint)) {
    journal_->line(fmt::format("{}: no checkpoint yet: the run starts from the beginning", options_.checkpoint));
  }
  const std::int64_t warm_up =
      warm_up_iterations(options_.optimization.rate, static_cast<double>(global_batch_of(options_, communicator_)),
                         static_cast<std::int64_t>(plan_.iterations()));
  if (static_cast<std::uint64_t>(warm_up) > iterations_) {
    journal_->line(
        fmt::format("the warm-up of {} iterations is longer than the run of {}: the learning rate stays below "
                    "--lr (lower --warmup-epochs, or give --warmup none)",
                    warm_up, iterations_));
  }
  for (const std::string& note : resume_notes_) journal_->line(note);
  for (const std::string& fault : options_.faults) mark(Category::fault, RangeName(fault), 0);
  const int rank = communicator_.rank();
  const RunPlan images = faults_.duplicate_shards ? plan_run(0) : run_plan_;
  Loader::Options loading{first_, iterations_, options_.loader_workers, batches_ahead, faults_.slow_loader.of(rank)};
  loading.memory = model_->image_memory();
  loading.stored = model_->takes_stored_images();
  loading.progress = &activity_.images;
  if (options_.on_bad_image == "skip") {
    const auto report = [this](const std::string& what) {
      fmt::print(stderr, "paceline-train: rank {}: left out: {}\n", communicator_.rank(), what);
    };
    bad_train_ = std::make_unique<BadImages>(report);
    bad_test_ = std::make_unique<BadImages>(report);
    loading.bad = bad_train_.get();
  }
  const std::string& augment = options_.augment;
  const Draw drawn{options_.seed, 0, augment == "all" || augment == "crop", augment == "all" || augment == "mirror"};
  loader_ = std::make_unique<Loader>(*data_.train, training_batches(images, drawn), loading);
  UpdaterParts parts{*model_, communicator_, *optimizer_};
  parts.pass = {options_.seed, rank, static_cast<std::size_t>(options_.batch_size), faults_.slow_rank.of(rank)};
  if (options_.bucket_mb) parts.bucket_bytes = static_cast<std::size_t>(*options_.bucket_mb * (1 << 20));
  if (faults_.tiny_buckets) parts.bucket_bytes = 1;
  parts.most_ahead = options_.most_ahead;
  updater_ = make_updater(options_.updater, parts);
  if (!resumed_.pending.empty()) updater_->restore_pending(resumed_.pending);
  if (!options_.checkpoint.empty()) {
    checkpoint_times_.emplace(parse_checkpoint_every(options_.checkpoint_every), communicator_, first_);
  }
  catch_interrupts();
}

Training::~Training() {
  constexpr std::chrono::seconds patience(5);
  if (loader_ && !loader_->stop(patience)) {
    abandon_(fmt::format("the loader is still in a read after {} s: the process ends without it", patience.count()));
  }
}

// Before anything takes time, though both are written later.
void Training::check_outputs() const {
  if (communicator_.rank() != 0) return;
  if (!options_.checkpoint.empty()) check_writable(options_.checkpoint);
  if (!options_.checkpoint.empty() && !options_.resume && !options_.overwrite_checkpoint) {
    check_no_checkpoint(options_.checkpoint);
  }
  if (options_.log.empty() || options_.checkpoint.empty()) return;
  namespace fs = std::filesystem;
  if (fs::weakly_canonical(fs::absolute(options_.log)) == fs::weakly_canonical(fs::absolute(options_.checkpoint))) {
    throw Error(fmt::format("{}: --log and --checkpoint are the same file: name another", options_.log), Status::usage);
  }
}

void Training::prepare() {
  faults_ = parse_faults(options_.faults, communicator_.size());
  threads_ = set_threads(options_.threads, communicator_.local_size());
  plan_all();
  ModelOptions model;
  model.name = options_.model;
  model.batch_size = options_.batch_size;
  model.image_size = data_.train->image_size();
  model.classes = data_.train->classes();
  model.seed = options_.seed;
  const auto sum_over_ranks = [this](std::span<double> sums) {
    const Range range(Category::allreduce, sums.size_bytes());
    communicator_.allreduce_sum(sums);
  };
  set_variants(options_.optimization, sum_over_ranks, model);
  model.cifar_stem = data_.train->image_size() <= 64;
  model.dtype = options_.dtype;
  if (options_.plan_cache != "none") {
    const bool own = options_.plan_cache != "default";
    model.plan_cache = own ? options_.plan_cache : cuda::default_plan_cache().string();
  }
  model.cuda_graphs = options_.cuda_graphs;
  model.fuse = !options_.no_fusion;
  model.memory_limit = memory_available() / static_cast<std::uint64_t>(communicator_.local_size());
  try {
    model_ = gpu_ != nullptr ? gpu_->make_model(model) : make_cpu_model(model);
  } catch (const std::invalid_argument& error) {
    throw Error(error.what(), Status::usage);
  }
  model_->observer = &layer_ranges_;
  const OptimizationOptions& o = options_.optimization;
  optimizer_ = make_optimizer_on_device();
  // Schedules count iterations of the first epoch's length; see rate_at().
  const auto length = static_cast<double>(plan_.iterations());
  schedule_ = plan_rate(o.rate, static_cast<double>(global_batch_of(options_, communicator_)),
                        std::max(1ll, std::llround(run_plan_.epochs_before(iterations_) * length)),
                        static_cast<std::int64_t>(plan_.iterations()), batches_.absorbed());

  if (!options_.resume || communicator_.rank() != 0 || !std::filesystem::exists(options_.checkpoint)) return;
  const Position here = position_at(0);
  const Position then = read_checkpoint(options_.checkpoint, here, *model_, *optimizer_, &resumed_);
  resume_notes_ = resume_notes(resumed_.facts, facts_of_run(), o.rate.schedule != "constant");
  // On other ranks or with another batch the images that are left of the epoch are dealt anew.
  const std::uint64_t epoch = then.iteration / then.iterations_per_epoch;
  const std::uint64_t images = then.iteration % then.iterations_per_epoch * then.images_per_iteration;
  const EpochPlan plan = run_plan_.at(run_plan_.first_of(epoch)).plan;
  const std::uint64_t at_a_time = plan.batch * static_cast<std::size_t>(plan.ranks);
  if (images % at_a_time != 0) {
    throw Error(
        fmt::format("{}: written after {} images of an epoch, where this run takes {} at a time: resume with "
                    "ranks and a batch size that divide them",
                    options_.checkpoint, images, at_a_time));
  }
  first_ = run_plan_.first_of(epoch) + std::min<std::uint64_t>(images / at_a_time, plan.iterations());
}

// A parameter server takes its steps on the host, whatever computes the gradients.
std::unique_ptr<Optimizer> Training::make_optimizer_on_device() const {
  const OptimizerOptions& optimizer = options_.optimization.optimizer;
  const std::size_t size = model_->weights().size();
  if (gpu_ == nullptr || options_.updater == "parameter_server") {
    return make_optimizer(optimizer, model_->parameters(), size);
  }
  return gpu_->make_optimizer(optimizer, model_->parameters(), size);
}

double Training::rate_at(std::uint64_t iteration) const {
  return schedule_(std::llround(run_plan_.epochs_before(iteration) * static_cast<double>(plan_.iterations())));
}

Position Training::position_at(std::uint64_t iteration) const {
  const auto [epoch, within, plan] = run_plan_.at(iteration);
  return {title_of(options_.model, options_.optimization),
          data_.train->image_size(),
          data_.train->classes(),
          options_.seed,
          epoch * plan.iterations() + within,
          plan.iterations(),
          plan.batch * static_cast<std::size_t>(plan.ranks)};
}

RunFacts Training::facts_of_run() const {
  return {settings_of_training(options_.settings), data_.title, data_.hash, iterations_,
          static_cast<std::uint64_t>(communicator_.size())};
}

std::size_t Training::memory_wanted() const {
  const std::size_t gradient = model_->gradients().size_bytes();
  const std::size_t batch = run_plan_.at(iterations_ - 1).plan.batch;                // it never becomes smaller
  const std::size_t images = batch + static_cast<std::size_t>(options_.batch_size);  // of training and of evaluation
  const bool bytes = model_->takes_stored_images() && data_.train->stored() != nullptr;
  std::size_t memory = (batches_ahead + 1) * images * data_.train->values() * (bytes ? 1 : sizeof(float));
  if (options_.updater == "double_buffering") memory += gradient;
  if (options_.updater == "parameter_server" && communicator_.rank() == 0) memory += 2 * gradient;
  if (batch > static_cast<std::size_t>(options_.batch_size)) memory += gradient;
  return memory;
}

void Training::check(std::uint64_t data, std::size_t memory) {
  const RankFacts own = facts_of_this_rank(options_.settings, data, communicator_.local_size(), memory);
  const std::optional<Trouble> trouble = check_ranks(communicator_, own, options_.settings);
  if (trouble) throw AgreedError(trouble->what, 1, trouble->rank);
}

void Training::plan_all() {
  const RateOptions& rate = options_.optimization.rate;
  const double longer = stretch(rate, static_cast<double>(global_batch_of(options_, communicator_)));
  batches_ = batch_schedule_of(options_.optimization, options_.accumulate, longer);
  plan_ = {data_.train->size(), static_cast<std::size_t>(options_.batch_size * options_.accumulate),
           communicator_.rank(), communicator_.size(), options_.sharding == "equal-length"};
  if (plan_.iterations() == 0) {
    const bool accumulates = options_.accumulate > 1;
    throw Error(fmt::format("{} training images are fewer than one iteration takes ({} ranks × batch {}{}): lower {}",
                            data_.train->size(), communicator_.size(), options_.batch_size,
                            accumulates ? fmt::format(" × --accumulate {}", options_.accumulate) : "",
                            accumulates ? "--accumulate or --batch-size" : "--batch-size"));
  }
  run_plan_ = plan_run(communicator_.rank());
  const auto stretched = static_cast<std::uint64_t>(std::ceil(static_cast<double>(options_.epochs) * longer));
  const std::uint64_t epochs = std::max<std::uint64_t>(1, stretched);
  const std::optional<RunPlan::Place> wall = run_plan_.wall();
  if (wall && (options_.iterations > 0 ? wall->iteration < options_.iterations : wall->epoch < epochs)) {
    throw Error(
        fmt::format("{} training images are fewer than one iteration takes when the batch has grown ({} ranks × "
                    "{}): give --grow-batch-limit",
                    data_.train->size(), communicator_.size(), wall->plan.batch));
  }
  iterations_ = options_.iterations > 0 ? options_.iterations : run_plan_.first_of(epochs);
}

RunPlan Training::plan_run(int rank) const {
  const bool equal_length = options_.sharding == "equal-length";
  return {
      {data_.train->size(), static_cast<std::size_t>(options_.batch_size), rank, communicator_.size(), equal_length},
      batches_};
}

void Training::share_state() {
  std::vector<std::size_t> segments;
  for (const Parameter& parameter : model_->parameters()) segments.push_back(parameter.offset);
  segments.push_back(model_->gradients().size());
  communicator_.set_segments(std::move(segments));
  communicator_.broadcast(model_->weights(), 0);
  communicator_.broadcast(model_->statistics(), 0);
  for (std::vector<float>& array : optimizer_->arrays()) communicator_.broadcast(std::span<float>(array), 0);
  std::vector<double>& scalars = optimizer_->scalars();
  std::vector<std::uint64_t> bits(scalars.size());
  std::ranges::transform(scalars, bits.begin(), [](double value) { return std::bit_cast<std::uint64_t>(value); });
  communicator_.broadcast(std::span<std::uint64_t>(bits), 0);
  std::ranges::transform(bits, scalars.begin(), [](std::uint64_t value) { return std::bit_cast<double>(value); });

  std::array<std::uint64_t, 3> facts = {first_, resumed_.pending.size(), resumed_.rank_statistics.size()};
  communicator_.broadcast(std::span<std::uint64_t>(facts), 0);
  first_ = facts[0];
  resumed_.pending.resize(facts[1]);
  resumed_.rank_statistics.resize(facts[2]);
  communicator_.broadcast(std::span<float>(resumed_.pending), 0);
  communicator_.broadcast(std::span<float>(resumed_.rank_statistics), 0);
  restore_statistics();
}

// On as many ranks as then each goes on with its own running statistics, else all with their mean.
void Training::restore_statistics() {
  const std::span<float> own = model_->statistics();
  if (resumed_.rank_statistics.empty()) return;
  const std::size_t ranks = resumed_.rank_statistics.size() / own.size();
  const bool same = ranks == static_cast<std::size_t>(communicator_.size());
  const std::size_t first = same ? static_cast<std::size_t>(communicator_.rank()) : 0, count = same ? 1 : ranks;
  for (std::size_t i = 0; i < own.size(); ++i) {
    double sum = 0;
    for (std::size_t rank = first; rank < first + count; ++rank) sum += resumed_.rank_statistics[rank * own.size() + i];
    own[i] = static_cast<float>(sum / static_cast<double>(count));
  }
}

void Training::run() {
  // Whatever ends the run, its message stands on a line of its own.
  const std::unique_ptr<Progress, void (*)(Progress*)> last(&journal_->progress(), [](Progress* p) { p->clear(); });
  const Watchdog watchdog(communicator_, activity_, options_.reduction.timeout_s, abandon_);
  run_start_ = epoch_start_ = Clock::now();
  for (std::uint64_t iteration = first_; iteration < iterations_; ++iteration) {
    const Clock::time_point begin = Clock::now();
    activity_.iteration = iteration;
    StepResult result;
    std::size_t images = 0;
    {
      const Range range(Category::iteration, iteration);
      const Batch* batch = nullptr;
      {
        const Range wait(Category::preprocess);
        batch = &loader_->next();
        if (const Batch* following = loader_->following()) {
          announce(*model_, *following, static_cast<std::size_t>(options_.batch_size));
        }
      }
      images = batch->labels.size();
      optimizer_->at_epoch(run_plan_.epochs_before(iteration));
      result = updater_->step(*batch, iteration, rate_at(iteration), interrupt_received() != 0);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    iteration_seconds_.push_back(seconds * static_cast<double>(plan_.batch) / static_cast<double>(images));
    epoch_score_.loss_sum += result.score.loss_sum;
    epoch_score_.correct += result.score.correct;
    epoch_score_.samples += result.score.samples;
    const double loss = result.score.loss_sum / static_cast<double>(result.score.samples);
    journal_->iteration(iteration, loss, seconds, result.staleness);
    show_progress(iteration, loss, seconds, images);
    if (!std::isfinite(loss)) stop_for_nonfinite_loss(iteration);

    const bool last = iteration + 1 == iterations_;
    const bool epoch_ends = last || run_plan_.ends_epoch(iteration);
    const bool meets = checkpoint_times_ && checkpoint_times_->meets(iteration + 1);
    bool stop = result.stop;
    if (stop || epoch_ends || meets) stop = updater_->settle(stop);
    if (stop && (!last || updater_->asynchronous())) stop_early(iteration);  // other ranks may not be at their last
    if (epoch_ends) {
      finish_epoch(iteration);
    } else if (meets && checkpoint_times_->due(iteration + 1)) {
      check_state(iteration);
      save(position_at(iteration + 1));
    }
  }
  if (first_ >= iterations_) {
    const Score score = evaluate_now(iterations_ - 1);
    journal_->line(fmt::format(
        "the checkpoint is of a complete run: test accuracy {:.2f} % ({} of {} test images right)",
        100.0 * static_cast<double>(score.correct) / static_cast<double>(score.samples), score.correct, score.samples));
  }
  end_.seconds = seconds_since_start();
  end_.steady_images_per_s =
      steady_rate(iteration_seconds_, static_cast<double>(plan_.batch * static_cast<std::size_t>(plan_.ranks)));
  end_.target_accuracy = options_.target_accuracy;
  report_bad_images();
  journal_->end(end_);
}

// Ranks meet different images in each epoch, and some of them twice: what counts is how many there are in the set.
void Training::report_bad_images() {
  if (!bad_train_) return;
  std::array<std::string, 2> counts;
  std::size_t all = 0;
  for (const BadImages* bad : {bad_train_.get(), bad_test_.get()}) {
    const std::vector<std::uint64_t> own = bad->samples();
    std::vector<double> lengths(static_cast<std::size_t>(communicator_.size()));
    lengths[static_cast<std::size_t>(communicator_.rank())] = static_cast<double>(own.size());
    communicator_.allreduce_sum(lengths);
    const auto most = static_cast<std::size_t>(*std::ranges::max_element(lengths));
    constexpr std::uint64_t none = ~std::uint64_t{0};
    std::vector<std::uint64_t> mine(most, none), of_all(most * lengths.size());
    std::ranges::copy(own, mine.begin());
    communicator_.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(of_all)));
    std::set<std::uint64_t> distinct(of_all.begin(), of_all.end());
    distinct.erase(none);
    all += distinct.size();
    counts[bad == bad_train_.get() ? 0 : 1] = fmt::format("{}", distinct.size());
  }
  end_.bad_images = all;
  if (all == 0) return journal_->line("no image was left out");
  journal_->line(
      fmt::format("{} damaged or unreadable image{} left out: {} of training, whose places others took, and "
                  "{} of the test images",
                  all, all == 1 ? " was" : "s were", counts[0], counts[1]));
}

void Training::show_progress(std::uint64_t iteration, double loss, double seconds, std::size_t images) {
  const double rate = static_cast<double>(images) * communicator_.size() / seconds;
  images_per_s_ = images_per_s_ > 0 ? 0.8 * images_per_s_ + 0.2 * rate : rate;
  const RunPlan::Place place = run_plan_.at(iteration);
  // Epochs, not iterations: a batch that grows makes fewer of these. What evaluations took so far they will take again.
  const double done = run_plan_.epochs_before(iteration + 1) - run_plan_.epochs_before(first_);
  const double left = run_plan_.epochs_before(iterations_) - run_plan_.epochs_before(iteration + 1);
  const double elapsed = std::chrono::duration<double>(Clock::now() - run_start_).count();
  journal_->progress().show({place.epoch + 1, run_plan_.at(iterations_ - 1).epoch + 1, place.iteration + 1,
                             place.plan.iterations(), images_per_s_, loss, elapsed / done * left});
}

// Named by the first rank whose own loss it was.
void Training::stop_for_nonfinite_loss(std::uint64_t iteration) {
  const std::string what =
      nonfinite_loss(iteration, rate_at(iteration), updater_->nonfinite_layer()) + kept_checkpoint();
  agree(communicator_, what, updater_->nonfinite_layer().empty() ? 0 : 1);
  throw AgreedError(what, 1, 0);
}

// The loss of an iteration is that of the weights before its step, so it says nothing about the last step.
void Training::check_state(std::uint64_t iteration) {
  static const RangeName look("check for finite numbers");
  const Range range(Category::checkpoint, look, model_->weights().size_bytes());
  const std::string part = first_nonfinite_part(*model_, *optimizer_, updater_->pending());
  agree(communicator_,
        fmt::format("{} holds a value that is no longer a finite number after iteration {}, at learning rate {:.3g}: "
                    "lower --lr or add --warmup-epochs{}",
                    part, iteration, rate_at(iteration), kept_checkpoint()),
        part.empty() ? 0 : 1);
}

std::string Training::kept_checkpoint() const {
  std::error_code code;
  if (options_.checkpoint.empty() || !std::filesystem::exists(options_.checkpoint, code)) return {};
  return fmt::format("; {} is still the checkpoint before", options_.checkpoint);
}

void Training::stop_early(std::uint64_t iteration) {
  // Where ranks go their own ways, that of the slowest: it goes on from there, and no image is left out.
  std::vector<double> all(static_cast<std::size_t>(communicator_.size()));
  all[static_cast<std::size_t>(communicator_.rank())] = static_cast<double>(iteration);
  communicator_.allreduce_sum(all);
  iteration = static_cast<std::uint64_t>(*std::ranges::min_element(all));

  std::string what = fmt::format("interrupted: stopped after iteration {} of {}", iteration + 1, iterations_);
  check_state(iteration);
  if (!options_.checkpoint.empty()) {
    save(position_at(iteration + 1));
    what += fmt::format("; go on with --checkpoint {} --resume", options_.checkpoint);
  }
  throw AgreedError(what, 1, 0);
}

void Training::finish_epoch(std::uint64_t iteration) {
  if (updater_->asynchronous()) {  // so far each rank has counted its own
    std::array sums = {epoch_score_.loss_sum, static_cast<double>(epoch_score_.correct),
                       static_cast<double>(epoch_score_.samples)};
    communicator_.allreduce_sum(sums);
    epoch_score_ = {sums[0], static_cast<std::int64_t>(sums[1]), static_cast<std::int64_t>(sums[2])};
  }
  end_.images += static_cast<std::uint64_t>(epoch_score_.samples);
  EpochReport report;
  report.epoch = run_plan_.at(iteration).epoch + 1;
  report.epochs = run_plan_.at(iterations_ - 1).epoch + 1;
  const double seconds = std::chrono::duration<double>(Clock::now() - epoch_start_).count();
  const auto samples = static_cast<double>(epoch_score_.samples);
  report.train_loss = epoch_score_.loss_sum / samples;
  report.train_accuracy = static_cast<double>(epoch_score_.correct) / samples;
  report.images_per_s = samples / seconds;
  report.gflops = report.images_per_s * model_->train_flops_per_image() * 1e-9;

  check_state(iteration);
  const bool last = iteration + 1 == iterations_;
  if (last || (options_.eval_every > 0 && report.epoch % options_.eval_every == 0)) {
    const Score score = evaluate_now(iteration);
    report.test_loss = score.loss_sum / static_cast<double>(score.samples);
    report.test_accuracy = end_.test_accuracy;
    report.test_images = score.samples;
  }
  report.seconds = seconds_since_start();
  journal_->epoch(report);
  if (const auto staleness = updater_->take_staleness()) journal_->staleness(report.epoch, *staleness);
  if (checkpoint_times_) {
    const bool due = checkpoint_times_->meets(iteration + 1) && checkpoint_times_->due(iteration + 1);
    if (due || last || checkpoint_times_->each_epoch()) save(position_at(iteration + 1));
  }
  epoch_score_ = {};
  epoch_start_ = Clock::now();
}

Score Training::evaluate_now(std::uint64_t iteration) {
  const Range range(Category::evaluate);
  Loader::Options loading;
  loading.workers = options_.loader_workers;
  loading.bad = bad_test_.get();
  loading.progress = &activity_.images;
  const Score score =
      evaluate(*model_, communicator_, *data_.test, static_cast<std::size_t>(options_.batch_size), loading);
  if (score.samples == 0) throw AgreedError(fmt::format("{}: no test image can be read", options_.data), 1, 0);
  if (!std::isfinite(score.loss_sum)) {  // the same on every rank
    throw AgreedError(
        fmt::format("the loss of the test images is no longer a finite number after iteration {}, at learning rate "
                    "{:.3g}: lower --lr or add --warmup-epochs{}",
                    iteration, rate_at(iteration), kept_checkpoint()),
        1, 0);
  }
  const double accuracy = static_cast<double>(score.correct) / static_cast<double>(score.samples);
  mark_accuracy(accuracy);
  end_.test_accuracy = accuracy;
  end_.test_loss = score.loss_sum / static_cast<double>(score.samples);
  if (!end_.seconds_to_accuracy && accuracy >= options_.target_accuracy) {
    end_.seconds_to_accuracy = seconds_since_start();
  }
  return score;
}

void Training::save(const Position& position) {
  const Range range(Category::checkpoint);
  RunState state;
  const std::span<const float> own = model_->statistics(), pending = updater_->pending();
  state.rank_statistics.resize(own.size() * static_cast<std::size_t>(communicator_.size()));
  communicator_.allgather(std::as_bytes(own), std::as_writable_bytes(std::span(state.rank_statistics)));
  state.pending.assign(pending.begin(), pending.end());
  if (communicator_.rank() != 0) return;
  state.facts = facts_of_run();
  activity_.saving = true;
  write_checkpoint(options_.checkpoint, position, *model_, *optimizer_, state, options_.keep);
  activity_.saving = false;
}

double Training::seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

}  // namespace paceline::train
