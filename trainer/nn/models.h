// SPDX-License-Identifier: Apache-2.0
// The published networks by torchvision's names. A new member of a family is one line in models.cpp's table.
#pragma once

#include <string>
#include <vector>

#include "trainer/nn/model.h"
#include "trainer/nn/network.h"

namespace paceline::train {

std::vector<std::string> model_names();

// Uses name, image_size, channels, classes, cifar_stem, resnet_v1, zero_gamma and width. Throws Error (usage) for an
// unknown name, with the list of known ones, and if the images are too small.
Network build_network(const ModelOptions& options);

}  // namespace paceline::train
