// SPDX-License-Identifier: Apache-2.0
// The updaters against the synchronous one and against steps computed by hand. mpirun starts four ranks; a test of p
// ranks uses the first p.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <limits>
#include <mutex>
#include <random>

#include "tests/unit/trainer/updaters/small_job.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/host_collectives.h"
#include "trainer/core/error.h"
#include "trainer/optim/sgd.h"
#include "trainer/updaters/updater.h"

namespace paceline::train {
namespace {

using namespace small_job;

std::vector<float> after_steps(FirstRanks& ranks, int steps, const std::string& updater,
                               std::size_t bucket_bytes = std::size_t{25} << 20,
                               const std::string& communicator = "mpi", const std::string& type = "f32") {
  Job job(ranks, updater, bucket_bytes, communicator, type);
  for (int i = 0; i < steps; ++i) job.step(static_cast<std::uint64_t>(i));
  job.updater->settle(false);
  return job.weights();
}

TEST(MainRank, TakesTheStepsOfAllreduce) {
  for (const int p : {2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    const std::vector<float> expected = after_steps(ranks, 6, "allreduce"), got = after_steps(ranks, 6, "main_rank");
    EXPECT_LE(relative_difference(got, expected), 1e-6) << p << " ranks";
    EXPECT_GT(relative_difference(small_model()->weights(), expected), 1e-3) << "nothing was trained";
  }
}

TEST(MainRank, SendsSixteenBitGradients) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  const std::vector<float> expected = after_steps(ranks, 6, "allreduce");
  const std::vector<float> got = after_steps(ranks, 6, "main_rank", 1 << 20, "mpi", "bf16");
  EXPECT_LE(relative_difference(got, expected), 1e-2);
  EXPECT_GT(relative_difference(got, expected), 1e-7) << "nothing was rounded";
}

TEST(Overlap, TakesTheStepsOfAllreduceForAnyBuckets) {
  for (const int p : {1, 2, 3, 4}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    const std::vector<float> expected = after_steps(ranks, 6, "allreduce");
    for (const std::size_t bytes : {std::size_t{1}, std::size_t{3000}, std::size_t{25} << 20}) {
      const std::vector<float> got = after_steps(ranks, 6, "overlap", bytes);
      if (p <= 2) {
        EXPECT_EQ(got, expected) << p << " ranks, buckets of " << bytes;
      } else {  // the library adds buckets of another length in another order
        EXPECT_LE(relative_difference(got, expected), 1e-6) << p << " ranks, buckets of " << bytes;
      }
    }
  }
}

TEST(Overlap, WorksWithEveryCommunicatorAndType) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  for (const std::string& type : allreduce_dtypes()) {
    for (const std::string& communicator : communicator_names()) {
      EXPECT_EQ(after_steps(ranks, 3, "overlap", 3000, communicator, type),
                after_steps(ranks, 3, "allreduce", 0, communicator, type))
          << communicator << ' ' << type;
    }
  }
}

// v ← m v + (g + d w), w ← w − rate v
void step_by_hand(std::vector<float>& w, std::vector<float>& v, const std::vector<float>& gradient) {
  for (std::size_t i = 0; i < w.size(); ++i) {
    v[i] = sgd.momentum * v[i] + (gradient[i] + sgd.weight_decay * w[i]);
    w[i] -= static_cast<float>(rate) * v[i];
  }
}

std::vector<float> mean_gradient(const Communicator& communicator, Model& model, const std::vector<float>& weights,
                                 std::uint64_t iteration) {
  std::ranges::copy(weights, model.weights().begin());
  const Batch batch = batch_of(iteration, communicator.collectives->rank());
  model.forward(batch.images, batch.labels, Mode::train);
  model.backward(1.0f / b);
  std::vector<float> gradient(model.gradients().begin(), model.gradients().end());
  communicator.reduction->allreduce_mean(gradient);
  return gradient;
}

TEST(DoubleBuffering, IsExactlyOneStepStale) {
  for (const int p : {1, 2, 3}) {
    FirstRanks ranks(p);
    if (!ranks.in) continue;
    Job job(ranks, "double_buffering");
    const auto communicator = ranks.communicator();
    const auto by_hand = small_model();
    std::vector<float> w = job.weights(), v(w.size()), previous;
    const std::vector<float> first = w;
    for (std::uint64_t t = 0; t < 6; ++t) {
      std::vector<float> gradient = mean_gradient(communicator, *by_hand, w, t);
      job.step(t);
      job.updater->settle(false);
      if (t == 0) {
        EXPECT_EQ(job.weights(), first) << "a step in the first iteration";
      } else {
        step_by_hand(w, v, previous);  // with the previous iteration's gradient
      }
      EXPECT_LE(relative_difference(job.weights(), w), 1e-6) << p << " ranks, iteration " << t;
      previous = std::move(gradient);
    }
    EXPECT_GT(relative_difference(w, first), 1e-3);
  }
}

TEST(DoubleBuffering, ContinuesFromItsPendingGradientToTheBit) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  const std::vector<float> whole = after_steps(ranks, 6, "double_buffering");
  Job first(ranks, "double_buffering");
  for (std::uint64_t t = 0; t < 3; ++t) first.step(t);
  first.updater->settle(false);
  Job second(ranks, "double_buffering");
  std::ranges::copy(first.model->weights(), second.model->weights().begin());
  std::ranges::copy(first.optimizer.velocity(), second.optimizer.velocity().begin());
  second.updater->restore_pending(first.updater->pending());
  for (std::uint64_t t = 3; t < 6; ++t) second.step(t);
  second.updater->settle(false);
  EXPECT_EQ(second.weights(), whole);
}

TEST(DoubleBuffering, WorksWithEveryCommunicatorAndType) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  for (const std::string& type : allreduce_dtypes()) {
    const std::vector<float> expected = after_steps(ranks, 4, "double_buffering", 0, "mpi", type);
    for (const std::string& communicator : communicator_names()) {
      EXPECT_EQ(after_steps(ranks, 4, "double_buffering", 0, communicator, type), expected)
          << communicator << ' ' << type;
    }
  }
}

// A reduction on a GPU, as updaters see it: gradients are complete when its stream has reached them. The stream is
// pretended: begin_mean() takes the gradient as it is at that moment, like work put behind a stream, so that an
// incomplete gradient gives a wrong mean; and the mean arrives late. With `queues` it arrives when the model's stream
// joins (and never if it does not), else when the host has done its part in finish().
class PretendedGpu : public GradientReduction, public DeviceTransfers {
 public:
  PretendedGpu(std::unique_ptr<GradientReduction> host, bool queues) : host_(std::move(host)), queues_(queues) {}

  void set_segments(std::vector<std::size_t> offsets) override { host_->set_segments(std::move(offsets)); }
  void allreduce_mean(std::span<float> values) override { host_->allreduce_mean(values); }
  void allreduce_gradient(std::span<float> gradient, std::size_t first, std::size_t count) override {
    host_->allreduce_gradient(gradient, first, count);
  }
  void reduce_sum(std::span<float> values, int root) override { host_->reduce_sum(values, root); }
  std::size_t payload_bytes(std::size_t values) const override { return host_->payload_bytes(values); }
  const GradientMemory& memory() const override { return host_->memory(); }
  ShardedReduction* sharded() override { return nullptr; }
  DeviceTransfers* device() override { return this; }
  void set_stream(void*) override {}

  struct Work {
    std::span<float> gradient;
    std::vector<Slice> parts;
    std::vector<std::vector<float>> values;  // of the parts, as they were
    bool done = false;
  };

  class PretendedTransfer : public Transfer {
   public:
    PretendedTransfer(PretendedGpu& gpu, std::shared_ptr<Work> work) : gpu_(gpu), work_(std::move(work)) {}
    void wait_until_ready() override {}
    void finish() override {
      if (gpu_.fails) throw Error("NCCL: a collective: remote process exited");
      if (!gpu_.queues_) return gpu_.carry_out(*work_);
      std::unique_lock lock(gpu_.mutex_);
      gpu_.changed_.wait(lock, [&] { return work_->done; });
    }

   private:
    PretendedGpu& gpu_;
    std::shared_ptr<Work> work_;
  };

  std::unique_ptr<Transfer> begin_mean(std::span<float> gradient, std::span<const Slice> parts) override {
    auto work = std::make_shared<Work>();
    work->gradient = gradient;
    work->parts.assign(parts.begin(), parts.end());
    for (const Slice& part : parts) {
      const std::span<float> values = gradient.subspan(part.first, part.count);
      work->values.emplace_back(values.begin(), values.end());
    }
    begun.push_back(parts.front().first);
    if (queues_) stream_.push_back(work);
    return std::make_unique<PretendedTransfer>(*this, work);
  }
  bool queues() const override { return queues_; }
  void join() override {
    for (const std::shared_ptr<Work>& work : stream_) {
      carry_out(*work);
      const std::lock_guard lock(mutex_);
      work->done = true;
    }
    stream_.clear();
    changed_.notify_all();
  }

  std::vector<std::size_t> begun;   // the first position of each
  std::atomic<bool> fails = false;  // in finish()

 private:
  void carry_out(Work& work) {
    for (std::size_t i = 0; i < work.parts.size(); ++i) {
      const Slice part = work.parts[i];
      std::ranges::copy(work.values[i], work.gradient.begin() + static_cast<std::ptrdiff_t>(part.first));
      host_->allreduce_gradient(work.gradient, part.first, part.count);
    }
  }

  const std::unique_ptr<GradientReduction> host_;
  const bool queues_;
  std::vector<std::shared_ptr<Work>> stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
};

// Collective calls beside streams that need no part of the host.
class NoBarrier : public HostCollectives {
 public:
  using HostCollectives::HostCollectives;
  void wait_for_all() override { FAIL() << "the host has no part in it"; }
};

struct JobOnGpu {
  JobOnGpu(FirstRanks& ranks, const std::string& name, bool queues, std::size_t bucket_bytes = 3000,
           std::unique_ptr<Model> own = small_model())
      : communicator(ranks.communicator()), model(std::move(own)), optimizer(model->weights().size(), sgd) {
    if (queues) communicator.collectives = std::make_unique<NoBarrier>(ranks.ranks());
    auto pretended = std::make_unique<PretendedGpu>(std::move(communicator.reduction), queues);
    gpu = pretended.get();
    communicator.reduction = std::move(pretended);
    UpdaterParts parts{*model, communicator, optimizer};
    parts.pass.batch = b;
    parts.pass.rank = communicator.collectives->rank();
    parts.values["bucket-mb"] = static_cast<double>(bucket_bytes) * 0x1p-20;
    updater = make_updater(name, parts);
  }
  StepResult step(std::uint64_t iteration) {
    return updater->step(batch_of(iteration, communicator.collectives->rank()), iteration, rate, false);
  }

  Communicator communicator;
  PretendedGpu* gpu = nullptr;
  std::unique_ptr<Model> model;
  Sgd optimizer;
  std::unique_ptr<Updater> updater;
};

TEST(OnAGpu, UpdatersTakeTheSameStepsAsInHostMemory) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  for (const char* name : {"allreduce", "overlap", "double_buffering"}) {
    const std::vector<float> expected = after_steps(ranks, 6, name, 3000);
    for (const bool queues : {true, false}) {
      JobOnGpu job(ranks, name, queues);
      for (std::uint64_t t = 0; t < 6; ++t) job.step(t);
      if (queues) job.gpu->join();  // reading the weights from a GPU waits for its stream
      job.updater->settle(false);
      EXPECT_EQ(std::vector<float>(job.model->weights().begin(), job.model->weights().end()), expected)
          << name << (queues ? " in streams" : " through MPI");
      if (std::string(name) == "double_buffering") {  // pending: the gradient of the next step
        EXPECT_EQ(job.gpu->begun.size(), 6u);
        EXPECT_EQ(job.updater->pending().size(), expected.size());
      }
    }
  }
}

TEST(OnAGpu, BucketsBeginInTheOrderOfTheirArrivalWhileBackwardRuns) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  JobOnGpu job(ranks, "overlap", true);
  job.step(0);
  const std::size_t buckets = job.gpu->begun.size();
  ASSERT_GT(buckets, 3u);
  EXPECT_TRUE(std::ranges::is_sorted(job.gpu->begun, std::ranges::greater())) << "the last layer comes first";
  std::vector<std::size_t> begun_when_ready;  // buckets, whenever a layer's gradients are there
  job.gpu->begun.clear();
  struct Watch : LayerObserver {
    explicit Watch(JobOnGpu& of, std::vector<std::size_t>& to) : job(of), counts(to) {}
    void begin(const std::string&, Mode, bool backward) override {
      if (backward) counts.push_back(job.gpu->begun.size());
    }
    void end() override {}
    JobOnGpu& job;
    std::vector<std::size_t>& counts;
  } watch(job, begun_when_ready);
  job.model->observer = &watch;
  job.step(1);
  job.model->observer = nullptr;
  EXPECT_EQ(job.gpu->begun.size(), buckets);
  EXPECT_EQ(begun_when_ready.front(), 0u);
  EXPECT_GT(begun_when_ready.back(), 0u) << "all were kept until backward was over";
  EXPECT_LT(begun_when_ready.back(), buckets);
  job.updater->settle(false);
}

// A model whose gradients leave the range of its type in some of its backwards, as in fp16: it then reports gradients
// that are not finite and asks to repeat backward.
class Overflowing : public Model {
 public:
  explicit Overflowing(std::vector<int> when) : when_(std::move(when)), of_(small_model()) {}

  Score forward(std::span<const float> images, std::span<const std::int32_t> labels, Mode mode) override {
    images_ = images;
    labels_ = labels;
    used_ = false;
    return of_->forward(images, labels, mode);
  }
  void backward(float scale) override {
    if (used_) of_->forward(images_, labels_, Mode::train);  // on a CPU backward overwrites activations
    again_ = gradients_ready && std::ranges::count(when_, backwards) > 0;
    used_ = true;
    ++backwards;
    of_->gradients_ready = [this](std::size_t first, std::size_t count) {
      if (again_) gradients()[parameters()[first].offset] = std::numeric_limits<float>::infinity();
      if (gradients_ready) gradients_ready(first, count);
    };
    of_->backward(scale);
  }
  bool wants_backward_again() const override { return again_; }
  std::span<float> weights() override { return of_->weights(); }
  std::span<float> gradients() override { return of_->gradients(); }
  void set_gradients(std::span<float> buffer) override { of_->set_gradients(buffer); }
  const std::vector<Parameter>& parameters() const override { return of_->parameters(); }
  std::span<float> statistics() override { return of_->statistics(); }
  std::vector<float> to_plain(const Parameter& p, std::span<const float> flat) const override {
    return of_->to_plain(p, flat);
  }
  void from_plain(const Parameter& p, std::span<const float> plain, std::span<float> flat) const override {
    of_->from_plain(p, plain, flat);
  }
  std::string first_nonfinite_layer() const override { return of_->first_nonfinite_layer(); }
  double train_flops_per_image() const override { return of_->train_flops_per_image(); }

  int backwards = 0;

 private:
  const std::vector<int> when_;
  std::unique_ptr<Model> of_;
  std::span<const float> images_;
  std::span<const std::int32_t> labels_;
  bool again_ = false, used_ = false;
};

TEST(OnAGpu, AllRanksRepeatABackwardThatOverflowedOnOne) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  const std::vector<float> expected = after_steps(ranks, 5, "overlap", 3000);
  for (const bool queues : {true, false}) {
    const int rank = ranks.communicator().collectives->rank();
    // In the first iteration, before there is a plan; twice in one iteration; on two ranks at once.
    const std::vector<std::vector<int>> when{{0, 4}, {2, 3, 4}, {}};
    auto own = std::make_unique<Overflowing>(when[static_cast<std::size_t>(rank)]);
    const Overflowing& model = *own;
    JobOnGpu job(ranks, "overlap", queues, 3000, std::move(own));
    for (std::uint64_t t = 0; t < 5; ++t) EXPECT_EQ(job.step(t).score.samples, 3 * static_cast<std::int64_t>(b));
    if (queues) job.gpu->join();
    job.updater->settle(false);
    EXPECT_EQ(std::vector<float>(job.model->weights().begin(), job.model->weights().end()), expected);
    EXPECT_EQ(model.backwards, 5 + 4) << "backwards that overflowed somewhere: 0, 2, 3, 4";
  }
}

TEST(OnAGpu, AFailureOfACollectiveEndsTheRun) {
  FirstRanks ranks(1);
  if (!ranks.in) return;
  for (const bool queues : {true, false}) {
    for (const char* name : {"overlap", "double_buffering"}) {
      JobOnGpu job(ranks, name, queues);
      job.step(0);
      job.gpu->fails = true;
      const auto run = [&] {
        for (std::uint64_t t = 1; t < 3; ++t) job.step(t);
        job.gpu->join();
        job.updater->settle(false);
      };
      EXPECT_THROW(run(), Error) << name << (queues ? " in streams" : " through MPI");
    }
  }
}

TEST(ParameterServer, OfOneRankIsPlainTraining) {
  FirstRanks ranks(1);
  if (!ranks.in) return;
  EXPECT_EQ(after_steps(ranks, 5, "parameter_server"), after_steps(ranks, 5, "single"));
}

TEST(ParameterServer, ConvergesAndMeasuresItsStaleness) {
  for (const int p : {2, 4}) {
    for (const bool bounded : {true, false}) {
      FirstRanks ranks(p);
      if (!ranks.in) continue;
      Job job(ranks, "parameter_server", 0, "mpi", "f32", bounded ? std::optional<std::uint64_t>(0) : std::nullopt);
      constexpr std::uint64_t steps = 30;
      const auto n = static_cast<std::uint64_t>(p);
      std::uint64_t before = 0;  // updates of earlier rounds
      double first_loss = 0, last_loss = 0;
      for (int round = 0; round < 4; ++round) {
        double seen = 0, most = 0;
        for (std::uint64_t t = 0; t < steps; ++t) {
          const StepResult result = job.updater->step(batch_of(0, job.communicator.collectives->rank()), t, rate / 4,
                                                      false);  // the same batch in each iteration
          ASSERT_TRUE(result.staleness);
          seen += static_cast<double>(*result.staleness);
          most = std::max(most, static_cast<double>(*result.staleness));
          if (bounded) {
            EXPECT_LE(*result.staleness, n - 1);
          }
          if (round == 0 && t == 0) first_loss = result.score.loss_sum;
          last_loss = result.score.loss_sum;
        }
        EXPECT_FALSE(job.updater->settle(false));
        std::array sums{seen};
        job.communicator.collectives->allreduce_sum(sums);
        std::vector<float> of_rank_0 = job.weights();
        job.communicator.collectives->broadcast(of_rank_0, 0);
        EXPECT_EQ(job.weights(), of_rank_0) << "ranks differ after settle()";

        const auto report = job.updater->take_staleness();
        ASSERT_EQ(report.has_value(), job.communicator.collectives->rank() == 0);
        if (!report) continue;
        std::uint64_t updates = 0, sum = 0, last_version = 0, counted = 0, weighted = 0;
        for (const StalenessReport::OfRank& rank : report->ranks) {
          EXPECT_EQ(rank.updates, steps);
          EXPECT_EQ(rank.first_version, before);
          // Between a rank's first weights and its last update are its own updates, those that it missed, and those
          // that were applied while it waited for weights, which it received.
          EXPECT_LE(rank.sum + rank.updates, rank.last_version - rank.first_version);
          updates += rank.updates;
          sum += rank.sum;
          last_version = std::max(last_version, rank.last_version);
        }
        for (std::size_t s = 0; s < report->histogram.size(); ++s) {
          counted += report->histogram[s];
          weighted += s * report->histogram[s];
        }
        EXPECT_EQ(updates, n * steps);
        EXPECT_EQ(last_version, before + updates);
        EXPECT_EQ(static_cast<double>(sum), sums[0]) << "the ranks were told other numbers than the server counted";
        EXPECT_EQ(counted, updates);
        EXPECT_EQ(weighted, sum);
        if (bounded) {
          EXPECT_LE(report->histogram.size(), n);
        }
        EXPECT_GT(sum, 0u) << "nothing was ever stale";
        before += updates;
      }
      EXPECT_LT(last_loss, 0.6 * first_loss);
    }
  }
}

TEST(ParameterServer, ARequestToStopReachesEveryRank) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  Job job(ranks, "parameter_server");
  std::uint64_t t = 0;
  bool stop = false;
  for (; !stop && t < 10'000; ++t) stop = job.step(t, job.communicator.collectives->rank() == 1 && t == 3).stop;
  EXPECT_LT(t, 10'000u);
  EXPECT_TRUE(job.updater->settle(stop));
}

TEST(Accumulate, SeveralPassesAreOneLargeBatch) {
  constexpr std::size_t passes = 3;
  for (const char* updater : {"allreduce", "overlap"}) {
    FirstRanks ranks(2);
    if (!ranks.in) continue;
    Job parts(ranks, updater, 3000);
    const auto communicator = ranks.communicator();
    const auto large = small_model(passes * b);
    Sgd optimizer(large->weights().size(), sgd);
    UpdaterParts of_large{*large, communicator, optimizer};
    of_large.pass.batch = passes * b;
    const auto whole = make_updater("allreduce", of_large);
    for (std::uint64_t t = 0; t < 4; ++t) {
      const Batch batch = batch_of(t, communicator.collectives->rank(), passes * b);
      const Score a = parts.updater->step(batch, t, rate, false).score, c = whole->step(batch, t, rate, false).score;
      EXPECT_NEAR(a.loss_sum, c.loss_sum, 1e-5 * c.loss_sum);
      EXPECT_EQ(a.samples, c.samples);
    }
    for (std::size_t i = 0; i < large->parameters().size(); ++i) {  // layouts may differ with the batch
      const Parameter& p = large->parameters()[i];
      const Parameter& q = parts.model->parameters()[i];
      EXPECT_LE(
          relative_difference(parts.model->to_plain(q, parts.model->weights()), large->to_plain(p, large->weights())),
          1e-5)
          << updater << ' ' << p.name;
    }
  }
}

TEST(Mean, IsTheSumOfPerWorkerLossesDividedByAllImages) {
  FirstRanks ranks(3);
  if (!ranks.in) return;
  const auto communicator = ranks.communicator();
  const auto model = small_model();
  const std::vector<float> weights(model->weights().begin(), model->weights().end());
  const std::vector<float> mean = mean_gradient(communicator, *model, weights, 0);
  const Batch batch = batch_of(0, communicator.collectives->rank());
  model->forward(batch.images, batch.labels, Mode::train);
  model->backward(1.0f / (b * 3));  // ÷ kn on each worker, then sums (Goyal et al., 1706.02677, 3)
  communicator.reduction->reduce_sum(model->gradients(), 0);
  if (communicator.collectives->rank() == 0) {
    EXPECT_LE(relative_difference(model->gradients(), mean), 1e-6);
  }
}

TEST(NotFinite, NamesTheLayerAndLeavesTheWeights) {
  for (const char* updater : {"allreduce", "main_rank", "overlap", "double_buffering"}) {
    FirstRanks ranks(2);
    if (!ranks.in) continue;
    Job job(ranks, updater);
    job.step(0);
    const int rank = job.communicator.collectives->rank();
    for (const Parameter& parameter : job.model->parameters()) {
      if (rank == 1 && parameter.name == "conv2.weight") job.model->weights()[parameter.offset] = NAN;
    }
    const std::vector<float> before = job.weights();
    const StepResult result = job.step(1);
    EXPECT_FALSE(std::isfinite(result.score.loss_sum)) << updater;
    EXPECT_EQ(job.updater->nonfinite_layer(), rank == 1 ? "conv2" : "") << updater;
    const std::vector<float> after = job.weights();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), after.begin(), [](float x, float y) {
      return x == y || (std::isnan(x) && std::isnan(y));
    })) << updater;
    job.updater->settle(false);
  }
}

TEST(CheckUpdater, RefusesImpossibleCombinations) {
  const auto refusal = [](const char* name, int ranks, const char* communicator, const char* type) -> std::string {
    try {
      check_updater(name, ranks, communicator, type);
    } catch (const Error& error) {
      EXPECT_EQ(error.status, Status::usage);
      return error.what();
    }
    return "";
  };
  using testing::HasSubstr;
  EXPECT_THAT(refusal("single", 2, "mpi", "f32"), HasSubstr("one rank"));
  EXPECT_THAT(refusal("main_rank", 2, "ring", "f32"), HasSubstr("‹communicator› ring"));
  EXPECT_THAT(refusal("parameter_server", 2, "ring", "f32"), HasSubstr("‹communicator› ring"));
  EXPECT_THAT(refusal("parameter_server", 2, "mpi", "f16"), HasSubstr("f16"));
  for (const UpdaterKind* kind : updater_kinds()) EXPECT_EQ(refusal(kind->name, 1, "mpi", "f32"), "");
  for (const char* updater : {"allreduce", "overlap", "double_buffering"}) {
    EXPECT_EQ(refusal(updater, 4, "ring", "bf16"), "");
  }
}

}  // namespace
}  // namespace paceline::train

int main(int argc, char** argv) {
  setenv("OMPI_MCA_mpi_yield_when_idle", "1", 1);
  int provided = 0, size = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &provided);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  testing::InitGoogleTest(&argc, argv);
  const int result = size == 4 && provided >= MPI_THREAD_SERIALIZED ? RUN_ALL_TESTS() : 1;
  MPI_Finalize();
  return result;
}
