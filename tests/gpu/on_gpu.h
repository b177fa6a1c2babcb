// SPDX-License-Identifier: Apache-2.0
// A test that needs a GPU, and says by name where there is none.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "trainer/backend/cuda/cuda_model.h"

namespace paceline::train::cuda {

class OnGpu : public testing::Test {
 protected:
  void SetUp() override {
    VisibleDevices visible = visible_devices();
    if (visible.devices.empty()) GTEST_SKIP() << "no GPU: " << visible.reason;
    device_ = visible.devices[0];
    use_device(device_);
  }

  std::unique_ptr<Model> model_of(const Network& network, const ModelOptions& options) const {
    return make_cuda_model(network, options, device_);
  }

  Device device_;
};

}  // namespace paceline::train::cuda
