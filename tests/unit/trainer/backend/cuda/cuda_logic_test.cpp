// SPDX-License-Identifier: Apache-2.0
// The parts of the CUDA backend that need no GPU: files, layouts, factors, the choice of devices.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <fstream>
#include <limits>
#include <random>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include "tests/unit/trainer/temporary_directory.h"
#include "trainer/backend/cuda/device_choice.h"
#include "trainer/backend/cuda/fusion.h"
#include "trainer/backend/cuda/layout.h"
#include "trainer/backend/cuda/loss_scale.h"
#include "trainer/backend/cuda/plan_cache.h"
#include "trainer/core/error.h"
#include "trainer/nn/models.h"

namespace paceline::train::cuda {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(LossScale, HalvesAndRepeatsUntilNothingOverflows) {
  LossScale scale;
  EXPECT_EQ(scale.factor(), 65536);
  EXPECT_TRUE(scale.repeat(true));
  EXPECT_EQ(scale.factor(), 32768);
  EXPECT_TRUE(scale.repeat(true));
  EXPECT_FALSE(scale.repeat(false));
  EXPECT_EQ(scale.factor(), 16384);
  EXPECT_EQ(scale.factor() * scale.inverse(), 1);
}

TEST(LossScale, DoublesAfterEnoughStepsWithoutAnOverflowInBetween) {
  LossScale scale;
  for (int step = 1; step < LossScale::patience; ++step) EXPECT_FALSE(scale.repeat(false));
  EXPECT_EQ(scale.factor(), LossScale::first);
  scale.repeat(true);  // starts to count anew
  for (int step = 1; step < LossScale::patience; ++step) scale.repeat(false);
  EXPECT_EQ(scale.factor(), LossScale::first / 2);
  scale.repeat(false);
  EXPECT_EQ(scale.factor(), LossScale::first);
}

TEST(LossScale, StaysWithinItsBoundsAndGivesUpAtTheLowerOne) {
  LossScale scale;
  for (int overflow = 0; overflow < 16; ++overflow) EXPECT_TRUE(scale.repeat(true)) << overflow;
  EXPECT_EQ(scale.factor(), LossScale::least);
  EXPECT_FALSE(scale.repeat(true));  // the gradient itself is infinite
  EXPECT_EQ(scale.factor(), LossScale::least);
  for (std::int64_t step = 0; step < 40 * LossScale::patience; ++step) scale.repeat(false);
  EXPECT_EQ(scale.factor(), LossScale::most);
}

PlanKey some_key() { return {Direction::forward, Precision::bf16, false, 256, 64, 56, 56, 128, 3, 2, 1}; }
const PlanPlace some_place{"NVIDIA H100 80GB HBM3", 91900, 132};

TEST(PlanKey, DiffersIfAnyFieldDiffers) {
  std::vector<std::string> all{text_of(some_key(), some_place)};
  for (const auto change :
       {+[](PlanKey& k) { k.direction = Direction::data_gradient; },
        +[](PlanKey& k) { k.direction = Direction::weight_gradient; },
        +[](PlanKey& k) { k.direction = Direction::forward_sums; },
        +[](PlanKey& k) { k.direction = Direction::norm_forward_sums; },
        +[](PlanKey& k) { k.direction = Direction::norm_weight_gradient; },
        +[](PlanKey& k) { k.direction = Direction::data_gradient_norm; },
        +[](PlanKey& k) { k.precision = Precision::f16; }, +[](PlanKey& k) { k.winograd = true; },
        +[](PlanKey& k) { ++k.batch; }, +[](PlanKey& k) { ++k.channels; }, +[](PlanKey& k) { ++k.height; },
        +[](PlanKey& k) { ++k.width; }, +[](PlanKey& k) { ++k.filters; }, +[](PlanKey& k) { ++k.kernel; },
        +[](PlanKey& k) { ++k.stride; }, +[](PlanKey& k) { ++k.padding; }}) {
    PlanKey key = some_key();
    change(key);
    all.push_back(text_of(key, some_place));
  }
  for (const PlanPlace& place : {PlanPlace{"NVIDIA H200", 91900, 132}, PlanPlace{"NVIDIA H100 80GB HBM3", 92000, 132},
                                 PlanPlace{"NVIDIA H100 80GB HBM3", 91900, 66}}) {
    all.push_back(text_of(some_key(), place));
  }
  std::sort(all.begin(), all.end());
  EXPECT_EQ(std::unique(all.begin(), all.end()), all.end());
  EXPECT_EQ(text_of(some_key(), some_place), text_of(some_key(), some_place));
  EXPECT_EQ(text_of(some_key(), {"a\tb\nc", 1, 1}).find_first_of("\t\n"), std::string::npos);
}

// With a stand-in for a driver whose two devices are instances of one GPU.
TEST(Device, InstancesOfAGpuHaveUuidsOfTheirOwn) {
  constexpr std::array<char, 16> of_gpu{'\x12', '\xab'};
  const std::string whole = uuid_of_device(0, of_gpu, "no such driver");
  EXPECT_EQ(whole, "12ab0000000000000000000000000000");
  const std::vector<std::string> uuids{uuid_of_device(0, of_gpu, STAND_IN_DRIVER),
                                       uuid_of_device(1, of_gpu, STAND_IN_DRIVER)};
  EXPECT_THAT(uuids, ElementsAre("70000000000000000000000000000000", "71000000000000000000000000000000"));
  EXPECT_NO_THROW(refuse_shared_gpu(uuids, false));
  EXPECT_EQ(uuid_of_device(2, of_gpu, STAND_IN_DRIVER), whole);  // it has no third device
}

TEST(PlanKey, KnowsTheSizeOfTheOutput) {
  EXPECT_EQ(some_key().out_height(), 28);
  EXPECT_EQ((PlanKey{Direction::forward, Precision::f32, true, 1, 4, 224, 200, 64, 7, 2, 3}.out_width()), 100);
}

const Plan some_plan{5, 38, {{26, 128}, {27, 64}, {7, 4}}, 81.25};

// At once, because a run that is killed has no later moment.
TEST(PlanCache, KeepsEachPlanAtOnceAndThoseOfOtherProcesses) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "below" / "plans.txt";
  PlanCache first(file), second(file);
  first.add("a; n1", some_plan);
  second.add("b; n2", {0, 0, {}, 3});
  EXPECT_EQ(first.trouble() + second.trouble(), "");
  PlanCache later(file);
  EXPECT_EQ(later.find("a; n1"), some_plan);
  EXPECT_EQ(later.find("b; n2"), (Plan{0, 0, {}, 3}));
  EXPECT_EQ(later.find("c"), std::nullopt);
}

// Whether this process has the file open.
bool is_open(const std::filesystem::path& file, std::size_t times) {
  std::size_t found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    found += std::filesystem::read_symlink(entry, gone) == file;
  }
  return found >= times;
}

TEST(PlanCache, WaitsForThePlansOfTheProcessThatMeasures) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "plans.txt", lock = directory.path() / "plans.txt.lock";
  PlanCache first(file), second(file), third(file, std::chrono::milliseconds(0));
  EXPECT_EQ(first.find("a"), std::nullopt);
  EXPECT_EQ(third.find("a"), std::nullopt);  // its patience is at an end
  ASSERT_TRUE(is_open(lock, 1));
  std::optional<Plan> found;
  std::atomic<bool> returned = false;
  std::thread waiting([&] {
    found = second.find("b");
    returned = true;
  });
  while (!is_open(lock, 2) && !returned) std::this_thread::yield();
  first.add("a", some_plan);
  EXPECT_EQ(first.find("b"), std::nullopt);
  first.add("b", {1, 2, {}, 3});
  first.end_turn();
  waiting.join();
  EXPECT_EQ(found, (Plan{1, 2, {}, 3}));
  EXPECT_EQ(second.find("a"), some_plan);
  EXPECT_FALSE(is_open(lock, 1)) << "who waited for nothing more has no turn";
}

TEST(PlanCache, AProcessThatIsKilledLeavesItsPlansAndTheTurn) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "plans.txt";
  const pid_t child = fork();
  if (child == 0) {
    PlanCache killed(file);
    killed.find("a");
    killed.add("a", some_plan);
    killed.find("b");
    kill(getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFSIGNALED(status));
  PlanCache next(file, std::chrono::milliseconds(0));
  EXPECT_EQ(next.find("a"), some_plan);
  EXPECT_EQ(next.find("b"), std::nullopt);
  EXPECT_TRUE(is_open(directory.path() / "plans.txt.lock", 1));
}

TEST(PlanCache, ReadsOnlyItsOwnFormat) {
  const std::string head = "paceline-cudnn-plans 1\n";
  ASSERT_TRUE(PlanCache::parse(head));
  ASSERT_TRUE(PlanCache::parse(head + "k\t3\t1\t26=1,27=-2\t1.5\n"));
  for (const char* line : {"k\t0\t1\t\n",
                           "k\t0\t1\t\t\n",
                           "k\t0\t1\t\tx\n",
                           "k\t0\t\t\t1\n",
                           "k\t0\t-1\t\t1\n",
                           "\t0\t1\t\t1\n",
                           "k\t0\t1\t26\t1\n",
                           "k\t0\t1\t=1\t1\n",
                           "k\t0\t1\t26=1,\t1\n",
                           "k\t0\t1\t-1=1\t1\n",
                           "k\t0\t1\t26=1,26=2\t1\n",
                           "k\t0\t1\t\tnan\n",
                           "k\t0\t1\t\t-1\n",
                           "k\t0\t1\t26=1\t1",
                           "k\t0\t1 \t\t1\n",
                           "\n",
                           "k\n",
                           "k\t0\t1\t\t1\t\n",
                           "k\t-1\t1\t\t1\n",
                           "k\t1\t\t1\n",
                           "k\t\t1\t\t1\n",
                           "k\t0\t99999999999999999999\t\t1\n"}) {
    EXPECT_EQ(PlanCache::parse(head + line), std::nullopt) << line;
  }
  for (const char* content : {"", "paceline-cudnn-plans 2\n", "paceline-cudnn-plans 1",
                              "\x7f"
                              "ELF"}) {
    EXPECT_EQ(PlanCache::parse(content), std::nullopt) << content;
  }
}

TEST(PlanCache, ReadsNoPlanFromADamagedFile) {
  const PlanCache::Plans plans{{"a; n1", some_plan}, {"b; n2", {2, 7, {{1, -5}}, 0.5}}};
  const std::string whole = PlanCache::print(plans);
  EXPECT_EQ(PlanCache::parse(whole), plans);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto part = PlanCache::parse(std::string_view(whole).substr(0, length));
    if (!part) continue;
    for (const auto& [key, plan] : *part) EXPECT_EQ(plans.at(key), plan);
  }
  std::mt19937 random(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string damaged = whole;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    PlanCache::parse(damaged);  // must not crash
  }
}

TEST(PlanCache, WorksWithoutAnUnusableFile) {
  const TemporaryDirectory directory;
  const auto file = directory.path() / "plans.txt";
  std::ofstream(file) << "no plans\n";
  PlanCache damaged(file);
  EXPECT_THAT(damaged.trouble(), HasSubstr("plans.txt: damaged"));
  EXPECT_EQ(damaged.find("a"), std::nullopt);
  damaged.add("a", some_plan);
  EXPECT_EQ(PlanCache(file).find("a"), some_plan);  // the file was rewritten

  PlanCache folder(directory.path());
  EXPECT_THAT(folder.trouble(), HasSubstr("not a file of cuDNN plans"));
  folder.add("a", some_plan);
  EXPECT_THAT(folder.trouble(), HasSubstr("cannot be written"));

  std::filesystem::resize_file(file, (std::size_t{8} << 20) + 1);
  EXPECT_THAT(PlanCache(file).trouble(), HasSubstr("not a file of cuDNN plans"));
  PlanCache none("");
  none.add("a", some_plan);
  EXPECT_EQ(none.trouble(), "");
}

TEST(Layout, PutsChannelsLastAndPadsThem) {
  EXPECT_THAT(channels_last_strides({8, 64, 5, 7}), ElementsAre(64 * 5 * 7, 1, 64 * 7, 64));
  const FilterLayout layout{2, 3, 1, 2, 4};  // published [o][i][y][x], stored [o][y][x][i]
  std::vector<float> published(layout.published()), stored(layout.stored(), 9.0f);
  for (std::size_t i = 0; i < published.size(); ++i) published[i] = static_cast<float>(i + 1);
  from_published(layout, published, stored);
  EXPECT_THAT(stored, ElementsAre(1, 3, 5, 0, 2, 4, 6, 0, 7, 9, 11, 0, 8, 10, 12, 0));
  EXPECT_EQ(to_published(layout, stored), published);
}

TEST(Layout, OfALinearLayerFollowsItsInput) {
  Network network({8, 2, 3});
  network.linear("fc", 0, 5);
  const Layer& layer = network.layers()[1];
  const FilterLayout weight = filter_layout(layer, 0), bias = filter_layout(layer, 1);
  EXPECT_EQ(weight.published(), 5u * 8 * 2 * 3);
  EXPECT_EQ(weight.stored(), weight.published());
  EXPECT_EQ(bias.stored(), 5u);
  std::vector<float> published(weight.published(), 0.0f), stored(weight.stored());
  published[(3 * 8 + 7) * 2 * 3 + 1 * 3 + 2] = 1;  // output 3, channel 7, row 1, column 2
  from_published(weight, published, stored);
  EXPECT_EQ(stored[((3 * 2 + 1) * 3 + 2) * 8 + 7], 1);
}

TEST(Layout, OfTheFirstFilterHasFourChannels) {
  const Network network = build_network({});
  EXPECT_EQ(filter_layout(network.layers()[1], 0).stored(), 64u * 3 * 3 * 4);
}

TEST(Fusion, FusesTheEndOfEveryResidualBlock) {
  ModelOptions options;
  for (const auto& [name, blocks] : {std::pair{"resnet18", 8}, {"resnet50", 16}}) {
    options.name = name;
    const Network network = build_network(options);
    const std::vector<Fusion> fusions = plan_fusions(network.layers());
    int fused = 0, silent = 0;
    for (std::size_t i = 0; i < fusions.size(); ++i) {
      if (fusions[i].batch_norm) {
        ++fused;
        EXPECT_EQ(network.layers()[i].kind, LayerKind::add_relu);
        EXPECT_EQ(fusions[i].batch_norm->name, network.layers()[fusions[i].batch_norm_number].name);
        EXPECT_TRUE(fusions[fusions[i].batch_norm_number].silent);
        EXPECT_EQ(network.layers()[i].input, static_cast<int>(fusions[i].batch_norm_number));
      }
      silent += fusions[i].silent;
    }
    EXPECT_EQ(fused, blocks);
    EXPECT_EQ(silent, blocks);
  }
}

TEST(Fusion, FusesAReluAfterABiasUnlessAnotherLayerReadsTheValue) {
  ModelOptions options;
  options.name = "vgg11";
  options.image_size = 32;
  const Network network = build_network(options);
  const std::vector<Fusion> fusions = plan_fusions(network.layers());
  EXPECT_EQ(std::count_if(fusions.begin(), fusions.end(), [](const Fusion& f) { return f.relu; }), 16);  // 8 pairs

  Network shared({4, 8, 8});
  const int convolution = shared.convolution("c", 0, 4, 3, 1, true);
  const int relu = shared.relu("r", convolution);
  const int norm = shared.batch_norm("n", relu, false);
  const int sum = shared.add_relu("a", norm, convolution);  // reads the convolution's result a second time
  shared.add_relu("b", sum, norm);                          // and the batch norm's
  for (const Fusion& fusion : plan_fusions(shared.layers())) {
    EXPECT_FALSE(fusion.relu || fusion.silent || fusion.batch_norm);
  }
}

TEST(Fusion, ComputesTheSumsOfEveryBatchNormAndAppliesThoseInsideABlock) {
  ModelOptions options;
  for (const auto& [name, convolutions, applied] :
       {std::tuple{"resnet18", 20, 8}, {"resnet50", 53, 32}, {"vgg16_bn", 0, 0}}) {
    options.name = name;  // VGG's convolutions have biases
    options.cifar_stem = std::string(name) == "vgg16_bn";
    options.image_size = options.cifar_stem ? 32 : 64;
    const Network network = build_network(options);
    const std::vector<Fusion> fusions = plan_fusions(network.layers());
    int sums = 0, applies = 0, ready = 0;
    for (std::size_t i = 0; i < fusions.size(); ++i) {
      const Fusion& fusion = fusions[i];
      ready += fusion.applied;
      if (fusion.sums_for) {
        ++sums;
        EXPECT_EQ(network.layers()[*fusion.sums_for].kind, LayerKind::batch_norm);
        EXPECT_EQ(network.layers()[*fusion.sums_for].input, static_cast<int>(i));
      }
      if (!fusion.applies) continue;
      ++applies;
      const Layer& norm = network.layers()[*fusion.applies];
      EXPECT_TRUE(fusions[*fusion.applies].applied);
      EXPECT_TRUE(norm.kind == LayerKind::batch_norm && norm.relu) << norm.name;
      EXPECT_EQ(network.layers()[i].input, static_cast<int>(*fusion.applies));
    }
    EXPECT_EQ(sums, convolutions) << name;
    EXPECT_EQ(applies, applied) << name;
    EXPECT_EQ(ready, applied) << name;
  }
}

TEST(Fusion, AppliesNoBatchNormWithoutReluOrWithAnotherReader) {
  const auto applies = [](bool relu, bool second_reader, bool bias) {
    Network net({8, 8, 8});
    const int norm = net.batch_norm("n", net.convolution("c", 0, 8, 3, 1, false), relu);
    const int next = net.convolution("d", norm, 8, 3, 1, bias);
    const int last = net.batch_norm("m", next, false);
    net.add_relu("a", last, second_reader ? norm : 0);
    return plan_fusions(net.layers())[static_cast<std::size_t>(next)].applies.has_value();
  };
  EXPECT_TRUE(applies(true, false, false));
  EXPECT_FALSE(applies(false, false, false));
  EXPECT_FALSE(applies(true, true, false));
  EXPECT_FALSE(applies(true, false, true));
}

TEST(DeviceChoice, IsTheLocalRank) {
  EXPECT_EQ(choose_device(0, 4, ""), 0);
  EXPECT_EQ(choose_device(3, 4, ""), 3);
  EXPECT_EQ(choose_device(3, 1, ""), 0);  // a launcher shows each rank its own GPU, or several ranks share one
  EXPECT_EQ(choose_device(5, 4, ""), 1);
  try {
    choose_device(0, 0, "no CUDA-capable device is detected");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no CUDA-capable device is detected"));
    EXPECT_THAT(error.what(), HasSubstr("‹device› cpu"));
    EXPECT_EQ(error.status, Status::usage);
  }
}

TEST(DeviceChoice, RefusesToShareAGpuByDefault) {
  const std::vector<std::string> own{"a", "b", "c"}, shared{"a", "b", "a"}, one{"a", "a"};
  EXPECT_NO_THROW(refuse_shared_gpu(own, false));
  EXPECT_NO_THROW(refuse_shared_gpu(shared, true));
  try {
    refuse_shared_gpu(shared, false);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("3 ranks on a host with 2 GPUs"));
    EXPECT_THAT(error.what(), HasSubstr("‹share-gpu›"));
  }
  EXPECT_THROW(refuse_shared_gpu(one, false), Error);
}

TEST(Precision, HasNamesAndStorage) {
  for (const char* name : {"f32", "tf32", "bf16", "f16"}) EXPECT_STREQ(name_of(precision_of(name)), name);
  EXPECT_EQ(storage_of(Precision::tf32), Storage::f32);
  EXPECT_EQ(bytes_of(storage_of(Precision::bf16)), 2u);
  EXPECT_THROW(precision_of("f64"), std::invalid_argument);
}

}  // namespace
}  // namespace paceline::train::cuda
