// SPDX-License-Identifier: Apache-2.0
// CIFAR-10's binary version, as published (https://www.cs.toronto.edu/~kriz/cifar.html): records of 3,073 bytes, one
// label and 3,072 pixels (red, green, blue planes of 32 × 32, row by row). Here a file may hold any number of records.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "trainer/data/dataset.h"

namespace paceline::train {

inline constexpr std::size_t cifar_image_bytes = 3072;
inline constexpr std::size_t cifar_record_bytes = 1 + cifar_image_bytes;

// Throws Error unless the directory, or its folder cifar-10-batches-bin, holds data_batch_1.bin and test_batch.bin.
// Returns a line about other batches that are missing; empty if there is none.
std::string check_cifar10(const std::filesystem::path& directory);

// Reads data_batch_1.bin … data_batch_5.bin (at least the first must exist) and test_batch.bin from the directory or
// its folder cifar-10-batches-bin. Throws Error: directory or file missing, size not a multiple of 3,073 bytes, empty,
// label above 9.
TrainAndTest read_cifar10(const std::filesystem::path& directory);

// Appends the records of one batch file. Throws the same errors.
void read_cifar_batch(const std::filesystem::path& file, Dataset& data);

// Writes samples first … first + count − 1 as a batch file, atomically. Throws Error if it cannot be written.
void write_cifar_batch(const std::filesystem::path& file, const Dataset& data, std::size_t first, std::size_t count);

}  // namespace paceline::train
