// SPDX-License-Identifier: Apache-2.0
// Weights in and out, as safetensors files with torchvision's names and layouts: parameters, the running statistics of
// batch norms (running_mean, running_var), and num_batches_tracked, which only PyTorch uses.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "trainer/nn/model.h"

namespace paceline::train {

// Why torchvision has no model of this structure; empty if it has.
std::string why_not_torchvisions(const ModelOptions& model);

// The content of a file with the model's weights and these running statistics, which are laid out like the model's own.
// batches: how many batches the statistics have seen.
std::string exported_weights(Model& model, std::span<const float> statistics, std::uint64_t batches);

// Fills the model's weights and statistics from the content of a file. If the file's last layer has another number of
// classes, the model's own last layer stays as it is, and the result is a line about that, else "". Throws Error if the
// content is not in the format, if a tensor is missing, has another shape or type, holds a value that is not finite, or
// belongs to no part of the model. title: of the model, for messages; where: the file's name.
std::string import_weights(std::string_view content, const std::string& where, const std::string& title, Model& model);

// The same from a file. Refuses anything but a regular file.
std::string import_weights(const std::filesystem::path& file, const std::string& title, Model& model);

}  // namespace paceline::train
