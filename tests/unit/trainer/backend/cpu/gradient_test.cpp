// SPDX-License-Identifier: Apache-2.0
// The reference's gradients against fourth-order central differences of its loss, in float64:
//   f'(x) ≈ (−f(x + 2h) + 8 f(x + h) − 8 f(x − h) + f(x − 2h)) ÷ 12h, with an error of h⁴ f⁽⁵⁾ ÷ 30.
// Inputs are drawn until every ReLU and every maximum is so far from its kink that a step of 2h does not cross it.
#include <gtest/gtest.h>

#include <random>

#include "tests/unit/trainer/backend/reference/reference_model.h"

namespace paceline::train::reference {
namespace {

constexpr double h = 5e-4;
constexpr double bound = 2e-10;  // ‖computed − differences‖ ÷ ‖differences‖ of each tensor; at most 5e-11 was seen

class GradientCheck {
 public:
  explicit GradientCheck(const Network& network, bool frozen = false, std::int64_t samples = 3)
      : model_(network, 1, frozen), images_(samples, network.layers()[0].out) {
    std::normal_distribution<double> normal;
    // Not at the initial values, where shifts are zero and scales one and a wrong use of them would not show.
    for (auto& [name, w] : model_.weights) {
      for (double& value : w)
        value = name.ends_with("weight") && w.size() < 16 ? 1 + 0.3 * normal(random_) : 0.5 * normal(random_);
    }
    for (auto& [name, moments] : model_.running) {
      for (double& mean : moments.mean) mean = 0.3 * normal(random_);
      for (double& variance : moments.variance) variance = std::exp(0.3 * normal(random_));
    }
    for (std::int64_t n = 0; n < samples; ++n) labels_.push_back(static_cast<std::int32_t>(n % 3));
    for (int attempt = 0; attempt < 2000; ++attempt) {
      for (double& value : images_.values) value = normal(random_);
      loss();
      if (model_.distance_to_kink() > 20 * h) return;
    }
    ADD_FAILURE() << "no input is away from the kinks";
  }

  void run() {
    loss();
    model_.backward(0.7);
    check("image", images_.values, model_.tensor_gradients[0].values);
    for (auto& [name, w] : model_.weights) check(name, w, model_.gradients[name]);
  }

 private:
  double loss() { return model_.forward(images_, labels_, Mode::train); }

  double loss_at(double& value, double x) {
    value = x;
    return 0.7 * loss();
  }

  void check(const std::string& name, Values& values, const Values gradient) {
    Values differences;
    for (double& value : values) {
      const double x = value;
      const double d = -loss_at(value, x + 2 * h) + 8 * loss_at(value, x + h) - 8 * loss_at(value, x - h) +
                       loss_at(value, x - 2 * h);
      value = x;
      differences.push_back(d / (12 * h));
    }
    EXPECT_LT(relative_error(gradient, differences), bound) << name;
  }

  ReferenceModel model_;
  Tensor images_;
  std::vector<std::int32_t> labels_;
  std::mt19937_64 random_{7};
};

TEST(Gradient, OfALinearLayer) {
  Network net({3, 2, 2});
  net.linear("fc", 0, 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfConvolutionsOfEveryKernelAndStrideInUse) {
  for (const auto& [kernel, stride] : {std::pair{1, 1}, {1, 2}, {3, 1}, {3, 2}, {7, 2}}) {
    SCOPED_TRACE(testing::Message() << kernel << " × " << kernel << ", stride " << stride);
    Network net({2, 6, 6});
    net.linear("fc", net.convolution("conv", 0, 3, kernel, stride, true), 3);
    GradientCheck(net).run();
  }
}

TEST(Gradient, OfBatchNormThroughItsOwnStatistics) {
  Network net({2, 3, 3});
  net.linear("fc", net.batch_norm("bn", 0, false), 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfBatchNormWithFrozenStatistics) {
  Network net({2, 3, 3});
  net.linear("fc", net.batch_norm("bn", 0, false), 3);
  GradientCheck(net, true).run();
}

TEST(Gradient, OfBatchNormWithRelu) {
  Network net({2, 3, 3});
  net.linear("fc", net.batch_norm("bn", 0, true), 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfRelu) {
  Network net({2, 3, 3});
  net.linear("fc", net.relu("relu", 0), 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfMaxPoolingWithOverlapAndPadding) {
  Network net({2, 5, 5});
  net.linear("fc", net.max_pool("pool", 0, 3, 2, 1), 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfAveragePooling) {
  Network net({2, 4, 4});
  net.linear("fc", net.average_pool("pool", 0, 2), 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfASumWithRelu) {
  Network net({2, 3, 3});
  const int branch = net.convolution("conv", 0, 2, 3, 1, false);
  net.linear("fc", net.add_relu("add", branch, 0), 3);
  GradientCheck(net).run();
}

TEST(Gradient, OfASmallResidualNetwork) {
  Network net({2, 6, 6});
  int x = net.batch_norm("bn1", net.convolution("conv1", 0, 3, 3, 1, false), true);
  int y = net.batch_norm("a.bn1", net.convolution("a.conv1", x, 3, 3, 1, false), true);
  y = net.batch_norm("a.bn2", net.convolution("a.conv2", y, 3, 3, 1, false), false);
  x = net.add_relu("a.add", y, x);  // identity shortcut
  y = net.batch_norm("b.bn1", net.convolution("b.conv1", x, 4, 3, 2, false), true);
  y = net.batch_norm("b.bn2", net.convolution("b.conv2", y, 4, 3, 1, false), false);
  x = net.batch_norm("b.downsample.1", net.convolution("b.downsample.0", x, 4, 1, 2, false), false);
  x = net.add_relu("b.add", y, x);  // projection shortcut
  net.linear("fc", net.average_pool("avgpool", x, 3), 3);
  GradientCheck(net, false, 2).run();
}

}  // namespace
}  // namespace paceline::train::reference
