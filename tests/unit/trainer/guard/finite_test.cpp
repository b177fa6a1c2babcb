// SPDX-License-Identifier: Apache-2.0
#include "trainer/guard/finite.h"

#include <gmock/gmock.h>

#include <limits>
#include <utility>
#include <vector>

#include "tests/unit/trainer/reversed_model.h"
#include "trainer/optim/sgd.h"

namespace paceline::train {
namespace {

TEST(Finite, NoticesEveryValueThatIsNotFinite) {
  std::vector<float> values(1000, -3.0e38f);
  values[7] = 1e-45f;
  EXPECT_TRUE(all_finite(values));
  EXPECT_TRUE(all_finite({}));
  for (const float bad : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                          std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN()}) {
    for (const std::size_t at : {0u, 500u, 999u}) {
      const float good = std::exchange(values[at], bad);
      EXPECT_FALSE(all_finite(values)) << bad << " at " << at;
      values[at] = good;
    }
  }
}

TEST(Finite, NamesThePartOfTheState) {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  ReversedModel model;
  Sgd optimizer(7, {});
  std::vector<float> pending(7);
  EXPECT_EQ(first_nonfinite_part(model, optimizer, pending), "");
  pending[1] = nan;
  EXPECT_EQ(first_nonfinite_part(model, optimizer, pending), "the gradient of a.weight");
  optimizer.velocity()[5] = nan;
  EXPECT_EQ(first_nonfinite_part(model, optimizer, pending), "the optimizer's state of b.weight");
  model.statistics()[1] = nan;
  EXPECT_THAT(first_nonfinite_part(model, optimizer, pending), testing::HasSubstr("running statistics"));
  model.weights()[4] = nan;
  EXPECT_EQ(first_nonfinite_part(model, optimizer, pending), "b.weight");
}

}  // namespace
}  // namespace paceline::train
