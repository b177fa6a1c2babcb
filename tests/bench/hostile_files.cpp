// SPDX-License-Identifier: Apache-2.0
// Writes hostile .pace files and OTF2 archives for hostile_traces.py, and prints their paths, one on each line.
//
// usage: hostile_files DIRECTORY [NAMES [NESTING [TRACKS]]]
#include "tests/hostile_files.h"

#include <cstdlib>
#include <exception>
#include <iostream>

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    std::cerr << "usage: hostile_files DIRECTORY [NAMES [NESTING [TRACKS]]]\n";
    return 2;
  }
  paceline::HostileFiles files;
  if (argc > 2) files.names = std::strtoull(argv[2], nullptr, 10);
  if (argc > 3) files.nesting = std::strtoull(argv[3], nullptr, 10);
  if (argc > 4) files.tracks = std::strtoull(argv[4], nullptr, 10);
  try {
    for (const auto& file : files.write(argv[1])) std::cout << file.path.string() << '\n';
  } catch (const std::exception& error) {
    std::cerr << "hostile_files: " << error.what() << '\n';
    return 1;
  }
}
