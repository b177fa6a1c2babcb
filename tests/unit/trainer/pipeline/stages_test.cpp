// SPDX-License-Identifier: Apache-2.0
// How a network is cut into stages, the order of their microbatches, and a stage's model alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "trainer/backend/cpu/cpu_model.h"
#include "trainer/core/error.h"
#include "trainer/nn/models.h"
#include "trainer/nn/plain_model.h"
#include "trainer/pipeline/partition.h"
#include "trainer/pipeline/schedule.h"
#include "trainer/pipeline/whole_state.h"

namespace paceline::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Network network_of(const std::string& name, double width = 1) {
  ModelOptions options;
  options.name = name;
  options.width = width;
  return build_network(options);
}

std::string text_of(const std::vector<StageStep>& steps) {
  std::string text;
  for (const StageStep& step : steps) {
    text += (step.kind == StageStep::Kind::forward ? "F" : "B") + std::to_string(step.microbatch) + " ";
  }
  return text;
}

TEST(StageSchedule, OfGpipeDoesAllForwardPassesFirst) {
  EXPECT_EQ(text_of(stage_schedule("gpipe", 0, 2, 3)), "F0 F1 F2 B0 B1 B2 ");
  EXPECT_EQ(stage_schedule("gpipe", 1, 2, 3), stage_schedule("gpipe", 0, 2, 3));
}

TEST(StageSchedule, Of1f1bKeepsAsManyMicrobatchesAsStagesFollow) {
  EXPECT_EQ(text_of(stage_schedule("1f1b", 0, 3, 4)), "F0 F1 F2 B0 F3 B1 B2 B3 ");
  EXPECT_EQ(text_of(stage_schedule("1f1b", 1, 3, 4)), "F0 F1 B0 F2 B1 F3 B2 B3 ");
  EXPECT_EQ(text_of(stage_schedule("1f1b", 2, 3, 4)), "F0 B0 F1 B1 F2 B2 F3 B3 ");
  EXPECT_EQ(text_of(stage_schedule("1f1b", 0, 4, 2)), "F0 F1 B0 B1 ");
  EXPECT_EQ(most_in_flight(stage_schedule("1f1b", 1, 4, 8)), 3u);
  EXPECT_EQ(most_in_flight(stage_schedule("gpipe", 1, 4, 8)), 8u);
}

TEST(StageSchedule, HasNoOtherName) { EXPECT_THROW(stage_schedule("2f2b", 0, 2, 2), std::invalid_argument); }

TEST(BalancedCuts, MakeTheLargestSumAsSmallAsPossible) {
  EXPECT_THAT(balanced_cuts({1, 1, 1, 1}, 2), ElementsAre(0, 2));
  EXPECT_THAT(balanced_cuts({5, 1, 1, 1}, 2), ElementsAre(0, 1));
  EXPECT_THAT(balanced_cuts({1, 1, 1, 5}, 2), ElementsAre(0, 3));
  EXPECT_THAT(balanced_cuts({3, 1, 4, 1, 5, 9, 2, 6}, 3), ElementsAre(0, 4, 6));
  EXPECT_THAT(balanced_cuts({0, 0, 0}, 3), ElementsAre(0, 1, 2));
  EXPECT_THAT(balanced_cuts({2, 7}, 1), ElementsAre(0));
}

// Compared with every possible cut of random costs.
TEST(BalancedCuts, AreNoWorseThanAnyOtherCuts) {
  std::mt19937 random(1);
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::vector<double> costs(3 + random() % 6);
    for (double& cost : costs) cost = static_cast<double>(random() % 10);
    const auto sum = [&](std::size_t first, std::size_t last) {
      double total = 0;
      for (std::size_t i = first; i < last; ++i) total += costs[i];
      return total;
    };
    double least = 1e9;
    for (std::size_t a = 1; a < costs.size(); ++a) {
      for (std::size_t b = a + 1; b < costs.size(); ++b) {
        least = std::min(least, std::max({sum(0, a), sum(a, b), sum(b, costs.size())}));
      }
    }
    const std::vector<std::size_t> cuts = balanced_cuts(costs, 3);
    ASSERT_LT(cuts[1], cuts[2]);
    EXPECT_EQ(std::max({sum(0, cuts[1]), sum(cuts[1], cuts[2]), sum(cuts[2], costs.size())}), least);
  }
}

TEST(Cuts, LeaveResidualBlocksWhole) {
  const Network network = network_of("resnet18");
  std::vector<std::string> names;
  for (const int cut : network.cuts()) names.push_back(network.layers()[static_cast<std::size_t>(cut)].name);
  EXPECT_THAT(names,
              ElementsAre("layer1.0.conv1", "layer1.1.conv1", "layer2.0.conv1", "layer2.1.conv1", "layer3.0.conv1",
                          "layer3.1.conv1", "layer4.0.conv1", "layer4.1.conv1", "avgpool", "fc"));
}

TEST(Cuts, LeaveConvolutionsWithTheirBatchNormsAndReLUs) {
  for (const char* name : {"vgg11", "vgg11_bn", "vgg_lecture"}) {
    const Network network = network_of(name);
    EXPECT_GE(network.cuts().size(), 12u) << name;
    for (const int cut : network.cuts()) {
      const LayerKind kind = network.layers()[static_cast<std::size_t>(cut)].kind;
      EXPECT_NE(kind, LayerKind::batch_norm) << name;
      EXPECT_NE(kind, LayerKind::relu) << name;
    }
  }
}

TEST(Stages, BeginWithTheLayersThatTheUserNames) {
  const Network network = network_of("resnet18");
  const std::vector<LayerRun> stages = stages_from(network, {"layer2", "layer4.1.conv1"}, 3);
  ASSERT_EQ(stages.size(), 3u);
  EXPECT_EQ(stages[0].first, 1);
  EXPECT_EQ(network.layers()[static_cast<std::size_t>(stages[1].first)].name, "layer2.0.conv1");
  EXPECT_EQ(stages[1].last, stages[2].first);
  EXPECT_EQ(stages[2].last, static_cast<int>(network.layers().size()));
}

TEST(Stages, AreRefusedWithAReason) {
  const Network network = network_of("resnet18");
  const auto why = [&](const std::vector<std::string>& names) {
    try {
      stages_from(network, names, 3);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(why({"layer2"}), HasSubstr("names 1 layers for 3 stages"));
  EXPECT_THAT(why({"layer2", "layer2.0.conv2"}), HasSubstr("cannot be cut before a layer 'layer2.0.conv2'"));
  EXPECT_THAT(why({"layer3", "layer2"}), HasSubstr("order"));
  EXPECT_THAT(why({"layer2", "layer2"}), HasSubstr("order"));
}

TEST(Stages, HaveTheParametersStatisticsAndOperationsOfTheWhole) {
  for (const char* name : {"resnet50", "vgg11", "vgg_lecture"}) {
    const Network network = network_of(name, 0.25);
    const std::vector<LayerRun> runs = smallest_runs(network);
    const auto stages = stages_of(runs, balanced_cuts(computed_costs(network, runs), 3));
    double flops = 0;
    std::int64_t parameters = 0;
    for (const LayerRun& stage : stages) {
      flops += network.part(stage.first, stage.last).train_flops();
      parameters += network.part(stage.first, stage.last).parameter_count();
    }
    EXPECT_DOUBLE_EQ(flops, network.train_flops()) << name;
    EXPECT_EQ(parameters, network.parameter_count()) << name;
    const std::vector<StageParts> parts = parts_of(network, stages);
    const auto whole = make_plain_model(network, 1);
    EXPECT_EQ(parts[2].first_parameter + parts[2].parameters, whole->parameters().size()) << name;
    EXPECT_EQ(parts[2].first_statistic + parts[2].statistics, statistics_of(network)) << name;
  }
}

TEST(PlainModel, HasTheInitialWeightsAndStatisticsOfABackend) {
  const Network network = network_of("resnet18", 0.125);
  ModelOptions options;
  options.batch_size = 1;
  const auto plain = make_plain_model(network, options.seed);
  const auto model = make_cpu_model(network, options);
  ASSERT_EQ(plain->parameters().size(), model->parameters().size());
  for (std::size_t i = 0; i < model->parameters().size(); ++i) {
    const Parameter &a = plain->parameters()[i], &b = model->parameters()[i];
    EXPECT_EQ(a.name, b.name);
    EXPECT_EQ(a.shape, b.shape);
    EXPECT_EQ(a.batch_norm, b.batch_norm);
    EXPECT_EQ(plain->to_plain(a, plain->weights()), model->to_plain(b, model->weights())) << a.name;
  }
  EXPECT_TRUE(std::ranges::equal(plain->statistics(), model->statistics()));
}

// Two stages by hand, in one process. A second model of the first stage shares its weights.
TEST(StageModels, ComputeTheGradientsOfTheWholeNetwork) {
  for (const char* name : {"resnet18", "vgg11", "vgg11_bn"}) {
    const Network network = network_of(name, 0.125);
    ModelOptions options;
    options.batch_size = 2;
    options.freeze_batch_norm = true;
    const auto whole = make_cpu_model(network, options);
    for (const int cut : {network.cuts().front(), network.cuts()[network.cuts().size() / 2], network.cuts().back()}) {
      const Network head = network.part(1, cut), tail = network.part(cut, static_cast<int>(network.layers().size()));
      const auto owner = make_cpu_stage(head, options), first = make_cpu_stage(head, options, owner.get()),
                 last = make_cpu_stage(tail, options);
      EXPECT_TRUE(owner->input_gradient().empty());
      EXPECT_TRUE(last->output().empty());
      std::vector<float> images(2 * 3 * 32 * 32);
      std::mt19937 random(3);
      std::normal_distribution<float> normal;
      for (float& value : images) value = normal(random);
      const std::vector<std::int32_t> labels{3, 7};
      const Score expected = whole->forward(images, labels, Mode::train);
      whole->backward(0.5f);
      EXPECT_EQ(first->forward(images, labels, Mode::train).samples, 0);
      const Score score = last->forward(first->output(), labels, Mode::train);
      EXPECT_NEAR(score.loss_sum, expected.loss_sum, 1e-5);
      last->backward(0.5f);
      std::ranges::copy(last->input_gradient(), first->output_gradient().begin());
      first->backward(0.5f);
      std::size_t next = 0;
      for (Model* stage : {static_cast<Model*>(owner.get()), static_cast<Model*>(last.get())}) {
        for (const Parameter& parameter : stage->parameters()) {
          const std::vector<float> is = stage->to_plain(parameter, stage->gradients());
          const std::vector<float> wanted = whole->to_plain(whole->parameters()[next++], whole->gradients());
          double difference = 0, norm = 0;
          for (std::size_t i = 0; i < wanted.size(); ++i) {
            difference += std::pow(static_cast<double>(is[i]) - wanted[i], 2);
            norm += std::pow(static_cast<double>(wanted[i]), 2);
          }
          EXPECT_LE(difference, 1e-10 * norm) << parameter.name << " of " << name;
        }
      }
      EXPECT_EQ(next, whole->parameters().size());
    }
  }
}

}  // namespace
}  // namespace paceline::train
