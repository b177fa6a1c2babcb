// SPDX-License-Identifier: Apache-2.0
// compare_checkpoints A B CLASSES IMAGE_SIZE LIMIT: the largest ‖Δ‖₂/‖w‖₂ over the parameters of two ResNet-18; ends
// with 1 when it is above the limit, or when A and B are of different iterations.
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "trainer/checkpoint/checkpoint.h"
#include "trainer/optim/sgd.h"

int main(int argc, char** argv) {
  using namespace paceline::train;
  if (argc != 6) return 2;
  ModelOptions options;
  options.batch_size = 1;
  options.classes = std::stol(argv[3]);
  options.image_size = std::stol(argv[4]);
  const Position expected{options.name, options.image_size, options.classes};
  const auto a = make_cpu_model(options), b = make_cpu_model(options);
  Sgd velocity_a(a->weights().size(), {}), velocity_b(b->weights().size(), {});
  const Position at_a = read_checkpoint(argv[1], expected, *a, velocity_a);
  const Position at_b = read_checkpoint(argv[2], expected, *b, velocity_b);

  double worst = 0;
  std::string name;
  for (const Parameter& parameter : a->parameters()) {
    double difference = 0, norm = 0;
    for (std::size_t i = parameter.offset; i < parameter.offset + parameter.size; ++i) {
      const double w = a->weights()[i], d = b->weights()[i] - w;
      difference += d * d;
      norm += w * w;
    }
    const double relative = norm > 0 ? std::sqrt(difference / norm) : std::sqrt(difference);
    if (!(relative <= worst)) {
      worst = relative;
      name = parameter.name;
    }
  }
  fmt::print("largest relative difference {:.3g} ({}) after {} and {} iterations\n", worst, name, at_a.iteration,
             at_b.iteration);
  return at_a.iteration == at_b.iteration && worst <= std::stod(argv[5]) ? 0 : 1;
}
