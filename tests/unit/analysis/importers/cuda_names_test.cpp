// SPDX-License-Identifier: Apache-2.0
#include "analysis/importers/cuda_names.h"

#include <gtest/gtest.h>

namespace paceline::analysis {
namespace {

TEST(CudaNames, AFunctionOfAStackHasNoParametersAndNoArguments) {
  EXPECT_EQ(short_function("_ZN3net5orderERSt6vectorIdSaIdEE"), "net::order");
  // void std::__introsort_loop<double*, long>(double*, double*, long)
  EXPECT_EQ(short_function("_ZSt16__introsort_loopIPdlEvT_S1_T0_"), "std::__introsort_loop");
  // at::(anonymous namespace)::add(int)
  EXPECT_EQ(short_function("_ZN2at12_GLOBAL__N_13addEi"), "at::(anonymous namespace)::add");
  // std::function<int ()>::operator()() const
  EXPECT_EQ(short_function("_ZNKSt8functionIFivEEclEv"), "std::function::operator()");
  // c10::operator<<(std::ostream&, c10::Device const&)
  EXPECT_EQ(short_function("_ZN3c10lsERSoRKNS_6DeviceE"), "c10::operator<<");
  // std::string const& net::at<int>(int)
  EXPECT_EQ(short_function("_ZN3net2atIiEERKSsT_"), "net::at");
  // net::X::operator bool() const
  EXPECT_EQ(short_function("_ZNK3net1XcvbEv"), "net::X::operator bool");
  EXPECT_EQ(short_function("main"), "main");
  EXPECT_EQ(short_function("_Znot a name"), "_Znot a name");
}

}  // namespace
}  // namespace paceline::analysis
