// SPDX-License-Identifier: Apache-2.0
#include "trainer/data/shapes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <numbers>
#include <string>
#include <vector>

#include "trainer/core/error.h"
#include "trainer/core/random.h"
#include "trainer/core/whole_file.h"
#include "trainer/data/cifar.h"
#include "trainer/data/jpeg.h"
#include "trainer/data/sharding.h"

namespace paceline::train {
namespace {

constexpr int size = 32;
constexpr double pi = std::numbers::pi;

// The parameters of one picture. Shapes use x and y relative to the centre, rotated, in units of the radius.
struct Picture {
  int kind = 0;
  double centre_x = 0, centre_y = 0, radius = 0, cosine = 1, sine = 0;  // shapes
  double period = 0, phase_x = 0, phase_y = 0, share = 0.5;             // textures: covered share of the period
};

Picture compose(int kind, Random& random) {
  Picture picture;
  picture.kind = kind;
  picture.radius = random.uniform(6, 11);
  picture.centre_x = random.uniform(picture.radius, size - picture.radius);
  picture.centre_y = random.uniform(picture.radius, size - picture.radius);
  double angle = random.uniform(-0.35, 0.35);  // shapes: up to 20°
  if (kind >= 5) angle = random.uniform(-0.15, 0.15);
  if (kind == 7) angle += random.below(2) == 1 ? pi / 4 : -pi / 4;
  picture.cosine = std::cos(angle);
  picture.sine = std::sin(angle);
  picture.period = random.uniform(5, 11);
  picture.phase_x = random.uniform(0, picture.period);
  picture.phase_y = random.uniform(0, picture.period);
  picture.share = random.uniform(0.4, 0.6);
  return picture;
}

// Whether the foreground covers a point.
bool covers(const Picture& picture, double at_x, double at_y) {
  const bool texture = picture.kind >= 5;
  const double from_x = texture ? at_x - size / 2.0 : at_x - picture.centre_x;
  const double from_y = texture ? at_y - size / 2.0 : at_y - picture.centre_y;
  const double turned_x = picture.cosine * from_x + picture.sine * from_y;
  const double turned_y = picture.cosine * from_y - picture.sine * from_x;
  if (texture) {
    const auto fraction = [&](double value, double phase) {
      const double periods = (value + phase) / picture.period;
      return periods - std::floor(periods);
    };
    const double u = fraction(turned_x, picture.phase_x), v = fraction(turned_y, picture.phase_y);
    switch (picture.kind) {
      case 5:
        return v < picture.share;
      case 6:
      case 7:
        return u < picture.share;
      case 8:
        return (u < 0.5) != (v < 0.5);
      default:
        return std::hypot(u - 0.5, v - 0.5) < 0.6 * picture.share;
    }
  }
  const double x = turned_x / picture.radius, y = turned_y / picture.radius, r = std::hypot(x, y);
  switch (picture.kind) {
    case 0:
      return r < 0.9;
    case 1:
      return std::max(std::abs(x), std::abs(y)) < 0.8;
    case 2:
      return y < 0.75 && y > 2.0 * std::abs(x) - 1.0;  // apex up
    case 3:
      return r < 1.0 && r > 0.6;
    default:
      return std::max(std::abs(x), std::abs(y)) < 1.0 && std::min(std::abs(x), std::abs(y)) < 0.28;
  }
}

// The share of a pixel that the foreground covers, from 3 × 3 points. unit: the pixel's side.
double coverage(const Picture& picture, int x, int y, double unit) {
  int covered = 0;
  for (int i = 0; i < 9; ++i) {
    covered += covers(picture, (x + (i % 3 + 0.5) / 3) * unit, (y + (i / 3 + 0.5) / 3) * unit);
  }
  return covered / 9.0;
}

// Hue in degrees; saturation and value 0 to 1 (Smith, Color Gamut Transform Pairs, SIGGRAPH 1978).
std::array<double, 3> colour(double hue, double saturation, double value) {
  std::array<double, 3> result{};
  const double offsets[] = {5, 3, 1};
  for (std::size_t c = 0; c < 3; ++c) {
    const double k = std::fmod(offsets[c] + hue / 60, 6);
    result[c] = 255 * value * (1 - saturation * std::clamp(std::min(k, 4 - k), 0.0, 1.0));
  }
  return result;
}

// Each class has its own hue, but varies around it so much that it overlaps with two other classes, shapes with
// textures. The colour is a hint that helps in the first iterations, but does not decide the class.
std::array<double, 3> foreground(int kind, Random& random) {
  const int place = kind < 5 ? 2 * kind : 2 * (kind - 5) + 1;
  const double hue = 36 * place + random.uniform(-40, 40);
  return colour(hue + 360, random.uniform(0.5, 1), random.uniform(0.6, 1));
}

std::array<double, 3> background(Random& random) {
  return colour(random.uniform(0, 360), random.uniform(0, 0.4), random.uniform(0.1, 0.4));
}

// An existing set may be CIFAR-10 itself.
void refuse_to_overwrite(const std::filesystem::path& directory, std::initializer_list<const char*> names) {
  std::error_code code;
  for (const char* name : names) {
    if (!std::filesystem::exists(directory / name, code)) continue;
    throw Error((directory / name).string(), "exists already", "remove it, or name another directory");
  }
}

void make_directory(const std::filesystem::path& directory) {
  std::error_code code;
  std::filesystem::create_directories(directory, code);
  if (code) throw Error(directory.string(), "cannot be made", code.message());
}

}  // namespace

std::uint8_t draw_shape(std::uint64_t seed, std::uint64_t part, std::uint64_t index, std::span<std::uint8_t> pixels,
                        int side, std::optional<std::uint8_t> of_class) {
  Random random{drawing, seed, part, index};
  const auto drawn = static_cast<std::uint8_t>(random.below(shape_names.size()));
  const std::uint8_t kind = of_class.value_or(drawn);
  const Picture picture = compose(kind, random);

  const std::array<double, 3> front = foreground(kind, random), back = background(random);
  const double slope_x = random.uniform(-40, 40), slope_y = random.uniform(-40, 40), noise = random.uniform(4, 22);

  const double unit = static_cast<double>(size) / side;
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const double cover = coverage(picture, x, y, unit);
      const double light = slope_x * (x - side / 2) / side + slope_y * (y - side / 2) / side;
      for (std::size_t c = 0; c < 3; ++c) {
        // The sum of three uniform numbers is close enough to a normal one.
        const double grain = noise * 2 * (random.uniform() + random.uniform() + random.uniform() - 1.5);
        const double value = back[c] + (front[c] - back[c]) * cover + light + grain;
        const auto wide = static_cast<std::size_t>(side);
        pixels[(c * wide + static_cast<std::size_t>(y)) * wide + static_cast<std::size_t>(x)] =
            static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return kind;
}

void make_dataset(const std::filesystem::path& directory, std::size_t train, std::size_t test, std::uint64_t seed) {
  if (train < 5 || test < 1)
    throw Error("make-dataset", "too few images", "ask for at least 5 training images and 1 test image", Status::usage);
  refuse_to_overwrite(directory, {"data_batch_1.bin", "test_batch.bin"});
  make_directory(directory);
  const auto draw = [&](std::size_t samples, std::uint64_t part) {
    Dataset data;
    data.labels.resize(samples);
    data.pixels.resize(samples * cifar_image_bytes);
    for (std::size_t i = 0; i < samples; ++i) {
      data.labels[i] =
          draw_shape(seed, part, i, std::span(data.pixels).subspan(i * cifar_image_bytes, cifar_image_bytes));
    }
    return data;
  };
  const Dataset training = draw(train, 0);
  for (int file = 0; file < 5; ++file) {
    const Slice part = part_of(train, file, 5);
    write_cifar_batch(directory / fmt::format("data_batch_{}.bin", file + 1), training, part.first, part.count);
  }
  write_cifar_batch(directory / "test_batch.bin", draw(test, 1), 0, test);
}

void make_jpeg_dataset(const std::filesystem::path& directory, std::size_t train, std::size_t test, std::uint64_t seed,
                       int side) {
  const std::size_t classes = shape_names.size();
  if (train < classes || test < 1) {
    throw Error("make-dataset", "too few images",
                "ask for at least 10 training images, one for each class, and 1 test image", Status::usage);
  }
  refuse_to_overwrite(directory, {"train", "val"});
  const std::size_t plane = static_cast<std::size_t>(side) * static_cast<std::size_t>(side);
  std::vector<std::uint8_t> planes(3 * plane), pixels(3 * plane);
  const auto draw = [&](const char* part, std::uint64_t number, std::size_t samples) {
    for (std::size_t i = 0; i < samples; ++i) {
      std::string name = shape_names[i % classes];
      draw_shape(seed, number, i, planes, side, static_cast<std::uint8_t>(i % classes));
      std::ranges::replace(name, ' ', '_');
      for (std::size_t k = 0; k < pixels.size(); ++k) pixels[k] = planes[k % 3 * plane + k / 3];
      const std::filesystem::path folder = directory / part / name;
      make_directory(folder);
      write_file_atomically(folder / fmt::format("{:06}.jpg", i), encode_jpeg({side, side, 3, pixels}), Sync::no);
    }
  };
  draw("train", 0, train);
  draw("val", 1, test);
}

}  // namespace paceline::train
