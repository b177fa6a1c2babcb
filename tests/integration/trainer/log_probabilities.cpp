// SPDX-License-Identifier: Apache-2.0
// log_probabilities MODEL IMAGE_SIZE CLASSES SAMPLES FILE: imports the weights of FILE (safetensors) and prints one
// line for each image with the logarithms of its classes' probabilities, which equal its logits up to a constant. The
// images are a formula, which torchvision_test.py has, too.
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include "trainer/checkpoint/weights.h"

int main(int argc, char** argv) {
  using namespace paceline::train;
  if (argc != 6) return 2;
  try {
    ModelOptions options;
    options.name = argv[1];
    options.image_size = std::stol(argv[2]);
    options.classes = std::stol(argv[3]);
    options.batch_size = 1;
    options.cifar_stem = false;
    const auto model = make_cpu_model(options);
    import_weights(std::filesystem::path(argv[5]), options.name, *model);
    std::vector<float> image(static_cast<std::size_t>(3 * options.image_size * options.image_size));
    std::uint64_t number = 0;
    for (long sample = 0; sample < std::stol(argv[4]); ++sample) {
      for (float& value : image) {
        const auto bits = static_cast<std::uint32_t>(number++ * 2654435761u);
        value = static_cast<float>(bits >> 8) * 0x1p-23f - 1;
      }
      // The loss of an image is −log of the probability of its label.
      for (std::int32_t label = 0; label < options.classes; ++label) {
        fmt::print("{:.9g}{}", -model->forward(image, {&label, 1}, Mode::evaluate).loss_sum,
                   label + 1 < options.classes ? ' ' : '\n');
      }
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "log_probabilities: {}\n", error.what());
    return 1;
  }
}
