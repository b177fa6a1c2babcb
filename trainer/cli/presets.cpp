// SPDX-License-Identifier: Apache-2.0
// The settings of the experiments that introduced the techniques. The batch per rank is the experiment's; mpirun
// decides the number of ranks. A preset has no data: give --data or --synthetic.
#include "trainer/cli/settings.h"

namespace paceline::train {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all{
      {"lecture-2gpu", "VGG on CIFAR-10 with Chainer's momentum SGD, the multi-GPU lectures' workload", R"(
# Chainer's examples/cifar with its VGG; lr 0.05, halved every 25 epochs, weight decay 5e-4; 32 images per rank.
# Its images are 5 % of CIFAR-10's, at 256 pixels: --data DIR --resize 256 --fraction 0.05; neither shifted nor mirrored.
model = "vgg_lecture"
augment = "none"
batch-size = 32
epochs = 50
optimizer = "sgd"
rate-position = "inside"
momentum = 0.9
weight-decay = 5e-4
lr = 0.05
lr-scaling = "none"
schedule = "step"
lr-steps = [25]
lr-factor = 0.5
warmup = "none"
)"},
      {"goyal-1hour", "ResNet-50 in one hour: linear scaling, gradual warm-up (arXiv 1706.02677)", R"(
# Sections 2 and 5.1. The paper's 256 ranks make a global batch of 8192, and lr = 3.2.
model = "resnet50"
batch-size = 32
epochs = 90
optimizer = "sgd"
nesterov = true
momentum = 0.9
weight-decay = 1e-4
decay-exclude = ["batch_norm"]
lr = 0.1
lr-scaling = "linear"
base-batch = 256
schedule = "step"
lr-steps = [30, 60, 80]
lr-factor = 0.1
warmup = "gradual"
warmup-epochs = 5
zero-gamma = true
)"},
      {"akiba-15min", "ResNet-50 in 15 minutes: RMSprop warm-up, slow start, last-batch statistics (arXiv 1711.04325)",
       R"(
# Sections 3 and 4. The paper's 1024 ranks make a global batch of 32768, and lr = 12.8 before slow start halves it.
model = "resnet50"
batch-size = 32
epochs = 90
optimizer = "rmsprop_warmup"
momentum = 0.9
rms-decay = 0.99
epsilon = 1e-8
rms-lr = 3e-4
rms-center = 10
rms-period = 5
weight-decay = 1e-4
lr = 0.1
lr-scaling = "linear"
base-batch = 256
schedule = "slow_start"
warmup = "none"
batch-norm-statistics = "last"
allreduce-dtype = "f16"
)"},
      {"lars", "ResNet-50 with layer-wise rates (arXiv 1708.03888), MLPerf's numbers for a global batch of 3264", R"(
# mlcommons/training_results_v2.0, NVIDIA's resnet/implementations/mxnet/config_DGXA100.sh: 8 ranks of 408 images,
# lr 10.5, trust 0.001, weight decay 5e-5, 2 epochs of warm-up, polynomial of power 2, 37 epochs. (It also smooths labels, and
# its polynomial begins after the warm-up; here it does at the start, as in the paper, and the warm-up leads to it.)
model = "resnet50"
batch-size = 408
epochs = 37
optimizer = "lars"
momentum = 0.9
lars-trust = 0.001
weight-decay = 5e-5
decay-exclude = ["batch_norm", "bias"]
lr = 10.5
lr-scaling = "none"
schedule = "poly"
poly-power = 2
warmup = "gradual"
warmup-epochs = 2
)"},
      {"dont-decay", "grow the batch instead of lowering the rate (arXiv 1711.00489)", R"(
# Section 5: a batch of 128 and lr 0.1; by a factor of 5 at epochs 60, 120 and 160 of 200. One rank of 128 images; with
# more ranks give --batch-size 128 / ranks. (The paper's network is a wide ResNet.)
model = "resnet18"
batch-size = 128
epochs = 200
optimizer = "sgd"
momentum = 0.9
weight-decay = 5e-4
lr = 0.1
lr-scaling = "none"
schedule = "step"
lr-steps = [60, 120, 160]
lr-factor = 0.2
grow-batch = 5
warmup = "none"
)"}};
  return all;
}

}  // namespace paceline::train
