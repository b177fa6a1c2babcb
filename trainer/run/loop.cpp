// SPDX-License-Identifier: Apache-2.0
#include "trainer/run/loop.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "trainer/checkpoint/weights.h"
#include "trainer/core/whole_file.h"
#include "trainer/guard/agreement.h"
#include "trainer/guard/interrupt.h"
#include "trainer/guard/watchdog.h"
#include "trainer/run/checkpointing.h"
#include "trainer/run/evaluation.h"
#include "trainer/run/staged_job.h"

namespace paceline::train {
namespace loop {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// How many images of the set could not be read, counted once however often and on however many ranks they came up. A
// collective call.
std::size_t count_bad_images(Collectives& ranks, const BadImages& bad) {
  const std::vector<std::uint64_t> own = bad.samples();
  std::vector<double> lengths(static_cast<std::size_t>(ranks.size()));
  lengths[static_cast<std::size_t>(ranks.rank())] = static_cast<double>(own.size());
  ranks.allreduce_sum(lengths);
  const auto most = static_cast<std::size_t>(*std::ranges::max_element(lengths));
  constexpr std::uint64_t none = ~std::uint64_t{0};
  std::vector<std::uint64_t> mine(most, none), of_all(most * lengths.size());
  std::ranges::copy(own, mine.begin());
  ranks.allgather(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(of_all)));
  std::set<std::uint64_t> distinct(of_all.begin(), of_all.end());
  distinct.erase(none);
  return distinct.size();
}

class Loop {
 public:
  explicit Loop(Job& job) : job_(job) {}

  void run() {
    run_start_ = epoch_start_ = Clock::now();
    const bool trains = !job_.options.evaluate_only && job_.first_iteration < job_.iterations;
    for (std::uint64_t iteration = job_.first_iteration; trains && iteration < job_.iterations; ++iteration) {
      iterate(iteration);
    }
    if (!trains) evaluate_alone();
    if (!job_.options.export_weights.empty()) export_weights();
    end_.seconds = job_.seconds_since_start();
    const EpochPlan& first = job_.first_epoch;
    end_.steady_images_per_s =
        steady_rate(iteration_seconds_, static_cast<double>(first.batch * static_cast<std::size_t>(first.ranks)));
    end_.target_accuracy = job_.options.target_accuracy;
    report_bad_images();
    job_.journal->end(end_);
  }

 private:
  void iterate(std::uint64_t iteration) {
    const Clock::time_point begin = Clock::now();
    job_.activity.iteration = iteration;
    StepResult result;
    std::size_t images = 0;
    {
      const Range range(Category::iteration, iteration);
      const Batch& batch = next_batch();
      images = batch.labels.size();
      job_.optimizer->at_epoch(job_.plan.epochs_before(iteration));
      result = job_.updater->step(batch, iteration, job_.rate_at(iteration), interrupt_received() != 0);
    }
    const double seconds = seconds_since(begin);
    iteration_seconds_.push_back(seconds * static_cast<double>(job_.first_epoch.batch) / static_cast<double>(images));
    epoch_score_ += result.score;
    const double loss = result.score.loss_sum / static_cast<double>(result.score.samples);
    job_.journal->iteration(
        {iteration, loss, seconds, job_.rate_at(iteration), result.staleness, job_.updater->gradient_norm()});
    show_progress(iteration, loss, seconds, images);
    if (!std::isfinite(loss)) stop_for_nonfinite_loss(iteration);

    const bool last = iteration + 1 == job_.iterations;
    const bool epoch_ends = last || job_.plan.ends_epoch(iteration);
    const bool meets = job_.checkpoint_times && job_.checkpoint_times->meets(iteration + 1);
    bool stop = result.stop;
    if (stop || epoch_ends || meets) stop = job_.updater->settle(stop);
    // An asynchronous rank at its last iteration stops as well: the other ranks may have iterations left.
    if (stop && (!last || job_.updater->asynchronous())) stop_early(iteration);
    if (epoch_ends) {
      finish_epoch(iteration);
    } else if (meets && job_.checkpoint_times->due(iteration + 1)) {
      check_state(job_, iteration);
      save_state(job_, iteration + 1);
    }
  }

  const Batch& next_batch() {
    const Range wait(Category::preprocess);
    const Batch& batch = job_.loader->next();
    if (const Batch* following = job_.loader->following()) {
      prefetch(*job_.model, *following, static_cast<std::size_t>(job_.options.batch_size));
    }
    return batch;
  }

  void show_progress(std::uint64_t iteration, double loss, double seconds, std::size_t images) {
    const double rate = static_cast<double>(images) * job_.replicas.size() / seconds;
    images_per_s_ = images_per_s_ > 0 ? 0.8 * images_per_s_ + 0.2 * rate : rate;
    const RunPlan& plan = job_.plan;
    const RunPlan::Place place = plan.at(iteration);
    job_.journal->progress().show({.epoch = place.epoch + 1,
                                   .epochs = plan.at(job_.iterations - 1).epoch + 1,
                                   .step = place.iteration + 1,
                                   .steps = place.plan.iterations(),
                                   .images_per_s = images_per_s_,
                                   .loss = loss,
                                   .seconds_left = seconds_left(iteration)});
  }

  // Measured in epochs, because a batch that grows makes iterations fewer and longer. The time of evaluations so far
  // counts, since later epochs are evaluated too.
  double seconds_left(std::uint64_t iteration) const {
    const double done = job_.plan.epochs_before(iteration + 1);
    const double share =
        (job_.plan.epochs_before(job_.iterations) - done) / (done - job_.plan.epochs_before(job_.first_iteration));
    return seconds_since(run_start_) * share;
  }

  // The first rank whose own loss is not finite reports its layer.
  [[noreturn]] void stop_for_nonfinite_loss(std::uint64_t iteration) {
    const std::string& layer = job_.updater->nonfinite_layer();
    const std::string what = nonfinite_loss(iteration, job_.rate_at(iteration), layer) + job_.kept_checkpoint();
    agree(job_.ranks, layer.empty() ? "" : what);
    throw AgreedError(what, Status::failed, 0);
  }

  [[noreturn]] void stop_early(std::uint64_t iteration) {
    // Asynchronous ranks stop at different iterations. The checkpoint is at the slowest rank's, so that a resumed run
    // leaves out no image.
    std::vector<double> all(static_cast<std::size_t>(job_.ranks.size()));
    all[static_cast<std::size_t>(job_.ranks.rank())] = static_cast<double>(iteration);
    job_.ranks.allreduce_sum(all);
    iteration = static_cast<std::uint64_t>(*std::ranges::min_element(all));

    std::string what = fmt::format("interrupted: stopped after iteration {} of {}", iteration + 1, job_.iterations);
    check_state(job_, iteration);
    if (!job_.options.checkpoint.empty()) {
      save_state(job_, iteration + 1);
      what += fmt::format("; go on with ‹checkpoint› {} ‹resume›", job_.options.checkpoint);
    }
    throw AgreedError(what, Status::failed, 0);
  }

  void finish_epoch(std::uint64_t iteration) {
    if (job_.updater->asynchronous()) {  // until here each rank has counted its own images
      epoch_score_ = sum_over_ranks(job_.ranks, epoch_score_);
    }
    end_.images += static_cast<std::uint64_t>(epoch_score_.samples);
    EpochReport report;
    report.epoch = job_.plan.at(iteration).epoch + 1;
    report.epochs = job_.plan.at(job_.iterations - 1).epoch + 1;
    const double seconds = seconds_since(epoch_start_);
    const auto samples = static_cast<double>(epoch_score_.samples);
    report.train_loss = epoch_score_.loss_sum / samples;
    report.train_accuracy = static_cast<double>(epoch_score_.correct) / samples;
    report.images_per_s = samples / seconds;
    report.gflops = report.images_per_s * job_.train_flops_per_image * 1e-9;

    check_state(job_, iteration);
    const bool last = iteration + 1 == job_.iterations;
    if (last || (job_.options.eval_every > 0 && report.epoch % job_.options.eval_every == 0)) {
      const Score score = evaluate_now(iteration);
      report.test_images = score.samples;
      report.test_top_5 = top_5_of(score);
      report.test_loss = end_.test_loss;
      report.test_accuracy = end_.test_accuracy;
    }
    report.seconds = job_.seconds_since_start();
    report.seconds_left = seconds_left(iteration);
    job_.journal->epoch(report);
    if (const auto staleness = job_.updater->take_staleness()) job_.journal->staleness(report.epoch, *staleness);
    if (job_.checkpoint_times) {
      const bool best = job_.options.keep_best && report.test_accuracy.value_or(-1) > job_.resumed.best_accuracy;
      if (best) job_.resumed.best_accuracy = *report.test_accuracy;
      const bool due = job_.checkpoint_times->meets(iteration + 1) && job_.checkpoint_times->due(iteration + 1);
      if (due || last || best || job_.checkpoint_times->each_epoch()) save_state(job_, iteration + 1, best);
    }
    epoch_score_ = {};
    epoch_start_ = Clock::now();
  }

  // Evaluates and keeps the result for the report at the end of the run.
  Score evaluate_now(std::uint64_t iteration) {
    const Score score = evaluate(job_, iteration);
    end_.test_accuracy = static_cast<double>(score.correct) / static_cast<double>(score.samples);
    end_.test_loss = score.loss_sum / static_cast<double>(score.samples);
    if (!end_.seconds_to_accuracy && *end_.test_accuracy >= job_.options.target_accuracy) {
      end_.seconds_to_accuracy = job_.seconds_since_start();
    }
    return score;
  }

  // For a run that does not train.
  void evaluate_alone() {
    const Score score = evaluate_now(job_.iterations - 1);
    const std::optional<double> top_5 = top_5_of(score);
    job_.journal->line(
        fmt::format("{}: test accuracy {:.2f} % ({} of {} test images right){}",
                    job_.options.evaluate_only ? "evaluated without training" : "the checkpoint is of a complete run",
                    100.0 * static_cast<double>(score.correct) / static_cast<double>(score.samples), score.correct,
                    score.samples, top_5 ? fmt::format(", {:.2f} % among the best five classes", 100 * *top_5) : ""));
  }

  // Empty if there are no more than five classes, among which every image is right.
  std::optional<double> top_5_of(const Score& score) const {
    if (job_.data.train->classes() <= 5) return std::nullopt;
    return static_cast<double>(score.in_top_5) / static_cast<double>(score.samples);
  }

  void export_weights() {
    static const RangeName name("export weights");
    const Range range(Category::checkpoint, name, job_.model->weights().size_bytes());
    const std::unique_ptr<Model> whole = job_.staged ? gather_model(job_) : nullptr;
    const std::vector<float> statistics =
        job_.staged ? gather_mean_statistics(job_) : mean_statistics(*job_.model, job_.ranks);
    Model& model = whole ? *whole : *job_.model;
    const std::uint64_t iterations = job_.options.evaluate_only ? 0 : job_.iterations;
    together(job_.ranks, [&] {
      if (job_.ranks.rank() != 0) return;
      const auto batches = iterations * static_cast<std::uint64_t>(job_.options.accumulate) *
                           static_cast<std::uint64_t>(job_.options.pipeline.microbatches);
      write_file_atomically(job_.options.export_weights, exported_weights(model, statistics, batches), Sync::yes, 1);
    });
    job_.journal->line(
        fmt::format("{}: the weights of this run, with torchvision's names", job_.options.export_weights));
  }

  void report_bad_images() {
    if (!job_.bad_train) return;
    const std::size_t train = count_bad_images(job_.ranks, *job_.bad_train);
    const std::size_t test = count_bad_images(job_.ranks, *job_.bad_test), all = train + test;
    end_.bad_images = all;
    if (all == 0) return job_.journal->line("no image was left out");
    job_.journal->line(
        fmt::format("{} damaged or unreadable image{} left out: {} of training, whose places others took, and "
                    "{} of the test images",
                    all, all == 1 ? " was" : "s were", train, test));
  }

  Job& job_;
  Score epoch_score_;  // of the epoch's training images so far
  Clock::time_point run_start_, epoch_start_;
  double images_per_s_ = 0;                // over the last iterations, summed over all ranks
  std::vector<double> iteration_seconds_;  // of each iteration, scaled to the first iteration's number of images
  EndReport end_;
};

}  // namespace
}  // namespace loop

void train(Job& job) {
  // Whatever ends the run, the progress line is cleared before a message is printed.
  const std::unique_ptr<Progress, void (*)(Progress*)> last(&job.journal->progress(), [](Progress* p) { p->clear(); });
  const Watchdog watchdog(job.ranks, job.activity, job.options.reduction.timeout_s, job.surroundings.abandon);
  loop::Loop(job).run();
}

}  // namespace paceline::train
