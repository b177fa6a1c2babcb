// A drawn data set of ten classes, shapes and textures, for machines that cannot download CIFAR-10: learnable in a few
// minutes on one core, yet not by position, which is random, nor by colour alone, which is only a hint.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>

namespace paceline::train {

inline constexpr std::array shape_names = {
    "disc",         "square", "triangle", "ring", "cross", "horizontal stripes", "vertical stripes", "diagonal stripes",
    "checkerboard", "dots"};

// Draws sample `index` of a part (0 training, 1 test) as 3 planes of side × side bytes and returns its class, which is
// random where none is given. A function of its arguments alone. About 30 µs at 32.
std::uint8_t draw_shape(std::uint64_t seed, std::uint64_t part, std::uint64_t index, std::span<std::uint8_t> pixels,
                        int side = 32, std::optional<std::uint8_t> of_class = {});

// Writes `train` samples spread evenly over data_batch_1.bin … data_batch_5.bin and `test` samples in test_batch.bin,
// making the directory if needed. Throws Error: nothing to draw, directory or file not writable.
void make_dataset(const std::filesystem::path& directory, std::size_t train, std::size_t test, std::uint64_t seed);

// The same shapes, drawn at side × side pixels, classes in turn, as a folder of JPEGs: train/CLASS/*.jpg and
// val/CLASS/*.jpg. Throws Error likewise, and where there is such a folder already.
void make_jpeg_dataset(const std::filesystem::path& directory, std::size_t train, std::size_t test, std::uint64_t seed,
                       int side);

}  // namespace paceline::train
