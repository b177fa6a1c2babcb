// SPDX-License-Identifier: Apache-2.0
// Grids of stages and replicas against one rank with the whole batch. mpirun starts four ranks, of which a test uses
// some.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/unit/trainer/backend/reference/reference_model.h"
#include "tests/unit/trainer/updaters/small_job.h"
#include "trainer/checkpoint/sharded_state.h"
#include "trainer/nn/models.h"
#include "trainer/nn/plain_model.h"
#include "trainer/optim/make_optimizer.h"
#include "trainer/pipeline/pipeline.h"
#include "trainer/pipeline/pipelined_updater.h"
#include "trainer/pipeline/whole_state.h"

namespace paceline::train {
namespace {

using reference::ReferenceModel;
using reference::relative_error;
using reference::Tensor;
using small_job::FirstRanks;

struct GridCase {
  int stages, replicas, microbatches;
  const char* schedule = "gpipe";
  int ranks() const { return stages * replicas; }
  std::string name() const {
    return std::to_string(stages) + " × " + std::to_string(replicas) + ", " + std::to_string(microbatches) + " " +
           schedule;
  }
};
const GridCase all_cases[] = {{1, 1, 1}, {1, 1, 2},         {2, 1, 1},         {2, 1, 2}, {1, 2, 1},         {1, 2, 2},
                              {2, 2, 1}, {2, 2, 2, "1f1b"}, {2, 1, 4, "1f1b"}, {4, 1, 1}, {4, 1, 4, "1f1b"}, {4, 1, 4}};

const GridCase some_cases[] = {{1, 1, 2}, {1, 2, 1}, {2, 1, 2, "1f1b"}, {2, 2, 2}, {4, 1, 1}, {4, 1, 4, "1f1b"}};

constexpr int images_in_all = 8;

std::vector<LayerRun> stages_for(const Network& network, int count) {
  const std::vector<LayerRun> runs = smallest_runs(network);
  return stages_of(runs, balanced_cuts(computed_costs(network, runs), static_cast<std::size_t>(count)));
}

Network part_of_stage(const Network& network, const Grid& grid) {
  const LayerRun run = stages_for(network, grid.stages)[static_cast<std::size_t>(grid.stage)];
  return network.part(run.first, run.last);
}

// Normal values of the whole batch of a step, the same on every rank.
std::vector<float> images_of(unsigned step, std::size_t image) {
  std::mt19937 random(step + 1);
  std::normal_distribution<float> normal;
  std::vector<float> values(images_in_all * image);
  for (float& value : values) value = normal(random);
  return values;
}

std::vector<std::int32_t> all_labels() {
  std::vector<std::int32_t> labels(images_in_all);
  for (int i = 0; i < images_in_all; ++i) labels[static_cast<std::size_t>(i)] = i * 7 % 10;
  return labels;
}

// --- float64 ---------------------------------------------------------------------------------------------------------

// A stage of the reference, with one copy of it for each microbatch.
class ReferenceStage : public StageWork {
 public:
  ReferenceStage(const Network& part, bool frozen, std::size_t microbatches, std::int64_t samples)
      : model(part, 1, frozen),
        copies_(microbatches, model),
        inputs_(microbatches, Tensor(samples, part.out(0))),
        gradients_(microbatches, Tensor(samples, part.layers().back().out)) {}

  void run(const std::vector<float>& images, std::vector<std::int32_t> labels, StageLinks& links,
           const std::string& schedule) {
    labels_ = std::move(labels);
    const std::size_t values = inputs_[0].values.size();
    for (std::size_t m = 0; m < copies_.size(); ++m) {
      copies_[m].weights = model.weights;
      copies_[m].sum_over_ranks = model.sum_over_ranks;
      if (!links.first()) continue;
      for (std::size_t i = 0; i < values; ++i) inputs_[m].values[i] = images[m * values + i];
    }
    last_ = links.last();
    for (auto& [name, gradient] : model.gradients) std::ranges::fill(gradient, 0.0);
    run_schedule(stage_schedule(schedule, links.stage(), links.stages(), copies_.size()), links, *this);
  }

  ReferenceModel model;

 private:
  void forward(std::size_t m) override {
    const auto samples = static_cast<std::size_t>(inputs_[m].samples);
    copies_[m].forward(inputs_[m], std::span(labels_).subspan(m * samples, samples), Mode::train);
  }
  void backward(std::size_t m) override {
    if (last_) {
      copies_[m].backward(1.0 / static_cast<double>(labels_.size()));
    } else {
      copies_[m].backward_from(gradients_[m]);
    }
    for (auto& [name, sum] : model.gradients) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += copies_[m].gradients[name][i];
    }
  }
  std::span<std::byte> input(std::size_t m) override { return std::as_writable_bytes(std::span(inputs_[m].values)); }
  std::span<const std::byte> input_gradient(std::size_t m) override {
    return std::as_bytes(std::span(copies_[m].tensor_gradients[0].values));
  }
  std::span<const std::byte> output(std::size_t m) override {
    return std::as_bytes(std::span(copies_[m].tensors.back().values));
  }
  std::span<std::byte> output_gradient(std::size_t m) override {
    return std::as_writable_bytes(std::span(gradients_[m].values));
  }

  std::vector<ReferenceModel> copies_;
  std::vector<Tensor> inputs_, gradients_;
  std::vector<std::int32_t> labels_;
  bool last_ = false;
};

// The weights of one rank after 20 steps. A batch norm normalises what the replicas' microbatches of one number hold.
std::map<std::string, reference::Values> train_one_rank(const GridCase& c, const Network& network, bool frozen) {
  ReferenceModel model(network, 1, frozen);
  const auto image = static_cast<std::size_t>(network.out(0).size());
  const int each = images_in_all / c.replicas / c.microbatches;
  const std::vector<std::int32_t> labels = all_labels();
  for (unsigned step = 0; step < 20; ++step) {
    const std::vector<float> all = images_of(step, image);
    std::map<std::string, reference::Values> sums;
    for (int m = 0; m < c.microbatches; ++m) {
      Tensor images(each * c.replicas, network.out(0));
      std::vector<std::int32_t> own;
      std::size_t next = 0;
      for (int replica = 0; replica < c.replicas; ++replica) {
        for (int i = 0; i < each; ++i) {
          const int image_number = (replica * c.microbatches + m) * each + i;
          const auto from = static_cast<std::size_t>(image_number);
          own.push_back(labels[from]);
          for (std::size_t k = 0; k < image; ++k) images.values[next++] = all[from * image + k];
        }
      }
      model.forward(images, own, Mode::train);
      model.backward(1.0 / images_in_all);
      for (const auto& [name, gradient] : model.gradients) {
        reference::Values& sum = sums.try_emplace(name, gradient.size(), 0.0).first->second;
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i];
      }
    }
    model.gradients = std::move(sums);
    model.step(0.05, 0.9, 5e-4);
  }
  return model.weights;
}

// Grids whose batch norms see the same images share a run.
const std::map<std::string, reference::Values>& weights_of_one_rank(const GridCase& c, const Network& network,
                                                                    bool frozen) {
  static std::map<std::tuple<bool, int, int>, std::map<std::string, reference::Values>> runs;
  const int microbatches = frozen ? 1 : c.microbatches, replicas = microbatches == 1 ? 1 : c.replicas;
  const auto [run, is_new] = runs.try_emplace({frozen, microbatches, replicas});
  if (is_new) run->second = train_one_rank({1, replicas, microbatches}, network, frozen);
  return run->second;
}

TEST(GridInFloat64, TwentyStepsEqualThoseOfOneRank) {
  const Network network = small_job::small_network();
  const auto image = static_cast<std::size_t>(network.out(0).size());
  const ReferenceModel start(network, 1, true);
  for (const bool frozen : {true, false}) {
    for (const GridCase& c : some_cases) {
      FirstRanks ranks(c.ranks());
      if (!ranks.in) continue;
      const auto job = ranks.ranks();
      const Grid grid(job->world, c.stages, "mpi", "f32");
      StageLinks links(grid.chain);
      const auto batch = static_cast<std::size_t>(images_in_all / c.replicas);
      ReferenceStage stage(part_of_stage(network, grid), frozen, static_cast<std::size_t>(c.microbatches),
                           images_in_all / c.replicas / c.microbatches);
      if (!frozen) {
        stage.model.sum_over_ranks = [&](std::span<double> sums) { grid.of_stage.collectives->allreduce_sum(sums); };
      }
      const std::size_t first = static_cast<std::size_t>(grid.replica) * batch;
      const std::vector<std::int32_t> labels = all_labels();
      for (unsigned step = 0; step < 20; ++step) {
        const std::vector<float> all = images_of(step, image);
        stage.run({all.begin() + static_cast<std::ptrdiff_t>(first * image), all.end()},
                  {labels.begin() + static_cast<std::ptrdiff_t>(first),
                   labels.begin() + static_cast<std::ptrdiff_t>(first + batch)},
                  links, c.schedule);
        for (auto& [name, gradient] : stage.model.gradients) {
          grid.of_stage.collectives->allreduce_sum(gradient);
          for (double& value : gradient) value /= c.replicas;
        }
        stage.model.step(0.05, 0.9, 5e-4);
      }
      const auto& expected = weights_of_one_rank(c, network, frozen);
      for (const auto& [name, w] : stage.model.weights) {
        EXPECT_LE(relative_error(w, expected.at(name)), 1e-10) << name << " of " << c.name();
        EXPECT_GT(relative_error(start.weights.at(name), w), 1e-4) << name << " was not trained";
      }
    }
  }
}

// --- fp32 ------------------------------------------------------------------------------------------------------------

// One rank of a grid that trains a network in fp32.
struct GridJob {
  GridJob(FirstRanks& some, const GridCase& c, const Network& whole_network, ModelOptions options,
          std::optional<double> clip = std::nullopt)
      : network(whole_network),
        ranks(some.ranks()),
        grid(ranks->world, c.stages, "mpi", "f32"),
        world(make_host_communicator("mpi", "f32", some.ranks())),
        links(grid.chain),
        part(part_of_stage(network, grid)),
        batch(static_cast<std::size_t>(images_in_all / c.replicas)) {
    options.batch_size = images_in_all / c.replicas / c.microbatches;
    model_options = options;
    model = make_cpu_stage(part, model_options);
    OptimizerOptions sgd;
    sgd.weight_decay.rate = 5e-4f;
    optimizer = make_optimizer(sgd, model->parameters(), model->weights().size());
    const PassOptions pass{.rank = grid.replica, .batch = static_cast<std::size_t>(options.batch_size)};
    pipeline = std::make_unique<Pipeline>(*model, part, model_options, links, c.schedule,
                                          static_cast<std::size_t>(c.microbatches), pass);
    // Sums go over all ranks, means over the replicas of this stage.
    communicator.collectives = std::move(world.collectives);
    communicator.reduction = std::move(grid.of_stage.reduction);
    UpdaterParts parts{*model, communicator, *optimizer};
    parts.clip_norm = clip;
    updater = make_pipelined_updater(parts, *pipeline, c.replicas);
  }

  Batch own_batch(unsigned step) const {
    const auto image = static_cast<std::size_t>(network.out(0).size());
    const std::vector<float> all = images_of(step, image);
    const std::vector<std::int32_t> labels = all_labels();
    const std::size_t first = static_cast<std::size_t>(grid.replica) * batch;
    Batch own;
    if (links.first()) {
      own.images.assign(all.begin() + static_cast<std::ptrdiff_t>(first * image),
                        all.begin() + static_cast<std::ptrdiff_t>((first + batch) * image));
    }
    own.labels.assign(labels.begin() + static_cast<std::ptrdiff_t>(first),
                      labels.begin() + static_cast<std::ptrdiff_t>(first + batch));
    return own;
  }

  Score step(unsigned number) { return updater->step(own_batch(number), number, 0.01, false).score; }

  // The whole network's weights, on rank 0.
  std::unique_ptr<Model> gathered() {
    WholeStateMover mover(*communicator.collectives, grid, parts_of(network, stages_for(network, grid.stages)));
    const bool root = communicator.collectives->rank() == 0;
    auto whole = root ? make_plain_model(network, 99) : nullptr;
    mover.gather(*model, model->weights(), whole.get(), whole ? whole->weights() : std::span<float>());
    return whole;
  }

  const Network network;
  std::unique_ptr<Ranks> ranks;
  Grid grid;
  Communicator world, communicator;
  StageLinks links;
  const Network part;
  const std::size_t batch;
  ModelOptions model_options;
  std::unique_ptr<StageModel> model;
  std::unique_ptr<Optimizer> optimizer;
  std::unique_ptr<Pipeline> pipeline;
  std::unique_ptr<Updater> updater;
};

Network narrow(const std::string& name) {
  ModelOptions options;
  options.name = name;
  options.width = 0.125;
  return build_network(options);
}

TEST(Grid, AStepEqualsThatOfOneRankWithTheWholeBatch) {
  for (const char* name : {"resnet18", "vgg11_bn"}) {
    const Network network = narrow(name);
    ModelOptions options;
    options.freeze_batch_norm = true;
    std::unique_ptr<Model> one;
    Score of_one;
    for (const GridCase& c : all_cases) {
      if (c.microbatches > 1 && c.replicas == 1 && name == std::string_view("vgg11_bn")) continue;  // for time
      FirstRanks ranks(c.ranks());
      if (!ranks.in) continue;
      GridJob job(ranks, c, network, options);
      const Score score = job.step(0);
      auto whole = job.gathered();
      if (c.ranks() == 1 && c.microbatches == 1) {
        one = std::move(whole);
        of_one = score;
        continue;
      }
      if (!whole) continue;
      EXPECT_EQ(score.samples, images_in_all);
      EXPECT_NEAR(score.loss_sum, of_one.loss_sum, 1e-4) << c.name();
      for (const Parameter& p : one->parameters()) {
        EXPECT_LE(relative_error(whole->to_plain(p, whole->weights()), one->to_plain(p, one->weights())), 1e-5)
            << p.name << " of " << name << " on " << c.name();
      }
    }
  }
}

TEST(Grid, TheCaseOfOneRankEqualsTheAllreduceUpdater) {
  FirstRanks ranks(1);
  if (!ranks.in) return;
  const Network network = small_job::small_network();
  ModelOptions options;
  options.batch_size = images_in_all;
  const auto model = make_cpu_model(network, options);
  OptimizerOptions sgd;
  sgd.weight_decay.rate = 5e-4f;
  const auto optimizer = make_optimizer(sgd, model->parameters(), model->weights().size());
  const Communicator communicator = ranks.communicator();
  UpdaterParts parts{*model, communicator, *optimizer};
  parts.pass.batch = images_in_all;
  const auto updater = make_updater("allreduce", parts);
  GridJob job(ranks, {1, 1, 1}, network, options);
  for (unsigned step = 0; step < 3; ++step) {
    updater->step(job.own_batch(step), step, 0.01, false);
    job.step(step);
  }
  EXPECT_TRUE(std::ranges::equal(job.model->weights(), model->weights()));
  EXPECT_TRUE(std::ranges::equal(job.model->statistics(), model->statistics()));
}

TEST(Grid, BothSchedulesGiveTheSameBits) {
  FirstRanks ranks(4);
  const Network network = small_job::small_network();
  GridJob gpipe(ranks, {4, 1, 4, "gpipe"}, network, {}), alternating(ranks, {4, 1, 4, "1f1b"}, network, {});
  for (unsigned step = 0; step < 3; ++step) EXPECT_EQ(gpipe.step(step).loss_sum, alternating.step(step).loss_sum);
  EXPECT_TRUE(std::ranges::equal(gpipe.model->weights(), alternating.model->weights()));
  EXPECT_TRUE(std::ranges::equal(gpipe.model->statistics(), alternating.model->statistics()));
  EXPECT_EQ(gpipe.pipeline->models(), 4u);
  EXPECT_EQ(alternating.pipeline->models(), 4u - alternating.links.stage());
}

TEST(Grid, ClipsByTheNormOfAllStages) {
  const Network network = small_job::small_network();
  std::unique_ptr<Model> one;
  for (const GridCase& c : {GridCase{1, 1, 1}, GridCase{2, 2, 2}}) {
    FirstRanks ranks(c.ranks());
    if (!ranks.in) continue;
    ModelOptions options;
    options.freeze_batch_norm = true;
    GridJob job(ranks, c, network, options, 0.05);
    for (unsigned step = 0; step < 2; ++step) job.step(step);
    auto whole = job.gathered();
    if (!whole) continue;
    if (!one) {
      one = std::move(whole);
      GridJob unclipped(ranks, c, network, options);
      for (unsigned step = 0; step < 2; ++step) unclipped.step(step);
      EXPECT_GT(relative_error(unclipped.gathered()->weights(), one->weights()), 1e-3) << "nothing was clipped";
    } else {
      EXPECT_LE(relative_error(whole->weights(), one->weights()), 1e-5);
    }
  }
}

TEST(Grid, EvaluatesABatchThatIsSmallerThanAMicrobatch) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  const Network network = small_job::small_network();
  GridJob job(ranks, {2, 1, 2}, network, {});
  Batch batch = job.own_batch(0);
  batch.labels.resize(3);
  if (job.links.first()) batch.images.resize(3 * static_cast<std::size_t>(network.out(0).size()));
  const Score score = job.pipeline->evaluate(batch);
  if (!job.links.last()) {
    EXPECT_EQ(score.samples, 0);
    return;
  }
  ModelOptions options;
  options.batch_size = 3;
  const std::vector<float> all = images_of(0, static_cast<std::size_t>(network.out(0).size()));
  const Score expected = make_cpu_model(network, options)
                             ->forward(std::span(all).first(3 * static_cast<std::size_t>(network.out(0).size())),
                                       batch.labels, Mode::evaluate);
  EXPECT_EQ(score.samples, 3);
  EXPECT_NEAR(score.loss_sum, expected.loss_sum, 1e-5);
}

TEST(Grid, NamesTheFirstLayerWhoseResultIsNotFinite) {
  FirstRanks ranks(2);
  if (!ranks.in) return;
  GridJob job(ranks, {2, 1, 2}, small_job::small_network(), {});
  for (const Parameter& p : job.model->parameters()) {
    if (p.name == "bn2.bias") job.model->weights()[p.offset] = std::numeric_limits<float>::infinity();
  }
  const std::vector<float> before(job.model->weights().begin(), job.model->weights().end());
  const Score score = job.step(0);
  EXPECT_FALSE(std::isfinite(score.loss_sum));
  if (job.links.first()) {
    EXPECT_EQ(job.updater->nonfinite_layer(), "bn2");
  }
  EXPECT_TRUE(std::ranges::equal(before, job.model->weights())) << "a step was taken";
}

// As a checkpoint does it: rank 0 gathers the state of one grid, gives it to another grid and gets it back.
TEST(WholeState, MovesBetweenGrids) {
  const Network network = small_job::small_network();
  std::vector<float> weights, momentum;  // on rank 0
  bool first = true;
  for (const GridCase& c : {GridCase{2, 2, 2}, GridCase{4, 1, 2}, GridCase{1, 2, 1}, GridCase{2, 1, 4, "1f1b"}}) {
    FirstRanks ranks(c.ranks());
    if (!ranks.in) continue;
    GridJob job(ranks, c, network, {});
    const bool root = job.communicator.collectives->rank() == 0;
    WholeStateMover mover(*job.communicator.collectives, job.grid, parts_of(network, stages_for(network, c.stages)));
    const auto whole = root ? make_plain_model(network, 5) : nullptr;
    const auto state = root ? whole_state_of(*job.optimizer, whole->weights().size()) : nullptr;
    const std::span<float> flat = root ? whole->weights() : std::span<float>();
    if (first) {
      job.step(0);
    } else {
      if (root) {
        std::ranges::copy(weights, flat.begin());
        state->arrays()[0] = momentum;
      }
      mover.scatter(*job.model, job.model->weights(), whole.get(), flat);
      mover.scatter(*job.model, *job.optimizer, whole.get(), state.get());
      if (root) {
        std::ranges::fill(flat, -1.0f);
        std::ranges::fill(state->arrays()[0], -1.0f);
      }
    }
    mover.gather(*job.model, job.model->weights(), whole.get(), flat);
    mover.gather(*job.model, *job.optimizer, whole.get(), state.get());
    const std::vector<float> all = mover.gather_statistics(job.model->statistics(), c.replicas, statistics_of(network));
    EXPECT_EQ(all.size(), root ? static_cast<std::size_t>(c.replicas) * statistics_of(network) : 0u);
    if (root && first) {
      weights.assign(flat.begin(), flat.end());
      momentum = state->arrays()[0];
      EXPECT_GT(relative_error(make_plain_model(network, 1)->weights(), weights), 1e-4) << "nothing was trained";
      EXPECT_GT(relative_error(std::vector<float>(momentum.size()), momentum), 0.5);
      EXPECT_GT(*std::ranges::max_element(all), 0.0f);
    } else if (root) {
      for (const Parameter& p : whole->parameters()) {
        const std::span<const float> before(weights.data() + p.offset, p.size), after(flat.data() + p.offset, p.size);
        EXPECT_TRUE(std::ranges::equal(before, after)) << p.name << " on " << c.name();
        const std::span<const float> then(momentum.data() + p.offset, p.size),
            now(state->arrays()[0].data() + p.offset, p.size);
        EXPECT_TRUE(std::ranges::equal(then, now)) << "the momentum of " << p.name << " on " << c.name();
      }
    }
    first = false;
  }
}

}  // namespace
}  // namespace paceline::train
