// SPDX-License-Identifier: Apache-2.0
// What cuDNN says of GPUs that are described to it: needs none.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "trainer/backend/cuda/cuda_network.h"
#include "trainer/backend/cuda/runtime.h"
#include "trainer/nn/models.h"

namespace paceline::train::cuda {
namespace {

// As cuDNN writes it of an H100, by the fields that it asks for.
const char* const h100 =
    R"({"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"regsPerBlock":65536,)"
    R"("multiProcessorCount":132,"warpSize":32,"maxSharedMemoryPerBlock":49152,"maxSharedMemoryPerBlockOptin":232448,)"
    R"("reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
    R"("maxThreadsPerSM":2048,"pciDeviceId":9008,"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85000000000,)"
    R"("smClockRateKHz":1980000,"memClockRateKHz":2619000,"l2CacheSize":52428800,"cudaDeviceId":0,"deviceVer":900,)"
    R"("driverVer":13000,"deviceName":"NVIDIA H100 80GB HBM3"})";

std::string with(std::string description, const std::string& field, const std::string& value) {
  const std::size_t at = description.find('"' + field + "\":") + field.size() + 3;
  return description.replace(at, description.find_first_of(",}", at) - at, value);
}
const std::string a100 = with(
    with(with(with(h100, "deviceVer", "800"), "multiProcessorCount", "108"), "maxSharedMemoryPerBlockOptin", "166912"),
    "deviceName", "\"NVIDIA A100-SXM4-80GB\"");
const std::string b200 =
    with(with(with(h100, "deviceVer", "1000"), "multiProcessorCount", "148"), "deviceName", "\"NVIDIA B200\"");

PlanKey key_of(const Layer& layer, Direction direction, Precision precision) {
  return {direction,
          precision,
          false,
          64,
          filter_layout(layer, 0).stored_in,
          layer.in.height,
          layer.in.width,
          layer.out.channels,
          layer.kernel,
          layer.stride,
          layer.padding};
}

// The network for pictures of 224 pixels.
Network imagenet(const char* name) {
  ModelOptions options;
  options.name = name;
  options.image_size = 224;
  options.cifar_stem = false;
  return build_network(options);
}

class CudnnWithoutAGpu : public testing::TestWithParam<const char*> {};

TEST_P(CudnnWithoutAGpu, HasAPlanForEachConvolutionAndFindsItAgain) {
  if (!visible_devices().devices.empty()) GTEST_SKIP() << "there is a GPU, which cuDNN takes into account";
  const Network network = imagenet("resnet18");
  for (const Layer& layer : network.layers()) {
    if (layer.kind != LayerKind::convolution) continue;
    for (const Direction direction : {Direction::forward, Direction::data_gradient, Direction::weight_gradient}) {
      if (direction == Direction::data_gradient && layer.input == 0) continue;
      const PlanKey key = key_of(layer, direction, precision_of(GetParam()));
      SCOPED_TRACE(text_of(key, {}));
      try {
        const Plan plan = plan_for_described_gpu(key, h100);
        EXPECT_GE(plan.engine, 0);
        EXPECT_EQ(plan_for_described_gpu(key, h100), plan);
      } catch (const std::invalid_argument& error) {
        GTEST_SKIP() << "no GPU: this cuDNN describes them in another way: " << error.what();
      } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudnnWithoutAGpu, testing::Values("f32", "tf32", "bf16", "f16"),
                         [](const auto& info) { return std::string(info.param); });

// Every one that the layers of a ResNet ask for: what convolution.cpp says of cuDNN 9.19.
TEST(FusedCudnnWithoutAGpu, HasFusedPlansInFp16) {
  if (!visible_devices().devices.empty()) GTEST_SKIP() << "there is a GPU, which cuDNN takes into account";
  if (cudnn_version() / 100 != 919) GTEST_SKIP() << "cuDNN " << cudnn_version() << " may have other plans than 9.19";
  const Network network = imagenet("resnet50");
  const std::vector<Fusion> fusions = plan_fusions(network.layers());
  for (const auto& [gpu, applies] : {std::pair{std::string(h100), true}, {a100, true}, {b200, false}}) {
    std::map<std::string, int> asked;  // each geometry once
    for (std::size_t i = 0; i < fusions.size(); ++i) {
      if (!fusions[i].sums_for || network.layers()[i].input == 0) continue;  // the image has too few channels
      std::vector<Direction> directions{Direction::forward_sums};
      if (fusions[i].applies) directions.push_back(Direction::data_gradient_norm);
      if (fusions[i].applies && applies) {
        directions.insert(directions.end(), {Direction::norm_forward_sums, Direction::norm_weight_gradient});
      }
      for (const Direction direction : directions) {
        const PlanKey key = key_of(network.layers()[i], direction, Precision::f16);
        if (asked[text_of(key, {})]++ > 0) continue;
        SCOPED_TRACE(text_of(key, {}) + " of " + gpu.substr(gpu.find("deviceName")));
        try {
          EXPECT_GE(plan_for_described_gpu(key, gpu).engine, 0);
        } catch (const std::invalid_argument& error) {
          GTEST_SKIP() << "no GPU: this cuDNN describes them in another way: " << error.what();
        } catch (const std::exception& error) {
          ADD_FAILURE() << error.what();
        }
      }
    }
    EXPECT_GT(asked.size(), 30u);
  }
}

}  // namespace
}  // namespace paceline::train::cuda
