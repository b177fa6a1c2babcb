#include "trainer/loop/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "trainer/data/cifar.h"
#include "trainer/data/synthetic.h"
#include "trainer/error.h"
#include "trainer/loop/evaluator.h"
#include "trainer/loop/interrupt.h"
#include "trainer/loop/threads.h"

namespace paceline::train {
namespace {

// Turns an error of any rank into one on all of them.
void agree(Communicator& communicator, const std::string& what, int status) {
  std::vector<double> statuses(static_cast<std::size_t>(communicator.size()));
  statuses[static_cast<std::size_t>(communicator.rank())] = status;
  communicator.allreduce_sum(statuses);
  for (std::size_t rank = 0; rank < statuses.size(); ++rank) {
    if (statuses[rank] > 0) throw AgreedError(what, static_cast<int>(statuses[rank]), static_cast<int>(rank));
  }
}

Schedule make_schedule(const TrainOptions& options, std::uint64_t iterations, std::uint64_t iterations_per_epoch) {
  const auto run = static_cast<std::int64_t>(iterations);
  Schedule schedule = constant_rate(options.learning_rate);
  if (options.schedule == "cosine") schedule = cosine_rate(options.learning_rate, run);
  if (options.schedule == "step") schedule = stepped_rate(options.learning_rate, 0.1, {run / 2, run * 3 / 4});
  const std::int64_t warm_up = std::llround(options.warmup_epochs * static_cast<double>(iterations_per_epoch));
  if (warm_up == 0) return schedule;
  const double first = options.learning_rate / static_cast<double>(warm_up + 1);  // no iteration is spent on rate 0
  return warmed_up(std::move(schedule), first, warm_up);
}

// What this run is, for whoever compares it with others.
nlohmann::json describe_run(const TrainOptions& options, const Communicator& communicator, double epochs) {
  const std::int64_t global_batch = options.batch_size * communicator.size();
  nlohmann::json run = {{"program", "paceline-train"},
                        {"model", options.model},
                        {"data", options.synthetic ? fmt::format("synthetic {} px", options.image_size) : options.data},
                        {"batch_per_rank", options.batch_size},
                        {"global_batch", global_batch},
                        {"images_per_iteration", global_batch},
                        {"dtype", options.dtype},
                        {"communicator", options.communicator},
                        {"allreduce_dtype", options.allreduce_dtype},
                        {"updater", "synchronous"},
                        {"seed", options.seed},
                        {"epochs", epochs},
                        {"ranks", communicator.size()},
                        {"evaluate", "all ranks"}};
  if (epochs == std::floor(epochs)) run["epochs"] = static_cast<std::uint64_t>(epochs);
  return run;
}

}  // namespace

Training::Training(const TrainOptions& options, Communicator& communicator, Clock::time_point start)
    : options_(options), communicator_(communicator), start_(start) {
  std::string what;
  int status = 0;
  try {
    prepare();
  } catch (const Error& error) {
    what = error.what();
    status = static_cast<int>(error.status);
  } catch (const std::exception& error) {
    what = error.what();
    status = 1;
  }
  agree(communicator_, what, status);
  share_state();

  const double epochs = static_cast<double>(iterations_) / static_cast<double>(plan_.iterations());
  nlohmann::json run = describe_run(options_, communicator_, epochs);
  mark_run(run.dump());
  run.update({{"iterations", iterations_},
              {"threads", threads_},
              {"lr", options_.learning_rate},
              {"train_images", data_.train.size()},
              {"test_images", data_.test.size()},
              {"first_iteration", first_}});
  journal_->start(run);
  loader_ = std::make_unique<Loader>(data_.train, normalization_,
                                     Loader::Options{plan_, options_.seed, first_, iterations_, 4});
  updater_ = std::make_unique<SynchronousUpdater>(*model_, communicator_, *optimizer_);
  catch_interrupts();
}

void Training::prepare() {
  threads_ = set_threads(options_.threads, communicator_.local_size());
  load_data();
  journal_ = std::make_unique<Journal>(communicator_.rank(), options_.log, options_.resume);

  ModelOptions model;
  model.name = options_.model;
  model.batch_size = options_.batch_size;
  model.image_size = data_.train.image_size;
  model.classes = data_.train.classes;
  model.seed = options_.seed;
  model.freeze_batch_norm = options_.freeze_batch_norm;
  model.cifar_stem = data_.train.image_size <= 64;
  try {
    model_ = make_cpu_model(model);
  } catch (const std::invalid_argument& error) {
    throw Error(error.what(), Status::usage);
  }
  model_->observer = &layer_ranges_;
  optimizer_ = std::make_unique<Sgd>(
      model_->weights().size(),
      SgdOptions{static_cast<float>(options_.momentum), static_cast<float>(options_.weight_decay), false});
  schedule_ = make_schedule(options_, iterations_, plan_.iterations());

  if (!options_.resume || communicator_.rank() != 0 || !std::filesystem::exists(options_.checkpoint)) return;
  const Position expected{options_.model, model.image_size, model.classes, options_.seed, 0, plan_.iterations()};
  const Position position = read_checkpoint(options_.checkpoint, expected, *model_, *optimizer_);
  if (position.iterations_per_epoch == plan_.iterations()) {
    first_ = position.iteration;
  } else if (position.iteration % position.iterations_per_epoch == 0) {  // other ranks or batch: at an epoch's end only
    first_ = position.iteration / position.iterations_per_epoch * plan_.iterations();
  } else {
    throw Error(
        fmt::format("{}: written in the middle of an epoch of {} iterations, where this run has {}: resume with the "
                    "ranks and the batch size of then",
                    options_.checkpoint, position.iterations_per_epoch, plan_.iterations()));
  }
}

void Training::load_data() {
  data_ = options_.synthetic ? synthetic_data({options_.image_size, options_.classes, options_.train_images,
                                               options_.test_images, options_.seed})
                             : read_cifar10(options_.data);
  normalization_ = normalization_of(data_.train);
  plan_ = {data_.train.size(), static_cast<std::size_t>(options_.batch_size), communicator_.rank(),
           communicator_.size()};
  if (plan_.iterations() == 0) {
    throw Error(
        fmt::format("{} training images are fewer than one iteration takes ({} ranks × batch {}): lower --batch-size",
                    data_.train.size(), communicator_.size(), options_.batch_size));
  }
  iterations_ = options_.iterations > 0 ? options_.iterations : options_.epochs * plan_.iterations();
}

void Training::share_state() {
  std::vector<std::size_t> segments;
  for (const Parameter& parameter : model_->parameters()) segments.push_back(parameter.offset);
  segments.push_back(model_->gradients().size());
  communicator_.set_segments(std::move(segments));
  communicator_.broadcast(model_->weights(), 0);
  communicator_.broadcast(model_->statistics(), 0);
  communicator_.broadcast(optimizer_->velocity(), 0);
  std::array position = {first_};
  communicator_.broadcast(std::span<std::uint64_t>(position), 0);
  first_ = position[0];
}

void Training::run() {
  epoch_start_ = Clock::now();
  for (std::uint64_t iteration = first_; iteration < iterations_; ++iteration) {
    const Clock::time_point begin = Clock::now();
    StepResult result;
    {
      const Range range(Category::iteration, iteration);
      const Batch* batch = nullptr;
      {
        const Range wait(Category::preprocess);
        batch = &loader_->next();
      }
      result = updater_->step(*batch, schedule_(static_cast<std::int64_t>(iteration)), interrupt_received() != 0);
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    iteration_seconds_.push_back(seconds);
    epoch_score_.loss_sum += result.score.loss_sum;
    epoch_score_.correct += result.score.correct;
    epoch_score_.samples += result.score.samples;
    end_.images += static_cast<std::uint64_t>(result.score.samples);
    const double loss = result.score.loss_sum / static_cast<double>(result.score.samples);
    journal_->iteration(iteration, iterations_, loss, seconds);

    const bool last = iteration + 1 == iterations_;
    if (!std::isfinite(loss) || (result.stop && !last)) stop_early(iteration, result);
    if (last || (iteration + 1) % plan_.iterations() == 0) finish_epoch(iteration);
  }
  if (first_ >= iterations_) {
    const Score score = evaluate_now();
    journal_->line(
        fmt::format("the checkpoint is of a complete run: {} of {} test images right", score.correct, score.samples));
  }
  end_.seconds = seconds_since_start();
  end_.steady_images_per_s =
      steady_rate(iteration_seconds_, static_cast<double>(plan_.batch * static_cast<std::size_t>(plan_.ranks)));
  end_.target_accuracy = options_.target_accuracy;
  journal_->end(end_);
}

void Training::stop_early(std::uint64_t iteration, const StepResult& result) {
  if (!std::isfinite(result.score.loss_sum)) {
    throw AgreedError(fmt::format("the loss is no longer a finite number in iteration {}: lower --lr or add "
                                  "--warmup-epochs",
                                  iteration),
                      1, 0);
  }
  std::string what = fmt::format("interrupted: stopped after iteration {} of {}", iteration + 1, iterations_);
  if (!options_.checkpoint.empty()) {
    Position position{options_.model, data_.train.image_size, data_.train.classes,
                      options_.seed,  iteration + 1,          plan_.iterations()};
    save(position);
    what += fmt::format("; go on with --checkpoint {} --resume", options_.checkpoint);
  }
  throw AgreedError(what, 1, 0);
}

void Training::finish_epoch(std::uint64_t iteration) {
  EpochReport report;
  report.epoch = iteration / plan_.iterations() + 1;
  report.epochs = (iterations_ + plan_.iterations() - 1) / plan_.iterations();
  const double seconds = std::chrono::duration<double>(Clock::now() - epoch_start_).count();
  const auto samples = static_cast<double>(epoch_score_.samples);
  report.train_loss = epoch_score_.loss_sum / samples;
  report.train_accuracy = static_cast<double>(epoch_score_.correct) / samples;
  report.images_per_s = samples / seconds;
  report.gflops = report.images_per_s * model_->train_flops_per_image() * 1e-9;

  const bool last = iteration + 1 == iterations_;
  if (last || (options_.eval_every > 0 && report.epoch % options_.eval_every == 0)) {
    const Score score = evaluate_now();
    report.test_loss = score.loss_sum / static_cast<double>(score.samples);
    report.test_accuracy = end_.test_accuracy;
    report.test_images = score.samples;
  }
  report.seconds = seconds_since_start();
  journal_->epoch(report);
  if (!options_.checkpoint.empty()) {
    save({options_.model, data_.train.image_size, data_.train.classes, options_.seed, iteration + 1,
          plan_.iterations()});
  }
  epoch_score_ = {};
  epoch_start_ = Clock::now();
}

Score Training::evaluate_now() {
  const Range range(Category::evaluate);
  const Score score = evaluate(*model_, communicator_, data_.test, normalization_, plan_.batch);
  const double accuracy = static_cast<double>(score.correct) / static_cast<double>(score.samples);
  mark_accuracy(accuracy);
  end_.test_accuracy = accuracy;
  if (!end_.seconds_to_accuracy && accuracy >= options_.target_accuracy) {
    end_.seconds_to_accuracy = seconds_since_start();
  }
  return score;
}

void Training::save(const Position& position) {
  const Range range(Category::checkpoint);
  if (communicator_.rank() == 0) write_checkpoint(options_.checkpoint, position, *model_, *optimizer_);
}

double Training::seconds_since_start() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

}  // namespace paceline::train
