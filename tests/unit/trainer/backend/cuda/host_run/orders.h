// SPDX-License-Identifier: Apache-2.0
// Runs each test of a host run with the threads in both orders.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include <cuda_runtime_api.h>

namespace paceline::train {

class InBothOrders : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { host_run::downwards = GetParam(); }
};

inline std::string order_name(const testing::TestParamInfo<bool>& info) { return info.param ? "downwards" : "upwards"; }

}  // namespace paceline::train
